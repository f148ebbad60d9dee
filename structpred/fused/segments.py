"""Segments: a step in one compiled call, and many of them with the updates of an online trainer."""

from functools import cached_property
from typing import Any

from structpred.core.group_scales import GroupScales, Scale
from structpred.core.oracle import Oracle
from structpred.core.sparse import SparseVector
from structpred.core.types import Integers
from structpred.core.weights import Vector, check_length
from structpred.features.segments import SegmentFeatures
from structpred.runtime.ranges import ends_of
from structpred.task.fast.part_steps import PartSteps
from structpred.task.fast.update_rules import UpdateRule
from structpred.task.plain_steps import PlainSteps
from structpred.task.steps import CompiledUpdates, Step

#: parts that one compiled call looks at: some hundredths of a second
UPDATE_PARTS = 1 << 20


class SegmentSteps(PartSteps):
    """Those of blocks, but for these calls."""

    features: SegmentFeatures
    terms, violations = PlainSteps.terms, PlainSteps.violations  # single steps are faster than blocks

    def __init__(self, features: SegmentFeatures, oracle: Oracle, *more: Any) -> None:
        super().__init__(*more)

    @cached_property
    def _aim(self) -> tuple[Any, ...] | None:
        """Where parts begin, costs and true parts; None where the costs of all parts are too many to be kept."""
        kept = self.costs.kept()
        return None if kept is None else (ends_of(self.inference.sizes), *kept, self.truth, self.ends)

    def one(self, w: Vector, i: int, loss_weight: float, scale: Scale = 1.0) -> Step:
        """The plain step looks at what is in doubt."""
        from structpred.fused._segment_kernels import step_segments

        if self._aim is None or isinstance(scale, GroupScales):
            return super().one(w, i, loss_weight, scale)
        check_length(w, self.features.dim)
        certain, idx, val, loss, product = step_segments(w, float(scale), i, loss_weight, self.features.space, self._aim)
        if not certain:
            return super().one(w, i, loss_weight, scale)
        violation = loss_weight * loss - product
        return Step(SparseVector(idx, val), loss, violation, violation)

    def compiled_updates(self) -> CompiledUpdates | None:
        """Steps of many sequences with the update of an online trainer."""
        return None if self._aim is None else self.update_many

    def update_many(self, items: Integers, update: UpdateRule, loss_weight: float) -> tuple[int, bool]:
        """As `CompiledUpdates` of task/steps.py."""
        from structpred.fused._segment_kernels import segment_updates

        given = self.features.space, self._aim, UPDATE_PARTS
        found: tuple[int, bool] = segment_updates(items, loss_weight, *given, update.fixed, update.limits, update.state)
        return found
