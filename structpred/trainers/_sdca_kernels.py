# mypy: ignore-errors
"""Compiled sweeps of dual coordinate ascent over the signed rows of a linear task, with shrinking."""

import numpy as np

from structpred.core._linear_kernels import row_dot
from structpred.runtime.jit import njit

# what `counts` holds, and what `limits` holds
N_ACTIVE, PLACE, PHASE = range(3)
TOP_BEFORE, LOW_BEFORE, TOP, LOW, SETTLED, GAP, LAST_GAP, UNUSED = range(8)
# the phases of a pass: sweeps over the active rows, one over all rows, its end
SHRUNK, WHOLE, OVER = range(3)
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
    elif spread <= limits[SETTLED]:
        counts[PHASE], counts[N_ACTIVE] = WHOLE, n
    limits[TOP], limits[LOW], limits[GAP], counts[PLACE] = -np.inf, np.inf, 0.0, 0


@njit(cache=True, nogil=True)
def shuffle(indptr, indices, values, squares, upper, alpha, active, first, last, n_active, state):
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
        total += alpha[i] + upper[i] + squares[i]
        for k in range(start, stop, np.uint64(8)):
            total += values[k]
        for k in range(start, stop, np.uint64(16)):
            total += indices[k]
    return state, total


@njit(cache=True, nogil=True)
def ascend(indptr, indices, values, squares, upper, target, w, alpha, active, counts, limits, seed, budget):
    """Coordinate steps over the active rows in random order, until `budget` numbers were read or the pass is over.

    alpha_i of [0, upper_i] goes to the maximum of the dual along its coordinate; w = sum_i alpha_i a_i is kept. A row at a bound
    whose slope points outwards, by more than any slope of the sweep before, leaves the active ones (Hsieh et al. 2008, section
    3.2). Returns how many alphas changed.
    """
    state, changed, done = np.uint64(seed), 0, 0
    while done < budget and counts[PHASE] != OVER:
        if counts[PLACE] >= counts[N_ACTIVE]:
            end_sweep(counts, limits, active.shape[0])
            continue
        top_before, low_before, top, low, gap = limits[TOP_BEFORE], limits[LOW_BEFORE], limits[TOP], limits[LOW], limits[GAP]
        place, n_active = counts[PLACE], counts[N_ACTIVE]
        last = min(place + AHEAD, n_active)
        state, unused = shuffle(indptr, indices, values, squares, upper, alpha, active, place, last, n_active, state)
        limits[UNUSED] = unused
        while place < min(last, n_active):
            i = active[place]
            start, stop = indptr[i], indptr[i + 1]
            done += stop - start + 1
            slope = row_dot(indices, values, start, stop, w) - target
            old, most = alpha[i], upper[i]
            gap += max(0.0, -slope) * most + old * slope
            step = slope
            if old <= 0.0:
                if slope > top_before or most <= 0.0:
                    n_active -= 1
                    active[place], active[n_active] = active[n_active], i
                    continue
                step = min(slope, 0.0)
            elif old >= most:
                if slope < low_before:
                    n_active -= 1
                    active[place], active[n_active] = active[n_active], i
                    continue
                step = max(slope, 0.0)
            place += 1
            top, low = max(top, step), min(low, step)
            if step != 0.0:
                new = min(max(old - slope / squares[i], 0.0), most) if squares[i] > 0.0 else most
                if new != old:
                    alpha[i] = new
                    changed += 1
                    move = new - old
                    for k in range(np.uint64(start), np.uint64(stop)):
                        w[np.uint32(indices[k])] += move * values[k]
        limits[TOP], limits[LOW], limits[GAP], counts[PLACE], counts[N_ACTIVE] = top, low, gap, place, n_active
    return changed
