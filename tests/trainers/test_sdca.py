"""Dual coordinate ascent: the optimum of a generic solver, bounds at every pass, the same bits after resuming, and refusals."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from training_cases import chain_task, multiclass_task, optimum, problem

from structpred.errors import MissingCapabilityError, ParameterError
from structpred.features.label_rows import LabelRows
from structpred.objectives.log_loss import LogLoss
from structpred.objectives.part_losses import ExtraParts, Hamming, LabelCosts
from structpred.oracles.multiclass import MulticlassOracle
from structpred.rows.linear_task import LinearTask
from structpred.task.task import Task
from structpred.trainers.bcfw import BCFW
from structpred.trainers.loop import RunSettings, train
from structpred.trainers.pegasos import Pegasos
from structpred.trainers.pragam import Pragam
from structpred.trainers.projected_ascent import ProjectedAscent
from structpred.trainers.sdca import SDCA
from structpred.trainers.sgd import SGD

N, D = 12, 4
WEIGHTS = np.r_[0.0, np.linspace(0.3, 2.0, N - 1)]
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, D)) * (RNG.random((N, D)) < 0.7)
X[3] = 0.0


def rows(**options: Any) -> LinearTask:
    """Two classes; one row of zeros, one of weight zero."""
    signs = np.where(np.random.default_rng(1).random(N) < 0.5, 1, -1)
    return LinearTask(X, signs, **{"sample_weight": WEIGHTS, "intercept": 1.0, **options})


def labels(loss: Any = None) -> Task:
    """Five classes, the same rows."""
    features, y = LabelRows(X, 5, dtype=np.float64), np.random.default_rng(2).integers(0, 5, (N, 1))
    return Task(features, MulticlassOracle(), list(y), features.shapes, loss or Hamming(), sample_weight=WEIGHTS)


UNEVEN = LabelCosts(np.abs(np.subtract.outer(range(5), range(5))))
TASKS = {"rows": rows, "labels": labels, "uneven costs": lambda: labels(UNEVEN)}


def hinge_optimum(task: LinearTask, lam: float) -> float:
    """The optimal value as a convex program."""
    import cvxpy as cp

    dense = np.array([task.combined(row) for row in np.eye(len(task))])
    w, p = cp.Variable(task.dim), task.sample_weight / task.sample_weight.sum()
    found = cp.Problem(cp.Minimize(lam / 2 * cp.sum_squares(w) + p @ cp.pos(1 - dense @ w)))
    found.solve(solver=cp.CLARABEL, tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12)
    return float(found.value)


@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize("lam", [0.3, 0.01])
def test_both_bounds_meet_at_the_optimum_of_a_generic_solver(name: str, lam: float) -> None:
    """To 1e-8, with weights, a row of zeros, and costs that differ between wrong classes."""
    task = TASKS[name]()
    result = train(problem(task, lam), SDCA(), RunSettings(max_iter=3000, tol=1e-9, check_every=10))
    value = hinge_optimum(task, lam) if name == "rows" else optimum(task, lam)[0]
    assert result.stop_reason == "tol"
    assert result.certificate.primal == pytest.approx(value, rel=1e-8)
    assert result.certificate.dual == pytest.approx(value, rel=1e-8)


@pytest.mark.parametrize("name", TASKS)
def test_the_dual_rises_below_the_primal(name: str) -> None:
    """At every pass the gap is not negative and the dual does not fall, whichever rows the pass left out."""
    for seed in range(3):
        found = train(problem(TASKS[name](), 0.02), SDCA(), RunSettings(max_iter=40, check_every=1, seed=seed)).history
        primal, dual = (np.array([row[key] for row in found]) for key in ("primal", "dual"))
        assert (dual <= primal + 1e-14).all()
        assert (np.diff(dual) >= -1e-14).all()
        assert dual[-1] > dual[0] > 0.0


def test_a_single_pass_solves_rows_that_share_nothing() -> None:
    """alpha_i = min(p_i / lam, 1 / |x_i|^2) where rows are orthogonal: both kinds of steps are exact."""
    task = LinearTask(np.diag([1.0, 2.0, 4.0]), [1, -1, 1])
    result = train(problem(task, 2.0), SDCA(), RunSettings(max_iter=1))
    assert result.weights == pytest.approx([1 / 6, -1 / 3, 1 / 4], abs=1e-15)
    assert result.certificate.gap == pytest.approx(0.0, abs=1e-15)


@pytest.mark.parametrize("seed", [0, 2, 3])
def test_rows_that_have_settled_save_passes(seed: int) -> None:
    """300 rows, most of them at a bound, take 73 to 106 passes to a gap of 1e-6, each worth one visit of all rows.

    It is a thousand and more where rows at a bound are kept among the active ones, or all rows are visited in each pass; and
    there is no end where all are visited only because passes have run out.
    """
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(300, 10))
    y = np.where(X @ rng.normal(size=10) + 0.5 * rng.normal(size=300) > 0, 1, -1)
    found = train(problem(LinearTask(X, y), 1e-3), SDCA(), RunSettings(max_iter=300, tol=1e-6, seed=seed))
    assert found.stop_reason == "tol"


def test_two_labels_are_the_binary_hinge() -> None:
    """W = (-w, w) / 2 has half the squared norm: two labels at lam are two classes at lam / 2, to the optimal value."""
    signs = np.where(np.random.default_rng(1).random(N) < 0.5, 1, -1)
    features, y = LabelRows(X, 2, dtype=np.float64), [[int(s > 0)] for s in signs]
    many = Task(features, MulticlassOracle(), y, features.shapes, Hamming())
    settings = RunSettings(max_iter=500, tol=1e-10)
    one = train(problem(rows(sample_weight=None, intercept=0.0), 0.05), SDCA(), settings)
    two = train(problem(many, 0.1), SDCA(), settings)
    assert two.certificate.primal == pytest.approx(one.certificate.primal, rel=1e-9)


@pytest.mark.parametrize("name", ["rows", "labels"])
def test_a_resumed_run_has_the_bits_of_the_whole_one(name: str, tmp_path: Path) -> None:
    """Seven passes and then thirteen more from the checkpoint, or twenty at once."""
    task, file = TASKS[name](), tmp_path / "run.ckpt"
    whole = train(problem(task, 0.02), SDCA(), RunSettings(max_iter=20, seed=3))
    train(problem(task, 0.02), SDCA(), RunSettings(max_iter=7, seed=3, checkpoint=file))
    resumed = train(problem(task, 0.02), SDCA(), RunSettings(max_iter=20, seed=3, checkpoint=file, resume=True))
    assert resumed.weights.tobytes() == whole.weights.tobytes()
    assert resumed.certificate == whole.certificate


@pytest.mark.parametrize("name", ["rows", "labels"])
def test_calls_may_be_cut_anywhere(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a pass takes many compiled calls, each goes on where the last one stopped: the same optimum."""
    monkeypatch.setattr("structpred.trainers.sdca.CALL", 25)
    result = train(problem(TASKS[name](), 0.05), SDCA(), RunSettings(max_iter=2000, tol=1e-9))
    assert result.stop_reason == "tol"


