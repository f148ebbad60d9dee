# mypy: ignore-errors
"""Compiled search for the best tree: path-growing Chu-Liu-Edmonds on dense scores, O(n^2).

Chu & Liu 1965; Edmonds 1967; Tarjan 1977 (contraction along one growing path); Gabow, Galil, Spencer & Tarjan 1986. A node is a
token 1..n or a contracted cycle n + 1, n + 2, ... A row holds the scores of the arcs into a node from each head 0..n; a token's
row is the one in `scores`, a contracted node's is in `rows`, with -inf where the head lies inside the node. Only rows are
merged: heads stay tokens, and marks[PLACE] says in which node of the path a head lies.

Scores of -1e30 forbid. No such score is ever subtracted from another one: its size would eat the digits of the rest. The root
arcs of a single-root tree are not arcs like the others with a penalty, but come second: a node takes one only where no other arc
is left. So no digits are lost there either, and the root is right for scores of any size.

For speed, indices are unsigned (a signed one may count from the end, which keeps loops from being vectorised), and helpers that
get arrays are called once per contraction, not once per node: counting references to them costs more than a short row.
"""

import numpy as np

from structpred.oracles.trees._tree_kernels import all_finite
from structpred.oracles.trees._trees import MARKS
from structpred.runtime.jit import njit

FORBIDDEN = -1e30
USABLE = 0.5 * FORBIDDEN

# how many tokens may have the root as their head
ANY, SINGLE, LUCKY = 0, 1, 2

# rows of `marks`
PLACE = 0  # head -> where it lies: -1 not seen yet, 0 in the tree (the root too), p > 0 in the node at position p of the path
PATH = 1  # position -> node
ARC = 2  # node -> head of its best arc
MEMBERS = 3  # the nodes that were contracted, cycle after cycle
FIRST = 4  # contracted node (minus n) -> where its members begin; they end where the next one's begin


@njit(cache=True, nogil=True, borrows=True)
def contract(scores, rows, n, marks, new, bottom, top):
    """Merge the nodes at positions bottom..top of the path into `new`: row[u] = max over members of score[u] - best score."""
    width = np.uintp(n + 1)
    to = np.uintp(new - n - 1) * width
    for u in range(width):
        rows[to + u] = -np.inf
    end = marks[FIRST, new - n]
    for p in range(bottom, top + 1):
        node = marks[PATH, p]
        marks[MEMBERS, end] = node
        end += 1
        arc = np.uintp(marks[ARC, node])
        if node <= n:
            base = np.uintp(node - 1) * width
            shift = scores[base + arc]
            for u in range(width):
                x = scores[base + u] - shift
                y = rows[to + u]
                rows[to + u] = x if x > y else y
        else:
            base = np.uintp(node - n - 1) * width
            shift = rows[base + arc]
            for u in range(width):
                x = rows[base + u] - shift
                y = rows[to + u]
                rows[to + u] = x if x > y else y
    marks[FIRST, new - n + 1] = end
    for u in range(width):  # the heads inside cannot enter it
        q = marks[PLACE, u]
        y = rows[to + u]
        marks[PLACE, u] = bottom if q >= bottom else q
        rows[to + u] = -np.inf if q >= bottom else y
    marks[PATH, bottom] = new


@njit(cache=True, nogil=True, borrows=True)
def expand(scores, rows, n, marks, last):
    """Undo the contractions, the last one first: the arc into a contracted node enters the member that gave it its score."""
    width = np.uintp(n + 1)
    for new in range(last, n, -1):
        u = np.uintp(marks[ARC, new])
        best = -np.inf
        at = marks[MEMBERS, marks[FIRST, new - n]]
        for j in range(marks[FIRST, new - n], marks[FIRST, new - n + 1]):
            node = marks[MEMBERS, j]
            arc = np.uintp(marks[ARC, node])
            if node <= n:
                base = np.uintp(node - 1) * width
                x = scores[base + u] - scores[base + arc]
            else:
                base = np.uintp(node - n - 1) * width
                x = rows[base + u] - rows[base + arc]
            if x > best:
                best = x
                at = node
        marks[ARC, at] = marks[ARC, new]


