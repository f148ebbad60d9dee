# mypy: ignore-errors
"""Compiled forward-backward: log partition function and marginals of chains, stable for scores of any size.

Two forms. The scaled one works with probabilities that are normalised at every position, and cuts what is below e^-460
to zero (denormal numbers are slow). What is cut could only matter again through the two transitions next to it, whose scores
differ by at most their range R each; so it is exact to rounding while R <= 150. For wider ranges the other form keeps
logarithms throughout. Forbidden transitions can leave no way but through what was cut: where both occur in a sequence, the
scaled form gives up and the other one takes over.
Scores at or below FORBIDDEN count as minus infinity, in both.
"""

import numpy as np

from structpred.runtime import lanes
from structpred.runtime.jit import njit

FORBIDDEN = -1e29
WIDE = 150.0
TINY = 1e-200
NOTHING = 1e-40


@njit(cache=True, nogil=True, borrows=True)
def exponentiate(trans, n_labels, exp_trans):
    """exp_trans[0] = exp(trans[0] - top), zero where forbidden; trans[1] and exp_trans[1] become the transposes.

    Returns (top, whether the range is wide, whether any is forbidden).
    """
    top = -np.inf
    low = np.inf
    holes = False
    for p in range(n_labels):
        for label in range(n_labels):
            x = trans[0, p, label]
            if x > FORBIDDEN:
                top = max(top, x)
                low = min(low, x)
            else:
                holes = True
    if top == -np.inf:
        top = 0.0
    for p in range(n_labels):
        for label in range(n_labels):
            x = trans[0, p, label]
            exp_trans[0, p, label] = exp_trans[1, label, p] = np.exp(x - top) if x > FORBIDDEN else 0.0
            trans[1, label, p] = x
    return top, top - low > WIDE, holes


@njit(cache=True, nogil=True, borrows=True)
def log_sum(row, n):
    """log sum exp of the first n entries; -inf if all are forbidden."""
    top = row[0]
    for k in range(1, n):
        top = max(top, row[k])
    if top <= FORBIDDEN:
        return -np.inf
    total = 0.0
    for k in range(n):
        total += np.exp(row[k] - top)
    return top + np.log(total)


@njit(cache=True, nogil=True, borrows=True)
def cuts(before, local, n_labels):
    """Whether before * local, normalised, would have entries that are cut though they are not zero."""
    total = 0.0
    for label in range(n_labels):
        total += before[label] * local[label]
    for label in range(n_labels):
        if before[label] > 0.0 and local[label] > 0.0 and not before[label] * local[label] > TINY * total:
            return True
    return False


@njit(cache=True, nogil=True, borrows=True)
def mixture(x, n, table, column):
    """sum_k x[k] table[k] over the first n rows, eight columns of it, added in order."""
    found = lanes.spread(0.0)
    for k in range(n):
        found = lanes.plus(found, lanes.times(lanes.spread(x[k]), lanes.load(table, k, column)))
    return found


@njit(cache=True, nogil=True, borrows=True)
def scaled_pass(emissions, length, n_labels, exp_trans, top, holes, alpha, local, norm, mu, counts, work):
    """Forward-backward with normalised probabilities; mu and counts are added to nothing: they are overwritten.

    emissions: (>= length, width), -inf in the columns beyond n_labels. mu: position-label marginals (same shape). counts:
    expected transitions (n_labels, width). Returns log Z; NaN where the logarithmic form is needed because something was cut
    that forbidden transitions may need.
    """
    width = emissions.shape[1]
    ahead, back = exp_trans[0], exp_trans[1]
    log_z = top * (length - 1)
    for t in range(length):
        most = lanes.load(emissions, t, 0)
        for c in range(lanes.WIDTH, width, lanes.WIDTH):
            most = lanes.larger(most, lanes.load(emissions, t, c))
        shift = lanes.largest(most)
        if shift <= FORBIDDEN:
            return -np.inf
        if holes:
            for label in range(n_labels):
                if FORBIDDEN < emissions[t, label] <= shift + lanes.TINY_LOG:
                    return np.nan
        sums = lanes.spread(0.0)
        for c in range(0, width, lanes.WIDTH):
            x = lanes.exp(lanes.minus(lanes.load(emissions, t, c), lanes.spread(shift)))
            lanes.store(local, t, c, x)
            if t > 0:
                before = mixture(alpha[t - 1], n_labels, ahead, c)
                lanes.store(work, 0, c, before)
                x = lanes.times(before, x)
            lanes.store(alpha, t, c, x)
            sums = lanes.plus(sums, x)
        if holes and t > 0 and cuts(work[0], local[t], n_labels):
            return np.nan
        total = lanes.total(sums)
        if total < TINY:
            return -np.inf if total == 0.0 else np.nan
        norm[t] = 1.0 / total
        for c in range(0, width, lanes.WIDTH):
            x = lanes.times(lanes.load(alpha, t, c), lanes.spread(norm[t]))
            lanes.store(alpha, t, c, lanes.cut(x, lanes.spread(TINY)))
        log_z += shift + np.log(total)
    for c in range(0, width, lanes.WIDTH):
        lanes.store(work, 0, c, lanes.spread(1.0))
        lanes.store(mu, length - 1, c, lanes.load(alpha, length - 1, c))
    for t in range(length - 1, 0, -1):  # work[0]: beta; local[t] becomes what the transitions to t are multiplied by
        for c in range(0, width, lanes.WIDTH):
            x = lanes.times(lanes.load(local, t, c), lanes.load(work, 0, c))
            lanes.store(local, t, c, lanes.times(x, lanes.spread(norm[t])))
        for c in range(0, width, lanes.WIDTH):
            x = mixture(local[t], n_labels, back, c)
            lanes.store(work, 0, c, x)
            lanes.store(mu, t - 1, c, lanes.cut(lanes.times(lanes.load(alpha, t - 1, c), x), lanes.spread(NOTHING)))
        for label in range(n_labels if holes else 0):
            if work[0, label] > 1.0 / TINY:  # of labels that cannot be reached: nothing bounds it
                return np.nan
    for p in range(n_labels):
        for c in range(0, width, lanes.WIDTH):
            x = lanes.times(mixture(alpha[:, p], length - 1, local[1:], c), lanes.load(ahead, p, c))
            lanes.store(counts, p, c, lanes.cut(x, lanes.spread(NOTHING)))
    return log_z


