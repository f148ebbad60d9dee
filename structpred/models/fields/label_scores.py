"""Max-marginals of label sets: for each label the best score of an output with it, less that of an output without it."""

from typing import Any

import numpy as np

from structpred.core.fixed_scores import FORBIDDEN
from structpred.core.oracle import Shape
from structpred.core.types import Floats, Integers
from structpred.core.weights import Vector
from structpred.errors import InfeasibleError
from structpred.oracles.fields._label_forest import Gains, forest_of
from structpred.oracles.label_paths import LabelPaths, path_sums
from structpred.oracles.leaf_sets import LeafSets
from structpred.oracles.tree_mrf import TreeMRF, tree_plan
from structpred.task.inference import Inference


def label_scores(inference: Inference, w: Vector, n_labels: int) -> Floats:
    """(n, n_labels); 1e30 where no output is without the label. A pass up and one down the trees of the oracles that are known
    here, for all examples, which have one shape; an inference for each label with any other oracle.
    """
    out = np.empty((len(inference), n_labels))
    if (known := _KNOWN.get(type(inference.oracle))) is not None:
        for first, last, places in inference.blocks(0, len(out)):
            theta = inference.score_block(w, 1.0, first, last, places).reshape(last - first, -1)
            out[first:last] = np.clip(known(inference.oracle, theta, inference.shapes[first]), FORBIDDEN, -FORBIDDEN)
        return out
    for i, theta in enumerate(inference.part_scores(w)):
        labels = inference.best(theta, i)[0]
        best = float(theta[inference.oracle.parts(labels, inference.shapes[i])].sum())
        for k, state in enumerate(labels.tolist()):
            gap = min(best - best_without(inference, i, theta, 2 * k + state)[1], -FORBIDDEN)
            out[i, k] = gap if state else -gap
    return out


def best_without(inference: Inference, i: int, theta: Floats, part: int) -> tuple[Integers | None, float]:
    """The best output of instance i without a part, and its score; None and -inf where there is none."""
    ruled = np.array(theta, dtype=np.float64)
    ruled[part] = FORBIDDEN
    try:
        labels = inference.best(ruled, i)[0]
    except InfeasibleError:
        return None, -np.inf
    return labels, float(theta[inference.oracle.parts(labels, inference.shapes[i])].sum())


def _of_tree(oracle: TreeMRF, theta: Floats, shape: Shape) -> Floats:
    best = theta[:, : 2 * shape[0]].reshape(len(theta), -1, 2).copy()
    sent, states = np.zeros_like(best), np.arange(2)
    edges = [
        (node, parent, theta[:, table + own * states[:, None] + above * states])
        for node, parent, table, own, above in tree_plan(shape).tolist()
        if table >= 0
    ]
    for node, parent, pairs in edges:
        sent[:, node] = (best[:, node, :, None] + pairs).max(axis=1)
        best[:, parent] += sent[:, node]
    for node, parent, pairs in reversed(edges):
        best[:, node] += ((best[:, parent] - sent[:, node])[:, None] + pairs).max(axis=2)
    return np.asarray(best[:, :, 1] - best[:, :, 0])


def _of_paths(oracle: LabelPaths, theta: Floats, shape: Shape) -> Floats:
    ends, out = forest_of(shape).to[oracle.to], np.empty((len(theta), len(shape)))
    sums = path_sums(Gains(theta), ends)
    for first, last in ends.runs:  # labels in depth-first order: the ends below one follow each other
        labels = ends.ends[first + 1 : last] if oracle.to == "tree" else forest_of(shape).to["label"].ends
        paths, none = ends.paths[first:last], np.full((len(theta), 1), -np.inf)
        begin, end = paths[:, labels].argmax(axis=0), last - first - paths[::-1, labels].argmax(axis=0)
        own = np.concatenate((none, sums[:, first:last], none), axis=1)
        on = np.maximum.reduceat(own, np.stack((begin, end), axis=1).ravel() + 1, axis=1)[:, ::2]
        before, after = np.maximum.accumulate(own, axis=1), np.maximum.accumulate(own[:, ::-1], axis=1)[:, ::-1]
        out[:, labels] = on - np.maximum(before[:, begin], after[:, end + 1])
    return out


def _of_leaf_sets(oracle: LeafSets, theta: Floats, shape: Shape) -> Floats:
    forest = forest_of(shape)
    best, worst = np.zeros((len(theta), len(shape) + 1)), np.full((len(theta), len(shape) + 1), -np.inf)
    best[:, :-1] = Gains(theta).gains  # of a subtree whose top is on; the last one is above all roots
    low, leaf, second, other, off, path = best.copy(), worst, worst.copy(), worst.copy(), worst.copy(), np.zeros_like(best)
    leaf[:, forest.leaves] = 0.0  # what it takes to have a leaf below; below the second best child; and elsewhere
    for v in reversed(forest.order):
        low[:, v], above = np.minimum(best[:, v], 0.0), shape[v]
        best[:, above] += best[:, v] - low[:, v]
        second[:, above] = np.maximum(second[:, above], np.minimum(leaf[:, above], low[:, v] + leaf[:, v]))
        leaf[:, above] = np.maximum(leaf[:, above], low[:, v] + leaf[:, v])
    for v in forest.order:  # path: what it takes to have it on; off: the best score without it
        above, first = shape[v], low[:, v] + leaf[:, v] == leaf[:, shape[v]]
        other[:, v] = np.maximum(other[:, above], np.where(first, second[:, above], leaf[:, above]))
        off[:, v] = np.maximum(off[:, above], path[:, above] - (best[:, v] - low[:, v]) + other[:, v])
        path[:, v] = path[:, above] + low[:, v]
    return np.asarray((path + np.maximum(leaf, other) - off)[:, :-1])


#: what finds them for exactly these classes: a subclass may have other outputs
_KNOWN: dict[type, Any] = {TreeMRF: _of_tree, LabelPaths: _of_paths, LeafSets: _of_leaf_sets}
