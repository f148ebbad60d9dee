"""The slack-rescaled hinge as a surrogate: values, slopes, offsets and bounds, for every oracle, plain and compiled."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from slack_cases import DIRECT, TASKS, all_points, chains, hinges, parts_task, sloppy, without

from structpred.core.sparse import sparse_dot
from structpred.errors import MissingCapabilityError, ParameterError
from structpred.oracles.assignment import AssignmentOracle
from structpred.oracles.chain import ChainOracle
from structpred.slack.ledger import Goal
from structpred.slack.surrogate import LabelCache, SlackRescaling
from structpred.slack.task_problem import TaskProblem
from structpred.task.callback_task import CallbackTask
from structpred.trainers.bcfw import BCFW
from structpred.trainers.loop import RunSettings, train
from structpred.trainers.n_slack import NSlackCuttingPlane
from structpred.trainers.problem import Problem


def weights(task: Any, seed: int, size: float = 0.4) -> np.ndarray:
    """Random weights."""
    return size * np.random.default_rng(seed).normal(size=task.dim)


@pytest.mark.mostly_slow
@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize("scale", [1.0, 0.3])
def test_steps_are_pieces_of_the_hinge(name: str, scale: float) -> None:
    """difference = loss * psi of the output found, offset = its loss, violation = its product, bound >= the hinge."""
    task, surrogate = TASKS[name](0), SlackRescaling()
    w = weights(task, 0)
    for i, top in enumerate(hinges(task, scale * w)):
        step = surrogate.term(task, w, i, scale)
        assert step.violation == pytest.approx(surrogate.offset(step) - scale * sparse_dot(w, step.difference), abs=1e-12)
        assert step.bound >= max(step.violation, top - 1e-9)
        assert step.violation <= top + 1e-9
        outputs, h, g = all_points(task, scale * w, i)
        pieces = [g[k] * task.difference(i, y).dense(task.dim) for k, y in enumerate(outputs)]
        fits = [
            k
            for k in range(len(outputs))
            if np.allclose(pieces[k], step.difference.dense(task.dim), atol=1e-9) and g[k] == pytest.approx(step.loss)
        ]
        assert any(step.violation == pytest.approx(max(h[k], 0.0) * g[k], abs=1e-9) for k in fits)
        assert (np.diff(step.difference.indices) > 0).all()


@pytest.mark.parametrize("name", TASKS)
def test_values_are_upper_bounds(name: str) -> None:
    """`values` is the hinge where searches are exact, and never below it anywhere."""
    task = TASKS[name](1)
    w = weights(task, 1)
    values, tops = SlackRescaling().values(task, w), hinges(task, w)
    assert (values >= tops - 1e-9).all()
    if name in ("chains", "chains, plain", "enumerated", "enumerated, constrained", "enumerated, bounded"):
        np.testing.assert_allclose(values, tops, atol=1e-9)


@pytest.mark.parametrize("method", ["hull", "bisecting", "binary", "auto"])
@pytest.mark.parametrize("limits", [{}, {"max_queries": 1}, {"rel": 0.1, "abs": 0.01}])
def test_values_hold_for_every_search(method: str, limits: dict[str, Any]) -> None:
    """Searches that miss outputs, or are cut short, still give upper bounds."""
    task = parts_task(5, AssignmentOracle(), (4,), n=10)
    w = weights(task, 5)
    assert (SlackRescaling(method, **limits).values(task, w) >= hinges(task, w) - 1e-9).all()


@pytest.mark.parametrize("name", ["chains", "enumerated", "enumerated, constrained"])
def test_slopes_are_the_gradient(name: str) -> None:
    """Central differences of the hinge along random directions equal -<difference, direction>."""
    task, surrogate = TASKS[name](2), SlackRescaling()
    w, rng = weights(task, 2), np.random.default_rng(0)
    for i in range(len(task)):
        step = surrogate.term(task, w, i)
        for _ in range(3):
            d = rng.normal(size=task.dim)
            up, down = (surrogate.term(task, w + e * d, i).violation for e in (1e-6, -1e-6))
            assert (up - down) / 2e-6 == pytest.approx(-step.difference.dense(task.dim) @ d, abs=1e-6)


def test_plain_and_compiled_tasks_give_the_same_steps() -> None:
    """To the last bit, on chains."""
    compiled, plain = chains(3), chains(3, compiled=False)
    w = weights(compiled, 3)
    for i in range(len(plain)):
        a, b = (SlackRescaling().term(task, w, i, 0.7) for task in (compiled, plain))
        assert [x.tobytes() for x in (*a.difference, *(np.float64(v) for v in a[1:]))] == [
            x.tobytes() for x in (*b.difference, *(np.float64(v) for v in b[1:]))
        ]


def test_without_a_violator_the_corner_is_the_truth() -> None:
    """Where the truth wins by a margin the step is empty; its offset, its value and the bound of an exact search are zero."""
    task, surrogate, seen = TASKS["enumerated"](0), SlackRescaling(), 0
    for i in range(len(task)):
        towards = sum(task.difference(i, y).dense(task.dim) for y in all_points(task, np.zeros(task.dim), i)[0])
        w = 1e4 * towards
        if hinges(task, w)[i] == 0.0:
            step = surrogate.term(task, w, i)
            assert (len(step.difference.indices), surrogate.offset(step), step.violation) == (0, 0.0, 0.0)
            assert step.bound == pytest.approx(0.0, abs=1e-9)
            seen += 1
    assert seen


def test_an_empty_step_keeps_its_bound() -> None:
    """Where a plain search finds nothing but cannot prove it, the step is empty and its bound stays above zero."""
    task, seen = TASKS["multiclass"](0), 0  # label costs that are no whole numbers
    for i in range(len(task)):
        towards = sum(task.difference(i, y).dense(task.dim) for y in all_points(task, np.zeros(task.dim), i)[0])
        if hinges(task, 30.0 * towards)[i] == 0.0:
            without_search = SlackRescaling("hull", max_queries=2)
            step = without_search.term(task, 30.0 * towards, i)
            assert len(step.difference.indices) == 0
            assert step.bound == without_search.search(task, 30.0 * towards, i).upper_bound > 0.0
            seen += 1
    assert seen


def test_bcfw_still_steps_towards_the_truth() -> None:
    """An empty step moves the block's weights and offset towards zero; it is not skipped."""
    task = TASKS["enumerated"](0)
    problem, trainer = Problem(task, SlackRescaling(), 0.3), BCFW(averaged=False)
    state = trainer.init_state(problem)
    for k in range(6):
        state, _ = trainer.update(problem, state, k % len(task))
    assert state.offsets[0] > 0
    state.weights.v[:] += 1e3 * task.difference(0, all_points(task, state.weights.v, 0)[0][0]).dense(task.dim)  # far on one side
    for y in all_points(task, state.weights.v, 0)[0]:
        state.weights.v[:] += 1e4 * task.difference(0, y).dense(task.dim)
    assert hinges(task, state.weights.v)[0] == 0.0
    before = float(state.offsets[0]), np.abs(state.blocks.block(0)[1]).sum()
    state, changed = trainer.update(problem, state, 0)
    assert changed
    assert state.offsets[0] < before[0]
    assert np.abs(state.blocks.block(0)[1]).sum() < before[1]


