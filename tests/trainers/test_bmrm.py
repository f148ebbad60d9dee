"""Bundle methods: their bounds hold, their optimum is that of the convex program, and they meet their worst case exactly."""

import numpy as np
import pytest
from regulariser_cases import Adapting, Groups, Mixed, NonNegative
from scipy.optimize import minimize_scalar
from test_regularised import as_program
from training_cases import BULK, TASKS, TRAINERS, chain_task, log_optimum, log_problem, multiclass_task, optimum, problem

from structpred.core.regulariser import DualMap
from structpred.errors import MissingCapabilityError, ParameterError
from structpred.experiments.bmrm_lower_bound import construction, gaps, lower_bound, worst_case
from structpred.objectives.margin import MarginRescaling
from structpred.objectives.regularisers.l1 import L1, Lasso
from structpred.objectives.regularisers.l2 import L2
from structpred.rows.linear_task import LinearTask
from structpred.slack.surrogate import SlackRescaling
from structpred.trainers.bmrm import BMRM, most_iterations
from structpred.trainers.loop import RunSettings, train
from structpred.trainers.ls_bmrm import Aggregate, LineSearchBMRM, line_search
from structpred.trainers.one_slack import OneSlackCuttingPlane
from structpred.trainers.planes.bundles import Plane
from structpred.trainers.problem import Problem


def test_the_lower_bound_is_met_exactly() -> None:
    """Gaps are 1/(2 lam t) to 1e-12 for both methods, distances (1 + 2t/d) times that; the printed construction ends at t = 2."""
    table = lower_bound(16, 0.1)
    assert [row.bound for row in table.rows] == pytest.approx([5, 2.5, 5 / 3, 1.25, 1, 5 / 6, 5 / 7])
    assert table.error < 1e-12
    assert [0.2 * row.t * row.distance for row in table.rows[:3]] == pytest.approx([1.125, 1.25, 1.375], abs=1e-12)
    assert table.rows[0].printed == pytest.approx(5.0, rel=1e-12)
    assert [row.printed for row in table.rows[1:]] == pytest.approx([0.0] * 6, abs=1e-12)


@pytest.mark.mostly_slow
@pytest.mark.parametrize("regulariser", [L2(), Groups(), L1(0.2), NonNegative()], ids=lambda r: type(r).__name__)
@pytest.mark.parametrize("lam", [1.0, 0.03])
def test_no_run_takes_more_iterations_than_theorem_5_says(regulariser, lam) -> None:
    """At every iteration a gap as large as the one found is allowed as late: under four regularisers."""
    task = multiclass_task(1, n=10, n_labels=3, d=2)
    made = Problem(task, MarginRescaling(), lam, regulariser=regulariser)
    differences = [[task.difference(i, y).dense(task.dim) for y in task.oracle.enumerate((3,))] for i in range(10)]
    slope = float(made.p @ np.linalg.norm(differences, axis=2).max(axis=1))
    start, bend = made.primal(np.zeros(task.dim)), float(made.dual_map.scale.max())
    found, _ = gaps(made, BMRM(precision=0.0, rough=0.0), 40)
    assert all(gap < 1e-9 or t - 1 <= most_iterations(gap, lam, slope, start, bend) for t, gap in enumerate(found, 1))


def test_the_worst_case_takes_a_sixteenth_of_theorem_5() -> None:
    """1 / (2 lam gap) iterations, where (13) allows sixteen times as many, as printed for a large J(0)."""
    worst = worst_case(construction(16), 0.1)
    for t, gap in enumerate(gaps(worst, BMRM(precision=1e-14, rough=0.0), 7)[0], 1):
        assert most_iterations(gap, 0.1, 1.0, 40.0) == pytest.approx(16 * t - 4 + np.log2(0.1 * 40.0), abs=1e-6)
        assert most_iterations(gap, 0.1, 1.0, 20.0) == pytest.approx(16 * t - 4, abs=1e-6)


@pytest.mark.parametrize("name", TASKS)
def test_bmrm_ends_at_the_optimum_of_the_quadratic_program(name: str) -> None:
    """Primal and dual meet at the value that an independent solver finds over all outputs."""
    pytest.importorskip("cvxpy")
    task = chain_task(2, n=8, longest=3, n_labels=2) if name == "chain" else TASKS[name]()
    result = train(problem(task, 0.05), BMRM(precision=1e-9), RunSettings(max_iter=400, tol=1e-8, check_every=1))
    value, w = optimum(task, 0.05)
    assert result.stop_reason == "tol"
    assert result.certificate.proven
    assert result.certificate.primal == pytest.approx(value, rel=1e-6)
    np.testing.assert_allclose(result.weights, w, atol=2e-3)


