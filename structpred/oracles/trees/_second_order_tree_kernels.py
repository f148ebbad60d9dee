# mypy: ignore-errors
"""Compiled second-order trees: their parts, and rounds of the subgradient method between a tree and one automaton a word.

lists: `core.head_lists`. scores: of the parts of all automata, those of word h from copies[h] on; tree: of the arcs.
"""

import numpy as np

from structpred.core.fixed_scores import FORBIDDEN
from structpred.oracles.trees._arborescence_kernels import best_heads as best_crossing
from structpred.oracles.trees._head_automaton_kernels import best_modifiers, modifier_parts
from structpred.oracles.trees._projective_kernels import best_heads as best_projective
from structpred.runtime.jit import njit


@njit(cache=True, nogil=True)
def tree_parts(heads, lists, out):
    """Write the parts of a tree over the candidates; returns how many there are."""
    sizes, words, ends, parts, copies, _ = lists
    n = heads.shape[0]
    for m in range(n):
        out[m] = m * (n + 1) + heads[m]
    k = n
    size, labels, own = np.zeros(4, np.int64), np.empty(2 * n + 1, np.int64), np.empty(6 * n + 3, np.int64)
    for h in range(n + 1):
        size[:3] = sizes[h]
        d = size[1] + size[2]
        labels[0] = 0
        for j in range(d):
            labels[1 + j] = heads[words[ends[h] + j] - 1] == h
        for i in range(size[0]):
            if words[ends[h] + d + i] == heads[h - 1]:
                labels[0] = i
        for j in range(modifier_parts(labels, size, own, 0)):
            if own[j] >= d + size[0]:
                out[k] = parts[copies[h] + own[j]]
                k += 1
    return k


@njit(cache=True, nogil=True)
def ask_words(changed, lists, single_root, scores, tables, labels, on, values):
    """Ask the automata whose scores have changed."""
    sizes, copies, size = lists[0], lists[4], np.zeros(4, np.int64)
    for h in range(sizes.shape[0]):
        if changed[h]:
            size[:3] = sizes[h]
            size[3] = single_root and h == 0
            d = size[1] + size[2]
            first = copies[h]
            values[h] = best_modifiers(scores[first : copies[h + 1]], size, tables, labels[: 1 + d])
            on[first : first + d] = labels[1 : 1 + d]
            on[first + d : first + d + size[0]] = 0
            if h:
                on[first + d + labels[0]] = 1
            changed[h] = 0


@njit(cache=True, nogil=True)
def step_by(step, heads, lists, on, scores, tree, changed, votes):
    """Multipliers -= step (v - mean) where the three copies of an arc differ; returns |v - mean|^2. step = 0: this alone."""
    parts, pairs, width = lists[3], lists[5], heads.shape[0] + 1
    square = 0.0
    for a in range(pairs.shape[0]):
        arc = parts[pairs[a, 0]]
        in_tree = heads[arc // width] == arc % width
        total = on[pairs[a, 0]] + on[pairs[a, 1]] + in_tree
        votes[a] += total
        if total == 1 or total == 2:
            mean = total / 3.0
            square += total * (1.0 - mean)
            if step > 0.0:
                for c in pairs[a]:
                    scores[c] -= step * (on[c] - mean)
                tree[arc] -= step * (in_tree - mean)
                changed[arc // width + 1] = 1
                changed[arc % width] = 1
    return square


@njit(cache=True, nogil=True)
def rounds_of_tree(theta, lists, projective, single_root, most, tolerance, scores, tree, rooms, value, best):
    """At most `most` rounds; best: the heads of the best tree, if it scores more than `value`.

    Returns the score of the best tree, what no tree scores above, whether that is proven, and the row among `pairs` of the arc
    whose copies were on in nearest to half of all answers. A step is 2 (D - value) / |v - mean|^2 of the first round, divided by
    one more than how often D rose (Koo et al. 2010).
    """
    n = best.shape[0]
    on, changed, heads = np.zeros(scores.shape[0], np.int8), np.ones(n + 1, np.uint8), np.empty(n, np.int64)
    labels, values, parts = np.empty(2 * n + 1, np.int64), np.empty(n + 1), np.empty(6 * n + 6, np.int64)
    tables = np.empty((2, n + 2, max(lists[0][:, 0].max(), 1)))
    votes = np.zeros(lists[5].shape[0], np.int64)
    bound, last, first_step, rises, square, k = np.inf, np.inf, 0.0, 0, np.inf, 0
    while k < most and square > 0.0 and bound - value > tolerance:
        if projective:
            best_projective(tree, single_root, rooms[0], heads)
        else:
            best_crossing(tree, single_root, rooms[1], heads)
        ask_words(changed, lists, single_root, scores, tables, labels, on, values)
        found = 0.0
        for j in range(tree_parts(heads, lists, parts)):
            found += theta[parts[j]]
        if found > value:
            value = found
            best[:] = heads
        dual = values.sum()
        for m in range(n):
            dual += tree[m * (n + 1) + heads[m]]
        bound = min(bound, dual)
        rises += dual > last
        last = dual
        if k == 0:  # to see how far apart they are
            first_step = 2.0 * (dual - value) / max(step_by(0.0, heads, lists, on, scores, tree, changed, votes), 1.0 / 3.0)
            votes[:] = 0
        square = step_by(first_step / (1.0 + rises), heads, lists, on, scores, tree, changed, votes)
        k += 1
    return value, max(value, bound), square == 0.0 or bound - value <= tolerance, np.abs(2 * votes - 3 * k).argmin()


@njit(cache=True, nogil=True)
def pin(row, lists, off, scores, tree):
    """Forbid the arc of a row of `pairs`, or where `off` is False the other heads of its word."""
    parts, pairs, width = lists[3], lists[5], lists[0].shape[0]
    for a in range(pairs.shape[0]):
        arc = parts[pairs[a, 0]]
        if (a == row) if off else (a != row and arc // width == parts[pairs[row, 0]] // width):
            tree[arc] = FORBIDDEN
            scores[pairs[a]] = FORBIDDEN
