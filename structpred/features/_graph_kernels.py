# mypy: ignore-errors
"""Compiled scoring of graphs: feature rows of nodes and edges times weight tables. All sums are float64.

nodes (N, 2): feature row (counted from `row`) and weight table of a node. edges (E, 3): feature row (from `edge_row`), table, and
1 where the table is meant the other way round. columns (2, K * K): the table's column of each pair of states, and the same with
the two states swapped. `start`: where the edge tables begin in the flat weights.

What goes together comes as one tuple: table (n_states, columns, width, start), node_side (nodes, row, indptr, indices, values, d)
and edge_side (edges, edge_row and the same four, which are the feature rows and their number of columns).
"""

import numpy as np

from structpred.core._sparse_kernels import in_order, without_zeros
from structpred.runtime.jit import njit


@njit(cache=True, nogil=True, borrows=True)
def score_graph(w, table, node_side, edge_side, out):
    """out = theta: n * K node scores, then E * K^2 edge scores."""
    n_states = table[0]
    nodes, row, indptr, indices, values, d = node_side
    edges, edge_row, e_indptr = edge_side[:3]
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
    if edges.shape[0] == 0:
        return
    first = edge_row + edges[0, 0]
    if n_states > 2 and e_indptr[first + 1] - e_indptr[first] >= 4:
        score_edges(w, table, edge_side, True, out[n * n_states :])
    else:
        score_edges(w, table, edge_side, False, out[n * n_states :])


@njit(cache=True, nogil=True, borrows=True)
def score_edges(w, table, edge_side, in_fours, out):
    """out = E * K^2 edge scores. in_fours: whether to look for four rows at a time, which pays for large tables and long rows."""
    n_states, columns, width, start = table
    edges, edge_row, e_indptr, e_indices, e_values, e_d = edge_side
    pairs = n_states * n_states
    for e in range(edges.shape[0]):
        r = edge_row + edges[e, 0]
        base = edges[e, 1] * e_d
        column = columns[edges[e, 2]]
        target = out[e * pairs : (e + 1) * pairs]
        target[:] = 0.0
        straight = width == pairs and edges[e, 2] == 0  # a table of its own for each pair, in the order of the pairs
        begin = e_indptr[r]
        if in_fours and straight:
            begin = add_fours(w, begin, e_indptr[r + 1], e_indices, e_values, start + base * width, width, target)
        for k in range(begin, e_indptr[r + 1]):
            at = start + (base + e_indices[k]) * width
            x = e_values[k]
            if straight:
                own = w[at : at + pairs]
                for s in range(pairs):
                    target[s] += x * np.float64(own[s])
            else:
                for s in range(pairs):
                    target[s] += x * np.float64(w[at + column[s]])


@njit(cache=True, nogil=True, borrows=True)
def add_fours(w, begin, end, indices, values, first, width, out):
    """out += values[k] times row indices[k] of the table that begins at `first`, in order, four rows at a time.

    So `out` is read and written less often. Returns the first k that was not reached.
    """
    n = out.shape[0]
    k = begin
    while k + 4 <= end:
        a = first + indices[k] * width
        b = first + indices[k + 1] * width
        c = first + indices[k + 2] * width
        d = first + indices[k + 3] * width
        row_a, row_b, row_c, row_d = w[a : a + n], w[b : b + n], w[c : c + n], w[d : d + n]
        x_a = values[k]
        x_b = values[k + 1]
        x_c = values[k + 2]
        x_d = values[k + 3]
        for s in range(n):
            total = out[s] + x_a * np.float64(row_a[s])
            total += x_b * np.float64(row_b[s])
            total += x_c * np.float64(row_c[s])
            out[s] = total + x_d * np.float64(row_d[s])
        k += 4
    return k


