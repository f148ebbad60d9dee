"""The averaged perceptron equals a naive dense implementation."""

import numpy as np
import pytest
from training_cases import TASKS, chain_task, problem

from structpred.errors import NoUpdateWarning
from structpred.trainers.loop import RunSettings, train
from structpred.trainers.perceptron import AveragedPerceptron


@pytest.mark.parametrize("loss_weight", [0.0, 1.0])
@pytest.mark.parametrize("structure", TASKS)
def test_weights_equal_a_dense_implementation(structure, loss_weight) -> None:
    """The average of all iterates, one per sample, of w += weight * difference."""
    task = TASKS[structure](2)
    task.sample_weight = np.random.default_rng(0).uniform(0.5, 2.0, len(task))
    result = train(problem(task, 1.0, loss_weight), AveragedPerceptron(), RunSettings(max_iter=4, seed=7))
    rng, w, total, k = np.random.Generator(np.random.PCG64(7)), np.zeros(task.dim), np.zeros(task.dim), 0
    for _ in range(4):
        for i in rng.permutation(len(task)):
            y = task.argmax(w, i, loss_weight)
            w = w + task.sample_weight[i] * task.difference(i, y).dense(task.dim)
            total, k = total + w, k + 1
    np.testing.assert_allclose(result.weights, total / k, rtol=1e-9, atol=1e-11)


def test_there_is_no_certificate() -> None:
    """No primal, no dual, nothing proven; it says so."""
    certificate = train(problem(chain_task(0), 1.0, 0.0), AveragedPerceptron(), RunSettings(max_iter=2)).certificate
    assert (certificate.primal, certificate.dual, certificate.gap, certificate.proven) == (None, None, None, False)
    assert "no certificate" in str(certificate)


def test_a_pass_without_a_mistake_is_reported() -> None:
    """Where the first pass changes nothing there is a warning that says what may be wrong, and the weights are zero."""
    task = TASKS["multiclass"](0, n=3)
    task = task.with_labels([np.zeros_like(y) for y in task.labels])
    with pytest.warns(NoUpdateWarning, match="changed nothing"):
        result = train(problem(task, 1.0, 0.0), AveragedPerceptron(), RunSettings(max_iter=2))
    assert not result.weights.any()
