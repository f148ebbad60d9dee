"""What trainers say of themselves is true."""

import numpy as np
import pytest
from training_cases import chain_task

from structpred.core.requirements import met
from structpred.models.settings import surrogates
from structpred.rows.linear_task import LinearTask
from structpred.trainers.loop import RunSettings, train
from structpred.trainers.names import trainers
from structpred.trainers.problem import Problem

#: what trainers of structures may need here
ENOUGH = frozenset({"argmax", "marginals", "argmax_per_loss"})


@pytest.mark.parametrize("name", [name for name, kind in trainers().items() if met(kind.requires, ENOUGH)])
def test_certified_trainers_give_bounds_and_others_do_not(name: str) -> None:
    """With each surrogate that a trainer minimises, its default among them, a run has a dual value exactly if it says so."""
    kind = trainers()[name]
    assert kind.minimises(kind.surrogates[0]())
    for make in surrogates().values():
        surrogate = make()
        rows = "rows" in surrogate.requires
        if kind.minimises(surrogate) and met(
            kind.requires if rows else surrogate.requires, LinearTask.capabilities if rows else ENOUGH
        ):
            task = LinearTask(np.eye(3), [1, -1, 1]) if rows else chain_task(3, n=6)
            result = train(Problem(task, surrogate, 0.1), kind(), RunSettings(max_iter=1))
            assert (result.certificate.dual is not None) == kind.certifies(surrogate), surrogate
