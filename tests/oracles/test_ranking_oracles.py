"""Rankings and choices of k: their limits, soft ranks, and the choice of k with forbidden items."""

import numpy as np
import pytest

from structpred.errors import DataError, InfeasibleError
from structpred.oracles.ranking import RankingOracle, TopKOracle


def test_soft_ranks_lie_between_the_mean_and_the_ranking() -> None:
    """Scores divided by a small number give the ranking, by a large one the mean of all rankings; sums never change."""
    scores, oracle = np.random.default_rng(0).normal(size=50), RankingOracle()
    hard = oracle.argmax(scores, (50,))
    assert np.array_equal(oracle.project(scores / 1e-4, (50,)), hard)
    assert oracle.project(scores / 1e6, (50,)) == pytest.approx(np.full(50, 24.5), abs=1e-4)
    soft = oracle.project(scores / 0.05, (50,))
    assert soft.sum() == pytest.approx(hard.sum())
    assert (np.diff(soft[np.argsort(scores)]) >= 0).all()
    assert not np.array_equal(soft, hard)


def test_soft_ranks_of_a_batch_are_those_of_each() -> None:
    """Soft ranks of a ragged batch in one compiled call equal those one by one, to the last bit."""
    rng, oracle, sizes = np.random.default_rng(1), RankingOracle(), [3, 1, 20, 7]
    points, offsets = rng.normal(size=sum(sizes)), np.cumsum([0, *sizes])
    one_by_one = [oracle.project(own, (n,)) for own, n in zip(np.split(points, offsets[1:-1]), sizes, strict=True)]
    found = oracle.project_batch(points, offsets, [(n,) for n in sizes])
    assert np.array_equal(found, np.concatenate(one_by_one))


def test_the_chance_of_each_item_adds_up_to_k() -> None:
    """Of 200 items the chances to be among the 30 add up to 30, forbidden items have none, and one too few is refused."""
    scores = np.random.default_rng(2).normal(size=200)
    scores[:3] = -1e30
    mu = TopKOracle().marginals(scores, (200, 30))[1]
    assert mu.sum() == pytest.approx(30.0, abs=1e-9)
    assert not mu[:3].any()
    with pytest.raises(InfeasibleError, match="fewer than 198 items"):
        TopKOracle().marginals(scores, (200, 198))


def test_more_than_all_cannot_be_chosen() -> None:
    """A choice of 3 out of 2 is refused."""
    with pytest.raises(DataError, match="3 of 2 items cannot be chosen"):
        TopKOracle().argmax(np.zeros(2), (2, 3))
