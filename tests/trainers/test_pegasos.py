"""Pegasos: the algorithm in a few plain lines, its optimum, exact signs, the same bits after resuming, and refusals."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from regulariser_cases import Groups, NonNegative
from training_cases import chain_task, problem

from structpred.core.regulariser import DualMap
from structpred.errors import MissingCapabilityError, ParameterError
from structpred.features.label_rows import LabelRows
from structpred.objectives.log_loss import LogLoss
from structpred.objectives.margin import MarginRescaling
from structpred.objectives.part_losses import Hamming
from structpred.objectives.regularisers.l1 import L1
from structpred.objectives.regularisers.l2 import SignConstraints
from structpred.objectives.scalar.classes import MaxHinge, SignedTopK, Softmax, TopK
from structpred.objectives.scalar.errors import Absolute
from structpred.objectives.scalar.margins import Logistic, SmoothedHinge
from structpred.oracles.multiclass import MulticlassOracle
from structpred.rows.linear_task import LinearTask, RegressionTask
from structpred.rows.scalar_loss import ScalarLoss
from structpred.task.task import Task
from structpred.trainers.loop import RunSettings, train
from structpred.trainers.pegasos import Pegasos
from structpred.trainers.problem import Problem
from structpred.trainers.sdca import SDCA

N, D, M, LAM = 12, 4, 3, 0.1
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, D)) * (RNG.random((N, D)) < 0.7)
X[3] = 0.0
SIGNS, LABELS, NUMBERS = np.where(RNG.random(N) < 0.5, 1, -1), RNG.integers(0, M, N), RNG.normal(size=N)
WEIGHTS = np.r_[0.0, np.linspace(0.3, 2.0, N - 1)]
FEATURES = LabelRows(X, M, dtype=np.float64)
TASKS: dict[str, Any] = {
    "rows": LinearTask(X, SIGNS, sample_weight=WEIGHTS),
    "numbers": RegressionTask(X, NUMBERS, sample_weight=WEIGHTS),
    "labels": Task(FEATURES, MulticlassOracle(), list(LABELS[:, None]), FEATURES.shapes, Hamming(), sample_weight=WEIGHTS),
}


class PlainSmoothedHinge(ScalarLoss):
    """A loss that a user wrote: its value and its derivative, no table."""

    signs = True

    def value(self, z, y):
        """That of SmoothedHinge(0.5)."""
        return SmoothedHinge(0.5).value(z, y)

    def derivative(self, z, y):
        """Likewise."""
        return SmoothedHinge(0.5).derivative(z, y)


class LastFrozen(SignConstraints):
    """Signs, and a last weight that stays at zero."""

    def dual_map(self) -> DualMap:
        """The scale of the last weight is zero."""
        n = len(self.signs)
        _, low, high = super().dual_map().expanded(n)
        return DualMap.of(1 + np.arange(n), np.arange(n) < n - 1, low, high)


def signed(task: Any) -> LastFrozen:
    """Signs of all kinds."""
    return LastFrozen(np.resize([1, -1, 0, -1, 1], task.dim))


CASES = {
    "hinge": ("rows", MarginRescaling()),
    "smoothed hinge": ("rows", SmoothedHinge(0.5)),
    "logistic": ("rows", Logistic()),
    "absolute": ("numbers", Absolute()),
    "crammer-singer": ("labels", MarginRescaling()),
    "max-hinge": ("labels", MaxHinge()),
    "softmax": ("labels", Softmax()),
    "top-k": ("labels", TopK(2)),
    "signed top-k": ("labels", SignedTopK(2)),
}


def plain_run(problem: Problem, batches: list[np.ndarray], average: str) -> np.ndarray:
    """Algorithms 1 and 3 as repaired, by dense vectors and the surrogates' own tangents."""
    task, lam, signs = problem.task, problem.lam, problem.regulariser.signs
    negative = getattr(problem.surrogate, "may_be_negative", False)
    radius = np.inf if negative else np.sqrt(problem.primal(np.zeros(task.dim)) / lam)
    w, iterates = np.zeros(task.dim), []
    for t, batch in enumerate(batches, start=1):
        gradient = np.zeros(task.dim)
        for i in batch:
            slope = problem.surrogate.term(task, w, i).difference
            gradient[slope.indices] -= problem.share(i) / len(batch) * slope.values
        w = (1 - 1 / t) * w - gradient / (lam * t)
        w = w + signs * np.maximum(-signs * w, 0.0)
        w[-1] = 0.0
        w = w * min(1.0, radius / max(np.linalg.norm(w), 1e-300))
        iterates.append(w)
    last = 2 ** int(np.log2(len(batches)))
    half = last // 2 if len(batches) - last < last // 2 else last
    first = {"last": len(batches) - 1, "full": 0, "suffix": half}[average]
    return np.mean(iterates[first:], axis=0)


@pytest.mark.mostly_slow
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(("average", "steps"), [("suffix", 11), ("suffix", 13), ("suffix", 16), ("full", 11), ("last", 11)])
def test_steps_over_all_rows_are_those_of_projected_subgradients(name: str, average: str, steps: int) -> None:
    """With k = n each step is deterministic: lazy scales, norms and averages give what dense vectors give, 1/k included."""
    task = TASKS[CASES[name][0]]
    made = Problem(task, CASES[name][1], LAM, regulariser=signed(task))
    result = train(made, Pegasos(batch=N, average=average), RunSettings(max_iter=steps))
    np.testing.assert_allclose(result.weights, plain_run(made, [np.arange(N)] * steps, average), atol=1e-12)


