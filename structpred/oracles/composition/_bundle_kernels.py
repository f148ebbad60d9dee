# mypy: ignore-errors
"""The proximal bundle method of composed oracles: kept answers of members, and the quadratic program over their mixtures."""

import numpy as np

from structpred.runtime.jit import njit

#: the most sweeps over the members of an instance; one over those without a gap, too, comes after so many at the latest
_SWEEPS, _WAIT = 100, 4


@njit(cache=True, nogil=True, borrows=True)
def mixed(number):
    """A number in 64 well mixed bits (splitmix64)."""
    z = np.uint64(number) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@njit(cache=True, nogil=True)
def insert(members, copy_ends, part_of, counts, codes, owners, kept, n, point, totals):
    """Keep the answers of these members that are new, in front of their lists; the first of a list has all weight in the point.

    kept: (head of each member's list, where each answer's copies begin, copies, the next one in the list, weights).
    Returns the number of answers.
    """
    heads, starts, entries, following, weights = kept
    for m in members:
        end, code = starts[n], np.uint64(0)
        for c in range(copy_ends[m], copy_ends[m + 1]):
            for _ in range(int(counts[c])):
                entries[end] = c
                end += 1
                code += mixed(c - copy_ends[m])
        v = heads[m]
        while v >= 0 and codes[v] != code:
            v = following[v]
        if v < 0:
            weights[n] = 1.0 if heads[m] < 0 else 0.0
            codes[n], owners[n], following[n], heads[m] = code, m, heads[m], n
            for j in range(starts[n], end):
                point[entries[j]] += weights[n]
                totals[part_of[entries[j]]] += weights[n]
            n += 1
            starts[n] = end
    return n


@njit(cache=True, nogil=True, borrows=True)
def steepest(m, kept, part_of, holders, pinned, center, tightness, point, totals, slopes):
    """(a member's answer with the largest slope of the quadratic program, that of weight with the least, the mean slope)."""
    heads, starts, entries, following, weights = kept
    best, worst, v = heads[m], -1, heads[m]
    mean = 0.0
    while v >= 0:
        slopes[v] = 0.0
        for j in range(starts[v], starts[v + 1]):
            c = entries[j]
            i = part_of[c]
            slopes[v] += pinned[c] + center[c]
            if holders[i] > 1:
                slopes[v] -= tightness * (point[c] - totals[i] / holders[i])
        mean += weights[v] * slopes[v]
        if slopes[v] > slopes[best]:
            best = v
        if weights[v] > 0.0 and (worst < 0 or slopes[v] < slopes[worst]):
            worst = v
        v = following[v]
    return best, worst, mean


@njit(cache=True, nogil=True, borrows=True)
def exchange(best, worst, kept, part_of, holders, tightness, point, totals, slopes, room):
    """A pairwise step: as much of the worst answer's weight as is worthwhile goes to the best. room: zeros, also afterwards."""
    _, starts, entries, _, weights = kept
    gain, curvature = slopes[best] - slopes[worst], 0.0
    for v, sign in ((best, 1.0), (worst, -1.0)):
        for j in range(starts[v], starts[v + 1]):
            room[entries[j]] += sign
    for v in (best, worst):
        for j in range(starts[v], starts[v + 1]):
            c = entries[j]
            curvature += tightness * room[c] * room[c] * (1.0 - 1.0 / holders[part_of[c]])
            room[c] = 0.0
    step = weights[worst]
    if gain < step * curvature:
        step = gain / curvature
    for v, change in ((best, step), (worst, -step)):
        weights[v] += change
        for j in range(starts[v], starts[v + 1]):
            point[entries[j]] += change
            totals[part_of[entries[j]]] += change


@njit(cache=True, nogil=True)
def mix(active, member_ends, share, kept, part_of, holders, pinned, center, tightness, goals, point, totals, models, gaps, room):
    """The quadratic program: mixtures of kept answers with the largest (pinned + center) . point - c / 2 |point - mean|^2.

    Pairwise steps, member by member, until the gap is at most `share` of what the model lies below the goal; members that had no
    gap to speak of wait until those that had are done. Writes the model at center - c (point - mean), and the gap.
    """
    slopes = np.empty(kept[4].shape[0])
    for s in active:
        first, last = member_ends[s], member_ends[s + 1]
        busy = np.ones(last - first, np.bool_)
        everyone, done, wanted = True, False, 0.0
        for sweep in range(1, _SWEEPS + 1):
            done |= sweep == _SWEEPS
            model, gap = 0.0, 0.0
            for m in range(first, last):
                if not (everyone or done or busy[m - first]):
                    continue
                best, worst, mean = steepest(m, kept, part_of, holders, pinned, center, tightness[s], point, totals, slopes)
                model += slopes[best]
                gap += slopes[best] - mean
                busy[m - first] = slopes[best] - mean > 0.1 * max(wanted, 0.0) / (last - first)
                if not done and slopes[best] > slopes[worst]:
                    exchange(best, worst, kept, part_of, holders, tightness[s], point, totals, slopes, room)
            if done:
                models[s], gaps[s] = model, gap
                break
            if everyone:
                wanted = share * (goals[s] - model)
                done = gap <= wanted
            everyone = sweep % _WAIT == 0 or (not everyone and gap <= 0.5 * wanted)
