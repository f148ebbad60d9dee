# mypy: ignore-errors
"""Compiled dual coordinate ascent for points that may carry both labels, each with a weight, where features are few."""

from structpred.runtime.jit import njit


@njit(cache=True, nogil=True)
def ascend(features, squares, upper, lower, beta, w, order):
    """One pass over the points in `order`: beta_i goes to the maximum of the dual along it; w = sum_i beta_i z_i is kept.

    The dual is sum_i min(2 upper_i - beta_i, 2 lower_i + beta_i) - 1/2 |w|^2, with -lower <= beta <= upper: along beta_i a
    concave function with one bend, at upper_i - lower_i.
    """
    width = features.shape[1]
    for i in order:
        row = features[i]
        h = 0.0
        for k in range(width):
            h += row[k] * w[k]
        kink, size = upper[i] - lower[i], max(squares[i], 1e-12)
        new = min(max(beta[i] + (1.0 - h) / size, -lower[i]), kink)
        if new == kink:
            new = min(max(beta[i] - (1.0 + h) / size, kink), upper[i])
        step = new - beta[i]
        if step != 0.0:
            beta[i] = new
            for k in range(width):
                w[k] += step * row[k]


@njit(cache=True, nogil=True)
def values(features, w, out):
    """out_i = <z_i, w>."""
    for i in range(features.shape[0]):
        total = 0.0
        for k in range(features.shape[1]):
            total += features[i, k] * w[k]
        out[i] = total


@njit(cache=True, nogil=True)
def bounds(upper, lower, beta, h):
    """(dual, primal) of h = Z w, with |w|^2 = beta' h."""
    dual = primal = 0.0
    for i in range(len(h)):
        half = 0.5 * beta[i] * h[i]
        dual += min(2.0 * upper[i] - beta[i], 2.0 * lower[i] + beta[i]) - half
        primal += half + upper[i] * max(0.0, 1.0 - h[i]) + lower[i] * max(0.0, 1.0 + h[i])
    return dual, primal
