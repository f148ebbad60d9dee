"""Queries about one instance of a task: each is the maximum it says, by enumeration; angles lose and repeat nothing."""

from typing import Any

import numpy as np
import pytest
from slack_cases import CONSTRAINED, DIRECT, TASKS, PlainTrees, all_points, chains, costs, hinges, parts_task, sloppy, without

from structpred.core.fixed_scores import FORBIDDEN
from structpred.errors import MissingCapabilityError, OracleError
from structpred.objectives.part_losses import Hamming
from structpred.oracles.arborescence import ArborescenceOracle
from structpred.oracles.assignment import AssignmentOracle
from structpred.oracles.chain import ChainOracle
from structpred.oracles.enumerated import EnumeratedOracle
from structpred.slack.problem import Candidate, StepProblem
from structpred.slack.search import search
from structpred.slack.task_problem import TaskProblem, oracle_needs
from structpred.task.callback_task import CallbackTask
from structpred.task.task import Task

OFFERS = {
    "chains": {"levels", "constrained", "kbest"},
    "chains, costs": {"slack_argmax", "kbest"},
    "matchings": {"slack_argmax"},
    "matchings, plain": set(),
    "matchings, lists": {"kbest"},
    "trees": {"slack_argmax"},
    "trees, constrained": {"slack_argmax", "constrained", "kbest"},
    "enumerated": {"levels", "constrained", "slack_argmax", "kbest"},
    "enumerated, constrained": {"constrained", "kbest"},
    "enumerated, bounded": {"constrained", "kbest"},
    "inexact with bounds": set(),
}


def weights(task: Any, seed: int, size: float = 0.4) -> np.ndarray:
    """Random weights."""
    return size * np.random.default_rng(seed).normal(size=task.dim)


@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize("seed", [0, 1])
def test_plain_queries_are_maxima(name: str, seed: int) -> None:
    """h and g are those of the output, the bound is not exceeded by any, and an exact oracle reaches it, for lam of any size."""
    task = TASKS[name](seed)
    w = weights(task, seed)
    for i in range(len(task)):
        problem = TaskProblem(task, w, i)
        outputs, h, g = all_points(task, w, i)
        assert problem.rescore(task.labels[i])[:2] == pytest.approx((1.0, 0.0), abs=1e-12)
        for lam in (1e-4, 0.3, 1.0, 7.0, 1e5):
            found = problem.plain(lam)
            k = next(k for k, y in enumerate(outputs) if np.array_equal(y, found.label))
            assert (found.h, found.g) == pytest.approx((h[k], g[k]), abs=1e-10)
            top = (h + lam * g).max()
            assert found.bound >= top - 1e-9 * abs(top)
            if task.oracle.exact:
                assert found.bound == found.value(lam) == pytest.approx(top, rel=1e-9)


@pytest.mark.parametrize("name", OFFERS)
def test_what_is_offered(name: str) -> None:
    """What can be asked follows from the oracle's methods and the loss."""
    assert TaskProblem(TASKS[name](0), np.zeros(TASKS[name](0).dim), 0).offers == OFFERS[name]


@pytest.mark.parametrize("name", [name for name, offers in OFFERS.items() if "constrained" in offers])
def test_angles_are_exact_and_complementary(name: str) -> None:
    """The two sides of any ray hold every output with h, g > 0 once, also where the ray goes through an output."""
    task = TASKS[name](3)
    w = weights(task, 3)
    for i in range(len(task)):
        problem = TaskProblem(task, w, i)
        _, h, g = all_points(task, w, i)
        positive = np.flatnonzero((h > 0) & (g > 0))
        for k in positive[:6]:
            at = problem.rescore(all_points(task, w, i)[0][k])
            r = at.g / at.h  # exactly the slope of an output
            above, below = problem.constrained(1.0, np.inf, r, True), problem.constrained(1.0, r, 0.0, False)
            values = [one.value(1.0) for one in (above, below) if one is not None]
            assert max(values) == pytest.approx((h + g)[positive].max(), rel=1e-9)
            if above is not None:
                assert above.g >= r * above.h * (1 - 1e-12)
            if below is not None:
                assert 0 < below.g < r * below.h * (1 + 1e-12)
            if "chains" not in name:  # chains choose among the best of each loss
                inside = positive[(g[positive] < r * h[positive] * (1 - 1e-9))]
                best = (h + 2.0 * g)[inside].max(initial=-np.inf)
                found = problem.constrained(2.0, r * (1 - 1e-9), 0.0, False)
                assert (-np.inf if found is None else found.value(2.0)) == pytest.approx(best, rel=1e-9)


