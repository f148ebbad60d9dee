# mypy: ignore-errors
"""Compiled search for the best tree: path-growing Chu-Liu-Edmonds on dense scores, O(n^2).

Chu & Liu 1965; Edmonds 1967; Tarjan 1977 (contraction along one growing path); Gabow, Galil, Spencer & Tarjan 1986. A node is a
token 1..n or a contracted cycle n + 1, n + 2, ... A row holds the scores of the arcs into a node from each head 0..n; a token's
row is the one in `scores`, a contracted node's row is in `work`, with -inf where the head lies inside the node. Only rows are
merged: heads stay tokens, and place[head] says in which node of the path a head lies.

Scores of -1e30 forbid. No such score is ever subtracted from another one: its size would eat the digits of the rest. The root arcs
of a single-root tree are no arcs like the others with a penalty, but come second: a node takes one only where no other arc is left.
So no digits are lost there either, and the root is right for scores of any size.
"""

import numpy as np

from structpred.core.jit import njit

FORBIDDEN = -1e30
USABLE = 0.5 * FORBIDDEN

# rows of `marks`
PLACE = 0  # head -> where it lies: -1 not seen yet, 0 in the tree (the root too), p > 0 in the node at position p of the path
PATH = 1  # position -> node
ARC = 2  # node -> head of its best arc
MEMBERS = 3  # the nodes that were contracted, cycle after cycle
FIRST = 4  # contracted node (minus n) -> where its members begin; they end where the next one's begin


@njit(cache=True, nogil=True)
def best_in(flat, start, stop, best, at):
    """The first largest entry of flat[start:stop] that is larger than `best`: its value and place, else (best, at)."""
    row = flat[start:stop]  # loops over a whole slice are the ones that the compiler makes fast
    top = best
    for i in range(len(row)):
        if row[i] > top:
            top = row[i]
    if not top > best:
        return best, at
    i = 0
    while row[i] != top:
        i += 1
    return top, start + i


@njit(cache=True, nogil=True)
def lift(flat, start, shift, target):
    """target = max(target, row - shift), for the row of len(target) entries that begins at flat[start]."""
    row = flat[start : start + len(target)]
    for u in range(len(target)):
        x = row[u] - shift
        target[u] = x if x > target[u] else target[u]


@njit(cache=True, nogil=True)
def enclose(place, bottom, target):
    """The heads on the path at `bottom` or above lie in one node now, which none of them can enter."""
    for u in range(len(target)):
        q = place[u]
        inside = q >= bottom
        place[u] = bottom if inside else q
        target[u] = -np.inf if inside else target[u]


@njit(cache=True, nogil=True)
def contract(scores, n, rows, marks, new, bottom, top):
    """Merge the nodes at positions bottom..top of the path into the node `new`: row[u] = max over members of score - best score."""
    width = n + 1
    target = rows[(new - width) * width : (new - n) * width]
    target[:] = -np.inf
    end = marks[FIRST, new - n]
    for p in range(bottom, top + 1):
        node = marks[PATH, p]
        marks[MEMBERS, end] = node
        end += 1
        if node <= n:
            base = (node - 1) * width
            lift(scores, base, scores[base + marks[ARC, node]], target)
        else:
            base = (node - width) * width
            lift(rows, base, rows[base + marks[ARC, node]], target)
    marks[FIRST, new - n + 1] = end
    enclose(marks[PLACE, :width], bottom, target)
    marks[PATH, bottom] = new


@njit(cache=True, nogil=True)
def expand(scores, n, rows, marks, last):
    """Undo the contractions, the last one first: the arc into a contracted node enters the member that gave it its score."""
    width = n + 1
    for new in range(last, n, -1):
        u = marks[ARC, new]
        best = -np.inf
        at = marks[MEMBERS, marks[FIRST, new - n]]
        for j in range(marks[FIRST, new - n], marks[FIRST, new - n + 1]):
            node = marks[MEMBERS, j]
            if node <= n:
                base = (node - 1) * width
                x = scores[base + u] - scores[base + marks[ARC, node]]
            else:
                base = (node - width) * width
                x = rows[base + u] - rows[base + marks[ARC, node]]
            if x > best:
                best = x
                at = node
        marks[ARC, at] = u


@njit(cache=True, nogil=True)
def grow(scores, n, single_root, lowest, rows, marks, heads):
    """Write the best tree that uses only arcs with scores above `lowest`; False, and nothing written, where there is none."""
    width = n + 1
    marks[PLACE, 0] = 0
    for u in range(1, width):
        marks[PLACE, u] = -1
    marks[FIRST, 1] = 0
    last = n
    skipped = 1 if single_root else 0  # the root's arcs, if they come second
    rooted = False
    for start in range(1, width):
        if marks[PLACE, start] >= 0:
            continue
        depth = 1
        node = start
        marks[PATH, 1] = start
        marks[PLACE, start] = 1
        while True:
            if node <= n:
                base = (node - 1) * width
                best, at = best_in(scores, base + skipped, base + node, lowest, -1)
                best, at = best_in(scores, base + node + 1, base + width, best, at)
            else:
                base = (node - width) * width
                best, at = best_in(rows, base + skipped, base + width, lowest, -1)
            u = at - base
            if at < 0:
                root_score = scores[base] if node <= n else rows[base]
                if rooted or not single_root or not root_score > lowest:
                    return False
                u = 0
                rooted = True
            marks[ARC, node] = u
            p = marks[PLACE, u]
            if p == 0:
                break
            if p < 0:
                depth += 1
                marks[PATH, depth] = u
                marks[PLACE, u] = depth
                node = u
            else:
                last += 1
                contract(scores, n, rows, marks, last, p, depth)
                depth = p
                node = last
        for u in range(1, width):
            marks[PLACE, u] = min(marks[PLACE, u], 0)
    expand(scores, n, rows, marks, last)
    for m in range(n):
        heads[m] = marks[ARC, m + 1]
    return True


@njit(cache=True, nogil=True)
def best_tree(scores, n, single_root, work, marks, heads):
    """Write the best tree's heads. scores: flat (n * (n + 1)), not changed; work, marks: of tree_scratch(n or more); O(n^2).

    Where every tree needs a forbidden arc: one with as few of them as can be.
    """
    width = n + 1
    flat = work.reshape(work.size)
    if grow(scores, n, single_root, USABLE, flat, marks, heads):
        return
    bounded = flat[n * width : 2 * n * width]
    for i in range(n * width):
        x = scores[i]
        bounded[i] = min(x, -FORBIDDEN) if x > FORBIDDEN else FORBIDDEN
    grow(bounded, n, single_root, -np.inf, flat, marks, heads)


@njit(cache=True, nogil=True)
def best_trees(scores, offsets, sizes, single_root, work, marks, heads):
    """best_tree of each of many instances; heads holds theirs one after the other."""
    end = 0
    for i in range(len(sizes)):
        n = sizes[i]
        best_tree(scores[offsets[i] : offsets[i + 1]], n, single_root, work, marks, heads[end : end + n])
        end += n
