# mypy: ignore-errors
"""Compiled arithmetic with positive numbers of any size: x * 2^(256 e), with 2^-128 <= x < 2^128 and e a whole float64.

Logarithms would do as well, but cost an exponential and a logarithm an addition and lose digits as they grow; here each
operation rounds as float64 does. Zero is x = 0 with the exponent ZERO, which every other number dwarfs. Nothing is subtracted.
(Smith, Olver & Lozier 1981, extended-range arithmetic.)
"""

import numpy as np

from structpred.runtime.jit import njit

ZERO = -1e18
HIGH = 2.0**128
LOW = 2.0**-128
UP = 2.0**256
DOWN = 2.0**-256
#: log 2^256 = LOG_HEAD + LOG_TAIL; the head has 20 digits, so that whole multiples of it below 2^33 are exact
LOG_BASE = 177.445678223346
LOG_HEAD = 177.445556640625
LOG_TAIL = 0.00012158272099921081


@njit(cache=True, nogil=True, borrows=True)
def wide_exp(s):
    """exp(s) as a pair (x, e)."""
    e = np.rint(s / LOG_BASE)
    return np.exp((s - e * LOG_HEAD) - e * LOG_TAIL), e


@njit(cache=True, nogil=True, borrows=True)
def wide_log(x, e):
    """log of a pair."""
    return np.log(x) + e * LOG_BASE if x > 0.0 else -np.inf


@njit(cache=True, nogil=True, borrows=True)
def add_product(x, e, px, pe):
    """(x, e) + (px, pe), where px may be a product of two numbers in range: it need not be in range itself."""
    d = pe - e
    scale = 1.0 if d == 0.0 else (DOWN if abs(d) == 1.0 else 0.0)
    out = px + x * scale if d >= 0.0 else x + px * scale
    top = pe if d >= 0.0 else e
    shift = -1.0 if out < LOW else (1.0 if out >= HIGH else 0.0)
    scale = UP if out < LOW else (DOWN if out >= HIGH else 1.0)
    return out * scale, top + shift


@njit(cache=True, nogil=True, borrows=True)
def add_multiple(row_x, row_e, fx, fe, q_x, q_e):
    """row += f * q, for rows of the same length."""
    for j in range(len(row_x)):
        row_x[j], row_e[j] = add_product(row_x[j], row_e[j], fx * q_x[j], fe + q_e[j])


@njit(cache=True, nogil=True, borrows=True)
def wide_dot(a_x, a_e, b_x, b_e):
    """Sum of a * b; terms that lie 2^-256 or more below the largest are left out."""
    top = ZERO
    for j in range(len(a_x)):
        e = a_e[j] + b_e[j]
        top = e if e > top and a_x[j] * b_x[j] > 0.0 else top
    total = 0.0
    for j in range(len(a_x)):
        d = a_e[j] + b_e[j] - top
        scale = 1.0 if d == 0.0 else (DOWN if d == -1.0 else (DOWN * DOWN if d == -2.0 else 0.0))
        total += a_x[j] * b_x[j] * scale
    return add_product(0.0, ZERO, total, top)


@njit(cache=True, nogil=True)
def wide_sum(a_x, a_e):
    """Sum of a row; terms that lie 2^-256 or more below the largest are left out."""
    top = ZERO
    for j in range(len(a_x)):
        top = a_e[j] if a_e[j] > top and a_x[j] > 0.0 else top
    total = 0.0
    for j in range(len(a_x)):
        d = a_e[j] - top
        total += a_x[j] * (1.0 if d == 0.0 else (DOWN if d == -1.0 else 0.0))
    return add_product(0.0, ZERO, total, top)


@njit(cache=True, nogil=True, borrows=True)
def wide_value(x, e):
    """The float64 that a number of at most about one is; x need not be in range."""
    x, e = add_product(0.0, ZERO, x, e)
    if e == 0.0:
        return x
    if e == 1.0:
        return x * UP
    if e < -4.0:
        return 0.0
    while e < 0.0:
        x *= DOWN
        e += 1.0
    return x