def test_rows_of_one_ray_exclude_each_other() -> None:
    """For any mu, exactly one of "below the ray" and "on or above it" holds as float64 computes the rows."""
    task = TASKS["enumerated"](1)
    rng = np.random.default_rng(0)
    problem = TaskProblem(task, weights(task, 1), 0)
    table = task.oracle.table(task.shapes[0]).counts.toarray()
    for _ in range(50):
        _, h, g = all_points(task, weights(task, 1), 0)
        k = int(rng.integers(len(h)))
        r = float(abs(g[k] / h[k])) or 0.7
        upper_rows, upper = problem.angle_rows(r, 0.0, False)
        lower_rows, lower = problem.angle_rows(np.inf, r, True)
        for mu in table:
            assert (upper_rows[0] @ mu <= upper[0]) != (lower_rows[1] @ mu <= lower[1])


def test_lower_ends_are_kept_or_left_out_as_asked() -> None:
    """At zero weights h is 1 and slopes are losses: what lies on the lower end is found if it is included, and only then."""
    for name in ("enumerated, constrained", "enumerated, bounded", "chains"):
        task = TASKS[name](0)
        i = max(range(len(task)), key=lambda k: task.shapes[k][0])  # the longest
        problem = TaskProblem(task, np.zeros(task.dim), i)
        top = float(all_points(task, np.zeros(task.dim), i)[2].max())
        assert problem.constrained(1.0, top + 0.5, top, False) is None
        found = problem.constrained(1.0, top + 0.5, top, True)
        assert found is not None
        assert found.g == top
        assert problem.constrained(1.0, top, top - 0.5, True) is None or name == "chains"


def test_open_angles_keep_out_what_has_no_product() -> None:
    """alpha = inf rules out h <= 0, beta = 0 rules out g = 0, whatever their value is."""
    task = TASKS["enumerated"](2)
    w = weights(task, 2, 0.5)
    best = [task.argmax(w, i) for i in range(len(task))]  # where the truth is the best output, many others have h < 0
    task = Task(task.features, task.oracle, best, task.shapes, task.loss)
    seen = 0
    for i in range(len(task)):
        problem = TaskProblem(task, w, i)
        _, h, g = all_points(task, w, i)
        for lam in (1e-3, 1.0, 1e4):
            found = problem.constrained(lam, np.inf, 0.0, False)
            allowed = (h > 0) & (g > 0)
            assert (found is not None) == allowed.any()
            if found is not None:
                assert min(found.h, found.g) > 0
                assert found.value(lam) == pytest.approx((h + lam * g)[allowed].max(), rel=1e-9)
                seen += int((h + lam * g).max() > found.value(lam) + 1e-6)
    assert seen  # somewhere a plain query would have found another


def test_forbidden_outputs_are_not_found() -> None:
    """Parts with a score of -1e30 stay out of every query, rows included."""
    task = TASKS["enumerated"](4)
    truth = set(task.parts[0].tolist())
    barred = next(p for p in range(16) if p not in truth)
    fixed = np.zeros(16)
    fixed[barred] = FORBIDDEN
    task.features.fixed_scores = lambda i: fixed  # type: ignore[method-assign]
    w = weights(task, 4)
    problem = TaskProblem(task, w, 0)
    found = [problem.plain(1e6), problem.constrained(1.0, np.inf, 0.0, False), problem.constrained(3.0, 1e9, 1e-9, True)]
    found.append(problem.slack_argmax())
    for one in found:
        assert one is not None
        assert barred not in task.oracle.parts(one.label, task.shapes[0])
    only = without(AssignmentOracle(), *DIRECT)
    two = Task(task.features, only, task.labels, [(4,)] * 6, Hamming())
    fixed[[p for p in range(16) if p not in truth]] = FORBIDDEN  # the truth alone is left
    assert TaskProblem(two, w, 0).constrained(1.0, np.inf, 0.0, False) is None
    assert search(TaskProblem(two, w, 0), "angular").phi == 0.0


@pytest.mark.mostly_slow
@pytest.mark.parametrize("name", TASKS)
def test_auto_search_equals_enumeration(name: str) -> None:
    """The best search that the oracle allows: exact where it says so, and a bound that always holds."""
    exact = 0
    for seed in range(4):
        task = TASKS[name](seed)
        w = weights(task, seed)
        for i, top in enumerate(hinges(task, w)):
            result = search(TaskProblem(task, w, i))
            assert result.upper_bound >= top - 1e-9
            assert result.phi <= top + 1e-9
            assert not result.exact or result.phi == pytest.approx(top, abs=1e-9)
            exact += result.exact
            outputs, h, g = all_points(task, w, i)
            k = next(k for k, y in enumerate(outputs) if np.array_equal(y, result.label))
            assert (result.h, result.g) == pytest.approx((h[k], g[k]), abs=1e-9)
    if OFFERS.get(name, {"x"}) and name != "enumerated, bounded" and name not in ("multiclass",):
        assert exact == 24


