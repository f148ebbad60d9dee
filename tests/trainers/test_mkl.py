"""Batch multiple kernel learning: the optimum of the convex program, a certificate of that objective, pruned groups."""

from dataclasses import replace

import numpy as np
import pytest
from training_cases import chain_task, optimum

from structpred.core.regulariser import DualMap, group_norms, shares
from structpred.core.sparse import SparseVector
from structpred.models.groups import SMALL, with_pruning
from structpred.objectives.margin import MarginRescaling
from structpred.objectives.regularisers.mkl import MKL, LpMKL
from structpred.slack.surrogate import SlackRescaling
from structpred.trainers.bcfw import BCFW
from structpred.trainers.corrective import Corrective
from structpred.trainers.loop import RunSettings, train
from structpred.trainers.ls_bmrm import LineSearchBMRM
from structpred.trainers.problem import Problem


def problem(task, lam=0.3, surrogate=None):
    """Of the squared sum of group norms."""
    return Problem(task, surrogate or MarginRescaling(), lam, regulariser=MKL())


@pytest.mark.parametrize(("trainer", "near"), [(Corrective(), 1e-5), (BCFW(averaged=False), 2e-3)], ids=["corrective", "bcfw"])
@pytest.mark.parametrize("seed", [0, 3])
def test_the_optimum_is_that_of_the_convex_program(trainer, near, seed) -> None:
    """To 1e-5 of the value that an independent solver finds, with plain blocks to 2e-3; the gap is never below zero."""
    cp = pytest.importorskip("cvxpy")
    task = chain_task(seed, n=6, longest=3, n_labels=2)
    parts = list(zip(task.groups[:-1], task.groups[1:], strict=True))
    value, w = optimum(task, 0.3, lambda w: cp.square(sum(cp.norm2(w[a:b]) for a, b in parts)) / 2)
    result = train(problem(task), trainer, RunSettings(max_iter=200, tol=near, check_every=1))
    assert all(row["dual"] <= row["primal"] for row in result.history)
    assert result.certificate.dual - 1e-9 <= value <= result.certificate.primal + 1e-9
    assert result.certificate.primal == pytest.approx(value, rel=near)
    assert result.certificate.relative_gap <= near
    found, best = (shares(group_norms(one, task.groups)) for one in (result.weights, w))
    np.testing.assert_allclose(found, best, atol=0.1)


@pytest.mark.parametrize("p", [1.05, 1.5, 2.0])
def test_non_sparse_groups_reach_their_optimum_too(p) -> None:
    """The squared l_p norm of the group norms, by scales that follow the weights: a gap of 1e-4, never below zero."""
    prob = Problem(chain_task(), MarginRescaling(), 0.1, regulariser=LpMKL(p))
    result = train(prob, Corrective(), RunSettings(max_iter=200, tol=1e-4, check_every=1))
    assert all(row["dual"] <= row["primal"] for row in result.history)
    assert result.certificate.relative_gap <= 1e-4


@pytest.mark.parametrize("trainer", [Corrective(corners=4), BCFW(), LineSearchBMRM()], ids=lambda t: t.name)
@pytest.mark.parametrize("surrogate", [MarginRescaling(), SlackRescaling()], ids=lambda s: type(s).__name__)
def test_bounds_hold_with_every_trainer_that_knows_the_dual_map(trainer, surrogate) -> None:
    """Whatever beta is: the dual value bounds the objective with the squared sum of norms."""
    prob = problem(chain_task(4, weighted=True, dtype=np.float32), 0.05, surrogate)
    for row in train(prob, trainer, RunSettings(max_iter=8, check_every=1)).history:
        assert 0.0 <= row["dual"] <= row["primal"] + 1e-6
    assert row["dual"] > 0.0


