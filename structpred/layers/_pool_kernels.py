# mypy: ignore-errors
"""Compiled sums over the parts of pooled outputs; output k belongs to instance owners[k]."""

from structpred.runtime.jit import njit


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
