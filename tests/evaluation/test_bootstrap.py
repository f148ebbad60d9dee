"""Intervals and comparisons: against theory, by hand, and repeatable."""

import itertools
import random

import numpy as np
import pytest

from structpred.errors import DataError, ParameterError
from structpred.evaluation import bootstrap_interval, compare_systems, evaluate_sequences
from structpred.evaluation.bootstrap import METRICS

Data = list[list[str]]


def corpus(n: int, seed: int, errors: float) -> tuple[Data, Data]:
    """Random IOB2 labels and a copy with errors."""
    rng = random.Random(seed)
    tags = ["O", "B-X", "I-X", "B-Y"]
    gold = [[rng.choice(tags) for _ in range(rng.randint(1, 8))] for _ in range(n)]
    return gold, [[rng.choice(tags) if rng.random() < errors else t for t in s] for s in gold]


@pytest.mark.parametrize("metric", METRICS)
def test_value_is_the_score(metric: str) -> None:
    """The value in the middle is the score itself, and it lies within its interval."""
    gold, predicted = corpus(150, 0, 0.2)
    interval = bootstrap_interval(gold, predicted, metric, n_resamples=400)
    assert interval.value == pytest.approx(getattr(evaluate_sequences(gold, predicted), metric), abs=1e-12)
    assert 0 <= interval.low < interval.value < interval.high <= 1


def test_width_is_the_binomial_one() -> None:
    """For sequences of one token the interval of the accuracy is the binomial one: 1.96 standard errors each way."""
    gold = [["a"]] * 2000
    predicted = [["a"]] * 1600 + [["b"]] * 400
    interval = bootstrap_interval(gold, predicted, "token_accuracy", n_resamples=4000)
    half = 1.96 * np.sqrt(0.8 * 0.2 / 2000)
    assert interval.low == pytest.approx(0.8 - half, abs=0.1 * half)
    assert interval.high == pytest.approx(0.8 + half, abs=0.1 * half)


def test_interval_covers_the_truth() -> None:
    """About nine in ten of the 90 % intervals of 200 samples hold the accuracy of the population."""
    rng = np.random.default_rng(0)
    held = 0
    for seed in range(200):
        right = rng.random(120) < 0.7
        predicted = [["a" if r else "b"] for r in right]
        i = bootstrap_interval([["a"]] * 120, predicted, "token_accuracy", confidence=0.9, n_resamples=300, seed=seed)
        held += i.low <= 0.7 <= i.high
    assert 165 <= held <= 195


@pytest.mark.slow
def test_p_value_equals_the_full_enumeration() -> None:
    """On nine sequences the p-value is the share of all 512 swaps that differ at least as much, up to chance."""
    gold, first = corpus(9, 1, 0.1)
    _, second = gold, [[("O" if (i + j) % 3 == 0 else t) for j, t in enumerate(s)] for i, s in enumerate(gold)]
    observed = abs(evaluate_sequences(gold, first).f1 - evaluate_sequences(gold, second).f1)
    larger = 0
    for swaps in itertools.product([False, True], repeat=9):
        a = [s if w else f for f, s, w in zip(first, second, swaps, strict=True)]
        b = [f if w else s for f, s, w in zip(first, second, swaps, strict=True)]
        larger += abs(evaluate_sequences(gold, a).f1 - evaluate_sequences(gold, b).f1) >= observed - 1e-12
    assert 0.01 < larger / 512 < 0.9
    assert compare_systems(gold, first, second, n_resamples=20_000).p_value == pytest.approx(larger / 512, abs=0.015)


def test_equal_and_unequal_systems() -> None:
    """Equal systems have p = 1 and no difference; a plainly worse one has a small p and an interval away from 0."""
    gold, good = corpus(200, 2, 0.05)
    _, bad = corpus(200, 2, 0.6)
    same = compare_systems(gold, good, good, n_resamples=200)
    assert (same.difference, same.low, same.high, same.p_value) == (0.0, 0.0, 0.0, 1.0)
    other = compare_systems(gold, good, bad, n_resamples=2000)
    assert other.low > 0
    assert other.p_value == pytest.approx(1 / 2001)
    turned = compare_systems(gold, bad, good, n_resamples=2000)
    assert turned.difference == -other.difference


def test_p_values_of_equal_systems_are_even() -> None:
    """Two equally good systems look different at the 10 % level in about one of ten samples, not more."""
    rng = np.random.default_rng(3)
    low = 0
    for seed in range(200):
        one, other = ([["a" if r else "b"] * 2 for r in rng.random(60) < 0.8] for _ in range(2))
        low += compare_systems([["a", "a"]] * 60, one, other, "token_accuracy", n_resamples=200, seed=seed).p_value <= 0.1
    assert low <= 35


def test_repeatable() -> None:
    """The same seed gives the same figures, another seed others."""
    gold, predicted = corpus(80, 4, 0.3)
    assert bootstrap_interval(gold, predicted, seed=1) == bootstrap_interval(gold, predicted, seed=1)
    assert bootstrap_interval(gold, predicted, seed=1) != bootstrap_interval(gold, predicted, seed=2)
    one = compare_systems(gold, predicted, gold, n_resamples=300, seed=1)
    assert one == compare_systems(gold, predicted, gold, n_resamples=300, seed=1)


def test_drawing_in_blocks_covers_every_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cutting the draws into small blocks, to bound memory, still makes the asked number of them."""
    from structpred.evaluation import bootstrap

    monkeypatch.setattr(bootstrap, "BLOCK", 100)
    assert bootstrap._blocks(30, 10, lambda n: np.ones((n, 2))).shape == (10, 2)


def test_bad_settings() -> None:
    """Unknown metrics, confidences outside (0, 1) and no resamples are refused; so are systems of other lengths."""
    gold, predicted = corpus(5, 5, 0.3)
    with pytest.raises(ParameterError, match="metric: expected one of token_accuracy"):
        bootstrap_interval(gold, predicted, "auc")
    with pytest.raises(ParameterError, match="confidence"):
        bootstrap_interval(gold, predicted, confidence=95)
    with pytest.raises(ParameterError, match="n_resamples"):
        compare_systems(gold, predicted, predicted, n_resamples=0)
    with pytest.raises(DataError, match="one prediction for each of 5"):
        compare_systems(gold, predicted, predicted[:-1])
