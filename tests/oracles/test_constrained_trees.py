"""The best tree under linear constraints: against all trees, with CP-SAT and without, cut short, bad input."""

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest

from structpred.core.fixed_scores import FORBIDDEN
from structpred.errors import ConvergenceError, DataError, DependencyError, ParameterError
from structpred.oracles import arborescence
from structpred.oracles.arborescence import ArborescenceOracle
from structpred.oracles.enumerated import EnumeratedOracle
from structpred.oracles.solvers._ortools import check_ortools
from structpred.oracles.trees._trees import arcs_of

SINGLE = pytest.mark.parametrize("single_root", [True, False], ids=["single root", "several roots"])


def question(rng: np.random.Generator, kind: str, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(scores, A, b) for parts with these counts a tree; "equal" leaves a narrow band, "whole" meets limits exactly."""
    p = counts.shape[1]
    scores = rng.normal(size=p) * 10.0 ** rng.integers(-3, 4)
    A = rng.normal(size=(rng.integers(1, 5), p)) * 10.0 ** rng.integers(-3, 3)
    at = A @ counts[rng.integers(len(counts))]
    b = at + 0.3 * rng.normal(size=len(A)) * np.abs(A).mean(axis=1)
    if kind == "whole":
        scores, A = np.rint(scores), rng.integers(-1, 2, A.shape).astype(np.float64)
        b = A @ counts[rng.integers(len(counts))]
    if kind == "equal":
        width = 1e-3 * np.abs(A).max()
        A, b = np.stack((A[0], -A[0])), np.array([at[0] + width, -at[0] + width])
    if kind == "forbidden":
        scores[rng.random(p) < 0.25] = FORBIDDEN
    return scores, A, b


@pytest.mark.mostly_slow
@SINGLE
@pytest.mark.parametrize("kind", ["real", "whole", "equal", "forbidden"])
def test_best_of_all_trees(single_root: bool, kind: str) -> None:
    """The answer is the best of all trees that keep to the constraints as float64 computes them, None where none does."""
    rng, oracle = np.random.default_rng(7), ArborescenceOracle(single_root)
    all_trees = {n: EnumeratedOracle.of(oracle).table((n,)).counts.toarray() for n in (3, 4, 5)}
    n_none = 0
    for k in range(150):
        n = 3 + k % 3
        trees = all_trees[n]
        scores, A, b = question(rng, kind, trees)
        kept = (b[:, None] >= A @ trees.T).all(axis=0) & (trees @ scores > 0.5 * FORBIDDEN)
        found = oracle.argmax_constrained(scores, (n,), A, b)
        labels, bound = oracle.argmax_constrained_bound(scores, (n,), A, b)
        assert (found is None) == (labels is None) == (not kept.any())
        if found is None:
            n_none += 1
            assert bound == -np.inf
            continue
        best = float((trees @ scores)[kept].max())
        assert np.array_equal(found, labels)
        assert bound >= best - 1e-9 * max(1.0, abs(best))
        assert scores[oracle.parts(found, (n,))].sum() >= best - 1e-9 * max(1.0, abs(best))
    assert 0 < n_none < 100 or kind in ("whole", "equal")


@SINGLE
def test_the_solver_finds_the_same(single_root: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where branch and bound may look at one set only, CP-SAT ends the search with a tree as good, or none."""
    used = []
    finish = arborescence._finish
    monkeypatch.setattr(arborescence, "_finish", lambda *args: used.append(1) or finish(*args))
    rng, plain = np.random.default_rng(3), ArborescenceOracle(single_root)
    hasty = ArborescenceOracle(single_root, max_cells=1)
    trees = {n: EnumeratedOracle.of(plain).table((n,)).counts.toarray() for n in (3, 4, 5)}
    for k in range(60):
        n = 3 + k % 3
        scores, A, b = question(rng, ["real", "whole", "equal", "forbidden"][k % 4], trees[n])
        expected, found = (o.argmax_constrained(scores, (n,), A, b) for o in (plain, hasty))
        assert (expected is None) == (found is None)
        if expected is not None:
            values = [float(scores[arcs_of(y)].sum()) for y in (expected, found)]
            assert values[1] == pytest.approx(values[0], rel=1e-9, abs=1e-9)
    assert len(used) > 15


def test_cut_short_bounds_hold() -> None:
    """With few sets of trees looked at, labels keep to the constraints, the bound is one, and more of them never loosen it."""
    rng, n = np.random.default_rng(0), 5
    trees = EnumeratedOracle.of(ArborescenceOracle()).table((n,)).counts.toarray()
    n_open = 0
    for _ in range(40):
        scores, A, b = question(rng, "equal", trees)
        kept = (b[:, None] >= A @ trees.T).all(axis=0)
        best = float((trees @ scores)[kept].max())
        bounds = []
        for cells in (1, 3, 10, 30, 1000):
            labels, bound = ArborescenceOracle(max_cells=cells).argmax_constrained_bound(scores, (n,), A, b)
            bounds.append(bound)
            assert bound >= best - 1e-9 * abs(best)
            if labels is not None:
                mu = np.bincount(arcs_of(labels), minlength=len(scores))
                assert (A @ mu <= b).all()
        n_open += bounds[0] > best + 1e-6 * abs(best)
        assert all(after <= before + 1e-9 * abs(before) for before, after in pairwise(bounds))
        assert bounds[-1] == pytest.approx(best, rel=1e-9)
    assert n_open > 10


def test_not_proven_is_told() -> None:
    """Where neither branch and bound nor CP-SAT proves the maximum, argmax_constrained raises with the bound."""
    rng, n = np.random.default_rng(0), 12
    scores, A = rng.normal(size=n * (n + 1)), rng.normal(size=(3, n * (n + 1)))
    with pytest.raises(ConvergenceError, match=r"12 tokens under these 3 constraints was not proven: none scores above \d"):
        ArborescenceOracle(max_cells=1, limit=1e-9).argmax_constrained(scores, (n,), A, np.full(3, -6.0))


def test_without_a_solver(monkeypatch: pytest.MonkeyPatch) -> None:
    """Branch and bound needs none; where CP-SAT is needed, the error says who needs it and how to install it."""
    monkeypatch.setattr("structpred.runtime.dependencies.installed_version", lambda name: None)
    check_ortools.cache_clear()
    rng, n = np.random.default_rng(1), 8
    scores, A = rng.normal(size=n * (n + 1)), rng.normal(size=(2, n * (n + 1)))
    b = np.full(2, -3.0)
    assert ArborescenceOracle().argmax_constrained(scores, (n,), A, b) is not None
    assert ArborescenceOracle(max_cells=1).argmax_constrained_bound(scores, (n,), A, b)[1] > 0.0
    with pytest.raises(DependencyError, match=r"ArborescenceOracle needs ortools.*structpred\[solvers\]"):
        ArborescenceOracle(max_cells=1).argmax_constrained(scores, (n,), A, b)


def test_an_angle_of_slopes_over_a_long_sentence() -> None:
    """The two rows of an angular search at 25 tokens: the tree found lies inside, and relaxing a row never finds a worse one."""
    rng, n = np.random.default_rng(2), 25
    for _ in range(5):
        theta = rng.normal(size=n * (n + 1))
        gold = ArborescenceOracle().argmax(rng.normal(size=n * (n + 1)), (n,))
        ell = np.ones((n, n + 1))
        ell[np.arange(n), gold] = 0.0
        h0 = 1.0 - theta[arcs_of(gold)].sum()
        top = ArborescenceOracle().argmax(theta + ell.ravel(), (n,))
        slope = ell.ravel()[arcs_of(top)].sum() / (h0 + theta[arcs_of(top)].sum())
        A = np.stack((ell.ravel() - 0.9 * slope * theta, 0.5 * slope * theta - ell.ravel()))
        b = np.array([0.9 * slope * h0, -0.5 * slope * h0])
        scores = theta + ell.ravel()
        both = ArborescenceOracle().argmax_constrained_bound(scores, (n,), A, b)
        one = ArborescenceOracle().argmax_constrained_bound(scores, (n,), A[:1], b[:1])
        assert both[0] is not None
        arcs = arcs_of(both[0])
        assert 0.5 * slope <= ell.ravel()[arcs].sum() / (h0 + theta[arcs].sum()) <= 0.9 * slope
        assert scores[arcs].sum() <= both[1]
        assert scores[arcs].sum() <= one[1] + 1e-9
        assert both[1] <= scores[arcs_of(top)].sum() + 1e-9


@SINGLE
def test_no_constraints_is_the_best_tree(single_root: bool) -> None:
    """Rows that rule out nothing, an infinite limit, no rows at all: the answer of argmax."""
    rng, oracle = np.random.default_rng(0), ArborescenceOracle(single_root)
    for n in (1, 2, 7, 20):
        scores = rng.normal(size=n * (n + 1))
        rows = rng.normal(size=(1, len(scores)))
        for A, b in ((rows, [1e6]), (rows, [np.inf]), (np.zeros((0, len(scores))), []), (0.0 * rows, [0.0])):
            assert np.array_equal(oracle.argmax_constrained(scores, (n,), A, b), oracle.argmax(scores, (n,)))
        assert oracle.argmax_constrained_bound(scores, (n,), rows, [-np.inf]) == (None, -np.inf)
        assert oracle.argmax_constrained(scores, (n,), 0.0 * rows, [-1.0]) is None


def test_scores_that_forbid_every_tree() -> None:
    """Where forbidden arcs leave no tree, there is no answer."""
    oracle, A = ArborescenceOracle(), np.zeros((1, 12))
    alone = np.zeros((3, 4))
    alone[1] = FORBIDDEN
    two_roots = np.full((3, 4), FORBIDDEN)
    two_roots[:, 0] = 1.0
    for scores in (alone, two_roots):
        assert oracle.argmax_constrained(scores.ravel(), (3,), A, [1.0]) is None
    assert ArborescenceOracle(False).argmax_constrained(two_roots.ravel(), (3,), A, [1.0]).tolist() == [0, 0, 0]


BAD: dict[str, tuple[Callable[[ArborescenceOracle], object], type[Exception], str]] = {
    "rows of another size": (lambda o: _ask(o, np.ones((1, 5)), [1.0]), ParameterError, r"A must have shape \(1, 12\)"),
    "more limits": (lambda o: _ask(o, np.ones((1, 12)), [1.0, 2.0]), ParameterError, r"A must have shape \(2, 12\)"),
    "NaN rows": (lambda o: _ask(o, np.full((1, 12), np.nan), [1.0]), DataError, "coefficients A must be finite"),
    "NaN limit": (lambda o: _ask(o, np.ones((1, 12)), [np.nan]), DataError, "limits b must not be NaN"),
    "NaN scores": (lambda o: _ask(o, np.ones((1, 12)), [1.0], np.full(12, np.nan)), DataError, "scores must be finite"),
    "too few scores": (lambda o: _ask(o, np.ones((1, 12)), [1.0], np.zeros(11)), DataError, "expected 12 scores"),
}


def _ask(oracle: ArborescenceOracle, A: np.ndarray, b: list[float], scores: np.ndarray | None = None) -> object:
    return oracle.argmax_constrained(np.zeros(12) if scores is None else scores, (3,), A, b)


@pytest.mark.parametrize("name", BAD)
def test_bad_questions_are_told(name: str) -> None:
    """What is no question is said in words, before anything is searched."""
    call, error, message = BAD[name]
    with pytest.raises(error, match=message):
        call(ArborescenceOracle())
    with pytest.raises(ParameterError, match="expected max_cells >= 1 and a limit > 0, got 0"):
        ArborescenceOracle(max_cells=0)
