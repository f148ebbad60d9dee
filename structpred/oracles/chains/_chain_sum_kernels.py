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

from structpred.runtime.jit import njit

FORBIDDEN = -1e29
WIDE = 150.0
TINY_LOG = -460.0
TINY = 1e-200
NOTHING = 1e-40


@njit(cache=True, nogil=True, borrows=True)
def exponentiate(trans, n_labels, exp_trans):
    """exp_trans = exp(trans - top), zero where forbidden; returns (top, whether the range is wide, whether any is forbidden)."""
    top = -np.inf
    low = np.inf
    holes = False
    for p in range(n_labels):
        for label in range(n_labels):
            x = trans[p, label]
            if x > FORBIDDEN:
                top = max(top, x)
                low = min(low, x)
            else:
                holes = True
    if top == -np.inf:
        top = 0.0
    for p in range(n_labels):
        for label in range(n_labels):
            x = trans[p, label]
            exp_trans[p, label] = np.exp(x - top) if x > FORBIDDEN else 0.0
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
def scaled_pass(emissions, length, n_labels, exp_trans, top, holes, alpha, local, norm, mu, counts, work):
    """Forward-backward with normalised probabilities; mu and counts are added to nothing: they are overwritten.

    emissions: (>= length, width). mu: position-label marginals (same shape). counts: expected transitions (n_labels, width).
    Returns log Z; NaN where the logarithmic form is needed because something was cut that forbidden transitions may need.
    """
    width = emissions.shape[1]
    log_z = 0.0
    for t in range(length):
        shift = emissions[t, 0]
        for label in range(1, n_labels):
            shift = max(shift, emissions[t, label])
        if shift <= FORBIDDEN:
            return -np.inf
        for label in range(n_labels):
            x = emissions[t, label] - shift
            local[t, label] = np.exp(x) if x > TINY_LOG else 0.0
            if holes and x <= TINY_LOG and emissions[t, label] > FORBIDDEN:
                return np.nan
        a = alpha[t]
        if t == 0:
            for label in range(width):
                a[label] = local[t, label]
        else:
            a[:] = 0.0
            for p in range(n_labels):
                x = alpha[t - 1, p]
                row = exp_trans[p]
                for label in range(width):
                    a[label] += x * row[label]
            if holes and cuts(a, local[t], n_labels):
                return np.nan
            for label in range(width):
                a[label] *= local[t, label]
            log_z += top
        total = 0.0
        for label in range(n_labels):
            total += a[label]
        if total == 0.0:
            return -np.inf
        for label in range(width):
            x = a[label] / total
            a[label] = x if x > TINY else 0.0
        norm[t] = total
        log_z += shift + np.log(total)
    beta = work[0]
    q = work[1]
    counts[:] = 0.0
    for label in range(width):
        beta[label] = 1.0
        mu[length - 1, label] = alpha[length - 1, label]
    for t in range(length - 1, 0, -1):
        for label in range(width):
            q[label] = local[t, label] * beta[label] / norm[t]
        for p in range(n_labels):
            row = exp_trans[p]
            x = alpha[t - 1, p]
            total = 0.0
            target = counts[p]
            for label in range(width):
                total += row[label] * q[label]
                target[label] += x * q[label]
            beta[p] = total
            if holes and total > 1.0 / TINY:  # of labels that cannot be reached: nothing bounds it
                return np.nan
            x *= total
            mu[t - 1, p] = x if x > NOTHING else 0.0
    for p in range(n_labels):
        for label in range(width):
            x = counts[p, label] * exp_trans[p, label]
            counts[p, label] = x if x > NOTHING else 0.0
    return log_z


@njit(cache=True, nogil=True, borrows=True)
def log_pass(emissions, length, n_labels, trans, alpha, mu, counts, work):
    """Forward-backward in logarithms, for transition scores of any range. Results as scaled_pass."""
    row = work[0]
    beta = work[1]
    after = work[2]
    for label in range(n_labels):
        alpha[0, label] = emissions[0, label] if emissions[0, label] > FORBIDDEN else -np.inf
    for t in range(1, length):
        for label in range(n_labels):
            for p in range(n_labels):
                x = trans[p, label]
                row[p] = alpha[t - 1, p] + x if x > FORBIDDEN else -np.inf
            e = emissions[t, label]
            alpha[t, label] = log_sum(row, n_labels) + e if e > FORBIDDEN else -np.inf
    log_z = log_sum(alpha[length - 1], n_labels)
    if log_z == -np.inf:
        return log_z
    counts[:] = 0.0
    for label in range(n_labels):
        beta[label] = 0.0
        mu[length - 1, label] = np.exp(alpha[length - 1, label] - log_z)
    for t in range(length - 1, 0, -1):
        for label in range(n_labels):
            e = emissions[t, label]
            after[label] = e + beta[label] if e > FORBIDDEN else -np.inf
        for p in range(n_labels):
            for label in range(n_labels):
                x = trans[p, label]
                row[label] = x + after[label] if x > FORBIDDEN else -np.inf
            beta[p] = log_sum(row, n_labels)
        for p in range(n_labels):
            row[p] = alpha[t - 1, p] + beta[p]
        here = log_sum(row, n_labels)  # log Z again, with the rounding of this position: so its probabilities add up to one
        for p in range(n_labels):
            mu[t - 1, p] = np.exp(row[p] - here)
            for label in range(n_labels):
                x = trans[p, label]
                if x > FORBIDDEN:
                    counts[p, label] += np.exp(alpha[t - 1, p] + x + after[label] - here)
    return log_z


@njit(cache=True, nogil=True, borrows=True)
def marginals_of_batch(scores, offsets, lengths, n_labels, trans, exp_trans, emissions, alpha, local, norm, marg, counts, work,
                       log_zs, mus):  # fmt: skip
    """log Z and expected part counts of instances with the same labels, flat; returns the first without a sequence, or -1."""
    for i in range(lengths.shape[0]):
        length, edges = lengths[i], lengths[i] * n_labels
        own, mu = scores[offsets[i] : offsets[i + 1]], mus[offsets[i] : offsets[i + 1]]
        for p in range(n_labels):
            for label in range(n_labels):
                trans[p, label] = own[edges + p * n_labels + label]
        for t in range(length):
            for label in range(n_labels):
                emissions[t, label] = own[t * n_labels + label]
        top, wide, holes = exponentiate(trans, n_labels, exp_trans)
        log_z = np.nan
        if not wide:
            log_z = scaled_pass(emissions, length, n_labels, exp_trans, top, holes, alpha, local, norm, marg, counts, work)
        if np.isnan(log_z):
            log_z = log_pass(emissions, length, n_labels, trans, alpha, marg, counts, work)
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
