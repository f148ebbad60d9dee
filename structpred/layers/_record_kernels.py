# mypy: ignore-errors
"""Compiled sums over the parts of outputs and over the parts of each instance, in the order of the data.

Of several outputs an instance, output k belongs to instance owners[k].
"""

from structpred.core.fixed_scores import FORBIDDEN
from structpred.runtime.jit import njit

_INFEASIBLE = 0.5 * FORBIDDEN


@njit(cache=True, nogil=True)
def add_up(scores, offsets, parts, part_ends, values):
    """values[i] = theta . mu(y_i). Returns -1; 2 i where a part of y_i is forbidden, 2 i + 1 where one does not exist."""
    for i in range(part_ends.shape[0] - 1):
        start = offsets[i]
        size = offsets[i + 1] - start
        total = 0.0
        for k in range(part_ends[i], part_ends[i + 1]):
            part = parts[k]
            if part < 0 or part >= size:
                return 2 * i + 1
            score = scores[start + part]
            if score <= _INFEASIBLE:
                return 2 * i
            total += score
        values[i] = total
    return -1


@njit(cache=True, nogil=True)
def mean_dots(samples, point, offsets, out):
    """out[i] = the mean of a_i . point_i over the samples a, summed one by one: the same for an instance alone and in a batch."""
    m = samples.shape[0]
    for i in range(offsets.shape[0] - 1):
        total = 0.0
        for k in range(m):
            for at in range(offsets[i], offsets[i + 1]):
                total += samples[k, at] * point[at]
        out[i] = total / m


@njit(cache=True, nogil=True)
def score_outputs(scores, offsets, parts, part_ends, owners, out):
    """out[k] = theta . v_k."""
    for k in range(owners.shape[0]):
        total = 0.0
        for at in range(part_ends[k], part_ends[k + 1]):
            total += scores[offsets[owners[k]] + parts[at]]
        out[k] = total


@njit(cache=True, nogil=True)
def add_outputs(weights, offsets, parts, part_ends, owners, out):
    """out += sum_k weights[k] v_k."""
    for k in range(owners.shape[0]):
        for at in range(part_ends[k], part_ends[k + 1]):
            out[offsets[owners[k]] + parts[at]] += weights[k]
