# mypy: ignore-errors
"""Compiled sums over all projective trees: Eisner's tables with sums for maxima, then the same sums differentiated backwards.

Every projective tree has one derivation, so RIGHT[0, n] is Z. Only sums and products of positive numbers, each with an exponent
of its own (`_wide_kernels`): nothing overflows, vanishes or cancels, and all marginals have small relative errors.
Tables as in `_projective_kernels`, each followed, four further on, by that of the derivatives of Z by it, over Z.
"""

import numpy as np

from structpred.oracles.trees._projective_kernels import LEFT, OPEN_LEFT, OPEN_RIGHT, RIGHT
from structpred.oracles.trees._wide_kernels import ZERO, add_multiple, add_product, wide_dot, wide_exp, wide_log, wide_value
from structpred.runtime.jit import njit

FORBIDDEN = -1e29
BY = 4


@njit(cache=True, nogil=True, borrows=True)
def weight(scores, n, head, token):
    """exp of the score of the arc from head to token, as a pair."""
    s = scores[(token - 1) * (n + 1) + head]
    if s <= FORBIDDEN:
        return 0.0, ZERO
    return wide_exp(s)


@njit(cache=True, nogil=True, borrows=True)
def times(a, b):
    """The product of two pairs."""
    return add_product(0.0, ZERO, a[0] * b[0], a[1] + b[1])


@njit(cache=True, nogil=True, borrows=True)
def add(x, e, table, i, j, pair):
    """table[i, j] += pair."""
    x[table, i, j], e[table, i, j] = add_product(x[table, i, j], e[table, i, j], pair[0], pair[1])


@njit(cache=True, nogil=True, borrows=True)
def prepare(scores, n, x, e):
    """Zeros everywhere, ones in the spans of one position; below the diagonal of OPEN tables the arcs' weights."""
    for table in range(8):
        for i in range(n + 1):
            for j in range(i, n + 1):
                x[table, i, j] = 0.0
                e[table, i, j] = ZERO
    for i in range(n + 1):
        for table in (RIGHT, LEFT):
            x[table, i, i] = 1.0
            e[table, i, i] = 0.0
        for j in range(i + 1, n + 1):
            x[OPEN_RIGHT, j, i], e[OPEN_RIGHT, j, i] = weight(scores, n, i, j)
            if i > 0:
                x[OPEN_LEFT, j, i], e[OPEN_LEFT, j, i] = weight(scores, n, j, i)


@njit(cache=True, nogil=True, borrows=True)
def hand_on_sum(x, e, target, i, start, stop, table, j, factor):
    """target[i, start:stop] += factor * table[j, start:stop]."""
    if factor[0] > 0.0 and start < stop:
        add_multiple(
            x[target, i, start:stop],
            e[target, i, start:stop],
            factor[0],
            factor[1],
            x[table, j, start:stop],
            e[table, j, start:stop],
        )


@njit(cache=True, nogil=True, borrows=True)
def fill_sums(n, first, x, e):
    """The tables of spans that begin at position `first` or later."""
    stop = n + 1
    for i in range(n, first - 1, -1):
        if i < n:
            hand_on_sum(x, e, OPEN_RIGHT, i, i + 1, stop, LEFT, i + 1, (1.0, 0.0))
        for j in range(i + 1, stop):
            split = (x[OPEN_RIGHT, i, j], e[OPEN_RIGHT, i, j])
            rightward = times(split, (x[OPEN_RIGHT, j, i], e[OPEN_RIGHT, j, i]))
            x[OPEN_RIGHT, i, j], e[OPEN_RIGHT, i, j] = rightward
            add(x, e, RIGHT, i, j, rightward)
            hand_on_sum(x, e, RIGHT, i, j + 1, stop, RIGHT, j, rightward)
            if j < n:
                hand_on_sum(x, e, OPEN_RIGHT, i, j + 1, stop, LEFT, j + 1, (x[RIGHT, i, j], e[RIGHT, i, j]))
            if i > 0:
                leftward = times(split, (x[OPEN_LEFT, j, i], e[OPEN_LEFT, j, i]))
                x[OPEN_LEFT, i, j], e[OPEN_LEFT, i, j] = leftward
                add(x, e, LEFT, i, j, leftward)
                hand_on_sum(x, e, LEFT, i, j + 1, stop, OPEN_LEFT, j, (x[LEFT, i, j], e[LEFT, i, j]))


@njit(cache=True, nogil=True, borrows=True)
def collect(x, e, target, i, j, stop, row, table, k):
    """derivative of target[i, j] += derivatives of row[i, j + 1:stop] * table[k, j + 1:stop]."""
    if j + 1 < stop:
        found = wide_dot(
            x[row + BY, i, j + 1 : stop], e[row + BY, i, j + 1 : stop], x[table, k, j + 1 : stop], e[table, k, j + 1 : stop]
        )
        add(x, e, target + BY, i, j, found)


