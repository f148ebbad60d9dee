"""Block-coordinate Frank-Wolfe under other regularisers: their optimum, exact line searches, and runs that can be resumed."""

import numpy as np
import pytest
from regulariser_cases import Adapting, Groups, Mixed, NonNegative
from scipy.optimize import minimize_scalar
from training_cases import TRAINERS, assignment_task, chain_task, log_problem

from structpred import check_regulariser
from structpred.core.regulariser import DualMap
from structpred.core.sparse import SparseVector
from structpred.errors import CheckpointError, MissingCapabilityError, ParameterError, RegulariserError
from structpred.objectives.margin import MarginRescaling
from structpred.objectives.regularisers.l1 import L1
from structpred.objectives.regularisers.l2 import L2
from structpred.trainers.bcfw import BCFW
from structpred.trainers.blocks.arena import Arena
from structpred.trainers.bmrm import BMRM
from structpred.trainers.lbfgs import LBFGS
from structpred.trainers.loop import RunSettings, train
from structpred.trainers.n_slack import NSlackCuttingPlane
from structpred.trainers.owlqn import OWLQN
from structpred.trainers.pragam import Pragam
from structpred.trainers.problem import Problem
from structpred.trainers.sgd import SGD


@pytest.mark.parametrize(
    "regulariser", [Groups(), NonNegative(), Mixed(), Adapting(), Groups((0.0, 1.0))], ids=lambda r: type(r).__name__
)
def test_what_is_tried_here_keeps_the_contract(regulariser) -> None:
    """Value, prox, bound and dual map of these regularisers agree, also where scales adapt."""
    check_regulariser(regulariser, n_random=6)


def test_scales_that_are_not_normalised_are_found() -> None:
    """They would let the weights of a group cost less than they do."""

    class Generous(Adapting):
        def rescale(self, scale, memory, squares):
            scale, memory = super().rescale(scale, memory, squares)
            return 2.0 * scale, memory

    with pytest.raises(RegulariserError, match=r"- rescale, at(.|\n)*not normalised"):
        check_regulariser(Generous(), n_random=2)


def problem(task, regulariser, lam=0.3) -> Problem:
    """The margin-rescaled problem of a task."""
    return Problem(task, MarginRescaling(), lam, regulariser=regulariser)


def as_program(regulariser):
    """What a regulariser is, in the words of cvxpy."""
    import cvxpy as cp

    square = cp.sum_squares
    return {
        "Groups": lambda w: square(w[:2]) + square(w[2:]) / 6,
        "NonNegative": lambda w: square(cp.pos(w)) / 2 + 1e6 * cp.sum(cp.neg(w)),
        "Mixed": lambda w: (
            square(w[:2]) / 2
            + square(w[2:4]) / 4
            + square(w[4:])
            + 0.3 * cp.norm1(w[4:])
            + 1e6 * (cp.sum(cp.neg(w[:2])) + cp.sum(cp.pos(w[2:4])))
        ),
        "L1": lambda w: square(w) / 2 + 0.2 * cp.norm1(w),
        "Adapting": lambda w: cp.square(cp.norm2(w[:2]) + cp.norm2(w[2:])) / 2,
    }[type(regulariser).__name__]


@pytest.mark.mostly_slow
@pytest.mark.parametrize(
    "regulariser", [Groups(), NonNegative(), Mixed(), L1(0.2), Adapting()], ids=lambda regulariser: type(regulariser).__name__
)
@pytest.mark.parametrize("averaged", [True, False])
def test_the_optimum_is_that_of_the_convex_program(regulariser, averaged) -> None:
    """Primal and dual enclose the value that an independent solver finds, at every check, and come close to it."""
    pytest.importorskip("cvxpy")
    from training_cases import optimum

    task = assignment_task(1, d=6)
    value, w = optimum(task, 0.3, as_program(regulariser))
    settings = RunSettings(max_iter=600, tol=1e-6, check_every=20)
    result = train(problem(task, regulariser), BCFW(averaged=averaged), settings)
    for row in result.history:
        if row["dual"] is not None:
            assert row["dual"] <= value + 1e-8
            assert row["primal"] >= value - 1e-8
    assert result.certificate.gap <= 2e-3 * value
    np.testing.assert_allclose(result.weights, w, atol=0.05)


def test_frozen_groups_stay_at_zero() -> None:
    """A scale of zero: these weights are exactly zero, and the certificate is of the problem without them."""
    task = assignment_task(1)
    result = train(problem(task, Groups((0.0, 1.0))), BCFW(), RunSettings(max_iter=200, tol=1e-3))
    assert not result.weights[:2].any()
    assert result.weights[2:].any()
    assert result.certificate.gap <= 1e-3 * result.certificate.primal


