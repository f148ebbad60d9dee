# mypy: ignore-errors
"""Compiled projection onto permutahedra."""

import numpy as np

from structpred.runtime.jit import njit


@njit(cache=True, nogil=True)
def project_rankings(points, offsets, out):
    """The nearest point of the permutahedron of 0, 1, ..., n-1 to each point, flat (Blondel et al. 2020, proposition 3).

    With s the point in falling order, the nearest point is s - v where v does not rise and is nearest to s - (n-1, ..., 0):
    isotonic regression, by pooling neighbours that violate the order.
    """
    for r in range(offsets.shape[0] - 1):
        point = points[offsets[r] : offsets[r + 1]]
        n = point.shape[0]
        order = np.argsort(-point, kind="mergesort")
        means, sizes, blocks = np.empty(n), np.empty(n, np.int64), 0
        for k in range(n):
            means[blocks], sizes[blocks] = point[order[k]] - (n - 1 - k), 1
            blocks += 1
            while blocks > 1 and means[blocks - 2] <= means[blocks - 1]:
                size = sizes[blocks - 2] + sizes[blocks - 1]
                means[blocks - 2] += (means[blocks - 1] - means[blocks - 2]) * (sizes[blocks - 1] / size)
                sizes[blocks - 2] = size
                blocks -= 1
        k = 0
        for b in range(blocks):
            for _ in range(sizes[b]):
                out[offsets[r] + order[k]] = point[order[k]] - means[b]
                k += 1
