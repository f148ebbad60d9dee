"""Updates of a trainer, one after the other: many in one compiled call, where task and trainer have what it takes."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from structpred.core.stand_ins import stand_in
from structpred.core.types import Integers
from structpred.objectives.margin import MarginRescaling
from structpred.trainers.problem import Problem, Trainer


class Updated(NamedTuple):
    """state: after `n_updates` updates, of which `calls` asked the oracle. changed: whether the weights did."""

    state: Any
    n_updates: int
    calls: int
    changed: bool


def updates(
    problem: Problem, trainer: Trainer, state: Any, items: Integers, most: int = 64, position: int = 0
) -> Iterator[Updated]:
    """An update for each item, in order. position: that of items[0]. A compiled call ends where it is a multiple of `most`.

    Compiled or not, the states are the same to the last bit.
    """
    update_many, done = compiled_updates(problem, trainer, state), 0
    while done < len(items):
        n, changed = (0, False) if update_many is None else update_many(items[done : done + most - (position + done) % most])
        if n:
            yield Updated(state, n, n, changed)
        else:
            item = int(items[done])
            state, changed = trainer.update(problem, state, item)
            yield Updated(state, 1, trainer.calls(problem, item), changed)
        done += max(n, 1)


def compiled_updates(problem: Problem, trainer: Trainer, state: Any) -> Callable[[Integers], tuple[int, bool]] | None:
    """(instances) -> (how many updates were made, in order, whether the weights changed); None without compiled code.

    It needs the margin-rescaled hinge or the perceptron loss, a trainer whose `update_rule` says what `update` does in this
    state, and compiled updates of the task. A class that changed `term`, `update` or `step` is taken at its word, and has none.
    """
    if type(problem.surrogate) is not MarginRescaling:
        return None
    loss_weight = problem.surrogate.loss_weight
    rule_of = stand_in(trainer, "update_rule", ("update",))
    updates_of = stand_in(problem.task, "compiled_updates", ("step",))
    rule = rule_of(problem, state) if rule_of is not None and updates_of is not None else None
    update_many = updates_of() if updates_of is not None and rule is not None else None
    return None if update_many is None else lambda items: update_many(items, rule, loss_weight)