@njit(cache=True, nogil=True, borrows=True)
def count_pairs(parts, table, node_side, edge_side):
    """How many (index, value) pairs emit_graph writes."""
    n_states = table[0]
    nodes, row, indptr = node_side[:3]
    edges, edge_row, e_indptr = edge_side[:3]
    total = 0
    node = 0
    edge = 0
    n_node_parts = nodes.shape[0] * n_states
    for j in range(parts.shape[0]):
        if parts[j] < n_node_parts:
            node = item_of(parts[j], n_states, node)
            r = row + nodes[node, 0]
            total += indptr[r + 1] - indptr[r]
        else:
            edge = item_of(parts[j] - n_node_parts, n_states * n_states, edge)
            r = edge_row + edges[edge, 0]
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
    place = np.empty(parts.shape[0], np.int64)  # of a part in its table's row
    node = 0
    edge = 0
    while j < parts.shape[0]:
        stop = j
        if parts[j] < n_node_parts:
            node = item_of(parts[j], n_states, node)
            first = node * n_states
            while stop < parts.shape[0] and first <= parts[stop] < first + n_states:
                place[stop] = parts[stop] - first
                stop += 1
            r = row + nodes[node, 0]
            features, amounts, begin, end = indices, values, indptr[r], indptr[r + 1]
            base, stride = nodes[node, 1] * d * n_states, n_states
        else:
            edge = item_of(parts[j] - n_node_parts, pairs, edge)
            first = n_node_parts + edge * pairs
            turned = edges[edge, 2]
            while stop < parts.shape[0] and first <= parts[stop] < first + pairs:
                place[stop] = columns[turned, parts[stop] - first]
                stop += 1
            r = edge_row + edges[edge, 0]
            features, amounts, begin, end = e_indices, e_values, e_indptr[r], e_indptr[r + 1]
            base, stride = start + edges[edge, 1] * e_d * width, width
        if stop - j == 2:  # the true and the found state: most often so
            low = base + place[j]
            high = base + place[j + 1]
            low_count = counts[j]
            high_count = counts[j + 1]
            for k in range(begin, end):
                offset = features[k] * stride
                x = amounts[k]
                idx[n] = low + offset
                val[n] = low_count * x
                idx[n + 1] = high + offset
                val[n + 1] = high_count * x
                n += 2
        else:
            for k in range(begin, end):
                for m in range(j, stop):
                    idx[n] = base + features[k] * stride + place[m]
                    val[n] = counts[m] * amounts[k]
                    n += 1
        j = stop
    ascending = True
    for k in range(1, n):
        ascending &= idx[k] > idx[k - 1]
    return ascending


@njit(cache=True, nogil=True, borrows=True)
def item_of(part, size, guess):
    """part // size: divisions are slow, and mostly it is the guess or one of the next."""
    for item in range(guess, guess + 4):
        if item * size <= part < (item + 1) * size:
            return item
    return part // size


@njit(cache=True, nogil=True)
def combine_graph(parts, counts, dim, table, node_side, edge_side):
    """(whether that was done, Psi^T mu as sorted unique pairs): not done for many pairs of parts that do not ascend."""
    size = count_pairs(parts, table, node_side, edge_side)
    ascending = True
    for j in range(1, parts.shape[0]):
        ascending &= parts[j] > parts[j - 1]
    done = ascending or size <= dim
    if not done:
        size = 0
    idx = np.empty(size, np.int64)
    val = np.empty(size)
    if not done:
        return done, idx, val
    if emit_graph(parts, counts, table, node_side, edge_side, idx, val):
        n = without_zeros(idx, val)
        return done, idx[:n], val[:n]
    idx, val = in_order(idx, val, dim)
    return done, idx, val


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


@njit(cache=True, nogil=True)
def sides_of(i, where, node_side, edge_side):
    """Nodes and edges of instance i alone, from those of all graphs; where: (pattern, node_at, edge_at, rows, edge_rows)."""
    pattern, node_at, edge_at, rows, edge_rows = where
    nodes, _, indptr, indices, values, d = node_side
    edges, _, e_indptr, e_indices, e_values, e_d = edge_side
    p = pattern[i]
    return (
        (nodes[node_at[p] : node_at[p + 1]], rows[i], indptr, indices, values, d),
        (edges[edge_at[p] : edge_at[p + 1]], edge_rows[i], e_indptr, e_indices, e_values, e_d),
    )


@njit(cache=True, nogil=True)
def score_graphs(w, first, last, places, where, table, node_side, edge_side, out):
    """`score_graph` for the instances first..last-1."""
    for i in range(first, last):
        own_nodes, own_edges = sides_of(i, where, node_side, edge_side)
        score_graph(w, table, own_nodes, own_edges, out[places[i - first] : places[i - first + 1]])


@njit(cache=True, nogil=True)
def combine_graphs(parts, counts, ends, first, out_ends, dim, where, table, node_side, edge_side):
    """`combine_graph` for the instances from `first` on, whose parts ascend: pairs, flat, instance first + k from out_ends[k]."""
    n_instances = ends.shape[0] - 1
    size = 0
    for k in range(n_instances):
        own_nodes, own_edges = sides_of(first + k, where, node_side, edge_side)
        size += min(count_pairs(parts[ends[k] : ends[k + 1]], table, own_nodes, own_edges), dim)
    idx = np.empty(size, np.int64)
    val = np.empty(size)
    n = 0
    out_ends[0] = 0
    for k in range(n_instances):
        own_nodes, own_edges = sides_of(first + k, where, node_side, edge_side)
        here = slice(ends[k], ends[k + 1])
        _, some, amounts = combine_graph(parts[here], counts[here], dim, table, own_nodes, own_edges)
        for j in range(some.shape[0]):
            idx[n] = some[j]
            val[n] = amounts[j]
            n += 1
        out_ends[k + 1] = n
    return idx[:n], val[:n]