@pytest.mark.parametrize("name", ["rows", "labels"])
def test_bent_places_are_refused(name: str) -> None:
    """Rows or labels that are no permutation, and places beyond the last row, never reach compiled code."""
    state = SDCA().init_state(problem(TASKS[name](), 0.1))
    assert state.fault(0) is None
    for field, at, value in (("active", 0, 1), ("counts", 1, N + 1), ("counts", 2, 3)):
        bent = state._replace(**{field: getattr(state, field).copy()})
        getattr(bent, field)[at] = value
        assert f"{field}:" in bent.fault(0)
    if name == "labels":
        state.labels[1, 0] = 1
        assert "labels:" in state.fault(0)


def test_what_it_cannot_do_is_refused_before_any_work() -> None:
    """Structures are refused by the name of what they lack, costs without one table and token weights in words."""
    with pytest.raises(MissingCapabilityError, match=r"SDCA is for rows with two .* or rows with one label .* alone"):
        train(problem(chain_task(0, n=3), 0.1), SDCA())
    with pytest.raises(ParameterError, match="one table of label costs"):
        train(problem(labels(ExtraParts()), 0.1), SDCA())
    with pytest.raises(MissingCapabilityError):
        train(problem(multiclass_task(n=3), 0.1), SDCA())
    with pytest.raises(ParameterError, match="lam must be positive"):
        problem(rows(), 0.0)
    assert not SDCA.minimises(LogLoss())


def test_it_agrees_with_projected_ascent() -> None:
    """The same dual by plain steps has the same optimum and the same weights."""
    settings = RunSettings(max_iter=1000, tol=1e-10)
    one, other = (train(problem(labels(UNEVEN), 0.1), kind(), settings) for kind in (SDCA, ProjectedAscent))
    assert one.certificate.primal == pytest.approx(other.certificate.primal, rel=1e-8)
    np.testing.assert_allclose(one.weights, other.weights, atol=1e-4)


class OwnRows:
    """A task of a user's own, no child of ours: it says that it has rows."""

    capabilities = frozenset({"argmax", "rows", "signed_rows"})

    def __init__(self) -> None:
        self._task = rows()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(vars(self)["_task"], name)

    def __len__(self) -> int:
        return len(self._task)


@pytest.mark.parametrize("trainer", [SDCA(), Pegasos(), Pragam(), SGD(), BCFW()], ids=lambda one: one.name)
def test_tasks_from_outside_say_what_they_offer(trainer: Any) -> None:
    """The weights are those of the task itself."""
    own, ours = (train(problem(task), trainer, RunSettings(max_iter=3)) for task in (OwnRows(), rows()))
    np.testing.assert_array_equal(own.weights, ours.weights)