def test_thresholds_prove_or_find() -> None:
    """term_above: either the bound is at most the threshold, or the piece found is above it; fewer queries than without."""
    task = parts_task(4, without(AssignmentOracle(), *DIRECT), (4,), n=12)
    w = weights(task, 4)
    asked: dict[float | None, int] = {}
    for factor in (0.8, 1.2, None):
        surrogate = SlackRescaling("angular")
        for i, top in enumerate(hinges(task, w)):
            xi = None if factor is None else factor * top
            step = surrogate.term_above(task, w, i, xi)
            if xi is not None and top > 0:
                assert (step.bound <= xi * (1 + 1e-12)) == (factor == 1.2)
                assert (step.violation > xi) == (factor == 0.8)
            result = surrogate.search(task, w, i, threshold=xi)
            asked[factor] = asked.get(factor, 0) + result.n_constrained
    assert asked[1.2] < asked[None]


def test_a_cache_saves_queries_and_changes_no_value() -> None:
    """The best output found before, at slightly other weights, begins the next search: fewer queries, the same maxima."""
    task = parts_task(6, without(AssignmentOracle(), *DIRECT), (4,), n=10)
    w, counts = weights(task, 6), {}
    for size in (0, 3):
        surrogate, counts[size] = SlackRescaling("angular", cache_size=size), 0
        for k in range(4):
            now = w * (1 + 0.01 * k)
            for i, top in enumerate(hinges(task, now)):
                counts[size] += surrogate.search(task, now, i).n_constrained
                assert surrogate.term(task, now, i).violation == pytest.approx(top, rel=1e-9)
    assert counts[3] < counts[0]


def test_the_cache_forgets_copies_and_repeats() -> None:
    """At most `size` different outputs an instance, the newest first; copies and pickles are empty, and print alike."""
    task = TASKS["enumerated"](0)
    cache, problem = LabelCache(2), TaskProblem(task, weights(task, 0), 0)
    assert cache.best(task, 0, problem) is None
    outputs = list(task.oracle.enumerate(task.shapes[0]))
    violating = [y for y in outputs if problem.rescore(y).phi > 0]
    for y in (violating[0], violating[1], violating[0], violating[2]):
        cache.keep(task, 0, y)
    best = cache.best(task, 0, problem)
    assert best is not None
    assert best.phi == max(problem.rescore(y).phi for y in (violating[0], violating[2]))
    assert cache.best(task, 1, TaskProblem(task, weights(task, 0), 1)) is None
    for other in (copy.deepcopy(cache), pickle.loads(pickle.dumps(cache))):
        assert other.best(task, 0, problem) is None
        assert repr(other) == repr(cache) == "LabelCache(2)"
    with pytest.raises(ParameterError, match="cache"):
        LabelCache(-1)


