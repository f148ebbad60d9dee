"""CpSatMRF and CpSatBoundMRF: against all outputs, with constraints, ties at the resolution, cut short, bad input."""

import threading
from collections.abc import Callable

import numpy as np
import pytest
from mrf_cases import forbid_some, random_graph

from structpred.core.fixed_scores import FORBIDDEN
from structpred.errors import ConvergenceError, DataError, DependencyError, InfeasibleError, ParameterError
from structpred.oracles.cp_sat import CpSatBoundMRF, CpSatMRF
from structpred.oracles.enumerated import EnumeratedOracle
from structpred.oracles.mrf import graph_of, graph_shape
from structpred.oracles.solvers._ortools import check_ortools, whole_rows

REFERENCE = EnumeratedOracle.of(CpSatMRF())
COMPLETE = graph_shape(14, 2, [(i, j) for i in range(14) for j in range(i + 1, 14)])


def score(labels: np.ndarray, scores: np.ndarray, shape: tuple[int, ...]) -> float:
    """The sum of the parts that are on."""
    return float(scores[graph_of(shape).parts(labels)].sum())


@pytest.mark.parametrize("seed", range(3))
def test_best_of_all_outputs_of_random_graphs(seed: int) -> None:
    """On graphs of all sizes, with forbidden parts and uneven scores, argmax and its bound are those of all outputs."""
    rng = np.random.default_rng(seed)
    n_none = 0
    for k in range(25):
        shape = random_graph(rng, *((7, 2), (4, 3), (3, 4))[k % 3], 0.6)
        scores = rng.normal(size=graph_of(shape).n_parts) * 10.0 ** rng.integers(-3, 4)
        scores = forbid_some(rng, scores, 0.12 if k % 2 else 0.0)
        values = REFERENCE.table(shape).counts @ scores
        if values.max() <= 0.5 * FORBIDDEN:
            n_none += 1
            with pytest.raises(InfeasibleError, match="every output uses a forbidden part"):
                CpSatMRF().argmax(scores, shape)
            continue
        assert score(CpSatMRF().argmax(scores, shape), scores, shape) == pytest.approx(values.max(), rel=1e-10)
        labels, bound = CpSatBoundMRF().argmax_bound(scores, shape)
        assert score(labels, scores, shape) <= bound
        assert values.max() <= bound == pytest.approx(values.max(), rel=1e-9, abs=1e-12)
    assert n_none < 20


@pytest.mark.slow
def test_no_answer_is_lost_among_many_questions() -> None:
    """Among 3,000 questions with two real-valued rows each, of which a presolve of CP-SAT loses about 30, none is lost."""
    rng = np.random.default_rng(0)
    shapes = [graph_shape(6, 2, [(i, (i + 1) % 6) for i in range(6)]), graph_shape(3, 3, [(0, 1), (1, 2), (0, 2)])]
    tables = {shape: REFERENCE.table(shape).counts.toarray() for shape in shapes}
    for k in range(3000):
        shape = shapes[k % 2]
        counts = tables[shape]
        scores, A = rng.normal(size=counts.shape[1]), rng.normal(size=(2, counts.shape[1])) * 10.0 ** rng.integers(-3, 4, (2, 1))
        sides = A @ counts.T
        b = np.array([rng.choice(side) for side in sides]) + 1e-9 * np.abs(A).max(axis=1)
        allowed = (sides <= b[:, None]).all(axis=0)
        found = CpSatMRF().argmax_constrained(scores, shape, A, b)
        assert (found is None) == (not allowed.any())
        if found is not None:
            assert score(found, scores, shape) >= float((counts @ scores)[allowed].max()) - 1e-9


