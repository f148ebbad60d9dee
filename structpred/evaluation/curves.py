"""How scores grow with the amount of training data."""

import logging
import math
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from structpred.errors import DataError, ParameterError
from structpred.evaluation.model_selection import select_sequences
from structpred.evaluation.summary import evaluate_sequences
from structpred.text.markup import Shown

log = logging.getLogger("structpred.evaluation")

METRICS = ("token_accuracy", "sequence_accuracy", "f1")


@dataclass(frozen=True)
class CurvePoint:
    """One training run. fraction: of the training data. seconds: of fit. scores in [0, 1]; f1 is None without phrases."""

    fraction: float
    seed: int
    n_sequences: int
    n_tokens: int
    seconds: float
    token_accuracy: float
    sequence_accuracy: float
    f1: float | None


@dataclass(frozen=True)
class LearningCurve(Shown):
    """All runs, by fraction and then seed. has_phrases: whether the test labels have any, so that f1 says something."""

    points: list[CurvePoint]
    has_phrases: bool

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics that say something here."""
        return METRICS if self.has_phrases else METRICS[:2]

    def fractions(self) -> list[list[CurvePoint]]:
        """The runs of each fraction together, the smallest fraction first."""
        order = sorted({point.fraction for point in self.points})
        return [[point for point in self.points if point.fraction == fraction] for fraction in order]

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON: every run, and for each fraction the mean, least and largest of each metric."""
        summary = []
        for runs in self.fractions():
            row: dict[str, Any] = {"fraction": runs[0].fraction, "n_sequences": runs[0].n_sequences, "n_seeds": len(runs)}
            row["n_tokens"] = _mean(runs, "n_tokens")
            for metric in self.metrics:
                values = [getattr(run, metric) for run in runs]
                row[metric] = {"mean": _mean(runs, metric), "min": min(values), "max": max(values)}
            summary.append(row)
        return {"metrics": list(self.metrics), "summary": summary, "runs": [asdict(point) for point in self.points]}

    def table(self) -> str:
        """A line a fraction: sizes, seconds of fit, and the mean of each metric in per cent with its range over the seeds."""
        head = f"{'fraction':>8} {'sequences':>10} {'tokens':>9} {'seconds':>8}"
        lines = [head + "".join(f"  {metric.replace('_', ' '):>24}" for metric in self.metrics)]
        for runs in self.fractions():
            line = (
                f"{runs[0].fraction:8.4g} {runs[0].n_sequences:10} {_mean(runs, 'n_tokens'):9.0f} {_mean(runs, 'seconds'):8.2f}"
            )
            for metric in self.metrics:
                values = [100 * getattr(run, metric) for run in runs]
                spread = f" ({min(values):.2f}-{max(values):.2f})" if len(runs) > 1 else ""
                line += f"  {100 * _mean(runs, metric):.2f}{spread}".rjust(26)
            lines.append(line)
        return "\n".join(lines)


def learning_curve(
    model: Any, X: Any, y: Sequence[Sequence[Any]], X_test: Any, y_test: Sequence[Sequence[Any]], *,
    fractions: Sequence[float] = (0.1, 0.2, 0.4, 0.7, 1.0), seeds: Sequence[int] = (0, 1, 2),
) -> LearningCurve:  # fmt: skip
    """Train clones of `model` on growing parts of (X, y) and score them on (X_test, y_test).

    X: in any form that the model takes. For each seed the sequences are put into a random order, and a fraction takes the
    first ones, so that smaller parts lie within larger ones; the seed is the model's random_state, too. A test label that
    a small part does not have counts as wrong. Raises ParameterError for fractions outside (0, 1] and no seeds, DataError
    for data that do not fit together.
    """
    from sklearn.base import clone

    if not len(fractions) or not all(isinstance(f, int | float) and 0 < f <= 1 for f in fractions):
        raise ParameterError(f"fractions: expected numbers above 0 and at most 1, got {list(fractions)!r}")
    if not len(seeds) or len(set(seeds)) < len(seeds) or not all(isinstance(s, int | np.integer) and s >= 0 for s in seeds):
        raise ParameterError(f"seeds: expected different whole numbers >= 0, at least one, got {list(seeds)!r}")
    n = len(y)
    if not n or len(X) != n:
        raise DataError(f"X has {len(X)} sequences but y has {n}; expected as many, and at least one")
    lengths = np.array([len(labels) for labels in y])
    orders = {seed: np.random.default_rng(seed).permutation(n) for seed in seeds}
    points, has_phrases = [], False
    for fraction in sorted(set(fractions)):
        for seed in seeds:
            chosen = np.sort(orders[seed][: math.ceil(fraction * n - 1e-9)])
            part = clone(model).set_params(random_state=seed)
            start = time.perf_counter()
            part.fit(select_sequences(X, chosen.tolist()), [y[i] for i in chosen.tolist()])
            seconds = time.perf_counter() - start
            result = evaluate_sequences(y_test, part.predict(X_test))
            has_phrases |= result.n_gold_phrases > 0
            sizes = (len(chosen), int(lengths[chosen].sum()), seconds)
            points.append(CurvePoint(fraction, seed, *sizes, result.token_accuracy, result.sequence_accuracy, result.f1))
            log.info("%d sequences, seed %d: token accuracy %.2f %%", len(chosen), seed, 100 * result.token_accuracy)
    return LearningCurve(points, has_phrases)


def _mean(runs: Sequence[CurvePoint], name: str) -> float:
    return math.fsum(getattr(run, name) for run in runs) / len(runs)
