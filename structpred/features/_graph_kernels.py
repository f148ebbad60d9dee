# mypy: ignore-errors
"""Compiled scoring of graphs: feature rows of nodes and edges times weight tables. All sums are float64.

nodes (N, 2): feature row (counted from `row`) and weight table of a node. edges (E, 3): feature row (from `edge_row`), table, and
1 where the table is meant the other way round. columns (2, K * K): the table's column of each pair of states, and the same with
the two states swapped. `start`: where the edge tables begin in the flat weights.

What goes together comes as one tuple: table (n_states, columns, width, start), node_side (nodes, row, indptr, indices, values, d)
and edge_side (edges, edge_row and the same four, which are the feature rows and their number of columns).
"""

import numpy as np

from structpred.core._sparse_kernels import coalesce
from structpred.runtime.jit import njit


@njit(cache=True, nogil=True)
def score_graph(w, table, node_side, edge_side, out):
    """out = theta: n * K node scores, then E * K^2 edge scores."""
    n_states, columns, width, start = table
    nodes, row, indptr, indices, values, d = node_side
    edges, edge_row, e_indptr, e_indices, e_values, e_d = edge_side
    n = nodes.shape[0]
    for v in range(n):
        r = row + nodes[v, 0]
        base = nodes[v, 1] * d
        if n_states == 2:
            off = 0.0
            on = 0.0
            for k in range(indptr[r], indptr[r + 1]):
                at = (base + indices[k]) * 2
                off += values[k] * np.float64(w[at])
                on += values[k] * np.float64(w[at + 1])
            out[2 * v] = off
            out[2 * v + 1] = on
        else:
            target = out[v * n_states : (v + 1) * n_states]
            target[:] = 0.0
            for k in range(indptr[r], indptr[r + 1]):
                at = (base + indices[k]) * n_states
                x = values[k]
                for a in range(n_states):
                    target[a] += x * np.float64(w[at + a])
    pairs = n_states * n_states
    for e in range(edges.shape[0]):
        r = edge_row + edges[e, 0]
        base = edges[e, 1] * e_d
        column = columns[edges[e, 2]]
        target = out[n * n_states + e * pairs : n * n_states + (e + 1) * pairs]
        target[:] = 0.0
        straight = width == pairs and edges[e, 2] == 0  # a table of its own for each pair, in the order of the pairs
        for k in range(e_indptr[r], e_indptr[r + 1]):
            at = start + (base + e_indices[k]) * width
            x = e_values[k]
            if straight:
                own = w[at : at + pairs]
                for s in range(pairs):
                    target[s] += x * np.float64(own[s])
            else:
                for s in range(pairs):
                    target[s] += x * np.float64(w[at + column[s]])


