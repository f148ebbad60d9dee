"""Blocks of marginals for labels that share a row: GraphFeatures with TreeMRF, EnumerationMRF or LabelPaths.

Which steps a block is given depends on its outputs: closed sets in a forest without edge tables, or outputs that are listed,
paths or those found on any graph with tables.
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
from structpred.core.products import dot
from structpred.core.types import Floats, Integers
from structpred.errors import DataError
from structpred.features.graphs import GraphFeatures
from structpred.oracles.fields._label_forest import PathEnds, forest_of
from structpred.oracles.label_paths import LabelPaths
from structpred.oracles.mrf import links_of
from structpred.oracles.mrf_enumeration import enumeration_plan
from structpred.oracles.tree_mrf import tree_plan
from structpred.runtime.lazy_names import later
from structpred.runtime.memory import check_fits
from structpred.task.fast.marginal_blocks import MarginalBlocks, MarginalLayout, MarginalPoint

#: Newton steps, and steps of conjugate gradients in each; what share of the error ends either; shortest step
NEWTON, GRADIENTS, SHARE, SHORT = 10, 25, 0.1, 1e-3


def leap(blocks: Any, point: MarginalPoint, reach: float) -> bool:
    """A proximal Newton step of all blocks at once, where visits of one after the other are slow: large C, rows that separate.

    The maximum of  D(mu) - sum_i p_i |mu_i - centre_i|^2 / (2 tau_i)  over the blocks has weights w = w(mu), mu_i the nearest
    point of its polytope to centre_i + tau_i slopes_i(w). That equation is solved for w by semismooth Newton steps, each a system
    that conjugate gradients solve over what is free to move (Rockafellar 1976; Li, Sun and Toh 2018). The point moves to that
    maximum, or as far towards it as the dual grows; returns whether it got all the way.

    reach: tau in units of a block's own curvature.
    """
    aims, kernels, sets, shape = blocks.aims, blocks.kernels(), blocks.sets(point), point.table.shape
    curvature = 2.0 * aims.upper * aims.rows[3]
    taus = np.where(curvature > 0.0, reach / np.maximum(curvature, 1e-300), 0.0)
    free, still = aims.goals[:2], (aims.truth, np.zeros_like(aims.costs))
    slopes, changes = np.empty_like(aims.costs), np.empty_like(aims.costs)
    nodes, marks = np.empty_like(point.nodes), np.empty((len(taus), point.nodes.shape[1] + 1), np.int32)

    def views(w: Floats) -> tuple[Floats, Floats]:
        return w[: point.table.size].reshape(shape), w[point.table.size :].reshape(-1, 4)

    def inner(a: Floats, b: Floats) -> float:
        return 2.0 * dot(a[: point.table.size], b[: point.table.size]) + dot(a[point.table.size :], b[point.table.size :])

    def weights_of(masses: Floats) -> tuple[Floats, Floats]:
        found, losses = blocks.summed(point._replace(nodes=masses))
        return np.concatenate((found.table.ravel(), found.pairs.ravel())), losses

    def error_at(w: Floats, step: float) -> Floats:
        kernels.nearest_points(sets, taus, slopes + step * changes, views(w)[1], point.nodes, nodes, marks)
        return w - weights_of(nodes)[0]

    def solved(error: Floats) -> Floats:
        x, rest, way, first = np.zeros_like(error), -error, -error, inner(error, error)
        size = first
        for _ in range(GRADIENTS):
            image = way.copy()
            kernels.follow(aims.rows, still, sets, taus * aims.upper, marks, *views(way), *views(image))
            step = size / inner(way, image)
            x, rest = x + step * way, rest - step * image
            size, before = inner(rest, rest), size
            if size <= SHARE**2 * first:
                break
            way = rest + size / before * way
        return x

    w, losses = weights_of(point.nodes)
    start, done, changes[:] = w, 0, 0.0
    kernels.slopes_at(aims.rows, free, point.table, slopes)
    error = error_at(w, 0.0)
    while done < NEWTON and inner(error, error) > SHARE**2 * inner(w - error - start, w - error - start):
        way, step = solved(error), 1.0
        kernels.slopes_at(aims.rows, still, np.ascontiguousarray(views(way)[0]), changes)
        first, error = inner(error, way), error_at(w + way, 1.0)
        while (last := inner(error, way)) > -0.5 * first and step > SHORT:  # the convex dual of it rises there
            step *= max(0.1, first / (first - last))
            error = error_at(w + step * way, step)
        w, done = w + step * way, done + 1
        slopes += step * changes
    end, found = weights_of(nodes)
    gain, square = dot(aims.upper, found - losses) - inner(start, end - start), inner(end - start, end - start)
    if gain > 0.0:
        step = 1.0 if gain >= square else gain / square
        point.nodes[:] = nodes if step == 1.0 else point.nodes + step * (nodes - point.nodes)
        point.table[:], point.pairs[:] = views(start + step * (end - start))
    return gain >= square


Bits = npt.NDArray[np.int8]
#: how many outputs the list of an instance has room for; pairwise steps of one visit
SLOTS, STEPS = 16, 10


def layout_of(features: GraphFeatures, oracle: Oracle, shapes: Sequence[Shape]) -> MarginalLayout | None:
    """The layout of this training set; None where none was written for it."""
    first = shapes[0]
    if "label_sets" not in features.capabilities or not all(shape is first or shape == first for shape in shapes):
        return None
    n_labels = len(first) if isinstance(oracle, LabelPaths) else first[0]
    independent = partial(ClosedBlocks, features, np.full(n_labels, -1, np.int64))
    if isinstance(oracle, LabelPaths):
        listed = partial(ListedBlocks, features, first, forest_of(first).to[oracle.to])
        return Layout(listed, independent) if features.fixed.rows is None else None
    if (parents := _closing_parents(features, first)) is not None:
        return Layout(partial(ClosedBlocks, features, parents), independent)
    graph = partial(ListedBlocks, features, first, None)
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
    try:
        return forest_of(tuple(parents.tolist())).parents
    except DataError:  # a circle
        return None


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


class Blocks:
    """What all blocks share: kernels, aims, and the arrays that kernels know outputs by."""

    kernels: "staticmethod[[], Any]"
    features: GraphFeatures
    aims: Aims
    sweep: Callable[..., int]

    @abstractmethod
    def sets(self, point: MarginalPoint) -> tuple[Any, ...]:
        """What kernels need to know of the outputs."""

    @abstractmethod
    def summed(self, point: MarginalPoint) -> tuple[MarginalPoint, Floats]:
        """The weights are summed up anew."""

    def values(self, point: MarginalPoint) -> Floats:
        """H_i of all instances."""
        gaps, out = np.zeros((2, len(self.aims.upper)))
        self.sweep(point, np.arange(len(out)), gaps, out, 0)
        return out

    def leap(self, point: MarginalPoint, reach: float) -> bool:
        """Over all blocks."""
        return leap(self, point, reach)

    def _work(self, n_labels: int, more: int) -> int:
        return 2 * len(self.features.nodes.indices) // max(len(self.features), 1) * n_labels + more

    def _point(self, nodes: Floats, n_edges: int, listed: Bits) -> MarginalPoint:
        table = np.zeros((self.features.nodes.n_columns, self.aims.truth.shape[1]))
        return MarginalPoint(table, np.zeros((n_edges, 4)), nodes, listed)


class ClosedBlocks(Blocks):
    """Closed sets: a block is the labels' marginals; joint steps of each tree, and steps of subtrees and of labels."""

    kernels = staticmethod(later("structpred.fused._closed_set_kernels"))

    def __init__(self, features: GraphFeatures, parents: Integers, truth: Integers, costs: Floats, upper: Floats) -> None:
        # the labels in depth-first order: each subtree is a run that begins with its top
        order = np.array(forest_of(tuple(parents.tolist())).order)
        self.features, self.place = features, np.argsort(order)
        above = parents[order]
        self.parents, self.sizes = np.where(above < 0, -1, self.place[above]), np.ones(len(order), np.int64)
        for v in range(len(order) - 1, -1, -1):
            if self.parents[v] >= 0:
                self.sizes[self.parents[v]] += self.sizes[v]
        self.aims, self.work = Aims.of(features, truth[:, order], costs[:, order], upper), self._work(len(order), 16 * len(order))

    def sets(self, point: MarginalPoint) -> tuple[Integers, ...]:
        """The forest."""
        return self.parents, self.sizes

    def start(self) -> MarginalPoint:
        """The truth."""
        check_fits(8 * self.aims.truth.size, f"{self.aims.truth.size:,} dual variables, one for each label of each sample,")
        return self._point(self.aims.truth.astype(np.float64), 0, np.empty((1, 0, 0), np.int8))

    def weights(self, point: MarginalPoint) -> Floats:
        """The flat weights: off and on are opposite, edges have none."""
        return flat_weights(self.features, point.table[:, self.place], np.empty(0))

    def summed(self, point: MarginalPoint) -> tuple[MarginalPoint, Floats]:
        """The table is summed up anew."""
        return point._replace(table=self.aims.table(point.nodes, len(point.table))), self.aims.losses(point.nodes)

    def sweep(self, point: MarginalPoint, visits: Integers, gaps: Floats, values: Floats, most: int = STEPS) -> int:
        """Steps of each instance, as the kernels say."""
        aims, forest = self.aims, self.sets(point)
        return int(self.kernels().sweep(aims.rows, forest, aims.goals, most, point.table, point.nodes, visits, gaps, values))