@pytest.mark.slow
def test_counting_errors_is_exact_on_chains() -> None:
    """200 random chains with Hamming loss: the largest h for every number of errors, and the maximum, equal enumeration."""
    task = chains(11, n=200, longest=5)
    w = weights(task, 11, 0.5)
    for i, top in enumerate(hinges(task, w)):
        problem = TaskProblem(task, w, i)
        _, h, g = all_points(task, w, i)
        levels = problem.levels()
        assert levels.g.tolist() == np.unique(g).tolist()
        np.testing.assert_allclose(levels.h, [h[g == one].max() for one in levels.g], atol=1e-9)
        result = search(problem)
        assert (result.method, result.exact) == ("direct", True)
        assert result.phi == pytest.approx(top, abs=1e-9)
        for method in ("angular", "hybrid"):  # among the best of each loss: still exact
            assert search(problem, method).phi == pytest.approx(top, abs=1e-9)


def test_losses_with_a_common_divisor_are_counted_in_it() -> None:
    """Costs of 0 and 100 make as many levels as costs of 0 and 1."""
    from structpred.objectives.part_losses import LabelCosts

    task = chains(5, loss=LabelCosts(100.0 * (1 - np.eye(3))))
    asked: list[Any] = []

    class Spy(ChainOracle):
        def argmax_per_loss(self, scores: Any, costs: Any, shape: Any) -> Any:
            asked.append(costs.max())
            return super().argmax_per_loss(scores, costs, shape)

    spied = Task(task.features, Spy(), task.labels, task.shapes, task.loss)
    w = weights(task, 5, 0.1)
    for i, top in enumerate(hinges(task, w)):
        assert search(TaskProblem(spied, w, i)).phi == pytest.approx(top, rel=1e-9)
    assert set(asked) == {1.0}


@pytest.mark.mostly_slow
@pytest.mark.parametrize("size", [0.2, 0.4, 1.0])
def test_trees_give_a_valid_certificate(size: float) -> None:
    """Dependency trees by plain queries: the bound always holds, "exact" is said of maxima only, and both cases occur."""
    exact, found_all, n = 0, 0, 0
    for seed in range(20):
        task = parts_task(seed, PlainTrees(), (4,), n=6)
        w = weights(task, seed, size)
        for i, top in enumerate(hinges(task, w)):
            result = search(TaskProblem(task, w, i), "hull")
            assert result.upper_bound >= top * (1 - 1e-9)
            assert not result.exact or result.phi == pytest.approx(top, rel=1e-9)
            assert result.status == ("proven" if result.exact else "exhausted")
            exact, found_all, n = exact + result.exact, found_all + (result.phi >= top * (1 - 1e-9)), n + 1
    assert 0.5 * n < exact
    assert exact < n or size == 0.2
    assert found_all > 0.9 * n


def test_trees_with_constrained_queries_are_exact() -> None:
    """Dependency trees under two rows: angular and hybrid search equal enumeration, and say that it is proven."""
    for seed in range(10):
        task = parts_task(seed, ArborescenceOracle(), (4,), n=4)
        w = weights(task, seed, 1.0)
        for i, top in enumerate(hinges(task, w)):
            for method in ("hybrid", "angular"):
                result = search(TaskProblem(task, w, i), method)
                assert result.phi == pytest.approx(top, rel=1e-9, abs=1e-12)
                assert result.exact


def test_an_inexact_oracle_without_bounds_claims_nothing() -> None:
    """The upper bound is infinite, and nothing is called exact."""
    task = parts_task(0, sloppy(AssignmentOracle(), False), (4,))
    w = weights(task, 0)
    for i in range(len(task)):
        for method in ("hull", "bisecting", "binary"):
            result = search(TaskProblem(task, w, i), method)
            assert (result.upper_bound, result.exact) == (np.inf, False)


