# mypy: ignore-errors
"""The loss of outputs that are one label per position: flat scores are a row of label scores for each position, nothing else."""

from structpred.core._sparse_kernels import coalesce, dot
from structpred.runtime.jit import njit


@njit(cache=True, nogil=True, borrows=True)
def add_wrong(places, starts, first, last, gold, weights, loss_weight, out):
    """out += loss_weight times the position's weight, at every label but the true one."""
    for i in range(first, last):
        n = starts[i + 1] - starts[i]
        n_labels = (places[i - first + 1] - places[i - first]) // max(n, 1)
        for t in range(n):
            at = places[i - first] + t * n_labels
            extra = loss_weight * weights[starts[i] + t]
            truth = gold[starts[i] + t]
            for label in range(n_labels):
                if label != truth:
                    out[at + label] += extra


@njit(cache=True, nogil=True, borrows=True)
def grid_values(scores, places, starts, first, last, labels, gold, weights, losses, found, truths):
    """The loss, the score and the true output's score of instances first..last-1, whose outputs are `labels` (flat)."""
    k = 0
    for i in range(first, last):
        n = starts[i + 1] - starts[i]
        n_labels = (places[i - first + 1] - places[i - first]) // max(n, 1)
        best = 0.0
        truth = 0.0
        loss = 0.0
        for t in range(n):
            at = places[i - first] + t * n_labels
            right = gold[starts[i] + t]
            best += scores[at + labels[k]]
            truth += scores[at + right]
            if labels[k] != right:
                loss += weights[starts[i] + t]
            k += 1
        losses[i - first] = loss
        found[i - first] = best
        truths[i - first] = truth


@njit(cache=True, nogil=True, borrows=True)
def finish_step(w, labels, gold, weights, n, idx, val, idx2, val2):
    """Sort the n pairs of a difference; returns (their number, the loss of `labels`, <w, difference>)."""
    loss = 0.0
    for t in range(gold.shape[0]):
        if labels[t] != gold[t]:
            loss += weights[t]
    n = coalesce(idx, val, n, idx2, val2)
    return n, loss, dot(w, idx[:n], val[:n])


@njit(cache=True, nogil=True, borrows=True)
def finish_checked(w, labels, gold, weights, n, idx, val, idx2, val2, scores):
    """What `finish_step` gives, then by how much the truth scores above `labels`, and the sizes of the terms of that."""
    gap = 0.0
    size = 0.0
    n_labels = scores.shape[0] // max(gold.shape[0], 1)
    for t in range(gold.shape[0]):
        if labels[t] != gold[t]:
            right, found = scores[t * n_labels + gold[t]], scores[t * n_labels + labels[t]]
            gap += right - found
            size += abs(right) + abs(found)
    n, loss, product = finish_step(w, labels, gold, weights, n, idx, val, idx2, val2)
    return n, loss, product, gap, size
