# mypy: ignore-errors
"""Compiled steps over segments: parts scored, the best segmentation found, features compared."""

import numpy as np

from structpred.core._sparse_kernels import dot
from structpred.core.fixed_scores import FORBIDDEN
from structpred.features._segment_kernels import combine_segments, score_segments
from structpred.oracles.chains._semimarkov_kernels import decode_segments, segment_parts
from structpred.runtime.jit import njit
from structpred.task.fast._part_kernels import augment, compare
from structpred.task.fast._update_kernels import doubted
from structpred.task.score_consistency import DRIFT


@njit(cache=True, nogil=True)
def step_segments(w, scale, i, loss_weight, space, truth, constant, costs):
    """(Whether nothing is in doubt, (the difference as sorted pairs, the loss, the violation)) of sequence i."""
    scores, length = np.empty(costs.shape[0]), space[4][i + 1] - space[4][i]
    shape, at = np.array([[length, space[1], space[2]]]), np.array([0, costs.shape[0]])
    score_segments(w, scale, FORBIDDEN, i, space, at, scores)
    certain = augment(scores, costs, loss_weight, scores)
    labels, found = np.empty(length, np.int64), np.empty(2 * length, np.int64)
    decode_segments(scores, at, shape, labels)
    at[1] = length
    n = segment_parts(labels, at, shape, np.zeros(2, np.int64), found)
    _, loss, gap, size, parts, counts = compare(truth, found[:n], constant, costs, scores)
    idx, val = combine_segments(i, parts, counts, space)
    margin, product = loss_weight * loss, scale * dot(w, idx, val)
    certain &= loss >= 0.0 and not doubted(margin, product) and abs(gap + margin - product) <= DRIFT * (size + abs(margin))
    return certain, (idx, val, loss, margin - product)
