"""Training on outputs that are known in part: which trainer and surrogate do it, and what is said of the labels."""

import logging
from typing import Any

import numpy as np
import numpy.typing as npt

from structpred.objectives.log_loss import LogLoss
from structpred.objectives.marginal_log_loss import MarginalLogLoss
from structpred.runtime.lazy_names import later
from structpred.task.partial_task import is_partial
from structpred.task.steps import TaskLike
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


def tell_missing(n_missing: int, n_sets: int, n: int, what: str = "labels") -> None:
    """A line on the log."""
    several = f", {n_sets:,} have a choice of several" if n_sets else ""
    log.info("%s of %s %s are missing%s", f"{n_missing:,}", f"{n:,}", what, several)


def warn_of_minus_one(classes: npt.NDArray[Any], missing: Any) -> None:
    """-1 is a label like any other unless the user says that it is not, even where it looks like scikit-learn's mark."""
    if missing is None and classes.dtype.kind == "i" and len(classes) > 2 and classes[0] == -1 and np.all(classes[1:] >= 0):
        log.warning("-1 is taken as one of %d labels; missing=-1 takes it as the mark of missing ones", len(classes))
