"""Oracles of one problem whose outputs are vectors of n numbers: whole numbers, or points with amounts."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from structpred.core.oracle import Labels, Oracle, Scores, Shape
from structpred.core.own_code import asked
from structpred.core.scores import checked_batch, checked_scores
from structpred.core.types import Floats, Integers
from structpred.errors import DataError, OracleError

#: labels count amounts in this unit
UNIT = 1e-12
#: what labels can hold
_LARGEST = 9e6
#: solvers keep whole numbers to 1e-5 or better
_WHOLE = 1e-4


def labels_of(mu: Floats) -> Labels:
    """Amounts as whole numbers of units. Raises DataError for those above 9e6.

    >>> labels_of(np.array([0.25, 0.0])).tolist()
    [250000000000, 0]
    """
    if np.abs(mu).max(initial=0.0) > _LARGEST:
        raise DataError(
            f"the best point has an amount of {np.abs(mu).max():.3g}: measure parts in larger units, up to {_LARGEST:g}"
        )
    return np.rint(mu / UNIT).astype(np.int64)


def no_parts(oracle: Oracle) -> OracleError:
    """What `parts` raises where outputs are points."""
    return OracleError(
        f"the outputs of {type(oracle).__name__} are points with amounts, not sets of parts: use a loss that needs the maximum "
        "alone, such as SPOPlus or PerturbedLoss, and trainer='adam'"
    )


class VectorOracle(Oracle):
    """The outputs are vectors x of n numbers, whose score is scores . x. There is one shape, (n,).

    whole: x_j is a whole number >= 0, labels are x, and part j is on x_j times. Else outputs are points (`Oracle.point`): labels
    are amounts in units of 1e-12. offers: the optional methods that this object has; they are written below with a low line.
    """

    expensive = True
    output = "vector"

    def __init__(self, n: int, whole: bool, offers: Sequence[str]) -> None:
        self.n, self.whole, self.only_shape = n, whole, (n,)
        self._offers = frozenset({*offers, "parts_batch" if whole else "point"})

    def __getattr__(self, name: str) -> Any:
        """The optional methods of `offers`."""
        if name in self.__dict__.get("_offers", ()):
            return getattr(self, f"_{name}")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @abstractmethod
    def solved(self, scores: Scores) -> tuple[Floats, float]:
        """The best vector that was found, and what no vector scores above (infinite where that is not known)."""

    def check(self, x: Floats) -> None:
        """Raise ValueError for n finite numbers that are no output."""

    def n_parts(self, shape: Shape) -> int:
        """n."""
        if shape != self.only_shape:
            raise DataError(f"{type(self).__name__} has one shape, {self.only_shape}, got {shape!r}")
        return self.n

    def example_shapes(self) -> list[Shape]:  # type: ignore[override]  # each problem has its own
        """The only one."""
        return [self.only_shape]

    def argmax(self, scores: Scores, shape: Shape) -> Labels:
        """The best vector that was found."""
        return self._argmax_bound(scores, shape)[0]

    def _argmax_bound(self, scores: Scores, shape: Shape) -> tuple[Labels, float]:
        x, bound = self.solved(checked_scores(scores, self.n_parts(shape), shape))
        labels = np.rint(x).astype(np.int64) if self.whole else labels_of(x)
        if self.whole and (away := np.abs(x - labels)).max() > _WHOLE:
            raise OracleError(
                f"expected whole numbers, but number {int(away.argmax())} is {x[away.argmax()]:.9g}; whole=False is for amounts"
            )
        return labels, bound

    def _argmax_batch(self, scores: Scores, offsets: Integers, shapes: Sequence[Shape]) -> tuple[Labels, Integers]:
        found = self._each("argmax", scores, offsets, shapes)
        return np.concatenate([np.empty(0, np.int64), *found]), self.n * np.arange(len(found) + 1)

    def _argmax_bound_batch(self, scores: Scores, offsets: Integers, shapes: Sequence[Shape]) -> tuple[Labels, Integers, Floats]:
        found = self._each("argmax_bound", scores, offsets, shapes)
        labels = np.concatenate([np.empty(0, np.int64), *(own for own, _ in found)])
        return labels, self.n * np.arange(len(found) + 1), np.array([bound for _, bound in found], dtype=np.float64)

    def _each(self, method: str, scores: Scores, offsets: Integers, shapes: Sequence[Shape]) -> list[Any]:
        flat, _ = checked_batch(scores, offsets, [self.n_parts(shape) for shape in shapes])
        rows = flat.reshape(-1, self.n)
        return [asked(i, self, method, row, shape) for i, (row, shape) in enumerate(zip(rows, shapes, strict=True))]

    def parts(self, labels: Labels, shape: Shape) -> Integers:
        """Part j x_j times. ValueError for what is no output; OracleError where outputs are points."""
        if not self.whole:
            raise no_parts(self)
        return np.repeat(np.arange(self.n), self._checked(labels, 1.0).astype(np.int64))

    def _parts_batch(self, labels: Labels, ends: Integers, shapes: Sequence[Shape]) -> tuple[Integers, Integers]:
        on = np.repeat(np.arange(len(labels)), labels)
        return on % self.n, np.searchsorted(on, ends)

    def _point(self, labels: Labels, shape: Shape) -> Floats:
        return self._checked(labels, UNIT)

    def _checked(self, labels: Labels | Floats, unit: float) -> Floats:
        if labels.shape != (self.n,):
            raise ValueError(f"expected {self.n} labels, a number a part, got an array of shape {labels.shape}")
        x = unit * labels.astype(np.float64)
        self.check(x)
        return x
