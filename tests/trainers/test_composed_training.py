"""Compositions in training: certificates, checkpoints, files and shards are those of any oracle."""

import logging
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from structpred.core.oracle import Oracle
from structpred.models import StructuredPredictor
from structpred.oracles.chain import ChainOracle
from structpred.oracles.composed import Composed
from structpred.oracles.enumerated import EnumeratedOracle
from structpred.oracles.knapsack import KnapsackOracle, knapsack_shape

SHAPES = [(4, 2, 2), (3, 2, 1), (4, 2, 1)] * 4
TRAINERS = ("bcfw", "n_slack", "one_slack", "mira", "sgd", "perceptron", "pa", "arow", "bmrm", "ls_bmrm", "proximal")
SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in ("corrective", "online_mkl", "pragam", "projected_ascent")]


class Budgeted(Composed):
    """shape = (T, L, most): a chain whose label 0 comes at most `most` times."""

    def __init__(self, max_nodes: int | None = 1000) -> None:
        budget = KnapsackOracle()
        places = [
            (ChainOracle(), lambda shape: ((shape[0], shape[1]), np.arange(shape[0] * shape[1] + shape[1] ** 2))),
            (budget, lambda shape: (knapsack_shape(np.ones(shape[0]), shape[2]), np.arange(shape[0]) * shape[1])),
        ]
        super().__init__(places, max_nodes=max_nodes, label_grid=lambda shape: (shape[0], shape[1]))

    @staticmethod
    def example_shapes() -> list[Any]:  # type: ignore[override]
        return SHAPES[:3]

    def enumerate(self, shape: Any) -> Any:
        for y in ChainOracle().enumerate((shape[0], shape[1])):
            if np.count_nonzero(y == 0) <= shape[2]:
                yield y


def data(seed: int = 0) -> tuple[list[Any], list[Any]]:
    """Dense features of parts, and the outputs that a linear model with noise finds best."""
    rng, oracle = np.random.default_rng(seed), Budgeted()
    X = [rng.normal(size=(oracle.n_parts(shape), 5)) for shape in SHAPES]
    w = rng.normal(size=5)
    noisy = [x @ w + 1.5 * rng.normal(size=len(x)) for x in X]
    return X, [oracle.argmax(theta, shape) for theta, shape in zip(noisy, SHAPES, strict=True)]


def fitted(oracle: Oracle, trainer: str = "n_slack", **settings: Any) -> StructuredPredictor:
    """A model of that data."""
    X, y = data()
    options: dict[str, Any] = {"C": 0.5, "max_iter": 60, "tol": 1e-7, "random_state": 0, "check_components": False, **settings}
    return StructuredPredictor(oracle, trainer=trainer, **options).fit(X, y, SHAPES)


def test_the_certified_optimum_is_that_of_the_listed_outputs() -> None:
    """n_slack over the composition ends at the primal of n_slack over all outputs, to 1e-6 of it."""
    ours = fitted(Budgeted())
    assert ours.certificate_.proven
    assert ours.stop_reason_ == "tol"
    assert ours.certificate_.primal == pytest.approx(optimum(), rel=1e-6)
    assert ours.certificate_.dual <= optimum() * (1 + 1e-9)


@cache
def optimum() -> float:
    """The smallest value of the training objective, by the listed outputs."""
    return float(fitted(EnumeratedOracle.of(Budgeted())).certificate_.primal)


@pytest.mark.parametrize("trainer", [*TRAINERS, *SLOW])
@pytest.mark.parametrize("max_nodes", [1000, None])
@pytest.mark.filterwarnings("ignore::structpred.errors.NoUpdateWarning")
def test_bounds_never_cross(trainer: str, max_nodes: int | None) -> None:
    """With and without a search, every row of the history has a gap >= 0, and the optimum lies within the bounds."""
    model, best = fitted(Budgeted(max_nodes), trainer, max_iter=4, tol=0.0), optimum()
    for row in model.history_:
        if row["primal"] is not None:
            assert row["primal"] >= best * (1 - 1e-6)
        if row["dual"] is not None and trainer != "mira":
            assert row["dual"] <= min(row["primal"], best) * (1 + 1e-9)


def test_bounds_without_a_search_say_that_they_stay_open(caplog: pytest.LogCaptureFixture) -> None:
    """What keeps the gap open is named, with both ways out; a search closes it."""

    class Loose(Budgeted):
        def argmax_bound_batch(self, scores: Any, offsets: Any, shapes: Any) -> Any:
            labels, ends, bounds = super().argmax_bound_batch(scores, offsets, shapes)
            return labels, ends, bounds + 0.5

    with caplog.at_level(logging.WARNING, "structpred"):
        model = fitted(Loose(None), max_iter=30)
    assert model.stop_reason_ == "search_bound"
    assert "max_nodes" in caplog.text
    assert "argmax_relaxed" in caplog.text


@pytest.mark.parametrize("max_nodes", [1000, None])
def test_slack_rescaling_is_certified(max_nodes: int | None) -> None:
    """The search for slack rescaling takes a composition as it is: bounds hold."""
    model = fitted(Budgeted(max_nodes), "one_slack", surrogate="slack", max_iter=10, tol=0.0)
    listed = fitted(EnumeratedOracle.of(Budgeted()), "one_slack", surrogate="slack", max_iter=40)
    assert model.certificate_.primal >= listed.certificate_.dual * (1 - 1e-9)
    assert model.certificate_.dual <= listed.certificate_.primal * (1 + 1e-9)


@pytest.mark.parametrize("trainer", ["bcfw", "n_slack", "mira"])
def test_a_run_cut_in_two_has_the_same_bits(trainer: str, tmp_path: Path) -> None:
    """Compositions keep nothing between calls, so that a checkpoint holds all."""
    whole = fitted(Budgeted(), trainer, max_iter=4, tol=0.0)
    fitted(Budgeted(), trainer, max_iter=2, tol=0.0, checkpoint=tmp_path / "run.ckpt")
    resumed = fitted(Budgeted(), trainer, max_iter=4, tol=0.0, checkpoint=tmp_path / "run.ckpt", resume=True)
    assert resumed.coef_.tobytes() == whole.coef_.tobytes()


def test_files_and_own_code(tmp_path: Path) -> None:
    """A model is saved and read, and `fit` checks the class."""
    model = fitted(Budgeted(), max_iter=3, tol=0.0, check_components=True)
    assert model.certificate_.checked
    X, _ = data(1)
    model.save(tmp_path / "model.spz")
    loaded = StructuredPredictor.load(tmp_path / "model.spz", Budgeted())
    assert [p.tolist() for p in loaded.predict(X, SHAPES)] == [p.tolist() for p in model.predict(X, SHAPES)]
