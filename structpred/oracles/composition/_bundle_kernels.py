# mypy: ignore-errors
"""The proximal bundle method of composed oracles: kept answers of members, and the quadratic program over their mixtures."""

import numpy as np

from structpred.runtime.jit import njit

#: the most sweeps over the members of an instance; one over those without a gap, too, comes after so many at the latest
_SWEEPS, _WAIT = 100, 4


@njit(cache=True, nogil=True)
def insert(members, copy_ends, part_of, counts, keys, codes, owners, kept, n, point, totals):
    """Keep the answers of these members that are new, in front of their lists; the first of a list has all weight in the point.

    keys: a random number of 62 bits for each copy; answers with the same sum are the same. kept: (head of each member's list,
    where each answer's copies begin, copies, the next one in the list, weights).
    Returns the number of answers.
    """
    heads, starts, entries, following, weights = kept
    for m in members:
        end, code = starts[n], 0
        for c in range(copy_ends[m], copy_ends[m + 1]):
            for _ in range(int(counts[c])):
                entries[end] = c
                end += 1
                code += keys[c]
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


@njit(cache=True, nogil=True)
def mix(active, member_ends, share, kept, part_of, holders, pinned, center, tightness, goals, point, totals, models, gaps, room):
    """The quadratic program: mixtures of kept answers with the largest (pinned + center) . point - c / 2 |point - mean|^2.

    A pairwise step for each member in turn, which moves weight from the answer with the least slope to that with the largest,
    until the gap is at most `share` of what the model lies below the goal; members without a gap to speak of wait for the others.
    Writes the model at center - c (point - mean), and the gap. room: zeros for all copies, also afterwards.
    """
    heads, starts, entries, following, weights = kept
    slopes = np.empty(weights.shape[0])
    for s in active:
        first, last = member_ends[s], member_ends[s + 1]
        busy = np.ones(last - first, np.bool_)
        everyone, done, wanted = True, False, 0.0
        for sweep in range(1, _SWEEPS + 1):
            done |= sweep == _SWEEPS
            models[s], gap = 0.0, 0.0
            for m in range(first, last):
                if not (everyone or done or busy[m - first]):
                    continue
                best, worst, v, mean = heads[m], -1, heads[m], 0.0
                while v >= 0:
                    slopes[v] = 0.0
                    for c in entries[starts[v] : starts[v + 1]]:
                        slopes[v] += pinned[c] + center[c]
                        i = part_of[c]
                        if holders[i] > 1:
                            slopes[v] -= tightness[s] * (point[c] - totals[i] / holders[i])
                    mean += weights[v] * slopes[v]
                    if slopes[v] > slopes[best]:
                        best = v
                    if weights[v] > 0.0 and (worst < 0 or slopes[v] < slopes[worst]):
                        worst = v
                    v = following[v]
                models[s] += slopes[best]
                gap += slopes[best] - mean
                busy[m - first] = slopes[best] - mean > 0.1 * max(wanted, 0.0) / (last - first)
                gain, curvature = slopes[best] - slopes[worst], 0.0
                if done or gain <= 0.0:
                    continue
                for c in entries[starts[best] : starts[best + 1]]:
                    room[c] += 1.0
                for c in entries[starts[worst] : starts[worst + 1]]:
                    room[c] -= 1.0
                for u in (best, worst):
                    for c in entries[starts[u] : starts[u + 1]]:
                        curvature += tightness[s] * room[c] * room[c] * (1.0 - 1.0 / holders[part_of[c]])
                        room[c] = 0.0
                step = weights[worst]
                if gain < step * curvature:
                    step = gain / curvature
                for u, change in ((best, step), (worst, -step)):
                    weights[u] += change
                    for c in entries[starts[u] : starts[u + 1]]:
                        point[c] += change
                        totals[part_of[c]] += change
            if done:
                gaps[s] = gap
                break
            if everyone:
                wanted = share * (goals[s] - models[s])
                done = gap <= wanted
            everyone = sweep % _WAIT == 0 or (not everyone and gap <= 0.5 * wanted)
