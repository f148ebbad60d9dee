"""Cutting planes: both formulations end at the optimum of the quadratic program, and their bounds hold on the way."""

import numpy as np
import pytest
from training_cases import TASKS, chain_task, multiclass_task, optimum, problem

from structpred.core.sparse import SparseVector
from structpred.errors import ParameterError
from structpred.objectives.log_loss import LogLoss
from structpred.slack.surrogate import SlackRescaling
from structpred.trainers.loop import RunSettings, train
from structpred.trainers.n_slack import NSlackCuttingPlane
from structpred.trainers.one_slack import OneSlackCuttingPlane
from structpred.trainers.planes.master_qp import Master
from structpred.trainers.problem import Problem

BOTH = [NSlackCuttingPlane, OneSlackCuttingPlane]


def random_master(rng: np.random.Generator, n_blocks: int, n_planes: int, dim: int = 6) -> tuple[Master, np.ndarray]:
    """Random planes over the blocks, in two instalments, and their dense matrix."""
    planes = []
    for _ in range(n_planes):
        values = rng.normal(size=dim) * (rng.random(dim) < 0.7)
        at = np.flatnonzero(values)
        planes.append((int(rng.integers(n_blocks)), SparseVector(at, values[at]), float(rng.normal() + 0.5)))
    half = n_planes // 2
    master = Master.empty(n_blocks).add(planes[:half], dim).solve(0.3, 1e-9).add(planes[half:], dim)
    return master, np.array([a.dense(dim) for _, a, _ in planes])


@pytest.mark.parametrize("n_blocks", [1, 3, 8])
@pytest.mark.parametrize("seed", range(4))
def test_master_dual_is_that_of_the_quadratic_program(n_blocks: int, seed: int) -> None:
    """Value, weights and slacks are those that an independent solver finds; alpha is feasible to the last bit."""
    cp = pytest.importorskip("cvxpy")
    lam = 0.3
    master, rows = random_master(np.random.default_rng(seed), n_blocks, 20)
    master = master.solve(lam, 1e-10)
    w, xi = cp.Variable(rows.shape[1]), cp.Variable(n_blocks, nonneg=True)
    objective = cp.Minimize(lam / 2 * cp.sum_squares(w) + cp.sum(xi))
    program = cp.Problem(objective, [xi[master.block] >= master.offset - rows @ w])
    program.solve(solver=cp.CLARABEL)
    assert master.dual(lam) == pytest.approx(program.value, abs=1e-7)
    np.testing.assert_allclose(master.weights(lam, rows.shape[1]), w.value, atol=1e-4)
    np.testing.assert_allclose(master.slacks(lam), xi.value, atol=1e-4)
    assert (master.alpha >= 0.0).all()
    assert (np.bincount(master.block, master.alpha) <= 1.0).all()


def test_weight_moves_between_two_planes_by_an_exact_step() -> None:
    """One step between two planes of a block, nearly parallel, ends at the best mixture of them, not on the way to it."""
    at = np.arange(2)
    planes = [(0, SparseVector(at, np.array([1.0, 0.5])), 3.25), (0, SparseVector(at, np.array([0.8, 0.6])), 3.12)]
    master = Master.empty(1).add(planes, 2)._replace(alpha=np.array([1.0, 0.0]))
    # the slope between them is .02, and its fall 1.25 + 1 - 2 * 1.1 = .05; a looser tolerance would ask for no step at all
    np.testing.assert_allclose(master.solve(1.0, 0.015).alpha, [0.6, 0.4], atol=1e-12)


def test_weight_moves_to_the_plane_that_gains_most() -> None:
    """Of two planes one has the larger slope, and is so long that a step to it gains little: weight moves to the other."""
    at = np.arange(2)
    planes = [(0, SparseVector(at, np.array([10.0, 0.0])), 1.1), (0, SparseVector(at, np.array([0.1, 0.99**0.5])), 1.0)]
    # gains of exact steps: 1.1^2 / 100 and 1; after a whole step to the second the slope of the first is .1
    assert Master.empty(1).add(planes, 2).solve(1.0, 0.2).alpha.tolist() == [0.0, 1.0]


def test_inner_products_are_kept_as_planes_come_and_go() -> None:
    """The Gram matrix is that of the planes present, after adding and pruning; pruning keeps the solution."""
    rng = np.random.default_rng(7)
    master, rows = random_master(rng, 4, 24)
    np.testing.assert_allclose(master.gram, rows @ rows.T, atol=1e-12)
    solved = master.solve(0.3, 1e-9)
    idle = solved.pruned(1)
    assert 0 < idle.n_planes < solved.n_planes
    assert idle.dual(0.3) == pytest.approx(solved.dual(0.3), abs=1e-12)
    np.testing.assert_allclose(idle.weights(0.3, 6), solved.weights(0.3, 6), atol=1e-12)
    dense = np.array(
        [SparseVector(idle.idx[a:b], idle.val[a:b]).dense(6) for a, b in zip(idle.bounds, idle.bounds[1:], strict=False)]
    )
    np.testing.assert_allclose(idle.gram, dense @ dense.T, atol=1e-12)


