"""Losses over pools: their closed forms, and where their pools come from."""

import numpy as np
import pytest
from layer_cases import Pairs, random_outputs, structure

from structpred import layers
from structpred.errors import OracleError
from structpred.layers.record import Scores


def test_pool_losses_are_their_formulas() -> None:
    """The five losses of a small pool are what their formulas give by hand."""
    rng, batch = np.random.default_rng(0), Scores.of(Pairs(), [(4,)])
    theta, truth = rng.normal(size=(2, 4))
    pool = [[0, 1], [1, 3], [0, 2]]
    vectors = np.array([np.bincount(own, minlength=4) for own in pool], dtype=float)
    gold = batch.points(batch.decide(truth))
    s, t, g = vectors @ theta, vectors @ truth, float(gold @ theta)
    p = np.exp(t) / np.exp(t).sum()
    expected = {
        layers.NCE: s.mean() - g,
        layers.ContrastiveMAP: s.max() - g,
        layers.PointwiseRanking: ((s - t) ** 2).mean(),
        layers.PairwiseRanking: np.maximum(s - s[t.argmax()], 0.0).sum() / 2,
        layers.ListwiseRanking: -(p * np.log(np.exp(s) / np.exp(s).sum())).sum(),
    }
    for kind, value in expected.items():
        found = kind(batch.oracle)(batch, theta, true_scores=truth, pool=[pool])
        np.testing.assert_allclose(found.values, [value], atol=1e-12)
    centred = layers.NCE(batch.oracle, centred=True)(batch, truth, true_scores=truth, pool=[[*pool, batch.decide(truth)[0]]])
    np.testing.assert_allclose(centred.values, 0.0, atol=1e-12)


def test_pools_are_the_best_outputs_where_the_oracle_lists_them() -> None:
    """With kbest a pool is the best outputs at the true scores: contrastive MAP over all outputs is the perceptron loss."""
    rng, batch = np.random.default_rng(1), structure("multiclass").batch()
    theta, truth = rng.normal(size=(2, batch.size))
    found = layers.ContrastiveMAP(batch.oracle)(batch, theta, true_scores=truth)
    whole = layers.Perceptron(batch.oracle)(batch, theta, true_scores=truth)
    np.testing.assert_allclose(found.values, whole.values, atol=1e-15)
    few = layers.ContrastiveMAP(batch.oracle, size=2)(batch, theta, true_scores=truth)
    assert (few.values <= whole.values + 1e-15).all()
    assert (few.values < whole.values - 1e-6).any()


def test_pools_grow_from_what_training_meets() -> None:
    """Without kbest a pool is gold and what was best at the scores of calls, kept for ids until it is full; without ids nothing
    is kept.
    """
    rng, batch = np.random.default_rng(2), Scores.of(Pairs(), [(5,), (4,)])
    truth = rng.normal(size=batch.size)
    loss = layers.ContrastiveMAP(batch.oracle, size=3)
    met = [set(), set()]
    for _ in range(30):
        theta = rng.normal(size=batch.size)
        found = loss(batch, theta, true_scores=truth, ids=[8, 2])
        for i, own in enumerate(found.labels):
            if len(met[i]) < 2 and not np.array_equal(own, batch.decide(truth)[i]):
                met[i].add(tuple(own.tolist()))
        pool = [[batch.decide(truth)[i], *(np.array(own) for own in met[i])] for i in range(2)]
        again = loss(batch, theta, true_scores=truth, pool=pool)
        np.testing.assert_allclose(found.values, again.values, atol=1e-15)
    assert {len(own) for own in met} == {2}
    alone = loss(batch, theta, true_scores=truth)
    np.testing.assert_allclose(alone.values, layers.Perceptron(batch.oracle)(batch, theta, true_scores=truth).values, atol=1e-15)


def test_wrong_outputs_of_a_pool_are_named() -> None:
    """A pool with something that is no output is an error with the sample."""
    rng, batch = np.random.default_rng(3), structure("pairs").batch()
    pool = [[own] for own in random_outputs(batch, rng)]
    pool[1] = [np.array([1, 1])]
    with pytest.raises(OracleError, match="sample 1"):
        layers.NCE(batch.oracle)(batch, np.zeros(batch.size), true_scores=np.zeros(batch.size), pool=pool)
