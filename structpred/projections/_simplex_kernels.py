# mypy: ignore-errors
"""Compiled projection of a table on the simplex."""

import numpy as np

from structpred.runtime.jit import njit


@njit(cache=True, nogil=True)
def simplex_of_table(table, rows, columns, tau, scratch, row_sums, column_sums, out):
    """out = max(table + rows + columns - tau, 0) with the sum 1, its margins into row_sums and column_sums; returns tau.

    Newton's method on the sum, which falls and is convex in tau: from the left of the root it never leaves that side, the set
    of positive entries shrinks, and where it no longer does the step was exact. `tau` is where it starts, best that of a table
    nearby. Sums are kept by column, so that the loops over columns run several entries at a time.
    """
    m = out.shape[0]
    width = out.shape[1]
    sums = scratch[0]
    counts = scratch[1]
    left = False
    done = False
    before = np.inf
    while not done:
        sums[:] = 0.0
        counts[:] = 0.0
        for i in range(m):
            shift = rows[i] - tau
            for j in range(width):
                x = table[i, j] + shift + columns[j]
                sums[j] += x if x > 0.0 else 0.0
                counts[j] += 1.0 if x > 0.0 else 0.0
        total = 0.0
        n = 0.0
        for j in range(width):
            total += sums[j]
            n += counts[j]
        if n > 0.0:
            done = left and n >= before
            tau = tau + (total - 1.0) / n
            before = n if left else np.inf
        else:
            top = -np.inf
            for i in range(m):
                for j in range(width):
                    top = max(top, table[i, j] + rows[i] + columns[j])
            tau = top - 1.0
        left = True
    column_sums[:] = 0.0
    for i in range(m):
        shift = rows[i] - tau
        for j in range(width):
            x = table[i, j] + shift + columns[j]
            x = x if x > 0.0 else 0.0
            out[i, j] = x
            column_sums[j] += x
        s0 = 0.0
        s1 = 0.0
        s2 = 0.0
        s3 = 0.0
        j = 0
        while j + 4 <= width:
            s0 += out[i, j]
            s1 += out[i, j + 1]
            s2 += out[i, j + 2]
            s3 += out[i, j + 3]
            j += 4
        while j < width:
            s0 += out[i, j]
            j += 1
        row_sums[i] = (s0 + s1) + (s2 + s3)
    return tau
