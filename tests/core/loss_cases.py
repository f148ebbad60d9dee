"""Chain tasks for the tests of losses."""

from typing import Any

import numpy as np

from structpred.data.sequences import PackedSequences
from structpred.features.sequences import SequenceFeatures
from structpred.oracles.chain import ChainOracle
from structpred.task.task import Task

LENGTHS = (3, 1, 4, 2)


def chains(loss: Any, **options: Any) -> Task:
    """Four random sequences of three labels, two features a token."""
    rng = np.random.default_rng(0)
    n = sum(LENGTHS)
    offsets = np.concatenate(([0], np.cumsum(LENGTHS)))
    data = PackedSequences(np.arange(0, 2 * n + 1, 2), rng.integers(0, 6, 2 * n), np.ones(2 * n), offsets, 6)
    gold = [rng.integers(0, 3, k) for k in LENGTHS]
    return Task(SequenceFeatures(data, 3), ChainOracle(), gold, [(k, 3) for k in LENGTHS], loss, **options)
