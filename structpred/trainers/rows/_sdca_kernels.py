# mypy: ignore-errors
"""Compiled sweeps of dual coordinate ascent over rows, with shrinking, for losses and regularisers that are tables."""

import numpy as np

from structpred.rows._scalar_kernels import dual_step, logit, row_dot
from structpred.runtime.jit import njit

# what `counts` holds, and what `limits` holds
N_ACTIVE, PLACE, PHASE = range(3)
TOP_BEFORE, LOW_BEFORE, TOP, LOW, SETTLED, GAP, LAST_GAP, UNUSED = range(8)
# the phases of a pass: sweeps over the active rows, one over all rows, its end
SHRUNK, WHOLE, OVER = range(3)
# the numbers of a row that a step needs, side by side so that they are one line of memory
TARGET, CURVATURE, LEAST, MOST, ENTROPY, STEEPNESS, WIDTH = range(7)
#: rows that are read ahead
AHEAD = 128


@njit(cache=True, nogil=True)
def next_random(state):
    """The successor of a number that is not zero (xorshift64, Marsaglia 2003)."""
    state ^= state << np.uint64(13)
    state ^= state >> np.uint64(7)
    state ^= state << np.uint64(17)
    return state


@njit(cache=True, nogil=True)
def draw(state, size):
    """A number below `size` < 2^32 from the upper half of a random number."""
    return np.int64(((state >> np.uint64(32)) * np.uint64(size)) >> np.uint64(32))


@njit(cache=True, nogil=True)
def end_sweep(counts, limits, n):
    """What the violations of a sweep say of the next one."""
    spread = max(limits[TOP] - limits[LOW], 0.0)
    limits[LAST_GAP] = limits[GAP]
    limits[TOP_BEFORE] = limits[TOP] if limits[TOP] > 0.0 else np.inf
    limits[LOW_BEFORE] = limits[LOW] if limits[LOW] < 0.0 else -np.inf
    if counts[PHASE] == WHOLE:
        counts[PHASE] = OVER
        limits[SETTLED] = 0.1 * min(limits[SETTLED], spread)
    elif spread <= limits[SETTLED] or (spread == 0.0 and counts[N_ACTIVE] == 0):  # no row is left, whatever was read from a file
        counts[PHASE], counts[N_ACTIVE] = WHOLE, n
    limits[TOP], limits[LOW], limits[GAP], counts[PLACE] = -np.inf, np.inf, 0.0, 0


@njit(cache=True, nogil=True)
def shuffle(indptr, indices, values, duals, alpha, active, first, last, n_active, state):
    """Random rows at the places first..last - 1 of the active ones, and their numbers into the cache.

    Reading one number of each line of memory ahead of its use, row after row, takes a fraction of the time of waiting for each
    when it is needed. Returns the random number after, and a sum that only keeps the compiler from leaving the reads out.
    """
    for place in range(first, last):
        state = next_random(state)
        other = place + draw(state, n_active - place)
        active[other], active[place] = active[place], active[other]
    total = 0.0
    for place in range(first, last):
        i = active[place]
        start, stop = np.uint64(indptr[i]), np.uint64(indptr[i + 1])
        total += alpha[i] + duals[i, TARGET] + duals[i, STEEPNESS]
        for k in range(start, stop, np.uint64(8)):
            total += values[k]
        for k in range(start, stop, np.uint64(16)):
            total += indices[k]
    return state, total


@njit(cache=True, nogil=True)
def image_of(u, scale, low, high):
    """s (u - clip(u, low, high)) of one coordinate: exactly 0.0 where u is between low and high."""
    inside = u if u > low else low  # not min and max, which compile to branches
    inside = inside if inside < high else high
    return scale * (u - inside)


@njit(cache=True, nogil=True)
def gap_of(old, slope, score, target, curvature, least, most, entropy):
    """What the dual of one row is below its maximum where its score stays: of an entropy as its second derivative says."""
    if entropy > 0.0:
        span = max(most - least, 1e-300)
        share = min(max((old - least) / span, 1e-9), 1.0 - 1e-9)
        return 0.5 * slope * slope / (curvature + entropy / (span * share * (1.0 - share)))
    best = dual_step(old, score, 0.0, target, curvature, least, most, 0.0)
    return (old - best) * (slope + 0.5 * curvature * (best - old))


@njit(cache=True, nogil=True)
def ascend(indptr, indices, values, duals, table, u, alpha, active, counts, limits, seed, budget):
    """Coordinate steps over the active rows in random order, until `budget` numbers were read or the pass is over.

    alpha_i of [least_i, most_i] goes to the maximum of a lower bound of the dual along its coordinate, whose curvature is that of
    the loss and the row's steepness; u = sum_i alpha_i a_i is kept, and with it w = u, or its image where there is a table of
    (scale, low, high) for each coordinate. A row at a bound whose slope points outwards, by more than any slope of the sweep
    before, leaves the active ones (Hsieh et al. 2008, section 3.2). Returns how many alphas changed.
    """
    w = u
    if table is not None:
        scale, below, above = table
        w = np.empty_like(u)
        for j in range(u.shape[0]):
            w[j] = image_of(u[j], scale[j], below[j], above[j])
    state, changed, done = np.uint64(seed), 0, 0
    while done < budget and counts[PHASE] != OVER:
        if counts[PLACE] >= counts[N_ACTIVE]:
            end_sweep(counts, limits, active.shape[0])
            continue
        top_before, low_before, top, low, gap = limits[TOP_BEFORE], limits[LOW_BEFORE], limits[TOP], limits[LOW], limits[GAP]
        place, n_active = counts[PLACE], counts[N_ACTIVE]
        last = min(place + AHEAD, n_active)
        state, unused = shuffle(indptr, indices, values, duals, alpha, active, place, last, n_active, state)
        limits[UNUSED] = unused
        while place < min(last, n_active):
            i = active[place]
            start, stop = indptr[i], indptr[i + 1]
            done += stop - start + 1
            old, target, curvature, least, most = alpha[i], duals[i, TARGET], duals[i, CURVATURE], duals[i, LEAST], duals[i, MOST]
            entropy = duals[i, ENTROPY]
            score = row_dot(indices, values, start, stop, w)
            slope = score - target + curvature * old
            if entropy > 0.0:
                slope += entropy * logit((old - least) / (most - least)) if most > least else 0.0
            gap += gap_of(old, slope, score, target, curvature, least, most, entropy)
            step = slope
            if most <= least or (entropy == 0.0 and old <= least):
                if slope > top_before or most <= least:
                    n_active -= 1
                    active[place], active[n_active] = active[n_active], i
                    continue
                step = min(slope, 0.0)
            elif entropy == 0.0 and old >= most:
                if slope < low_before:
                    n_active -= 1
                    active[place], active[n_active] = active[n_active], i
                    continue
                step = max(slope, 0.0)
            place += 1
            top, low = max(top, step), min(low, step)
            if step != 0.0:
                new = dual_step(old, score, duals[i, STEEPNESS], target, curvature, least, most, entropy)
                if new != old:
                    alpha[i] = new
                    changed += 1
                    move = new - old
                    for k in range(np.uint64(start), np.uint64(stop)):
                        j = np.uint32(indices[k])
                        if table is None:
                            u[j] += move * values[k]
                        else:
                            moved = u[j] + move * values[k]
                            u[j], w[j] = moved, image_of(moved, scale[j], below[j], above[j])
        limits[TOP], limits[LOW], limits[GAP], counts[PLACE], counts[N_ACTIVE] = top, low, gap, place, n_active
    return changed
