"""Online proximal descent: a naive dense implementation gives the same weights, and the bounds hold."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from training_cases import TASKS, chain_task, multiclass_task, optimum, problem

from structpred.core.regulariser import DualMap, Regulariser
from structpred.core.sparse import coalesced
from structpred.errors import ConvergenceError, ParameterError
from structpred.features.sequences import SequenceFeatures
from structpred.objectives.log_loss import LogLoss
from structpred.objectives.margin import MarginRescaling
from structpred.objectives.regularisers.composite import Composite
from structpred.objectives.regularisers.group_lasso import GroupLasso
from structpred.objectives.regularisers.l1 import L1
from structpred.objectives.regularisers.l2 import L2
from structpred.objectives.regularisers.mkl import MKL, ElasticNetMKL
from structpred.slack.surrogate import SlackRescaling
from structpred.task.task import Task
from structpred.trainers.corrective import Corrective
from structpred.trainers.loop import RunSettings, train
from structpred.trainers.online.grouped_weights import GroupedWeights
from structpred.trainers.online_mkl import OnlineMKL
from structpred.trainers.problem import Problem
from structpred.trainers.proximal import OnlineProximal, best_rate, regret_bound, steps_needed


def norms_of(groups, w):
    """|w_k| of each group."""
    return np.array([np.linalg.norm(w[a:b]) for a, b in pairwise(groups)])


def grouped_task(seed=0, **options):
    """A chain problem with a group for every three features, one for start and stop, and one for transitions."""
    task = chain_task(seed, **options)
    features = task.features
    data = replace(features.data, groups=np.array([0, 3, 6, 9, 12]), group_names=("a", "b", "c", "d"))
    new = SequenceFeatures(data, features.n_labels, dtype=features.dtype)
    return Task(new, task.oracle, task.labels, task.shapes, task.loss, token_weights=task.token_weights,
                sample_weight=task.sample_weight, compiled=task.inference.compiled)  # fmt: skip


def naive(prob, n_passes, seed, eta0, radius=None):
    """Algorithm 1 with dense vectors: the last w, and the mean of all."""
    task, rng = prob.task, np.random.Generator(np.random.PCG64(seed))
    w, total, t = np.zeros(task.dim), np.zeros(task.dim), 0
    for _ in range(n_passes):
        for i in rng.permutation(len(task)):
            t += 1
            eta = eta0 / np.sqrt(t)
            step = prob.surrogate.term(task, w, i)
            w = prob.regulariser.prox(w + eta * prob.share(i) * step.difference.dense(task.dim), eta * prob.lam)
            length = np.linalg.norm(w)
            w = w if radius is None or length <= radius else w * (radius / length)
            total = total + w
    return w, total / t


class Ridge(Regulariser):
    """1/2 |w|^2 by its group norms."""

    strong_convexity = 1.0

    def dual_map(self):
        return DualMap.alike(1.0)

    def group_prox(self, norms, step):
        return norms / (1.0 + step)


@pytest.mark.mostly_slow
@pytest.mark.parametrize("averaged", [True, False])
@pytest.mark.parametrize("regulariser", [MKL(), L1(0.3), Ridge()], ids=lambda r: type(r).__name__)
@pytest.mark.parametrize("surrogate", [MarginRescaling(), SlackRescaling(), LogLoss()], ids=lambda s: type(s).__name__)
def test_iterates_equal_a_dense_implementation(averaged, regulariser, surrogate) -> None:
    """Factors of groups, lists of touched coordinates and the lazy average change nothing but the speed."""
    prob = Problem(grouped_task(1, weighted=surrogate is not LogLoss), surrogate, 0.05, regulariser=regulariser)
    trainer = OnlineProximal(eta0=0.7, averaged=averaged, radius=1.5)
    result = train(prob, trainer, RunSettings(max_iter=4, seed=9))
    np.testing.assert_allclose(result.weights, naive(prob, 4, 9, 0.7, 1.5)[int(averaged)], rtol=1e-9, atol=1e-12)


@pytest.mark.slow
def test_lazy_groups_equal_naive_ones() -> None:
    """Over 400 steps in 507 groups and 260,000 dimensions: to 1e-12 in float64, the average too, and 1e-6 in float32."""
    rng = np.random.default_rng(0)
    sizes = rng.multinomial(260_000, np.ones(507) / 507)
    groups, r = np.concatenate(([0], np.cumsum(sizes))), MKL()
    r = r.grouped(groups, [str(k) for k in range(507)])
    lazy = [GroupedWeights.zeros(groups, dtype, averaged=True) for dtype in (np.float64, np.float32)]
    w, total, emptied = np.zeros(260_000), np.zeros(260_000), 0
    for t in range(1, 401):
        delta = coalesced(rng.choice(260_000, 400, replace=False), rng.normal(size=400))
        eta, tau = 0.1 / np.sqrt(t), 0.02 * rng.random()
        w[delta.indices] += eta * delta.values
        norms = np.sqrt(np.add.reduceat(w * w, groups[:-1]))
        new = r.group_prox(norms, tau)
        w *= np.repeat(np.divide(new, norms, out=np.zeros(507), where=norms > 0), sizes)
        total, emptied = total + w, emptied + int(((new == 0) & (norms > 0)).sum())
        for weights in lazy:
            weights.add(delta, eta)
            own = weights.norms
            weights.shrink(own, r.group_prox(own, tau))
            weights.include()
    assert emptied > 10_000
    assert 0 < np.count_nonzero(norms_of(groups, w)) < 507
    for weights, limit in zip(lazy, (1e-12, 1e-6), strict=True):
        assert np.abs(weights.current() - w).max() < limit
        assert np.abs(weights.average() - total / 400).max() < limit
        assert weights.fault(260_000) is None


@pytest.mark.parametrize("structure", TASKS)
def test_dual_never_exceeds_the_optimum(structure) -> None:
    """The mean of the outputs found bounds the objective from below, under the regulariser of multiple kernel learning, too."""
    prob = Problem(TASKS[structure](2), MarginRescaling(), 0.05, regulariser=MKL())
    rows = train(prob, OnlineProximal(averaged=True), RunSettings(max_iter=15, check_every=1)).history
    primal, dual = (np.array([row[key] for row in rows]) for key in ("primal", "dual"))
    assert dual.max() <= primal.min()


@pytest.mark.slow
def test_online_mkl_reaches_the_optimum() -> None:
    """Within 1e-3 of cvxpy's optimum, with a dual value below it; and it sets groups to zero."""
    import cvxpy as cp

    task = grouped_task(3)
    groups = task.groups.tolist()
    bounds = list(pairwise(groups))
    best, _ = optimum(task, 0.1, lambda w: cp.square(sum(cp.norm(w[a:b]) for a, b in bounds)) / 2)
    result = train(Problem(task, MarginRescaling(), 0.1, regulariser=MKL()), OnlineMKL(averaged=True, eta0=0.3), RunSettings(
        max_iter=2000, check_every=2000, tol=0.0))  # fmt: skip
    assert best <= result.certificate.primal <= best * (1 + 1e-3)
    assert best * 0.9 <= result.certificate.dual <= best * (1 + 1e-9)


