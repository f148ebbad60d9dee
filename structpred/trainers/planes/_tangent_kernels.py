# mypy: ignore-errors
"""The mean of two tangents in two passes over long vectors; there is none in between."""

import numpy as np

from structpred.core._product_kernels import WIDTH, folded
from structpred.runtime.jit import njit


@njit(cache=True, nogil=True)
def products(slope, w, gradient, strength):
    """<w, w>, <new, w>, <slope, new - slope> and |new - slope|^2, where new = gradient - strength w; added up as `dot` does."""
    square, rest, along, length = np.zeros(WIDTH), np.zeros(WIDTH), np.zeros(WIDTH), np.zeros(WIDTH)
    whole = w.shape[0] - w.shape[0] % WIDTH
    for start in range(0, whole, WIDTH):
        a, x, g = slope[start : start + WIDTH], w[start : start + WIDTH], gradient[start : start + WIDTH]
        for k in range(WIDTH):
            new = g[k] - strength * x[k]
            direction = new - a[k]
            square[k] += x[k] * x[k]
            rest[k] += new * x[k]
            along[k] += a[k] * direction
            length[k] += direction * direction
    for j in range(whole, w.shape[0]):
        k = j - whole
        new = gradient[j] - strength * w[j]
        direction = new - slope[j]
        square[k] += w[j] * w[j]
        rest[k] += new * w[j]
        along[k] += slope[j] * direction
        length[k] += direction * direction
    return folded(square), folded(rest), folded(along), folded(length)


@njit(cache=True, nogil=True)
def move(slope, w, gradient, strength, share):
    """slope += share (new - slope)."""
    for k in range(slope.shape[0]):
        slope[k] += share * ((gradient[k] - strength * w[k]) - slope[k])
