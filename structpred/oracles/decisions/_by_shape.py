"""Batches of instances, sorted by their shapes: compiled calls take all instances of one shape together."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np

from structpred.core.instances import Shapes
from structpred.core.oracle import Labels, Scores, Shape
from structpred.core.scores import checked_batch, checked_scores, checked_sums
from structpred.core.types import ArrayLike, Floats, Integers
from structpred.errors import StructpredError


class Sized(Protocol):
    """What an oracle works out of a shape, once."""

    @property
    def n_parts(self) -> int:
        """The number of parts."""
        ...


Plan = TypeVar("Plan", bound=Sized)


def by_shape(
    plan_of: Callable[[Shape], Plan], scores: ArrayLike, offsets: ArrayLike, shapes: Sequence[Shape]
) -> tuple[Scores, Integers, list[tuple[Plan, Integers]]]:
    """(scores, offsets, groups): both checked, and for each shape its plan and the rows that have it.

    Shapes are distinguished by identity, since hashing a long one takes longer than solving an instance. A batch keeps its groups
    (`Shapes`). Raises DataError, naming the sample, for scores that do not fit, and what `plan_of` raises.
    """
    plans: dict[Any, Any] = shapes.plans if isinstance(shapes, Shapes) else {}
    if plan_of not in plans:
        groups = [(planned(plan_of, shapes[rows[0]], int(rows[0])), rows) for rows in _rows(shapes)]
        sizes = np.zeros(len(shapes), np.int64)
        for plan, rows in groups:
            sizes[rows] = plan.n_parts
        plans[plan_of] = sizes, groups
    sizes, groups = plans[plan_of]
    return *checked_batch(scores, offsets, sizes), groups


def _rows(shapes: Sequence[Shape]) -> list[Integers]:
    numbers = np.fromiter(map(id, shapes), np.int64, len(shapes))
    if not len(numbers) or (numbers == numbers[0]).all():
        return [np.arange(len(numbers))] if len(numbers) else []
    order = np.argsort(numbers, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(numbers[order])) + 1)


def planned(plan_of: Callable[[Shape], Plan], shape: Shape, i: int) -> Plan:
    """The plan of sample i; an error names it."""
    try:
        return plan_of(shape)
    except StructpredError as error:
        raise type(error)(f"sample {i}: {error}") from None


def marginals_of_one(self: Any, scores: Scores, shape: Shape) -> tuple[float, Floats]:
    """(log Z, the expected part counts), by `marginals_batch`; raises what it raises.

    The method `marginals` of oracles whose batches are worked out by shape: ``marginals = marginals_of_one`` in the class.
    """
    given = checked_scores(scores, self.n_parts(shape), shape)
    log_zs, mu = self.marginals_batch(given, np.array([0, len(given)]), [shape])
    return checked_sums(float(log_zs[0]), mu, given, shape)


def parts_of_rows(self: Any, labels: Labels, ends: Integers, shapes: Sequence[Shape]) -> tuple[Integers, Integers]:
    """The parts that are on in each row of 0 and 1, flat: the method `parts_batch` of oracles whose labels are such rows."""
    on = np.flatnonzero(labels)
    part_ends = np.searchsorted(on, ends)
    return on - np.repeat(ends[:-1], np.diff(part_ends)), part_ends
