# mypy: ignore-errors
"""Compiled second-order trees: their parts, and rounds of the subgradient method between a tree and one automaton a word.

What goes together comes as one tuple: lists (sizes, words, ends, blocks of `core.head_lists`). The copies of word h lie from
place copies[h] on: its modifiers, its heads, its siblings and grandparents, as its automaton has them.
"""

import numpy as np

from structpred.core.fixed_scores import FORBIDDEN
from structpred.oracles.trees._arborescence_kernels import best_heads as best_crossing
from structpred.oracles.trees._head_automaton_kernels import best_modifiers, modifier_parts
from structpred.oracles.trees._projective_kernels import best_heads as best_projective
from structpred.runtime.jit import njit


@njit(cache=True, nogil=True)
def tree_parts(heads, lists, out):
    """Write the parts of a tree; returns how many there are, or minus the first word whose head is no candidate."""
    sizes, words, ends, blocks = lists
    n = heads.shape[0]
    for m in range(1, n + 1):
        out[m - 1] = (m - 1) * (n + 1) + heads[m - 1]
    k = n
    most = 0
    for h in range(n + 1):
        most = max(most, ends[h + 1] - ends[h])
    labels = np.empty(most + 1, np.int64)
    own = np.empty(3 * (most + 1), np.int64)
    for h in range(n + 1):
        n_heads, left, right = sizes[h]
        d = left + right
        labels[0] = -1
        for j in range(d):
            labels[1 + j] = heads[words[ends[h] + j] - 1] == h
        for i in range(n_heads):
            if words[ends[h] + d + i] == heads[h - 1]:
                labels[0] = i
        if h and labels[0] < 0:
            return -h
        size = modifier_parts(labels[: 1 + d], n_heads, left, right, own, 0)
        for j in range(size):
            if own[j] >= d + n_heads:
                out[k] = blocks[h] + own[j] - d - n_heads
                k += 1
    return k


@njit(cache=True, nogil=True)
def set_up(theta, lists, size, copies, scores, twin, tree):
    """The first scores of all members: a third of each arc's for each. twin: where the head's copy of an arc is."""
    sizes, words, ends, blocks = lists
    n = sizes.shape[0] - 1
    tree[:] = FORBIDDEN
    copies[0] = 0
    for h in range(n + 1):
        copies[h + 1] = copies[h] + ends[h + 1] - ends[h] + blocks[h + 1] - blocks[h]
    for h in range(n + 1):
        d = sizes[h, 1] + sizes[h, 2]
        for j in range(ends[h + 1] - ends[h]):
            x = words[ends[h] + j]
            arc = (x - 1) * (n + 1) + h if j < d else (h - 1) * (n + 1) + x
            scores[copies[h] + j] = max(theta[arc], -4.0 * size) / 3.0
            tree[arc] = scores[copies[h] + j]
            if j < d:
                at = ends[x] + sizes[x, 1] + sizes[x, 2]
                while words[at] != h:
                    at += 1
                twin[copies[h] + j] = copies[x] + at - ends[x]
        first = copies[h] + ends[h + 1] - ends[h]
        for j in range(blocks[h + 1] - blocks[h]):
            scores[first + j] = max(theta[blocks[h] + j], -4.0 * size)


@njit(cache=True, nogil=True)
def ask_words(changed, lists, copies, scores, single_root, tables, labels, on, values):
    """Ask the automata whose scores have changed."""
    sizes = lists[0]
    for h in range(sizes.shape[0]):
        if changed[h]:
            n_heads, left, right = sizes[h]
            d = left + right
            own = scores[copies[h] : copies[h + 1]]
            single = single_root and h == 0
            values[h] = best_modifiers(own, n_heads, left, right, single, tables, labels[: 1 + d])
            on[copies[h] : copies[h] + d] = labels[1 : 1 + d]
            on[copies[h] + d : copies[h] + d + n_heads] = 0
            on[copies[h] + d + labels[0]] = n_heads > 0
            changed[h] = 0


@njit(cache=True, nogil=True)
def descend(step, heads, lists, copies, twin, on, scores, tree, changed):
    """Multipliers -= step (v - mean) where the three copies of an arc differ; returns |v - mean|^2. step = 0: this alone."""
    sizes, words, ends, _ = lists
    n = heads.shape[0]
    square = 0.0
    for h in range(n + 1):
        for j in range(sizes[h, 1] + sizes[h, 2]):
            m = words[ends[h] + j]
            c = copies[h] + j
            total = on[c] + on[twin[c]] + (heads[m - 1] == h)
            if total == 1 or total == 2:
                mean = total / 3.0
                square += total * (1.0 - mean)
                if step > 0.0:
                    scores[c] -= step * (on[c] - mean)
                    scores[twin[c]] -= step * (on[twin[c]] - mean)
                    tree[(m - 1) * (n + 1) + h] -= step * ((heads[m - 1] == h) - mean)
                    changed[h] = 1
                    changed[m] = 1
    return square


@njit(cache=True, nogil=True)
def rounds_of_tree(theta, lists, projective, single_root, most, rooms, best):
    """At most `most` rounds; best: the heads of the best tree. Returns what no tree scores above, and whether that is its score.

    A step is 2 (D - primal) / |v - mean|^2 of the first round, divided by one more than how often D rose (Koo et al. 2010).
    """
    sizes, _, ends, blocks = lists
    n = best.shape[0]
    size = 1.0
    for j in range(theta.shape[0]):
        if theta[j] > 0.5 * FORBIDDEN:
            size += abs(theta[j])
    n_copies = ends[n + 1] + blocks[n + 1] - blocks[0]
    copies, scores, twin = np.empty(n + 2, np.int64), np.empty(n_copies), np.empty(n_copies, np.int64)
    tree, on, changed = np.empty(n * (n + 1)), np.zeros(n_copies + 1, np.int8), np.ones(n + 1, np.uint8)
    heads, labels, values = np.empty(n, np.int64), np.empty(2 * n + 2, np.int64), np.empty(n + 1)
    parts = np.empty(6 * n + 6, np.int64)
    set_up(theta, lists, size, copies, scores, twin, tree)
    wide = 1
    deep = 0
    for h in range(n + 1):
        wide = max(wide, sizes[h, 0])
        deep = max(deep, sizes[h, 1], sizes[h, 2])
    tables = np.empty((2, deep + 2, wide))
    value, bound, last, first_step, rises, square = -np.inf, np.inf, np.inf, 0.0, 0, np.inf
    for k in range(most):
        if projective:
            best_projective(tree, single_root, rooms[0], heads)
        else:
            best_crossing(tree, single_root, rooms[1], heads)
        ask_words(changed, lists, copies, scores, single_root, tables, labels, on, values)
        dual = 0.0
        for m in range(n):
            dual += tree[m * (n + 1) + heads[m]]
        for h in range(n + 1):
            dual += values[h]
        found = 0.0
        for j in range(tree_parts(heads, lists, parts)):
            found += max(theta[parts[j]], -4.0 * size)
        if found > value:
            value = found
            best[:] = heads
        bound = min(bound, dual)
        square = descend(0.0, heads, lists, copies, twin, on, scores, tree, changed)
        if square == 0.0 or bound - value <= 1e-13 * size:
            break
        rises += dual > last
        last = dual
        if k == 0:
            first_step = 2.0 * (dual - value) / square
        descend(first_step / (1.0 + rises), heads, lists, copies, twin, on, scores, tree, changed)
    return max(value, bound), square == 0.0 or bound - value <= 1e-13 * size
