"""Decisions that are points of a convex set, with amounts of parts: shares, flows, loads. cvxpy finds the best one."""

from collections.abc import Iterable

import numpy as np

from structpred.core.oracle import Labels, Oracle, Scores, Shape
from structpred.core.types import Floats, Integers
from structpred.oracles.convex import ConvexOracle, Description
from structpred.oracles.solvers._vectors import UNIT, labels_of, no_parts

#: a point may lie so far outside of the set
_NEAR = 1e-7


class ConvexPoints(Oracle):
    """The points of the convex set of `describe(shape)`: the best one is the decision, and nothing is rounded.

    describe: as for ConvexOracle, which answers: polytopes by HiGHS, round sets by Clarabel to 1e-9 of the largest score,
    1e-8 at the least. So `exact` holds to that accuracy. Amounts are at most 9e6 in size.

    Outputs: `labels` are the amounts of all parts in units of 1e-12, as whole numbers; `point(labels, shape)` gives them back as
    floats. There are no parts that are on or off: `parts` refuses, and so do losses and trainers that need them. Those that need
    the maximum alone work: SPO+, PG, perceptron, hinge, perturbed losses and layers, black box, straight through.

    Raises what ConvexOracle raises, and DataError for amounts that are too large.

    >>> def disc(shape):
    ...     import cvxpy as cp
    ...     mu = cp.Variable(2)
    ...     return mu, [cp.norm(mu) <= shape[0]]
    >>> oracle = ConvexPoints(disc, example_shapes=[(1.0,)])
    >>> labels = oracle.argmax(np.array([3.0, 4.0]), (1.0,))
    >>> labels.dtype.name, (oracle.point(labels, (1.0,)).round(6) + 0.0).tolist()
    ('int64', [0.6, 0.8])
    """

    expensive = True
    output = "point"

    def __init__(self, describe: Description, *, example_shapes: Iterable[Shape]) -> None:
        self.convex = ConvexOracle(describe, example_shapes=example_shapes, accuracy=1e-9)

    def n_parts(self, shape: Shape) -> int:
        """The size of mu."""
        return self.convex.n_parts(shape)

    def example_shapes(self) -> list[Shape]:  # type: ignore[override]  # each instance has its own
        """Those given."""
        return self.convex.example_shapes()

    def argmax(self, scores: Scores, shape: Shape) -> Labels:
        """The best point, in units of 1e-12."""
        return labels_of(self.convex.argmax_relaxed(scores, shape))

    def point(self, labels: Labels, shape: Shape) -> Floats:
        """The amounts. ValueError for labels that stand for no point of the set (to 1e-7)."""
        if labels.shape != (self.n_parts(shape),):
            raise ValueError(f"expected {self.n_parts(shape)} amounts in units of {UNIT}, got labels of shape {labels.shape}")
        mu = UNIT * labels.astype(np.float64)
        if (away := self._outside(mu, shape)) > _NEAR * max(1.0, float(np.abs(mu).max(initial=0.0))):
            raise ValueError(f"the amounts {np.array2string(mu, threshold=8)} lie outside of the set, by {away:.3g}")
        return mu

    def _outside(self, mu: Floats, shape: Shape) -> float:
        """By how much a point lies outside of the set."""
        return self.convex.distance(mu, shape)

    def parts(self, labels: Labels, shape: Shape) -> Integers:
        """Always an OracleError: see `point`."""
        raise no_parts(self)

    def project(self, point: Scores, shape: Shape) -> Floats:
        """The nearest point of the set; see ConvexOracle."""
        return self.convex.project(point, shape)