@njit(cache=True, nogil=True, borrows=True)
def log_mixture(x, n, table, tops, row):
    """row[j] = log sum_k exp(x[k] + table[k, j]) for k, j < n; the first two rows of `tops` are overwritten."""
    for c in range(0, table.shape[1], lanes.WIDTH):
        top = lanes.spread(FORBIDDEN)
        for k in range(n):
            top = lanes.larger(top, lanes.plus(lanes.spread(x[k]), lanes.load(table, k, c)))
        found = lanes.spread(0.0)
        for k in range(n):
            y = lanes.plus(lanes.spread(x[k]), lanes.load(table, k, c))
            found = lanes.plus(found, lanes.exp(lanes.minus(y, top)))
        lanes.store(tops, 0, c, top)
        lanes.store(tops, 1, c, found)
    for j in range(n):
        row[j] = tops[0, j] + np.log(tops[1, j])


@njit(cache=True, nogil=True, borrows=True)
def log_pass(emissions, length, n_labels, trans, alpha, mu, counts, work):
    """Forward-backward in logarithms, for transition scores of any range. Arguments and results as for scaled_pass."""
    beta, after = work[0], work[1]
    for label in range(n_labels):
        alpha[0, label] = emissions[0, label] if emissions[0, label] > FORBIDDEN else -np.inf
    for t in range(1, length):
        log_mixture(alpha[t - 1], n_labels, trans[0], work[2:], beta)
        for label in range(n_labels):
            e = emissions[t, label]
            alpha[t, label] = beta[label] + e if e > FORBIDDEN else -np.inf
    log_z = log_sum(alpha[length - 1], n_labels)
    if log_z == -np.inf:
        return log_z
    counts[:] = 0.0
    for label in range(n_labels):
        beta[label] = 0.0
        mu[length - 1, label] = np.exp(alpha[length - 1, label] - log_z)
    for t in range(length - 1, 0, -1):
        for label in range(after.shape[0]):
            e = emissions[t, label]
            after[label] = e + beta[label] if e > FORBIDDEN else -np.inf
        log_mixture(after, n_labels, trans[1], work[2:], beta)
        for p in range(n_labels):
            work[2, p] = alpha[t - 1, p] + beta[p]
        here = log_sum(work[2], n_labels)  # log Z again, with the rounding of this position: so its probabilities add up to one
        for p in range(n_labels):
            mu[t - 1, p] = np.exp(work[2, p] - here)
            before = lanes.spread(alpha[t - 1, p] - here)
            for c in range(0, counts.shape[1], lanes.WIDTH):
                x = lanes.plus(before, lanes.plus(lanes.load(trans[0], p, c), lanes.load(work, 1, c)))
                lanes.store(counts, p, c, lanes.plus(lanes.load(counts, p, c), lanes.exp(x)))
    return log_z


@njit(cache=True, nogil=True, borrows=True)
def forward_backward(length, n_labels, form, scratch, mu):
    """Either form, for scores in scratch, the rows of SumScratch; form: from `exponentiate`. Results as for scaled_pass."""
    trans, exp_trans, emissions, alpha, local, norm, _, counts, work = scratch
    top, wide, holes = form
    if not wide:
        log_z = scaled_pass(emissions, length, n_labels, exp_trans, top, holes, alpha, local, norm, mu, counts, work)
        if not np.isnan(log_z):
            return log_z
    return log_pass(emissions, length, n_labels, trans, alpha, mu, counts, work)


@njit(cache=True, nogil=True, borrows=True)
def marginals_of_batch(scores, offsets, lengths, n_labels, scratch, log_zs, mus):
    """log Z and expected part counts of instances with the same labels, flat; returns the first without a sequence, or -1."""
    trans, exp_trans, emissions, _, _, _, marg, counts, _ = scratch
    for i in range(lengths.shape[0]):
        length, edges = lengths[i], lengths[i] * n_labels
        own, mu = scores[offsets[i] : offsets[i + 1]], mus[offsets[i] : offsets[i + 1]]
        for p in range(n_labels):
            for label in range(n_labels):
                trans[0, p, label] = own[edges + p * n_labels + label]
        for t in range(length):
            for label in range(n_labels):
                emissions[t, label] = own[t * n_labels + label]
        log_z = forward_backward(length, n_labels, exponentiate(trans, n_labels, exp_trans), scratch, marg)
        log_zs[i] = log_z
        if log_z == -np.inf:
            return i
        for t in range(length):
            total = 0.0  # rounding of a long chain: make each position sum to one
            for label in range(n_labels):
                total += marg[t, label]
            for label in range(n_labels):
                mu[t * n_labels + label] = marg[t, label] / total
        for p in range(n_labels):
            for label in range(n_labels):
                mu[edges + p * n_labels + label] = counts[p, label]
    return -1
