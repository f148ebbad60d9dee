"""Which labels are joined by an edge, which oracle then serves, and the field over the labels of one example."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from structpred.core.fixed_scores import FORBIDDEN
from structpred.core.inference import Inference
from structpred.core.oracle import Oracle, Shape
from structpred.core.requirements import require
from structpred.core.weights import Vector
from structpred.errors import DataError, ParameterError
from structpred.features.graphs import GraphFeatures
from structpred.models.fields.feature_scale import FeatureScale
from structpred.oracles.mrf import graph_shape

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

#: the most labels that are enumerated unless the user says otherwise
ENUMERATED = 16


def label_edges(edges: Any, Y: Integers) -> Integers:
    """The edges (E, 2) over the columns of Y that the setting names.

    "complete": all pairs. "tree": the spanning tree whose labels are most strongly correlated. A number k: the k pairs with the
    largest |correlation| in Y. Else pairs of label numbers. Raises ParameterError for anything else.
    """
    n = Y.shape[1]
    pairs = np.array([(i, j) for i in range(n) for j in range(i + 1, n)], dtype=np.int64).reshape(-1, 2)
    if isinstance(edges, str) and edges == "complete":
        return pairs
    if isinstance(edges, str) and edges == "tree":
        return _spanning_tree(_correlations(Y))
    if isinstance(edges, int | np.integer) and not isinstance(edges, bool) and edges >= 0:
        strength = np.abs(_correlations(Y))[pairs[:, 0], pairs[:, 1]]
        return pairs[np.sort(np.argsort(-strength, kind="stable")[: int(edges)])]
    if isinstance(edges, list | tuple | np.ndarray):
        try:
            shape = graph_shape(n, 2, np.asarray(edges))
        except (DataError, ValueError) as error:
            raise ParameterError(f"edges: {error}") from None
        return np.array(shape[2:], dtype=np.int64).reshape(-1, 2)
    raise ParameterError(f"edges: expected 'complete', 'tree', a number of pairs, or pairs of label numbers, got {edges!r}")


def _correlations(Y: Integers) -> Floats:
    """The correlations of the columns; 0 for columns that are all alike."""
    centred = Y - Y.mean(axis=0)
    norms = np.sqrt((centred**2).sum(axis=0))
    scaled = centred / np.where(norms > 0, norms, 1.0)
    found: Floats = scaled.T @ scaled
    return found


def _spanning_tree(correlations: Floats) -> Integers:
    from scipy.sparse.csgraph import minimum_spanning_tree

    costs = 2.0 - np.abs(correlations)  # positive: a zero would be no edge
    np.fill_diagonal(costs, 0.0)
    first, second = minimum_spanning_tree(costs).nonzero()
    pairs = np.sort(np.stack((first, second), axis=1).astype(np.int64), axis=1)
    return pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]


def is_forest(n: int, edges: Integers) -> bool:
    """Whether the graph has no cycle."""
    above = list(range(n))

    def top(v: int) -> int:
        while above[v] != v:
            above[v] = above[above[v]]
            v = above[v]
        return v

    for i, j in edges.tolist():
        first, second = top(i), top(j)
        if first == second:
            return False
        above[first] = second
    return True


def checked_oracle(oracle: Any) -> Oracle:
    """The oracle if it is an instance of one; else ParameterError."""
    if not isinstance(oracle, Oracle):
        raise ParameterError(f"oracle: expected None or an instance such as EnumerationMRF(), got {oracle!r}")
    return oracle


def label_oracle(n_labels: int, edges: Integers) -> Oracle:
    """An exact oracle for the graph: enumeration up to 16 labels, TreeMRF for forests, else branch and bound."""
    if n_labels <= ENUMERATED:
        from structpred.oracles.mrf_enumeration import EnumerationMRF

        return EnumerationMRF()
    if is_forest(n_labels, edges):
        from structpred.oracles.tree_mrf import TreeMRF

        return TreeMRF()
    from structpred.oracles.branch_and_bound import BranchAndBoundMRF

    return BranchAndBoundMRF()


def hierarchy_oracle(n_labels: int, edges: Integers) -> Oracle:
    """An exact oracle where pairs are forbidden: TreeMRF for forests, enumeration up to 16 labels, else CP-SAT."""
    if is_forest(n_labels, edges):
        from structpred.oracles.tree_mrf import TreeMRF

        return TreeMRF()
    if n_labels <= ENUMERATED:
        from structpred.oracles.mrf_enumeration import EnumerationMRF

        return EnumerationMRF()
    from structpred.oracles.cp_sat import CpSatMRF

    return CpSatMRF()


@dataclass(frozen=True, eq=False)
class LabelField:
    """The Markov field over the labels of one example: a node a label with its own weights, an edge a pair with its own table.

    edges: (E, 2), the smaller label first. bias: the value of a constant feature; 0 for none. fixed: scores added to the parts of
    every example (forbidden pairs), or None. scale: of the features, or None.
    """

    n_labels: int
    edges: Integers
    bias: float
    oracle: Oracle
    fixed: Floats | None = None
    scale: FeatureScale | None = None

    @cached_property
    def shape(self) -> Shape:
        """The shape of every example."""
        return graph_shape(self.n_labels, 2, self.edges)

    def n_weights(self, n_features: int) -> int:
        """The length of the flat weights for so many features."""
        return self.n_labels * (n_features + (self.bias != 0)) * 2 + max(len(self.edges), 1) * 4

    def features(self, rows: Any) -> GraphFeatures:
        """The joint features of examples with these rows (CSR)."""
        from scipy import sparse

        n = rows.shape[0]
        if self.scale is not None:
            rows = self.scale.applied(rows)
        if self.bias:
            constant: Any = np.full((n, 1), self.bias)
            rows = sparse.csr_array(sparse.hstack((rows, constant), format="csr"))
        zeros, labels, pairs = np.zeros(self.n_labels, np.int64), np.arange(self.n_labels), np.arange(len(self.edges))
        fixed = None if self.fixed is None else [self.fixed] * n
        return GraphFeatures(
            [self.shape] * n, rows, [zeros] * n, [labels] * n, edge_type=[pairs] * n, n_node_types=self.n_labels,
            n_edge_types=max(len(self.edges), 1), n_states=2, fixed=fixed,
        )  # fmt: skip

    def inference(self, rows: Any) -> Inference:
        """Inference over examples with these rows (CSR), at least one."""
        return Inference(self.features(rows), self.oracle, [self.shape] * rows.shape[0])

    def decode(self, rows: Any, w: Vector) -> Integers:
        """The best labels of each example, (n, n_labels)."""
        if not rows.shape[0]:
            return np.zeros((0, self.n_labels), np.int64)
        return self.inference(rows).decode(w)[0].reshape(-1, self.n_labels)

    def label_scores(self, rows: Any, w: Vector) -> Floats:
        """(n, n_labels): the best score with the label less the best score without it."""
        out = np.empty((rows.shape[0], self.n_labels))
        if not len(out):
            return out
        inference = self.inference(rows)
        found = inference.decode(w)[0].reshape(out.shape)
        for i, (labels, theta) in enumerate(zip(found, inference.part_scores(w), strict=True)):
            best = self._value(theta, labels)
            for k, state in enumerate(labels.tolist()):
                other = theta.copy()
                other[2 * k + state] = FORBIDDEN
                gap = best - self._value(theta, self.oracle.argmax(other, self.shape))
                out[i, k] = gap if state else -gap
        return out

    def _value(self, theta: Floats, labels: Integers) -> float:
        return float(theta[self.oracle.parts(labels, self.shape)].sum())

    def marginals(self, rows: Any, w: Vector, who: str) -> Floats:
        """(n, n_labels): p(label on | x). Raises MissingCapabilityError where the oracle has no marginals."""
        require(("marginals",), self.oracle, who)
        if not rows.shape[0]:
            return np.empty((0, self.n_labels))
        return np.array([mu[1 : 2 * self.n_labels : 2] for mu in self.inference(rows).marginals(w)])
