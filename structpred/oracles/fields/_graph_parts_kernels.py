# mypy: ignore-errors
"""The parts that are on in a labelling of a graph, compiled."""

from structpred.runtime.jit import njit


@njit(cache=True, nogil=True)
def graph_parts(labels, edges, n_states, out):
    """One part per node, then one per edge; returns whether the labels are states."""
    n = labels.shape[0]
    for i in range(n):
        if not 0 <= labels[i] < n_states:
            return False
        out[i] = i * n_states + labels[i]
    for e in range(edges.shape[0]):
        pair = labels[edges[e, 0]] * n_states + labels[edges[e, 1]]
        out[n + e] = n * n_states + e * n_states * n_states + pair
    return True


@njit(cache=True, nogil=True)
def graph_parts_of_each(labels, edges, n_states, out):
    """`graph_parts` for a row of labels an instance, whatever they are."""
    n = labels.shape[1]
    for i in range(labels.shape[0]):
        for v in range(n):
            out[i, v] = v * n_states + labels[i, v]
        for e in range(edges.shape[0]):
            pair = labels[i, edges[e, 0]] * n_states + labels[i, edges[e, 1]]
            out[i, n + e] = n * n_states + e * n_states * n_states + pair
