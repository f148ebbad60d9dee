# mypy: ignore-errors
"""Compiled updates of online trainers over graphs: parts scored, the best states found, features compared, the weights moved."""

import numpy as np

from structpred.core._sparse_kernels import dot
from structpred.features._graph_kernels import combine_graph, score_graph, sides_of
from structpred.oracles.fields._graph_parts_kernels import graph_parts
from structpred.oracles.fields._label_paths_kernels import best_path
from structpred.oracles.fields._mrf_enumeration_kernels import best_output
from structpred.oracles.fields._tree_mrf_kernels import best_states
from structpred.oracles.mrf import OK
from structpred.runtime.jit import njit
from structpred.task.fast._part_kernels import augment, loss_of, subtract
from structpred.task.fast._update_kernels import apply_update, doubted

#: kinds of search
TREE, ENUMERATION, PATHS = 0, 1, 2


@njit(cache=True, nogil=True, borrows=True)
def score_fixed(w, scale, table, node_side, edge_side, begin, fixed, out):
    """The scores at the weights scale * w, plus the fixed ones, which begin at `begin`; -1: there are none."""
    score_graph(w, table, node_side, edge_side, out)
    if scale != 1.0:
        for j in range(out.shape[0]):
            out[j] *= scale
    if begin >= 0:
        for j in range(out.shape[0]):
            out[j] += fixed[begin + j]


@njit(cache=True, nogil=True)
def find_best(scores, graph, n_states, search, values, back, labels):
    """The best states at these scores, into labels; returns the oracle's status."""
    kind, _, _, _, plans, plan_ends = search
    plan = plans[plan_ends[graph] : plan_ends[graph + 1]]
    if kind == TREE:
        return best_states(scores, plan.reshape((-1, 5)), n_states, values, back, labels)
    if kind == ENUMERATION:
        return best_output(scores, plan, labels)
    n = labels.shape[0]
    return best_path(scores, plan[:n], plan[n:], labels)


@njit(cache=True, nogil=True, borrows=True)
def work_of(table, node_side, edge_side, kind):
    """How many products and sums a step makes, for enumeration with all outputs."""
    nodes, row, indptr = node_side[:3]
    edges, edge_row, e_indptr = edge_side[:3]
    total = 0
    for v in range(nodes.shape[0]):
        r = row + nodes[v, 0]
        total += 2 + indptr[r + 1] - indptr[r]
    total *= table[0]
    for e in range(edges.shape[0]):
        r = edge_row + edges[e, 0]
        total += table[0] * table[0] * (2 + e_indptr[r + 1] - e_indptr[r])
    return total + table[0] ** nodes.shape[0] if kind == ENUMERATION else total


@njit(cache=True, nogil=True)
def graph_updates(items, graphs, fixed, aim, loss_weight, search, room, most, rule, limits, state):
    """Steps of these graphs with the update of an online trainer, until `most` products are reached or a step is in doubt.

    graphs: (number of weights, where, table, node_side, edge_side). fixed: (where they begin, scores). aim: (where the parts of
    an instance begin, constants and part costs of the losses, true parts, where those begin). search: (its kind,
    which graph each instance has, edges and plans, and where those of a graph begin). Returns how many were done, and whether
    the weights changed.
    """
    dim, where, table, all_nodes, all_edges = graphs
    begins, fixed_scores = fixed
    places, constants, costs, truth, ends = aim
    kind, graph_of, edges, edge_ends = search[:4]
    all_scores, all_labels, values, back, all_found, at, counts = room
    changed = False
    work = 0
    for k in range(items.shape[0]):
        i = items[k]
        scale = state[3][()]
        node_side, edge_side = sides_of(i, where, all_nodes, all_edges)
        scores = all_scores[: places[i + 1] - places[i]]
        ell = costs[places[i] : places[i + 1]]
        score_fixed(state[0], scale, table, node_side, edge_side, begins[i], fixed_scores, scores)
        if not augment(scores, ell, loss_weight, scores):
            return k, changed
        g = graph_of[i]
        labels = all_labels[: node_side[0].shape[0]]
        if find_best(scores, g, table[0], search, values, back, labels) != OK:
            return k, changed
        found = all_found[: labels.shape[0] + edge_ends[g + 1] - edge_ends[g]]
        graph_parts(labels, edges[edge_ends[g] : edge_ends[g + 1]], table[0], found)
        _, loss = loss_of(found, constants[i], ell)
        own = truth[ends[i] : ends[i + 1]]
        n = subtract(own, found, at, counts, at, counts)  # parts ascend: nothing is sorted, and needs no room
        _, idx, val = combine_graph(at[:n], counts[:n], dim, table, node_side, edge_side)
        product = scale * dot(state[0], idx, val)
        margin = loss_weight * loss
        if loss < 0.0 or not np.isfinite(margin - product) or doubted(margin, product):
            return k, changed
        if apply_update(rule, limits[i], state, idx, val, loss, loss_weight, product):
            changed = True
        work += work_of(table, node_side, edge_side, kind)
        if work >= most:
            return k + 1, changed
    return items.shape[0], changed
