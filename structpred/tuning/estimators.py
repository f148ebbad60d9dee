"""Successive halving over the settings of an estimator."""

import copy
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from structpred.core.types import Integers
from structpred.errors import ParameterError
from structpred.evaluation.model_selection import select_sequences
from structpred.io.multilabel.data import MultiLabelData
from structpred.io.treebanks.treebank import Treebank
from structpred.models.base import seed_of
from structpred.runtime.settings import checked_positive
from structpred.trainers.running.checkpoints import begun
from structpred.tuning.halving import Tuned, fold_members, grid_of, rungs
from structpred.tuning.search import Search


def tune(
    estimator: Any, grid: Mapping[str, Sequence[Any]], X: Any, y: Any = None, *, dev: Any = None, cv: int | None = None,
    min_passes: int = 1, eta: int = 3, n_jobs: int | None = None, folder: str | os.PathLike[str] | None = None,
) -> Tuned:  # fmt: skip
    """Choose settings of an estimator by successive halving: most of the passes go to the settings that do well.

    Every setting of the grid is trained for a few passes; the best third continues, from the state where it stands, to three
    times as many; and so on up to `estimator.max_iter` passes. A setting's score is the best that it has after any pass so far,
    which is what `fit(X, y, dev=dev)` keeps.

    Parameters
    ----------
    estimator : StructuredEstimator
        It is cloned, never changed. Its max_iter is the number of passes of the settings that are not dropped; tol, patience,
        callbacks and checkpoint have no part in the search. `dev_metric`, where it has one, says what is scored.
    grid : dict
        For each setting that varies the list of its values: {"C": [0.1, 1, 10], "trainer": ["sgd", "bcfw"]}.
    X, y
        The training data, in any form that the estimator's fit takes.
    dev, cv
        Either held-out data as fit takes them, or a number of folds of the training data, drawn by random_state.
    min_passes : int
        Nothing is dropped before this number of passes.
    eta : int
        One in eta continues.
    n_jobs : int, optional
        Processes (-1: all processors); the result is the same for any number. With more than one, call this under
        ``if __name__ == "__main__":``, as for any Python program that starts processes.
    folder : path, optional
        A folder that holds the state after each run: the same call continues an interrupted search there.

    Returns
    -------
    Tuned
        With `best`, `table()` and `to_dict()`.

    Raises
    ------
    ParameterError
        For an empty grid, unknown settings, a C that is not positive, and unless one of dev and cv is given.
    CheckpointError
        Where the folder holds another search, or another search is running in it.
    ConvergenceError
        Where training fails with every setting.

    Examples
    --------
    >>> from structpred.models import ChainLabeler
    >>> X = [[{"w": "the"}, {"w": "cat"}], [{"w": "a"}, {"w": "dog"}]]
    >>> y = [["DET", "NOUN"], ["DET", "NOUN"]]
    >>> found = tune(ChainLabeler("sgd", max_iter=9), {"C": [0.1, 1.0, 10.0]}, X, y, dev=(X, y))
    >>> found.best.setting, found.best.score
    ({'C': 0.1}, 1.0)
    """
    known = estimator.get_params(deep=False)
    if known.get("stages", 1) != 1:
        raise ParameterError("stages: passes of one stage are counted; choose settings with stages=1, then train with two")
    for name in grid:
        if name not in known or name in _FIXED:
            why = "the search sets it" if name in known else f"known settings: {', '.join(sorted(known))}"
            raise ParameterError(f"{name}: not a setting of {type(estimator).__name__} that can vary; {why}")
    settings = grid_of(grid)
    for C in grid.get("C", ()):
        checked_positive(C, "C")
    if (dev is None) == (cv is None):
        raise ParameterError("expected either held-out data (dev=...) or a number of folds (cv=3)")
    members = None if cv is None else fold_members(len(X if y is None else y), cv, seed_of(known["random_state"]))
    work = EstimatorWork(estimator, X, y, dev, members)
    named = grid.get("trainer", (known["trainer"],))
    passes = known["max_iter"] or max(estimator._passes_with(one) for one in named)
    steps = rungs(len(settings), passes, min_passes, eta)
    identity = None
    if folder is not None:
        from joblib import hash as digest

        silent = copy.copy(estimator)  # what is shown of training makes no other search
        silent.verbose = 0
        identity = str(digest((silent, X, y, dev)))
    return Search(work, settings, steps, cv or 1, identity).run(None if folder is None else Path(folder), n_jobs)


#: settings that the search itself sets
_FIXED = (
    "max_iter", "tol", "patience", "callbacks", "checkpoint", "resume", "check_every", "random_state", "warm_start",
    "verbose", "stages",
)  # fmt: skip


@dataclass(frozen=True)
class EstimatorWork:
    """An estimator and its data. members: the numbers of the samples that each fold holds out."""

    estimator: Any
    X: Any
    y: Any
    dev: Any
    members: Sequence[Any] | None

    def fit(self, setting: dict[str, Any], fold: int, passes: int, checkpoint: Path) -> list[float]:
        """Train one setting; the score after each pass."""
        from sklearn.base import clone

        # that many passes, and no other reason to stop
        settings: dict[str, Any] = {"max_iter": passes, "check_every": passes, "tol": 0.0, "patience": None, "verbose": 0}
        settings |= {"checkpoint": checkpoint, "resume": begun(checkpoint)}
        model = clone(self.estimator).set_params(**setting, **settings, callbacks=None)
        train, dev = (self.X,) if self.y is None else (self.X, self.y), self.dev
        if self.members is not None:
            train, dev = held_out(train, self.members[fold])
        model.fit(*train, dev=dev)
        return scores_of(model)


def held_out(data: tuple[Any, ...], out: Integers) -> tuple[tuple[Any, ...], Any]:
    """What is left without the samples of these numbers, and these, as `fit` takes both; data: (X, y), or what holds both."""
    kept = np.delete(np.arange(len(data[-1])), out)
    train, dev = (tuple(select_sequences(one, part) for one in data) for part in (kept, out))
    if isinstance(dev[0], Treebank):
        return train, dev[0]
    return train, (dev[0].X, dev[0].Y) if isinstance(dev[0], MultiLabelData) else (*dev, None)[:2]


def scores_of(model: Any) -> list[float]:
    """The score on held-out data after each pass, of an estimator that was fitted with dev."""
    return [row["dev_score"] for row in model.history_ if row["dev_score"] is not None]
