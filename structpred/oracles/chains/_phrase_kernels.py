# mypy: ignore-errors
"""Compiled probabilities of phrases: a pass back along the chain, and one forward through its conditional probabilities.

Given x, labels are a Markov chain, whose p(next label | label) follow from the sums of what comes later. All that is multiplied
are probabilities: what is cut to zero is below 1e-200 of one. Scores at or below FORBIDDEN count as minus infinity.
"""

import numpy as np

from structpred.oracles.chains._chain_sum_kernels import FORBIDDEN, TINY
from structpred.runtime.jit import njit


@njit(cache=True, nogil=True)
def steps(trans, exp_trans, tops, after, p, logs):
    """p[i, j] = p(next label j | label i); logs[i] = log of the sum over j of exp(trans[i, j] + after[j]), up to a constant."""
    top = max(after.max(), FORBIDDEN)
    weights = np.exp(after - top)
    for i in range(len(p)):
        logs[i], total = tops[i], 0.0
        for j in range(len(after)):
            p[i, j] = exp_trans[i, j] * weights[j]
            total += p[i, j]
        if total < TINY:  # the best pair is far below the best transition and the best label: once more, in logarithms
            p[i] = trans[i] + after
            best = max(p[i].max(), FORBIDDEN)
            p[i] = np.exp(p[i] - best)
            logs[i], total = best - top, p[i].sum()
        logs[i] += np.log(total)
        p[i] /= max(total, TINY)


@njit(cache=True, nogil=True)
def phrases_of_chain(scores, length, starts, breaks, types, pairs, out):
    """out[t, k, d] = p(tokens t to t + d are exactly a phrase of type k), for zeros `out`; False where no sequence is possible.

    scores: (length, n) of labels, then (n, n) of transitions, flat. starts, breaks: (n + 1, n), whether a phrase starts at,
    and whether one that is open ends before, a label that follows another; row n: nothing is before. pairs: (., 2), labels that
    continue a phrase. O(length (n^2 + M len(pairs))), M tokens in the longest phrase.
    """
    n, most = len(types), out.shape[2]
    finite = np.where(scores > FORBIDDEN, scores, -np.inf)
    after = finite[: length * n].reshape(length, n)  # of a label and of all that follows it, up to a constant
    trans, tops = np.zeros((n + 1, n)), np.zeros(n + 1)
    trans[:n] = finite[length * n :].reshape(n, n)
    for i in range(n):
        tops[i] = max(trans[i].max(), FORBIDDEN)
    exp_trans = np.exp(trans - tops.reshape(-1, 1))
    p, logs, mu, inside = np.empty((n + 1, n)), np.empty(n + 1), np.zeros(n + 1), np.zeros((most, n))
    for t in range(length - 1, 0, -1):
        steps(trans, exp_trans, tops, after[t], p, logs)
        after[t - 1] += logs[:n]
    mu[n] = 1.0
    for t in range(length + 1):
        leave, begun, now = np.ones(n + 1), np.zeros(n), np.zeros(n + 1)
        if t < length:
            steps(trans, exp_trans, tops, after[t], p, logs)
            if logs[n] == -np.inf:
                return False
            leave[:] = 0.0
            for i in range(n + 1):
                for j in range(n):
                    now[j] += mu[i] * p[i, j]
                    begun[j] += mu[i] * p[i, j] * starts[i, j]
                    leave[i] += p[i, j] * breaks[i, j]
        for d in range(min(most, t)):
            for i in range(n):
                out[t - 1 - d, types[i], d] += inside[d, i] * leave[i]
        for d in range(min(most - 1, t), 0, -1):  # row d: begun d tokens before, and still the same phrase
            inside[d] = 0.0
            for k in range(len(pairs)):
                inside[d, pairs[k, 1]] += inside[d - 1, pairs[k, 0]] * p[pairs[k, 0], pairs[k, 1]]
        inside[0], mu = begun, now
    return True
