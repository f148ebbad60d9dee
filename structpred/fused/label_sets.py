"""Blocks of marginals for labels that share a row: GraphFeatures with TreeMRF, EnumerationMRF or LabelPaths.

Which steps a block is given depends on its outputs: closed sets in a forest without edge tables, paths, or any graph with tables.
"""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from structpred.core.fixed_scores import FORBIDDEN
from structpred.core.oracle import Oracle, Shape
from structpred.core.types import Floats, Integers
from structpred.features.graphs import GraphFeatures
from structpred.fused.near_points import leap
from structpred.oracles.fields._label_forest import forest_of
from structpred.oracles.label_paths import LabelPaths
from structpred.oracles.mrf import links_of
from structpred.oracles.mrf_enumeration import enumeration_plan
from structpred.oracles.tree_mrf import TreeMRF, tree_plan
from structpred.runtime.lazy_names import later
from structpred.runtime.memory import check_fits
from structpred.task.fast.marginal_blocks import MarginalBlocks, MarginalLayout, MarginalPoint

_listed = later("structpred.fused._listed_near_kernels")


def layout_of(features: GraphFeatures, oracle: Oracle, shapes: Sequence[Shape]) -> MarginalLayout | None:
    """The layout of this training set; None where none was written for it."""
    first = shapes[0]
    if "label_sets" not in features.capabilities or not all(shape is first or shape == first for shape in shapes):
        return None
    n_labels = len(first) if isinstance(oracle, LabelPaths) else first[0]
    independent = partial(ClosedBlocks, features, np.full(n_labels, -1, np.int64))
    if isinstance(oracle, LabelPaths):
        paths = partial(PathBlocks, features, forest_of(first).parents)
        return Layout(paths, independent) if features.fixed.rows is None else None
    if (parents := _closing_parents(features, first)) is not None:
        return Layout(partial(ClosedBlocks, features, parents), independent)
    graph = partial(GraphBlocks, features, first, isinstance(oracle, TreeMRF))
    return Layout(graph, independent) if features.edges.n_columns else None


def _closing_parents(features: GraphFeatures, shape: Shape) -> Integers | None:
    """The parents of a forest in which outputs are closed and edges have no weights; None where it is anything else."""
    edges = np.array(shape[2:], dtype=np.int64).reshape(-1, 2)
    parents = np.full(shape[0], -1, np.int64)
    if not len(edges):
        return parents if features.fixed.rows is None else None
    if features.edges.n_columns or features.fixed.rows is None:
        return None
    fixed = features.fixed.rows[0]
    tables = np.zeros((len(edges), 4)) if fixed is None else fixed[2 * shape[0] :].reshape(-1, 4)
    if fixed is None or fixed[: 2 * shape[0]].any() or not np.isin(tables, (0.0, FORBIDDEN)).all():
        return None
    for (i, j), ruled in zip(edges.tolist(), (tables != 0.0).tolist(), strict=True):
        child = {(False, True, False, False): j, (False, False, True, False): i}.get(tuple(ruled), -1)
        if child < 0 or parents[child] >= 0:
            return None
        parents[child] = i + j - child
    for v in range(shape[0]):  # with one parent each, a circle is all that is left to rule out
        at = v
        for _ in range(shape[0]):
            at = int(parents[at]) if at >= 0 else at
        if at >= 0:
            return None
    return parents


@dataclass(frozen=True, eq=False)
class Aims:
    """truth: (n, L) of 0 and 1. costs: (n, L). upper: (n,). rows: the packed features and their squared norms."""

    rows: tuple[Integers, Integers, Floats, Floats]
    truth: npt.NDArray[np.int8]
    costs: Floats
    upper: Floats

    @classmethod
    def of(cls, features: GraphFeatures, truth: Integers, costs: Floats, upper: Floats) -> "Aims":
        """Contiguous, as the kernels take them."""
        packed = features.nodes
        at = np.repeat(np.arange(len(features)), np.diff(packed.indptr))
        squares = np.bincount(at, packed.values**2, len(features)).astype(np.float64, copy=False)
        columns = np.ascontiguousarray(truth, dtype=np.int8), np.ascontiguousarray(costs), np.ascontiguousarray(upper)
        return cls((packed.indptr, packed.indices, packed.values, squares), *columns)

    @property
    def goals(self) -> tuple[npt.NDArray[np.int8], Floats, Floats]:
        """What the kernels take beside the rows."""
        return self.truth, self.costs, self.upper

    def table(self, marginals: Floats, n_features: int) -> Floats:
        """sum_i upper_i x_i (truth_i - marginals_i)'."""
        from scipy import sparse

        indptr, indices, values, _ = self.rows
        matrix = sparse.csr_array((values, indices, indptr), shape=(len(self.upper), n_features))
        return np.ascontiguousarray(matrix.T @ ((self.truth - marginals) * self.upper[:, None]), dtype=np.float64)

    def losses(self, marginals: Floats) -> Floats:
        """The mean loss of each block."""
        return np.asarray((self.costs * np.abs(marginals - self.truth)).sum(axis=1))


