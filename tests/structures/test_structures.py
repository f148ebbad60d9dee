"""Nine structures that the library does not know, written as a user would: each trains, is scored, tuned, saved, resumed."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from all_outputs import of_callbacks
from grid_paths import GridPaths
from sklearn.model_selection import GridSearchCV
from structure_cases import MAKERS, Case, N, case, optimum, outputs
from three_classes import N_CLASSES, classes_task, loss, phi

import structpred
from structpred.models import StructuredPredictor
from structpred.models.settings import resolve_surrogate, resolve_trainer
from structpred.trainers.loop import RunSettings, train
from structpred.trainers.problem import Problem

pytest.importorskip("cvxpy")
pytest.importorskip("ortools")

MARGIN_TRAINERS = ("perceptron", "pa", "arow", "mira", "sgd", "bcfw", "n_slack", "one_slack")
LOG_TRAINERS = ("oeg", "lbfgs", "owlqn")
WITHOUT_PRIMAL = ("perceptron", "pa", "arow")
C = 0.5
LAM = 1.0 / (C * N)


def estimator(made: Case, trainer: str, kind: str, **settings: Any) -> StructuredPredictor:
    """As a user would: the names of trainer and surrogate."""
    options: dict[str, Any] = {"C": C, "max_iter": 8, "random_state": 0, "tol": 0.0, **settings}
    return StructuredPredictor(made.oracle, loss=made.loss, trainer=trainer, surrogate=kind, **options)


def check_bounds(name: str, model: Any, kind: str, trainer: str) -> None:
    """dual <= optimum <= primal as certified, which is the primal at the weights; or there is no certificate."""
    certificate = model.certificate_
    if trainer in WITHOUT_PRIMAL:
        assert certificate.primal is None
        return
    best, true = optimum(name, kind, LAM), outputs(name).primal(kind, model.coef_, LAM)
    assert certificate.proven
    if trainer == "owlqn":  # its objective has an l1 term besides
        assert certificate.primal >= true * (1 - 1e-6)
        return
    assert certificate.primal == pytest.approx(true, rel=1e-6, abs=1e-9)
    assert certificate.primal >= best * (1 - 1e-6)
    assert trainer == "mira" or certificate.dual <= best * (1 + 1e-6) + 1e-9


@pytest.mark.parametrize("name", [name for name in MAKERS if name not in ("skip chain", "tree")])
def test_oracles_keep_the_contract(name: str) -> None:
    """check_oracle finds nothing wrong with the six written here, and has compared argmax with all outputs."""
    oracle = case(name).oracle
    shapes = [(5, 2, 3, 4), (0, 1, 1)] if name == "knapsack" else None  # a call of CP-SAT takes milliseconds
    report = structpred.check_oracle(oracle, shapes=shapes, n_random=3 if name == "knapsack" else 5)
    assert report.checked["wrong argmax"] > 0


@pytest.mark.parametrize("name", MAKERS)
def test_losses_keep_the_contract(name: str) -> None:
    """check_loss finds nothing wrong, and has compared the loss of true outputs with that of all others."""
    report = structpred.check_loss(case(name).loss, case(name).oracle)
    assert report.checked["no output costs less than 0"] > 10


@pytest.mark.mostly_slow
@pytest.mark.parametrize(("name", "margin", "slack"), [
    (name, MARGIN_TRAINERS[k % 8], MARGIN_TRAINERS[(k + 4) % 8]) for k, name in enumerate(MAKERS)
])  # fmt: skip
def test_bounds_bracket_the_optimum(name: str, margin: str, slack: str) -> None:
    """One trainer by margins and another by slack on each structure; the slow test has all of them."""
    made = case(name)
    for kind, trainer in (("margin", margin), ("slack", slack)):
        model = estimator(made, trainer, kind).fit(made.X, made.y)
        assert np.abs(model.coef_).max() > 0
        check_bounds(name, model, kind, trainer)


@pytest.mark.parametrize(("name", "trainer"), [("cky", "oeg"), ("edits", "lbfgs"), ("skip chain", "owlqn"), ("tree", "oeg")])
def test_log_loss_is_certified(name: str, trainer: str) -> None:
    """Structures with marginals train as conditional random fields, and their bounds hold."""
    made = case(name)
    check_bounds(name, estimator(made, trainer, "log").fit(made.X, made.y), "log", trainer)


@pytest.mark.parametrize("name", MAKERS)
def test_the_gap_closes_by_margin_and_by_slack(name: str) -> None:
    """One-slack cutting planes reach the optimum to 1e-3 for both: no search over a small shape leaves anything open."""
    made = case(name)
    for kind in ("margin", "slack"):
        model = estimator(made, "one_slack", kind, max_iter=80, tol=1e-3, check_every=2).fit(made.X, made.y)
        assert (model.stop_reason_, model.converged_) == ("tol", True)
        assert outputs(name).primal(kind, model.coef_, LAM) == pytest.approx(optimum(name, kind, LAM), rel=2e-3)
        check_bounds(name, model, kind, "one_slack")


def test_lists_of_the_best_close_the_gap_too() -> None:
    """Grid paths without `enumerate`: with kbest training reaches the optimum, else it ends at the bound of its searches."""
    made = case("grid")

    class Listless(GridPaths):
        enumerate = None  # type: ignore[assignment]

    class Plain(Listless):
        kbest = None  # type: ignore[assignment]

        def argmax(self, scores: Any, shape: Any) -> Any:
            return GridPaths().argmax(scores, shape)

    settings = {"max_iter": 40, "tol": 1e-3, "check_every": 2}
    found = [
        estimator(made._replace(oracle=one()), "one_slack", "slack", **settings).fit(made.X, made.y) for one in (Listless, Plain)
    ]
    assert [model.stop_reason_ for model in found] == ["tol", "search_bound"]
    assert found[0].certificate_.primal == pytest.approx(optimum("grid", "slack", LAM), rel=2e-3)
    assert found[1].certificate_.primal > found[0].certificate_.primal
    assert found[1].certificate_.dual <= optimum("grid", "slack", LAM) * (1 + 1e-6)


@pytest.mark.mostly_slow
@pytest.mark.parametrize(("name", "trainer", "kind"), [
    (name, MARGIN_TRAINERS[(3 * k + 5) % 8], ("margin", "slack")[k % 2]) for k, name in enumerate(MAKERS)
])  # fmt: skip
@pytest.mark.filterwarnings("ignore::structpred.errors.NoUpdateWarning")
def test_the_life_of_a_model(name: str, trainer: str, kind: str, tmp_path: Path) -> None:
    """fit with held-out data, score, GridSearchCV, save, load, and a run cut in two: all from X and y alone."""
    assert live(case(name), trainer, kind, tmp_path) > 0.5


def live(made: Case, trainer: str, kind: str, tmp_path: Path) -> float:
    """Everything that is done with a model; returns its score on the training data."""
    model = estimator(made, trainer, kind, max_iter=4).fit(made.X, made.y, dev=(made.X[:3], made.y[:3]))
    assert model.history_[-1]["dev_score"] is not None
    search = GridSearchCV(estimator(made, trainer, kind, max_iter=2), {"C": [0.01, C]}, cv=2, error_score="raise")
    assert np.isfinite(search.fit(made.X, made.y).cv_results_["mean_test_score"]).all()
    model.save(tmp_path / "model.spz")
    loaded = StructuredPredictor.load(tmp_path / "model.spz", made.oracle)
    assert [p.tolist() for p in loaded.predict(made.X)] == [p.tolist() for p in model.predict(made.X)]
    whole = estimator(made, trainer, kind, max_iter=4).fit(made.X, made.y)
    file = tmp_path / "run.ckpt"
    estimator(made, trainer, kind, max_iter=2, checkpoint=file).fit(made.X, made.y)
    resumed = estimator(made, trainer, kind, max_iter=4, checkpoint=file, resume=True).fit(made.X, made.y)
    assert resumed.coef_.tobytes() == whole.coef_.tobytes()
    return float(model.score(made.X, made.y))


@pytest.mark.mostly_slow
@pytest.mark.parametrize("trainer", MARGIN_TRAINERS)
def test_three_classes_by_callbacks(trainer: str, tmp_path: Path) -> None:
    """A loss that is no sum over parts, by every trainer, margin and slack: bounds hold, held-out scores, a run cut in two."""
    task = classes_task()
    every = of_callbacks(phi, loss, task.inputs, task.outputs, N_CLASSES)
    for kind in ("margin", "slack"):
        problem = Problem(task, resolve_surrogate(kind), LAM)
        result = train(
            problem, resolve_trainer(trainer)[0], RunSettings(max_iter=6, dev=lambda w: -every.primal("margin", w, LAM))
        )
        assert result.history[-1]["dev_score"] is not None
        if trainer not in WITHOUT_PRIMAL:
            best = every.optimum(kind, LAM)
            assert result.certificate.proven
            assert result.certificate.primal >= every.primal(kind, result.weights, LAM) * (1 - 1e-9)
            assert trainer == "mira" or result.certificate.dual <= best * (1 + 1e-6)
        whole = train(problem, resolve_trainer(trainer)[0], RunSettings(max_iter=6))
        file = tmp_path / f"{kind}.ckpt"
        train(problem, resolve_trainer(trainer)[0], RunSettings(max_iter=3, checkpoint=file))
        resumed = train(problem, resolve_trainer(trainer)[0], RunSettings(max_iter=6, checkpoint=file, resume=True))
        assert resumed.weights.tobytes() == whole.weights.tobytes()


def test_callbacks_end_at_the_bound_of_their_searches() -> None:
    """Three callbacks have plain queries alone: the certified primal stays above the true one, which `stop_reason` says."""
    task = classes_task()
    every = of_callbacks(phi, loss, task.inputs, task.outputs, N_CLASSES)
    settings = RunSettings(max_iter=30, tol=1e-3, check_every=5)
    result = train(Problem(task, resolve_surrogate("slack"), LAM), resolve_trainer("one_slack")[0], settings)
    assert result.stop_reason == "search_bound"
    assert result.certificate.primal > 1.05 * every.primal("slack", result.weights, LAM)
    assert result.certificate.dual <= every.optimum("slack", LAM) * (1 + 1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.filterwarnings("ignore::structpred.errors.NoUpdateWarning")
def test_every_trainer_on_every_structure(name: str, tmp_path: Path) -> None:
    """Eight trainers by margins and by slack, three by the log loss where there are marginals: bounds hold, and all of a life."""
    made = case(name)
    kinds = {"margin": MARGIN_TRAINERS, "slack": MARGIN_TRAINERS, "log": LOG_TRAINERS if made.has_marginals else ()}
    for kind, trainers in kinds.items():
        for trainer in trainers:
            model = estimator(made, trainer, kind, max_iter=10).fit(made.X, made.y)
            assert np.isfinite(model.coef_).all()
            check_bounds(name, model, kind, trainer)
            assert 0.0 <= live(made, trainer, kind, tmp_path) <= 1.0
