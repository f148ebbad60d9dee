"""Slack rescaling over a relaxation: hull search against a conic solver, on local polytopes of small graphs."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from slack_cases import hinges, parts_task, slack_optimum

from structpred.contracts.checks import check_oracle
from structpred.errors import MissingCapabilityError
from structpred.oracles.assignment import AssignmentOracle
from structpred.oracles.enumerated import EnumeratedOracle
from structpred.slack.hull import best_mix
from structpred.slack.problem import Candidate
from structpred.slack.search import search
from structpred.slack.surrogate import SlackRescaling
from structpred.slack.task_problem import TaskProblem
from structpred.task.task import Task
from structpred.trainers.bcfw import BCFW
from structpred.trainers.loop import RunSettings, train
from structpred.trainers.problem import Problem


def local_polytope(n: int, k: int, edges: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    """(A, b) with A mu = b: node rows add up to one, edge tables agree with their nodes."""
    p = n * k + len(edges) * k * k
    rows, sides = [], []
    for i in range(n):
        row = np.zeros(p)
        row[i * k : (i + 1) * k] = 1.0
        rows.append(row)
        sides.append(1.0)
    for e, (i, j) in enumerate(edges):
        for a in range(k):
            for node, table in ((i, slice(a * k, (a + 1) * k)), (j, slice(a, k * k, k))):
                row = np.zeros(p)
                row[n * k + e * k * k :][: k * k][table] = 1.0
                row[node * k + a] -= 1.0
                rows.append(row)
                sides.append(0.0)
    return np.array(rows), np.array(sides)


class Graph(EnumeratedOracle):
    """A pairwise model on one graph, outputs by enumeration, and its local polytope by a linear program."""

    def __init__(self, n: int, k: int, edges: list[tuple[int, int]]) -> None:
        self.n, self.k, self.edges = n, k, edges
        self.A, self.b = local_polytope(n, k, edges)
        super().__init__(
            lambda shape: (np.array(y, dtype=np.int64) for y in product(range(k), repeat=n)),
            self._parts_of,
            lambda shape: n * k + len(edges) * k * k,
            example_shapes=[(n,)],
            label_grid=lambda shape: (n, k),
        )

    def _parts_of(self, y: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        n, k = self.n, self.k
        if y.shape != (n,) or not 0 <= y.min() <= y.max() < k:
            raise ValueError(f"expected {n} states below {k}, got {y}")
        pairs = [n * k + e * k * k + y[i] * k + y[j] for e, (i, j) in enumerate(self.edges)]
        return np.array([*(np.arange(n) * k + y), *pairs], dtype=np.int64)

    def argmax_relaxed(self, scores: Any, shape: Any) -> Any:
        return self.argmax_relaxed_constrained(scores, shape, np.zeros((0, len(scores))), np.zeros(0))

    def argmax_relaxed_constrained(self, scores: Any, shape: Any, A: Any, b: Any) -> Any:
        from scipy.optimize import linprog

        size = max(1.0, np.abs(scores).max())
        found = linprog(-scores / size, A, b, self.A, self.b, bounds=(0.0, 1.0), method="highs")
        return np.asarray(found.x) if found.success else None

    def polytope(self, shape: Any) -> Any:
        return self.A, self.b, self.b


def triangle(k: int = 2) -> Graph:
    """The smallest graph whose local polytope has fractional corners."""
    return Graph(3, k, [(0, 1), (1, 2), (0, 2)])


GRAPHS = {
    "triangle": lambda: triangle(),
    "triangle, 3 states": lambda: triangle(3),
    "complete, 5": lambda: Graph(5, 2, [(i, j) for i in range(5) for j in range(i + 1, 5)]),
    "ring, 4, 3 states": lambda: Graph(4, 3, [(0, 1), (1, 2), (2, 3), (0, 3)]),
}


def relaxed_maximum(problem: TaskProblem, oracle: Graph) -> float:
    """max h g over the local polytope with h, g >= 0, by a conic solver: the square of the largest geometric mean."""
    import cvxpy as cp

    mu = cp.Variable(len(problem.theta), nonneg=True)
    h, g = problem.h0 + problem.theta @ mu, problem.c + problem.ell @ mu
    solved = cp.Problem(cp.Maximize(cp.geo_mean(cp.hstack([h, g]))), [oracle.A @ mu == oracle.b])
    solved.solve(solver=cp.CLARABEL)
    return float(solved.value) ** 2


@pytest.mark.parametrize("name", ["triangle", "triangle, 3 states"])
def test_the_graphs_keep_the_contract(name: str) -> None:
    """The oracle of these tests is right: relaxed, constrained, within its polytope."""
    report = check_oracle(GRAPHS[name](), n_random=3)
    assert report.checked["argmax_relaxed_constrained"] > 50


@pytest.mark.parametrize("name", GRAPHS)
def test_hull_search_solves_the_relaxation(name: str) -> None:
    """The maximum over the polytope is that of the conic solver, found in a handful of plain queries; it may be a mixture."""
    pytest.importorskip("cvxpy")
    oracle = GRAPHS[name]()
    queries, mixed, compared = [], 0, 0
    for seed in range(4):
        task = parts_task(seed, oracle, (oracle.n,), n=2, d=5)
        w = 0.6 * np.random.default_rng(seed).normal(size=5)
        for i, whole in enumerate(hinges(task, w)):
            problem = TaskProblem(task, w, i, relaxed=True)
            result = search(problem)
            assert (result.method, result.relaxed, result.exact, result.n_constrained) == ("hull", True, True, 0)
            assert result.upper_bound >= whole - 1e-7  # the relaxation holds all outputs
            top = relaxed_maximum(problem, oracle)
            assert result.phi == pytest.approx(top, rel=1e-6)
            mu = result.label
            assert np.abs(oracle.A @ mu - oracle.b).max() < 1e-8
            assert mu.min() > -1e-9
            again = problem.rescore(mu)
            assert (again.h, again.g) == pytest.approx((result.h, result.g), abs=1e-9)
            queries.append(result.n_plain)
            mixed += bool((np.abs(mu - np.rint(mu)) > 1e-6).any())
            compared += 1
    assert compared == 8
    assert np.mean(queries) < 8
    assert mixed


def test_relaxed_results_say_so() -> None:
    """A relaxed result is marked, in the field and in print, and is never below the integer maximum."""
    task = parts_task(1, triangle(), (3,), n=4)
    w = np.random.default_rng(1).normal(size=task.dim)
    above = 0
    for i, whole in enumerate(hinges(task, w)):
        relaxed, integer = (search(TaskProblem(task, w, i, relaxed=r)) for r in (True, False))
        assert "of the relaxation (outputs may be fractional)" in str(relaxed)
        assert "relaxation" not in str(integer)
        assert relaxed.phi >= whole - 1e-9 == pytest.approx(integer.phi - 1e-9)
        above += relaxed.phi > whole + 1e-6
    assert above


def test_closed_angles_end_and_their_bound_holds() -> None:
    """Angular search on a relaxation, where ends come back again and again: it ends, within 0.1 % of the maximum, bound valid."""
    for seed in range(3):
        task = parts_task(seed, triangle(), (3,), n=3)
        w = np.random.default_rng(seed).normal(size=task.dim)
        for i in range(3):
            best = search(TaskProblem(task, w, i, relaxed=True), "hull")
            result = search(TaskProblem(task, w, i, relaxed=True), "angular", max_queries=200)
            assert result.n_constrained < 100
            assert result.upper_bound >= best.phi * (1 - 1e-7)
            assert result.phi >= best.phi * (1 - 1e-3)
            assert result.phi <= best.phi * (1 + 1e-7)
            assert result.upper_bound <= best.phi * 1.02 + 1e-9


def test_the_best_mixture_is_that_of_a_fine_grid() -> None:
    """The closed form against 100,001 points of the segment, for points with h or g below zero too."""
    rng, t = np.random.default_rng(0), np.linspace(0.0, 1.0, 100_001)
    for _ in range(300):
        a, b = (Candidate(float(h), float(g), None) for h, g in zip(rng.normal(size=2) + 0.5, rng.random(2), strict=True))
        h, g = t * a.h + (1 - t) * b.h, t * a.g + (1 - t) * b.g
        phi, share, best_h, best_g = best_mix(a, b)
        assert phi == pytest.approx((np.maximum(h, 0) * g).max(), abs=1e-8)
        assert (best_h, best_g) == pytest.approx((share * a.h + (1 - share) * b.h, share * a.g + (1 - share) * b.g))


@pytest.mark.slow
def test_training_on_a_relaxation_is_certified() -> None:
    """BCFW with fractional steps: the gap closes, the primal is above the integer optimum, and both bounds are of one problem."""
    pytest.importorskip("cvxpy")
    task = parts_task(2, triangle(), (3,), n=5, d=3)
    result = train(Problem(task, SlackRescaling(relaxed=True), 2.0), BCFW(), RunSettings(max_iter=100, tol=0.005))
    assert result.stop_reason == "tol"
    assert result.certificate.proven
    assert result.certificate.dual <= result.certificate.primal
    assert result.certificate.primal >= slack_optimum(task, 2.0)[0] - 1e-7


def test_the_hull_of_all_outputs_is_no_looser_than_needed() -> None:
    """On the convex hull of all outputs the relaxed maximum is the bound of plain queries, before whole losses sharpen it."""
    task = parts_task(3, EnumeratedOracle.of(AssignmentOracle()), (4,))
    w = 0.5 * np.random.default_rng(3).normal(size=task.dim)
    for i in range(len(task)):
        relaxed = search(TaskProblem(task, w, i, relaxed=True))
        whole = TaskProblem(task, w, i)
        assert relaxed.phi >= search(whole, "hull").upper_bound * (1 - 1e-9)
        whole.loss_unit = 0.0
        assert relaxed.phi == pytest.approx(search(whole, "hull").upper_bound, rel=1e-9)
        angular = search(TaskProblem(task, w, i, relaxed=True), "angular")
        assert angular.phi == pytest.approx(relaxed.phi, rel=1e-3)


def test_a_relaxation_needs_its_oracle() -> None:
    """relaxed=True without argmax_relaxed, and angular search without its constrained form, are refused by name."""
    task = parts_task(0, AssignmentOracle(), (3,))
    with pytest.raises(MissingCapabilityError, match="surrogate SlackRescaling needs argmax_relaxed"):
        train(Problem(task, SlackRescaling(relaxed=True), 0.1), BCFW())
    oracle: Any = triangle()
    oracle.argmax_relaxed_constrained = None
    plain = Task(
        parts_task(0, triangle(), (3,)).features, oracle, [[0, 0, 0]] * 6, [(3,)] * 6, parts_task(0, triangle(), (3,)).loss
    )
    with pytest.raises(MissingCapabilityError, match="'angular' over the relaxation needs argmax_relaxed_constrained"):
        search(TaskProblem(plain, np.zeros(plain.dim), 0, relaxed=True), "angular")