@pytest.mark.mostly_slow
@pytest.mark.parametrize("trainer", ["bmrm", "ls-bmrm"])
@pytest.mark.parametrize("surrogate", [MarginRescaling(), SlackRescaling()], ids=["margin", "slack"])
def test_bounds_hold_at_every_pass(trainer: str, surrogate) -> None:
    """dual <= optimum <= primal, the dual never falls, the primal never rises, and it is that of the weights to return."""
    task = chain_task(1, n=6, longest=3, dtype=np.float32, weighted=True)
    made = Problem(task, surrogate, 0.05)
    best = train(made, OneSlackCuttingPlane(precision=1e-8), RunSettings(max_iter=200, tol=1e-7)).certificate
    result = train(made, BULK[trainer](), RunSettings(max_iter=25, check_every=1))
    primal, dual = (np.array([row[key] for row in result.history]) for key in ("primal", "dual"))
    assert (dual <= best.primal + 1e-9).all()
    assert (primal >= best.dual - 1e-9).all()
    assert (np.diff(dual) >= 0.0).all()
    assert (np.diff(primal) <= 0.0).all()
    assert primal[-1] == pytest.approx(made.primal(result.weights), rel=1e-6)
    assert result.certificate.gap < 0.5 * primal[-1]


def test_smooth_losses_have_planes_too() -> None:
    """BMRM ends at the optimum of a conditional random field, with a certificate."""
    task = chain_task(3, n=5, longest=3, n_labels=2)
    result = train(log_problem(task), BMRM(precision=1e-8), RunSettings(max_iter=200, tol=1e-6))
    assert result.stop_reason == "tol"
    assert result.certificate.primal == pytest.approx(log_optimum(task, 0.1)[0], rel=1e-5)


def test_linear_tasks_are_one_fused_pass() -> None:
    """Binary classification by both: the optimum is between their bounds."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 5))
    made = Problem(LinearTask(X, np.where(X[:, 0] + 0.5 * rng.normal(size=40) > 0, 1, -1)), MarginRescaling(), 0.1)
    exact = train(made, BMRM(precision=1e-9), RunSettings(max_iter=100, tol=1e-8)).certificate
    rough = train(made, LineSearchBMRM(), RunSettings(max_iter=300, tol=1e-2)).certificate
    assert exact.gap <= 1e-8
    assert rough.dual <= exact.primal <= rough.primal + 1e-8
    assert rough.gap <= 1e-2 * rough.primal


REGULARISERS = [Groups(), NonNegative(), Mixed(), L1(0.2), Adapting()]


@pytest.mark.mostly_slow
@pytest.mark.parametrize("name", ["bmrm", "ls-bmrm", "one-slack", "n-slack", "pragam"])
@pytest.mark.parametrize("regulariser", REGULARISERS, ids=lambda r: type(r).__name__)
def test_planes_take_every_dual_map(regulariser, name) -> None:
    """Primal and dual enclose the value that an independent solver finds, at every pass, and meet where all planes are kept."""
    pytest.importorskip("cvxpy")
    task = multiclass_task(1, n=10, n_labels=3, d=2)
    value, w = optimum(task, 0.3, as_program(regulariser))
    made = Problem(task, MarginRescaling(), 0.3, regulariser=regulariser)
    result = train(made, (BULK | TRAINERS)[name](), RunSettings(max_iter=300, check_every=1, tol=1e-5))
    assert all(row["dual"] - 1e-8 <= value <= row["primal"] + 1e-8 for row in result.history)
    assert result.certificate.gap <= (2e-2 if name == "ls-bmrm" else 1e-5) * value
    if name != "ls-bmrm":
        np.testing.assert_allclose(result.weights, w, atol=1e-2)
    assert ("dual_point" in result.report) == (not made.dual_map.linear)


def test_the_line_search_is_exact() -> None:
    """No step in [0, 1] gives the two planes a larger dual value than the one found, for dual maps of any kind."""
    rng, inside = np.random.default_rng(0), 0
    for k in range(100):
        dual_map = DualMap.of([3, 8], rng.choice([0.5, 1.0, 2.0], 2), [-np.inf, -0.4 * (k % 2)], [0.0, 0.4 * (k % 2)])
        model = Aggregate(rng.normal(size=8), np.array(rng.exponential()), dual_map.scale, np.zeros((2, 0)))
        plane, lam = Plane(rng.normal(size=8), np.array(rng.exponential(3.0))), float(rng.choice([0.3, 1.0, 4.0]))

        def dual(eta, model=model, plane=plane, lam=lam, dual_map=dual_map):
            point = ((1 - eta) * model.slope + eta * plane.slope) / lam
            return (1 - eta) * float(model.offset) + eta * float(plane.offset) - lam * dual_map.conjugate([point])

        eta = line_search(dual_map, model, plane, lam)
        brute = minimize_scalar(lambda x, dual=dual: -dual(x), bounds=(0.0, 1.0), method="bounded", options={"xatol": 1e-10})
        assert dual(eta) >= max(-brute.fun, dual(0.0), dual(1.0)) - 1e-9
        inside += 0.0 < eta < 1.0
    assert inside > 30


def test_what_does_not_fit_is_refused() -> None:
    """Before any work: wrong settings, and a regulariser without a dual map, as a plane's dual then has no weights."""
    with pytest.raises(ParameterError, match="precision"):
        BMRM(precision=-1.0)
    with pytest.raises(ParameterError, match="max_idle"):
        BMRM(max_idle=0)
    with pytest.raises(ParameterError, match="rough"):
        BMRM(rough=1.0)
    with pytest.raises(MissingCapabilityError, match=r"BMRM needs squared_norm or dual_map.*proximal"):
        train(Problem(chain_task(), MarginRescaling(), 0.1, regulariser=Lasso(0.1)), BMRM())
