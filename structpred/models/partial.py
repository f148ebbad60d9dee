"""Outputs that are known in part: as fixed scores, and which trainer and surrogate learn from them."""

import logging
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from structpred.core.costs import Cost
from structpred.core.feature_map import FeatureMap
from structpred.core.fixed_scores import FORBIDDEN
from structpred.core.oracle import Oracle, Shape
from structpred.core.types import AnyArray, ArrayLike, Floats
from structpred.errors import DataError, MissingLabelsWarning
from structpred.objectives.log_loss import LogLoss, MarginalLogLoss
from structpred.runtime.lazy_names import later
from structpred.runtime.settings import is_whole
from structpred.runtime.standard_error import callers_level
from structpred.task.instance_subset import AddedScores, take_features
from structpred.task.partial_task import PartialTask, is_partial
from structpred.task.steps import TaskLike
from structpred.task.task import Task
from structpred.trainers.problem import Surrogate, Trainer, is_convex

log = logging.getLogger("structpred.models")
_cccp = later("structpred.trainers.cccp")


def for_task(task: TaskLike, trainer: Trainer, surrogate: Surrogate) -> tuple[Trainer, Surrogate]:
    """What trains on a task whose outputs may be known in part, by the surrogate that was chosen.

    The log loss becomes that of what is known, -log p(A_i | x_i). With any other surrogate the trainer trains on completed
    outputs, in the rounds of CCCP. Where all is known nothing changes, and the trainer inside a CCCP is taken by itself.
    """
    if not is_partial(task):
        return (getattr(trainer, "trainer", trainer) if trainer.completes else trainer), surrogate
    if trainer.completes or not is_convex(surrogate):
        return trainer, surrogate
    if isinstance(surrogate, LogLoss):
        log.info("some labels are missing: the likelihood of what is known is maximised (not convex: a local optimum)")
        return trainer, MarginalLogLoss()
    log.info(
        "some labels are missing: CCCP completes them round by round, around %s (not convex: a local optimum)",
        type(trainer).__name__,
    )
    return _cccp().CCCP(trainer), surrogate


def sums_suffice(trainer: Trainer, surrogate: Surrogate) -> bool:
    """Whether it learns from outputs that are known in part by sums over the data alone, which shards can give."""
    return trainer.asks == "sums" and trainer.nonconvex and isinstance(surrogate, LogLoss)


#: what to do where they do not, on shards
NEEDS_ALL = "on shards lbfgs and owlqn learn from them, with the log loss; else train without shards, or leave these samples out"


def tell_missing(n_missing: int, n_sets: int, n: int, what: str = "labels", *, meant: bool = True) -> None:
    """A line on the log; a MissingLabelsWarning where they may be there by mistake."""
    several = f", {n_sets:,} have a choice of several" if n_sets else ""
    log.info("%s of %s %s are missing%s", f"{n_missing:,}", f"{n:,}", what, several)
    if n_missing and not meant:
        warnings.warn(
            f"{n_missing:,} of {n:,} {what} are None: a model of {what} that are not known is trained, to a local optimum with "
            "no bound. If that is meant, say so by a mark, missing='?' or any other, beside which None stays one; else look "
            "where they come from",
            MissingLabelsWarning,
            stacklevel=callers_level(),
        )


def warn_of_minus_one(classes: AnyArray, missing: Any) -> None:
    """-1 is a label like any other unless the user says that it is not, even where it looks like scikit-learn's mark."""
    if missing is None and classes.dtype.kind == "i" and len(classes) > 2 and classes[0] == -1 and np.all(classes[1:] >= 0):
        log.warning("-1 is taken as one of %d labels; missing=-1 takes it as the mark of missing ones", len(classes))


#: for an instance whose output is known in part: the scores that forbid what it cannot be
Ruled = Mapping[int, Floats]
_SEVERAL = (set, frozenset, tuple, list)


def task_of(
    features: FeatureMap, oracle: Oracle, labels: Sequence[ArrayLike], shapes: Sequence[Shape], loss: Cost, ruled: Ruled,
    **options: Any,
) -> Task:  # fmt: skip
    """The training task, a plain one where nothing is missing; options: those of PartialTask."""
    if not ruled:
        options.pop("asks_costs", None)
        return Task(features, oracle, labels, shapes, loss, **options)
    rows = np.array(sorted(ruled), dtype=np.int64)
    left = AddedScores(take_features(features, rows), [ruled[i] for i in rows.tolist()])
    return PartialTask(features, oracle, labels, shapes, loss, allowed=left, rows=rows, **options)


