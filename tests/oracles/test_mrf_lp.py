"""RelaxedMRF: the local polytope against SciPy's solver, its bound, its rounding; both solvers, warm and cold, in threads."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy.optimize import linprog

from structpred.core.fixed_scores import FORBIDDEN
from structpred.core.oracle import Shape
from structpred.errors import ConvergenceError, DataError, DependencyError, InfeasibleError, ParameterError
from structpred.oracles import mrf_lp as programs
from structpred.oracles.enumerated import EnumeratedOracle
from structpred.oracles.fields._local_polytope import (
    allowed_labels,
    allowed_parts,
    compact_form,
    marginal_rows,
    message_bound,
    rounded,
)
from structpred.oracles.mrf import PairwiseOracle, graph_of, graph_shape
from structpred.oracles.mrf_lp import RelaxedMRF
from structpred.oracles.solvers._ortools import check_ortools

COMPLETE = graph_shape(6, 2, [(i, j) for i in range(6) for j in range(i + 1, 6)])
CYCLE = graph_shape(5, 3, [(i, (i + 1) % 5) for i in range(5)])
SPARSE = graph_shape(7, 4, [(0, 3), (1, 3), (2, 5), (1, 6), (3, 6)])
SHAPES = [COMPLETE, CYCLE, SPARSE]
SOLVERS = {"simplex": RelaxedMRF(), "first order": RelaxedMRF(pdlp_from=0)}


def grid(height: int, width: int, n_states: int) -> Shape:
    """A grid with four neighbours."""
    nodes = np.arange(height * width).reshape(height, width)
    right = np.stack((nodes[:, :-1].ravel(), nodes[:, 1:].ravel()), axis=1)
    down = np.stack((nodes[:-1].ravel(), nodes[1:].ravel()), axis=1)
    return graph_shape(height * width, n_states, np.concatenate((right, down)))


def integral(oracle: RelaxedMRF, scores: np.ndarray, shape: Shape) -> bool:
    """Whether the best point is an output: its nodes are 0 or 1."""
    nodes = oracle.argmax_relaxed(scores, shape)[: shape[0] * shape[1]]
    return bool(np.minimum(nodes, 1.0 - nodes).max() <= 1e-6)


def kept_models() -> Any:
    """The models that this thread keeps, the one that was used last at the end."""
    return programs._kept.models


def independent(scores: np.ndarray, shape: Shape, A: np.ndarray | None = None, b: np.ndarray | None = None) -> float | None:
    """The value of the relaxation by SciPy, None where nothing is left."""
    forbidden = scores <= 0.5 * FORBIDDEN
    equations, right = marginal_rows(shape)
    bounds = [(0, 0) if f else (0, None) for f in forbidden]
    found = linprog(-np.where(forbidden, 0.0, scores), A, b, equations, right, bounds, method="highs")
    assert found.status in (0, 2), found.message
    return None if found.status == 2 else -float(found.fun)


def cases(n: int, seed: int = 0) -> Iterator[tuple[Shape, np.ndarray]]:
    """Random scores, ties, and some that forbid parts."""
    rng = np.random.default_rng(seed)
    for k in range(n):
        shape = SHAPES[k % len(SHAPES)]
        scores = rng.normal(size=graph_of(shape).n_parts) * 10.0 ** rng.integers(-2, 4)
        if k % 5 == 1:
            scores = np.rint(scores)
        if k % 4 == 2:
            scores[rng.random(len(scores)) < 0.05] = FORBIDDEN
        yield shape, scores


@pytest.mark.parametrize("solver", SOLVERS)
def test_value_and_point_agree_with_an_independent_solver(solver: str) -> None:
    """The value is SciPy's, mu attains it and lies in the polytope, in spite of ties and forbidden parts."""
    oracle, near = SOLVERS[solver], 1e-9 if solver == "simplex" else 1e-5
    for shape, scores in cases(60 if solver == "simplex" else 24):
        expected = independent(scores, shape)
        if expected is None:
            with pytest.raises(InfeasibleError):
                oracle.argmax_bound(scores, shape)
            continue
        mu, value, size = oracle.argmax_relaxed(scores, shape), oracle.argmax_bound(scores, shape)[1], 1.0 + abs(expected)
        assert value >= expected - 1e-9 * size
        assert abs(value - expected) <= near * size
        assert abs(mu @ scores - expected) <= near * size
        rows, lower, upper = oracle.polytope(shape)
        values = rows @ mu
        assert (values >= lower - 1e-6).all()
        assert (values <= upper + 1e-6).all()


