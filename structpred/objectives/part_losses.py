"""Losses that decompose over parts: loss(y_i, y) = constant + costs . mu(y)."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from structpred.core.costs import GridCosts, PartCosts
from structpred.core.oracle import Labels, Oracle, Shape
from structpred.core.types import ArrayLike, Flags, Floats, Integers
from structpred.errors import LossError, ParameterError


class LabelCosts:
    """A cost for each pair (true label, predicted label), summed over the positions of the oracle's label grid.

    Parameters
    ----------
    matrix: (n_labels, n_labels), finite, >= 0, with a zero diagonal: row k for the true label k. Token weights, where there are
    such, multiply the costs of their position. Raises ParameterError for any other matrix, and in training for oracles
    without a label grid or with another number of labels.

    Examples
    --------
    >>> LabelCosts([[0, 2], [1, 0]]).matrix.tolist()
    [[0.0, 2.0], [1.0, 0.0]]
    """

    def __init__(self, matrix: ArrayLike) -> None:
        self.matrix = np.array(matrix, dtype=np.float64, order="C")
        if self.matrix.ndim != 2 or self.matrix.shape[0] != self.matrix.shape[1]:
            raise ParameterError(f"label costs must be a square matrix, got shape {self.matrix.shape}")
        if not np.isfinite(self.matrix).all() or (self.matrix < 0).any() or np.diag(self.matrix).any():
            raise ParameterError("label costs must be finite, >= 0, and zero on the diagonal (the truth costs nothing)")
        self.matrix.flags.writeable = False  # so that a task need not compare it from instance to instance

    def costs(self, labels: Labels, shape: Shape, oracle: Oracle) -> GridCosts:
        """The matrix, at every position."""
        grid = getattr(oracle, "label_grid", None)
        if grid is not None and (n_labels := grid(shape)[1]) != len(self.matrix):
            raise ParameterError(f"label costs are {self.matrix.shape}, but there are {n_labels} labels")
        return GridCosts(self.matrix)


class Hamming:
    """The number of positions with a wrong label, each weighed by its token weight where there are such.

    For an oracle without a label grid it is the number of true parts that the output misses, repeats counted. That is the same
    number wherever every output has equally many parts (matchings, trees). Token weights are then refused. Where an output may
    repeat a part more often than the truth does (tied parts), it can be negative and is not a loss: use ExtraParts.

    Examples
    --------
    >>> from structpred.oracles.multiclass import MulticlassOracle
    >>> Hamming().costs(np.array([1]), (3,), MulticlassOracle())
    GridCosts(cost=1.0)
    """

    name: ClassVar[str] = "hamming"

    def costs(self, labels: Labels, shape: Shape, oracle: Oracle) -> GridCosts | PartCosts:
        """On a grid: every wrong label costs 1. Else: the number of true parts, less one for each part that is met."""
        if hasattr(oracle, "label_grid"):
            return GridCosts(1.0)
        parts = oracle.parts(labels, shape)
        costs = np.zeros(oracle.n_parts(shape))
        costs[parts] = -1.0
        return PartCosts(float(len(parts)), costs)

    def allowed_costs(self, ruled_out: Flags, shape: Shape, oracle: Oracle) -> PartCosts:
        """Where the true output is known in part, without a label grid: the number of parts that it cannot have."""
        return PartCosts(0.0, ruled_out.astype(np.float64))


class ExtraParts(Hamming):
    """The number of the output's parts that are not among the true ones, repeats counted: never negative, for any oracle.

    It is Hamming's number where every output has equally many parts and repeats none. An output that only leaves out true parts
    costs nothing.
    """

    name: ClassVar[str] = "extra_parts"

    def costs(self, labels: Labels, shape: Shape, oracle: Oracle) -> PartCosts:
        """One for each part that is not true."""
        costs = np.ones(oracle.n_parts(shape))
        costs[oracle.parts(labels, shape)] = 0.0
        return PartCosts(0.0, costs)


class Regret:
    """loss(y_i, y) = c_i . mu(y_i) - c_i . mu(y), with true part scores c_i of each instance and its best output y_i.

    The margin-rescaled hinge of this loss, at twice the scores, is SPO+ (Elmachtoub & Grigas 2022), so that every trainer of
    structural support vector machines minimises SPO+. A true output that is not the best one is refused: others would cost less.

    true_scores: an array with one number a part for each instance; minus the costs where costs are minimised. missed: a number an
    instance, by how much its true output may miss the best one, where a solver that stops at a gap found it.

    >>> from structpred.oracles.multiclass import MulticlassOracle
    >>> Regret([[1.0, 3.0]]).loss_of(0).costs(np.array([1]), (2,), MulticlassOracle())
    PartCosts(constant=3.0, costs=array([-1., -3.]))
    """

    def __init__(self, true_scores: Sequence[ArrayLike], missed: Floats | None = None) -> None:
        self.true_scores = [np.asarray(own, dtype=np.float64) for own in true_scores]
        self.missed = np.zeros(len(self.true_scores)) if missed is None else missed

    def loss_of(self, i: int) -> "RegretOf":
        """The loss of instance i. Raises LossError where there is no such instance."""
        if i >= len(self.true_scores):
            raise LossError(f"sample {i}: there are true scores of {len(self.true_scores)} instances")
        return RegretOf(self.true_scores[i])

    def take(self, rows: Integers) -> "Regret":
        """That of these instances."""
        return Regret([self.true_scores[i] for i in rows.tolist()], self.missed[rows])


class RegretOf:
    """The regret of one instance, whose parts have these true scores."""

    def __init__(self, true_scores: Floats) -> None:
        self.true_scores = true_scores

    def costs(self, labels: Labels, shape: Shape, oracle: Oracle) -> PartCosts:
        """Minus the true scores; the constant is the score of the true output."""
        if self.true_scores.shape != (oracle.n_parts(shape),):
            raise LossError(f"expected {oracle.n_parts(shape)} true scores, one a part, got shape {self.true_scores.shape}")
        return PartCosts(float(self.true_scores[oracle.parts(labels, shape)].sum()), -self.true_scores)
