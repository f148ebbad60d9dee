# mypy: ignore-errors
"""Compiled updates of online trainers over trees: arcs scored, the best tree found, the features written, the weights moved."""

import numpy as np

from structpred.features._arc_block_kernels import emit_difference, score_block
from structpred.oracles.trees._arborescence_kernels import best_tree
from structpred.oracles.trees._projective_kernels import best_projective
from structpred.oracles.trees._tree_kernels import all_finite
from structpred.runtime.jit import njit
from structpred.task.fast._block_kernels import add_wrong, finish_step
from structpred.task.fast._move_kernels import doubted, move


@njit(cache=True, nogil=True)
def visit_trees(items, words, arcs, room, aim, loss_weight, search, out, pairs, most, rule, limits, state):
    """Steps of these sentences with the moves of an online trainer, until `most` arcs are reached or a step is in doubt.

    words: (offsets, corpus, templates, candidates, what forbids an arc). aim: (starts, gold, token weights). search: whether
    trees are projective, whether they have a single root, and the scratch of both searches. Returns how many sentences were
    visited, and whether the weights changed.
    """
    offsets, corpus, compiled, candidates, forbidden = words
    starts, gold, weights = aim
    projective, single_root, tables, work, marks = search
    idx, val, idx2, val2 = pairs
    places = np.zeros(2, np.int64)
    changed = False
    n_arcs = 0
    for k in range(items.shape[0]):
        i = items[k]
        n = offsets[i + 1] - offsets[i]
        places[1] = n * (n + 1)
        own = out[: places[1]]
        scale = state[3][()]
        score_block(state[0], scale, offsets, i, i + 1, corpus, compiled, candidates, arcs, room, forbidden, places, own)
        add_wrong(places, starts, i, i + 1, gold, weights, loss_weight, own)
        if not all_finite(own):
            return k, changed
        heads = np.empty(n, np.int64)
        if projective:
            best_projective(own, n, single_root, tables, heads)
        else:
            best_tree(own, n, single_root, work, marks, heads)
        truth = gold[starts[i] : starts[i + 1]]
        size = emit_difference(truth, heads, arcs, idx, val)
        size, loss, product = finish_step(state[0], heads, truth, weights[starts[i] : starts[i + 1]], size, idx, val, idx2, val2)
        product = scale * product
        if doubted(loss_weight * loss, product):
            return k, changed
        if move(rule, limits[i], state, idx[:size], val[:size], loss, loss_weight, product):
            changed = True
        n_arcs += places[1]
        if n_arcs >= most:
            return k + 1, changed
    return items.shape[0], changed