def test_proof_is_claimed_only_where_bounds_hold() -> None:
    """An inexact oracle without bounds is no proof; with bounds, or with an exact way to maximise the product, it is."""
    bare, bounded = (parts_task(0, sloppy(AssignmentOracle(), b), (4,)) for b in (False, True))
    surrogate = SlackRescaling()
    assert not surrogate.certified(bare)
    assert surrogate.certified(bounded)
    inexact: Any = without(AssignmentOracle(), "argmax_per_loss")
    inexact.exact = False
    task = parts_task(0, inexact, (4,))
    assert not task.certified
    assert surrogate.certified(task)  # argmax_product is exact by its contract
    assert not SlackRescaling("hull").certified(task)
    results = [train(Problem(t, surrogate, 0.1), BCFW(), RunSettings(max_iter=3)) for t in (bare, bounded, task)]
    assert [r.certificate.proven for r in results] == [False, True, True]
    assert all(np.isfinite(r.certificate.primal) for r in results)
    assert "an estimate, not a proof" in str(results[0].certificate)


@pytest.mark.slow
def test_a_task_of_three_functions_is_trained() -> None:
    """Losses that do not split over parts: plain queries and a gap that is valid; what needs more is refused."""
    rng, eye = np.random.default_rng(0), np.eye(3)
    xs, ys = rng.normal(size=(12, 2)), rng.integers(0, 3, 12).tolist()

    def phi(x: Any, y: int) -> Any:
        return np.kron(eye[y], x)

    def best(w: Any, x: Any, y: int, loss_weight: float) -> int:
        return max(range(3), key=lambda k: w @ phi(x, k) + loss_weight * (y != k))

    task = CallbackTask(list(xs), ys, 6, phi, lambda y, k: float(y != k), best)
    result = train(Problem(task, SlackRescaling(), 1.0), BCFW(), RunSettings(max_iter=20))
    other = train(Problem(task, SlackRescaling("binary"), 1.0), BCFW(), RunSettings(max_iter=5))
    planes = train(Problem(task, SlackRescaling("sarawagi"), 1.0), NSlackCuttingPlane(precision=1e-3), RunSettings(max_iter=20))
    assert result.certificate.proven
    assert 0 < result.certificate.dual < result.certificate.primal
    assert planes.certificate.dual == pytest.approx(result.certificate.dual, rel=1e-2)
    assert other.certificate.primal >= result.certificate.dual
    with pytest.raises(MissingCapabilityError, match="offers argmax alone"):
        train(Problem(task, SlackRescaling("angular"), 0.1), BCFW())
    with pytest.raises(MissingCapabilityError, match="argmax_relaxed"):
        SlackRescaling(relaxed=True).term(task, np.zeros(6), 0)


@pytest.mark.parametrize(("method", "needed"), [("angular", "argmax_constrained"), ("direct", "argmax_product")])
def test_training_is_refused_before_it_starts(method: str, needed: str) -> None:
    """A search that the oracle cannot serve is a MissingCapabilityError of the surrogate, not of the first step."""
    task = parts_task(0, AssignmentOracle(), (3,))
    with pytest.raises(MissingCapabilityError, match=f"surrogate SlackRescaling needs {needed} or .*AssignmentOracle"):
        train(Problem(task, SlackRescaling(method), 0.1), BCFW())


@pytest.mark.parametrize("options", [
    {"method": "golden"}, {"rel": -1.0}, {"abs": np.nan}, {"max_queries": 0}, {"max_queries": 1.5},
    {"cache_size": -1}, {"cache_size": True},
])  # fmt: skip
def test_settings_are_checked(options: dict[str, Any]) -> None:
    """What makes no sense is a ParameterError when the surrogate is made."""
    with pytest.raises(ParameterError):
        SlackRescaling(**options)


def test_goals_and_starts_are_checked() -> None:
    """Infinite thresholds and a start at lam <= 0 are refused."""
    from point_sets import Points

    from structpred.slack.search import search

    with pytest.raises(ParameterError, match="threshold"):
        Goal(threshold=np.inf)
    for lam0 in (0.0, -1.0, np.inf, np.nan):
        with pytest.raises(ParameterError, match="lam0"):
            search(Points([1, 2], [0, 1]), lam0=lam0)
    with pytest.raises(ParameterError, match="expected 'auto' or one of angular, hull"):
        search(Points([1, 2], [0, 1]), "golden")
    with pytest.raises(ParameterError, match="needs a threshold > 0"):
        search(Points([1, 2], [0, 1]), "sarawagi")


def test_long_chains_count_their_errors() -> None:
    """Hundred positions: the search is one call, and its value is that of the output, recomputed from weights and features."""
    task = chains(0, n=2, longest=100, oracle=ChainOracle())
    w = weights(task, 0)
    for i in range(2):
        result = SlackRescaling().search(task, w, i)
        psi = task.difference(i, result.label)
        assert (result.method, result.exact) == ("direct", True)
        assert result.phi == pytest.approx((1 - sparse_dot(w, psi)) * (result.label != task.labels[i]).sum(), rel=1e-9)