@njit(cache=True, nogil=True)
def count_pairs(parts, table, node_side, edge_side):
    """How many (index, value) pairs emit_graph writes."""
    n_states = table[0]
    nodes, row, indptr = node_side[:3]
    edges, edge_row, e_indptr = edge_side[:3]
    total = 0
    n_node_parts = nodes.shape[0] * n_states
    for j in range(parts.shape[0]):
        if parts[j] < n_node_parts:
            r = row + nodes[parts[j] // n_states, 0]
            total += indptr[r + 1] - indptr[r]
        else:
            r = edge_row + edges[(parts[j] - n_node_parts) // (n_states * n_states), 0]
            total += e_indptr[r + 1] - e_indptr[r]
    return total


@njit(cache=True, nogil=True)
def emit_graph(parts, counts, table, node_side, edge_side, idx, val):
    """Psi^T mu as pairs; returns whether they are sorted and unique.

    Parts of one node that follow each other are written feature by feature: with sorted parts and a table a node (labels of one
    example) the pairs come out sorted.
    """
    n_states, columns, width, start = table
    nodes, row, indptr, indices, values, d = node_side
    edges, edge_row, e_indptr, e_indices, e_values, e_d = edge_side
    n = 0
    j = 0
    n_node_parts = nodes.shape[0] * n_states
    pairs = n_states * n_states
    while j < parts.shape[0]:
        if parts[j] < n_node_parts:
            item = parts[j] // n_states
            stop = j + 1
            while stop < parts.shape[0] and parts[stop] < n_node_parts and parts[stop] // n_states == item:
                stop += 1
            r = row + nodes[item, 0]
            base = nodes[item, 1] * d
            for k in range(indptr[r], indptr[r + 1]):
                for m in range(j, stop):
                    idx[n] = (base + indices[k]) * n_states + parts[m] % n_states
                    val[n] = counts[m] * values[k]
                    n += 1
        else:
            item = (parts[j] - n_node_parts) // pairs
            stop = j + 1
            while stop < parts.shape[0] and (parts[stop] - n_node_parts) // pairs == item:
                stop += 1
            r = edge_row + edges[item, 0]
            base = edges[item, 1] * e_d
            column = columns[edges[item, 2]]
            for k in range(e_indptr[r], e_indptr[r + 1]):
                for m in range(j, stop):
                    idx[n] = start + (base + e_indices[k]) * width + column[(parts[m] - n_node_parts) % pairs]
                    val[n] = counts[m] * e_values[k]
                    n += 1
        j = stop
    ascending = True
    for k in range(1, n):
        ascending &= idx[k] > idx[k - 1]
    return ascending


@njit(cache=True, nogil=True)
def without_zeros(idx, val):
    """Drop pairs with the value zero, in place; returns the new length."""
    m = 0
    for k in range(idx.shape[0]):
        if val[k] != 0.0:
            idx[m] = idx[k]
            val[m] = val[k]
            m += 1
    return m


@njit(cache=True, nogil=True)
def combine_graph(parts, counts, dim, table, node_side, edge_side):
    """(whether that was done, Psi^T mu as sorted unique pairs): not done for many pairs of parts that do not ascend.

    Many pairs are added up in a dense vector, which is cheaper than sorting; either way equal indices add up in the same order.
    """
    size = count_pairs(parts, table, node_side, edge_side)
    ascending = True
    for j in range(1, parts.shape[0]):
        ascending &= parts[j] > parts[j - 1]
    done = ascending or size <= dim
    if not done:
        size = 0
    idx = np.empty(size, np.int64)
    val = np.empty(size)
    n = 0
    if done and ascending and size > dim // 8:
        emit_graph(parts, counts, table, node_side, edge_side, idx, val)
        dense = np.zeros(dim)
        for k in range(size):
            dense[idx[k]] += val[k]
        if size < dim:
            idx = np.empty(dim, np.int64)
            val = np.empty(dim)
        for j in range(dim):
            if dense[j] != 0.0:
                idx[n] = j
                val[n] = dense[j]
                n += 1
    elif done:
        if emit_graph(parts, counts, table, node_side, edge_side, idx, val):
            n = without_zeros(idx, val)
        else:
            n = coalesce(idx, val, size, np.empty(size, np.int64), np.empty(size))
    return done, idx[:n], val[:n]


@njit(cache=True, nogil=True)
def add_graph(mu, coef, table, node_side, edge_side, out):
    """out += coef * Psi^T mu for dense mu; returns by how much |out|^2 grew."""
    n_states, columns, width, start = table
    nodes, row, indptr, indices, values, d = node_side
    edges, edge_row, e_indptr, e_indices, e_values, e_d = edge_side
    n = nodes.shape[0]
    grown = 0.0
    for v in range(n):
        r = row + nodes[v, 0]
        base = nodes[v, 1] * d
        for k in range(indptr[r], indptr[r + 1]):
            at = (base + indices[k]) * n_states
            x = coef * values[k]
            for a in range(n_states):
                change = x * mu[v * n_states + a]
                grown += change * (2.0 * out[at + a] + change)
                out[at + a] += change
    pairs = n_states * n_states
    for e in range(edges.shape[0]):
        r = edge_row + edges[e, 0]
        base = edges[e, 1] * e_d
        column = columns[edges[e, 2]]
        first = n * n_states + e * pairs
        for k in range(e_indptr[r], e_indptr[r + 1]):
            at = start + (base + e_indices[k]) * width
            x = coef * e_values[k]
            for s in range(pairs):
                change = x * mu[first + s]
                grown += change * (2.0 * out[at + column[s]] + change)
                out[at + column[s]] += change
    return grown


@njit(cache=True, nogil=True)
def flush_graph(scratch, coef, table, node_side, edge_side, w):
    """w += coef * scratch wherever add_graph wrote for this graph; scratch becomes zero there."""
    n_states, _, width, start = table
    nodes, row, indptr, indices, _, d = node_side
    edges, edge_row, e_indptr, e_indices, _, e_d = edge_side
    for v in range(nodes.shape[0]):
        r = row + nodes[v, 0]
        for k in range(indptr[r], indptr[r + 1]):
            at = (nodes[v, 1] * d + indices[k]) * n_states
            for a in range(n_states):
                w[at + a] += coef * scratch[at + a]
                scratch[at + a] = 0.0
    for e in range(edges.shape[0]):
        r = edge_row + edges[e, 0]
        for k in range(e_indptr[r], e_indptr[r + 1]):
            at = start + (edges[e, 1] * e_d + e_indices[k]) * width
            for s in range(width):
                w[at + s] += coef * scratch[at + s]
                scratch[at + s] = 0.0
