"""What `structpred tune` trains: one kind of model from the values of its options, by the kind's own description."""

import copy
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from structpred.cli.kinds.kind import Kind
from structpred.cli.training import Training, common_settings
from structpred.trainers.running.checkpoints import previous
from structpred.tuning.estimators import scores_of


@dataclass
class KindWork:
    """Trains models of one kind; data are read, and features made, once for all settings that read them alike.

    values: those of all options of `structpred train KIND`, apart from what a setting brings. n_folds: None for held-out data.
    """

    kind: Kind
    values: Mapping[str, Any]
    n_folds: int | None
    read_for: str = ""
    whole: Training[Any] | None = None
    ready: dict[int, Training[Any]] = field(default_factory=dict)

    def training(self, **changed: Any) -> Training[Any]:
        """One run with other values, which has read nothing yet."""
        return self.kind.training({**self.values, **changed})

    def fit(self, setting: dict[str, Any], fold: int, passes: int, checkpoint: Path) -> list[float]:
        """Train one setting; the score on held-out data after each pass."""
        resume = checkpoint.exists() or previous(checkpoint).exists()
        course = {"max_iter": passes, "check_every": passes, "checkpoint": str(checkpoint), "resume": resume}
        asked = self.training(**setting, **{name: value for name, value in course.items() if name in self.values})
        training = copy.copy(self._ready(setting, fold))
        training.options = asked.options
        model = training.estimator(common_settings(training.options, None, verbose=False))
        training.fit(model)
        return scores_of(model)

    def _ready(self, setting: dict[str, Any], fold: int) -> Training[Any]:
        """The data of a fold; what is kept of others goes where this setting reads other data or makes other features."""
        own = {option.name for option in self.kind.options.get("train", ())}
        key = repr(sorted((name, value) for name, value in setting.items() if name in own))
        if key != self.read_for:
            self.read_for, self.whole, self.ready = key, None, {}
        if self.whole is None:
            self.whole = self.training(**setting)
            self.whole.read()
        if fold not in self.ready:
            part = copy.copy(self.whole)
            if self.n_folds is not None:
                part.hold_out(self.n_folds, fold)
            part.prepare()
            self.ready[fold] = part
        return self.ready[fold]


def digests(paths: Sequence[str | None]) -> list[str | None]:
    """A digest of each file; None for what is no file, such as the name of a template."""
    found = []
    for path in paths:
        there = path is not None and Path(path).is_file()
        found.append(hashlib.sha256(Path(str(path)).read_bytes()).hexdigest() if there else None)
    return found
