"""Angular search (Choi, Meshi & Srebro 2016, Algorithm 2): exact, with at most 2 M + 1 constrained queries for M outputs.

An angle is a range of slopes s = g / h. The query at lam = 1 / sqrt(alpha beta) finds z = (h, g); its line meets the hyperbola of
z once more, at z' = (lam g, h / lam). Outside the slopes of z and z' nothing in the angle is better than z (Lemma 8); the
rest is split at the ray r of slope 1 / lam. The half above includes r, the half below does not, so nothing is lost between them,
and the end at z is moved past z, so that z is not found again.

Each line (lam, K) of the angle and of those it came from bounds Phi at slope s by s (K / (1 + lam s))^2, largest at s = 1 / lam.
"""

import heapq
from typing import NamedTuple

import numpy as np

from structpred.slack.ledger import Ledger

Lines = tuple[tuple[float, float], ...]

#: how far an end is moved past an output already found, relative to its slope; what lies between is counted in the bound
PAST = 1e-12
#: an angle of a relaxation narrower than this is not split: its oracle returns the ends again and again. Lemma 10: costs < 0.06 %
CLOSED_RATIO = 1.1


class Angle(NamedTuple):
    """Slopes low < s < high (low included if `inclusive`). bound: no output in it has a larger Phi, by its lines."""

    low: float
    high: float
    inclusive: bool
    lines: Lines
    bound: float


def largest_phi(lines: Lines, low: float, high: float) -> float:
    """The bound that the lines give for slopes in [low, high]; inf if there are no lines."""
    best = np.inf
    for lam, K in lines:
        s = min(max(1.0 / lam, low), high)
        best = min(best, s * (K / (1.0 + lam * s)) ** 2)
    return best


def live_slopes(lam: float, K: float, phi: float) -> tuple[float, float]:
    """The slopes at which the line allows more than `phi`: with q = K / (2 sqrt(lam phi)), (q -+ sqrt(q^2 - 1))^2 / lam.

    For K = h + lam g and phi = h g these are the slopes of z and z'.
    """
    if phi <= 0.0 or np.isinf(K):
        return 0.0, np.inf
    q = max(K / (2.0 * np.sqrt(lam * phi)), 1.0)
    root = (q + np.sqrt(q * q - 1.0)) ** 2
    return 1.0 / (root * lam), root / lam


def angular_search(ledger: Ledger) -> float:
    """Search all outputs with h, g > 0; returns an upper bound of Phi."""
    return search_angle(ledger, Angle(0.0, np.inf, False, (), np.inf), ledger.lam0)


def search_angle(ledger: Ledger, root: Angle, lam0: float) -> float:
    """Search an angle, best bound first, beginning with lam0 if the angle is open at an end; returns an upper bound within it."""
    heap: list[tuple[float, int, Angle]] = [(-root.bound, 0, root)]
    seen: set[tuple[float, float]] = set()
    dropped, count = 0.0, 0
    while heap:
        angle = heap[0][2]
        if angle.bound <= ledger.floor or not ledger.may_ask():
            return max(dropped, angle.bound)  # the best of all that are left
        heapq.heappop(heap)
        children, leftover = _ask(ledger, angle, lam0, seen)
        dropped = max(dropped, leftover)
        for child in children:
            count += 1
            heapq.heappush(heap, (-child.bound, count, child))
    return dropped


def _ask(ledger: Ledger, angle: Angle, lam0: float, seen: set[tuple[float, float]]) -> tuple[list[Angle], float]:
    """One query: (the angles to continue with, the bound of all else that is dropped)."""
    low, high = angle.low, angle.high
    bounded = low > 0.0 and high < np.inf
    if ledger.problem.closed and bounded and high < CLOSED_RATIO * low:
        return [], angle.bound
    lam = 1.0 / (np.sqrt(low) * np.sqrt(high)) if bounded else lam0
    z = ledger.constrained(lam, high, low, angle.inclusive)
    if z is None:
        return [], 0.0
    lines = (*angle.lines, (lam, z.bound))
    slope = z.g / z.h if z.phi > 0.0 else 0.0
    # a search cut short may find nothing, find the same again, or (a solver's tolerance) go past an end: then its bound is kept
    inside = low * (1.0 - 1e-9) <= slope <= high * (1.0 + 1e-9)
    again = (z.h, z.g) in seen and not ledger.problem.closed
    if slope == 0.0 or not inside or again:
        return [], largest_phi(lines, low, high)
    seen.add((z.h, z.g))
    # the halves of the slopes between z and z', and the bound of the slivers at z
    r = 1.0 / lam
    leftover = z.phi
    if z.bound <= z.value(lam) * (1.0 + 1e-12):
        other = 1.0 / (lam * lam * slope)  # the slope of z'
        first, last = min(slope, other), max(slope, other)
        past, before = slope * (1.0 + PAST), slope * (1.0 - PAST)
        leftover = max(leftover, largest_phi(lines, before, past))
        first, last = (past if first == slope else first), (before if last == slope else last)
    else:  # the bound is above what was found: more slopes stay open
        first, last = live_slopes(lam, z.bound, z.phi)
    low, inclusive = (angle.low, angle.inclusive) if angle.low >= first else (first, False)
    halves = [(r, min(angle.high, last), True), (low, min(r, angle.high), inclusive)]
    return [Angle(a, b, inc, lines, largest_phi(lines, a, b)) for a, b, inc in halves if a < b], leftover
