"""Dual ascent of columns: the optimum of a generic solver for every loss, with signs that hold exactly, and valid bounds."""

from pathlib import Path

import numpy as np
import pytest
from training_cases import chain_task

from structpred.errors import LossError, MissingCapabilityError, ParameterError
from structpred.features.label_rows import LabelRows
from structpred.objectives.margin import MarginRescaling
from structpred.objectives.part_losses import Hamming, LabelCosts
from structpred.objectives.regularisers.l1 import L1
from structpred.objectives.regularisers.l2 import SignConstraints
from structpred.objectives.scalar.classes import MaxHinge, SignedTopK, Softmax, TopK
from structpred.oracles.multiclass import MulticlassOracle
from structpred.rows.linear_task import LinearTask
from structpred.rows.multiclass_loss import MulticlassLoss
from structpred.task.task import Task
from structpred.trainers.bcfw import BCFW
from structpred.trainers.lbfgs import LBFGS
from structpred.trainers.loop import RunSettings, train
from structpred.trainers.problem import Problem
from structpred.trainers.sdca import SDCA

N, D, M, LAM = 60, 5, 4, 0.02
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, D))
Y = (X @ RNG.normal(size=(D, M)) + RNG.normal(size=(N, M))).argmax(axis=1)
SIGNS = RNG.integers(-1, 2, (D, M))
FEATURES = LabelRows(X, M, dtype=np.float64)
LOSSES = [Softmax(), MaxHinge(), TopK(2), SignedTopK(2)]


class DoubledValue(MaxHinge):
    """Its value is twice that of its points."""

    def value(self, z: object, y: int) -> float:
        """Twice the hinge."""
        return 2.0 * super().value(z, y)


class SteepSlope(Softmax):
    """Its subgradient is twice the right one."""

    def subgradient(self, z: object, y: int) -> np.ndarray:
        """Twice the slope."""
        return 2.0 * super().subgradient(z, y)


class Unannounced(MulticlassLoss):
    """It is negative where the true class leads, and does not say so."""

    points, k = 1, 2


def rows(loss: object = None, **options: object) -> Task:
    """The rows above."""
    return Task(FEATURES, MulticlassOracle(), list(Y[:, None]), FEATURES.shapes, loss or Hamming(), **options)


def optimum(loss: MulticlassLoss) -> float:
    """The optimal value under the signs, without any code of the project but the matrices."""
    cp = pytest.importorskip("cvxpy")
    W, truth = cp.Variable((D, M)), np.eye(M)[Y]
    scores = X @ W
    own = cp.sum(cp.multiply(truth, scores), axis=1)
    if isinstance(loss, Softmax):
        total = cp.sum(cp.log_sum_exp(scores, axis=1) - own)
    elif isinstance(loss, MaxHinge):
        total = cp.sum(cp.max(scores + 1.0 - truth, axis=1) - own)
    else:
        means = [cp.sum_largest(scores[i] + 1.0 - truth[i], loss.k) / loss.k - own[i] for i in range(N)]
        total = sum(cp.pos(mean) if isinstance(loss, TopK) else mean for mean in means)
    program = cp.Problem(cp.Minimize(LAM / 2 * cp.sum_squares(W) + total / N), [cp.multiply(SIGNS, W) >= 0])
    program.solve(solver=cp.CLARABEL, tol_gap_abs=1e-9, tol_gap_rel=1e-9, tol_feas=1e-9)
    return float(program.value)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
def test_the_optimum_is_that_of_a_generic_solver_and_signs_are_exact(loss: MulticlassLoss) -> None:
    """To 1e-7 from both sides at the end, never on the wrong side of it before, and no weight has a wrong sign by rounding."""
    made = Problem(rows(), loss, LAM, regulariser=SignConstraints(SIGNS.ravel()))
    result = train(made, SDCA(), RunSettings(max_iter=1000, tol=5e-8, check_every=5))
    value = optimum(loss)
    assert result.stop_reason == "tol"
    assert result.certificate.primal == pytest.approx(value, abs=1e-7)
    assert result.certificate.dual == pytest.approx(value, abs=1e-7)
    checked = [row for row in result.history if row["primal"] is not None]
    assert all(row["dual"] - 1e-9 <= value <= row["primal"] + 1e-9 for row in checked)
    assert (SIGNS.ravel() * result.weights).min() == 0.0
    u = result.report["dual_point"]
    np.testing.assert_allclose(result.weights, np.where(SIGNS.ravel() * u < 0.0, 0.0, u), atol=1e-12)
    assert (result.certificate.primal < 0.0) == isinstance(loss, SignedTopK)


@pytest.mark.parametrize("signed", [True, False])
def test_two_classes_are_the_binary_hinge(signed: bool) -> None:
    """W = (-w, w) / 2 has half the squared norm: two classes of columns at lam are two classes of rows at lam / 2."""
    c = SIGNS[:, 0] * signed
    features = LabelRows(X, 2, dtype=np.float64)
    many = Task(features, MulticlassOracle(), [[int(y > 1)] for y in Y], features.shapes, Hamming())
    settings = RunSettings(max_iter=3000, tol=1e-8)
    both = np.stack([-c, c], axis=1).ravel()
    one = train(
        Problem(LinearTask(X, 2 * (Y > 1) - 1), MarginRescaling(), 0.05, regulariser=SignConstraints(c)), SDCA(), settings
    )
    two = train(Problem(many, MaxHinge(), 0.1, regulariser=SignConstraints(both)), SDCA(), settings)
    assert two.certificate.primal == pytest.approx(one.certificate.primal, rel=1e-7)
    np.testing.assert_allclose(two.weights.reshape(-1, 2), np.outer(one.weights, [-0.5, 0.5]), atol=1e-3)


