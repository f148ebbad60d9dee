# mypy: ignore-errors
"""Compiled sums over all trees: log Z and arc marginals without a single subtraction of weights.

With w[m, h] = exp(score of the arc from head h to token m), let a walk go from each token m to head h with probability
w[m, h] / sum_h' w[m, h'], until it reaches the root 0. The matrix-tree theorem (Tutte 1948) says that Z is the determinant of
the walk's Laplacian; and row m of its inverse gives

    mu[m, h] = w[m, h] E[h, m] / sum_h' w[m, h'] E[h', m],   E[h, m] = P(the walk from h reaches 0 and does not meet m).

Determinants and inverses of Laplacians cancel catastrophically (a strong cycle of two tokens is enough). Eliminating tokens
as Grassmann, Taksar & Heyman (1985) do does not: token k leaves, and the walk between those that stay is the walk watched only
while it is there,

    a[i, j] <- a[i, j] + a[i, k] q[k, j],   q[k, j] = a[k, j] / d[k],   d[k] = sum over what stays, the root included, of a[k, j];

Z is the product of the d[k], and E[k, m] = q[k, 0] + sum_j q[k, j] E[j, m] for every m that stays. Positive numbers are added,
multiplied and divided only, so everything comes out with a relative error of about n^2 roundings at most, however
small it is and whatever the scores are (O'Cinneide 1993). E needs each m to stay once: the tokens are halved, each half
stays while the other leaves, and so on down to single tokens; in all O(n^3), about 4/3 n^3 multiplications.

One root: root arcs are made so improbable, by a common factor, that all weight lies on the trees with as few of them as possible.
The plain form looks afterwards whether that is one, to 1e-11. Where no arc is forbidden, more have at most e^-80 n^2; where
some are, arcs may have a trace of up to 1e-11 from such trees (far less, as a rule).

Two forms. The plain one uses float64 and sees to it that no product can leave its range: each factor is zero because an arc is
forbidden, or lies within limits. Otherwise it gives up, and the wide form (numbers with exponents of their own) takes over.
"""

import numpy as np

from structpred.oracles.trees._wide_kernels import LOG_BASE, ZERO, add_multiple, add_product, wide_exp, wide_sum, wide_value
from structpred.runtime.jit import njit

FORBIDDEN = -1e29
#: the plain form: probabilities between tokens, and those of reaching the root, are zero or not below these, so that
#: no product falls below 1e-300; and how far a token's scores may lie apart
LOW = 1e-100
LOW_ROOT = 1e-200
LOG_LOW = -150.0
#: single root: the factor of all root arcs, plain (its logarithm) and wide (its exponent)
FAINT = -230.0
FAINTEST = -(2.0**46)
#: the plain form is content if more than one root has no more probability than this
SEVERAL = 1e-11


@njit(cache=True, nogil=True)
def tree_marginals(scores, n, single_root, work, mu):
    """log Z over all trees of n tokens, minus infinity if there is none; the marginals into mu, n * (n + 1) like the scores.

    work: float64, at least 8 n + 130 rows and n + 1 columns. Scores at or below -1e29 forbid an arc. With a single root, n times
    the largest score in absolute value must not exceed 1e16. NaN where scores lie too far apart for the wide form.
    """
    n_rows = 4 * n + 65
    x = work[:n_rows]
    e = work[n_rows : 2 * n_rows]
    shifts = x[2 * n]
    total, root_shift = shift_scores(scores, n, single_root, shifts)
    if total == -np.inf:
        return total
    log_z = np.nan
    for form in range(0 if load_plain(scores, n, single_root, shifts, root_shift, x) else 1, 2):
        if form == 1:
            load_wide(scores, n, single_root, shifts, root_shift, x, e)
        log_z = sum_trees(n, single_root, form == 1, x, e, mu)  # one place that calls it: it is compiled into this function
        if not np.isnan(log_z):
            break
    return total + log_z


@njit(cache=True, nogil=True)
def shift_scores(scores, n, single_root, shifts):
    """What is taken off the scores of each token's arcs (off root arcs once more), so that the largest is 0; and their total.

    Returns (total, what is taken off root arcs). The total is minus infinity where a token has no head, or none has the root.
    """
    total = 0.0
    root_shift = -np.inf
    for m in range(n):
        row = scores[m * (n + 1) : (m + 1) * (n + 1)]
        top = FORBIDDEN
        for h in range(1 if single_root else 0, n + 1):
            if row[h] > top and h != m + 1:
                top = row[h]
        if top == FORBIDDEN:
            top = row[0]
        if not top > FORBIDDEN:
            return -np.inf, 0.0
        shifts[m] = top
        total += top
        if row[0] > FORBIDDEN:
            root_shift = max(root_shift, row[0] - top)
    if not single_root and root_shift > -np.inf:
        root_shift = 0.0
    return total + root_shift, root_shift


