# mypy: ignore-errors
"""Rounds of composed oracles: the scores of members, their answers, the dual function, new multipliers."""

from structpred.runtime.jit import njit

#: shares of copies that differ by less are taken for equal
_EQUAL = 1e-12


@njit(cache=True, nogil=True)
def gather(asked, copy_ends, pinned, multipliers, out):
    """The scores of the members `asked`, one after the other."""
    k = 0
    for m in asked:
        for c in range(copy_ends[m], copy_ends[m + 1]):
            out[k] = pinned[c] + multipliers[c]
            k += 1


@njit(cache=True, nogil=True)
def take(asked, parts, ends, copy_ends, shared, plain, pins, wanted, force, multipliers, counts, sizes, values, moved):
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
            broken -= pins[c]
            same &= counts[c] == 1.0
        values[m] = total - force[m] * broken
        if not same:
            moved[m] = 1
            sizes[m] = ends[k + 1] - ends[k]
            counts[first:last] = 0.0
            for j in range(ends[k], ends[k + 1]):
                c = first + parts[j]
                counts[c] += 1.0
                if counts[c] > 1.0 and shared[c]:
                    return k
    return -1


@njit(cache=True, nogil=True)
def measure(active, member_ends, slot_ends, shared_ends, copies, values, counts, duals, squares):
    """The dual function of each active instance, and |v - mean|^2: zero where all members agree."""
    for s in active:
        duals[s] = 0.0
        for m in range(member_ends[s], member_ends[s + 1]):
            duals[s] += values[m]
        squares[s] = 0.0
        for i in range(slot_ends[s], slot_ends[s + 1]):
            on, size = 0.0, shared_ends[i + 1] - shared_ends[i]
            for j in range(shared_ends[i], shared_ends[i + 1]):
                on += counts[copies[j]]
            if on != size:
                squares[s] += on * (1.0 - on / size)


@njit(cache=True, nogil=True)
def propose(active, steps, slot_ends, shared_ends, copies, member_of, point, center, multipliers, changed):
    """New multipliers, center - step (point - mean); marks members for whom they are new."""
    for s in active:
        for i in range(slot_ends[s], slot_ends[s + 1]):
            first, last = shared_ends[i], shared_ends[i + 1]
            mean, differ = 0.0, False
            for j in range(first, last):
                mean += point[copies[j]] / (last - first)
            for j in range(first, last):
                differ |= abs(point[copies[j]] - mean) > _EQUAL
            for j in range(first, last):
                c = copies[j]
                new = center[c] - (steps[s] * (point[c] - mean) if differ else 0.0)
                if new != multipliers[c]:
                    multipliers[c] = new
                    changed[member_of[c]] = 1
