"""Blocks of a dual kept as marginals, where all labels of an instance share one row of features: what a trainer asks for.

`task/fast/welds.py` says for which feature maps and oracles there are such blocks.
"""

from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from structpred.core.types import Floats, Integers
from structpred.task.fast import welds


class MarginalPoint(NamedTuple):
    """A dual point. table: (d, L), the weights of labels that are on; off they are the opposite. pairs: (E, 4), those of edges.

    nodes: for each instance the mass of each label, or of each output that is listed. listed: (n or 1, L, outputs), these.
    """

    table: Floats
    pairs: Floats
    nodes: Floats
    listed: npt.NDArray[np.int8]


class MarginalBlocks(Protocol):
    """The blocks of one training set: with p_i / lam = upper[i], D / p_i = costs . mu_i + <w, ...> as `trainers/marginal_bcfw.py`
    says.
    """

    #: numbers that a visit of one instance reads, about
    work: int

    def start(self) -> MarginalPoint:
        """Every block at the truth, all weights zero."""

    def sweep(self, point: MarginalPoint, visits: Integers, gaps: Floats, values: Floats) -> int:
        """Visit these instances in one compiled call: steps in `point`; the block's gap and H_i, as its last search found them,
        go to gaps[i] and values[i] (inf: none yet). Returns how many blocks moved.
        """

    def leap(self, point: MarginalPoint, reach: float) -> bool:
        """A proximal step of all blocks, `reach` times as far as one's own; whether it got all the way."""

    def values(self, point: MarginalPoint) -> Floats:
        """H_i of every instance at the weights of the point."""

    def summed(self, point: MarginalPoint) -> tuple[MarginalPoint, Floats]:
        """The same marginals with weights that are summed up anew; and the mean loss of each block under its marginals."""

    def weights(self, point: MarginalPoint) -> Floats:
        """The flat weights of the feature map."""


class MarginalLayout(Protocol):
    """A feature map and an oracle that have such blocks."""

    def blocks(self, truth: Integers, costs: Floats, upper: Floats) -> MarginalBlocks:
        """truth: (n, L) of 0 and 1. costs: (n, L), what a wrong label costs. upper: (n,), p_i / lam."""

    def independent(self, truth: Integers, costs: Floats, upper: Floats) -> MarginalBlocks:
        """The same for labels without edges between them, so that each label is a linear SVM."""


def find(task: Any) -> MarginalLayout | None:
    """The layout of a training set; None where nothing was written for its feature map and its oracle."""
    features, oracle, shapes = (getattr(task, name, None) for name in ("features", "oracle", "shapes"))
    if features is None or oracle is None or not shapes:
        return None
    return welds.find("marginal blocks", features, oracle, shapes)
