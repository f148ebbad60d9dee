# mypy: ignore-errors
"""Arc features of whole blocks: the scores of some sentences, and the difference of two trees."""

import numpy as np

from structpred.features._arc_kernels import emit_listed, prepare_sentence, score_sentence
from structpred.runtime.jit import njit


@njit(cache=True, nogil=True)
def score_block(w, scale, offsets, start, stop, corpus, compiled, candidates, arcs, room, forbidden, places, out):
    """out[places[i - start]:]: scale times the arc scores of sentence i; arcs that are not listed are forbidden."""
    starts, heads = candidates
    for i in range(start, stop):
        first = offsets[i]
        n = offsets[i + 1] - first
        own = out[places[i - start] : places[i - start + 1]]
        prepare_sentence(corpus, first, n, compiled, arcs[0], arcs[6], arcs[7])
        score_sentence(w, None, n, first, candidates, arcs, room, own)
        for m in range(n):
            at = m * (n + 1)
            for h in range(n + 1):
                own[at + h] *= scale
            if starts.shape[0] > 1:
                k = starts[first + m]
                last = starts[first + m + 1]
                for h in range(n + 1):
                    if k < last and heads[k] == h:
                        k += 1
                    else:
                        own[at + h] += forbidden


@njit(cache=True, nogil=True)
def emit_difference(truth, found, arcs, idx, val):
    """The features of the heads `truth` minus those of `found` as unsorted pairs, for the sentence that was prepared last."""
    ends = np.empty((2, 2 * truth.shape[0]), np.int64)
    values = np.empty(2 * truth.shape[0])
    size = 0
    for m in range(truth.shape[0]):
        if found[m] != truth[m]:
            for side in range(2):
                h = truth[m] if side == 0 else found[m]
                if h != m + 1:
                    ends[0, size] = h
                    ends[1, size] = m + 1
                    values[size] = 1.0 if side == 0 else -1.0
                    size += 1
    return emit_listed(ends[0, :size], ends[1, :size], values[:size], arcs, idx, val)
