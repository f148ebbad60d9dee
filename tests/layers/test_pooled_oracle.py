"""A slow oracle behind a pool: fewer calls, outputs that are outputs, and nothing called proven."""

import numpy as np
import pytest
from layer_cases import Pairs

from structpred import layers
from structpred.errors import MissingCapabilityError, ParameterError
from structpred.layers.pooled import PooledOracle
from structpred.layers.record import Scores


class Counting(Pairs):
    """Two of n, with a count of its calls."""

    calls = 0

    def argmax(self, scores: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
        """Count."""
        self.calls += 1
        return super().argmax(scores, shape)


def test_most_calls_are_answered_from_the_pool() -> None:
    """About the share of calls reaches the oracle; answers are outputs of their shape, and never better than the best one."""
    rng, slow = np.random.default_rng(0), Counting()
    oracle = PooledOracle(slow, share=0.2)
    shapes = [(4,), (5,)] * 200
    batch = Scores.of(oracle, shapes)
    theta = rng.normal(size=batch.size)
    found = batch.best(theta)
    assert 50 < slow.calls < 120
    exact = Scores.of(Pairs(), shapes).best(theta)
    assert (found.values <= exact.values + 1e-12).all()
    assert np.mean(found.values >= exact.values - 1e-12) > 0.5
    assert np.isinf(found.gaps).all()
    whole = PooledOracle(Counting(), share=1.0)
    np.testing.assert_array_equal(Scores.of(whole, shapes).best(theta).values, exact.values)


def test_losses_over_a_pool_prove_nothing() -> None:
    """SPO+ over a pooled oracle is a loss, and no bound of the regret; the pool keeps to its size."""
    rng, oracle = np.random.default_rng(1), PooledOracle(Pairs(), share=0.9, size=2)
    batch = Scores.of(oracle, [(5,)] * 20)
    theta, truth = rng.normal(size=(2, batch.size))
    loss = layers.SPOPlus(oracle)
    assert not loss(batch, theta, true_scores=truth).proven
    with pytest.raises(MissingCapabilityError, match="bounds no regret"):
        loss.regret_bound(batch, theta, true_scores=truth)
    assert len(oracle._met[5,]) == 2


@pytest.mark.parametrize("options", [{"share": 0.0}, {"share": 1.5}, {"size": 0}])
def test_settings_of_a_pool_are_checked(options: dict[str, float]) -> None:
    """Shares outside (0, 1] and empty pools are refused."""
    with pytest.raises(ParameterError):
        PooledOracle(Pairs(), **options)
