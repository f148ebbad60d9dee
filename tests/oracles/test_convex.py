"""ConvexOracle: sets described in cvxpy against SciPy, closed forms and listed outputs; descriptions that are none."""

import pickle
import threading
from collections.abc import Callable
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import linprog

from structpred.contracts.checks import check_oracle
from structpred.core.fixed_scores import FORBIDDEN
from structpred.core.oracle import Shape
from structpred.errors import ConvergenceError, DataError, DependencyError, InfeasibleError, OracleError, ParameterError
from structpred.oracles.assignment import AssignmentOracle
from structpred.oracles.convex import KEPT, ConvexOracle

ASSIGNMENT = AssignmentOracle()


def assignments(shape: Shape) -> tuple[Any, list[Any]]:
    """Doubly stochastic matrices."""
    mu = cp.Variable(shape[0] ** 2)
    table = cp.reshape(mu, (shape[0], shape[0]), order="C")
    return mu, [mu >= 0, cp.sum(table, axis=0) == 1, cp.sum(table, axis=1) == 1]


def boxed(shape: Shape) -> tuple[Any, list[Any]]:
    """A box cut by five half-spaces that hold at its centre, the same for each shape."""
    rng = np.random.default_rng(shape[0])
    A = rng.normal(size=(5, shape[0]))
    mu = cp.Variable(shape[0])
    return mu, [mu >= 0, mu <= 1, A @ mu <= 0.5 * A.sum(axis=1) + 0.3]


def ball(shape: Shape) -> tuple[Any, list[Any]]:
    """The ball of radius 2 around (1, ..., 1)."""
    mu = cp.Variable(shape[0])
    return mu, [cp.norm(mu - 1.0) <= 2.0]


def columns(mu: np.ndarray, shape: Shape) -> np.ndarray:
    """The largest entry of each row."""
    return mu.reshape(shape[0], -1).argmax(axis=1).astype(np.int64)


def matching_oracle(**more: Any) -> ConvexOracle:
    """Assignments as AssignmentOracle has them, by their polytope."""
    known = {"parts": ASSIGNMENT.parts, "enumerate": ASSIGNMENT.enumerate, "label_grid": ASSIGNMENT.label_grid}
    return ConvexOracle(assignments, example_shapes=[(1,), (2,), (3,)], rounding=columns, exact=True, **known, **more)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_a_described_structure_keeps_the_contract(seed: int) -> None:
    """Assignments by their polytope: exact argmax, relaxation, constraints and projection, against all permutations."""
    report = check_oracle(matching_oracle(), n_random=3, seed=seed)
    assert min(report.checked[rule] for rule in ("argmax_relaxed", "argmax_relaxed_constrained", "project", "wrong argmax")) > 20


def test_labels_are_the_parts_without_functions_of_ones_own() -> None:
    """Without rounding and parts, an output is the ascending list of the parts that are on."""
    rng, oracle = np.random.default_rng(0), ConvexOracle(assignments, example_shapes=[(2,)])
    for n in (1, 2, 4):
        scores = rng.normal(size=n * n)
        labels = oracle.argmax(scores, (n,))
        assert np.array_equal(oracle.parts(labels, (n,)), ASSIGNMENT.parts(ASSIGNMENT.argmax(scores, (n,)), (n,)))
    assert not oracle.exact
    with pytest.raises(ValueError, match=r"expected parts in \[0, 4\)"):
        oracle.parts(np.array([4]), (2,))


@pytest.mark.slow
def test_values_agree_with_an_independent_solver() -> None:
    """Linear sets: the values with and without constraints are SciPy's; None where nothing is left."""
    rng, oracle, n_none = np.random.default_rng(1), ConvexOracle(boxed, example_shapes=[(4,)]), 0
    for k in range(30):
        p = 4 + k % 3
        own = np.random.default_rng(p).normal(size=(5, p))
        scores = rng.normal(size=p) * 10.0 ** rng.integers(-4, 5)
        A, b = rng.normal(size=(2, p)), rng.normal(size=2) - 0.3
        for rows, limits in ((np.zeros((0, p)), np.zeros(0)), (A, b)):
            G, h = np.vstack((own, rows)), np.concatenate((0.5 * own.sum(axis=1) + 0.3, limits))
            expected = linprog(-scores, G, h, bounds=(0, 1), method="highs")
            found = oracle.argmax_relaxed_constrained(scores, (p,), rows, limits)
            if expected.status == 2:
                n_none += 1
                assert found is None
                continue
            assert found is not None
            assert found @ scores == pytest.approx(-expected.fun, rel=1e-7)
            assert (G @ found <= h + 1e-7).all()
    assert 0 < n_none < 30


