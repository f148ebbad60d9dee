"""Dual coordinate ascent with any scalar loss and any table of a regulariser: optima, exact constraints, gaps, lower bounds."""

from pathlib import Path

import numpy as np
import pytest
from sign_cases import LOSSES, data, optimal_value, problem, signed

from structpred.core.regulariser import DualMap, Regulariser
from structpred.errors import DataError, LossError, MissingCapabilityError, ParameterError
from structpred.objectives.margin import MarginRescaling
from structpred.objectives.regularisers.l1 import L1
from structpred.objectives.regularisers.l2 import L2, SignConstraints
from structpred.objectives.regularisers.mkl import MKL
from structpred.objectives.scalar.errors import Absolute, Squared
from structpred.objectives.scalar.margins import Hinge, Logistic, SmoothedHinge
from structpred.rows.linear_task import LinearTask, RegressionTask
from structpred.rows.scalar_loss import DualTable, ScalarLoss
from structpred.trainers.bcfw import BCFW
from structpred.trainers.lbfgs import LBFGS
from structpred.trainers.loop import RunSettings, train
from structpred.trainers.problem import Problem
from structpred.trainers.sdca import SDCA, RowAscent

C = data()[3]


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("lam", [0.05, 0.005])
def test_sign_constraints_hold_exactly_at_the_optimum_of_a_generic_solver(name: str, lam: float) -> None:
    """Both bounds are within 1e-6 of it, and the least c_j w_j is zero, not almost."""
    given = problem(LOSSES[name], lam)
    result = train(given, SDCA(), RunSettings(max_iter=6000, tol=1e-8, check_every=50))
    value = optimal_value(given, signed(C))
    assert result.certificate.primal == pytest.approx(value, abs=1e-6)
    assert result.certificate.dual == pytest.approx(value, abs=1e-6)
    held = C * result.weights
    assert held.min() == 0.0
    assert (held > 0.0).any()
    pull = C * result.report["dual_point"]
    np.testing.assert_allclose(result.weights, np.where(pull < 0.0, 0.0, result.report["dual_point"]), atol=1e-12)


@pytest.mark.parametrize("name", LOSSES)
def test_the_gap_of_every_sample_is_at_least_zero_after_every_pass(name: str) -> None:
    """phi(z) + phi*(-a) + z a, and their weighted sum is the gap that is reported; the dual never falls."""
    given, loss = problem(LOSSES[name], 0.01, n=30), LOSSES[name]
    trainer, ascent = SDCA(), RowAscent(given)
    state, before = trainer.init_state(given), -np.inf
    for seed in range(1, 30):
        ascent.ascend(state, np.uint64(seed), ascent.work())
        trainer.finish_pass(given, state)
        a, z, y = state.alpha * given.lam / given.p, given.task.margins(trainer.weights(given, state)), given.task.targets
        gaps = loss.value(z, y) + loss.conjugate(a, y) + z * a
        primal, dual = trainer.objective(given, state)
        assert gaps.min() >= -1e-12
        assert given.p @ gaps == pytest.approx(primal - dual, abs=1e-12)
        assert dual >= before - 1e-13
        before = dual


@pytest.mark.parametrize("name", LOSSES)
def test_the_exact_maximum_of_the_dual_along_a_variable_is_never_below_the_step(name: str) -> None:
    """The step maximises a lower bound: it never falls, and a search of the true dual along the line never finds less."""
    from scipy.optimize import minimize_scalar

    given, loss = problem(LOSSES[name], 0.02, n=20), LOSSES[name]
    task, n = given.task, len(given.task)
    a, rng, better = np.zeros(n), np.random.default_rng(0), 0

    def dual(i: int, new: float) -> float:
        moved = a.copy()
        moved[i] = new
        conjugates = loss.conjugate(moved, task.targets)
        return given.regulariser.bound(-float(given.p @ conjugates), given.lam, [task.combined(moved * given.p / given.lam)])

    table = loss._table(task.targets)
    for i in rng.integers(0, n, 25):
        z = task.margins(given.dual_map.weights(task.combined(a * given.p / given.lam)))
        q = task.squared_norms() * given.p / given.lam
        step = loss.dual_step(a, z, q, task.targets)[i]
        ends = max(table.low[i], a[i] - 20.0), min(table.high[i], a[i] + 20.0)
        exact = minimize_scalar(lambda new, i=i: -dual(i, new), bounds=ends, method="bounded", options={"xatol": 1e-12})
        best = max(-exact.fun, *(dual(i, end) for end in ends))  # a bounded search stops short of the ends
        assert dual(i, a[i]) - 1e-13 <= dual(i, step) <= best + 1e-10
        better += best > dual(i, step) + 1e-9
        a[i] = step
    assert better > 0