class ListedBlocks(Blocks):
    """Outputs that are listed: a block is a point of the simplex over them. known: paths, those of all instances, with a simplex
    in each tree; None: each has a list of its own, of what searches found.
    """

    kernels = staticmethod(later("structpred.fused._listed_set_kernels"))

    def __init__(
        self, features: GraphFeatures, shape: Shape, known: PathEnds | None, truth: Integers, costs: Floats, upper: Floats
    ) -> None:
        n_labels, plan, every = truth.shape[1], np.empty((0, 5), np.int64), np.empty(0, np.int64)
        self.features, self.aims, self.paths = features, Aims.of(features, truth, costs, upper), None
        self.ends, fixed, self.size = np.empty((0, 2), np.int64), np.empty(0), SLOTS
        self.runs, self.ladders, self.spans = np.array([[0, SLOTS]]), np.empty((0, SLOTS), np.int64), np.empty((0, 2), np.int64)
        if known is not None:  # in depth-first order, so that those through a label are a run of them
            self.paths, self.runs, self.size = np.ascontiguousarray(known.paths.T, np.int8), np.array(known.runs), len(known.ends)
            at, found = np.append(self.paths.argmax(axis=1), 0), np.append(self.paths.sum(axis=1), 0)
            self.ladders, self.spans = known.ladders, np.stack((at, at + found), axis=1)
        else:
            self.ends, ruled = links_of(shape).edges, features.fixed_scores(0)
            fixed = np.zeros(2 * n_labels + 4 * len(self.ends)) if ruled is None else np.array(ruled)
            try:
                plan = tree_plan(shape).copy()
            except DataError:  # a circle
                every = enumeration_plan(shape)
        self.search = plan, every, fixed
        self.work = self._work(n_labels, self.size * (n_labels + 8 * len(self.ends)) + (2**n_labels if len(every) else 0))
        _, self.truths = self._means(self.start())

    def sets(self, point: MarginalPoint) -> tuple[Any, ...]:
        """The edges, the outputs, the runs of these; the labels of each path, and the paths through each label."""
        return self.ends, point.listed, self.runs, self.ladders, self.spans

    def start(self) -> MarginalPoint:
        """The truth, which all places of a list hold at first."""
        truth, paths, n = self.aims.truth, self.paths, len(self.aims.truth)
        check_fits(8 * n * self.size + (n * self.size * truth.shape[1] if paths is None else 0), f"the outputs of {n:,} samples")
        masses, alike = np.zeros((n, self.size)), np.ones((n, self.size))
        if paths is not None:  # the path of the truth has the most labels with it in common, and no others
            alike = 2.0 * truth @ paths - paths.sum(axis=0)
        for first, last in self.runs:
            masses[np.arange(n), first + alike[:, first:last].argmax(axis=1)] = 1.0
        listed = np.repeat(truth[:, :, None], self.size, axis=2) if paths is None else paths[None]
        return self._point(masses, len(self.ends), listed)

    def _means(self, point: MarginalPoint) -> tuple[Floats, Floats]:
        labels, pairs = np.zeros(self.aims.truth.shape), np.zeros((len(self.ends), 4))
        self.kernels().means_of(self.sets(point), point.nodes, self.aims.upper, labels, pairs)
        return labels, pairs

    def sweep(self, point: MarginalPoint, visits: Integers, gaps: Floats, values: Floats, most: int = STEPS) -> int:
        """Searches, and pairwise steps of each instance."""
        aims, known = self.aims, (self.sets(point), self.search)
        return int(self.kernels().sweep(aims.rows, *known, aims.goals, most, *point[:3], visits, gaps, values))

    def summed(self, point: MarginalPoint) -> tuple[MarginalPoint, Floats]:
        """Both tables are summed up anew."""
        labels, pairs = self._means(point)
        table = self.aims.table(labels, len(point.table))
        return point._replace(table=table, pairs=self.truths - pairs), self.aims.losses(labels)

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
