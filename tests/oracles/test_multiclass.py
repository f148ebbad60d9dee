"""Multiclass classification: beyond the contract, what its labels must look like."""

import numpy as np
import pytest

from structpred.errors import DataError
from structpred.features.parts import PartFeatures
from structpred.objectives.part_losses import Hamming
from structpred.oracles.multiclass import MulticlassOracle
from structpred.task.task import Task


@pytest.mark.parametrize("labels", [[0, 1], [], [[0]]])
def test_an_output_is_one_label(labels) -> None:
    """Two labels, or none, for one sample are refused with its number."""
    with pytest.raises(DataError, match=r"sample 1: the true labels do not fit the shape \(3,\): expected one label"):
        Task(PartFeatures([np.eye(3)] * 2), MulticlassOracle(), [[2], labels], [(3,)] * 2, Hamming())


def test_marginals_survive_huge_scores() -> None:
    """Scores of 1e6 give probabilities, not NaN."""
    log_z, mu = MulticlassOracle().marginals(np.array([1e6, 1e6 - 1.0, -1e6]), (3,))
    assert log_z == pytest.approx(1e6 + np.log1p(np.exp(-1.0)), rel=1e-15)
    np.testing.assert_allclose(mu, [1 / (1 + np.exp(-1.0)), 1 / (1 + np.e), 0.0], atol=1e-12)
