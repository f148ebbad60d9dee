"""Formulas of logic over parts that are on or off; and the parent of such oracles."""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

from structpred.core.oracle import Labels, Oracle, Scores, Shape
from structpred.core.scores import check_listed, checked_batch, checked_scores, checked_sizes, runs_of
from structpred.core.types import Floats, Integers
from structpred.errors import ParameterError


def parts_of_rows(self: Any, labels: Labels, ends: Integers, shapes: Sequence[Shape]) -> tuple[Integers, Integers]:
    """The parts that are on in each row of 0 and 1, flat: the method `parts_batch` of oracles whose labels are these."""
    on = np.flatnonzero(labels)
    part_ends = np.searchsorted(on, ends)
    return on - np.repeat(ends[:-1], np.diff(part_ends)), part_ends


class TruthOracle(Oracle):
    """shape = (n,); labels[j] is 1 when part j is on, else 0. Each child says which of these rows are outputs."""

    @abstractmethod
    def best(self, scores: Floats) -> Labels:
        """The best row of each instance, (B, n), at scores (B, n)."""

    @abstractmethod
    def holds(self, labels: Labels) -> bool:
        """Whether a row of 0 and 1 is an output."""

    def n_parts(self, shape: Shape) -> int:
        """n."""
        return checked_sizes(shape, "parts")[0]

    def argmax(self, scores: Scores, shape: Shape) -> Labels:
        """The best row, in closed form."""
        return self.best(checked_scores(scores, self.n_parts(shape), shape)[None]).ravel()

    def argmax_batch(self, scores: Scores, offsets: Integers, shapes: Sequence[Shape]) -> tuple[Labels, Integers]:
        """The best row of each instance; neighbours of one shape are done together."""
        scores, offsets = checked_batch(scores, offsets, [self.n_parts(shape) for shape in shapes])
        runs = [(scores[offsets[first] : offsets[last]], last - first) for _, first, last in runs_of(shapes)]
        return np.concatenate([np.empty(0, np.int64), *(self.best(s.reshape(n, -1)).ravel() for s, n in runs)]), offsets.copy()

    def parts(self, labels: Labels, shape: Shape) -> Integers:
        """The parts that are on. ValueError for a row that is no output."""
        if labels.shape != (self.n_parts(shape),) or ((labels != 0) & (labels != 1)).any() or not self.holds(labels):
            raise ValueError(f"{labels.tolist()} is no row of {shape[0]} times 0 or 1 that keeps {self!r}")
        return np.flatnonzero(labels)

    parts_batch = parts_of_rows

    def enumerate(self, shape: Shape) -> Iterator[Labels]:
        """Every row that is an output."""
        check_listed(self.n_parts(shape))
        return filter(self.holds, (np.array(row, dtype=np.int64) for row in product((0, 1), repeat=shape[0])))

    @staticmethod
    def example_shapes() -> list[Shape]:
        """Up to 64 rows."""
        return [(3,), (4,), (6,)]


def best_count(scores: Floats, low: int, high: int | None) -> Labels:
    """(B, n): the best rows with low to high ones, None for n: the parts with positive scores, if not too few or too many."""
    wanted = np.clip((scores > 0).sum(axis=1, keepdims=True), low, high)
    place = np.argsort(np.argsort(-scores, axis=1, kind="stable"), axis=1)
    return (place < wanted).astype(np.int64)


#: what each formula says of a row of 0 and 1
FORMULAS: dict[str, Callable[[Labels], bool]] = {
    "or": lambda on: bool(on.any()),
    "xor": lambda on: on.sum() == 1,
    "at_most_one": lambda on: on.sum() <= 1,
    "not_all": lambda on: not on.all(),
    "iff": lambda on: on.all() == on.any(),
    "implies": lambda on: on[-1] >= on[:-1].all(),
    "and": lambda on: on[-1] == on[:-1].all(),
}


class Logic(TruthOracle):
    """shape = (n,); labels[j] is 1 when part j is on. The rows of 0 and 1 for which a formula is true.

    "or": at least one part is on. "xor": exactly one. "at_most_one": one or none. "not_all": at least one is off.
    "iff": all are on or all are off. "implies": where all parts but the last are on, the last one is, too.
    "and": the last one is on if and only if all others are; its score is then one of others that are on together.

    >>> Logic("implies").argmax(np.array([3.0, -1.0]), (2,)).tolist()
    [1, 1]
    """

    def __init__(self, formula: str) -> None:
        if formula not in FORMULAS:
            raise ParameterError(f"expected a formula of {', '.join(FORMULAS)}, got {formula!r}")
        self.formula = formula

    def __repr__(self) -> str:
        return f"Logic({self.formula!r})"

    def holds(self, labels: Labels) -> bool:
        """Whether the formula is true."""
        return bool(FORMULAS[self.formula](labels))

    def best(self, scores: Floats) -> Labels:
        """The best rows: by counting, or by what is cheapest to change where the signs of the scores are excluded."""
        n = scores.shape[1]
        if limits := {"or": (1, n), "xor": (1, 1), "at_most_one": (0, 1), "not_all": (0, n - 1)}.get(self.formula):
            return best_count(scores, *limits)
        if self.formula == "implies":
            best = best_count(scores, 0, n)
            excluded = np.flatnonzero(best[:, :-1].all(axis=1) & (best[:, -1] == 0))
            best[excluded, np.abs(scores[excluded]).argmin(axis=1)] ^= 1
            return best
        off = np.zeros_like(scores, dtype=np.int64)
        if self.formula == "and":
            off[:, :-1] = best_count(scores[:, :-1], 0, n - 2)
        gain = ((1 - off) * scores).sum(axis=1, keepdims=True)
        return np.where((gain > 0) | (n == 1 and self.formula == "and"), 1, off)
