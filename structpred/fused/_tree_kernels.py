# mypy: ignore-errors
"""Compiled steps over trees: arcs scored, the best tree found, its features compared with the true ones, the weights moved.

memory: sentences (offsets, corpus, templates, candidates, what forbids an arc, where the fixed scores of each begin, and these),
arcs and room (see `_arc_kernels` and `_arc_score_kernels`), the grid of costs, search (whether trees are projective and have a
single root, and the scratch of both searches), scores and heads of a sentence, and twice the pairs of a difference.
"""

import numpy as np

from structpred.core._sparse_kernels import coalesce, dot
from structpred.features._arc_block_kernels import emit_difference, score_block
from structpred.oracles.trees._arborescence_kernels import best_heads
from structpred.oracles.trees._projective_kernels import best_heads as best_projective
from structpred.runtime.jit import njit
from structpred.task.fast._part_kernels import add_grid, grid_loss
from structpred.task.fast._update_kernels import apply_update, doubted


@njit(cache=True, nogil=True)
def find_tree(w, scale, i, loss_weight, memory):
    """Write the sorted difference of sentence i: (whether all scores are finite, pairs, loss, <scale * w, difference>)."""
    sentences, arcs, room, grid, search, found, pairs = memory
    offsets, corpus, compiled, candidates, forbidden, begins, fixed = sentences
    projective, single_root, tables, own_room = search
    idx, val, idx2, val2 = pairs
    n = offsets[i + 1] - offsets[i]
    places = np.zeros(2, np.int64)
    places[1] = n * (n + 1)
    scores = found[0][: places[1]]
    heads = found[1][:n]
    score_block(w, scale, offsets, i, i + 1, corpus, compiled, candidates, arcs, room, forbidden, places, scores)
    if begins[i] >= 0:
        for a in range(places[1]):
            scores[a] += fixed[begins[i] + a]
    add_grid(grid, i, i + 1, places, loss_weight, scores)
    if projective:
        finite = best_projective(scores, single_root, tables, heads)
    else:
        finite = best_heads(scores, single_root, own_room, heads)
    if not finite:
        return False, 0, 0.0, 0.0
    size = emit_difference(grid[2][grid[0][i] : grid[0][i + 1]], heads, arcs, idx, val)
    size = coalesce(idx, val, size, idx2, val2)
    return True, size, grid_loss(grid, i, heads), scale * dot(w, idx[:size], val[:size])


@njit(cache=True, nogil=True)
def step_tree(w, scale, i, loss_weight, memory):
    """What `find_tree` gives, and by how much the truth scores above the tree found, and the sizes of the terms of that."""
    finite, n, loss, product = find_tree(w, scale, i, loss_weight, memory)
    scores, heads = memory[5]
    gold = memory[3][2][memory[3][0][i] : memory[3][0][i + 1]]
    gap = loss_weight * loss
    size = abs(gap)
    width = gold.shape[0] + 1
    for t in range(gold.shape[0]):
        if heads[t] != gold[t]:
            right, found = scores[t * width + gold[t]], scores[t * width + heads[t]]
            gap += right - found
            size += abs(right) + abs(found)
    return finite, n, loss, product, gap, size


@njit(cache=True, nogil=True)
def tree_updates(items, loss_weight, memory, most, rule, limits, state):
    """Steps of these sentences with the update of an online trainer, until `most` arcs are reached or a step is in doubt.

    Returns how many sentences were done, and whether the weights changed.
    """
    offsets = memory[0][0]
    idx, val, _, _ = memory[6]
    changed = False
    n_arcs = 0
    for k in range(items.shape[0]):
        i = items[k]
        finite, size, loss, product = find_tree(state[0], state[3][()], i, loss_weight, memory)
        if not finite or doubted(loss_weight * loss, product):
            return k, changed
        if apply_update(rule, limits[i], state, idx[:size], val[:size], loss, loss_weight, product):
            changed = True
        n = offsets[i + 1] - offsets[i]
        n_arcs += n * (n + 1)
        if n_arcs >= most:
            return k + 1, changed
    return items.shape[0], changed


@njit(cache=True, nogil=True, borrows=True)
def tree_values(scores, places, grid, first, last, heads, values):
    """values: the loss, the score and the true tree's score of sentences first..last-1 with these heads, flat."""
    starts, widths, gold = grid[:3]
    k = 0
    for i in range(first, last):
        best = 0.0
        truth = 0.0
        values[0, i - first] = grid_loss(grid, i, heads[k : k + starts[i + 1] - starts[i]])
        for t in range(starts[i], starts[i + 1]):
            at = places[i - first] + (t - starts[i]) * widths[i]
            best += scores[at + heads[k]]
            truth += scores[at + gold[t]]
            k += 1
        values[1, i - first] = best
        values[2, i - first] = truth