@pytest.mark.parametrize("regulariser", [L2(), SignConstraints(0)], ids=["none", "c = 0"])
def test_without_constraints_it_is_the_optimum_of_liblinear(regulariser: Regulariser) -> None:
    """The hinge by its table, by its margin, and LinearSVC: the same objective to 1e-6, with weights of samples."""
    from sklearn.svm import LinearSVC

    X, y, _, _ = data()
    weights = np.random.default_rng(1).random(80)
    task = LinearTask(X, y, sample_weight=weights)
    lam = 1.0 / weights.sum()
    peer = LinearSVC(loss="hinge", fit_intercept=False, tol=1e-10, max_iter=100_000).fit(X, y, sample_weight=weights)
    for surrogate in (Hinge(), MarginRescaling()):
        given = Problem(task, surrogate, lam, regulariser=regulariser)
        found = train(given, SDCA(), RunSettings(max_iter=3000, tol=1e-8)).certificate
        assert found.primal == pytest.approx(given.primal(peer.coef_[0]), abs=1e-6)


class Uneven(Regulariser):
    """sum_j w_j^2 / (2 s_j) + |w_1|, with a weight that is frozen."""

    strong_convexity = 0.5

    def dual_map(self) -> DualMap:
        """Two groups and one of scale zero."""
        return DualMap.of([1, 5, 6], [2.0, 0.5, 0.0], [-1.0, 0.0, 0.0], [1.0, 0.0, 0.0])


def test_any_regulariser_that_is_a_table_will_do() -> None:
    """An l1 term, and scales that differ between weights, against a generic solver; weights and a row of zeros."""
    X, y, _, _ = data(n=40)
    X[3] = 0.0
    task = RegressionTask(X, y, sample_weight=np.r_[0.0, np.linspace(0.1, 2.0, 39)])
    values = {
        L1(0.3): lambda cp, w: (0.5 * cp.sum_squares(w) + 0.3 * cp.norm1(w), []),
        Uneven(): lambda cp, w: (0.25 * w[0] ** 2 + cp.abs(w[0]) + cp.sum_squares(w[1:5]), [w[5] == 0]),
    }
    for regulariser, value in values.items():
        for loss in (Squared(), Absolute()):
            given = Problem(task, loss, 0.1, regulariser=regulariser)
            result = train(given, SDCA(), RunSettings(max_iter=4000, tol=1e-8))
            assert result.certificate.primal == pytest.approx(optimal_value(given, value), abs=1e-6)


def test_rounding_does_not_add_up() -> None:
    """After hundreds of passes the dual point's weights are those of its sum."""
    given = problem(Absolute(), 0.005)
    state, trainer = SDCA().init_state(given), SDCA()
    for seed in range(100):
        trainer.update(given, state, seed)
        trainer.finish_pass(given, state)
    assert state.counts[4] == 0
    assert state.w.tobytes() == given.task.combined(state.alpha).tobytes()


def test_a_resumed_run_with_signs_has_the_bits_of_the_whole_one(tmp_path: Path) -> None:
    """Seven passes and then thirteen more from the checkpoint, or twenty at once; negative dual variables are kept."""
    file = tmp_path / "run.ckpt"
    for given in (problem(SmoothedHinge(0.5), 0.02), problem(Absolute(), 0.02)):
        whole = train(given, SDCA(), RunSettings(max_iter=20, seed=3))
        train(given, SDCA(), RunSettings(max_iter=7, seed=3, checkpoint=file))
        resumed = train(given, SDCA(), RunSettings(max_iter=20, seed=3, checkpoint=file, resume=True))
        assert resumed.weights.tobytes() == whole.weights.tobytes()
        file.unlink()


