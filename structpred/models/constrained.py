"""Hard constraints at prediction, for every estimator: rules over parts of samples, in the terms in which users know these."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from operator import index
from typing import Any

import numpy as np

from structpred.core.fixed_scores import FORBIDDEN
from structpred.core.oracle import Labels, Oracle, Scores, Shape
from structpred.core.packing import has_points, parts_batch
from structpred.core.types import Integers
from structpred.errors import ConvergenceError, DataError, InfeasibleError, ParameterError
from structpred.oracles.composed import Composed
from structpred.oracles.composition.layout import Member
from structpred.task.inference import Inference

#: the most subproblems of the search for one output: more of them change no answer, but prove some in place of an error
MAX_SUBPROBLEMS = 1000


@dataclass(frozen=True)
class Constraint:
    """A rule that predicted parts must keep: ``predict(X, constraints=[Constraint(...), ...])``.

    rule: a `Budget`, a formula of `Logic`, or any oracle over n parts with the shape (n,). parts: what it binds, in the order of
    the rule: of sequences and graphs (position, label); of `SegmentLabeler` (where a segment of any length begins, one of its
    classes_), so that budgets count segments; of trees arcs (head, word), words from 1 on, 0 being the root; of label sets names
    of labels; of `StructuredPredictor` and `DecisionModel` (position, label) as whole numbers, or numbers of parts, such as edges
    or items. None stands for all positions, labels of segments, heads, words or names. sample: its number; None: each of them.

    >>> from structpred.models import ChainLabeler, Constraint
    >>> from structpred.oracles import Budget
    >>> X, y = [[{"w": "a"}, {"w": "dog"}]], [["DET", "NOUN"]]
    >>> model = ChainLabeler(max_iter=20).fit(X, y)
    >>> model.predict(X, constraints=[Constraint(Budget(at_most=0), [(None, "DET")])])[0].tolist()
    ['NOUN', 'NOUN']
    """

    rule: Oracle
    parts: Sequence[Any]
    sample: int | None = None


Constraints = Sequence[Constraint] | None
Place = Callable[[Any], Any]


def constrained(inference: Inference, constraints: Constraints, place: Place, empty: Sequence[int] = ()) -> Inference:
    """Inference over the outputs that keep the constraints. DataError, naming the sample, for parts that it lacks; ParameterError
    for an oracle that gives amounts, or outputs that may not be the best, with which nothing is proven.

    place: (position, label) in the grid of the oracle, None for all, or the number of a part, for what users call it. empty:
    samples for which others stand in, and which nothing binds.
    """
    if constraints is None:
        return inference
    if has_points(own := inference.oracle) or own.tolerance or not own.exact:
        raise ParameterError(f"constraints need an oracle that finds the best set of parts; {type(own).__name__} may miss it")
    bound: list[tuple[Any, ...]] = [()] * len(inference)
    if not isinstance(constraints, Sequence):
        raise DataError(f"constraints: expected a list of Constraint, got {constraints!r}")
    samples = [i for i in range(len(bound)) if i not in empty]
    for k, one in enumerate(constraints):
        if not (isinstance(one, Constraint) and isinstance(one.rule, Oracle) and one.sample in (None, *samples)):
            where = f"sample < {len(bound)}" + " and not empty" * bool(empty)
            raise DataError(f"constraints[{k}]: expected Constraint(oracle, parts, {where}), got {one!r}")
        for i in samples if one.sample is None else [one.sample]:
            parts = [part for entry in one.parts for part in _numbers(entry, place, inference, i, k)]
            if not parts or len(set(parts)) < len(parts):
                raise DataError(f"constraints[{k}], sample {i}: expected at least one part, and none twice, got {one.parts!r}")
            bound[i] += ((k, one.rule, tuple(parts)),)
    shapes = list(zip(inference.shapes, bound, strict=True))
    jobs = inference.n_jobs if inference.batched else 1  # members of a user's own may not be ready for threads
    return Inference(inference.features, Constrained(own), shapes, n_jobs=jobs)


def _numbers(entry: Any, place: Place, inference: Inference, i: int, k: int) -> list[int]:
    """The parts of sample i that an entry of constraint k stands for."""
    oracle, shape = inference.oracle, inference.shapes[i]
    grid: Any = getattr(oracle, "label_grid", lambda _: (0, 0))(shape)
    try:
        found = place(entry)
        if not isinstance(found, tuple):
            return [range(oracle.n_parts(shape))[index(found)]]
        rows, columns = (range(n) if x is None else [range(n).index(x)] for x, n in zip(found, grid, strict=True))
        return [row * grid[1] + column for row in rows for column in columns]
    except (TypeError, ValueError, LookupError):
        raise DataError(f"constraints[{k}], sample {i}: no part {entry!r} among {grid[0]} positions, see Constraint") from None


class Constrained(Composed):
    """The outputs of an oracle that keep rules: shape = (its shape, a tuple of (number, rule, numbers of its parts)).

    InfeasibleError names constraints that exclude every output, none of which could be left out.
    """

    argmax_bound = argmax_bound_batch = kbest = argmax_constrained = None  # type: ignore[assignment]  # argmax says it all

    def __init__(self, own: Oracle) -> None:
        super().__init__([], max_nodes=MAX_SUBPROBLEMS)
        self.own, self.exact, self.expensive, self.output = own, own.exact, own.expensive, own.output

    def members(self, shape: Shape) -> list[Member]:
        """The oracle over all parts, or the members that it has, and each rule over the parts that it binds."""
        rules = [Member(rule, (len(parts),), np.array(parts)) for _, rule, parts in shape[1]]
        if isinstance(self.own, Composed) and not self.own.by_all_members:
            return [*self.own.members(shape[0]), *rules]
        return [Member(self.own, shape[0], np.arange(self.own.n_parts(shape[0]))), *rules]

    def closed(self, shape: Shape) -> Integers:
        """Those of the oracle."""
        return self.own.closed(shape[0]) if isinstance(self.own, Composed) else super().closed(shape)

    def argmax_batch(self, scores: Scores, offsets: Integers, shapes: Sequence[Shape]) -> tuple[Labels, Integers]:
        """The best output of each instance that keeps its rules, in lockstep; InfeasibleError of one says which rules."""
        if isinstance(self.own, Composed):
            self._ask_first_members(scores, offsets, shapes)
        if (found := self._possible(scores, offsets, shapes)) is not None:
            return found
        left: tuple[Any, ...] = shapes[0][1] if len(shapes) == 1 else ()
        fixed = np.where(scores > 0.5 * FORBIDDEN, 0.0, FORBIDDEN)
        if left and self._possible(fixed, offsets, shapes) is not None:  # a search that was cut short found none
            raise ConvergenceError(f"there is an output, but {self.max_nodes:,} subproblems do not suffice to find the best")
        for one in left:
            fewer = tuple(other for other in left if other is not one)
            with suppress(ConvergenceError):  # whether it can be left out
                left = fewer if self._possible(fixed, offsets, [(shapes[0][0], fewer)]) is None else left
        named = " and ".join(f"constraints[{k}], {rule!r}" for k, rule, _ in left) or "the constraints"
        raise InfeasibleError(f"no {self.output} satisfies {named}")

    def _ask_first_members(self, scores: Scores, offsets: Integers, shapes: Sequence[Shape]) -> None:
        """InfeasibleError where already the first member has no output that keeps the rules, which takes a short search."""
        for i, shape in enumerate(shapes):
            (oracle, own, parts), bound = self.members(shape)[0], [part for *_, parts in shape[1] for part in parts]
            if max(bound, default=0) < len(parts) and np.array_equal(parts, np.arange(len(parts))):
                theta = np.where(scores[offsets[i] : offsets[i + 1]] > 0.5 * FORBIDDEN, 0.0, FORBIDDEN)
                theta[self.closed(shape)] = FORBIDDEN
                Constrained(oracle).argmax(theta[: len(parts)], (own, shape[1]))

    def _possible(self, scores: Scores, offsets: Integers, shapes: Sequence[Shape]) -> tuple[Labels, Integers] | None:
        """The best outputs; None where all outputs of an instance are excluded, or have forbidden parts."""
        try:
            labels, ends = super().argmax_batch(scores, offsets, shapes)
        except InfeasibleError:
            return None
        except ConvergenceError:
            text = f"the best {self.output} under the constraints is not proven after {self.max_nodes:,} subproblems"
            instead = "relax those that many parts share, or raise structpred.models.constrained.MAX_SUBPROBLEMS"
            raise ConvergenceError(f"{text}; {instead}") from None
        parts, part_ends = parts_batch(self.own, labels, ends, [own for own, _ in shapes])
        worst = scores[parts + np.repeat(offsets[:-1], np.diff(part_ends))].min(initial=0.0)
        return (labels, ends) if worst > 0.5 * FORBIDDEN else None
