"""Trees over arc features: many updates of an online trainer in one compiled call."""

import numpy as np
import numpy.typing as npt

from structpred.core.fixed_scores import FORBIDDEN
from structpred.features.arcs import ArcCall, ArcFeatures
from structpred.oracles.arborescence import ArborescenceOracle
from structpred.oracles.projective import ProjectiveOracle
from structpred.oracles.trees._trees import projective_scratch, tree_scratch
from structpred.task.fast.block_steps import BlockSteps
from structpred.task.fast.moves import Moves
from structpred.task.steps import Visits

#: arcs that one compiled call looks at: some hundredths of a second
VISITED_ARCS = 1 << 16


def tree_visits(features: ArcFeatures, oracle: ArborescenceOracle | ProjectiveOracle, steps: BlockSteps) -> Visits | None:
    """The compiled visits of these steps; None for features with fixed scores."""
    return TreeVisits(steps, features, oracle).visit if features.fixed.rows is None else None


class TreeVisits:
    """The compiled visits of steps over ArcFeatures with one of the two oracles of trees."""

    def __init__(self, steps: BlockSteps, features: ArcFeatures, oracle: ArborescenceOracle | ProjectiveOracle) -> None:
        scratch: ArcCall = steps.scratch
        projective, longest = isinstance(oracle, ProjectiveOracle), int(features.data.lengths.max(initial=1))
        self.words = (features.data.offsets, *scratch.corpus, FORBIDDEN)
        self.arcs, self.room, self.out, self.most = scratch.arcs, scratch.room, steps.out, VISITED_ARCS
        self.aim = (steps.starts, steps.gold, steps.weights)
        size = steps.buffer_size()
        self.pairs = (np.empty(size, np.int64), np.empty(size), steps.idx2, steps.val2)
        rooms = (projective_scratch(longest if projective else 0), *tree_scratch(0 if projective else longest))
        self.search = (projective, oracle.single_root, *rooms)

    def visit(self, items: npt.NDArray[np.int64], moves: Moves, loss_weight: float) -> tuple[int, bool]:
        """Steps of many sentences with an online trainer's moves (`Visits` of the core)."""
        from structpred.fused._tree_kernels import visit_trees

        found: tuple[int, bool] = visit_trees(
            items, self.words, self.arcs, self.room, self.aim, loss_weight, self.search, self.out, self.pairs, self.most,
            moves.rule, moves.limits, moves.state,
        )  # fmt: skip
        return found
