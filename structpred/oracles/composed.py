"""One oracle made of oracles that share parts: the best output on which all of them agree, with a bound and a proof."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any

import numpy as np

from structpred.core.fixed_scores import FORBIDDEN
from structpred.core.oracle import Labels, Oracle, Scores, Shape
from structpred.core.packing import parts_batch
from structpred.core.scores import checked_batch, checked_scores, kept_for_shapes
from structpred.core.stand_ins import redefined, stand_in
from structpred.core.types import ArrayLike, Floats, Integers
from structpred.errors import ConvergenceError
from structpred.oracles.composition.layout import Layout, Member, layout_of
from structpred.oracles.composition.listing import Listing
from structpred.oracles.composition.search import Search, Solved
from structpred.oracles.composition.within import best_within
from structpred.oracles.solvers._constraint_rows import checked_rows
from structpred.projections.lockstep import nearest_mixture
from structpred.runtime.ranges import packed
from structpred.runtime.settings import checked_whole

Place = Callable[[Shape], tuple[Shape, Integers]]


class Composed(Oracle):
    """The outputs on which several oracles agree, each of which holds some of the parts.

    oracles: pairs (oracle, place); place(shape) gives the member's own shape, and an array that says for each of its parts which
    part of the whole it is. Every part is held by a member; those that several hold are 0 or 1. Labels are the first member's,
    which must determine the output. A subclass that needs other labels, or several members of one oracle, overrides `members`,
    and `output_of` and `parts` where its labels are others. An own `parts_batch` gets whatever `output_of` makes of answers that
    differ, so that this must be an output then.

    Scores are shared out equally over the members that hold a part; the members are asked alone, at scores that multipliers
    change until they agree: min_lam sum_m max_v (theta_m + lam_m) . v, where sum_m theta_m = theta and sum_m lam_m = 0. That is a
    bound on all outputs, whatever lam is. Where members do not come to agree, branch and bound pins one part after the other.
    Few large members make tight bounds. Komodakis, Paragios & Tziritas, MRF energy minimization and beyond via dual
    decomposition, PAMI 2011.

    max_nodes: the most subproblems that one search looks at; `argmax` raises ConvergenceError where they do not suffice, and
    `argmax_bound` gives the best output found. None: no search; then ``exact`` is False, and `argmax_bound` gives the bound.
    warm: steps of training begin inference in an instance at the multipliers of its last visit, which takes fewer calls of
    members once weights settle; bounds hold as ever, a resumed run has the same bits, predictions depend on the scores alone.
    example_shapes: for the contract checks. label_grid: (n_positions, n_labels) of a shape, if the parts begin with such a grid.

    Raises InfeasibleError where members exclude every output, OracleError where they do not fit their parts.

    >>> from structpred.oracles.multiclass import MulticlassOracle
    >>> from structpred.oracles.knapsack import KnapsackOracle, knapsack_shape
    >>> both = Composed([  # the best of three, at most two of which are light enough
    ...     (MulticlassOracle(), lambda shape: ((3,), np.arange(3))),
    ...     (KnapsackOracle(), lambda shape: (knapsack_shape([1.0, 2.0, 1.5], [1.7]), np.arange(3))),
    ... ])
    >>> labels, bound = both.argmax_bound(np.array([1.0, 5.0, 2.0]), ())
    >>> labels.tolist(), bound
    ([2], 2.0)
    """

    label_grid: Callable[[Shape], tuple[int, int]]

    def __init__(
        self, oracles: Sequence[tuple[Oracle, Place]], *, max_nodes: int | None = 1000, warm: bool = False,
        example_shapes: Iterable[Shape] = (), label_grid: Callable[[Shape], tuple[int, int]] | None = None,
    ) -> None:  # fmt: skip
        self.oracles, self.warm, self._example_shapes = list(oracles), bool(warm), list(example_shapes)
        self.max_nodes = None if max_nodes is None else checked_whole(max_nodes, "max_nodes")
        self.exact, self.expensive = max_nodes is not None, any(oracle.expensive for oracle, _ in self.oracles)
        #: whether `output_of` looks at all members' answers, not at the first one alone; whether `parts` asks no member
        self.by_all_members = redefined(self, Composed, ("output_of",)) is not None
        self.cheap_parts = redefined(self, Composed, ("parts", "parts_batch")) is not None
        if not warm:
            self.argmax_bound_from = None  # type: ignore[assignment]  # that it is there switches warm starts on
        if max_nodes is None:
            self.project = self.kbest = self.argmax_constrained = None  # type: ignore[assignment, method-assign]  # no search
        if label_grid is not None:
            self.label_grid = label_grid

    def members(self, shape: Shape) -> list[Member]:
        """The members of a shape, with their shapes and parts; the same for equal shapes."""
        return [Member(oracle, *place(shape)) for oracle, place in self.oracles]

    def n_parts(self, shape: Shape) -> int:
        """One more than the largest part that a member holds."""
        return len(self._layout(shape).holders)

    def closed(self, shape: Shape) -> Integers:
        """Parts that no output has, whatever they score, although a member would have them: none."""
        return np.empty(0, np.int64)

    def output_of(self, answers: Sequence[Labels], shape: Shape) -> Labels | None:
        """The labels of the whole from the members' labels, None where these exclude it: the first member's."""
        return answers[0]

    def parts(self, labels: Labels, shape: Shape) -> Integers:
        """The parts of the first member, and what the others answer to these; ValueError where one of them excludes them."""
        layout, known = self._layout(shape), np.full(self.n_parts(shape), -1)
        for k, (oracle, own, parts) in enumerate(layout.members):
            theirs = known[parts]
            answer = oracle.argmax(np.sign(2.0 * theirs - 1.0) * (theirs >= 0), own) if k else labels
            counts = np.bincount(oracle.parts(answer, own), minlength=len(parts))
            if (theirs >= 0).any() and (counts != theirs)[theirs >= 0].any():
                raise ValueError(f"{type(oracle).__name__}, member {k} of {type(self).__name__}, excludes the labels {labels}")
            known[parts] = counts
        return np.repeat(np.arange(len(known)), known)

    def example_shapes(self) -> list[Shape]:  # type: ignore[override]  # each instance has its own
        """Those given."""
        return list(self._example_shapes)

    def argmax(self, scores: Scores, shape: Shape) -> Labels:
        """The best output."""
        return self.argmax_batch(scores, np.array([0, np.size(scores)]), [shape])[0]

    def argmax_batch(self, scores: Scores, offsets: Integers, shapes: Sequence[Shape]) -> tuple[Labels, Integers]:
        """The best output of each instance, in lockstep."""
        found, bounds, proven = self._solved(scores, offsets, shapes)
        if self.max_nodes is not None and not all(proven):
            i = proven.index(False)
            raise ConvergenceError(
                f"sample {i}: not finished after {self.max_nodes:,} subproblems, the bound is {bounds[i]:.9g}; raise "
                "max_nodes, compose fewer and larger members, or ask argmax_bound"
            )
        return packed(found)

    def argmax_bound(self, scores: Scores, shape: Shape) -> tuple[Labels, float]:
        """The best output found, and a bound on all."""
        labels, _, bounds = self.argmax_bound_batch(scores, np.array([0, np.size(scores)]), [shape])
        return labels, float(bounds[0])

    def argmax_bound_batch(self, scores: Scores, offsets: Integers, shapes: Sequence[Shape]) -> tuple[Labels, Integers, Floats]:
        """`argmax_bound` of each instance, in lockstep."""
        found, bounds, _ = self._solved(scores, offsets, shapes)
        return *packed(found), bounds

    def argmax_bound_from(
        self, scores: Scores, offsets: Integers, shapes: Sequence[Shape], starts: Sequence[Floats | None]
    ) -> tuple[Labels, Integers, Floats, list[Floats]]:
        """`argmax_bound_batch` of at least one instance from multipliers of earlier calls, and those at the end; if ``warm``."""
        search = self._search(scores, offsets, shapes)
        found = search.go(starts)
        return *packed(found.labels), found.bounds, search.states

    def kbest(self, scores: Scores, shape: Shape, k: int) -> list[Labels]:
        """The k best outputs without forbidden parts, best first (Lawler 1972); ConvergenceError where max_nodes each fail."""
        given = checked_scores(scores, self.n_parts(shape), shape)
        return Listing(self._search(given, np.array([0, len(given)]), [shape]), k).go() if k > 0 else []

    def argmax_constrained(self, scores: Scores, shape: Shape, A: ArrayLike, b: ArrayLike) -> Labels | None:
        """The best output with A mu <= b and without forbidden parts, None if there is none; ConvergenceError as `kbest`."""
        given = checked_scores(scores, self.n_parts(shape), shape)
        rows = checked_rows(A, b, len(given))
        return None if rows is None else best_within(self, given, shape, *rows)

    project = nearest_mixture

    def _solved(self, scores: Scores, offsets: Integers, shapes: Sequence[Shape]) -> Solved:
        return self._search(scores, offsets, shapes).go() if len(shapes) else Solved([], np.empty(0), [])

    def _search(self, scores: Scores, offsets: Integers, shapes: Sequence[Shape]) -> Search:
        layouts = [self._layout(shape) for shape in shapes]
        flat, offsets = checked_batch(scores, offsets, [len(one.holders) for one in layouts])
        closed = [self.closed(shape) + first for shape, first in zip(shapes, offsets, strict=False)]
        if sum(map(len, closed)):
            flat = flat.copy()
            flat[np.concatenate(closed)] = FORBIDDEN
        return Search(self, shapes, layouts, flat, self.max_nodes)

    @cached_property
    def _layout(self) -> Callable[[Shape], Layout]:
        return kept_for_shapes(lambda shape: layout_of(self.members(shape), type(self).__name__))

    def __getstate__(self) -> dict[str, Any]:
        """Without what is kept for shapes."""
        return {name: value for name, value in vars(self).items() if name != "_layout"}

    def outputs(self, labels: list[Labels], shapes: list[Shape]) -> tuple[list[int], Integers, Integers]:
        """(which of these labels are outputs, their parts, where each output's begin)."""
        if stand_in(self, "parts_batch", ("parts", "n_parts")) is not None:
            return [*range(len(labels))], *parts_batch(self, *packed(labels), shapes)
        which, found = [], []
        for k, (y, shape) in enumerate(zip(labels, shapes, strict=True)):
            with suppress(ValueError):
                found.append(np.asarray(self.parts(y, shape), dtype=np.int64))
                which.append(k)
        return which, *packed(found)
