"""What decisions are worth at the true scores, and how much is lost against the best ones."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from structpred.core.oracle import Labels, Oracle, Shape
from structpred.core.packing import argmax_batch, check_finite, has_points, parts_batch, points_batch
from structpred.core.types import ArrayLike, Floats, Integers
from structpred.errors import DataError, ParameterError
from structpred.runtime.ranges import ends_of, packed

#: one number a part: an array (n, p), or an array for each instance
Numbers = ArrayLike | Sequence[ArrayLike]


class PartScores(NamedTuple):
    """The part scores of instances with these shapes, flat; those of instance i are scores[offsets[i]:offsets[i + 1]]."""

    oracle: Oracle
    shapes: Sequence[Shape]
    offsets: Integers
    scores: Floats

    def split(self) -> list[Floats]:
        """Views, one an instance."""
        return [self.scores[a:b] for a, b in pairwise(self.offsets.tolist())]

    def best(self) -> tuple[Labels, Integers]:
        """The best output of each instance: (flat labels, label offsets)."""
        return argmax_batch(self.oracle, self.scores, self.offsets, self.shapes)

    def values(self, labels: Labels, ends: Integers) -> Floats:
        """(n,): the score of each of these outputs."""
        if has_points(self.oracle):
            amounts = points_batch(self.oracle, labels, ends, self.shapes, np.diff(self.offsets))
            return np.array([a @ b for a, b in zip(self._replace(scores=amounts).split(), self.split(), strict=True)])
        parts, part_ends = parts_batch(self.oracle, labels, ends, self.shapes)
        owners = np.repeat(np.arange(len(self.shapes)), np.diff(part_ends))
        return np.bincount(owners, self.scores[self.offsets[owners] + parts], len(self.shapes)).astype(np.float64, copy=False)


class Regrets(NamedTuple):
    """What each decision loses. regrets: (n,), >= 0 where the oracle is exact. best: (n,), what the best decisions are worth."""

    regrets: Floats
    best: Floats

    @property
    def mean(self) -> float:
        """The mean regret."""
        return float(self.regrets.mean())

    @property
    def normalised(self) -> float:
        """The sum of the regrets over the sum of |what the best decisions are worth|; inf or nan where that is 0."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return float(self.regrets.sum() / np.abs(self.best).sum())


def true_scores(oracle: Oracle, shapes: Sequence[Shape], costs: Numbers | None, values: Numbers | None) -> PartScores:
    """The scores that decisions maximise: minus the costs of the parts, or their values, of which one is given.

    Either is an array (n, p) where all instances have p parts, or a list with an array for each. Raises ParameterError unless
    exactly one is given, DataError, naming the sample, where it does not fit the shapes or is not finite.
    """
    if (costs is None) == (values is None):
        raise ParameterError("give costs=, which are minimised, or values=, which are maximised: one of them, not both")
    given, what = (values, "values") if costs is None else (costs, "costs")
    sizes = np.array([oracle.n_parts(shape) for shape in shapes], dtype=np.int64)
    table: Any = given
    try:
        table = table.to_numpy() if hasattr(table, "to_numpy") else table  # a data frame iterates over its names
        rows = [np.asarray(own, dtype=np.float64) for own in table]
    except (TypeError, ValueError) as error:
        raise DataError(f"{what}: expected an array with one number a part for each instance: {error}") from None
    if len(rows) != len(sizes):
        raise DataError(f"{what}: there are {len(sizes)} instances, but {what} of {len(rows)}")
    for i, row in enumerate(rows):
        if row.shape != (sizes[i],):
            raise DataError(f"sample {i}: expected {sizes[i]} {what}, one a part, got an array of shape {row.shape}")
    flat, offsets = np.concatenate([np.empty(0), *rows]), ends_of(sizes)
    check_finite(flat, offsets)
    return PartScores(oracle, shapes, offsets, -flat if values is None else flat)


def regrets(truth: PartScores, decisions: tuple[Labels, Integers]) -> Regrets:
    """What these decisions, (flat labels, label offsets), lose at the true scores."""
    best = truth.values(*truth.best())
    return Regrets(best - truth.values(*decisions), best)


def packed_labels(outputs: Sequence[ArrayLike]) -> tuple[Labels, Integers]:
    """(flat labels, label offsets) of a list of labels."""
    return packed([np.asarray(labels, dtype=np.int64) for labels in outputs])