@njit(cache=True, nogil=True)
def load_plain(scores, n, single_root, shifts, root_shift, w):
    """w[m, h - 1] = exp(score), shifted, the root last; False where one is out of range."""
    faint = FAINT if single_root else 0.0
    for m in range(n):
        row = scores[m * (n + 1) : (m + 1) * (n + 1)]
        target = w[m]
        for h in range(n + 1):
            x = row[h] - shifts[m]
            extra = 0.0
            if h == 0:
                x -= root_shift
                extra = faint
            at = n if h == 0 else h - 1
            if row[h] <= FORBIDDEN or h == m + 1:
                target[at] = 0.0
            elif x >= LOG_LOW:
                target[at] = np.exp(x + extra)
            else:
                return False
    return True


@njit(cache=True, nogil=True)
def load_wide(scores, n, single_root, shifts, root_shift, x, e):
    """As load_plain, as pairs."""
    for m in range(n):
        for h in range(n + 1):
            s = scores[m * (n + 1) + h]
            at = n if h == 0 else h - 1
            if s <= FORBIDDEN or h == m + 1:
                x[m, at] = 0.0
                e[m, at] = ZERO
            else:
                x[m, at], e[m, at] = wide_exp(s - shifts[m] - (root_shift if h == 0 else 0.0))
                if h == 0 and single_root:
                    e[m, at] += FAINTEST


@njit(cache=True, nogil=True)
def enter(stack, depth, top, free, lo, hi):
    """Begin with the tokens lo..hi - 1."""
    stack[0, depth] = top
    stack[1, depth] = free
    stack[2, depth] = lo
    stack[3, depth] = hi
    stack[4, depth] = 0


@njit(cache=True, nogil=True)
def sum_trees(n, single_root, wide, x, e, mu):
    """log Z and the marginals mu for the weights in the first n rows of x (and e); NaN where only the wide form will do.

    Rows n to 2 n hold E; from row 2 n + 1 on, each range of tokens that is being halved has a row per token.
    """
    stack = np.empty((5, 64), np.int64)  # rows of the walk, next free row, first token, token after the last, halves done
    depth = 0
    enter(stack, depth, 0, 2 * n + 1, 0, n)
    log_z = 0.0
    exponents = 0.0
    while depth >= 0:
        top = stack[0, depth]
        free = stack[1, depth]
        lo = stack[2, depth]
        hi = stack[3, depth]
        done = stack[4, depth]
        mid = (lo + hi) // 2
        if hi - lo == 1:
            if lo == 0:
                log_z += np.log(x[top, n]) if x[top, n] > 0.0 else -np.inf
                exponents += e[top, n] if wide else 0.0
                if log_z == -np.inf or (wide and single_root and exponents < 1.5 * FAINTEST):
                    return -np.inf
            x[n + lo, lo] = 0.0
            if wide:
                e[n + lo, lo] = ZERO
            depth -= 1
            continue
        # what was asked of a half is done, and the rows of the tokens that left for it are still there
        if done > 0 and wide:
            wide_return(n, x, e, free, lo, mid, hi, done == 1)
        elif done > 0 and not plain_return(n, x, free, lo, mid, hi, done == 1):
            return np.nan
        if done == 2:
            depth -= 1
            continue
        first = done == 0
        log_part, part = (
            wide_leave(n, x, e, top, free, lo, mid, hi, first)
            if wide
            else (plain_leave(n, x, top, free, lo, mid, hi, first), 0.0)
        )
        if not log_part > -np.inf:
            return log_part
        if first and lo == 0:
            log_z += log_part
            exponents += part
        stack[4, depth] = done + 1
        depth += 1
        if first:
            enter(stack, depth, free, free + hi - lo, lo, mid)
        else:
            enter(stack, depth, free + mid - lo, free + hi - lo, mid, hi)
    if wide:
        wide_finish(n, x, e, mu)
        return log_z + (exponents - FAINTEST if single_root else exponents) * LOG_BASE
    if not plain_finish(n, single_root, x, mu):
        return np.nan
    return log_z - FAINT if single_root else log_z


@njit(cache=True, nogil=True)
def plain_leave(n, x, top, free, lo, mid, hi, first):
    """Of the tokens lo..hi - 1 the second half leaves, from its end on, or (not `first`) the first half, from its start on.

    The walk is in rows top.. and goes, with q for those that left, to rows free... Returns the log of the product of all d.
    """
    for i in range(hi - lo):
        source = x[top + i, lo:hi]
        target = x[free + i, lo:hi]
        for j in range(len(target)):
            target[j] = source[j]
        x[free + i, n] = x[top + i, n]
    log_d = 0.0
    for step in range(hi - mid if first else mid - lo):
        k = hi - 1 - step if first else lo + step
        start, stop = (lo, k) if first else (k + 1, hi)
        q = x[free + k - lo, start:stop]
        total = x[free + k - lo, n]
        for j in range(len(q)):
            total += q[j]
        if total == 0.0:
            return -np.inf
        log_d += np.log(total)
        scale = 1.0 / total
        root = x[free + k - lo, n] * scale
        x[free + k - lo, n] = root
        low = root >= LOW_ROOT or root == 0.0
        for j in range(len(q)):
            q[j] *= scale
            low &= q[j] >= LOW or q[j] == 0.0
        if not low:
            return np.nan
        for i in range(start, stop):
            f = x[free + i - lo, k]
            if f == 0.0:
                continue
            if f < LOW:
                return np.nan
            target = x[free + i - lo, start:stop]
            for j in range(len(q)):
                target[j] += f * q[j]
            x[free + i - lo, n] += f * root
    return log_d


