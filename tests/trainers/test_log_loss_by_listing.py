"""The log loss over oracles that list their outputs and have no marginals: all outputs of small shapes are looked at."""

from typing import Any

import numpy as np
import pytest
from training_cases import PlainChain, assignment_task, chain_task, log_optimum, log_problem

from structpred.errors import DataError, MissingCapabilityError
from structpred.features.parts import PartFeatures
from structpred.objectives.part_losses import Hamming
from structpred.oracles.assignment import AssignmentOracle
from structpred.oracles.enumerated import MAX_OUTPUTS, EnumeratedOracle
from structpred.oracles.leaf_sets import LeafSets
from structpred.oracles.ranking import RankingOracle
from structpred.task.task import Task
from structpred.trainers.lbfgs import LBFGS
from structpred.trainers.loop import RunSettings, train
from structpred.trainers.oeg import OnlineEG


class Listing(PlainChain):
    """A user's own oracle that lists its outputs."""

    def enumerate(self, shape: Any) -> Any:
        return (np.array(y, dtype=np.int64) for y in np.ndindex(*[shape[1]] * shape[0]))


def small_task(oracle: Any, shape: Any) -> Task:
    """Four of the outputs of a shape, with two features a part."""
    rng, outputs = np.random.default_rng(0), list(oracle.enumerate(shape))
    rows = [rng.normal(size=(oracle.n_parts(shape), 2)) for _ in range(4)]
    return Task(PartFeatures(rows), oracle, outputs[:4], [shape] * 4, Hamming())


TASKS: dict[str, Any] = {
    "assignment": lambda: assignment_task(n=4),
    "ranking": lambda: small_task(RankingOracle(), (3,)),
    "leaf sets": lambda: small_task(LeafSets(), (-1, 0, 0, 1, 1)),
    "own": lambda: chain_task(1, n=4, longest=3, oracle=Listing()),
}


def listed(task: Task) -> Task:
    """The same task over all outputs of its oracle."""
    return Task(task.features, EnumeratedOracle.of(task.oracle), task.labels, task.shapes, task.loss)


@pytest.mark.parametrize("name", TASKS)
def test_the_optimum_is_that_of_all_outputs(name: str) -> None:
    """Refused with the way to do it; by listing, both bounds meet at what SciPy finds over all outputs."""
    task = TASKS[name]()
    with pytest.raises(
        MissingCapabilityError, match=r"EnumeratedOracle.of\(oracle\) has it, for shapes of up to 262,144 outputs"
    ):
        train(log_problem(task), LBFGS())
    value, w = log_optimum(task, 0.1)
    for trainer in (LBFGS(), OnlineEG()) if name == "own" else (LBFGS(),):
        result = train(log_problem(listed(task)), trainer, RunSettings(max_iter=100, tol=1e-5, check_every=1))
        for row in result.history:
            assert row["dual"] <= value + 1e-9 <= row["primal"] + 2e-9
        assert result.certificate.gap <= 1e-4
        np.testing.assert_allclose(result.weights, w, atol=2e-2)


def test_too_many_outputs_are_refused() -> None:
    """Ten things have more matchings than are listed: said with the limit."""
    assert MAX_OUTPUTS == 262_144
    with pytest.raises(DataError, match="has more than 262144 outputs, too many to list"):
        EnumeratedOracle.of(AssignmentOracle()).marginals(np.zeros(100), (10,))
