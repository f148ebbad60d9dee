"""Updates of a trainer, one after the other: many in one compiled call, where task and trainer have what it takes."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from structpred.core.stand_ins import stand_in
from structpred.core.types import Integers
from structpred.objectives.margin import MarginRescaling
from structpred.trainers.problem import Problem, Trainer


class Visited(NamedTuple):
    """state: after `visited` items, of which `calls` asked the oracle. changed: whether the weights did."""

    state: Any
    visited: int
    calls: int
    changed: bool


def updates(
    problem: Problem, trainer: Trainer, state: Any, items: Integers, most: int = 64, position: int = 0
) -> Iterator[Visited]:
    """Visit the items in order; position: the place of items[0]. A compiled call ends where the place is a multiple of `most`.

    Compiled or not, the states are the same to the last bit.
    """
    visit, done = compiled_visits(problem, trainer, state), 0
    while done < len(items):
        n, changed = (0, False) if visit is None else visit(items[done : done + most - (position + done) % most])
        if n:
            yield Visited(state, n, n, changed)
        else:
            item = int(items[done])
            state, changed = trainer.update(problem, state, item)
            yield Visited(state, 1, trainer.calls(problem, item), changed)
        done += max(n, 1)


def compiled_visits(problem: Problem, trainer: Trainer, state: Any) -> Callable[[Integers], tuple[int, bool]] | None:
    """(instances) -> (how many were visited, in order, whether the weights changed), as `Visits` of the core; or None.

    It needs the margin-rescaled hinge or the perceptron loss, a trainer whose `moves` say what `update` does in this state, and
    compiled visits of the task. A class that changed `term`, `update` or `step` is taken at its word, and has none.
    """
    if type(problem.surrogate) is not MarginRescaling:
        return None
    loss_weight = problem.surrogate.loss_weight
    moves_of, visits_of = stand_in(trainer, "moves", ("update",)), stand_in(problem.task, "visits", ("step",))
    moves = moves_of(problem, state) if moves_of is not None and visits_of is not None else None
    visit = visits_of() if visits_of is not None and moves is not None else None
    return None if visit is None else lambda items: visit(items, moves, loss_weight)