def test_a_bound_that_is_cut_short_is_kept() -> None:
    """argmax_constrained_bound that finds nothing, or too little, leaves a bound above phi and never below the maximum."""
    rng = np.random.default_rng(0)

    class CutShort(EnumeratedOracle):
        def argmax_constrained_bound(self, scores: Any, shape: Any, A: Any, b: Any) -> Any:
            labels, bound = super().argmax_constrained_bound(scores, shape, A, b)
            return (None if rng.random() < 0.3 else labels), bound + 0.5

    oracle: Any = CutShort.of(AssignmentOracle())
    for name in (*DIRECT, "argmax_constrained"):
        setattr(oracle, name, None)
    task = parts_task(0, oracle, (4,))
    w = weights(task, 0)
    statuses = set()
    for i, top in enumerate(hinges(task, w)):
        for method in ("angular", "hybrid"):
            result = search(TaskProblem(task, w, i), method)
            assert result.upper_bound >= top - 1e-9
            assert not result.exact or result.phi == pytest.approx(top)
            statuses.add(result.status)
    assert "exhausted" in statuses


@pytest.mark.parametrize("method", ["angular", "hybrid", "direct"])
def test_missing_capabilities_are_named(method: str) -> None:
    """Who needs what, what the oracle has, which oracles have it, and where to write it."""
    task = parts_task(0, AssignmentOracle(), (6,), n=1)  # 720 matchings, more than its example shapes have
    with pytest.raises(MissingCapabilityError, match=f"slack search '{method}' needs argmax_.*AssignmentOracle does not have"):
        search(TaskProblem(task, np.zeros(task.dim), 0), method)


def test_a_count_of_losses_serves_whole_losses_only() -> None:
    """Chains with fractional costs: the message says that argmax_per_loss is there but does not serve this loss."""
    task = chains(0, loss=costs(3))
    with pytest.raises(MissingCapabilityError, match="serves only losses of whole numbers"):
        search(TaskProblem(task, np.zeros(task.dim), 0), "angular")
    assert search(TaskProblem(task, np.zeros(task.dim), 0)).method == "direct"  # the few outputs are listed


def test_oracle_needs_are_those_of_the_protocol() -> None:
    """What the surrogate declares: alternatives for constrained and direct searches, the relaxation's own methods."""
    assert oracle_needs("hull", False) == oracle_needs("auto", False) == ("argmax",)
    assert oracle_needs("angular", False) == ("argmax", (*CONSTRAINED, "argmax_per_loss"))
    assert oracle_needs("hybrid", True) == ("argmax_relaxed", ("argmax_relaxed_constrained",))


def test_a_task_of_three_functions_is_searched_by_plain_queries() -> None:
    """A loss that does not split: hull search over the user's argmax; bounds hold, more is refused with a reason."""
    rng = np.random.default_rng(0)
    eye = np.eye(4)

    def phi(x: Any, y: int) -> Any:
        return np.kron(eye[y], x)

    def loss(y: int, k: int) -> float:
        return float((y - k) ** 2) / 3

    def best(w: Any, x: Any, y: int, loss_weight: float) -> int:
        return max(range(4), key=lambda k: w @ phi(x, k) + loss_weight * loss(y, k))

    xs, ys = rng.normal(size=(8, 3)), rng.integers(0, 4, 8).tolist()
    task = CallbackTask(list(xs), ys, 12, phi, loss, best)
    w = rng.normal(size=12)
    for i in range(8):
        h = np.array([1 + w @ phi(xs[i], k) - w @ phi(xs[i], ys[i]) for k in range(4)])
        g = np.array([loss(ys[i], k) for k in range(4)])
        top = (np.maximum(h, 0) * g).max()
        result = search(StepProblem(task, w, i))
        assert result.upper_bound >= top - 1e-9
        assert result.phi <= top + 1e-9
        assert not result.exact or result.phi == pytest.approx(top, abs=1e-9)
        assert (result.method, result.n_constrained) == ("hull", 0)
    with pytest.raises(MissingCapabilityError, match="'angular' needs constrained, but CallbackTask offers plain queries alone"):
        search(StepProblem(task, w, 0), "angular")


def test_a_relaxation_of_the_wrong_length_is_named() -> None:
    """argmax_relaxed that gives too few numbers is an OracleError with the sample and the method."""
    oracle: Any = EnumeratedOracle.of(AssignmentOracle())
    oracle.argmax_relaxed = lambda scores, shape: np.zeros(3)
    task = parts_task(0, oracle, (4,))
    with pytest.raises(OracleError, match=r"sample 2: EnumeratedOracle\.argmax_relaxed must give 16 finite numbers"):
        TaskProblem(task, np.zeros(task.dim), 2, relaxed=True).plain(1.0)


def test_candidates_count_as_nothing_below_zero() -> None:
    """Phi is 0 where h or g is not positive, also where both are negative."""
    assert [Candidate(h, g, 0).phi for h, g in ((-1.0, 2.0), (-2.0, -3.0), (2.0, 0.0), (2.0, 3.0))] == [0.0, 0.0, 0.0, 6.0]
