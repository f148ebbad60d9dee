"""Segments: a step in one compiled call."""

from typing import Any

from structpred.core.group_scales import GroupScales, Scale
from structpred.core.sparse import SparseVector
from structpred.core.weights import Vector, check_length
from structpred.task.fast.part_steps import PartSteps
from structpred.task.steps import Step


class SegmentSteps(PartSteps):
    """Those of blocks, but for single ones."""

    def __init__(self, features: object, oracle: object, *more: Any) -> None:
        super().__init__(*more)

    def one(self, w: Vector, i: int, loss_weight: float, scale: Scale = 1.0) -> Step:
        """The plain step looks at what is in doubt."""
        from structpred.fused._segment_kernels import step_segments

        if isinstance(scale, GroupScales):
            return super().one(w, i, loss_weight, scale)
        check_length(w, self.features.dim)
        space = self.features.space  # type: ignore[attr-defined]
        certain, found = step_segments(w, float(scale), i, loss_weight, space, self.parts[i], *self.costs.of(i))
        if not certain:
            return super().one(w, i, loss_weight, scale)
        idx, val, loss, violation = found
        return Step(SparseVector(idx, val), loss, violation, violation)
