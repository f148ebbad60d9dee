# mypy: ignore-errors
"""The proximal bundle method of composed oracles: kept answers of members, and the quadratic program over their mixtures."""

import numpy as np

from structpred.runtime.jit import njit

#: shares of copies that differ by less are taken for equal
_EQUAL = 1e-12
#: the most sweeps over the members of an instance
_SWEEPS = 100


@njit(cache=True, nogil=True, borrows=True)
def mixed(number):
    """A number in 64 well mixed bits (splitmix64)."""
    z = np.uint64(number) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@njit(cache=True, nogil=True)
def insert(members, copy_ends, counts, codes, owners, kept, n):
    """Keep the answers of these members that are new, in front of their lists; the first of a list has all weight.

    kept: (head of each member's list, where each answer's copies begin, copies, the next one in the list, weights).
    Returns the number of answers.
    """
    heads, starts, entries, following, weights = kept
    for m in members:
        first = copy_ends[m]
        end = starts[n]
        code = np.uint64(0)
        for c in range(first, copy_ends[m + 1]):
            for _ in range(int(counts[c])):
                entries[end] = c
                end += 1
                code += mixed(c - first)
        v = heads[m]
        while v >= 0 and codes[v] != code:
            v = following[v]
        if v < 0:
            weights[n] = 1.0 if heads[m] < 0 else 0.0
            codes[n], owners[n], following[n], heads[m] = code, m, heads[m], n
            n += 1
            starts[n] = end
    return n


@njit(cache=True, nogil=True, borrows=True)
def slope(v, starts, entries, part_of, holders, linear, tightness, point, totals):
    """The derivative of the quadratic program's value towards one answer."""
    total = 0.0
    for j in range(starts[v], starts[v + 1]):
        c = entries[j]
        i = part_of[c]
        total += linear[c]
        if holders[i] > 1:
            total -= tightness * (point[c] - totals[i] / holders[i])
    return total


@njit(cache=True, nogil=True, borrows=True)
def shift(v, amount, starts, entries, part_of, point, totals):
    """Give an answer more weight."""
    for j in range(starts[v], starts[v + 1]):
        point[entries[j]] += amount
        totals[part_of[entries[j]]] += amount


@njit(cache=True, nogil=True, borrows=True)
def improve(m, starts, entries, part_of, holders, linear, tightness, point, totals, heads, following, weights, room, slopes):
    """A pairwise step of one member: from its worst answer with weight to its best.

    Returns (the best slope, how much more than that of the mixture it is). `room` holds zeros for all copies, also afterwards.
    """
    best, worst, v = heads[m], -1, heads[m]
    mean = 0.0
    while v >= 0:
        slopes[v] = slope(v, starts, entries, part_of, holders, linear, tightness, point, totals)
        mean += weights[v] * slopes[v]
        if slopes[v] > slopes[best]:
            best = v
        if weights[v] > 0.0 and (worst < 0 or slopes[v] < slopes[worst]):
            worst = v
        v = following[v]
    gain = slopes[best] - slopes[worst]
    if best != worst and gain > 0.0:
        for j in range(starts[best], starts[best + 1]):
            room[entries[j]] += 1.0
        for j in range(starts[worst], starts[worst + 1]):
            room[entries[j]] -= 1.0
        curvature = 0.0
        for v in (best, worst):
            for j in range(starts[v], starts[v + 1]):
                c = entries[j]
                curvature += room[c] * room[c] * (1.0 - 1.0 / holders[part_of[c]])
                room[c] = 0.0
        curvature *= tightness
        step = weights[worst]
        if gain < step * curvature:
            step = gain / curvature
        weights[best] += step
        weights[worst] -= step
        shift(best, step, starts, entries, part_of, point, totals)
        shift(worst, -step, starts, entries, part_of, point, totals)
    return slopes[best], slopes[best] - mean


@njit(cache=True, nogil=True)
def mix(active, member_ends, copy_ends, part_of, holders, linear, tightness, goals, share, kept, point, totals, gaps):
    """The quadratic program: mixtures of kept answers with the largest linear . point - c / 2 |point - mean|^2.

    It stops where the gap, which is written, is at most `share` of what the model lies below the goal.
    """
    heads, starts, entries, following, weights = kept
    room, slopes = np.zeros(part_of.shape[0]), np.zeros(weights.shape[0])
    for s in active:
        for _ in range(_SWEEPS):
            model, gap = 0.0, 0.0
            for m in range(member_ends[s], member_ends[s + 1]):
                best, more = improve(
                    m, starts, entries, part_of, holders, linear, tightness[s], point, totals, heads, following, weights, room,
                    slopes,
                )
                model += best
                gap += more
            gaps[s] = gap
            if gap <= share * (goals[s] - model):
                break


@njit(cache=True, nogil=True)
def propose(active, slot_ends, shared, shared_ends, copies, member_of, tightness, point, totals, center, multipliers, changed):
    """The multipliers at which the members are asked next: center - c (point - mean); marks members for whom they are new."""
    for s in active:
        for i in range(slot_ends[s], slot_ends[s + 1]):
            first, last = shared_ends[i], shared_ends[i + 1]
            mean = totals[shared[i]] / (last - first)
            widest = 0.0
            for j in range(first, last):
                widest = max(widest, abs(point[copies[j]] - mean))
            for j in range(first, last):
                c = copies[j]
                proposed = center[c]
                if widest > _EQUAL:
                    proposed -= tightness[s] * (point[c] - mean)
                if proposed != multipliers[c]:
                    multipliers[c] = proposed
                    changed[member_of[c]] = 1


@njit(cache=True, nogil=True)
def model_of(active, member_ends, part_of, plain, pins, wanted, force, multipliers, kept, out):
    """What the dual function is at least at the multipliers: the best kept answers' worth."""
    heads, starts, entries, following, weights = kept
    for s in active:
        out[s] = 0.0
        for m in range(member_ends[s], member_ends[s + 1]):
            best = -np.inf
            v = heads[m]
            while v >= 0:
                total, broken = 0.0, wanted[m]
                for j in range(starts[v], starts[v + 1]):
                    c = entries[j]
                    total += plain[c] + multipliers[c]
                    broken -= pins[part_of[c]]
                best = max(best, total - force[m] * broken)
                v = following[v]
            out[s] += best


@njit(cache=True, nogil=True)
def start(active, member_ends, copy_ends, part_of, counts, point, totals):
    """The point where each member's one answer has all weight."""
    for s in active:
        for c in range(copy_ends[member_ends[s]], copy_ends[member_ends[s + 1]]):
            point[c] = counts[c]
            totals[part_of[c]] += counts[c]


@njit(cache=True, nogil=True)
def heaviest(members, following, heads, weights, out):
    """The kept answer with the largest weight of each of these members."""
    for k in range(members.shape[0]):
        v = heads[members[k]]
        out[k] = v
        while v >= 0:
            if weights[v] > weights[out[k]]:
                out[k] = v
            v = following[v]


@njit(cache=True, nogil=True)
def copied(rows, member_ends, copy_ends, source, target):
    """Copy what these instances' copies have."""
    for s in rows:
        for c in range(copy_ends[member_ends[s]], copy_ends[member_ends[s + 1]]):
            target[c] = source[c]