def test_a_round_set() -> None:
    """Over a ball the best point and the nearest one are known in closed form."""
    rng, oracle = np.random.default_rng(2), ConvexOracle(ball, example_shapes=[(3,)])
    for p in (1, 3, 10):
        scores = rng.normal(size=p) * 100.0
        expected = 1.0 + 2.0 * scores / np.linalg.norm(scores)
        assert oracle.argmax_relaxed(scores, (p,)) == pytest.approx(expected, abs=1e-4)
        assert oracle.argmax_relaxed(scores, (p,)) @ scores == pytest.approx(expected @ scores, rel=1e-7)
        outside = 1.0 + scores
        assert oracle.project(outside, (p,)) == pytest.approx(expected, abs=1e-4)
        inside = 1.0 + scores / np.linalg.norm(scores)
        assert oracle.project(inside, (p,)) == pytest.approx(inside, abs=1e-4)


def test_projections_agree_with_an_active_set() -> None:
    """Doubly stochastic matrices nearest to a point, near and far, to 1e-7 of the point's size."""
    rng, oracle = np.random.default_rng(3), matching_oracle()
    for size in (0.1, 1.0, 1e3, 1e6):
        point = size * rng.normal(size=16)
        assert oracle.project(point, (4,)) == pytest.approx(ASSIGNMENT.project(point, (4,)), abs=1e-7)


def test_forbidden_parts_stay_at_zero() -> None:
    """Scores of -1e30 hold parts at zero exactly; where that leaves nothing, the errors say so."""
    scores = np.array([[5.0, 1.0], [1.0, 0.0]])
    scores[0, 0] = FORBIDDEN
    oracle = matching_oracle()
    assert oracle.argmax_relaxed(scores.ravel(), (2,)).round(9).tolist() == [0.0, 1.0, 1.0, 0.0]
    scores[0, 1] = FORBIDDEN
    assert oracle.argmax_relaxed_constrained(scores.ravel(), (2,), np.ones((1, 4)), [9.0]) is None
    with pytest.raises(InfeasibleError, match="or all are forbidden"):
        oracle.argmax(scores.ravel(), (2,))


def test_described_once_for_each_kind_of_question() -> None:
    """The description is asked for, and compiled, once a shape and kind of question; a thread forgets the oldest."""
    calls = []

    def counted(shape: Shape) -> tuple[Any, list[Any]]:
        calls.append(shape)
        return assignments(shape)

    oracle, rng = ConvexOracle(counted, example_shapes=[(2,)], rounding=columns), np.random.default_rng(0)
    for _ in range(5):
        oracle.argmax(rng.normal(size=4), (2,))
        oracle.argmax_relaxed_constrained(rng.normal(size=4), (2,), rng.normal(size=(2, 4)), np.full(2, 9.0))
        oracle.project(rng.normal(size=4), (2,))
    assert len(calls) == 4  # one more for the number of parts
    for n in range(1, KEPT + 2):
        oracle._program((1,), "argmax", n, False)
    assert len(oracle._kept.programs) == KEPT