def test_without_signs_it_agrees_with_other_trainers() -> None:
    """The soft-max with L-BFGS, the hinges with Frank-Wolfe, and top 1 with the largest alone, to their precision."""
    settings = RunSettings(max_iter=2000, tol=1e-7)

    def value(loss: MulticlassLoss, trainer: object, settings: RunSettings = settings) -> float:
        return train(Problem(rows(), loss, LAM), trainer, settings).certificate.primal

    assert value(Softmax(), SDCA()) == pytest.approx(value(Softmax(), LBFGS()), abs=1e-6)
    near = value(TopK(2), BCFW(), RunSettings(max_iter=150, tol=1e-3))
    assert near - 5e-4 <= value(TopK(2), SDCA()) <= near
    largest = value(MaxHinge(), SDCA())
    for same in (TopK(1), SignedTopK(1)):
        assert value(same, SDCA()) == pytest.approx(largest, abs=1e-7)
    assert train(Problem(rows(), MarginRescaling(), LAM), SDCA(), settings).certificate.primal == pytest.approx(largest, abs=1e-7)


@pytest.mark.slow
def test_costs_of_the_task_hold_under_any_dual_map() -> None:
    """The margin-rescaled hinge with uneven costs and an l1 term: the value of Frank-Wolfe, which knows nothing of columns."""
    task = rows(LabelCosts(np.abs(np.subtract.outer(range(M), range(M)))), sample_weight=np.linspace(0.0, 2.0, N))
    made = Problem(task, MarginRescaling(), 0.1, regulariser=L1(0.5))
    one, other = train(made, SDCA(), RunSettings(max_iter=1000, tol=1e-6)), train(made, BCFW(), RunSettings(max_iter=200))
    assert one.stop_reason == "tol"
    assert one.certificate.primal == pytest.approx(other.certificate.primal, rel=1e-3)
    assert (one.weights == 0.0).any()


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
def test_the_dual_rises_below_the_primal(loss: MulticlassLoss) -> None:
    """At every pass, with a row of zeros, rows of weight zero, and whichever rows the pass left out."""
    hollow = LabelRows(np.where(np.arange(N)[:, None] == 3, 0.0, X), M, dtype=np.float64)
    task = Task(hollow, MulticlassOracle(), list(Y[:, None]), hollow.shapes, Hamming(), sample_weight=np.linspace(0.0, 2.0, N))
    found = train(
        Problem(task, loss, LAM, regulariser=SignConstraints(SIGNS.ravel())), SDCA(), RunSettings(max_iter=40, check_every=1)
    )
    primal, dual = (np.array([row[key] for row in found.history]) for key in ("primal", "dual"))
    assert (dual <= primal + 1e-14).all()
    assert (np.diff(dual) >= -1e-13).all()
    assert dual[-1] > dual[0]


@pytest.mark.parametrize("loss", [Softmax(), SignedTopK(2)], ids=lambda loss: type(loss).__name__)
def test_a_resumed_run_has_the_bits_of_the_whole_one(loss: MulticlassLoss, tmp_path: Path) -> None:
    """Also past the pass at which the dual point is summed up anew."""
    made, file = Problem(rows(), loss, LAM, regulariser=SignConstraints(SIGNS.ravel())), tmp_path / "run.ckpt"
    whole = train(made, SDCA(), RunSettings(max_iter=60, seed=3, check_every=100))
    train(made, SDCA(), RunSettings(max_iter=7, seed=3, check_every=100, checkpoint=file))
    resumed = train(made, SDCA(), RunSettings(max_iter=60, seed=3, check_every=100, checkpoint=file, resume=True))
    assert resumed.weights.tobytes() == whole.weights.tobytes()
    assert resumed.certificate == whole.certificate


def test_calls_may_be_cut_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a pass takes many compiled calls, each goes on where the last one stopped: the same optimum."""
    monkeypatch.setattr("structpred.trainers.sdca.CALL", 100)
    result = train(Problem(rows(), Softmax(), LAM), SDCA(), RunSettings(max_iter=200, tol=1e-7))
    assert result.stop_reason == "tol"


def test_what_does_not_fit_is_refused_before_any_work() -> None:
    """k that is too large, two classes by one score, structures, losses that may be negative elsewhere."""
    with pytest.raises(ParameterError, match="TopK: k must be below the number of classes, got k=4 for 4 classes"):
        Problem(rows(), TopK(4), LAM)
    with pytest.raises(ParameterError, match="surrogate Softmax is for the scores of more than two classes"):
        Problem(LinearTask(X, 2 * (Y > 1) - 1), Softmax(), LAM)
    with pytest.raises(MissingCapabilityError, match="surrogate MaxHinge is for rows with one label out of many"):
        Problem(chain_task(0, n=3), MaxHinge(), LAM)
    with pytest.raises(ParameterError, match=r"BCFW cannot minimise SignedTopK; trainers that can: pegasos, sdca"):
        train(Problem(rows(), SignedTopK(2), LAM), BCFW())


@pytest.mark.parametrize(
    ("loss", "words"),
    [
        (DoubledValue(), "DoubledValue: for the scores .* value gives .*, and its points .*, which trainers go by"),
        (SteepSlope(), "SteepSlope: .* the subgradient is wrong, or the loss is not convex"),
        (Unannounced(), "Unannounced: .* below zero; set may_be_negative = True"),
    ],
    ids=["value", "subgradient", "negative"],
)
def test_a_multiclass_loss_that_contradicts_itself_is_refused_before_training(loss: MulticlassLoss, words: str) -> None:
    """Its bounds would be no bounds."""
    with pytest.raises(LossError, match=words):
        Problem(rows(), loss, LAM)
