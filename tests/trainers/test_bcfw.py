"""Block-coordinate Frank-Wolfe: its bounds hold at every check, and it ends at the optimum of the quadratic program."""

import numpy as np
import pytest
from training_cases import TASKS, TRAINERS, assignment_task, chain_task, multiclass_task, optimum, problem

from structpred.errors import ConvergenceError, ParameterError
from structpred.features.parts import PartFeatures
from structpred.objectives.part_losses import Hamming
from structpred.oracles.multiclass import MulticlassOracle
from structpred.task.task import Task
from structpred.trainers.bcfw import BCFW
from structpred.trainers.loop import RunSettings, train

BCFWS = [name for name in TRAINERS if name.startswith("bcfw")]
# chosen so that the optimum lies inside a face of the dual (some alpha strictly between 0 and 1), where convergence is linear
SMALL = {
    "chain": (lambda: chain_task(0, n=6, longest=3, n_labels=2), 1.0),
    "chain-weak": (lambda: chain_task(3, n=6, longest=3, n_labels=2), 0.5),
    "multiclass": (lambda: multiclass_task(1), 0.3),
    "assignment": (lambda: assignment_task(1), 0.3),
}


@pytest.mark.parametrize("name", SMALL)
def test_the_optimum_is_that_of_the_quadratic_program(name) -> None:
    """Primal and dual meet at the value that an independent solver finds over all outputs, to 1e-6; so do the weights."""
    pytest.importorskip("cvxpy")
    make, lam = SMALL[name]
    task = make()
    result = train(problem(task, lam), BCFW(averaged=False), RunSettings(max_iter=2000, tol=1e-8, check_every=25))
    value, w = optimum(task, lam)
    assert result.certificate.primal == pytest.approx(value, abs=1e-6)
    assert result.certificate.dual == pytest.approx(value, abs=1e-6)
    np.testing.assert_allclose(result.weights, w, atol=1e-3)
    assert result.passes > 2  # not a problem that one step at each block solves


@pytest.mark.parametrize("trainer", BCFWS)
def test_every_variant_nears_the_optimum(trainer) -> None:
    """Averaging and gap sampling change the way, not the end: the gap falls below a thousandth."""
    task, lam = assignment_task(1), 0.3
    result = train(problem(task, lam), TRAINERS[trainer](), RunSettings(max_iter=400, tol=1e-3))
    assert result.stop_reason == "tol"
    assert result.certificate.gap <= 1e-3 * result.certificate.primal