@pytest.mark.slow
@pytest.mark.parametrize("solver", SOLVERS)
def test_rows_are_kept_and_the_value_is_the_best(solver: str) -> None:
    """With further rows the value is SciPy's too; where nothing is left the answer is None."""
    oracle, rng, n_none = SOLVERS[solver], np.random.default_rng(5), 0
    for shape, scores in cases(30 if solver == "simplex" else 12, seed=2):
        A = rng.normal(size=(2, len(scores)))
        b = rng.normal(size=2) * 2.0 - 1.0
        if rng.random() < 0.3:
            b[0] = A[0].clip(max=0.0).sum() - 1.0
        expected, mu = independent(scores, shape, A, b), oracle.argmax_relaxed_constrained(scores, shape, A, b)
        if expected is None:
            n_none += 1
            assert mu is None
            continue
        assert mu is not None
        assert (mu[scores <= 0.5 * FORBIDDEN] == 0.0).all()
        assert (A @ mu <= b + 1e-5).all()
        assert abs(mu @ scores - expected) <= (1e-8 if solver == "simplex" else 1e-4) * (1.0 + abs(expected))
    assert n_none > 1


@pytest.mark.parametrize("solver", SOLVERS)
def test_no_output_scores_above_the_value(solver: str) -> None:
    """The value bounds all outputs, not by a tolerance: even where the relaxation is tight and scores are large or uneven."""
    oracle, rng = SOLVERS[solver], np.random.default_rng(1)
    shapes = [s for s in PairwiseOracle.example_shapes() if s[1] > 1]
    reference = EnumeratedOracle.of(oracle)
    for k in range(80 if solver == "simplex" else 24):
        shape = shapes[k % len(shapes)]
        scores = rng.normal(size=graph_of(shape).n_parts) * 10.0 ** rng.integers(-6, 7, graph_of(shape).n_parts)
        table = reference.table(shape)
        best = float((table.counts @ scores).max())
        labels, bound = oracle.argmax_bound(scores, shape)
        assert bound >= best
        assert bound <= best + 1e-6 * np.abs(scores).max() or not integral(oracle, scores, shape)
        assert float(scores[oracle.parts(labels, shape)].sum()) <= bound


def test_the_bound_holds_for_any_messages() -> None:
    """Whatever a solver gives as its dual, the recomputed bound is one; with the scores alone (no messages) as well."""
    rng = np.random.default_rng(0)
    oracle = EnumeratedOracle.of(RelaxedMRF())
    shape = graph_shape(4, 3, [(0, 1), (1, 2), (2, 3), (0, 3)])
    graph = graph_of(shape)
    for size in (0.0, 1.0, 1e9):
        scores = rng.normal(size=graph.n_parts)
        messages = size * rng.normal(size=(4, 2, 3))
        bound = message_bound(graph, scores, np.ones(len(scores), np.bool_), messages)
        assert bound >= float((oracle.table(shape).counts @ scores).max())


def test_integral_means_an_output_that_is_best() -> None:
    """On trees the relaxation is tight: mu is an output, labels are it, and nothing is lost by rounding."""
    rng, shape = np.random.default_rng(3), graph_shape(5, 3, [(0, 2), (1, 2), (2, 3), (0, 4)])
    for _ in range(20):
        scores = rng.normal(size=graph_of(shape).n_parts)
        (labels, value), mu = RelaxedMRF().argmax_bound(scores, shape), RelaxedMRF().argmax_relaxed(scores, shape)
        best = EnumeratedOracle.of(RelaxedMRF()).argmax(scores, shape)
        assert labels.tolist() == best.tolist()
        assert value == pytest.approx(float(scores[graph_of(shape).parts(best)].sum()), abs=1e-8)
        assert np.array_equal(np.flatnonzero(mu), np.sort(graph_of(shape).parts(best)))


