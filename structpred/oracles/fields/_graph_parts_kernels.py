# mypy: ignore-errors
"""The parts that are on in a labelling of a graph, compiled."""

from structpred.runtime.jit import njit


@njit(cache=True, nogil=True, borrows=True)
def graph_parts(labels, edges, n_states, out):
    """One part per node, then one per edge; returns whether the labels are states."""
    n = labels.shape[0]
    are_states = True
    for i in range(n):
        are_states &= 0 <= labels[i] < n_states
        out[i] = i * n_states + labels[i]
    for e in range(edges.shape[0]):
        pair = labels[edges[e, 0]] * n_states + labels[edges[e, 1]]
        out[n + e] = n * n_states + e * n_states * n_states + pair
    return are_states


@njit(cache=True, nogil=True, borrows=True)
def graph_parts_of_each(labels, edges, n_states, out):
    """`graph_parts` for a row of labels an instance, whatever they are."""
    for i in range(labels.shape[0]):
        graph_parts(labels[i], edges, n_states, out[i])