@pytest.mark.parametrize("make", [chain_task, assignment_task])
def test_groups_of_scale_one_are_l2_to_the_last_bit(make) -> None:
    """One kernel serves both."""
    runs = [train(problem(make(2), r), BCFW(), RunSettings(max_iter=5)) for r in (L2(), Groups((1.0, 1.0)))]
    assert runs[0].weights.tobytes() == runs[1].weights.tobytes()
    assert runs[0].certificate == runs[1].certificate


@pytest.mark.parametrize("trainer", ["bcfw", "bcfw-gaps"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", [NonNegative, Mixed, Adapting, lambda: L1(0.1)])
def test_the_dual_never_exceeds_the_primal(trainer, kind, dtype) -> None:
    """Chains with cached passes and gap sampling, weights in either type; the dual of what does not adapt never falls."""
    task = chain_task(4, dtype=dtype, weighted=True)
    regulariser = kind() if kind is not Adapting else Adapting(50, 90, task.dim)
    rows = train(problem(task, regulariser, 0.05), TRAINERS[trainer](), RunSettings(max_iter=8, check_every=1)).history
    primal, dual = (np.array([row[key] for row in rows]) for key in ("primal", "dual"))
    assert np.isfinite(primal).all()
    assert (dual <= primal + 1e-6).all()
    assert regulariser.adapts or (np.diff(dual) >= -1e-6).all()


def random_step(rng):
    """A line search of its own: the arguments of the kernel, and the dual as a function of the step size."""
    dim, n_groups = 12, 3
    ends = [*np.sort(rng.choice(np.arange(1, dim), n_groups - 1, replace=False)), dim]
    low, high = -rng.exponential(0.5, n_groups), rng.exponential(0.5, n_groups)
    low[rng.random(n_groups) < 0.3], high[rng.random(n_groups) < 0.3] = -np.inf, 0.0
    low[high == 0.0] = rng.choice([0.0, -0.4, -np.inf])
    dual_map = DualMap.of(ends, rng.choice([0.0, 0.5, 1.0, 2.0], n_groups), low, high)
    u = rng.normal(size=dim)
    at, to = (np.sort(rng.choice(dim, 6, replace=False)) for _ in range(2))
    x_i, psi = rng.normal(size=(2, 6))
    l_s, lam = float(rng.exponential(2.0)), float(rng.choice([0.2, 1.0, 5.0]))
    direction = np.zeros(dim)
    direction[to] += 0.7 * psi
    direction[at] -= x_i

    def dual(gamma):
        return gamma * l_s - lam * dual_map.conjugate([u + gamma * direction])

    return dual_map, u, (at, x_i), (to, psi), l_s, lam, direction, dual


@pytest.mark.slow
def test_the_line_search_is_exact() -> None:
    """400 random steps: no step size in [0, 1] gives a larger dual value than the one found, and w is the dual map's."""
    from structpred.trainers.blocks._bcfw_kernels import frank_wolfe_step

    rng, taken = np.random.default_rng(0), 0
    for _ in range(400):
        dual_map, u, block, psi, l_s, lam, direction, dual = random_step(rng)
        w, point = dual_map.weights(u), u.copy()
        average, blocks = np.zeros(12), Arena.empty(1).store(0, *block).with_room(0, 12)
        gap, gamma, _ = frank_wolfe_step((w, average, 2.0), point, dual_map, blocks[:], 0, psi, 0.7, l_s, lam)
        assert gap == pytest.approx(l_s - lam * direction @ dual_map.weights(u), abs=1e-9)
        brute = minimize_scalar(lambda g: -dual(g), bounds=(0.0, 1.0), method="bounded", options={"xatol": 1e-10})  # noqa: B023
        best = max(-brute.fun, dual(0.0), dual(1.0))
        assert dual(gamma) >= best - 1e-9 * (1.0 + abs(best))
        np.testing.assert_allclose(w, dual_map.weights(u + gamma * direction), atol=1e-12)
        np.testing.assert_allclose(average, 2.0 * (w - dual_map.weights(u)), atol=1e-12)
        moved = (1.0 - gamma) * SparseVector(*block).dense(12) + gamma * 0.7 * SparseVector(*psi).dense(12)
        np.testing.assert_allclose(SparseVector(*blocks.block(0)).dense(12), moved, atol=1e-12)
        assert (np.diff(blocks.block(0)[0]) > 0).all()
        assert blocks.block(0)[1].all()
        taken += 0.0 < gamma < 1.0
    assert taken > 100


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (DualMap.of([2], 1.0), r"group 0 ends before 2, but there are 4 weights"),
        (DualMap.of([3, 2, 9], 1.0), "ends"),
        (DualMap.alike(-1.0), "scale"),
        (DualMap.alike(np.nan), "scale"),
        (DualMap.alike(1.0, 0.5, -0.5), "low"),
        (DualMap.alike(1.0, np.inf, np.inf), "low"),
        (DualMap(np.array([9]), np.ones(2), np.zeros(1), np.zeros(1)), "scale"),
        (None, "DualMap"),
    ],
)
def test_a_dual_map_that_does_not_fit_is_refused(bad, why) -> None:
    """Before training: compiled code reads it without looking at lengths."""

    class Bad(Groups):
        def dual_map(self):
            return bad

    with pytest.raises(ParameterError, match=f"Bad.*{why}"):
        train(problem(assignment_task(), Bad()), BCFW())