def test_the_triangle_is_fractional() -> None:
    """Three nodes that all want to differ: the relaxation says 3, an output reaches 2, and rounding loses 1."""
    shape = graph_shape(3, 2, [(0, 1), (0, 2), (1, 2)])
    scores = np.array([0.0] * 6 + [0.0, 1.0, 1.0, 0.0] * 3)
    labels, value = RelaxedMRF().argmax_bound(scores, shape)
    assert RelaxedMRF().argmax_relaxed(scores, shape)[:6].tolist() == [0.5] * 6
    assert value == pytest.approx(3.0, abs=1e-12)
    assert scores[graph_of(shape).parts(labels)].sum() == 2.0


def test_the_compact_form_describes_the_same_points() -> None:
    """mu = start + matrix z satisfies every equation for any z, and each part is kept or dropped."""
    rng = np.random.default_rng(0)
    for shape in SHAPES:
        form, (equations, right) = compact_form(shape), marginal_rows(shape)
        mu = form.start + form.matrix @ rng.normal(size=len(form.kept))
        assert np.abs(equations @ mu - right).max() < 1e-12
        assert sorted([*form.kept, *form.dropped]) == list(range(len(mu)))
    assert compact_form(COMPLETE).matrix.shape[1] == 6 + 15


def test_answers_do_not_depend_on_earlier_calls() -> None:
    """Warm = cold, bit by bit: the same questions in another order, after others, and to new models; ties too."""
    questions = [(shape, np.round(scores, 1)) for shape, scores in cases(40, seed=9)]
    questions += [(shape, np.zeros(graph_of(shape).n_parts)) for shape in SHAPES]
    rng = np.random.default_rng(0)

    def ask(order: np.ndarray, forget: bool) -> dict[int, tuple[bytes, float]]:
        answers = {}
        for q in order.tolist():
            shape, scores = questions[q]
            if forget:
                kept_models().clear()
            try:
                value = RelaxedMRF().argmax_bound(scores, shape)[1]
                answers[q] = RelaxedMRF().argmax_relaxed(scores, shape).tobytes(), value
            except InfeasibleError:
                answers[q] = b"", 0.0
        return answers

    first = ask(np.arange(len(questions)), forget=True)
    for _ in range(3):
        again = ask(rng.permutation(len(questions)), forget=False)
        assert {q: mu for q, (mu, _) in again.items()} == {q: mu for q, (mu, _) in first.items()}
        assert all(abs(again[q][1] - first[q][1]) <= 1e-11 * (1 + abs(first[q][1])) for q in first)