@pytest.mark.mostly_slow
@pytest.mark.parametrize("kind", ["real", "whole", "narrow"])
def test_constraints_are_kept_as_float64_computes_them(kind: str) -> None:
    """Limits that a sum meets exactly, or misses by one unit in the last place, are told apart."""
    rng = np.random.default_rng(5)
    shape = graph_shape(6, 2, [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (0, 5), (1, 4)])
    counts = REFERENCE.table(shape).counts.toarray()
    parts = np.array([graph_of(shape).parts(y) for y in REFERENCE.table(shape).labels])
    for k in range(40):
        scores, A = rng.normal(size=counts.shape[1]), rng.normal(size=(2, counts.shape[1])) * 10.0 ** rng.integers(-3, 4, (2, 1))
        if kind == "whole":
            A = rng.integers(-2, 3, A.shape).astype(np.float64)
        sides = np.array([np.take(A, on, axis=1).sum(axis=1) for on in parts])
        b = np.array([np.sort(sides[:, j])[rng.integers(len(sides))] for j in (0, 1)])
        if kind == "narrow":
            A[1], b[1] = -A[0], -b[0]
            sides = np.array([np.take(A, on, axis=1).sum(axis=1) for on in parts])
        b = np.nextafter(b, -np.inf) if k % 2 else b
        allowed = (sides <= b).all(axis=1)
        found = CpSatMRF().argmax_constrained(scores, shape, A, b)
        labels, bound = CpSatBoundMRF().argmax_constrained_bound(scores, shape, A, b)
        assert (found is None) == (labels is None) == (not allowed.any())
        if found is None:
            assert bound == -np.inf
            continue
        best = float((counts @ scores)[allowed].max())
        assert score(found, scores, shape) == pytest.approx(best, rel=1e-10)
        assert bound >= best - 1e-12
        assert (np.take(A, graph_of(shape).parts(found), axis=1).sum(axis=1) <= b).all()


