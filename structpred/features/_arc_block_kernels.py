# mypy: ignore-errors
"""Arc features of whole blocks: the scores of some sentences, and the difference of two trees."""

from structpred.features._arc_kernels import emit_arc, prepare_sentence, score_sentence
from structpred.runtime.jit import njit


@njit(cache=True, nogil=True)
def score_block(
    w, scale, offsets, start, stop, codes_of, tags_of, classes, atoms, ends, seeds, starts, heads,
    hashes, kinds, shifts, bases, n_pair, n_head, between, n_tags, counts, tags, codes, unary, acc, seen, row,
    forbidden, places, out,
):  # fmt: skip
    """out[places[i - start]:]: scale times the arc scores of sentence i; arcs that are not listed are forbidden."""
    for i in range(start, stop):
        first = offsets[i]
        n = offsets[i + 1] - first
        own = out[places[i - start] : places[i - start + 1]]
        prepare_sentence(codes_of, tags_of, classes, first, n, atoms, ends, seeds, hashes, counts, tags)
        score_sentence(
            w, n, first, starts, heads, hashes, kinds, shifts, bases, n_pair, n_head, between, n_tags, counts, tags, codes,
            unary, acc, seen, row, own,
        )  # fmt: skip
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
def emit_difference(truth, found, hashes, kinds, shifts, bases, between, n_tags, counts, tags, seen, idx, val):
    """The features of the heads `truth` minus those of `found` as unsorted pairs, for the sentence that was prepared last."""
    k = 0
    for m in range(truth.shape[0]):
        if found[m] != truth[m]:
            for side in range(2):
                h = truth[m] if side == 0 else found[m]
                value = 1.0 if side == 0 else -1.0
                k = emit_arc(h, m + 1, value, hashes, kinds, shifts, bases, between, n_tags, counts, tags, seen, idx, val, k)
    return k
