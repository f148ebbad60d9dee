"""The excessive gap method: the optimum of generic solvers, invariant and rate at every step, the same bits after resuming."""

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from regulariser_cases import Groups, Mixed, NonNegative
from training_cases import assignment_task, chain_task, log_problem, multiclass_task, optimum, problem

from structpred.errors import MissingCapabilityError, ParameterError
from structpred.features.fixed_scores import FixedScores
from structpred.features.sequences import SequenceFeatures
from structpred.objectives.margin import MarginRescaling
from structpred.objectives.part_losses import Hamming
from structpred.objectives.regularisers.l1 import L1
from structpred.objectives.regularisers.l2 import FreeIntercept
from structpred.oracles.chain import ChainOracle
from structpred.rows.linear_task import LinearTask
from structpred.task.task import Task
from structpred.trainers.bcfw import BCFW
from structpred.trainers.loop import RunSettings, train
from structpred.trainers.one_slack import OneSlackCuttingPlane
from structpred.trainers.pragam import Pragam
from structpred.trainers.pragam_b import PragamB
from structpred.trainers.problem import Problem

LAM = 0.05
RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 5))
Y = np.where(X @ RNG.normal(size=5) + 0.7 + RNG.normal(size=60) > 0, 1, -1)
WEIGHTS = RNG.uniform(0.2, 2.0, 60)
KINDS: dict[str, Any] = {"pragam": Pragam, "pragam_b": PragamB}


def binary(name: str, weights: Any = WEIGHTS, rows: Any = X, signs: Any = Y, intercept: float = 2.0) -> Problem:
    """The problem of a support vector machine, for pragam_b with a free intercept."""
    if name == "pragam":
        return Problem(LinearTask(rows, signs, sample_weight=weights), MarginRescaling(), LAM)
    task = LinearTask(rows, signs, sample_weight=weights, intercept=intercept)
    return Problem(task, MarginRescaling(), LAM, regulariser=FreeIntercept())


@cache
def binary_optimum(name: str) -> tuple[float, Any]:
    """That of a generic solver: the value and the decision values."""
    import cvxpy as cp

    w, b, p = cp.Variable(5), cp.Variable(), WEIGHTS / WEIGHTS.sum()
    scores = X @ w + b if name == "pragam_b" else X @ w
    goal = cp.Problem(cp.Minimize(LAM / 2 * cp.sum_squares(w) + p @ cp.pos(1 - cp.multiply(Y, scores))))
    goal.solve(solver=cp.CLARABEL, **{f"tol_{kind}": 1e-12 for kind in ("gap_abs", "gap_rel", "feas")})
    return float(goal.value), scores.value


STRUCTURED = {"chain": chain_task, "multiclass": multiclass_task, "assignment": assignment_task}


def steps(made: Problem, trainer: Pragam, n: int) -> Any:
    """The states after 0, 1, ... steps."""
    state = trainer.init_state(made)
    for _ in range(n):
        yield state
        state = trainer.update(made, state, 0)[0]


def excess(made: Problem, trainer: Pragam, state: Any) -> float:
    """How far D at the dual point of a state is above J_mu at its weights."""
    dual = trainer.dual_set(made)
    smoothed = made.lam * made.regulariser.value(state.w) + dual.pairing(dual.slopes(state.w), state.answer)
    smoothed -= 0.5 * float(state.mu) * dual.square(state.answer - state.centre)
    value = made.regulariser.bound(dual.loss(state.point), made.lam, [dual.weights(state.point)])
    assert value <= float(state.bound) + 1e-12
    return value - smoothed


@pytest.mark.parametrize("adaptive", [True, False])
@pytest.mark.parametrize("name", KINDS)
def test_the_optimum_is_that_of_a_generic_solver(name, adaptive) -> None:
    """With sample weights, with and without a free intercept; bounds enclose it at every step and meet there."""
    best, scores = binary_optimum(name)
    result = train(binary(name), KINDS[name](adaptive=adaptive), RunSettings(max_iter=600, check_every=1))
    primal, dual = (np.array([row[key] for row in result.history]) for key in ("primal", "dual"))
    assert (np.diff(dual) >= 0.0).all()
    assert dual.max() <= best + 1e-10 <= primal.min() + 1e-9
    assert result.certificate.gap <= 1e-5
    w = result.weights
    np.testing.assert_allclose(X @ w[:5] + (2.0 * w[5] if name == "pragam_b" else 0.0), scores, atol=2e-2)


