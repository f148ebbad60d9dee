# mypy: ignore-errors
"""Compiled steps of arc-factored trees: scores of a block of sentences with their loss, and the difference of two trees."""

from structpred.core._arc_kernels import emit_arc, prepare_sentence, score_sentence
from structpred.core._sparse_kernels import coalesce, dot
from structpred.core.jit import njit


@njit(cache=True, nogil=True)
def score_block(
    w, scale, offsets, start, stop, codes_of, tags_of, classes, atoms, ends, seeds, starts, heads,
    hashes, kinds, shifts, bases, n_pair, n_head, between, n_tags, counts, tags, codes, unary, acc, seen, row,
    gold, token_weights, cost, forbidden, places, out,
):  # fmt: skip
    """out[places[i - start]:]: scale times the arc scores of sentence i, plus `cost` times its weight for each wrong head."""
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
            extra = cost * token_weights[first + m]
            for h in range(n + 1):
                own[at + h] = scale * own[at + h] + (extra if h != gold[first + m] else 0.0)
            if starts.shape[0] > 1:
                k = starts[first + m]
                last = starts[first + m + 1]
                for h in range(n + 1):
                    if k < last and heads[k] == h:
                        k += 1
                    else:
                        own[at + h] += forbidden


@njit(cache=True, nogil=True)
def tree_difference(
    w, found, gold, token_weights, hashes, kinds, shifts, bases, between, n_tags, counts, tags, seen, idx, val, idx2, val2
):
    """phi(gold) - phi(found) of the sentence that was prepared last: (pairs, sorted and unique; loss; <w, difference>)."""
    k = 0
    loss = 0.0
    for m in range(gold.shape[0]):
        if found[m] != gold[m]:
            loss += token_weights[m]
            for side in range(2):
                h = gold[m] if side == 0 else found[m]
                value = 1.0 if side == 0 else -1.0
                k = emit_arc(h, m + 1, value, hashes, kinds, shifts, bases, between, n_tags, counts, tags, seen, idx, val, k)
    k = coalesce(idx, val, k, idx2, val2)
    return k, loss, dot(w, idx[:k], val[:k])


@njit(cache=True, nogil=True)
def tree_values(scores, places, offsets, start, stop, labels, gold, token_weights, losses, found, truths):
    """The loss, the score and the gold tree's score of sentences start..stop-1, whose trees are `labels` (flat)."""
    k = 0
    for i in range(start, stop):
        first = offsets[i]
        n = offsets[i + 1] - first
        best = 0.0
        truth = 0.0
        loss = 0.0
        for m in range(n):
            at = places[i - start] + m * (n + 1)
            best += scores[at + labels[k]]
            truth += scores[at + gold[first + m]]
            if labels[k] != gold[first + m]:
                loss += token_weights[first + m]
            k += 1
        losses[i - start] = loss
        found[i - start] = best
        truths[i - start] = truth
