"""Successive halving: all settings get few passes, the best third continues to three times as many, and so on.

K. Jamieson and A. Talwalkar, "Non-stochastic best arm identification and hyperparameter optimization", AISTATS 2016.
What a search has found is data, and a table.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from structpred.core.types import Integers
from structpred.errors import ParameterError
from structpred.runtime.settings import checked_whole
from structpred.text.markup import Shown
from structpred.text.tables import aligned

Setting = dict[str, Any]


class Rung(NamedTuple):
    """All that are left are trained to `passes` passes in all; the best `keep` go on."""

    passes: int
    keep: int


def rungs(n: int, max_passes: int, min_passes: int = 1, eta: int = 3) -> tuple[Rung, ...]:
    """The rungs for n settings: the last is at max_passes, each one before it at 1/eta of that, none below min_passes.

    There are as many as it takes to get from n to one. Raises ParameterError for numbers that make no rung.

    >>> rungs(12, 27)
    (Rung(passes=1, keep=4), Rung(passes=3, keep=2), Rung(passes=9, keep=1), Rung(passes=27, keep=1))
    """
    for name, value, least in (("max_passes", max_passes, 1), ("min_passes", min_passes, 1), ("eta", eta, 2)):
        checked_whole(value, name, least)
    if min_passes > max_passes:
        raise ParameterError(f"min_passes must be at most max_passes, which is {max_passes}, got {min_passes}")
    found, left, k = [], n, 0
    while eta**k < n and max_passes >= min_passes * eta ** (k + 1):
        k += 1
    for power in range(k, -1, -1):
        left = -(-left // eta) if power else 1
        found.append(Rung(round(max_passes / eta**power), left))
    return tuple(found)


def grid_of(values: Mapping[str, Sequence[Any]]) -> list[Setting]:
    """Every combination of the values, the last name varying fastest.

    Raises ParameterError for a grid without values, and for a value that is given twice.

    >>> grid_of({"C": [0.1, 1], "trainer": ["sgd"]})
    [{'C': 0.1, 'trainer': 'sgd'}, {'C': 1, 'trainer': 'sgd'}]
    """
    if not values:
        raise ParameterError("the grid is empty: expected at least one setting with its values, such as C: 0.1, 0.3, 1")
    for name, several in values.items():
        if isinstance(several, str) or not isinstance(several, Sequence | np.ndarray) or not len(several):
            raise ParameterError(f"{name}: expected a list of values to choose from, got {several!r}")
        if twice := [value for i, value in enumerate(several) if any(value == other for other in several[:i])]:
            raise ParameterError(f"{name}: {twice[0]!r} is given twice")
    return [dict(zip(values, chosen, strict=True)) for chosen in itertools.product(*values.values())]


def fold_members(n: int, n_folds: int, seed: int) -> list[Integers]:
    """The numbers of the samples that each fold holds out, drawn by the seed; sizes differ by one at most."""
    if isinstance(n_folds, bool) or not isinstance(n_folds, int | np.integer) or not 2 <= n_folds <= n:
        raise ParameterError(f"expected 2 folds or more, and at most as many as samples ({n}), got {n_folds!r}")
    drawn = np.random.default_rng(seed).permutation(n)
    return [np.sort(drawn[fold::n_folds]) for fold in range(n_folds)]


@dataclass(frozen=True)
class Trial:
    """One setting of the grid.

    Attributes
    ----------
    setting : dict
        The values of the settings that vary.
    scores : list of float
        The score on held-out data after each pass, the mean over the folds.
    best_pass : int or None
        The first pass with the best of them; None where training failed.
    score : float or None
        That score.
    passes : int
        How many passes it was trained for.
    cpu_seconds : float
        What they cost, all folds together, with making features and with scoring.
    dropped : bool
        Whether others went on in its place.
    error : str or None
        Why training failed, where it did.
    """

    setting: Setting
    scores: list[float]
    best_pass: int | None
    score: float | None
    passes: int
    cpu_seconds: float
    dropped: bool
    error: str | None = None

    @property
    def name(self) -> str:
        """The setting in a few words."""
        return described(self.setting)


@dataclass(frozen=True)
class Tuned(Shown):
    """All settings of a grid with their scores.

    Attributes
    ----------
    trials : list of Trial
        In the order of the grid.
    rungs : tuple of Rung
        After how many passes how many went on.
    """

    trials: list[Trial]
    rungs: tuple[Rung, ...]

    @property
    def ranked(self) -> list[Trial]:
        """The best first: those that were trained longer before those that were dropped earlier, failed ones last."""
        return sorted(self.trials, key=lambda trial: (trial.score is None, -trial.passes, -(trial.score or 0.0)))

    @property
    def best(self) -> Trial:
        """The best of those that were trained to the end."""
        return self.ranked[0]

    @property
    def cpu_seconds(self) -> float:
        """The cost of all."""
        return sum(trial.cpu_seconds for trial in self.trials)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        trials = [{**asdict(trial), "setting": plain(trial.setting)} for trial in self.trials]
        best = {"setting": plain(self.best.setting), "score": self.best.score, "passes": self.best.best_pass}
        return {"best": best, "rungs": [rung._asdict() for rung in self.rungs], "cpu_seconds": self.cpu_seconds, "trials": trials}

    def table(self) -> str:
        """A line a setting, the best first: values, passes, best score in per cent, its pass, CPU seconds, what became of it."""
        names = list(self.trials[0].setting)
        rows = []
        for trial in self.ranked:
            scored = ["-", "-"] if trial.score is None else [f"{100 * trial.score:.2f} %", str(trial.best_pass)]
            became = trial.error or (f"dropped after pass {trial.passes}" if trial.dropped else "")
            if trial is self.best:
                became = "best"
            values = [shown(value) for value in trial.setting.values()]
            rows.append([*values, str(trial.passes), *scored, f"{trial.cpu_seconds:.1f}", became])
        head = [*names, "passes", "dev score", "at pass", "CPU s", ""]
        return "\n".join(aligned(head, rows, numbers=len(head) - 1))


def shown(value: Any) -> str:
    """A value as people write it."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def described(setting: Setting) -> str:
    """A setting in a few words.

    >>> described({"C": 0.1, "trainer": "sgd"})
    'C 0.1, trainer sgd'
    """
    return ", ".join(f"{name} {shown(value)}" for name, value in setting.items())


def plain(setting: Setting) -> Setting:
    """The setting as JSON can hold it: objects by their text."""
    values = {name: value.item() if isinstance(value, np.generic) else value for name, value in setting.items()}
    return {name: value if isinstance(value, str | int | float | None) else repr(value) for name, value in values.items()}
