"""What a search has found, as data and as a table."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from structpred.text.markup import preformatted
from structpred.text.tables import aligned
from structpred.tuning.halving import Rung, Setting


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
class Tuned:
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

    def _repr_html_(self) -> str:
        """The table, for notebooks."""
        return preformatted(self.table())

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
