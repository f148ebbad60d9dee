"""Parameter mixing: means of online trainers over shards, and what cannot be mixed."""

import numpy as np
import pytest
from training_cases import chain_task, problem

from structpred.errors import ParameterError
from structpred.trainers.arow import AROW
from structpred.trainers.bcfw import BCFW
from structpred.trainers.loop import RunSettings, train
from structpred.trainers.mira import MIRA
from structpred.trainers.mixing import ParameterMixing
from structpred.trainers.passive_aggressive import PassiveAggressive
from structpred.trainers.perceptron import AveragedPerceptron
from structpred.trainers.problem import Problem
from structpred.trainers.sgd import SGD

TRAINERS = {
    "perceptron": AveragedPerceptron,
    "mira": MIRA,
    "pa": PassiveAggressive,
    "pa-last": lambda: PassiveAggressive(averaged=False),
    "sgd": SGD,
    "sgd-last": lambda: SGD(averaged=False),
}


def one_after_the_other(trainer, task, lam, seed, shard, rounds):
    """The weights after passes in the order of a shard."""
    whole = Problem(task, problem(task).surrogate, lam)
    state = trainer.init_state(whole)
    for n_pass in range(rounds):
        for i in np.random.Generator(np.random.PCG64([seed, shard, n_pass])).permutation(len(task)):
            state, _ = trainer.update(whole, state, int(i))
    return trainer.weights(whole, state)


@pytest.mark.parametrize("name", TRAINERS)
def test_one_shard_is_the_trainer_itself(name) -> None:
    """With K = 1 the weights after three rounds are those of three passes, to 1e-12."""
    task = chain_task(0, n=12, weighted=True)
    found = train(problem(task, 0.05), ParameterMixing(TRAINERS[name](), shards=1, seed=2), RunSettings(max_iter=3))
    np.testing.assert_allclose(found.weights, one_after_the_other(TRAINERS[name](), task, 0.05, 2, 0, 3), atol=1e-12)
    assert found.certificate.dual is None
    assert found.history[-1]["oracle_calls"] == 36


@pytest.mark.parametrize("name", ["perceptron", "pa-last"])
def test_a_round_is_the_mean_over_the_shards(name) -> None:
    """After one round of three shards the weights are the mean of three runs, each on its third of the data, to 1e-12."""
    task = chain_task(1, n=12, weighted=True)
    runs = [one_after_the_other(TRAINERS[name](), task.take(np.arange(4 * k, 4 * k + 4)), 0.05, 0, k, 1) for k in range(3)]
    found = train(problem(task, 0.05), ParameterMixing(TRAINERS[name](), shards=3), RunSettings(max_iter=1))
    np.testing.assert_allclose(found.weights, np.mean(runs, axis=0), atol=1e-12)


def test_what_has_no_mean_is_refused() -> None:
    """Trainers with blocks, and online ones that keep more than weights, are errors that name what can be mixed."""
    with pytest.raises(ParameterError, match="by CoCoA"):
        ParameterMixing(BCFW())
    with pytest.raises(ParameterError, match="perceptron, mira, pa and sgd"):
        train(problem(chain_task(0)), ParameterMixing(AROW(), shards=2))