class Layout(NamedTuple):
    """Makes the blocks of the given outputs, and those of labels that are all roots (`MarginalLayout`)."""

    blocks: Callable[..., MarginalBlocks]
    independent: Callable[..., MarginalBlocks]


class ForestBlocks:
    """What closed sets and paths share; labels are numbered in depth-first order inside."""

    _kernels: "staticmethod[[], Any]"

    def __init__(self, features: GraphFeatures, parents: Integers, truth: Integers, costs: Floats, upper: Floats) -> None:
        # the labels in depth-first order: each subtree is a run that begins with its top
        children: list[list[int]] = [[] for _ in parents]
        for v, p in enumerate(parents.tolist()):
            if p >= 0:
                children[p].append(v)
        order, waiting = [], np.flatnonzero(parents < 0)[::-1].tolist()
        while waiting:
            order.append(v := waiting.pop())
            waiting += children[v][::-1]
        self.features, self.order = features, np.array(order, dtype=np.int64)
        place = np.empty_like(self.order)
        place[self.order] = np.arange(len(place))
        above = parents[self.order]
        self.parents = np.where(above < 0, -1, place[above])
        self._forest = self._laid_out()
        self.place, self.width = place, features.nodes.n_columns
        self.aims = Aims.of(features, truth[:, self.order], costs[:, self.order], upper)
        self.work = 2 * len(features.nodes.indices) // max(len(features), 1) * len(parents) + 16 * len(parents)

    @abstractmethod
    def _laid_out(self) -> tuple[Integers, ...]:
        """The labels' parents, and what else the kernels need to know of the forest."""

    def weights(self, point: MarginalPoint) -> Floats:
        """The flat weights: off and on are opposite, edges have none."""
        return flat_weights(self.features, point.table[:, self.place], np.empty(0))

    def _marginals(self, nodes: Floats) -> Floats:
        return nodes

    def summed(self, point: MarginalPoint) -> tuple[MarginalPoint, Floats]:
        """The table is summed up anew."""
        marginals = self._marginals(point.nodes)
        return point._replace(table=self.aims.table(marginals, self.width)), self.aims.losses(marginals)

    def sweep(self, point: MarginalPoint, visits: Integers, gaps: Floats, values: Floats) -> int:
        """Steps of each instance, as the kernels say."""
        aims = self.aims
        return int(self._kernels().sweep(aims.rows, self._forest, aims.goals, point.table, point.nodes, visits, gaps, values))

    def leap(self, point: MarginalPoint, reach: float) -> tuple[int, bool]:
        """Over all blocks."""
        return leap(self, point, reach)

    def values(self, point: MarginalPoint) -> Floats:
        """H_i of all instances."""
        out = np.empty(len(self.aims.upper))
        self._kernels().values_of(self.aims.rows, self._forest, self.aims.goals, point.table, out)
        return out

    def _start(self, nodes: Floats) -> MarginalPoint:
        return MarginalPoint(np.zeros((self.width, len(self.order))), np.empty((0, 4)), nodes, np.empty((len(nodes), 0, 4)))


class ClosedBlocks(ForestBlocks):
    """Closed sets: a block is the labels' marginals; joint steps of each tree, and steps of subtrees and of labels."""

    _kernels, near = (staticmethod(later(f"structpred.fused._closed_{name}_kernels")) for name in ("set", "near"))

    def sets(self, point: MarginalPoint) -> tuple[Integers, ...]:
        """The forest."""
        return self._forest

    def start(self) -> MarginalPoint:
        """The truth."""
        check_fits(8 * self.aims.truth.size, f"{self.aims.truth.size:,} dual variables, one for each label of each sample,")
        return self._start(self.aims.truth.astype(np.float64))

    def _laid_out(self) -> tuple[Integers, ...]:
        sizes = np.ones(len(self.parents), np.int64)
        for v in range(len(sizes) - 1, -1, -1):
            if self.parents[v] >= 0:
                sizes[self.parents[v]] += sizes[v]
        return self.parents, sizes