@pytest.mark.mostly_slow
@pytest.mark.parametrize("trainer", BCFWS)
@pytest.mark.parametrize("structure", TASKS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dual_never_exceeds_primal(trainer, structure, dtype) -> None:
    """At every pass, on random problems of three structures, with and without weights; the dual value never falls."""
    for seed in range(3):
        options = {"weighted": True} if structure == "chain" else {"sample_weight": np.linspace(0.2, 3.0, 7), "n": 7}
        task = TASKS[structure](seed, **options)
        task.dtype = np.dtype(dtype)
        rows = train(problem(task, 0.02), TRAINERS[trainer](), RunSettings(max_iter=12, check_every=1, seed=seed)).history
        primal, dual = (np.array([row[key] for row in rows]) for key in ("primal", "dual"))
        slack = 1e-9 if dtype == np.float64 else 1e-6
        assert (dual <= primal + slack * (1.0 + np.abs(primal))).all()
        assert (np.diff(dual) >= -slack).all()
        assert dual[-1] > dual[0] > 0


def test_the_gap_of_a_block_is_what_the_oracle_could_still_add() -> None:
    """With weights that do not move, the sum of the block gaps is primal less dual at the present iterate."""
    task, trainer = chain_task(2), BCFW(averaged=False)
    prob = problem(task, 0.05)
    state, rng = trainer.init_state(prob), np.random.default_rng(0)
    for item in rng.integers(0, len(task), 200):
        state, _ = trainer.update(prob, state, int(item))
    total = 0.0
    for i in range(len(task)):
        step = prob.surrogate.term(task, state.weights.v, i)
        w_i = np.zeros(task.dim)
        np.add.at(w_i, *state.blocks.block(i))
        w_s = prob.p[i] / prob.lam * step.difference.dense(task.dim)
        total += prob.lam * (w_i - w_s) @ state.weights.v - state.offsets[i] + prob.p[i] * step.loss
    primal, dual = trainer.objective(prob, state)
    assert total == pytest.approx(primal - dual, abs=1e-12)


def test_the_gap_of_a_block_holds_for_outputs_that_were_not_found() -> None:
    """With a bound from the oracle the gap that is kept for sampling is what the bound still allows, and not what was found."""

    class Bounded(MulticlassOracle):
        exact = False
        argmax_batch = None

        def argmax_bound(self, scores, shape):
            return np.array([0]), float(scores.max()) + 0.25  # class 0 is found whatever the scores are

    rows = PartFeatures([np.eye(3)] * 2)
    task = Task(rows, Bounded(), [[0], [1]], [(3,)] * 2, Hamming(), sample_weight=[1.0, 3.0])
    prob, trainer = problem(task), BCFW(gap_sampling=True)
    state = trainer.init_state(prob)
    for item, expected in ((0, 0.25 * 1.25), (1, 0.75 * 1.25)):  # the best of all costs 1 at w = 0, and the bound is looser
        state, _ = trainer.update(prob, state, item)
        assert state.gaps[item] == pytest.approx(expected, rel=1e-12)


def test_the_weights_are_the_sum_of_the_blocks() -> None:
    """w = sum of w_i after any number of steps, and offsets stay within their simplex."""
    task, trainer = chain_task(3, weighted=True), BCFW()
    prob = problem(task, 0.05)
    state, rng = trainer.init_state(prob), np.random.default_rng(0)
    for n_pass in range(4):
        for item in trainer.order(prob, state, rng, n_pass).tolist():
            state, _ = trainer.update(prob, state, item)
    total = np.zeros(task.dim)
    state.blocks.add_all_into(total)
    np.testing.assert_allclose(total, state.weights.v, atol=1e-12)
    assert (state.offsets >= 0).all()


def test_gap_sampling_visits_large_gaps_more_often() -> None:
    """Blocks are drawn in proportion to their gaps, blocks without a gap never, and every fifth pass takes each once."""
    task, trainer = chain_task(0, n=5), BCFW(gap_sampling=True)
    prob = problem(task)
    state, rng = trainer.init_state(prob), np.random.default_rng(0)
    assert sorted(trainer.order(prob, state, rng, 1)) == [0, 1, 2, 3, 4]  # nothing is known yet
    state.gaps[:] = [1.0, 0.0, 3.0, 0.0, 4.0]
    drawn = np.concatenate([trainer.order(prob, state, rng, 1) for _ in range(400)])
    counts = np.bincount(drawn, minlength=5)
    np.testing.assert_allclose(counts / counts.sum(), [1 / 8, 0, 3 / 8, 0, 4 / 8], atol=0.05)
    assert sorted(trainer.order(prob, state, rng, 5)) == [0, 1, 2, 3, 4]


def test_a_sample_of_weight_two_is_two_samples() -> None:
    """At the optimum, weights stand for copies: the same objective and the same w."""
    chosen = [0, 0, 1, 2, 3, 3, 4, 5]
    weighed = assignment_task(2, n=6, sample_weight=np.bincount(chosen).astype(float))
    rows = weighed.features.values.reshape(6, 9, 4)
    labels = [weighed.labels[k] for k in chosen]
    copied = Task(PartFeatures(rows[chosen]), weighed.oracle, labels, [(3,)] * 8, weighed.loss)
    settings = RunSettings(max_iter=1000, tol=1e-7)
    results = [train(problem(task, 0.8), BCFW(averaged=False), settings) for task in (copied, weighed)]
    assert [r.stop_reason for r in results] == ["tol", "tol"]
    assert results[0].certificate.primal == pytest.approx(results[1].certificate.primal, abs=1e-6)
    np.testing.assert_allclose(results[0].weights, results[1].weights, atol=2e-3)


def test_samples_of_weight_zero_change_nothing() -> None:
    """Their labels do not matter, and their block stays empty."""
    weights = np.ones(15)
    weights[4] = 0.0
    tasks = [chain_task(5, weighted=False) for _ in range(2)]
    for task in tasks:
        task.sample_weight = weights
    tasks[1] = Task(
        tasks[0].features,
        tasks[0].oracle,
        [(2 - y) if i == 4 else y for i, y in enumerate(tasks[0].labels)],
        tasks[0].shapes,
        tasks[0].loss,
        sample_weight=weights,
    )
    results = [train(problem(task), BCFW(), RunSettings(max_iter=5)) for task in tasks]
    assert results[0].weights.tobytes() == results[1].weights.tobytes()


def test_a_direction_too_long_for_float64_is_no_step_of_zero() -> None:
    """Where the square of a direction overflows, training says that its numbers are not finite, and does not stand still."""
    rows = PartFeatures([1e160 * np.eye(2)] * 3)
    task = Task(rows, MulticlassOracle(), [[0], [0], [1]], [(2,)] * 3, Hamming())
    with pytest.raises(ConvergenceError):
        train(problem(task), BCFW(), RunSettings(max_iter=3))


def test_smooth_surrogates_are_refused() -> None:
    """A surrogate that is not piecewise linear has no corners."""
    prob = problem(chain_task(0))
    prob.surrogate.piecewise_linear = False
    with pytest.raises(ParameterError, match="BCFW cannot minimise MarginRescaling"):
        train(prob, BCFW())