def regrets(prob, trainer, passes, best):
    """After each pass what a step cost, on average, less what it costs at `best`; and the bounds that are reported."""
    rng, state, paid, t, found = np.random.Generator(np.random.PCG64(3)), trainer.init_state(prob), 0.0, 0, []
    for _ in range(passes):
        for i in rng.permutation(len(prob.task)):
            for w, sign in ((state.weights.current(), 1.0), (best, -1.0)):
                hinge = prob.share(i) * max(prob.surrogate.term(prob.task, w, i).bound, 0.0)
                paid += sign * (prob.lam * prob.regulariser.value(w) + hinge)
            state, _ = trainer.update(prob, state, int(i))
            t += 1
        state = trainer.finish_pass(prob, state)
        found.append(paid / t)
    return np.array(found), state.regrets


def test_the_regret_stays_below_its_bound() -> None:
    """What the steps cost, less what the optimum costs them, is at most what is reported; it falls as 1 / sqrt(t)."""
    prob = Problem(grouped_task(4), MarginRescaling(), 0.1, regulariser=MKL())
    best = train(prob, OnlineProximal(averaged=True, eta0=0.5), RunSettings(max_iter=60, check_every=60, tol=0.0)).weights
    regret, bound = regrets(prob, OnlineProximal(eta0=0.5), 6, best)
    assert (regret <= bound).all()
    assert bound[-1] < 0.6 * bound[0]


CONVEX = {"elastic net": (ElasticNetMKL(0.5), 0.05), "mkl + l2": (Composite(MKL(), L2()), 0.1), "l1 + l2": (L1(0.3), 0.1)}