@pytest.mark.parametrize("name", KINDS)
def test_the_excessive_gap_and_its_rate(name) -> None:
    """J_mu(w) <= D(m) at every step, mu (k + 1)(k + 2) = 4 L with the norm of the rows for L, and the gap is at most mu / 2."""
    made = binary(name)
    rows = X * np.sqrt(made.p)[:, None]
    norm = np.linalg.norm(rows, 2) ** 2 / LAM
    for k, state in enumerate(steps(made, KINDS[name](adaptive=False, recentre=0.0), 60)):
        assert float(state.curvature) == pytest.approx(norm, rel=1e-2)
        assert float(state.mu) * (k + 1) * (k + 2) == pytest.approx(4.0 * float(state.curvature), rel=1e-12)
        assert excess(made, KINDS[name](), state) >= -1e-12
        assert 0.0 <= state.gap <= 0.5 * float(state.mu) + 1e-12


@pytest.mark.parametrize("task", STRUCTURED)
def test_adapting_keeps_the_excessive_gap(task) -> None:
    """On structured tasks, with estimates of the curvature that go down and up."""
    made, trainer, curvatures = problem(STRUCTURED[task](0, n=4)), Pragam(), []
    for state in steps(made, trainer, 25):
        assert excess(made, trainer, state) >= -1e-9
        curvatures.append(float(state.curvature))
    change = np.diff(curvatures)
    assert change.min() < 0.0 < change.max()


@pytest.mark.parametrize("regulariser", [Groups(), NonNegative(), Mixed(), L1(0.2)], ids=lambda r: type(r).__name__)
def test_the_excessive_gap_is_kept_under_any_dual_map(regulariser) -> None:
    """J_mu(w) <= D(m) at every step, with and without adapting, where w is scaled, clipped or thresholded."""
    task = multiclass_task(1, n=10, n_labels=3, d=2)
    made = Problem(task, MarginRescaling(), 0.1, regulariser=regulariser)
    for trainer in (Pragam(), Pragam(adaptive=False, recentre=0.0)):
        for state in steps(made, trainer, 40):
            assert excess(made, trainer, state) >= -1e-12
            assert trainer.recentre or state.gap <= float(state.mu) * len(task.labels[0]) + 1e-12


@pytest.mark.parametrize("name", ["pragam_b", "chain"])
def test_a_new_centre_keeps_it_and_saves_steps(name) -> None:
    """Where the centre moves to the present point, J_mu(w) <= D(m) goes on, and a small gap takes fewer steps."""
    made = binary(name) if name in KINDS else problem(chain_task(3, n=3, longest=3), 0.2)
    needed = []
    for recentre in (0.0, 0.1):
        trainer = KINDS.get(name, Pragam)(recentre=recentre)
        for k, state in enumerate(steps(made, trainer, 400)):
            assert excess(made, trainer, state) >= -1e-9
            if state.gap <= 1e-4:
                needed.append(k)
                break
    assert needed[1] < needed[0], needed


def test_an_underestimated_curvature_is_seen(monkeypatch) -> None:
    """Power iteration that finds a thousandth of the norm costs steps, but no bound is wrong."""
    monkeypatch.setattr("structpred.trainers.pragam.largest_eigenvalue", lambda *args, **options: 1e-3)
    made, best = binary("pragam"), binary_optimum("pragam")[0]
    for state in steps(made, Pragam(adaptive=False), 40):
        assert excess(made, Pragam(), state) >= -1e-12
        assert float(state.bound) <= best + 1e-11
    assert float(state.curvature) > 0.1