def test_any_feasible_alpha_is_a_lower_bound() -> None:
    """A master that was hardly solved gives a smaller dual value, never a larger one."""
    master, _ = random_master(np.random.default_rng(3), 3, 30)
    rough, fine = master.solve(0.3, 1e-1, max_sweeps=1), master.solve(0.3, 1e-10)
    assert rough.dual(0.3) <= fine.dual(0.3) + 1e-12
    assert Master.empty(2).solve(0.3, 1e-9).dual(0.3) == 0.0


@pytest.mark.parametrize("trainer", BOTH)
@pytest.mark.parametrize("name", TASKS)
def test_the_optimum_is_that_of_the_quadratic_program(trainer, name: str) -> None:
    """Primal and dual meet at the value that an independent solver finds over all outputs; no lucky problems are chosen."""
    pytest.importorskip("cvxpy")
    task = chain_task(2, n=8, longest=3, n_labels=2) if name == "chain" else TASKS[name]()
    result = train(problem(task, 0.05), trainer(precision=1e-9), RunSettings(max_iter=400, tol=1e-8, check_every=1))
    value, w = optimum(task, 0.05)
    assert result.stop_reason == "tol"
    assert result.certificate.proven
    assert result.certificate.primal == pytest.approx(value, rel=1e-6)
    assert result.certificate.dual == pytest.approx(value, rel=1e-6)
    np.testing.assert_allclose(result.weights, w, atol=2e-3)


@pytest.mark.parametrize("trainer", BOTH)
@pytest.mark.parametrize("structure", TASKS)
def test_bounds_hold_at_every_pass(trainer, structure: str) -> None:
    """Dual <= primal, the dual value never falls, the primal of the weights to return never rises; weighted samples too."""
    for seed in range(3):
        options = {"weighted": True} if structure == "chain" else {"sample_weight": np.linspace(0.2, 3.0, 7), "n": 7}
        task = TASKS[structure](seed, **options)
        rows = train(problem(task, 0.02), trainer(), RunSettings(max_iter=12, check_every=1, seed=seed)).history
        primal, dual = (np.array([row[key] for row in rows]) for key in ("primal", "dual"))
        assert (dual <= primal + 1e-9 * (1.0 + np.abs(primal))).all()
        assert (np.diff(dual) >= 0.0).all()
        assert (np.diff(primal) <= 0.0).all()
        assert dual[-1] > 0.0


@pytest.mark.parametrize("trainer", BOTH)
def test_the_primal_that_is_reported_is_that_of_the_weights(trainer) -> None:
    """What the sweep summed up is what the objective says of the returned weights, float32 weights too."""
    for dtype in (np.float32, np.float64):
        made = problem(chain_task(5, dtype=dtype), 0.05)
        result = train(made, trainer(), RunSettings(max_iter=7, check_every=1))
        assert result.certificate.primal == pytest.approx(made.primal(result.weights), rel=1e-6)


@pytest.mark.parametrize("trainer", BOTH)
def test_few_planes_are_kept(trainer) -> None:
    """Planes that are idle for long are dropped, and the optimum is reached all the same."""
    made = problem(multiclass_task(3, n=30), 0.01)
    lean = train(made, trainer(max_idle=2), RunSettings(max_iter=300, tol=1e-6, check_every=1))
    assert lean.stop_reason == "tol"
    assert lean.certificate.primal == pytest.approx(
        train(made, trainer(max_idle=10**6), RunSettings(max_iter=300, tol=1e-6, check_every=1)).certificate.primal, rel=2e-6
    )


@pytest.mark.parametrize("precision", [1e-2, 1e-4])
def test_searches_stop_at_the_precision_and_not_before(precision: float) -> None:
    """A surrogate that can search above a threshold is asked for all that exceeds the slack of a sample by the precision."""
    asked: list[tuple[int, float]] = []

    class Recording(SlackRescaling):
        def term_above(self, task, w, i, threshold, scale=1.0):
            asked.append((i, threshold))
            return super().term_above(task, w, i, threshold, scale)

    task, trainer = chain_task(0, n=6, longest=3), NSlackCuttingPlane(precision=precision)
    prob = Problem(task, Recording(), 0.1)
    state = trainer.init_state(prob)
    for _ in range(3):
        asked.clear()
        for item in trainer.order(prob, state, np.random.default_rng(0), 0).tolist():
            slacks = state.slacks.copy()
            state, _ = trainer.update(prob, state, item)
            if item >= 0:
                assert asked[-1] == (item, pytest.approx(slacks[item] * len(task) + precision, rel=1e-12))
    assert slacks.max() > 0.0


def test_wrong_settings_are_refused() -> None:
    """Before any work: precision, idleness, and a surrogate without planes."""
    with pytest.raises(ParameterError, match="precision"):
        NSlackCuttingPlane(precision=-1.0)
    with pytest.raises(ParameterError, match="max_idle"):
        OneSlackCuttingPlane(max_idle=0)
    with pytest.raises(ParameterError, match="OneSlackCuttingPlane cannot minimise LogLoss"):
        train(Problem(chain_task(), LogLoss(), 0.1), OneSlackCuttingPlane())
