"""CRFsuite's parameters, algorithm by algorithm, and what ChainLabeler makes of them."""

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from structpred.core.result import Record
from structpred.core.types import Integers
from structpred.core.weights import padded
from structpred.data.sequences import PackedSequences
from structpred.errors import ParameterError
from structpred.models.settings import trainer_kind

log = logging.getLogger("structpred.compat")

ALIASES = {"averaged-perceptron": "ap", "passive-aggressive": "pa"}
_CALIBRATION = tuple(f"calibration_{name}" for name in ("eta", "rate", "samples", "candidates", "max_trials"))
_SHARED = ("min_freq", "all_possible_states", "all_possible_transitions", "max_iterations")
#: algorithm -> its parameters besides the shared ones; as in CRFsuite, the others must be left at None
PARAMETERS: dict[str, tuple[str, ...]] = {
    "lbfgs": ("c1", "c2", "num_memories", "epsilon", "period", "delta", "linesearch", "max_linesearch"),
    "l2sgd": ("c2", "period", "delta", *_CALIBRATION),
    "ap": ("epsilon",),
    "pa": ("epsilon", "pa_type", "c", "error_sensitive", "averaging"),
    "arow": ("epsilon", "variance", "gamma"),
}  # fmt: skip
#: parameter -> (default, least value, whether the least value itself is allowed)
_NUMBERS: dict[str, tuple[float, float, bool]] = {
    "min_freq": (0, 0, True), "c1": (0.0, 0, True), "c2": (1.0, 0, True), "epsilon": (1e-5, 0, True), "delta": (1e-5, 0, True),
    "num_memories": (6, 1, True), "period": (10, 1, True), "max_linesearch": (20, 1, True),
    **dict.fromkeys(("c", "variance", "gamma", *_CALIBRATION), (1.0, 0, False)),
}  # fmt: skip
_ITERATIONS = {"lbfgs": 100_000, "l2sgd": 1000, "ap": 100, "pa": 100, "arow": 100}
_NUMBER = (int, float, np.number, np.bool_)
_LINE_SEARCHES = ("MoreThuente", "Backtracking", "StrongBacktracking")
#: c2 = 0 means no l2 term, but the optimum needs not exist then: this much is always kept
LEAST_C2 = 1e-9


@dataclass(frozen=True)
class CRFSettings:
    """Checked settings. `given` holds the parameters that are not None."""

    algorithm: str
    given: dict[str, Any]

    @classmethod
    def check(cls, values: dict[str, Any]) -> "CRFSettings":
        """The settings of a CRF; ParameterError for values out of range and for parameters of another algorithm."""
        named = values["algorithm"]
        algorithm = "lbfgs" if named is None else ALIASES.get(named, named) if isinstance(named, str) else named
        if algorithm not in PARAMETERS:
            raise ParameterError(f"algorithm: expected one of {', '.join(PARAMETERS)}, got {named!r}")
        known = {*_SHARED, *(name for names in PARAMETERS.values() for name in names)}
        given = {name: value for name, value in values.items() if name in known and value is not None}
        for name, value in given.items():
            if name not in (*_SHARED, *PARAMETERS[algorithm]):
                owners = ", ".join(a for a, names in PARAMETERS.items() if name in names)
                raise ParameterError(f"{name} belongs to algorithm={owners}, not to {algorithm!r}: leave it out")
            if name in _NUMBERS:
                _, least, inclusive = _NUMBERS[name]
                ok = isinstance(value, int | float | np.number) and not isinstance(value, bool) and math.isfinite(value)
                if not ok or value < least or (value == least and not inclusive):
                    raise ParameterError(f"{name}: expected a number {'>=' if inclusive else '>'} {least}, got {value!r}")
        if given.get("linesearch", _LINE_SEARCHES[0]) not in _LINE_SEARCHES:
            raise ParameterError(f"linesearch: expected one of {', '.join(_LINE_SEARCHES)}, got {given['linesearch']!r}")
        if values.get("trainer_cls") is not None:
            raise ParameterError(
                "trainer_cls: CRFsuite's trainers are not used here; leave it out (training_log_ records the training)"
            )
        return cls(algorithm, given)

    def value(self, name: str) -> Any:
        """The number given, or the default."""
        return self.given.get(name, _NUMBERS[name][0])

    @property
    def min_count(self) -> int:
        """The cut-off for whole attributes, where single pairs of attribute and label cannot be left out."""
        return 1 if self.algorithm == "lbfgs" else max(1, math.ceil(self.value("min_freq")))

    def labeler_settings(
        self, data: PackedSequences, codes: Integers, n_labels: int, zeros: set[tuple[int, int]]
    ) -> dict[str, Any]:
        """The settings of the ChainLabeler.

        codes: the label of each token, numbered as the labeler numbers them. zeros: see `zero_pairs`.
        """
        c2 = max(float(self.value("c2")), LEAST_C2)
        count = self.given.get("max_iterations", _ITERATIONS[self.algorithm])
        if isinstance(count, bool) or int(count) != count or count < 1:
            raise ParameterError(f"max_iterations: expected a whole number >= 1, got {count!r}")
        shared = {"max_iter": int(count), "C": 0.5 / c2}
        if self.algorithm == "l2sgd":
            tol = float(self.given.get("delta", 1e-3))
            return {**shared, "trainer": "oeg", "tol": tol, "check_every": int(self.value("period"))}
        if self.algorithm == "lbfgs":
            settings = {
                "l1": float(self.value("c1")) / (2.0 * c2),
                "free": self.free(data, codes, n_labels, zeros),
                "memory": int(self.value("num_memories")),
                "max_trials": int(self.value("max_linesearch")),
            }
            stop = Stop(float(self.value("epsilon")), float(self.value("delta")), int(self.value("period")), len(data), c2)
            return {**shared, "trainer": trainer_kind("owlqn")(**settings), "check_every": 1, "callbacks": stop}
        return {**shared, "C": 1.0, "trainer": self._online(), "check_every": shared["max_iter"]}

    def _online(self) -> Any:
        if self.algorithm == "ap":
            return "perceptron"
        if self.algorithm == "arow":
            return trainer_kind("arow")(**{name: float(self.value(name)) for name in ("variance", "gamma")})
        kind = self.given.get("pa_type", 1)
        if kind not in (0, 1, 2):
            raise ParameterError(f"pa_type: expected 0, 1 or 2, got {kind!r}")
        flags: dict[str, Any] = {"c": float(self.value("c")), "kind": int(kind)}
        flags |= {"sqrt_loss": bool(self.given.get("error_sensitive", True)), "averaged": bool(self.given.get("averaging", True))}
        return trainer_kind("pa")(**flags)

    def free(self, data: PackedSequences, codes: Integers, n_labels: int, zeros: set[tuple[int, int]]) -> Integers:
        """The numbers of the weights that CRFsuite would have: pairs that occur (or all), often enough; no start and stop."""
        width, n, cutoff = padded(n_labels), data.n_features, float(self.value("min_freq"))
        every_state, every_step = (bool(self.given.get(f"all_possible_{what}", False)) for what in ("states", "transitions"))
        extra = np.array(sorted(zeros), dtype=np.int64).reshape(-1, 2)
        features = np.concatenate((data.indices.astype(np.int64), extra[:, 0]))
        labels = np.concatenate((np.repeat(codes, np.diff(data.indptr)), extra[:, 1]))
        values = np.concatenate((data.values, np.zeros(len(extra))))
        pairs = _kept(features, labels, values, n, n_labels, every_state, cutoff)
        inside = np.ones(len(codes), bool)
        inside[data.offsets[:-1]] = False
        after = np.flatnonzero(inside)
        ones = np.ones(len(after))
        steps = _kept(codes[after - 1], codes[after], ones, n_labels, n_labels, every_step, cutoff)
        rows, columns = np.divmod(np.concatenate((pairs, (n + 2) * n_labels + steps)), n_labels)
        return np.asarray(rows * width + columns, dtype=np.int64)