@pytest.mark.mostly_slow
@pytest.mark.parametrize("trainer", [BCFW(), BMRM(), NSlackCuttingPlane(), Pragam(recentre=0.9)], ids=lambda t: t.name)
@pytest.mark.parametrize("regulariser", [Adapting(), L1(0.2)], ids=lambda r: type(r).__name__)
def test_a_resumed_run_keeps_adapted_scales(tmp_path, trainer, regulariser) -> None:
    """Scales and dual points are part of the state: five passes and five more are ten, to the last bit."""
    task, file = assignment_task(3), tmp_path / "run"
    whole = train(problem(task, regulariser), trainer, RunSettings(max_iter=10))
    for passes in (5, 10):
        settings = RunSettings(max_iter=passes, checkpoint=file, resume=passes == 10)
        parts = train(problem(task, regulariser), trainer, settings)
    assert whole.weights.tobytes() == parts.weights.tobytes()


def test_another_regulariser_refuses_the_checkpoint(tmp_path) -> None:
    """Its class and its settings are part of the run's digest."""
    task, file = assignment_task(3), tmp_path / "run"
    train(problem(task, L1(0.2)), BCFW(), RunSettings(max_iter=2, checkpoint=file))
    for other in (L1(0.3), L2()):
        with pytest.raises(CheckpointError, match="settings"):
            train(problem(task, other), BCFW(), RunSettings(max_iter=3, checkpoint=file, resume=True))


@pytest.mark.parametrize("name", ["mira", "perceptron"])
def test_trainers_refuse_what_they_cannot_minimise(name) -> None:
    """The error says who, what is missing, what the regulariser has, and which trainers fit."""
    with pytest.raises(MissingCapabilityError) as caught:
        train(problem(assignment_task(), NonNegative()), TRAINERS[name]())
    message = str(caught.value)
    for part in (
        "needs squared_norm, which NonNegative does not have",
        "It has: dual_map",
        "L2",
        "To add it, write in ",
        "Trainers for NonNegative: bcfw",
    ):
        assert part in message


def test_no_one_is_told_to_change_regularisers_of_the_package() -> None:
    """Where the regulariser is ours the error names the trainers that take it, and no file to write in."""
    with pytest.raises(MissingCapabilityError) as caught:
        train(problem(assignment_task(), L1(0.3)), TRAINERS["mira"]())
    assert "write in" not in str(caught.value)
    assert "L2" in str(caught.value)
    assert ". Trainers for L1: " in str(caught.value)
    assert "corrective" in str(caught.value)


def test_quasi_newton_takes_the_l1_norm_from_the_regulariser() -> None:
    """OWL-QN with the regulariser L1(mu) is OWLQN(l1=mu), L-BFGS refuses the kink."""
    task = chain_task(2)
    l1 = Problem(task, log_problem(task).surrogate, 0.1, regulariser=L1(0.3))
    one, other = train(l1, OWLQN(), RunSettings(max_iter=20)), train(log_problem(task), OWLQN(l1=0.3), RunSettings(max_iter=20))
    assert one.weights.tobytes() == other.weights.tobytes()
    assert one.certificate == other.certificate
    assert 0 < np.count_nonzero(one.weights) < task.dim
    with pytest.raises(ParameterError, match=r"l1=0.1 of OWLQN and regulariser L1: give one"):
        train(l1, OWLQN(l1=0.1))
    with pytest.raises(MissingCapabilityError, match=r"LBFGS needs gradient.*Trainers for L1: .*owlqn"):
        train(l1, LBFGS())
    with pytest.raises(ParameterError, match=r"SGD cannot minimise L1"):
        train(l1, SGD())
