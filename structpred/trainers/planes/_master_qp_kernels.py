# mypy: ignore-errors
"""Compiled steps of the master problem of cutting planes: sequential minimal optimisation on a product of simplices."""

import numpy as np

from structpred.runtime.jit import njit


@njit(cache=True, nogil=True)
def solve_master(gram, offsets, inv_lam, starts, members, alpha, rest, gradient, tolerance, max_sweeps):
    """Maximise offsets . alpha - inv_lam / 2 alpha' gram alpha, in place; block j has the planes members[starts[j]:starts[j+1]].

    rest[j] = 1 - the sum of its alpha: the weight of the zero plane, whose gradient is 0. In a block, weight moves from the plane
    with the smallest gradient among those that have any to the one that gains most by an exact step. Blocks whose largest
    violation is below `tolerance` are skipped. Returns the largest violation of the last sweep.
    """
    n = offsets.shape[0]
    worst = 0.0
    for _ in range(max_sweeps):
        worst = 0.0
        for j in range(starts.shape[0] - 1):
            for _inner in range(8 * (starts[j + 1] - starts[j]) + 8):
                low = -1  # the zero plane
                low_value = 0.0 if rest[j] > 0.0 else np.inf
                top = 0.0
                for k in range(starts[j], starts[j + 1]):
                    p = members[k]
                    if alpha[p] > 0.0 and gradient[p] < low_value:
                        low = p
                        low_value = gradient[p]
                    top = max(top, gradient[p])
                violation = top - low_value
                if _inner == 0:
                    worst = max(worst, violation)
                if not violation > tolerance:
                    break
                up = -1
                best = 0.0
                own = gram[low, low] if low >= 0 else 0.0
                for k in range(starts[j] - 1, starts[j + 1]):
                    p = members[k] if k >= starts[j] else -1
                    slope = (gradient[p] if p >= 0 else 0.0) - low_value
                    if slope > 0.0:
                        bend = own
                        if p >= 0:
                            bend += gram[p, p]
                            if low >= 0:
                                bend -= 2.0 * gram[p, low]
                        gain = slope * slope / max(inv_lam * bend, 1e-300)
                        if gain > best:
                            best = gain
                            up = p
                            found_slope = slope
                            found_bend = bend
                if best == 0.0:
                    break
                room = alpha[low] if low >= 0 else rest[j]
                step = min(found_slope / max(inv_lam * found_bend, 1e-300), room)
                if step == room:  # exactly zero, so that the plane can be dropped
                    if low >= 0:
                        alpha[low] = 0.0
                    else:
                        rest[j] = 0.0
                elif low >= 0:
                    alpha[low] -= step
                else:
                    rest[j] -= step
                if up >= 0:
                    alpha[up] += step
                    for q in range(n):
                        gradient[q] -= step * inv_lam * gram[up, q]
                else:
                    rest[j] += step
                if low >= 0:
                    for q in range(n):
                        gradient[q] += step * inv_lam * gram[low, q]
        if not worst > tolerance:
            break
    return worst