def _kept(first: Integers, second: Integers, values: Any, n: int, m: int, every: bool, cutoff: float) -> Integers:
    """first * m + second for the pairs that are seen (or all), with values that add up to the cutoff where there is one."""
    keys = first * m + second
    keep = np.ones(n * m, bool) if every else np.bincount(keys, minlength=n * m) > 0
    if cutoff > 0:
        keep &= np.bincount(keys, values, minlength=n * m) >= cutoff
    return np.flatnonzero(keep)


def zero_pairs(sequences: Any, codes: Integers, names: Sequence[str]) -> set[tuple[int, int]]:
    """(feature, label) of feature dicts with a value of 0 or False.

    Such a value adds nothing to a score, but in CRFsuite the pair counts as seen: {"title": False} at a token labelled O
    gives (title, O) a weight, which tokens with {"title": True} then use. Sequences that are not lists are skipped.
    """
    seen: set[tuple[str, int]] = set()
    position = 0
    for sequence in sequences:
        if not isinstance(sequence, list | tuple):
            return set()  # the place in codes is lost
        for token in sequence:
            if isinstance(token, dict):
                label = int(codes[position])
                seen.update((key, label) for key, value in token.items() if isinstance(value, _NUMBER) and not value)
            position += 1
    numbers = {name: i for i, name in enumerate(names)} if seen else {}
    return {(numbers[key], label) for key, label in seen if key in numbers}


@dataclass
class Stop:
    """The two ends of CRFsuite's L-BFGS: a small gradient, or little progress over `period` iterations.

    Sums over the training set, as CRFsuite has them: |gradient| = n |g| = sqrt(4 c2 n gap).
    """

    epsilon: float
    delta: float
    period: int
    n: int
    c2: float
    values: list[float] = field(default_factory=list)

    def __call__(self, row: Record) -> bool:
        """Whether to stop after this iteration."""
        assert row["primal"] is not None
        assert row["gap"] is not None
        value, gap = float(row["primal"]), max(float(row["gap"]), 0.0)
        self.values.append(value)
        before = self.values[-1 - self.period] if len(self.values) > self.period else math.inf
        return math.sqrt(4.0 * self.c2 * self.n * gap) <= self.epsilon or before - value <= self.delta * abs(value)


@dataclass(frozen=True)
class TrainingLog:
    """The course of training. iterations: dicts with num, loss (CRFsuite's: summed, regulariser included; None where it was not
    computed), time (seconds of that iteration). dev_accuracy: the share of tokens of X_dev that are right at the end.
    """

    iterations: list[dict[str, Any]]
    dev_accuracy: float | None = None

    @property
    def last_iteration(self) -> dict[str, Any] | None:
        """The last of the iterations."""
        return self.iterations[-1] if self.iterations else None

    @classmethod
    def of(cls, history: Sequence[Record], n: int, dev_accuracy: float | None) -> "TrainingLog":
        """From the history of a fit to n sequences."""
        times = np.diff([0.0, *(row["seconds"] for row in history)])
        rows = [
            {"num": row["passes"], "loss": None if row["primal"] is None else n * row["primal"], "time": float(time)}
            for row, time in zip(history, times, strict=True)
        ]
        return cls(rows, dev_accuracy)
