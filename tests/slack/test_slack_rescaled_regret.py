"""Slack rescaling of the regret: a bound of the regret, found by the searches that are there."""

import numpy as np
import pytest

from structpred.core.costs import PartCosts
from structpred.core.oracle import Oracle
from structpred.features.parts import PartFeatures
from structpred.oracles.assignment import AssignmentOracle
from structpred.oracles.chain import ChainOracle
from structpred.slack.surrogate import SlackRescaling
from structpred.task.task import Task


class RegretOf:
    """The regret of one instance with true scores c: c . g - c . mu(y)."""

    def __init__(self, truth: np.ndarray) -> None:
        self.truth = truth

    def costs(self, labels: np.ndarray, shape: tuple[int, ...], oracle: Oracle) -> PartCosts:
        """Minus the true scores."""
        return PartCosts(float(self.truth[oracle.parts(labels, shape)].sum()), -self.truth)


@pytest.mark.parametrize(("oracle", "shape"), [(ChainOracle(), (3, 2)), (AssignmentOracle(), (3,))])
def test_slack_rescaled_regret_bounds_the_regret(oracle: Oracle, shape: tuple[int, ...]) -> None:
    """With true scores as part costs the slack-rescaled hinge is max_y regret(y) [1 + theta . (mu(y) - g)]_+ over all outputs
    listed, and at least the regret of the decision.
    """
    rng, size = np.random.default_rng(0), oracle.n_parts(shape)
    vertices = np.array([np.bincount(oracle.parts(y, shape), minlength=size) for y in oracle.enumerate(shape)])
    for _ in range(10):
        theta, truth = 0.5 * rng.normal(size=(2, size))
        gold = oracle.argmax(truth, shape)
        task = Task(PartFeatures([np.eye(size)]), oracle, [gold], [shape], RegretOf(truth))
        g = np.bincount(oracle.parts(gold, shape), minlength=size)
        regrets = (g - vertices) @ truth
        value = SlackRescaling().values(task, theta)[0]
        np.testing.assert_allclose(value, (regrets * np.maximum(1 + (vertices - g) @ theta, 0)).max(), rtol=1e-6, atol=1e-9)
        decision = np.bincount(oracle.parts(oracle.argmax(theta, shape), shape), minlength=size)
        assert value >= truth @ (g - decision) - 1e-9
