# mypy: ignore-errors
"""Tables of the rows of a shard, added to that of all."""

from structpred.runtime.jit import njit


@njit(cache=True, nogil=True)
def add_rows(out, rows, change):
    """out[rows[j]] += change[j]; no copy is made of either."""
    for j in range(rows.shape[0]):
        into, row = out[rows[j]], change[j]
        for k in range(row.shape[0]):
            into[k] += row[k]
