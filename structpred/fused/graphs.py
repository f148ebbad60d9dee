"""Graphs over node and edge features: many updates of an online trainer in one compiled call."""

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from structpred.core.moves import Moves
from structpred.core.oracle import Oracle, Shape
from structpred.core.part_steps import PartSteps
from structpred.core.steps import Visits
from structpred.errors import DataError
from structpred.features.graphs import GraphFeatures
from structpred.oracles.mrf import graph_of
from structpred.oracles.mrf_enumeration import enumeration_plan
from structpred.oracles.tree_mrf import TreeMRF, tree_plan
from structpred.runtime.ranges import ends_of

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

#: products and sums that one compiled call makes: some hundredths of a second
VISITED_WORK = 1 << 25


def graph_visits(steps: PartSteps, features: GraphFeatures, oracle: Oracle) -> Visits | None:
    """The compiled visits of steps over GraphFeatures with TreeMRF or EnumerationMRF, as neither of them was changed.

    None where the costs of all parts are too many to be kept, or nodes have one state.
    """
    costs = steps.costs.kept() if features.n_states > 1 else None
    return None if costs is None else GraphVisits(steps, features, isinstance(oracle, TreeMRF), *costs).visit


class GraphVisits:
    """Working memory of the visits, and what they need of all graphs."""

    def __init__(self, steps: PartSteps, features: GraphFeatures, tree: bool, constants: Floats, costs: Floats) -> None:
        places, shapes = ends_of(steps.inference.sizes), steps.inference.shapes
        self.graphs = (features.dim, *features.kernel_arguments)
        self.fixed = _flat_fixed(features)
        self.aim = (places, constants, costs, steps.truth, steps.ends)
        self.search = (tree, *_plans(shapes, tree_plan if tree else enumeration_plan))
        n_nodes = max(shape[0] for shape in shapes)
        n_parts = int(np.diff(steps.ends).max())  # of one output
        states = (
            np.empty(n_nodes, np.int64),
            np.empty((n_nodes, features.n_states)),
            np.empty((n_nodes, features.n_states), np.int32),
        )
        found = np.empty(n_parts, np.int64), np.empty(2 * n_parts, np.int64), np.empty(2 * n_parts)
        self.room, self.most = (np.empty(int(steps.inference.sizes.max())), *states, *found), VISITED_WORK

    def visit(self, items: Integers, moves: Moves, loss_weight: float) -> tuple[int, bool]:
        """Steps of many graphs with an online trainer's moves (`Visits` of the core)."""
        from structpred.fused._graph_visit_kernels import visit_graphs

        found: tuple[int, bool] = visit_graphs(
            items, self.graphs, self.fixed, self.aim, loss_weight, self.search, self.room, self.most,
            moves.rule, moves.limits, moves.state,
        )  # fmt: skip
        return found


def _plans(
    shapes: Sequence[Shape], plan_of: Callable[[Shape], Integers]
) -> tuple[Integers, Integers, Integers, Integers, Integers]:
    """(which graph each instance has, all edges, where those of a graph begin, all plans flat, where that of a graph begins)."""
    graphs, of_object = dict[Shape, int](), dict[int, int]()
    plans: list[Integers] = []
    for i, shape in enumerate(shapes):
        if id(shape) in of_object:  # hashing a long shape takes microseconds
            continue
        if (number := graphs.setdefault(shape, len(graphs))) == len(plans):
            try:
                plans.append(plan_of(shape).ravel())
            except DataError as error:
                raise DataError(f"sample {i}: {error}") from error
        of_object[id(shape)] = number
    edges = [graph_of(shape).edges for shape in graphs]
    edge_ends, plan_ends = (ends_of(np.array([len(one) for one in many], dtype=np.int64)) for many in (edges, plans))
    which = np.array([of_object[id(shape)] for shape in shapes], dtype=np.int64)
    return which, np.concatenate(edges), edge_ends, np.concatenate(plans), plan_ends


def _flat_fixed(features: GraphFeatures) -> tuple[Integers, Floats]:
    """(where the fixed scores of each instance begin, -1 for none; all of them, flat): what instances share comes once."""
    rows = [None] * len(features) if features.fixed is None else features.fixed.rows
    known = {id(row): row for row in rows if row is not None}
    places = dict(zip(known, ends_of(np.array([len(row) for row in known.values()], dtype=np.int64)).tolist(), strict=False))
    begins = np.array([-1 if row is None else places[id(row)] for row in rows], dtype=np.int64)
    return begins, np.concatenate([*known.values(), np.empty(0)])