@pytest.mark.parametrize("size", [1, 5])
def test_steps_over_some_rows_are_those_of_the_plain_algorithm(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the batches that were drawn, also where v is written anew in between."""
    monkeypatch.setattr("structpred.trainers.pegasos.CALL", 1)  # a call for each step, so that its batch can be seen
    made = Problem(TASKS["rows"], MarginRescaling(), LAM, regulariser=signed(TASKS["rows"]))
    trainer, batches, rng = Pegasos(batch=size), [], np.random.default_rng(1)
    state = trainer.init_state(made)
    for n_pass in range(3):
        for item in trainer.order(made, state, rng, n_pass):
            if len(batches) == 9:
                state.v[:] *= state.numbers[0] * 1e10  # the same weights by a scale that is too small
                state.numbers[2] *= 1e-10 / state.numbers[0]
                state.numbers[:2] = 1e-10, state.v @ state.v
            state, _ = trainer.update(made, state, int(item))
            batches.append(state.places[:size].copy())
        state = trainer.finish_pass(made, state)
    assert len(batches) == 3 * -(-N // size)
    assert len({tuple(sorted(batch)) for batch in batches}) > min(N, 5)
    np.testing.assert_allclose(trainer.weights(made, state), plain_run(made, batches, "suffix"), atol=1e-10)


@pytest.mark.parametrize("name", CASES)
def test_it_comes_near_the_certified_optimum_with_exact_signs(name: str) -> None:
    """Within 0.03 of dual ascent under the same signs after 300 passes; every sign right, with no rounding."""
    task = TASKS[CASES[name][0]]
    made = Problem(task, CASES[name][1], LAM, regulariser=signed(task))
    best = train(made, SDCA(), RunSettings(max_iter=500, tol=1e-6)).certificate
    result = train(made, Pegasos(batch=2), RunSettings(max_iter=300))
    assert best.dual - 1e-12 <= result.certificate.primal <= best.primal + 0.03
    assert result.certificate.gap is None
    assert (made.regulariser.signs * result.weights).min() == 0.0
    assert result.weights[-1] == 0.0


def test_a_loss_without_a_table_takes_the_same_steps() -> None:
    """Python's derivative and the compiled one agree, in the same batches, and no other method is asked for."""
    runs = [
        train(Problem(TASKS["rows"], loss, LAM), Pegasos(batch=3), RunSettings(max_iter=5)).weights
        for loss in (PlainSmoothedHinge(), SmoothedHinge(0.5))
    ]
    np.testing.assert_allclose(*runs, atol=1e-13)


@pytest.mark.parametrize("name", ["smoothed hinge", "softmax"])
@pytest.mark.parametrize("average", ["suffix", "last"])
def test_a_resumed_run_has_the_bits_of_the_whole_one(name: str, average: str, tmp_path: Path) -> None:
    """Three passes and then six more from the checkpoint, or nine at once; another seed has others."""
    task, file = TASKS[CASES[name][0]], tmp_path / "run.ckpt"
    made = Problem(task, CASES[name][1], LAM, regulariser=signed(task))
    kind = Pegasos(batch=2, average=average)
    whole = train(made, kind, RunSettings(max_iter=9, seed=3))
    train(made, kind, RunSettings(max_iter=3, seed=3, checkpoint=file))
    resumed = train(made, kind, RunSettings(max_iter=9, seed=3, checkpoint=file, resume=True))
    assert resumed.weights.tobytes() == whole.weights.tobytes()
    assert train(made, kind, RunSettings(max_iter=9, seed=4)).weights.tobytes() != whole.weights.tobytes()


def test_calls_may_be_cut_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pass in many compiled calls has as many steps as in one."""
    monkeypatch.setattr("structpred.trainers.pegasos.CALL", 70)
    made, trainer = Problem(TASKS["rows"], MarginRescaling(), 0.11), Pegasos(batch=2)
    state = trainer.init_state(made)
    items = trainer.order(made, state, np.random.default_rng(0), 0)
    assert len(items) > 1
    for item in items:
        state, _ = trainer.update(made, state, int(item))
    assert state.steps.item() == 6


def test_what_it_cannot_do_is_refused_before_any_work() -> None:
    """Settings, structures, other losses and regularisers whose steps are no projection on signs."""
    with pytest.raises(ParameterError, match=r"batch must be a whole number >= 1, got 0"):
        Pegasos(batch=0)
    with pytest.raises(ParameterError, match="average: expected one of suffix, full, last, got 'best'"):
        Pegasos(average="best")
    with pytest.raises(ParameterError, match=r"batch: expected at most the number of samples, 12, got 13"):
        train(problem(TASKS["rows"], LAM), Pegasos(batch=13))
    with pytest.raises(MissingCapabilityError, match="rows"):
        train(problem(chain_task(0, n=3), LAM), Pegasos())
    for regulariser in (L1(0.1), Groups()):
        with pytest.raises(ParameterError, match="Pegasos cannot minimise"):
            train(Problem(TASKS["rows"], MarginRescaling(), LAM, regulariser=regulariser), Pegasos())
    assert Pegasos.fits(NonNegative())
    assert Pegasos.fits(SignConstraints([1, -1, 0]))
    assert not Pegasos.minimises(LogLoss())


def test_bent_states_are_refused() -> None:
    """Rows that are no permutation, and scales that steps divide by, never reach compiled code."""
    state = Pegasos().init_state(problem(TASKS["rows"], LAM))
    assert state.fault(0) is None
    state.numbers[0] = 0.0
    assert "numbers: expected a scale" in state.fault(0)
    state.places[0] = 1
    assert "places:" in state.fault(0)