@njit(cache=True, nogil=True, borrows=True)
def grow(scores, n, roots, lowest, rows, marks, heads):
    """Write the best tree that uses only arcs with scores above `lowest`; False, and nothing written, where there is none.

    roots: ANY, SINGLE, or LUCKY: the best tree with any number of roots, but False as soon as it has a second one.
    """
    one = np.uintp(1)
    width = np.uintp(n + 1)
    single_root = roots == SINGLE
    skipped = np.uintp(1 if single_root else 0)  # the root's arcs, if they come second
    rooted = False
    last = n  # the newest contracted node
    marks[FIRST, 1] = 0
    marks[PLACE, 0] = 0
    for u in range(one, width):
        marks[PLACE, u] = -1
    for start in range(1, n + 1):
        if marks[PLACE, start] >= 0:
            continue
        depth = 1
        node = start
        marks[PATH, 1] = start
        marks[PLACE, start] = 1
        while True:
            best = lowest
            u = skipped
            if node <= n:
                base = np.uintp(node - 1) * width
                own = np.uintp(node)
                root_score = scores[base]
                for i in range(skipped, own):  # choices instead of branches, which would be guessed wrong
                    x = scores[base + i]
                    better = x > best
                    best = x if better else best
                    u = i if better else u
                for i in range(own + one, width):
                    x = scores[base + i]
                    better = x > best
                    best = x if better else best
                    u = i if better else u
            else:
                base = np.uintp(node - n - 1) * width
                root_score = rows[base]
                for i in range(skipped, width):
                    x = rows[base + i]
                    better = x > best
                    best = x if better else best
                    u = i if better else u
            if not best > lowest:
                if rooted or not single_root or not root_score > lowest:
                    return False
                u = np.uintp(0)
                rooted = True
            marks[ARC, node] = u
            p = marks[PLACE, u]
            if p == 0:
                if roots == LUCKY and u == np.uintp(0):
                    if rooted:
                        return False
                    rooted = True
                break
            if p < 0:
                depth += 1
                node = np.int64(u)
                marks[PATH, depth] = node
                marks[PLACE, node] = depth
            else:
                last += 1
                contract(scores, rows, n, marks, last, p, depth)
                depth = p
                node = last
        for u in range(one, width):  # what is on the path is in the tree
            marks[PLACE, u] = min(marks[PLACE, u], 0)
    expand(scores, rows, n, marks, last)
    for m in range(n):
        heads[m] = marks[ARC, m + 1]
    return True


@njit(cache=True, nogil=True, borrows=True)
def one_prefers_root(scores, n):
    """Whether the root is the best head of exactly one token; most rows are left at the second or third score."""
    found = 0
    for m in range(1, n + 1):
        row = (m - 1) * (n + 1)
        h = 1
        while h <= n and (h == m or not scores[row + h] > scores[row]):
            h += 1
        found += h > n
        if found > 1:
            return False
    return found == 1


@njit(cache=True, nogil=True, borrows=True)
def search(scores, n, single_root, flat, marks, heads):
    """Write the best tree's heads, O(n^2). scores: flat (n * (n + 1)), not changed; flat: room for 2 n (n + 1) or more numbers.

    Where every tree needs a forbidden arc: one with as few of them as can be.
    The best of all trees is also the best one with a single root if it has one only. Where the root is the best head of two
    tokens it has not; where of one, it mostly has, and is found in less time.
    """
    if single_root and one_prefers_root(scores, n) and grow(scores, n, LUCKY, USABLE, flat, marks, heads):
        return
    if single_root:
        if grow(scores, n, SINGLE, USABLE, flat, marks, heads):
            return
    elif grow(scores, n, ANY, USABLE, flat, marks, heads):
        return
    size = n * (n + 1)
    bounded = flat[size : 2 * size]  # behind the rows of contracted nodes
    for i in range(size):
        x = scores[i]
        bounded[i] = min(x, -FORBIDDEN) if x > FORBIDDEN else FORBIDDEN  # NaN and -inf are forbidden too
    grow(bounded, n, SINGLE if single_root else ANY, -np.inf, flat, marks, heads)


@njit(cache=True, nogil=True)
def parted(room, n):
    """Marks, and room for numbers, of tree_room(n or more)."""
    end = MARKS * (2 * n + 2)
    return room[:end].view(np.int64).reshape(MARKS, 2 * n + 2), room[end:]


@njit(cache=True, nogil=True)
def best_heads(scores, single_root, room, heads):
    """The best tree of len(heads) tokens; room: of tree_room(n or more).

    Returns whether all scores are finite; where not, nothing is written.
    """
    if not all_finite(scores):
        return False
    marks, flat = parted(room, len(heads))
    search(scores, len(heads), single_root != 0, flat, marks, heads)
    return True


@njit(cache=True, nogil=True)
def best_trees(scores, offsets, sizes, single_root, room, heads):
    """best_heads of each of many instances; heads holds theirs one after the other. False where a score is not finite."""
    end = 0
    for i in range(len(sizes)):
        if not best_heads(scores[offsets[i] : offsets[i + 1]], single_root, room, heads[end : end + sizes[i]]):
            return False
        end += sizes[i]
    return True
