"""Bounds of a run: bounds that cross end it, wherever they come from, and what is no finite number is named."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from training_cases import chain_task, multiclass_task, problem

from structpred.core.result import Certificate, sound
from structpred.errors import CheckpointError, ConvergenceError, OracleError
from structpred.features.parts import PartFeatures
from structpred.objectives.log_loss import LogLoss
from structpred.objectives.margin import MarginRescaling
from structpred.objectives.part_losses import Hamming
from structpred.oracles.multiclass import MulticlassOracle
from structpred.task.task import Task
from structpred.trainers.bcfw import BCFW
from structpred.trainers.cocoa import CoCoA
from structpred.trainers.loop import RunSettings, train
from structpred.trainers.oeg import OnlineEG
from structpred.trainers.problem import Problem


class Told(BCFW):
    """Its bounds are changed in one pass."""

    def __init__(self, primal: float = 0.0, dual: float = 0.0, at: int = 2) -> None:
        super().__init__()
        self.more, self.at, self.asked = (primal, dual), at, 0

    def objective(self, problem: Any, state: Any) -> Any:
        self.asked += 1
        primal, dual = super().objective(problem, state)
        return (primal + self.more[0], dual + self.more[1]) if self.asked == self.at else (primal, dual)

    last_objective = None


def runs(trainer: Any, **settings: Any) -> Any:
    """Five passes over chains, with bounds after each."""
    return train(problem(chain_task()), trainer, RunSettings(**{"max_iter": 5, "check_every": 1, **settings}))


@pytest.mark.parametrize("told", [{"dual": 100.0}, {"primal": -100.0}])
def test_bounds_that_cross_end_the_run(told: dict[str, float]) -> None:
    """A dual value above the least objective of any pass is an error that says both numbers, their passes, and what to check."""
    expected = r"bounds cross: the objective of pass \d is .*, but the dual value of pass \d is .*check_oracle.*check_feature_map"
    with pytest.raises(OracleError, match=expected) as caught:
        runs(Told(**told))
    assert all(f"{name}" in str(caught.value) for name in ("pass 2", "check_loss", "check_regulariser", "Told", "ChainOracle"))


def test_a_dual_that_was_too_high_once_is_not_kept() -> None:
    """A dual value that a later, lower objective contradicts ends the run, though it was below the objective of its own pass."""
    first = runs(BCFW(), max_iter=1).history[0]
    with pytest.raises(OracleError, match="the dual value of pass 1 is"):
        runs(Told(dual=0.98 * (first["primal"] - first["dual"]), at=1), max_iter=200)


def test_an_inexact_oracle_may_cross_its_estimates() -> None:
    """Where nothing is proven, numbers that cross are estimates: no error, and no success either."""

    class Inexact(MulticlassOracle):
        exact = False

    rng = np.random.default_rng(0)
    features = PartFeatures([rng.normal(size=(4, 6)) for _ in range(30)])
    task = Task(features, Inexact(), [rng.integers(0, 4, 1) for _ in range(30)], [(4,)] * 30, Hamming())
    result = train(problem(task), Told(dual=100.0), RunSettings(max_iter=4, check_every=1, tol=1e-9))
    assert (result.stop_reason, result.certificate.certifies) == ("max_iter", False)


def test_an_earlier_history_whose_bounds_cross_is_refused() -> None:
    """A run that goes on from progress in which a dual value is above an objective is a CheckpointError."""
    progress = runs(BCFW(), keep=True).progress
    rows = [{**row, "dual": row["dual"] + 100.0} if k == 0 else row for k, row in enumerate(progress.history)]
    with pytest.raises(CheckpointError, match="history: the bounds cross"):
        runs(BCFW(), max_iter=6, start=replace(progress, history=rows))
    assert runs(BCFW(), max_iter=6, start=progress).passes == 6


def test_the_objective_at_zero_weights_counts() -> None:
    """A dual value above the objective at zero weights is refused, though all objectives of the run were higher still."""
    made = problem(multiclass_task(n=10))
    at_zero = made.primal(np.zeros(made.task.dim))

    class High(Told):
        def objective(self, problem: Any, state: Any) -> Any:
            return at_zero + 2.0, at_zero + 1.0

    with pytest.raises(OracleError, match="the objective of zero weights is"):
        train(made, High(), RunSettings(max_iter=2))


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"dual": np.nan}, "the dual value after pass 2 is nan, though the weights are finite: Told.objective gave it"),
        ({"primal": np.inf}, "the objective after pass 2 is inf, though the weights are finite: Told.objective gave it"),
    ],
)
def test_what_is_no_finite_number_is_named(more: dict[str, float], said: str) -> None:
    """An objective or a dual value that is not finite is called by its name, with who gave it; weights are not blamed."""
    with pytest.raises(ConvergenceError, match=said):
        runs(Told(**more))


def test_a_surrogate_whose_values_are_not_finite_is_named() -> None:
    """An infinite value of one sample is named with the sample and the surrogate."""

    class Endless(MarginRescaling):
        def values(self, task: Any, w: Any) -> Any:
            found = super().values(task, w)
            found[3] = np.inf
            return found

    with pytest.raises(ConvergenceError, match=r"the objective after pass 1 is inf.*sample 3: Endless\.values gave inf"):
        train(replace(problem(chain_task()), surrogate=Endless()), BCFW(), RunSettings(max_iter=2, check_every=1))


def test_a_bound_that_may_be_rounding_is_none() -> None:
    """A lower bound is minus infinity, which a history shows as none, where the sizes of its terms leave nothing of it."""
    assert (sound(1.5, 10.0), sound(1.5, 1e12)) == (1.5, -np.inf)
    assert runs(Told(dual=-np.inf)).history[1]["dual"] is None


@pytest.mark.parametrize("trainer", [OnlineEG, lambda: CoCoA(OnlineEG(), shards=2)])
def test_entropies_of_rounding_are_no_dual(trainer: Any) -> None:
    """With features of 1e12 the entropies of exponentiated gradient are differences of numbers of 1e20: they bound nothing."""
    for scale, known in ((1.0, True), (1e12, False)):
        rng = np.random.default_rng(0)
        features = PartFeatures([scale * rng.normal(size=(6, 5)) for _ in range(20)])
        task = Task(features, MulticlassOracle(), [rng.integers(0, 6, 1) for _ in range(20)], [(6,)] * 20, Hamming())
        found = train(Problem(task, LogLoss(), 0.05), trainer(), RunSettings(max_iter=5, check_every=1)).certificate
        assert (found.dual is not None) == known
        assert found.primal is not None


def test_a_gap_below_zero_is_no_success() -> None:
    """An estimator has not converged where its certificate's bounds cross, however small their difference is meant to be."""
    from structpred.core.result import Result
    from structpred.models import ChainLabeler

    model = ChainLabeler(trainer="bcfw", tol=0.01)
    for dual, converged in ((1.9999, True), (2.1, False)):
        model._keep(Result(np.zeros(2), Certificate(2.0, dual, proven=True)))
        assert model.converged_ == converged
