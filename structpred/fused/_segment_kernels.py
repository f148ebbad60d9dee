# mypy: ignore-errors
"""Compiled steps over segments: parts scored, the best segmentation found, features compared, the weights moved.

space: see features/_segment_kernels.py. aim: where the parts of an instance begin, constants and part costs of the losses, true
parts, where those begin.
"""

import numpy as np

from structpred.core._sparse_kernels import dot
from structpred.core.fixed_scores import FORBIDDEN
from structpred.features._segment_kernels import combine_segments, score_segments
from structpred.oracles.chains._semimarkov_kernels import decode_segments, segment_parts
from structpred.runtime.jit import njit
from structpred.task.fast._part_kernels import augment, compare
from structpred.task.fast._update_kernels import apply_update, doubted
from structpred.task.score_consistency import DRIFT


@njit(cache=True, nogil=True)
def step_segments(w, scale, i, loss_weight, space, aim):
    """(whether nothing is in doubt, the difference as sorted pairs, the loss, <scale * w, difference>) of sequence i."""
    places, constants, costs, truth, ends = aim
    own = slice(places[i], places[i + 1])
    scores = np.empty(places[i + 1] - places[i])
    score_segments(w, scale, FORBIDDEN, i, space, scores)
    certain = augment(scores, costs[own], loss_weight, scores)
    length = space[4][i + 1] - space[4][i]
    shape, at = np.array([[length, space[1], space[2]]]), np.array([0, scores.shape[0]])
    labels, found = np.empty(length, np.int64), np.empty(2 * length, np.int64)
    decode_segments(scores, at, shape, labels)
    at[1] = length
    n = segment_parts(labels, at, shape, np.zeros(2, np.int64), found)
    _, loss, gap, size, parts, counts = compare(truth[ends[i] : ends[i + 1]], found[:n], constants[i], costs[own], scores)
    idx, val = combine_segments(i, parts, counts, space)
    margin, product = loss_weight * loss, scale * dot(w, idx, val)
    certain &= loss >= 0.0 and not doubted(margin, product) and abs(gap + margin - product) <= DRIFT * (size + abs(margin))
    return certain, idx, val, loss, product


@njit(cache=True, nogil=True)
def segment_updates(items, loss_weight, space, aim, most, update, limits, state):
    """Steps of these sequences with the update of an online trainer, until `most` parts are reached or a step is in doubt.

    Returns how many sequences were done, and whether the weights changed.
    """
    changed = False
    n_parts = 0
    for k in range(items.shape[0]):
        i = items[k]
        certain, idx, val, loss, product = step_segments(state[0], state[3][()], i, loss_weight, space, aim)
        if not certain:
            return k, changed
        if apply_update(update, limits[i], state, idx, val, loss, loss_weight, product):
            changed = True
        n_parts += aim[0][i + 1] - aim[0][i]
        if n_parts >= most:
            return k + 1, changed
    return items.shape[0], changed