def test_two_threads_give_the_answers_of_one() -> None:
    """Each thread has models of its own."""
    questions = list(cases(30, seed=4))

    def answers(out: list[bytes]) -> None:
        for shape, scores in questions:
            try:
                out.append(RelaxedMRF().argmax_relaxed(scores, shape).tobytes())
            except InfeasibleError:
                out.append(b"")

    found: list[list[bytes]] = [[], [], []]
    answers(found[0])
    threads = [threading.Thread(target=answers, args=(out,)) for out in found[1:]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found[1] == found[0]
    assert found[2] == found[0]


def test_kept_models_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread forgets the models it has not used for longest once they are too many; a single large one is kept."""
    monkeypatch.setattr(programs, "KEPT_PARTS", 300)
    kept_models().clear()
    for n in range(2, 12):
        shape = graph_shape(n, 5, [(0, 1)])
        RelaxedMRF().argmax_relaxed(np.arange(graph_of(shape).n_parts, dtype=np.float64), shape)
        assert len(kept_models()) == 1 or sum(graph_of(s).n_parts for s, _ in kept_models()) <= 300
    assert next(reversed(kept_models())) == (graph_shape(11, 5, [(0, 1)]), 0)


def test_grids_by_both_solvers() -> None:
    """The first-order method comes to the simplex method's value on a grid, and its point is exactly in the polytope."""
    shape, rng = grid(8, 9, 3), np.random.default_rng(0)
    for _ in range(3):
        scores = rng.normal(size=graph_of(shape).n_parts)
        simplex, first_order = (SOLVERS[name].argmax_bound(scores, shape)[1] for name in SOLVERS)
        assert first_order == pytest.approx(simplex, rel=1e-6)
        (equations, right), mu = marginal_rows(shape), SOLVERS["first order"].argmax_relaxed(scores, shape)
        assert np.abs(equations @ mu - right).max() < 1e-14 * 100
        assert mu.min() >= 0.0


BAD: dict[str, tuple[Callable[[RelaxedMRF, np.ndarray], object], type[Exception], str]] = {
    "NaN scores": (lambda o, s: o.argmax(np.full_like(s, np.nan), COMPLETE), DataError, "scores must be finite"),
    "infinite scores": (lambda o, s: o.argmax_relaxed(np.full_like(s, np.inf), COMPLETE), DataError, "scores must be finite"),
    "too few scores": (lambda o, s: o.argmax_bound(s[1:], COMPLETE), DataError, "expected 72 scores"),
    "NaN rows": (lambda o, s: _within(o, s, np.full((1, len(s)), np.nan), [1.0]), DataError, "coefficients A must be finite"),
    "NaN limits": (lambda o, s: _within(o, s, np.ones((1, len(s))), [np.nan]), DataError, "limits b must not be NaN"),
    "rows of another size": (lambda o, s: _within(o, s, np.ones((1, 3)), [1.0]), ParameterError, r"A must have shape \(1, 72\)"),
    "more limits than rows": (lambda o, s: _within(o, s, np.ones((1, len(s))), [1.0, 2.0]), ParameterError, r"\(2, 72\)"),
    "all forbidden": (lambda o, s: o.argmax(np.full_like(s, FORBIDDEN), COMPLETE), InfeasibleError, "every output"),
}


def _within(oracle: RelaxedMRF, scores: np.ndarray, A: np.ndarray, b: list[float]) -> object:
    return oracle.argmax_relaxed_constrained(scores, COMPLETE, A, b)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_told(solver: str, name: str) -> None:
    """What cannot be solved is said in words, and the same for both solvers."""
    call, error, message = BAD[name]
    with pytest.raises(error, match=message):
        call(SOLVERS[solver], np.zeros(graph_of(COMPLETE).n_parts))


def test_limits_that_are_infinite() -> None:
    """A row with the limit inf is no row; with -inf nothing is left; no rows at all is the relaxation."""
    scores = np.random.default_rng(0).normal(size=graph_of(CYCLE).n_parts)
    plain = RelaxedMRF().argmax_relaxed(scores, CYCLE)
    rows = np.ones((1, len(scores)))
    for A, b in ((rows, [np.inf]), (np.zeros((0, len(scores))), [])):
        assert np.array_equal(RelaxedMRF().argmax_relaxed_constrained(scores, CYCLE, A, b), plain)
    assert RelaxedMRF().argmax_relaxed_constrained(scores, CYCLE, rows, [-np.inf]) is None
    nothing = np.full(len(scores), FORBIDDEN)
    assert RelaxedMRF().argmax_relaxed_constrained(nothing, CYCLE, rows, [1e9]) is None


def test_settings_are_checked() -> None:
    """Sizes and accuracies out of range are refused."""
    for settings in ({"pdlp_from": -1}, {"tol": 0.0}, {"tol": 2.0}, {"max_iterations": 0}):
        with pytest.raises(ParameterError, match="expected pdlp_from >= 0, 0 < tol < 1 and max_iterations >= 1"):
            RelaxedMRF(**settings)


@pytest.mark.parametrize(
    ("pdlp_from", "message"), [(0, "PDLP did not reach the relative accuracy 1e-09"), (10**6, "GLOP did not")]
)
def test_giving_up_is_told(pdlp_from: int, message: str) -> None:
    """A run that is cut short by its limit raises, and names the limit; it never passes for an optimum."""
    shape = grid(4, 4, 3)
    scores = np.random.default_rng(0).normal(size=graph_of(shape).n_parts)
    with pytest.raises(ConvergenceError, match=rf"{message}.*max_iterations=10\b"):
        RelaxedMRF(pdlp_from=pdlp_from, tol=1e-9, max_iterations=10).argmax_bound(scores, shape)


def colouring(rng: np.random.Generator, n: int, colours: npt.NDArray[np.int64]) -> tuple[Shape, npt.NDArray[np.float64]]:
    """Normal scores, neighbours must differ: a graph of n nodes that has the given colours as an output."""
    pairs = [(i, j) for i in range(n) for j in range(i + 1, n) if colours[i] != colours[j] and rng.random() < 0.7]
    shape = graph_shape(n, 3, pairs)
    scores = rng.normal(size=graph_of(shape).n_parts)
    scores[3 * n :].reshape(-1, 3, 3)[:, range(3), range(3)] = FORBIDDEN
    return shape, scores


@pytest.mark.slow
@pytest.mark.parametrize("oracle", SOLVERS.values(), ids=SOLVERS)
def test_labels_never_have_a_forbidden_part(oracle: RelaxedMRF) -> None:
    """Where rounding puts equal colours side by side, the labels of all methods are allowed ones, and the bound is above them."""
    rng, rounded_wrongly = np.random.default_rng(1), 0
    for _ in range(30):
        shape, scores = colouring(rng, 9, rng.integers(0, 3, 9))
        graph, (labels, value) = graph_of(shape), oracle.argmax_bound(scores, shape)
        for found in (labels, oracle.argmax(scores, shape)):
            assert (scores[graph.parts(found)] > 0.5 * FORBIDDEN).all()
        assert 0.0 <= value - scores[graph.parts(labels)].sum() + 1e-9 < 100.0
        given, allowed = allowed_parts(scores, shape)
        rounded_wrongly += not allowed[graph.parts(rounded(graph, given, allowed, oracle.argmax_relaxed(scores, shape)))].all()
    assert rounded_wrongly >= 3


@pytest.mark.parametrize("oracle", SOLVERS.values(), ids=SOLVERS)
def test_no_labels_at_all_is_told(oracle: RelaxedMRF) -> None:
    """A triangle with two colours: the relaxation has points, but no output is allowed, which is proven and said."""
    shape = graph_shape(3, 2, [(0, 1), (0, 2), (1, 2)])
    scores = np.array([0.0] * 6 + [FORBIDDEN, 0.0, 0.0, FORBIDDEN] * 3)
    assert oracle.argmax_relaxed(scores, shape)[:6] == pytest.approx(0.5)
    for ask in (oracle.argmax, oracle.argmax_bound):
        with pytest.raises(InfeasibleError, match="every output uses a forbidden part"):
            ask(scores, shape)


def test_the_search_for_allowed_labels_ends() -> None:
    """Five nodes that must differ have no labels of four states, which is proven, or told to be open after a few choices."""
    shape = graph_shape(5, 4, [(i, j) for i in range(5) for j in range(i + 1, 5)])
    graph = graph_of(shape)
    allowed = np.concatenate((np.ones(20, bool), np.tile(~np.eye(4, dtype=bool).ravel(), 10)))
    assert allowed_labels(graph, allowed, np.zeros(5, np.int64)) is None
    with pytest.raises(ConvergenceError, match="after 2 choices were undone; use CpSatMRF"):
        allowed_labels(graph, allowed, np.zeros(5, np.int64), limit=2)
    four = graph_of(graph_shape(4, 4, [(i, j) for i in range(4) for j in range(i + 1, 4)]))
    allowed = np.concatenate((np.ones(16, bool), np.tile(~np.eye(4, dtype=bool).ravel(), 6)))
    found = allowed_labels(four, allowed, np.zeros(4, np.int64))
    assert found is not None
    assert sorted(found.tolist()) == [0, 1, 2, 3]


def test_a_missing_solver_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without OR-Tools the error says who needs it and how to install it."""
    monkeypatch.setattr("structpred.runtime.dependencies.installed_version", lambda name: None)
    kept_models().clear()
    check_ortools.cache_clear()
    for oracle in SOLVERS.values():
        with pytest.raises(DependencyError, match=r"RelaxedMRF needs ortools.*structpred\[solvers\]"):
            oracle.argmax(np.zeros(graph_of(CYCLE).n_parts), CYCLE)
