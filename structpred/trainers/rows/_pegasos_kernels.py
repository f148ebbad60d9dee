# mypy: ignore-errors
"""Compiled mini-batch steps of Pegasos over CSR rows: w = scale v, of which a step changes what its rows touch."""

import numpy as np

from structpred.rows._column_kernels import best_point
from structpred.rows._scalar_kernels import dual_step
from structpred.runtime.jit import njit
from structpred.trainers.rows._sdca_kernels import draw, next_random

# what `numbers` holds: the scale, |v|^2, the sum of the scales of this block's iterates, their number, that of the block before
SCALE, SQUARE, SCALES, MASS, MASS_BEFORE = range(5)
#: below this scale v is written anew
SMALLEST = 1e-9
#: the kind of a loss of one score, beside those of structpred/rows/_column_kernels.py
SCALAR = -1


@njit(cache=True, nogil=True)
def draw_batch(places, size, state):
    """A random set of rows to the front of the permutation `places`; returns the random number after."""
    n = places.shape[0]
    for place in range(size):
        state = next_random(state)
        other = place + draw(state, n - place)
        places[other], places[place] = places[place], places[other]
    return state


@njit(cache=True, nogil=True)
def batch_scores(rows, batch, scale, table, z):
    """z_b = the scores of row batch_b at the weights scale * table."""
    indptr, indices, values = rows
    m = np.uint64(table.shape[1])
    for b in range(batch.shape[0]):
        i = batch[b]
        for j in range(m):
            z[b, j] = 0.0
        for e in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            f, x = np.uint64(indices[e]), scale * values[e]
            for j in range(m):
                z[b, j] += x * table[f, j]


@njit(cache=True, nogil=True)
def batch_slopes(loss, batch, z, p):
    """z_b becomes a subgradient of the loss of row batch_b at the scores z_b."""
    kind, k, duals, truths, costs = loss
    for b in range(batch.shape[0]):
        i = batch[b]
        if kind == SCALAR:
            z[b, 0] = -dual_step(0.0, z[b, 0], 0.0, duals[i, 0], duals[i, 1], duals[i, 2], duals[i, 3], duals[i, 4])
        else:
            best_point(kind, k, z[b], truths[i], costs, p)
            p[truths[i]] -= 1.0
            z[b] = p


@njit(cache=True, nogil=True)
def apply_batch(fixed, t, batch, slopes, table, u, numbers):
    """Lines 5 to 7 of the algorithm at step t: the gradient, the signs, the ball. Returns how many weights were added to."""
    (indptr, indices, values), shares, least, most, radius, lam = fixed
    size, m = batch.shape[0], table.shape[1]
    averaged = u.shape[0] > 0
    scale = numbers[SCALE] * (t - 1.0) / t if t > 1 else 1.0  # v is zero before the first step
    square, held, touched = numbers[SQUARE], numbers[SCALES], 0
    for b in range(size):  # line 5, with 1/k
        i = batch[b]
        factor = -shares[i] / (size * lam * t * scale)
        for j in range(m):
            coef = factor * slopes[b, j]
            if coef == 0.0:
                continue
            touched += indptr[i + 1] - indptr[i]
            for e in range(indptr[i], indptr[i + 1]):
                f, move = indices[e], coef * values[e]
                old = table[f, j]
                table[f, j] = old + move
                square += move * (2.0 * old + move)
                if averaged:
                    u[f, j] += held * move
    if least.shape[0] > 0:  # line 6: only weights that were added to can have a wrong sign
        for b in range(size):
            i = batch[b]
            for e in range(indptr[i], indptr[i + 1]):
                f = indices[e]
                for j in range(m):
                    old, at = table[f, j], f * m + j
                    new = min(max(old, least[at]), most[at])
                    if new != old:
                        table[f, j] = new
                        square += new * new - old * old
                        if averaged:
                            u[f, j] += held * (new - old)
    numbers[SQUARE] = square = max(square, 0.0)
    norm = scale * np.sqrt(square)
    numbers[SCALE] = scale * (radius / norm) if norm > radius else scale  # line 7
    return touched


@njit(cache=True, nogil=True)
def include(t, halves, table, u, before, numbers):
    """The present iterate enters the average; v is written anew where its scale is small. halves: blocks end at powers of two."""
    scale, averaged = numbers[SCALE], u.shape[0] > 0
    if scale < SMALLEST:
        for f in range(table.shape[0]):
            for j in range(table.shape[1]):
                if averaged:  # the sum of the block is  scales v - u
                    u[f, j] -= numbers[SCALES] * table[f, j]
                table[f, j] *= scale
        numbers[SQUARE] *= scale * scale
        numbers[SCALES], numbers[SCALE], scale = 0.0, 1.0, 1.0
    if not averaged:
        return
    numbers[SCALES] += scale
    numbers[MASS] += 1.0
    if halves and t & (t - 1) == 0:
        for f in range(table.shape[0]):
            for j in range(table.shape[1]):
                before[f, j] = numbers[SCALES] * table[f, j] - u[f, j]
                u[f, j] = 0.0
        numbers[MASS_BEFORE], numbers[MASS], numbers[SCALES] = numbers[MASS], 0.0, 0.0


@njit(cache=True, nogil=True)
def run(fixed, loss, first, steps, halves, places, seed, z, table, u, before, numbers):
    """Steps first..first + steps - 1, z.shape[0] rows each; returns how many weights were added to."""
    state, touched, p, batch = np.uint64(seed), 0, np.empty(z.shape[1]), places[: z.shape[0]]
    for t in range(first, first + steps):
        state = draw_batch(places, z.shape[0], state)  # line 4
        batch_scores(fixed[0], batch, numbers[SCALE], table, z)
        batch_slopes(loss, batch, z, p)
        touched += apply_batch(fixed, t, batch, z, table, u, numbers)
        include(t, halves, table, u, before, numbers)
    return touched
