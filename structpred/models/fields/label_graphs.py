"""Which labels are joined by an edge, which oracle then serves, what nodes are called, and what a wrong label costs."""

import logging
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from structpred.core.oracle import Oracle, Shape
from structpred.core.types import Floats, Integers
from structpred.data.hierarchy import LabelHierarchy
from structpred.errors import DataError, ParameterError
from structpred.models.base import as_floats
from structpred.models.fields.rules import RULES
from structpred.oracles.mrf import graph_shape

log = logging.getLogger("structpred.models")

#: the most labels that are enumerated unless the user says otherwise
ENUMERATED = 16
#: partial outputs that branch and bound looks at before it makes do with a bound: some tenths of a second
MAX_NODES = 1_000_000
#: label_weights="depth": what a label counts less than its parent (Vens et al. 2008)
DECAY = 0.75


def label_edges(edges: Any, counts: "LabelCounts") -> Integers:
    """The edges (E, 2) over counted labels that the setting names.

    "complete": all pairs. "tree": the spanning tree whose labels are most strongly correlated. A number k: the k pairs with the
    largest |correlation|. Else pairs of label numbers. Raises ParameterError for anything else.
    """
    n = len(counts.both)
    pairs = np.array([(i, j) for i in range(n) for j in range(i + 1, n)], dtype=np.int64).reshape(-1, 2)
    if isinstance(edges, str) and edges == "complete":
        if len(pairs) > 2000:  # a second a pass
            text = "edges='complete' joins all %s pairs of %d labels: slow; edges='tree' joins %d pairs, edges=%d the strongest"
            log.warning(text, f"{len(pairs):,}", n, n - 1, 3 * n)
        return pairs
    if isinstance(edges, str) and edges == "tree":
        from scipy.sparse.csgraph import minimum_spanning_tree

        costs = 2.0 - np.abs(counts.correlations)  # positive: a zero would be no edge
        np.fill_diagonal(costs, 0.0)
        first, second = minimum_spanning_tree(costs).nonzero()
        pairs = np.sort(np.stack((first, second), axis=1).astype(np.int64), axis=1)
        return pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]
    if isinstance(edges, int | np.integer) and not isinstance(edges, bool) and edges >= 0:
        strength = np.abs(counts.correlations)[pairs[:, 0], pairs[:, 1]]
        return pairs[np.sort(np.argsort(-strength, kind="stable")[: int(edges)])]
    if isinstance(edges, list | tuple | np.ndarray):
        try:
            shape = graph_shape(n, 2, np.asarray(edges))
        except (DataError, ValueError) as error:
            raise ParameterError(f"edges: {error}") from None
        return np.array(shape[2:], dtype=np.int64).reshape(-1, 2)
    raise ParameterError(f"edges: expected 'complete', 'tree', a number of pairs, or pairs of label numbers, got {edges!r}")


class LabelCounts(NamedTuple):
    """n rows of labels: how often each is on, and each pair of them. Float64, whole numbers, so that sums are exact."""

    n: float
    both: Floats

    @classmethod
    def of(cls, Y: Integers) -> "LabelCounts":
        """Of these rows."""
        on = Y.astype(np.float64)
        return cls(float(len(Y)), on.T @ on)

    @classmethod
    def merged(cls, parts: "Sequence[LabelCounts]") -> "LabelCounts":
        """Of all rows of the parts."""
        return cls(sum(part.n for part in parts), np.sum([part.both for part in parts], axis=0))

    @property
    def correlations(self) -> Floats:
        """Of the columns; 0 for columns that are all alike."""
        ones = np.diag(self.both)
        covered = self.n * self.both - np.outer(ones, ones)
        scaled = np.sqrt(np.where(np.diag(covered) > 0, np.diag(covered), 1.0))
        return np.asarray(covered / np.outer(scaled, scaled))