def test_other_trainers_minimise_scalar_losses() -> None:
    """L-BFGS smooth ones and BCFW a piecewise linear one bracket the certified optimum of SDCA."""
    X, y, targets, _ = data(n=30)
    for task, loss, trainer in (
        (LinearTask(X, y), Logistic(), LBFGS()),
        (RegressionTask(X, targets), Squared(), LBFGS()),
        (LinearTask(X, y), Hinge(), BCFW()),
    ):
        given = Problem(task, loss, 0.1)
        best = train(given, SDCA(), RunSettings(max_iter=3000, tol=1e-8)).certificate
        other = train(given, trainer, RunSettings(max_iter=100, tol=1e-3)).certificate
        assert other.dual <= best.primal
        assert best.dual <= other.primal
        assert other.gap <= 1e-3 * other.primal


class NoTable(ScalarLoss):
    """The squared error without its dual."""

    gamma = 1.0

    def value(self, z, y):
        """By definition."""
        return 0.5 * (z - y) ** 2

    def derivative(self, z, y):
        """Of it."""
        return z - y


class WrongTable(Squared):
    """An interval without 0."""

    def dual_table(self, y):
        """Above 1."""
        return DualTable.of(len(y), y, low=1.0, high=2.0)


def test_what_does_not_fit_is_refused_before_any_work() -> None:
    """Losses without a table or with a wrong one, targets of the other kind, margins of numbers, changing regularisers."""
    X, y, targets, _ = data(n=10)
    numbers, signs = RegressionTask(X, targets), LinearTask(X, y)
    with pytest.raises(ParameterError, match="NoTable has no dual_table"):
        train(Problem(numbers, NoTable(), 0.1), SDCA())
    with pytest.raises(ParameterError, match="WrongTable: low, high: expected low <= 0 <= high"):
        train(Problem(numbers, WrongTable(), 0.1), SDCA())
    with pytest.raises(DataError, match=r"Hinge is for two classes, \+1 and -1; got .* for sample 0"):
        Problem(numbers, Hinge(), 0.1)
    with pytest.raises(MissingCapabilityError, match="needs argmax, but a regression task offers rows alone"):
        train(Problem(numbers, MarginRescaling(), 0.1), SDCA())
    with pytest.raises(ParameterError, match="cannot minimise MKL"):
        train(Problem(signs, Hinge(), 0.1, regulariser=MKL()), SDCA())
    with pytest.raises(ParameterError, match="cannot minimise Absolute"):
        train(Problem(numbers, Absolute(), 0.1), LBFGS())


class HalfValue(Squared):
    """Its value is half of what its table says."""

    def value(self, z, y):  # type: ignore[no-untyped-def]
        """A quarter of the square."""
        return 0.25 * (z - y) ** 2

    def derivative(self, z, y):  # type: ignore[no-untyped-def]
        """That of its value."""
        return 0.5 * (z - y)


class SteepSlope(Squared):
    """Its derivative is twice the right one."""

    def derivative(self, z, y):  # type: ignore[no-untyped-def]
        """Twice the slope."""
        return 2.0 * (z - y)


class Ramp(ScalarLoss):
    """A loss that is not convex."""

    def value(self, z, y):  # type: ignore[no-untyped-def]
        """At most one."""
        return np.minimum(np.abs(z - y), 1.0)

    def derivative(self, z, y):  # type: ignore[no-untyped-def]
        """The slope of the value."""
        return np.where(np.abs(z - y) < 1.0, np.sign(z - y), 0.0)


@pytest.mark.parametrize(
    ("loss", "words"),
    [
        (HalfValue(), "value gives .*, and dual_table .*: one of them is wrong"),
        (SteepSlope(), "its tangent at z = .* value or derivative is wrong"),
        (Ramp(), "or the loss is not convex"),
    ],
    ids=["value", "derivative", "not convex"],
)
def test_a_loss_that_contradicts_itself_is_refused_before_training(loss: ScalarLoss, words: str) -> None:
    """Its bounds would be no bounds."""
    X, _, targets, _ = data(n=10)
    with pytest.raises(LossError, match=words):
        Problem(RegressionTask(X, targets), loss, 0.1)


@pytest.mark.parametrize(
    ("y", "words"),
    [([1.0], r"shape \(2,\), got shape \(1,\)"), ([1.0, np.nan], "got nan for sample 1"), (["a", "b"], "expected numbers")],
)
def test_targets_that_are_no_numbers_are_refused(y, words: str) -> None:
    """The error says what was expected, and which sample."""
    with pytest.raises(DataError, match=words):
        RegressionTask([[1.0], [2.0]], y)
