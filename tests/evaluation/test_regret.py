"""Regret: by enumeration, its sign, its normalised form, and what ties leave open."""

import numpy as np
import pytest

from structpred.errors import DataError, ParameterError
from structpred.evaluation.regret import evaluate_regret, tie_regrets
from structpred.oracles.knapsack import KnapsackOracle, knapsack_shape
from structpred.oracles.shortest_path import ShortestPathOracle


def test_regret_is_what_enumeration_says() -> None:
    """On ragged grids the regret of random paths is their cost less the least cost of all paths; normalised, of its sum."""
    rng, oracle, shapes = np.random.default_rng(0), ShortestPathOracle(), [(2, 3), (3, 3), (2, 2)]
    costs = [rng.normal(size=oracle.n_parts(shape)) for shape in shapes]
    every = [list(oracle.enumerate(shape)) for shape in shapes]
    taken = [paths[int(rng.integers(len(paths)))] for paths in every]
    least = np.array([min(own[path].sum() for path in paths) for own, paths in zip(costs, every, strict=True)])
    wanted = np.array([own[path].sum() for own, path in zip(costs, taken, strict=True)]) - least
    found = evaluate_regret(oracle, taken, shapes, costs=costs)
    assert found.regrets == pytest.approx(wanted)
    assert (found.mean, found.normalised) == pytest.approx((wanted.mean(), wanted.sum() / np.abs(least).sum()))


def test_values_are_maximised() -> None:
    """The regret of a knapsack is by how much the best one is worth more."""
    shape = knapsack_shape([2.0, 2.0, 3.0], 4.0)
    found = evaluate_regret(KnapsackOracle(), [[0, 0, 1]], [shape], values=[[3.0, 2.0, 4.0]])
    assert (found.mean, found.normalised) == pytest.approx((1.0, 0.2))


def test_ties_are_bracketed() -> None:
    """With predictions in whole numbers the best and the worst regret among ties are those of enumeration, and bracket any."""
    rng, oracle, shape = np.random.default_rng(1), ShortestPathOracle(), (3, 4)
    paths = list(oracle.enumerate(shape))
    predicted, costs = rng.integers(0, 2, (40, oracle.n_parts(shape))), rng.exponential(size=(40, oracle.n_parts(shape)))
    found = tie_regrets(oracle, predicted, [shape] * 40, costs=costs)
    some = 0
    for i in range(40):
        sums, true = (np.array([own[path].sum() for path in paths]) for own in (predicted[i], costs[i]))
        tied = true[sums == sums.min()] - true.min()
        assert found.optimistic.regrets[i] == pytest.approx(tied.min(), abs=1e-9)
        assert found.pessimistic.regrets[i] == pytest.approx(tied.max(), abs=1e-9)
        some += len(tied) > 1
    assert some > 5


def test_a_prediction_without_ties_has_one_regret() -> None:
    """Where one decision is best the two are the same, also where predictions and truth are of very different sizes."""
    rng, oracle = np.random.default_rng(2), ShortestPathOracle()
    predicted, costs = 1e-3 * rng.exponential(size=(9, 40)), 1e6 * rng.exponential(size=(9, 40))
    found = tie_regrets(oracle, predicted, [(5, 5)] * 9, costs=costs)
    plain = evaluate_regret(oracle, [oracle.argmax(-own, (5, 5)) for own in predicted], [(5, 5)] * 9, costs=costs)
    assert np.array_equal(found.optimistic.regrets, found.pessimistic.regrets)
    assert found.optimistic.regrets == pytest.approx(plain.regrets, rel=1e-12)


def test_what_does_not_fit_is_refused() -> None:
    """Both costs and values, neither, another number of them or one that is no number: a clear error with the sample."""
    oracle = ShortestPathOracle()
    with pytest.raises(ParameterError, match="one of them, not both"):
        evaluate_regret(oracle, [[0, 2]], [(2, 2)])
    with pytest.raises(DataError, match="sample 1: expected 7 costs, one a part"):
        evaluate_regret(oracle, [[0, 2]] * 2, [(2, 2), (2, 3)], costs=[np.zeros(4), np.zeros(4)])
    with pytest.raises(DataError, match="sample 0: part 3 has the score nan"):
        evaluate_regret(oracle, [[0, 2]], [(2, 2)], costs=[[0.0, 0.0, 0.0, np.nan]])