def is_forest(n: int, edges: Integers) -> bool:
    """Whether the graph, in which no two edges join the same labels, has no cycle."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    joined = coo_array((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), shape=(n, n))
    n_components, _ = connected_components(joined, directed=False)
    return bool(n_components == n - len(edges))


class FieldNames(NamedTuple):
    """What is called what. nodes: None for their numbers. states: of a node. features, edge_features: with the constant one."""

    unit: str
    nodes: list[str] | None
    states: list[str]
    features: list[str]
    edge_features: list[str]

    def node(self, v: int) -> str:
        """A node in the name of a feature or a label."""
        return f"node {v}" if self.nodes is None else self.nodes[v]

    def state(self, v: int, state: int) -> str:
        """A state of a node, as a label."""
        return self.states[state] if self.nodes is None else f"{self.nodes[v]} {self.states[state]}"


def _exact(forest: bool, few: bool) -> Oracle | None:
    """TreeMRF where there is no cycle, EnumerationMRF where there are few outputs; else None."""
    if forest:
        from structpred.oracles.tree_mrf import TreeMRF

        return TreeMRF()
    if few:
        from structpred.oracles.mrf_enumeration import EnumerationMRF

        return EnumerationMRF()
    return None


def label_oracle(n_labels: int, edges: Integers) -> Oracle:
    """An exact oracle for the graph: enumeration up to 16 labels, TreeMRF for forests, else branch and bound, whose bound counts
    where its search is cut short.
    """
    few = n_labels <= ENUMERATED
    if (found := _exact(not few and is_forest(n_labels, edges), few)) is not None:
        return found
    from structpred.oracles.branch_and_bound import BranchAndBoundMRF

    return BranchAndBoundMRF(MAX_NODES)


def hierarchy_oracle(n_labels: int, edges: Integers, require: str | None) -> Oracle:
    """An exact oracle for training: that of the rule, else TreeMRF for forests, enumeration up to 16 labels, else CP-SAT."""
    if require is not None and RULES[require].trains:
        return RULES[require].oracle
    if (found := _exact(is_forest(n_labels, edges), n_labels <= ENUMERATED)) is not None:
        return found
    from structpred.oracles.cp_sat import CpSatMRF

    return CpSatMRF()


class GraphSizes(NamedTuple):
    """What says which oracle serves some graphs. forests: whether none has a cycle. n_nodes: of the largest."""

    forests: bool
    n_nodes: int

    @classmethod
    def of(cls, shapes: Sequence[Shape]) -> "GraphSizes":
        """Of these graphs; equal shapes that are the same object are looked at once."""
        distinct = {id(shape): shape for shape in shapes}.values()
        forests = all(is_forest(shape[0], np.array(shape[2:], dtype=np.int64).reshape(-1, 2)) for shape in distinct)
        return cls(forests, max(shape[0] for shape in distinct))

    @classmethod
    def merged(cls, parts: "Sequence[GraphSizes]") -> "GraphSizes":
        """Of all graphs of the parts."""
        return cls(all(part.forests for part in parts), max(part.n_nodes for part in parts))


def graph_oracle(sizes: GraphSizes, n_states: int) -> Oracle:
    """TreeMRF for forests, EnumerationMRF up to 2^16 outputs, else QPBO for two states and DualMRF for more."""
    if (found := _exact(sizes.forests, bool(sizes.n_nodes * np.log2(n_states) <= ENUMERATED))) is not None:
        return found
    if n_states == 2:
        from structpred.oracles.qpbo import QPBO

        return QPBO()
    from structpred.oracles.dual_mrf import DualMRF

    return DualMRF()


def label_costs(label_weights: Any, hierarchy: LabelHierarchy) -> Floats:
    """What a wrong label costs, one number per label, as the setting says; ParameterError for anything else."""
    if isinstance(label_weights, str):
        if label_weights == "uniform":
            return np.ones(hierarchy.n)
        if label_weights == "depth":
            return np.asarray(DECAY ** hierarchy.depths.astype(np.float64), dtype=np.float64)
        if label_weights == "sibling":
            costs = np.ones(hierarchy.n)
            for k in hierarchy.order:
                shares = [costs[p] / len(hierarchy.children[p]) for p in hierarchy.parents[k]]
                costs[k] = max(shares, default=1.0)
            return costs
        raise ParameterError(f"label_weights: expected 'uniform', 'depth', 'sibling' or numbers, got {label_weights!r}")
    costs = as_floats(label_weights, "label_weights")
    if costs.shape != (hierarchy.n,) or not np.isfinite(costs).all() or (costs < 0).any() or not costs.any():
        raise ParameterError(f"label_weights: expected {hierarchy.n} finite numbers >= 0, not all zero, got shape {costs.shape}")
    return costs
