"""Graphs over node and edge features: many updates of an online trainer in one compiled call."""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from structpred.core.oracle import Oracle, Shape
from structpred.core.types import Integers
from structpred.errors import DataError
from structpred.features.graphs import GraphFeatures
from structpred.oracles.fields._label_forest import forest_of
from structpred.oracles.label_paths import LabelPaths
from structpred.oracles.mrf import graph_of
from structpred.oracles.mrf_enumeration import enumeration_plan
from structpred.oracles.tree_mrf import TreeMRF, tree_plan
from structpred.runtime.ranges import ends_of
from structpred.task.fast.part_steps import PartSteps
from structpred.task.fast.update_rules import UpdateRule
from structpred.task.steps import CompiledUpdates

#: (its kind, which graph each instance has, all edges, where those of a graph begin, all plans, where that of a graph begins)
Search = tuple[int, Integers, Integers, Integers, Integers, Integers]

#: products and sums that one compiled call makes: some hundredths of a second
UPDATE_WORK = 1 << 25


def graph_steps(features: GraphFeatures, oracle: Oracle, *more: Any) -> "GraphSteps":
    """The steps over GraphFeatures with TreeMRF, EnumerationMRF or LabelPaths."""
    return GraphSteps(*more)


class GraphSteps(PartSteps):
    """Those of blocks, also many updates in a compiled call."""

    features: GraphFeatures
    most = UPDATE_WORK

    @cached_property
    def memory(self) -> tuple[Any, ...] | None:
        """What the kernels read and write: graphs, fixed scores, aim, search and room; None where there are no such updates."""
        features, inference = self.features, self.inference
        costs = self.costs.kept() if features.n_states > 1 and not inference.bounded else None
        if costs is None:
            return None
        n = int(np.diff(self.ends).max())  # parts of one output, of which there is one a node
        states = np.empty(n, np.int64), np.empty((n, features.n_states)), np.empty((n, features.n_states), np.int32)
        room = (np.empty(int(inference.sizes.max())), *states, np.empty(n, np.int64), np.empty(2 * n, np.int64), np.empty(2 * n))
        graphs, aim = (features.dim, *features.kernel_arguments), (ends_of(inference.sizes), *costs, self.truth, self.ends)
        return graphs, features.fixed.flat(len(features)), aim, _search(inference.shapes, self.oracle), room

    def compiled_updates(self) -> CompiledUpdates | None:
        """None where the oracle gives bounds, the costs of all parts are too many to be kept, or nodes have one state."""
        return None if self.memory is None else self.update_many

    def update_many(self, items: Integers, update: UpdateRule, loss_weight: float) -> tuple[int, bool]:
        """Steps of many graphs with the update of an online trainer (`CompiledUpdates` of the core)."""
        from structpred.fused._graph_update_kernels import graph_updates

        assert self.memory is not None
        graphs, fixed, aim, search, room = self.memory
        return graph_updates(
            items, graphs, fixed, aim, loss_weight, search, room, self.most, update.fixed, update.limits, update.state
        )


def _plan_of(oracle: Oracle) -> tuple[int, Callable[[Shape], tuple[Integers, Integers]]]:
    """The kind of search, and what it needs to know of a graph: (edges, plan)."""
    from structpred.fused._graph_update_kernels import ENUMERATION, PATHS, TREE

    if isinstance(oracle, LabelPaths):
        no_edges = np.empty((0, 2), np.int64)
        return PATHS, lambda shape: (no_edges, np.concatenate((shape, forest_of(shape).to[oracle.to].ends)))
    kind, plan = (TREE, tree_plan) if isinstance(oracle, TreeMRF) else (ENUMERATION, enumeration_plan)
    return kind, lambda shape: (graph_of(shape).edges, plan(shape).ravel())


def _search(shapes: Sequence[Shape], oracle: Oracle) -> Search:
    """What the kernels need to know of the graphs, each once. DataError, naming the sample, for what the oracle refuses."""
    kind, plan_of = _plan_of(oracle)
    graphs, of_object = dict[Shape, int](), dict[int, int]()
    found: list[tuple[Integers, Integers]] = []
    for i, shape in enumerate(shapes):
        if id(shape) in of_object:  # hashing a long shape takes microseconds
            continue
        if (number := graphs.setdefault(shape, len(graphs))) == len(found):
            try:
                found.append(plan_of(shape))
            except DataError as error:
                raise DataError(f"sample {i}: {error}") from error
        of_object[id(shape)] = number
    which = np.array([of_object[id(shape)] for shape in shapes], dtype=np.int64)
    edges, plans = zip(*found, strict=True)
    return (kind, which, *_joined(edges), *_joined(plans))


def _joined(arrays: Sequence[Integers]) -> tuple[Integers, Integers]:
    """All of them in one, and where each begins."""
    return np.concatenate(arrays), ends_of(np.array([len(one) for one in arrays], dtype=np.int64))
