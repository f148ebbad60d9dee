# mypy: ignore-errors
"""Rounds of composed oracles: scores of copies, members' answers, the dual function, steps of the subgradient method."""

import numpy as np

from structpred.core.fixed_scores import FORBIDDEN
from structpred.runtime.jit import njit


@njit(cache=True, nogil=True)
def within_reach(scores, part_ends, theta, sizes):
    """Write the scores, those of forbidden parts as -4 (1 + sum |theta|); sizes: 1 + sum |theta| with these."""
    for i in range(part_ends.shape[0] - 1):
        size = 1.0
        for j in range(part_ends[i], part_ends[i + 1]):
            if scores[j] > 0.5 * FORBIDDEN:
                size += abs(scores[j])
        sizes[i] = size
        for j in range(part_ends[i], part_ends[i + 1]):
            theta[j] = scores[j]
            if scores[j] <= 0.5 * FORBIDDEN:
                theta[j] = -4.0 * size
                sizes[i] += 4.0 * size


@njit(cache=True, nogil=True)
def gather(asked, copy_ends, pinned, multipliers, out):
    """The scores of the members `asked`, one after the other: shares of theta with the force of pins, and multipliers."""
    k = 0
    for m in asked:
        for c in range(copy_ends[m], copy_ends[m + 1]):
            out[k] = pinned[c] + multipliers[c]
            k += 1


@njit(cache=True, nogil=True)
def take(asked, parts, ends, copy_ends, part_of, holders, plain, pins, wanted, force, multipliers, counts, sizes, values, moved):
    """Write the members' answers as counts of copies, and what they are worth; pins that are kept are worth nothing.

    moved: whether the answer is another one; sizes: how many parts it has. Returns the place of the first member whose parts are
    out of range, or with a shared part that counts more than once, or -1.
    """
    for k in range(asked.shape[0]):
        m = asked[k]
        first, last = copy_ends[m], copy_ends[m + 1]
        total, broken = 0.0, wanted[m]
        same = sizes[m] == ends[k + 1] - ends[k]
        for j in range(ends[k], ends[k + 1]):
            c = first + parts[j]
            if c < first or c >= last:
                return k
            total += plain[c] + multipliers[c]
            broken -= pins[part_of[c]]
            same &= counts[c] == 1.0
        values[m] = total - force[m] * broken
        moved[m] = not same
        if not same:
            counts[first:last] = 0.0
            sizes[m] = ends[k + 1] - ends[k]
            for j in range(ends[k], ends[k + 1]):
                c = first + parts[j]
                counts[c] += 1.0
                if counts[c] > 1.0 and holders[part_of[c]] > 1:
                    return k
    return -1


@njit(cache=True, nogil=True)
def measure(active, member_ends, slot_ends, shared_ends, copies, values, counts, duals, squares, differing, ends):
    """The dual function of each active instance, and |v - mean|^2: zero where all members agree.

    differing: the shared parts on which members differ, those of instance s from slot_ends[s] to ends[s].
    """
    for s in active:
        total = 0.0
        for m in range(member_ends[s], member_ends[s + 1]):
            total += values[m]
        duals[s] = total
        square, end = 0.0, slot_ends[s]
        for i in range(slot_ends[s], slot_ends[s + 1]):
            first, last = shared_ends[i], shared_ends[i + 1]
            on = 0.0
            for j in range(first, last):
                on += counts[copies[j]]
            differing[end] = i
            if on != 0.0 and on != last - first:
                square += on * (1.0 - on / (last - first))
                end += 1
        squares[s] = square
        ends[s] = end


@njit(cache=True, nogil=True)
def worth(rows, part_ends, first_copies, last_copies, part_of, theta, counts, out):
    """The scores of outputs on which all members agree."""
    for k in range(rows.shape[0]):
        s = rows[k]
        seen = np.zeros(part_ends[s + 1] - part_ends[s], np.uint8)
        total = 0.0
        for c in range(first_copies[k], last_copies[k]):
            i = part_of[c]
            if not seen[i - part_ends[s]]:
                seen[i - part_ends[s]] = 1
                total += theta[i] * counts[c]
        out[k] = total


@njit(cache=True, nogil=True)
def sums(rows, part_ends, parts, ends, theta, out):
    """The scores of the outputs whose parts are given; returns the first one whose parts are out of range, or -1."""
    for k in range(rows.shape[0]):
        first, last = part_ends[rows[k]], part_ends[rows[k] + 1]
        out[k] = 0.0
        for j in range(ends[k], ends[k + 1]):
            i = first + parts[j]
            if i < first or i >= last:
                return k
            out[k] += theta[i]
    return -1


@njit(cache=True, nogil=True)
def descend(active, steps, slot_ends, differing, ends, shared_ends, copies, member_of, counts, multipliers, changed):
    """A step of the subgradient method: multipliers -= step (v - mean), where copies differ; marks members that change."""
    for s in active:
        for at in range(slot_ends[s], ends[s]):
            i = differing[at]
            first, last = shared_ends[i], shared_ends[i + 1]
            mean = 0.0
            for j in range(first, last):
                mean += counts[copies[j]] / (last - first)
            for j in range(first, last):
                c = copies[j]
                multipliers[c] -= steps[s] * (counts[c] - mean)
                changed[member_of[c]] = 1


@njit(cache=True, nogil=True)
def nearest_to_half(rows, slot_ends, shared, shared_ends, copies, pins, point, out):
    """The shared part that is not pinned whose mean lies nearest to 1/2, ties to the first; -1 where all are pinned."""
    for k in range(rows.shape[0]):
        s = rows[k]
        out[k] = -1
        least = np.inf
        for i in range(slot_ends[s], slot_ends[s + 1]):
            if pins[shared[i]] != 0:
                continue
            total = 0.0
            for j in range(shared_ends[i], shared_ends[i + 1]):
                total += point[copies[j]]
            distance = abs(total / (shared_ends[i + 1] - shared_ends[i]) - 0.5)
            if distance < least:
                least = distance
                out[k] = shared[i]


@njit(cache=True, nogil=True)
def completion(member_ends, copy_ends, part_of, part_ends, counts, out):
    """Multipliers that make the other members answer as the first: 1 for its parts that are on, -1 for those that are not."""
    for s in range(member_ends.shape[0] - 1):
        first = member_ends[s]
        held = np.zeros(part_ends[s + 1] - part_ends[s])
        for c in range(copy_ends[first], copy_ends[first + 1]):
            held[part_of[c] - part_ends[s]] = 1.0 if counts[c] > 0.0 else -1.0
        for c in range(copy_ends[first + 1], copy_ends[member_ends[s + 1]]):
            out[c] = held[part_of[c] - part_ends[s]]