@njit(cache=True, nogil=True, borrows=True)
def spread_sums(n, first, x, e, mu):
    """Derivatives of all tables, in the reverse of the order in which they were filled, and the marginals between tokens."""
    stop = n + 1
    for i in range(first, n):
        for j in range(n, i, -1):
            own = (x[OPEN_RIGHT, i, j], e[OPEN_RIGHT, i, j])
            # the derivative by the sum of splits is kept where that by OPEN_RIGHT would be: nothing else needs it
            if j < n:
                collect(x, e, RIGHT, i, j, stop, OPEN_RIGHT, LEFT, j + 1)
                hand_on_sum(x, e, LEFT + BY, j + 1, j + 1, stop, OPEN_RIGHT + BY, i, (x[RIGHT, i, j], e[RIGHT, i, j]))
            collect(x, e, OPEN_RIGHT, i, j, stop, RIGHT, RIGHT, j)
            add(x, e, OPEN_RIGHT + BY, i, j, (x[RIGHT + BY, i, j], e[RIGHT + BY, i, j]))
            hand_on_sum(x, e, RIGHT + BY, j, j + 1, stop, RIGHT + BY, i, own)
            by = (x[OPEN_RIGHT + BY, i, j], e[OPEN_RIGHT + BY, i, j])
            share = times(own, by)
            mu[(j - 1) * stop + i] = wide_value(share[0], share[1])
            total = times(by, (x[OPEN_RIGHT, j, i], e[OPEN_RIGHT, j, i]))
            if i > 0:
                collect(x, e, LEFT, i, j, stop, LEFT, OPEN_LEFT, j)
                hand_on_sum(x, e, OPEN_LEFT + BY, j, j + 1, stop, LEFT + BY, i, (x[LEFT, i, j], e[LEFT, i, j]))
                add(x, e, OPEN_LEFT + BY, i, j, (x[LEFT + BY, i, j], e[LEFT + BY, i, j]))
                by = (x[OPEN_LEFT + BY, i, j], e[OPEN_LEFT + BY, i, j])
                share = times(by, (x[OPEN_LEFT, i, j], e[OPEN_LEFT, i, j]))
                mu[(i - 1) * stop + j] = wide_value(share[0], share[1])
                more = times(by, (x[OPEN_LEFT, j, i], e[OPEN_LEFT, j, i]))
                total = add_product(total[0], total[1], more[0], more[1])
            x[OPEN_RIGHT + BY, i, j], e[OPEN_RIGHT + BY, i, j] = total
        hand_on_sum(x, e, LEFT + BY, i + 1, i + 1, stop, OPEN_RIGHT + BY, i, (1.0, 0.0))


@njit(cache=True, nogil=True, borrows=True)
def projective_marginals(scores, n, single_root, x, e, mu):
    """log Z over all projective trees of n tokens, minus infinity if there is none; the marginals into mu (zeros at first).

    x, e: scratch of shape (8, n + 1, n + 1) at least. Scores at or below -1e29 forbid an arc.
    """
    prepare(scores, n, x, e)
    first = 1 if single_root else 0
    fill_sums(n, first, x, e)
    z = (0.0, ZERO) if single_root else (x[RIGHT, 0, n], e[RIGHT, 0, n])
    for r in range(1, n + 1 if single_root else 1):
        both = times((x[LEFT, 1, r], e[LEFT, 1, r]), (x[RIGHT, r, n], e[RIGHT, r, n]))
        both = times(both, weight(scores, n, 0, r))
        z = add_product(z[0], z[1], both[0], both[1])
    if z[0] == 0.0:
        return -np.inf
    inverse = add_product(0.0, ZERO, 1.0 / z[0], -z[1])
    if not single_root:
        x[RIGHT + BY, 0, n], e[RIGHT + BY, 0, n] = inverse
    for r in range(1, n + 1 if single_root else 1):
        by = times(inverse, weight(scores, n, 0, r))
        before = (x[LEFT, 1, r], e[LEFT, 1, r])
        after = (x[RIGHT, r, n], e[RIGHT, r, n])
        add(x, e, LEFT + BY, 1, r, times(by, after))
        add(x, e, RIGHT + BY, r, n, times(by, before))
        share = times(times(by, before), after)
        mu[(r - 1) * (n + 1)] = wide_value(share[0], share[1])
    spread_sums(n, first, x, e, mu)
    return wide_log(z[0], z[1])
