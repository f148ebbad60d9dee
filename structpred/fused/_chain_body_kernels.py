# mypy: ignore-errors
"""Steps and sweeps of chains, scoring welded to decoding and to the writing of differences: bodies for `family`.

w: the flat weights; table: the same, as scores are read from them; scale: their factor. What goes together comes as
one tuple: space (offsets of sequences, then what the calls read), rule (n_labels, fixed scores of transitions, fixed rows of
tokens, the row of each token), aim (true labels, token weights, rows of label costs, the row of each token, of a label or a set;
empty arrays where there is none), and the scratch of Viterbi.
"""

from structpred.core._sparse_kernels import coalesce
from structpred.oracles.chains._chain_kernels import backward, first_best, forward, n_blocks
from structpred.runtime.jit import njit

#: transitions(table, scale, space, rule, trans): trans = the scaled transition scores plus the fixed ones.
#: score(table, scale, space, first, last, start, size, rule, aim, loss_weight, out): the first `size` rows of out = the scores of
#: tokens from `start` on, of the sequence first..last-1, with loss_weight times their loss where there is an aim.
#: emit_difference(labels, space, first, last, aim, idx, val): joint features of the truth minus those of labels, as unsorted
#: pairs; returns (their number, the loss).
#: product(w, scale, space, idx, val): <scaled weights, (idx, val)>, indices ascending, added in order.
transitions = score = emit_difference = product = None


@njit(cache=True, nogil=True, borrows=True)
def add_truth(truth, gold, first, start, size, scratch):
    """`truth` plus the scores of the true labels of positions from `start` on, of the sequence that begins at `first`."""
    trans, alphas, _, _ = scratch
    for k in range(size if gold.shape[0] > 0 else 0):
        t = start + k
        truth += alphas[k, gold[t]]
        if t > first:
            truth += trans[gold[t - 1], gold[t]]
    return truth


def decode(table, scale, space, first, last, rule, aim, loss_weight, scratch, out):
    """Score tokens first..last-1 and decode them with loss_weight times their loss; returns (score, score of gold).

    The transitions of scratch are scaled already.
    """
    n_labels = rule[0]
    alphas = scratch[1]
    room = alphas.shape[0]
    blocks = n_blocks(last - first, scratch)
    best, truth = 0.0, 0.0
    for step in range(2 * blocks - 1):  # forth to the last block, and back
        block = min(step, 2 * (blocks - 1) - step)
        start = first + block * room
        size = min(room, last - start)
        score(table, scale, space, first, last, start, size, rule, aim, loss_weight, alphas)
        if step < blocks:
            truth = add_truth(truth, aim[0], first, start, size, scratch)
        forward(block, size, n_labels, scratch)
        if step == blocks - 1:
            out[last - first - 1] = label = first_best(alphas[size - 1], n_labels)
            best = alphas[size - 1, label]
        if step >= blocks - 1:
            backward(block, size, n_labels, scratch, out, start - first + size)
    return best, truth


def step(w, table, scale, space, i, rule, aim, loss_weight, scratch, out, idx, val, idx2, val2):
    """Decode sequence i and write its sorted difference; returns (pairs, loss, <scaled weights, difference>)."""
    first = space[0][i]
    last = space[0][i + 1]
    transitions(table, scale, space, rule, scratch[0])
    decode(table, scale, space, first, last, rule, aim, loss_weight, scratch, out)
    n, loss = emit_difference(out, space, first, last, aim, idx, val)
    n = coalesce(idx, val, n, idx2, val2)
    return n, loss, product(w, scale, space, idx[:n], val[:n])


def sweep(table, scale, space, start, stop, rule, aim, loss_weight, scratch, out, losses, found, truths):
    """Decode sequences start..stop-1: labels into out, and each one's loss, score and score of the truth (without an aim: 0)."""
    offsets = space[0]
    gold, token_weights, costs, cost_rows = aim
    transitions(table, scale, space, rule, scratch[0])
    base = offsets[start]
    for i in range(start, stop):
        first = offsets[i]
        last = offsets[i + 1]
        labels = out[first - base : last - base]
        best, truth = decode(table, scale, space, first, last, rule, aim, loss_weight, scratch, labels)
        total = 0.0
        for t in range(first, last if gold.shape[0] > 0 else first):
            total += token_weights[t] * costs[cost_rows[t], labels[t - first]]
        losses[i - start] = total
        found[i - start] = best
        truths[i - start] = truth


STEPS = (decode, step, sweep)