@pytest.mark.mostly_slow
@pytest.mark.parametrize("name", CONVEX)
def test_the_regret_bound_falls_with_strong_convexity(name) -> None:
    """Equation 16 for problem 25: above the true regret after every pass, below its own form with the largest slope, and falling
    as (1 + log T) / T; half the strong convexity that the steps ask for leaves a bound that holds and does not fall."""
    regulariser, sigma = CONVEX[name]
    prob = Problem(grouped_task(4), MarginRescaling(), 0.1, regulariser=regulariser)
    task, T = prob.task, 15.0 * np.arange(1, 31)
    best = train(prob, OnlineProximal(sigma=sigma, averaged=True), RunSettings(max_iter=80, check_every=80, tol=0.0)).weights
    regret, bound = regrets(prob, OnlineProximal(sigma=sigma), 30, best)
    pairs = [task.difference(i, y).dense(task.dim) for i in range(15) for y in task.oracle.enumerate(task.shapes[i])]
    slope = max(np.linalg.norm(psi) for psi in pairs)
    reach = regulariser.grouped(task.groups, task.group_names).reach(prob.primal(np.zeros(task.dim)) / 0.1)
    assert (regret <= bound).all()
    assert (bound <= (0.5 * sigma * reach**2 + slope**2 * (1.0 + np.log(T)) / (2.0 * sigma)) / T).all()
    assert bound[-1] < 0.2 * bound[0]
    regret, bound = regrets(prob, OnlineProximal(sigma=2.0 * sigma), 30, best)
    assert (regret <= bound).all()
    assert bound[-1] > 0.2 * bound[0]


@pytest.mark.mostly_slow
@pytest.mark.parametrize("settings", [{"sigma": 0.1}, {"radius": 2.0, "eta0": 0.3}], ids=["sigma", "eta0"])
def test_so_many_steps_are_enough(settings) -> None:
    """Proposition 6: of five runs over instances drawn with replacement at most a share delta ends above the accuracy."""
    prob, trainer = problem(multiclass_task(2), 0.1), OnlineProximal(averaged=True, certificate=False, **settings)
    task = prob.task
    slope = max(np.linalg.norm(task.difference(i, np.array([y])).dense(task.dim)) for i in range(20) for y in range(4))
    found = train(prob, Corrective(), RunSettings(max_iter=200, tol=1e-6))
    best = found.certificate.dual
    assert np.linalg.norm(found.weights) < 2.0
    accuracy, delta = 3.0, 0.2
    steps = steps_needed(prob, trainer, slope, accuracy, delta)
    assert 100 < steps < 3000
    assert steps_needed(prob, trainer, slope, accuracy / 2, delta) > 2 * steps
    rng, above = np.random.default_rng(0), 0
    for _ in range(5):
        state = trainer.init_state(prob)
        for i in rng.integers(0, 20, steps).tolist():
            state, _ = trainer.update(prob, state, i)
        above += prob.primal(trainer.weights(prob, state)) - best > accuracy
    assert above <= 1
    with pytest.raises(ParameterError, match="expected accuracy > 0"):
        steps_needed(prob, OnlineProximal(sigma=0.3), slope, accuracy)


def test_the_ball_of_radius_reach_holds_the_optimum() -> None:
    """Proposition 8: no iterate leaves the ball of radius sqrt(2 J(0) / lam), and the optimum is in it; without a known one the
    error says so."""
    prob = Problem(grouped_task(4), MarginRescaling(), 0.1, regulariser=MKL())
    radius = float(np.sqrt(2.0 * prob.primal(np.zeros(prob.task.dim)) / 0.1))
    result = {
        value: train(prob, OnlineProximal(eta0=30.0, radius=value), RunSettings(max_iter=3, check_every=1))
        for value in ("reach", radius, None)
    }
    assert result["reach"].weights.tobytes() == result[radius].weights.tobytes() != result[None].weights.tobytes()
    assert np.linalg.norm(train(prob, OnlineMKL(eta0=0.3), RunSettings(max_iter=100)).weights) < radius
    unknown = Problem(prob.task, MarginRescaling(), 0.1, regulariser=GroupLasso(0.0))
    with pytest.raises(ParameterError, match="no ball is known to hold the optima of GroupLasso"):
        train(unknown, OnlineProximal(radius="reach"))