@pytest.mark.parametrize("task", STRUCTURED)
def test_structured_tasks_reach_the_optimum(task) -> None:
    """Chains over clique marginals, the others over part counts, with sample weights."""
    n = 4
    options = {"longest": 4, "weighted": True} if task == "chain" else {"sample_weight": np.linspace(0.3, 2.0, n)}
    made = problem(STRUCTURED[task](1, n=n, **options), 0.2)
    best = optimum(made.task, 0.2)[0]
    result = train(made, Pragam(), RunSettings(max_iter=300, tol=1e-3, check_every=5))
    assert result.certificate.dual <= best + 1e-7 <= result.certificate.primal + 2e-7
    assert result.certificate.gap <= 1e-3 * best


def test_forbidden_parts_stay_forbidden() -> None:
    """Where label 1 may not follow itself, bounds meet at the optimum over the outputs that are left."""
    base, fixed = chain_task(2, n=3, longest=3), np.zeros((3, 3))
    fixed[1, 1] = -1e30
    scores = FixedScores(np.zeros((1, 3)), np.zeros(base.features.data.n_tokens, np.int64), fixed)
    labels = [np.where(np.arange(len(y)) % 2 == 0, 0, y) for y in base.labels]
    task = Task(
        SequenceFeatures(base.features.data, 3, dtype=np.float64, fixed=scores), ChainOracle(), labels, base.shapes, Hamming()
    )
    made = problem(task, 0.2)
    other = train(made, OneSlackCuttingPlane(), RunSettings(max_iter=300, tol=1e-4)).certificate
    found = train(made, Pragam(), RunSettings(max_iter=400, tol=1e-4)).certificate
    assert found.gap <= 1e-4 * found.primal
    assert found.dual <= other.primal + 1e-9
    assert other.dual <= found.primal + 1e-9


@pytest.mark.parametrize("name", ["pragam_b", "chain"])
def test_a_resumed_run_gives_the_same_bits(name, tmp_path: Path) -> None:
    """Four steps, and four more from the checkpoint, are eight steps: what starts the projections is in the state."""
    made, file = binary(name) if name in KINDS else problem(chain_task(n=4)), tmp_path / "run.ckpt"
    kind = KINDS.get(name, Pragam)
    whole = train(made, kind(), RunSettings(max_iter=8))
    train(made, kind(), RunSettings(max_iter=4, checkpoint=file))
    resumed = train(made, kind(), RunSettings(max_iter=8, checkpoint=file, resume=True))
    assert resumed.weights.tobytes() == whole.weights.tobytes()
    assert resumed.certificate == whole.certificate


def test_what_it_cannot_minimise_is_named() -> None:
    """The log loss, a task without an intercept, one sign alone; others refuse a free intercept."""
    with pytest.raises(MissingCapabilityError, match=r"PragamB is for rows with two classes .* alone, not for"):
        train(Problem(chain_task(), MarginRescaling(), LAM, regulariser=FreeIntercept()), PragamB())
    with pytest.raises(ParameterError, match="Pragam cannot minimise LogLoss"):
        train(log_problem(chain_task()), Pragam())
    with pytest.raises(MissingCapabilityError, match=r"PragamB needs free.*Regularisers that have it: FreeIntercept"):
        train(binary("pragam"), PragamB())
    for trainer in (Pragam(), BCFW()):
        with pytest.raises(MissingCapabilityError, match=r"Trainers for FreeIntercept: .*pragam_b"):
            train(binary("pragam_b"), trainer)
    with pytest.raises(ParameterError, match="recentre must be at least 0 and below 1, got 1"):
        Pragam(recentre=1.0)
    with pytest.raises(ParameterError, match="needs a task with a constant feature"):
        train(binary("pragam_b", intercept=0.0), PragamB())
    for weights in (None, (Y > 0).astype(float)):
        with pytest.raises(ParameterError, match="samples of both signs"):
            train(binary("pragam_b", weights, signs=np.ones(60) if weights is None else Y), PragamB())


def test_the_free_intercept_keeps_the_contract_of_regularisers() -> None:
    """Value, proximal step and bound agree."""
    import structpred

    assert structpred.check_regulariser(FreeIntercept()).checked["bound is tight"] > 50
    assert FreeIntercept().grouped(np.array([0, 2, 3]), ["features", "intercept"]).bound(1.0, 0.1, [np.ones(3)]) == -np.inf