@pytest.mark.slow
def test_threads_and_pickles_give_the_same() -> None:
    """Two threads over one oracle, and a copy in another process's way, answer as one thread does."""
    oracle = ConvexOracle(assignments, example_shapes=[(3,)], rounding=columns)
    questions = [np.random.default_rng(k).normal(size=9) for k in range(15)]

    def ask(out: list[bytes], asked: ConvexOracle) -> None:
        out += [asked.argmax_relaxed(scores, (3,)).tobytes() for scores in questions]

    found: list[list[bytes]] = [[], [], [], []]
    ask(found[0], oracle)
    ask(found[3], pickle.loads(pickle.dumps(oracle)))
    threads = [threading.Thread(target=ask, args=(out, oracle)) for out in found[1:3]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found[1] == found[2] == found[3] == found[0]


def _variable(**settings: Any) -> Callable[[Shape], Any]:
    def describe(shape: Shape) -> Any:
        mu = cp.Variable(shape[0], **settings)
        return mu, [mu >= 0, mu <= 1]

    return describe


BAD: dict[str, tuple[Callable[[Shape], Any], type[Exception], str]] = {
    "no pair": (lambda s: cp.Variable(s[0]), OracleError, r"must return \(mu, constraints\).*got Variable"),
    "an expression": (lambda s: (2.0 * cp.Variable(s[0]), []), OracleError, "not an expression"),
    "a matrix": (lambda s: (cp.Variable((s[0], 1)), []), OracleError, "a 1-d cvxpy Variable"),
    "whole numbers": (_variable(integer=True), OracleError, "it must be continuous"),
    "no constraint": (lambda s: (cp.Variable(s[0]), [True]), OracleError, "got the constraint True"),
    "not convex": (
        lambda s: ((mu := cp.Variable(s[0])), [cp.norm(mu) >= 1.0]),
        OracleError,
        "cannot verify that this .* is convex",
    ),
    "unbounded": (lambda s: ((mu := cp.Variable(s[0])), [mu >= 0]), OracleError, "no bounds in the direction of the scores"),
    "unbounded, round": (lambda s: ((mu := cp.Variable(s[0])), [cp.norm(mu[1:]) <= mu[0]]), OracleError, "no bounds"),
    "empty": (lambda s: ((mu := cp.Variable(s[0])), [mu >= 1, mu <= 0]), InfeasibleError, "no point satisfies the constraints"),
    "empty, round": (lambda s: ((mu := cp.Variable(s[0])), [cp.norm(mu) <= 1, mu >= 2]), InfeasibleError, "no point satisfies"),
    "fractional": (
        lambda s: ((mu := cp.Variable(s[0])), [mu >= 0, cp.sum(mu) <= 1.2, mu <= 0.6]),
        OracleError,
        "give rounding",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_descriptions_that_are_none_are_told(name: str) -> None:
    """What is wrong with a description is said in words, with the shape."""
    describe, error, message = BAD[name]
    with pytest.raises(error, match=message) as caught:
        ConvexOracle(describe, example_shapes=[(3,)]).argmax(np.ones(3), (3,))
    assert "shape (3,)" in str(caught.value)


def test_an_empty_set_has_no_nearest_point() -> None:
    """project says so as well."""
    describe, _, _ = BAD["empty"]
    with pytest.raises(InfeasibleError, match="no point satisfies"):
        ConvexOracle(describe, example_shapes=[(3,)]).project(np.ones(3), (3,))


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")
def test_a_limit_of_iterations_is_told() -> None:
    """Both solvers stop after max_iterations steps, and the error names them; the limit itself must be at least 1."""
    scores = np.random.default_rng(0).random(64)
    hasty = ConvexOracle(assignments, example_shapes=[(2,)], rounding=columns, max_iterations=1)
    for ask in (hasty.argmax, hasty.project):
        with pytest.raises(ConvergenceError, match=r"user_limit.*max_iterations=1\b"):
            ask(scores, (8,))
    with pytest.raises(ParameterError, match="max_iterations must be a whole number >= 1, got 0"):
        ConvexOracle(assignments, example_shapes=[(2,)], max_iterations=0)


def test_bad_questions_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scores and rows of the wrong size, NaN, and a missing cvxpy."""
    oracle = matching_oracle()
    for scores, message in ((np.ones(3), "expected 4 scores"), (np.full(4, np.nan), "finite numbers")):
        for method in (oracle.argmax, oracle.argmax_relaxed, oracle.project):
            with pytest.raises(DataError, match=message):
                method(scores, (2,))
    with pytest.raises(ParameterError, match=r"A must have shape \(1, 4\)"):
        oracle.argmax_relaxed_constrained(np.ones(4), (2,), np.ones((1, 3)), [1.0])
    with pytest.raises(DataError, match="limits b must not be NaN"):
        oracle.argmax_relaxed_constrained(np.ones(4), (2,), np.ones((1, 4)), [np.nan])
    assert oracle.argmax_relaxed_constrained(np.ones(4), (2,), np.ones((1, 4)), [-np.inf]) is None
    monkeypatch.setattr("structpred.runtime.dependencies.installed_version", lambda name: None)
    with pytest.raises(DependencyError, match=r"ConvexOracle needs cvxpy.*structpred\[solvers\]"):
        matching_oracle().argmax(np.ones(4), (2,))