@njit(cache=True, nogil=True)
def plain_return(n, x, free, lo, mid, hi, first):
    """E[k, m] for the tokens k that left, in reverse, and the tokens m that stayed; False where one is out of range."""
    left, right = (lo, mid) if first else (mid, hi)
    inside = True
    for step in range(hi - mid if first else mid - lo):
        k = mid + step if first else mid - 1 - step
        start, stop = (lo, k) if first else (k + 1, hi)
        row = x[n + k, left:right]
        for m in range(len(row)):
            row[m] = x[free + k - lo, n]
        for j in range(start, stop):
            f = x[free + k - lo, j]
            if f > 0.0:
                other = x[n + j, left:right]
                for m in range(len(row)):
                    row[m] += f * other[m]
        for m in range(len(row)):
            inside &= row[m] >= LOW_ROOT or row[m] == 0.0
    return inside


@njit(cache=True, nogil=True)
def plain_finish(n, single_root, x, mu):
    """Marginals from weights and E. False where a single root is required and more than one has some probability."""
    roots = 0.0
    for m in range(n):
        row = mu[m * (n + 1) : (m + 1) * (n + 1)]
        row[0] = x[m, n]
        total = row[0]
        for h in range(n):
            row[h + 1] = x[m, h] * x[n + h, m]
            total += row[h + 1]
        for h in range(n + 1):
            row[h] *= 1.0 / total
        roots += row[0]
    return not single_root or roots - 1.0 <= SEVERAL


@njit(cache=True, nogil=True)
def wide_leave(n, x, e, top, free, lo, mid, hi, first):
    """As plain_leave; returns the sum of the logarithms of the x of all d, and of their exponents."""
    for i in range(hi - lo):
        for j in range(lo, hi):
            x[free + i, j] = x[top + i, j]
            e[free + i, j] = e[top + i, j]
        x[free + i, n] = x[top + i, n]
        e[free + i, n] = e[top + i, n]
    log_d = 0.0
    exponents = 0.0
    for step in range(hi - mid if first else mid - lo):
        k = hi - 1 - step if first else lo + step
        start, stop = (lo, k) if first else (k + 1, hi)
        at = free + k - lo
        q_x = x[at, start:stop]
        q_e = e[at, start:stop]
        d_x, d_e = wide_sum(q_x, q_e)
        d_x, d_e = add_product(d_x, d_e, x[at, n], e[at, n])
        if d_x == 0.0:
            return -np.inf, 0.0
        log_d += np.log(d_x)
        exponents += d_e
        scale = 1.0 / d_x
        for j in range(len(q_x)):
            q_x[j], q_e[j] = add_product(0.0, ZERO, q_x[j] * scale, q_e[j] - d_e)
        x[at, n], e[at, n] = add_product(0.0, ZERO, x[at, n] * scale, e[at, n] - d_e)
        for i in range(start, stop):
            row = free + i - lo
            f_x = x[row, k]
            f_e = e[row, k]
            if f_x > 0.0:
                add_multiple(x[row, start:stop], e[row, start:stop], f_x, f_e, q_x, q_e)
                x[row, n], e[row, n] = add_product(x[row, n], e[row, n], f_x * x[at, n], f_e + e[at, n])
    return log_d, exponents


@njit(cache=True, nogil=True)
def wide_return(n, x, e, free, lo, mid, hi, first):
    """As plain_return, and never out of range."""
    left, right = (lo, mid) if first else (mid, hi)
    for step in range(hi - mid if first else mid - lo):
        k = mid + step if first else mid - 1 - step
        start, stop = (lo, k) if first else (k + 1, hi)
        at = free + k - lo
        for m in range(left, right):
            x[n + k, m] = x[at, n]
            e[n + k, m] = e[at, n]
        for j in range(start, stop):
            if x[at, j] > 0.0:
                add_multiple(
                    x[n + k, left:right], e[n + k, left:right], x[at, j], e[at, j], x[n + j, left:right], e[n + j, left:right]
                )


@njit(cache=True, nogil=True)
def wide_finish(n, x, e, mu):
    """Marginals from weights and E, both pairs."""
    for m in range(n):
        row = mu[m * (n + 1) : (m + 1) * (n + 1)]
        total_x = x[m, n]
        total_e = e[m, n]
        for h in range(n):
            total_x, total_e = add_product(total_x, total_e, x[m, h] * x[n + h, m], e[m, h] + e[n + h, m])
        scale = 1.0 / total_x
        row[0] = wide_value(x[m, n] * scale, e[m, n] - total_e)
        for h in range(n):
            row[h + 1] = wide_value(x[m, h] * x[n + h, m] * scale, e[m, h] + e[n + h, m] - total_e)
