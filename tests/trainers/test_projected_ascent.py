"""Projected ascent: the optimum of generic solvers, bounds at every pass, the same bits after resuming, and what it refuses."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from training_cases import assignment_task, log_problem, multiclass_task, optimum, problem

from structpred.errors import OracleError, ParameterError
from structpred.features.label_rows import LabelRows
from structpred.objectives.part_losses import LabelCosts
from structpred.oracles.multiclass import MulticlassOracle
from structpred.task.task import Task
from structpred.trainers.loop import RunSettings, train
from structpred.trainers.projected_ascent import ProjectedAscent


def rows_task(seed=0, n=15, n_labels=4, d=3, dtype=np.float64, **options):
    """One row per instance; the same problem as multiclass_task, whose rows hold a block a label."""
    rng = np.random.default_rng(seed)
    X, labels = rng.normal(size=(n, d)), [[y] for y in rng.integers(0, n_labels, n)]
    loss = LabelCosts(np.abs(np.subtract.outer(range(n_labels), range(n_labels))))
    features = LabelRows(X, n_labels, dtype=dtype)
    return Task(features, MulticlassOracle(), labels, features.shapes, loss, **options)


TASKS = {"rows": rows_task, "multiclass": multiclass_task, "assignment": assignment_task}


@pytest.mark.parametrize("name", TASKS)
def test_the_optimum_is_that_of_a_generic_solver(name) -> None:
    """With sample weights, both bounds meet at the value that a quadratic program over all outputs has, and so do the weights."""
    n = 8
    task, lam = TASKS[name](1, n=n, sample_weight=np.linspace(0.3, 2.0, n)), 0.2
    result = train(problem(task, lam), ProjectedAscent(), RunSettings(max_iter=400, tol=1e-8, check_every=20))
    value, w = optimum(task, lam)
    assert result.certificate.primal == pytest.approx(value, rel=1e-6)
    assert result.certificate.dual == pytest.approx(value, rel=1e-6)
    np.testing.assert_allclose(result.weights, w, atol=2e-3)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", TASKS)
def test_the_dual_rises_below_the_primal(name, dtype) -> None:
    """At every pass, on random problems: dual <= primal, and the dual never falls."""
    for seed in range(2):
        task = TASKS[name](seed, n=6)
        task.dtype = np.dtype(dtype)
        rows = train(problem(task, 0.05), ProjectedAscent(), RunSettings(max_iter=8, check_every=1, seed=seed)).history
        primal, dual = (np.array([row[key] for row in rows]) for key in ("primal", "dual"))
        slack = 1e-9 if dtype == np.float64 else 1e-5
        assert (dual <= primal + slack).all()
        assert (np.diff(dual) >= -slack).all()
        assert dual[-1] > 0


def test_a_step_solves_a_block_of_label_rows() -> None:
    """With one instance the first pass is the last: the projection is the optimum over all labels at once."""
    rng = np.random.default_rng(0)
    features = LabelRows(rng.normal(size=(1, 3)), 5, dtype=np.float64)
    task = Task(features, MulticlassOracle(), [[2]], features.shapes, LabelCosts(1.0 - np.eye(5)))
    result = train(problem(task, 0.1), ProjectedAscent(), RunSettings(max_iter=1))
    assert result.certificate.gap == pytest.approx(0.0, abs=1e-9)
    assert result.certificate.primal == pytest.approx(optimum(task, 0.1)[0], rel=1e-6)


def test_a_resumed_run_gives_the_same_bits(tmp_path: Path) -> None:
    """Three passes, and three more from the checkpoint, are six passes."""
    made, file = problem(rows_task()), tmp_path / "run.ckpt"
    whole = train(made, ProjectedAscent(), RunSettings(max_iter=6))
    train(made, ProjectedAscent(), RunSettings(max_iter=3, checkpoint=file))
    resumed = train(made, ProjectedAscent(), RunSettings(max_iter=6, checkpoint=file, resume=True))
    assert resumed.weights.tobytes() == whole.weights.tobytes()
    assert resumed.certificate == whole.certificate


def test_it_refuses_what_it_cannot_minimise() -> None:
    """Another surrogate than the margin is named before any work."""
    with pytest.raises(ParameterError, match="ProjectedAscent cannot minimise LogLoss"):
        train(log_problem(rows_task()), ProjectedAscent())


class Failing(MulticlassOracle):
    """Cannot project."""

    def project(self, point, shape):
        raise ZeroDivisionError("by hand")


def test_what_a_projection_raises_names_the_sample() -> None:
    """An exception of the oracle's own `project` says at which sample."""
    task = rows_task(n=1)
    task.oracle = Failing()
    with pytest.raises(OracleError, match=r"sample 0: Failing.project raised ZeroDivisionError: by hand"):
        train(problem(task), ProjectedAscent())


def test_instances_without_features_do_no_harm() -> None:
    """An empty row costs its loss at any weights; the others are learnt all the same."""
    X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    features = LabelRows(X, 2, dtype=np.float64)
    task = Task(features, MulticlassOracle(), [[0], [0], [1]], features.shapes, LabelCosts(1.0 - np.eye(2)))
    result = train(replace(problem(task, 0.01)), ProjectedAscent(), RunSettings(max_iter=20, tol=1e-6, check_every=1))
    assert result.certificate.primal == pytest.approx(optimum(task, 0.01)[0], rel=1e-5)


class Outside(MulticlassOracle):
    """Its projections lie beyond the hull."""

    def project(self, point, shape):
        return 1.3 * super().project(point, shape)


def test_a_projection_outside_the_hull_is_named() -> None:
    """No output lies as far in the direction from the projection to the point: that is said with the sample."""
    tasks = []
    for oracle in (Outside(), type("Inside", (MulticlassOracle,), {})()):
        task = rows_task()
        tasks.append(Task(task.features, oracle, task.labels, task.shapes, task.loss))
    with pytest.raises(OracleError, match=r"sample \d: Outside.project gave a point outside the hull"):
        train(problem(tasks[0], 0.1), ProjectedAscent(), RunSettings(max_iter=3))
    assert train(problem(tasks[1], 0.1), ProjectedAscent(), RunSettings(max_iter=30)).certificate.relative_gap < 0.01