@pytest.mark.parametrize("trainer", [Corrective(corners=4), BCFW(), LineSearchBMRM()], ids=lambda t: t.name)
def test_a_resumed_run_keeps_scales_and_exponents(trainer, tmp_path) -> None:
    """Five passes and five more are ten, to the last bit."""
    task, file = chain_task(3), tmp_path / "run"
    whole = train(problem(task), trainer, RunSettings(max_iter=10))
    for passes in (5, 10):
        parts = train(problem(task), trainer, RunSettings(max_iter=passes, checkpoint=file, resume=passes == 10))
    assert whole.weights.tobytes() == parts.weights.tobytes()
    assert whole.certificate.primal == parts.certificate.primal


def test_weights_belong_to_the_corners_after_beta_has_moved() -> None:
    """w is beta times the dual point in every group, and the Gram matrices are those of the new scales."""
    from structpred.task.fast import _corner_kernels as kernels

    trainer, prob = Corrective(corners=6), problem(chain_task(2))
    state, rng = trainer.init_state(prob), np.random.default_rng(0)
    for n_pass in range(4):
        for item in trainer.order(prob, state, rng, n_pass).tolist():
            state, _ = trainer.update(prob, state, item)
        state = trainer.finish_pass(prob, state)
    u = trainer.dual_point(prob, state)
    dual_map = DualMap.of(prob.task.groups[1:], state.scale)
    assert len(set(state.scale)) > 1
    np.testing.assert_allclose(state.weights.v, dual_map.weights(u), atol=1e-10)
    scales = np.repeat(state.scale, np.diff(prob.task.groups))
    for i, count in enumerate(state.blocks.counts):
        parts = [SparseVector(*state.corners.block(6 * i + k)) for k in range(count)]
        rows = np.array([prob.task.features.adjoint(i, *d).dense(prob.task.dim) for d in parts])
        gram = [[state.blocks.gram[i, kernels.entry(k, m)] for m in range(count)] for k in range(count)]
        np.testing.assert_allclose(gram, rows * scales @ rows.T, atol=1e-9)


def test_exponents_grow_while_the_side_stays_and_shrink_when_it_turns() -> None:
    """Scales sum to one, none is below the floor, groups above the mean gain; equal norms change nothing."""
    r = MKL().grouped(np.array([0, 1, 2, 3]), ["a", "b", "c"])
    scale, memory = np.full(3, 1 / 3), r.first_memory(3)
    for _ in range(60):
        scale, memory = r.rescale(scale, memory, np.array([4.0, 4.0, 0.0]))
    np.testing.assert_allclose(scale, [0.5, 0.5, 5e-10], rtol=1e-6)
    scale, memory = r.rescale(np.full(3, 1 / 3), r.first_memory(3), np.array([4.0, 1.0, 1.0]))
    assert scale[0] > 1 / 3 > scale[1]
    assert (memory[:, 0] == 1.0).all()
    grown = r.rescale(scale, memory, np.array([9.0, 1.0, 1.0]))[1]
    turned = r.rescale(scale, memory, np.array([1.0, 9.0, 9.0]))[1]
    assert (grown[:, 0] > 1.0).all()
    assert (turned[:, 0] == 0.5).all()
    same, _ = r.rescale(scale, memory, np.ones(3))
    np.testing.assert_allclose(same, scale, rtol=1e-12)


def test_pruned_weights_keep_the_dual_value() -> None:
    """Groups below a share of the norms set to zero: the primal is that of the new weights, the dual value stays."""
    prob = problem(chain_task(1), 0.5)
    result = train(prob, Corrective(), RunSettings(max_iter=50, tol=1e-3))
    groups, weights = prob.task.groups, result.weights.copy()
    weights[groups[2] : groups[3]] *= 1e-3 * SMALL
    report = with_pruning(prob, replace(result, weights=weights)).report
    assert report["small_groups"].tolist() == [0.0, 0.0, 1.0]
    weights[groups[2] : groups[3]] = 0.0
    primal, dual = report["bounds_without"].tolist()
    assert primal == prob.primal(weights) > dual == result.certificate.dual
