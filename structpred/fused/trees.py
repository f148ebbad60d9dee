"""Trees over arc features: a step in one compiled call, and many of them with the updates of an online trainer."""

from functools import cached_property
from typing import Any

import numpy as np

from structpred.core.fixed_scores import FORBIDDEN
from structpred.core.group_scales import GroupScales, Scale
from structpred.core.oracle import Oracle
from structpred.core.sparse import SparseVector
from structpred.core.types import Floats, Integers
from structpred.core.weights import Vector, check_length
from structpred.errors import InfeasibleError
from structpred.features.arcs import ArcFeatures
from structpred.oracles.projective import ProjectiveOracle
from structpred.oracles.trees._trees import projective_scratch, tree_room
from structpred.task.fast.part_steps import PartSteps
from structpred.task.fast.update_rules import UpdateRule
from structpred.task.inference import Inference
from structpred.task.plain_steps import PlainSteps
from structpred.task.score_consistency import DRIFT
from structpred.task.steps import CompiledUpdates, Step
from structpred.task.task_checks import doubtful

#: arcs that one compiled call looks at: some hundredths of a second
UPDATE_ARCS = 1 << 16


def tree_steps(features: ArcFeatures, oracle: Oracle, inference: Inference, *more: Any) -> "TreeSteps | None":
    """The steps over ArcFeatures and one of the two oracles of trees; None for costs that are no one grid."""
    steps = TreeSteps(inference, *more) if inference.batched and not inference.bounded else None
    return None if steps is None or steps.grid is None else steps


class TreeSteps(PartSteps):
    """Those of blocks, but for these calls. `terms` takes single steps: they are faster than blocks."""

    features: ArcFeatures
    terms = PlainSteps.terms
    most = UPDATE_ARCS

    @cached_property
    def _memory(self) -> tuple[Any, ...]:
        """What the kernels read and write: sentences, arcs, room, aim, search, scores and heads, and two lists of pairs."""
        features, oracle = self.features, self.oracle
        longest, projective = int(features.data.lengths.max(initial=1)), isinstance(oracle, ProjectiveOracle)
        scratch = features.new_scratch(longest)
        sentences = (features.data.offsets, *scratch.corpus, FORBIDDEN, *features.fixed.flat(len(features)))
        rooms = projective_scratch(longest if projective else 0), tree_room(0 if projective else longest)
        search = (projective, oracle.single_root, *rooms)  # type: ignore[attr-defined]
        most = 2 * longest * (len(features.templates) + min(features.data.n_tags, longest))  # every head wrong: two arcs a word
        found = np.empty(longest * (longest + 1)), np.empty(longest, np.int64)
        pairs = np.empty(most, np.int64), np.empty(most), np.empty(most, np.int64), np.empty(most)
        return sentences, scratch.arcs, scratch.room, self.grid, search, found, pairs

    def one(self, w: Vector, i: int, loss_weight: float, scale: Scale = 1.0) -> Step:
        """The plain step looks at what is in doubt: a contradiction, a score that is not finite, two sums that differ."""
        from structpred.fused._tree_kernels import step_tree

        if isinstance(scale, GroupScales):
            return super().one(w, i, loss_weight, scale)
        check_length(w, self.features.dim)
        finite, n, loss, product, gap, size = step_tree(w, float(scale), i, loss_weight, self._memory)
        violation = loss_weight * loss - product
        if not finite or violation < doubtful(loss_weight * loss) or not abs(gap - product) <= DRIFT * size:
            super().one(w, i, loss_weight, scale)
        idx, val, _, _ = self._memory[6]
        return Step(SparseVector(idx[:n], val[:n]), loss, violation, violation)

    def last_parts(self, i: int) -> Integers:
        """The arcs of the tree that the last step found."""
        n, heads = int(self.features.data.lengths[i]), self._memory[5][1]
        return np.arange(n) * (n + 1) + heads[:n]

    def compiled_updates(self) -> CompiledUpdates:
        """Steps of many sentences with the update of an online trainer."""
        return self.update_many

    def update_many(self, items: Integers, update: UpdateRule, loss_weight: float) -> tuple[int, bool]:
        """As `CompiledUpdates` of task/steps.py."""
        from structpred.fused._tree_kernels import tree_updates

        return tree_updates(items, loss_weight, self._memory, self.most, update.fixed, update.limits, update.state)

    def violations(self, w: Vector, loss_weight: float) -> Floats:
        """From what the trees found and the true ones score, not from differences, which cost more than a search.

        So the last bits may not be those of single steps.
        """
        from structpred.fused._tree_kernels import tree_values
        from structpred.task.fast._part_kernels import add_grid

        def block(first: int, last: int, places: Integers) -> Floats:
            scores, values = self.inference.score_block(w, 1.0, first, last, places), np.empty((3, last - first))
            add_grid(self.grid, first, last, places, loss_weight, scores)
            heads = self.inference.best_of_block(scores, first, last, places)[0]
            tree_values(scores, places, self.grid, first, last, heads, values)
            return values

        blocks = self.inference.in_blocks(block, 0, len(self.inference), self.inference.n_jobs)
        losses, found, truths = np.concatenate([np.empty((3, 0)), *blocks], axis=1)
        if (impossible := np.flatnonzero(found <= 0.5 * FORBIDDEN)).size:
            raise InfeasibleError(f"sample {impossible[0]}: no {self.oracle.output} satisfies the constraints")
        return self.confirmed(w, loss_weight, losses, found - truths)