def split_partial(y: Sequence[Any], oracle: Oracle, shapes: Sequence[Shape]) -> tuple[list[Any], Ruled]:
    """The outputs that are known (an empty list in the place of others), and what rules parts out of the others.

    y[i] is None: nothing is known. A list with None, or -1, where a label is missing, and sets of the labels that a position
    may have: for oracles with a label grid. An array of bool, one per part: False rules the part out. All others are taken as
    they are. Raises DataError, naming sample and position, for labels that are not on the grid and sets that are empty.
    """
    known, ruled = list(y), {}
    grid = getattr(oracle, "label_grid", None)
    if len(known) != len(shapes):
        return known, {}  # the task says so
    missing = several = total = 0
    for i, (given, shape) in enumerate(zip(known, shapes, strict=True)):
        n = oracle.n_parts(shape)
        if given is None:
            ruled[i] = np.zeros(n)
            size = grid(shape)[0] if grid is not None else 1
            counts = (size, 0, size)
        elif isinstance(given, np.ndarray) and given.dtype == np.bool_:
            if given.shape != (n,):
                raise DataError(f"sample {i}: expected {n} entries, one per part, False for what is ruled out, got {given.shape}")
            ruled[i], counts = np.where(given, 0.0, FORBIDDEN), (0, 1, 1)
        elif grid is not None and (choices := _choices(given, i)) is not None:
            ruled[i] = scores_of(choices, grid(shape), n, i)
            counts = (sum(c is None for c in choices), sum(c is not None and len(c) > 1 for c in choices), len(choices))
        else:
            total += len(given) if hasattr(given, "__len__") else 1
            continue
        known[i] = []
        missing, several, total = (a + b for a, b in zip((missing, several, total), counts, strict=True))
    if ruled:
        tell_missing(missing, several, total)
    return known, ruled


def _choices(given: Any, i: int) -> list[Any] | None:
    """The labels that each position may have, None for any; None where each has one, or this is not a list of labels."""
    if isinstance(given, np.ndarray) and given.dtype != object:
        if given.ndim != 1 or given.dtype.kind != "i" or not (given == -1).any():
            return None
    elif not isinstance(given, list | tuple | np.ndarray):
        return None
    listed = given.tolist() if isinstance(given, np.ndarray) else list(given)
    if not any(label is None or isinstance(label, set | frozenset) or _is_minus_one(label) for label in listed):
        return None
    return [_choice(label, i, t) for t, label in enumerate(listed)]


def _is_minus_one(label: Any) -> bool:
    return is_whole(label) and label == -1


def _choice(label: Any, i: int, t: int) -> tuple[int, ...] | None:
    if label is None or _is_minus_one(label):
        return None
    found = tuple(label) if isinstance(label, _SEVERAL) else (label,)
    if not found:
        raise DataError(f"sample {i}, position {t}: the set of labels that it may have is empty")
    if not all(map(is_whole, found)):
        raise DataError(f"sample {i}, position {t}: expected a whole number, None, or a set of whole numbers, got {label!r}")
    return found


def scores_of(choices: Sequence[Any], grid: tuple[int, int], n_parts: int, i: int) -> Floats:
    """The scores that leave each position of a grid only its choices; the parts behind the grid are free."""
    n_positions, n_labels = grid
    if len(choices) != n_positions:
        raise DataError(f"sample {i}: expected {n_positions} labels, one per position, got {len(choices)}")
    scores = np.zeros(n_parts)
    cells = scores[: n_positions * n_labels].reshape(n_positions, n_labels)
    for t, choice in enumerate(choices):
        if choice is None:
            continue
        if not all(0 <= label < n_labels for label in choice):
            raise DataError(f"sample {i}, position {t}: expected labels in 0..{n_labels - 1}, got {list(choice)}")
        cells[t] = FORBIDDEN
        cells[t, list(choice)] = 0.0
    return scores
