"""MIRA: each step against a dense implementation that lists all outputs, and what a step promises."""

import numpy as np
import pytest
from training_cases import TASKS, chain_task, log_problem, multiclass_task, problem

from structpred.errors import ParameterError
from structpred.models import StructuredPredictor
from structpred.oracles.assignment import AssignmentOracle
from structpred.oracles.enumerated import EnumeratedOracle
from structpred.oracles.multiclass import MulticlassOracle
from structpred.trainers.loop import RunSettings, train
from structpred.trainers.mira import MIRA


def naive(task, lam, passes, seed):
    """The average of all iterates of passive-aggressive steps with dense vectors, best outputs found by listing them."""
    p = task.sample_weight / task.sample_weight.sum()
    rng = np.random.Generator(np.random.PCG64(seed))
    w, total, count = np.zeros(task.dim), np.zeros(task.dim), 0
    differences, losses = [], []
    for i, shape in enumerate(task.shapes):
        constant, ell = task.costs(i)
        outputs = list(task.oracle.enumerate(shape))
        differences.append(np.array([task.difference(i, y).dense(task.dim) for y in outputs]))
        losses.append(np.array([constant + ell[task.oracle.parts(y, shape)].sum() for y in outputs]))
    for _ in range(passes):
        for i in rng.permutation(len(task)):
            violations = losses[i] - differences[i] @ w
            best = int(violations.argmax())
            psi = differences[i][best]
            if violations[best] > 0 and psi @ psi > 0:
                w = w + min(p[i] / lam, violations[best] / (psi @ psi)) * psi
            total, count = total + w, count + 1
    return total / count


@pytest.mark.mostly_slow
@pytest.mark.parametrize("structure", TASKS)
@pytest.mark.parametrize("lam", [1.0, 0.03])
def test_the_weights_are_those_of_a_dense_implementation(structure, lam) -> None:
    """After three passes over random problems of three structures, with weights of samples: equal to 1e-10."""
    for seed in range(3):
        options = {"weighted": True} if structure == "chain" else {"sample_weight": np.linspace(0.2, 3.0, 7), "n": 7}
        task = TASKS[structure](seed, **options)
        result = train(problem(task, lam), MIRA(), RunSettings(max_iter=3, seed=seed))
        np.testing.assert_allclose(result.weights, naive(task, lam, 3, seed), atol=1e-10)
        assert result.certificate.dual is None
        assert result.certificate.primal == pytest.approx(problem(task, lam).primal(result.weights))


def test_a_free_step_gives_the_output_its_margin() -> None:
    """Without a cap, after a step the output found has no violation left; with one, the step is C s_i long at most."""
    for lam, capped in ((1e-9, False), (10.0, True)):
        prob, trainer = problem(chain_task(0), lam), MIRA()
        state = trainer.init_state(prob)
        for i in range(len(prob.task)):
            before = state.weights.v.copy()
            step = prob.surrogate.term(prob.task, before, i)
            psi, loss = step.difference.dense(prob.task.dim), step.loss
            state, changed = trainer.update(prob, state, i)
            if not changed:
                assert step.violation <= 0
                continue
            left = loss - psi @ state.weights.v
            tau = (state.weights.v - before) @ psi / (psi @ psi)
            assert tau <= prob.p[i] / lam + 1e-12
            assert left >= -1e-9
            assert capped or left == pytest.approx(0.0, abs=1e-9)


def test_samples_without_weight_change_nothing() -> None:
    """A sample of weight zero is passed by."""
    weights = np.ones(20)
    weights[3] = 0.0
    task = multiclass_task(0, sample_weight=weights)
    state = MIRA().init_state(problem(task))
    state, _ = MIRA().update(problem(task), state, 3)
    assert not state.weights.v.any()


def test_smooth_surrogates_are_refused() -> None:
    """MIRA steps to a margin, which the log loss has not."""
    with pytest.raises(ParameterError, match="MIRA cannot minimise LogLoss"):
        train(log_problem(multiclass_task()), MIRA())


@pytest.mark.parametrize("oracle", [MulticlassOracle(), EnumeratedOracle.of(AssignmentOracle())], ids=["single", "matchings"])
def test_the_estimator_learns_planted_weights(oracle) -> None:
    """Through StructuredPredictor, on single labels and on matchings that are listed: new instances are nearly all right."""
    hidden, rng = np.array([2.0, -1.0, 0.5]), np.random.default_rng(0)
    shapes = [(3,)] * 60
    X = [rng.normal(size=(oracle.n_parts(shape), 3)) for shape in shapes]
    y = [oracle.argmax(x @ hidden, shape) for x, shape in zip(X, shapes, strict=True)]
    model = StructuredPredictor(oracle, trainer="mira", max_iter=10).fit(X[:40], y[:40], shapes[:40])
    assert model.score(X[40:], y[40:], shapes[40:]) > 0.9