def test_there_is_no_dual_value_in_the_middle_of_a_pass() -> None:
    """The mean output is a dual point after whole passes alone: in between instances have unequal shares, and there is none."""
    prob, trainer = problem(chain_task(n=5)), OnlineProximal()
    state, known = trainer.init_state(prob), []
    for t in range(1, 13):
        state, _ = trainer.update(prob, state, (t - 1) % 5)
        known.append(trainer.objective(prob, state)[1] is not None)
    assert known == [t % 5 == 0 for t in range(1, 13)]


def test_the_regret_bound_allows_for_every_optimum() -> None:
    """It counts with the largest |w*| that lam r(w*) <= the objective at zero leaves: sqrt(2 J(0) / lam) for 1/2 |w|^2."""
    prob, trainer = problem(chain_task(n=5)), OnlineProximal(eta0=0.5)
    state = trainer.init_state(prob)
    for i in range(5):
        state, _ = trainer.update(prob, state, i)
    reach = np.sqrt(2.0 * prob.primal(np.zeros(prob.task.dim)) / prob.lam)
    distance = reach + float(state.farthest)
    expected = (distance**2 / (2.0 * 0.5 / np.sqrt(5.0)) + float(state.energy)) / 5.0
    assert regret_bound(trainer, prob, state) == pytest.approx(expected, rel=1e-12)


def test_what_is_reported_comes_with_the_result() -> None:
    """The weights of the groups after each pass sum to one; the last are those of the weights."""
    task = grouped_task(5)
    result = train(Problem(task, MarginRescaling(), 0.1, regulariser=MKL()), OnlineMKL(), RunSettings(max_iter=3))
    told, norms = result.report["group_weights"], norms_of(task.groups, result.weights)
    assert told.shape == (3, 6)
    np.testing.assert_allclose(told[-1], norms / norms.sum(), rtol=1e-9)
    assert list(result.group_names) == ["a", "b", "c", "d", "start and stop", "transitions"]


def test_the_step_size_is_chosen_by_the_objective() -> None:
    """Of sizes that differ by powers of ten, one that neither crawls nor jumps."""
    prob, tried = Problem(grouped_task(6), MarginRescaling(), 0.1, regulariser=MKL()), []

    def objective(eta0: float) -> float | None:
        tried.append(eta0)
        return train(prob, OnlineMKL(eta0=eta0), RunSettings(max_iter=5, tol=0.0, check_every=5)).certificate.primal

    assert best_rate(objective, (1e-4, 0.3, 1e4)) == 0.3
    assert tried == [1e-4, 0.3, 1e4]


def test_step_sizes_are_looked_for_beyond_the_grid() -> None:
    """Where the best is at an edge, powers of ten follow until one is worse; none is tried twice, and some may diverge."""
    tried: list[float] = []

    def objective(eta0: float) -> float:
        tried.append(eta0)
        if eta0 > 1e3:
            raise ConvergenceError("the weights are not finite")
        return abs(np.log10(eta0) - 2.0)

    assert best_rate(objective, (0.01, 1.0)) == 100.0
    assert best_rate(objective, (1e3, 1e4)) == pytest.approx(100.0)
    assert tried == pytest.approx([0.01, 1.0, 10.0, 100.0, 1e3, 1e3, 1e4, 100.0, 10.0])
    with pytest.raises(ParameterError, match=r"none of \(1.0, 10.0\) gives finite weights"):
        best_rate(lambda eta0: objective(1e4 + eta0), (1.0, 10.0))


@pytest.mark.parametrize("setting", ["eta0", "sigma", "radius"])
@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf"), True])
def test_bad_settings_are_refused(setting, value) -> None:
    """The error names the setting."""
    with pytest.raises(ParameterError, match=f"{setting} must be a positive number"):
        OnlineProximal(**{setting: value})
    with pytest.raises(ParameterError, match="radius must be a positive number, got 'reech'"):
        OnlineProximal(radius="reech")


@pytest.mark.slow
def test_a_strongly_convex_schedule_converges_faster() -> None:
    """Steps of 1 / (lam t) on 1/2 |w|^2 reach what Pegasos reaches."""
    prob = problem(chain_task(7), 0.1)
    best, _ = optimum(prob.task, 0.1)
    result = train(prob, OnlineProximal(sigma=0.1, averaged=True), RunSettings(max_iter=100, check_every=100, tol=0.0))
    assert result.certificate.primal <= 1.03 * best