def test_whole_number_rows_lose_no_output() -> None:
    """The rows that CP-SAT sees hold wherever the real ones do, for rows of any size and limits beyond all sums."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        A = rng.normal(size=(3, 10)) * 10.0 ** rng.integers(-8, 9, (3, 1))
        mu = rng.integers(0, 2, 10).astype(np.float64)
        b = A @ mu * rng.choice([1.0, 1.0 + 1e-15], 3)
        b[0] = np.abs(A[0]).sum() * 1e20
        rows, limits = whole_rows(A, b, 10)
        assert (rows @ mu.astype(np.int64) <= limits).all() or not (A @ mu <= b).all()
        assert np.abs(rows).sum() < 2**54


def test_resolution_is_as_stated() -> None:
    """Two outputs closer than (nodes + edges) * r may count as equal; farther apart the better one is found."""
    shape = graph_shape(2, 2, [(0, 1)])
    scores = np.zeros(graph_of(shape).n_parts)
    scores[0] = 1e6
    r = 2.0 ** (np.ceil(np.log2(1e6)) - 49)
    for difference in (4.0 * r, 1e-3, 1.0):
        scores[2] = difference
        assert CpSatMRF().argmax(scores, shape).tolist() == [0, 0]
        scores[2] = -difference
        assert CpSatMRF().argmax(scores, shape).tolist() == [0, 1]


def test_the_same_answer_each_time_and_in_threads() -> None:
    """Ties go to the same output in every call and every thread."""
    questions = [np.random.default_rng(k).integers(-1, 2, graph_of(COMPLETE).n_parts).astype(np.float64) for k in range(4)]

    def ask(out: list[list[int]]) -> None:
        out += [CpSatMRF().argmax(scores, COMPLETE).tolist() for scores in questions]

    found: list[list[list[int]]] = [[], [], []]
    ask(found[0])
    threads = [threading.Thread(target=ask, args=(out,)) for out in found[1:]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found[1] == found[0]
    assert found[2] == found[0]


@pytest.mark.slow
def test_cut_short_is_told() -> None:
    """Within a tiny limit the exact oracle raises with a bound, and the other one gives labels with a bound that holds."""
    rng = np.random.default_rng(0)
    shape = graph_shape(30, 2, [(i, j) for i in range(30) for j in range(i + 1, 30)])
    scores = rng.normal(size=graph_of(shape).n_parts)
    with pytest.raises(ConvergenceError, match=r"limit=1e-05: some output was found, none scores above \d.*CpSatBoundMRF"):
        CpSatMRF(limit=1e-5).argmax(scores, shape)
    labels, bound = CpSatBoundMRF(limit=1e-5).argmax_bound(scores, shape)
    assert score(labels, scores, shape) < bound
    assert bound >= score(CpSatBoundMRF(limit=0.3).argmax(scores, shape), scores, shape)
    A = rng.normal(size=(2, len(scores)))
    labels, bound = CpSatBoundMRF(limit=1e-5).argmax_constrained_bound(scores, shape, A, np.full(2, -20.0))
    found, tighter = CpSatBoundMRF(limit=0.3).argmax_constrained_bound(scores, shape, A, np.full(2, -20.0))
    assert np.isfinite(bound)
    assert tighter <= bound + 1e-6
    assert found is None or score(found, scores, shape) <= tighter


BAD: dict[str, tuple[Callable[[np.ndarray], object], type[Exception], str]] = {
    "NaN scores": (lambda s: CpSatMRF().argmax(s * np.nan, COMPLETE), DataError, "scores must be finite"),
    "too few scores": (lambda s: CpSatMRF().argmax(s[1:], COMPLETE), DataError, "expected 392 scores"),
    "NaN rows": (lambda s: _within(s, np.full((1, 392), np.nan), [0.0]), DataError, "coefficients A must be finite"),
    "NaN limit": (lambda s: _within(s, np.ones((1, 392)), [np.nan]), DataError, "limits b must not be NaN"),
    "rows of another size": (lambda s: _within(s, np.ones((2, 3)), [0.0, 1.0]), ParameterError, r"shape \(2, 392\)"),
    "no limit": (lambda s: CpSatMRF(limit=0.0), ParameterError, "expected a limit > 0"),
    "NaN limit of time": (lambda s: CpSatBoundMRF(limit=np.nan), ParameterError, "expected a limit > 0"),
    "all forbidden": (lambda s: CpSatMRF().argmax(s + FORBIDDEN, COMPLETE), InfeasibleError, "every output"),
    "all forbidden, bound": (lambda s: CpSatBoundMRF().argmax(s + FORBIDDEN, COMPLETE), InfeasibleError, "every output"),
}


def _within(scores: np.ndarray, A: np.ndarray, b: list[float]) -> object:
    return CpSatMRF().argmax_constrained(scores, COMPLETE, A, b)


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_told(name: str) -> None:
    """What is no question, and what has no answer, is said in words."""
    call, error, message = BAD[name]
    with pytest.raises(error, match=message):
        call(np.zeros(graph_of(COMPLETE).n_parts))


def test_infinite_limits_and_one_state() -> None:
    """A row with the limit inf is no row, with -inf nothing is left; with one state there is nothing to choose."""
    scores = np.random.default_rng(0).normal(size=graph_of(COMPLETE).n_parts)
    rows = np.ones((1, len(scores)))
    assert np.array_equal(CpSatMRF().argmax_constrained(scores, COMPLETE, rows, [np.inf]), CpSatMRF().argmax(scores, COMPLETE))
    assert CpSatMRF().argmax_constrained(scores, COMPLETE, rows, [-np.inf]) is None
    single = graph_shape(3, 1, [(0, 1)])
    assert CpSatMRF().argmax_constrained(np.ones(4), single, np.ones((1, 4)), [4.0]).tolist() == [0, 0, 0]
    assert CpSatMRF().argmax_constrained(np.ones(4), single, np.ones((1, 4)), [3.9]) is None


def test_a_missing_solver_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without OR-Tools the error says who needs it and how to install it."""
    monkeypatch.setattr("structpred.runtime.dependencies.installed_version", lambda name: None)
    check_ortools.cache_clear()
    with pytest.raises(DependencyError, match=r"CpSatMRF needs ortools.*structpred\[solvers\]"):
        CpSatMRF().argmax(np.zeros(2), graph_shape(1, 2, []))
