"""After the last pass the average is made in place of the state, unless something goes on from that."""

import tracemalloc

import numpy as np
import pytest
from training_cases import TRAINERS, chain_task, problem

from structpred.data.sequences import PackedSequences
from structpred.features.sequences import SequenceFeatures
from structpred.objectives.part_losses import Hamming
from structpred.oracles.chain import ChainOracle
from structpred.task.task import Task
from structpred.trainers.loop import RunSettings, train
from structpred.trainers.passive_aggressive import PassiveAggressive
from structpred.trainers.sgd import SGD

N_FEATURES = 500_000


def wide_problem():
    """Three short sequences with half a million features: all memory is that of weights."""
    rng = np.random.default_rng(0)
    ids = rng.integers(0, N_FEATURES, 60, dtype=np.int32)
    data = PackedSequences(np.arange(0, 61, 5), ids, np.ones(60, np.float32), np.array([0, 4, 8, 12]), N_FEATURES)
    labels = [rng.integers(0, 8, 4) for _ in range(3)]
    return problem(Task(SequenceFeatures(data, 8), ChainOracle(), labels, [(4, 8)] * 3, Hamming()), 0.1)


def arrays_at_peak(prob, trainer, **settings) -> float:
    """The most memory that a run of two passes takes, in arrays as large as the weights."""
    tracemalloc.start()
    train(prob, trainer, RunSettings(max_iter=2, **settings))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / (4 * prob.task.dim)


@pytest.mark.mostly_slow
@pytest.mark.parametrize("trainer", ["sgd", "bcfw", "mira", "perceptron", "passive-aggressive"])
def test_there_is_no_third_array(trainer: str) -> None:
    """A run holds the weights and the accumulator of their average, and pieces; one whose state is kept needs a third array."""
    make = {**TRAINERS, "passive-aggressive": PassiveAggressive}[trainer]
    prob = wide_problem()
    train(prob, make(), RunSettings(max_iter=1))  # kernels are loaded
    assert arrays_at_peak(prob, make()) < 2.6
    assert arrays_at_peak(prob, make(), keep=True) > 3.0


@pytest.mark.mostly_slow
@pytest.mark.parametrize("trainer", TRAINERS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_weights_and_bounds_do_not_depend_on_what_is_kept(trainer: str, dtype: type) -> None:
    """The weights and the history are the same bits whether the state is kept, and a state begun from stays as it was."""
    prob, make = problem(chain_task(0, dtype=dtype), 0.1), TRAINERS[trainer]
    kept, free = (train(prob, make(), RunSettings(max_iter=3, check_every=2, keep=keep)) for keep in (True, False))
    bounds = [[(row["primal"], row["dual"]) for row in result.history] for result in (kept, free)]
    assert kept.weights.tobytes() == free.weights.tobytes()
    assert bounds[0] == bounds[1]
    assert kept.certificate == free.certificate
    more = [train(prob, make(), RunSettings(max_iter=5, start=kept.progress)).weights.tobytes() for _ in range(2)]
    assert more[0] == more[1] == train(prob, make(), RunSettings(max_iter=5)).weights.tobytes()


class Rounded(SGD):
    """A trainer that returns other weights than SGD does."""

    def weights(self, problem, state):
        return np.round(super().weights(problem, state), 2)


def test_a_subclass_decides_what_is_returned() -> None:
    """Where a subclass changed the weights to return, these are returned and judged."""
    prob = problem(chain_task(0), 0.1)
    result = train(prob, Rounded(), RunSettings(max_iter=3))
    assert np.array_equal(result.weights, np.round(result.weights, 2))
    assert result.certificate.primal == prob.primal(result.weights)
