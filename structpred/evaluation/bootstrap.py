"""How sure a score is: bootstrap intervals over sequences, and a paired comparison of two systems on the same data."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from structpred.core.types import Floats
from structpred.errors import DataError, ParameterError
from structpred.evaluation.chunks import matched
from structpred.evaluation.coding import Coded, Sequences, encode, sums
from structpred.evaluation.parsing import ParsingScores

Metric = Callable[[Floats], Floats]
Metrics = Mapping[str, Metric]
BLOCK = 4_000_000  # numbers drawn at once; bounds the memory at some 32 MB
_RIGHT, _TOKENS, _WHOLE, _SEQUENCES, _CORRECT, _GOLD, _PREDICTED = range(7)


@dataclass(frozen=True)
class Interval:
    """A score on the whole data (`value`) and the interval that holds it with the given confidence; all in [0, 1]."""

    metric: str
    value: float
    low: float
    high: float
    confidence: float


@dataclass(frozen=True)
class Comparison:
    """Two systems on the same data.

    difference = first - second; low and high bound it with the given confidence (paired percentile bootstrap).
    p_value: how often a difference at least as large arises when each sequence's two predictions are swapped by a coin
    (two-sided approximate randomisation), counting the observed one.
    """

    metric: str
    first: float
    second: float
    difference: float
    low: float
    high: float
    confidence: float
    p_value: float


def _ratio(above: Floats, below: Floats) -> Floats:
    return np.divide(above, below, out=np.zeros_like(above), where=below > 0)


METRICS: Metrics = {
    "token_accuracy": lambda s: _ratio(s[:, _RIGHT], s[:, _TOKENS]),
    "sequence_accuracy": lambda s: _ratio(s[:, _WHOLE], s[:, _SEQUENCES]),
    "precision": lambda s: _ratio(s[:, _CORRECT], s[:, _PREDICTED]),
    "recall": lambda s: _ratio(s[:, _CORRECT], s[:, _GOLD]),
    "f1": lambda s: _ratio(2 * s[:, _CORRECT], s[:, _GOLD] + s[:, _PREDICTED]),
}
# Of the columns of ParsingScores.counts.
PARSING_METRICS: Metrics = {
    "uas": lambda s: _ratio(s[:, 1], s[:, 0]),
    "las": lambda s: _ratio(s[:, 2], s[:, 0]),
    "label_accuracy": lambda s: _ratio(s[:, 3], s[:, 0]),
    "exact_match": lambda s: _ratio(s[:, 4], s[:, 5]),
    "root_accuracy": lambda s: _ratio(s[:, 6], s[:, 5]),
    "exact_match_labelled": lambda s: _ratio(s[:, 7], s[:, 5]),
}


def bootstrap_interval(
    gold: Sequences, predicted: Sequences, metric: str = "f1", *, scheme: str = "conlleval", confidence: float = 0.95,
    n_resamples: int = 1000, seed: int = 0,
) -> Interval:  # fmt: skip
    """Return the percentile bootstrap interval of a metric; whole sequences are drawn with replacement.

    metric: one of METRICS. The same seed gives the same interval. Raises DataError as `encode` does, ParameterError for
    a setting out of range.

    >>> interval = bootstrap_interval([["a", "b"], ["a", "a"]] * 20, [["a", "b"], ["a", "b"]] * 20, "token_accuracy")
    >>> interval.value, interval.low < 0.75 < interval.high
    (0.75, True)
    """
    return _interval(_figures(encode(gold, predicted), scheme), metric, METRICS, confidence, n_resamples, seed)


def compare_systems(
    gold: Sequences, first: Sequences, second: Sequences, metric: str = "f1", *, scheme: str = "conlleval",
    confidence: float = 0.95, n_resamples: int = 10_000, seed: int = 0,
) -> Comparison:  # fmt: skip
    """Compare the predictions of two systems on the same sequences: difference, its interval, and a p-value.

    metric: one of METRICS. The smallest p-value is 1 / (n_resamples + 1). Raises DataError as `encode` does,
    ParameterError for a setting out of range.

    >>> compare_systems([["a"]] * 30, [["a"]] * 30, [["a"]] * 20 + [["b"]] * 10, "token_accuracy").p_value < 0.01
    True
    """
    one, other = _figures(encode(gold, first), scheme), _figures(encode(gold, second), scheme)
    return _compare(one, other, metric, METRICS, confidence, n_resamples, seed)


def parsing_interval(
    scores: ParsingScores, metric: str = "las", *, confidence: float = 0.95, n_resamples: int = 1000, seed: int = 0
) -> Interval:
    """Return the percentile bootstrap interval of a score of trees; whole sentences are drawn with replacement.

    scores: from `evaluate_trees`. metric: one of PARSING_METRICS. Raises DataError for a labelled metric of trees without
    relations, ParameterError for a setting out of range.
    """
    return _interval(_labelled(scores, metric), metric, PARSING_METRICS, confidence, n_resamples, seed)


def compare_parsers(
    first: ParsingScores, second: ParsingScores, metric: str = "las", *, confidence: float = 0.95, n_resamples: int = 10_000,
    seed: int = 0,
) -> Comparison:  # fmt: skip
    """Compare two parsers on the same sentences under the same rules: difference, its interval, and a p-value.

    first, second: from `evaluate_trees` on the same gold trees. metric: one of PARSING_METRICS. Raises DataError if rules
    or sentences differ or the metric needs relations that are not there, ParameterError for a setting out of range.
    """
    if first.rules != second.rules:
        raise DataError(f"expected two results under the same rules, got {first.rules} and {second.rules}")
    if not np.array_equal(first.counts[:, 0], second.counts[:, 0]):  # the first column counts the scored words
        raise DataError(
            f"expected two results on the same sentences, got {first.n_sentences} sentences with {first.n_scored} scored words "
            f"and {second.n_sentences} with {second.n_scored}, or in another order"
        )
    one, other = (_labelled(scores, metric) for scores in (first, second))
    return _compare(one, other, metric, PARSING_METRICS, confidence, n_resamples, seed)


def _interval(figures: Floats, metric: str, metrics: Metrics, confidence: float, n_resamples: int, seed: int) -> Interval:
    score = _checked(metric, metrics, confidence, n_resamples)
    draws = score(_resample(figures, n_resamples, np.random.default_rng(seed)))
    low, high = np.quantile(draws, [(1 - confidence) / 2, (1 + confidence) / 2])
    return Interval(metric, float(score(figures.sum(0, keepdims=True))[0]), float(low), float(high), confidence)


def _compare(
    one: Floats, other: Floats, metric: str, metrics: Metrics, confidence: float, n_resamples: int, seed: int
) -> Comparison:
    score = _checked(metric, metrics, confidence, n_resamples)
    width = one.shape[1]
    rng = np.random.default_rng(seed)
    draws = _resample(np.hstack((one, other)), n_resamples, rng)
    spread = score(draws[:, :width]) - score(draws[:, width:])
    low, high = np.quantile(spread, [(1 - confidence) / 2, (1 + confidence) / 2])
    a, b = (float(score(figures.sum(0, keepdims=True))[0]) for figures in (one, other))
    moved = _blocks(len(one), n_resamples, lambda n: rng.integers(0, 2, (n, len(one))).astype(np.float64) @ (one - other))
    swapped = np.abs(score(one.sum(0) - moved) - score(other.sum(0) + moved))
    # The slack keeps a tie a tie when the same fraction is computed in two ways.
    p_value = (1 + np.count_nonzero(swapped >= abs(a - b) - 1e-12)) / (n_resamples + 1)
    return Comparison(metric, a, b, a - b, float(low), float(high), confidence, float(p_value))


def _labelled(scores: ParsingScores, metric: str) -> Floats:
    """What each sentence adds to the counts; DataError where the metric needs relations that are not there."""
    if getattr(scores, metric, 0.0) is None:
        raise DataError(f"{metric}: expected trees with relations on both sides, got some without")
    return scores.counts.astype(np.float64)


def _checked(metric: str, metrics: Metrics, confidence: float, n_resamples: int) -> Metric:
    if metric not in metrics:
        raise ParameterError(f"metric: expected one of {', '.join(metrics)}, got {metric!r}")
    if not 0 < confidence < 1:
        raise ParameterError(f"confidence: expected a number between 0 and 1, got {confidence!r}")
    if n_resamples < 1:
        raise ParameterError(f"n_resamples: expected at least 1, got {n_resamples!r}")
    return metrics[metric]


def _figures(coded: Coded, scheme: str) -> Floats:
    """What each sequence adds to the counts that the metrics are made of: float64 (n_sequences, 7)."""
    _, gold, predicted, correct = matched(coded, scheme)
    flags = np.zeros((3, len(coded.gold)), dtype=np.int64)
    for row, starts in enumerate((gold.starts[correct], gold.starts, predicted.starts)):
        flags[row, starts] = 1
    right = sums(coded.gold == coded.predicted, coded.offsets)
    tokens = np.diff(coded.offsets)
    columns = [right, tokens, right == tokens, np.ones(len(tokens)), *(sums(row, coded.offsets) for row in flags)]
    return np.column_stack(columns).astype(np.float64)


def _resample(figures: Floats, n_resamples: int, rng: np.random.Generator) -> Floats:
    """Sums of the figures over sequences drawn with replacement: float64 (n_resamples, n_figures)."""
    n = len(figures)
    even = np.full(n, 1 / n)
    return _blocks(n, n_resamples, lambda m: rng.multinomial(n, even, m).astype(np.float64) @ figures)


def _blocks(width: int, height: int, draw: Callable[[int], Floats]) -> Floats:
    """Call `draw` for a few rows at a time, so that height * width numbers are never in memory together."""
    step = max(1, BLOCK // width)
    return np.vstack([draw(min(step, height - i)) for i in range(0, height, step)])