class PathBlocks(ForestBlocks):
    """Paths: a block is a point of the simplex over the leaves; pairwise steps."""

    _kernels, near = staticmethod(later("structpred.fused._label_path_kernels")), staticmethod(_listed)

    def _laid_out(self) -> tuple[Integers, ...]:
        depths = np.zeros(len(self.parents), np.int64)
        for v, parent in enumerate(self.parents.tolist()):
            depths[v] = 0 if parent < 0 else depths[parent] + 1
        return self.parents, depths, forest_of(tuple(self.parents.tolist())).leaves

    def sets(self, point: MarginalPoint) -> tuple[Integers, ...]:
        """No edges, and the paths of all leaves."""
        return np.empty((0, 2), np.int64), forest_of(tuple(self.parents.tolist())).paths[None].astype(np.int8)

    def _marginals(self, nodes: Floats) -> Floats:
        return nodes @ forest_of(tuple(self.parents.tolist())).paths

    def start(self) -> MarginalPoint:
        """The leaf of the truth."""
        leaves = self._forest[2]
        size = len(leaves) * len(self.features)
        check_fits(8 * size, f"{size:,} dual variables, one for each leaf of each sample,")
        return self._start(self.aims.truth[:, leaves].astype(np.float64))


class GraphBlocks:
    """Labels on a graph whose edges have tables: a block is the labels' marginals and four numbers an edge."""

    _kernels = staticmethod(later("structpred.fused._label_graph_kernels"))

    def __init__(self, features: GraphFeatures, shape: Shape, tree: bool, truth: Integers, costs: Floats, upper: Floats) -> None:
        self.features = features
        self.aims = Aims.of(self.features, truth, costs, upper)
        links, fixed = links_of(shape), self.features.fixed_scores(0)
        self.ends = links.edges
        ruled = np.zeros(2 * shape[0] + 4 * len(self.ends)) if fixed is None else np.array(fixed)
        self.graph = (self.ends, links.first, links.other, links.edge, ruled, not ruled.any())
        no_plan = np.empty((0, 5), np.int64), np.empty(0, np.int64)
        self.search = (tree_plan(shape).copy(), no_plan[1]) if tree else (no_plan[0], enumeration_plan(shape))
        size = 8 * (shape[0] + 4 * len(self.ends)) * len(self.features)
        check_fits(size, f"the marginals of {shape[0]} labels and {len(self.ends):,} edges in {len(self.features):,} samples")
        cost = 32 * len(self.ends) + (16 * shape[0] if tree else 2 ** shape[0])
        self.work = 2 * len(self.features.nodes.indices) // max(len(self.features), 1) * shape[0] + cost

    def start(self) -> MarginalPoint:
        """The truth."""
        n_labels = self.aims.truth.shape[1]
        table, pairs = np.zeros((self.features.nodes.n_columns, n_labels)), np.zeros((len(self.ends), 4))
        return MarginalPoint(table, pairs, self.aims.truth.astype(np.float64), self._true_edges())

    def _true_edges(self) -> Floats:
        truth = self.aims.truth.astype(np.int64)
        on = 2 * truth[:, self.ends[:, 0]] + truth[:, self.ends[:, 1]]
        return np.ascontiguousarray(on[:, :, None] == np.arange(4), dtype=np.float64)

    def sweep(self, point: MarginalPoint, visits: Integers, gaps: Floats, values: Floats) -> int:
        """A joint step of each instance, and steps of its labels."""
        aims = self.aims
        return int(self._kernels().sweep(aims.rows, self.graph, self.search, aims.goals, *point, visits, gaps, values))

    def values(self, point: MarginalPoint) -> Floats:
        """H_i of all instances."""
        out = np.empty(len(self.aims.upper))
        self._kernels().values_of(self.aims.rows, self.graph, self.search, self.aims.goals, point.table, point.pairs, out)
        return out

    def summed(self, point: MarginalPoint) -> tuple[MarginalPoint, Floats]:
        """Both tables are summed up anew."""
        table = self.aims.table(point.nodes, self.features.nodes.n_columns)
        pairs = np.tensordot(self.aims.upper, self._true_edges() - point.edges, axes=1)
        return point._replace(table=table, pairs=pairs), self.aims.losses(point.nodes)

    def leap(self, point: MarginalPoint, reach: float) -> tuple[int, bool]:
        """None."""
        return 0, False

    def weights(self, point: MarginalPoint) -> Floats:
        """The flat weights."""
        return flat_weights(self.features, point.table, point.pairs)


def flat_weights(features: GraphFeatures, table: Floats, pairs: Floats) -> Floats:
    """The weights of nodes, off and on opposite, then those of edges; zeros where there is room for more."""
    out = np.zeros(features.dim)
    nodes = out[: features.start].reshape(table.shape[1], -1, 2)
    nodes[:, :, 1], nodes[:, :, 0] = table.T, -table.T
    out[features.start : features.start + pairs.size] = pairs.ravel()
    return out
