"""Training sets of which some outputs are known in part, small enough to list all outputs."""

from typing import Any

import numpy as np
from scipy.special import logsumexp

from structpred.core.fixed_scores import FORBIDDEN
from structpred.core.oracle import Oracle
from structpred.data.sequences import PackedSequences
from structpred.features.graphs import GraphFeatures
from structpred.features.parts import PartFeatures
from structpred.features.sequences import SequenceFeatures
from structpred.objectives.part_losses import Hamming
from structpred.oracles.arborescence import ArborescenceOracle
from structpred.oracles.assignment import AssignmentOracle
from structpred.oracles.chain import ChainOracle
from structpred.oracles.enumerated import EnumeratedOracle
from structpred.oracles.mrf import graph_shape
from structpred.oracles.mrf_enumeration import EnumerationMRF
from structpred.task.instance_subset import AddedScores, take_features
from structpred.task.partial_task import PartialTask

N = 5


def _parts(oracle: Oracle, shape: Any, seed: int) -> tuple[Any, Oracle, list[Any]]:
    rng = np.random.default_rng(seed)
    return PartFeatures([rng.normal(size=(oracle.n_parts(shape), 4)) for _ in range(N)]), oracle, [shape] * N


def chains() -> tuple[Any, Oracle, list[Any]]:
    """Sequences of three tokens over three labels."""
    rng, n = np.random.default_rng(0), 3 * N
    data = PackedSequences(
        np.arange(0, 2 * n + 1, 2), rng.integers(0, 5, 2 * n), rng.normal(size=2 * n), np.arange(0, n + 1, 3), 5
    )
    return SequenceFeatures(data, 3, dtype=np.float64), ChainOracle(), [(3, 3)] * N


def trees() -> tuple[Any, Oracle, list[Any]]:
    """Trees of three words."""
    return _parts(ArborescenceOracle(), (3,), 1)


def fields() -> tuple[Any, Oracle, list[Any]]:
    """A cycle of three nodes with two states."""
    rng, shape = np.random.default_rng(2), graph_shape(3, 2, np.array([[0, 1], [1, 2], [0, 2]]))
    return GraphFeatures([shape] * N, [rng.normal(size=(3, 2)) for _ in range(N)], n_states=2), EnumerationMRF(), [shape] * N


def own() -> tuple[Any, Oracle, list[Any]]:
    """Matchings of three, with marginals by listing."""
    return _parts(EnumeratedOracle.of(AssignmentOracle()), (3,), 3)


STRUCTURES = {"chain": chains, "tree": trees, "field": fields, "own oracle": own}


def partial(name: str, *, loss: Any = None, **options: Any) -> tuple[PartialTask, list[list[Any]]]:
    """A task in which every instance but the first may be one of a few outputs; and which these are."""
    features, oracle, shapes = STRUCTURES[name]()
    rng, sets, added = np.random.default_rng(7), [], []
    for i, shape in enumerate(shapes):
        outputs = list(oracle.enumerate(shape))
        truth = outputs[rng.integers(len(outputs))]
        own_parts = oracle.parts(truth, shape)
        positions, labels = oracle.label_grid(shape) if hasattr(oracle, "label_grid") else (3, 3)
        scores = np.zeros(oracle.n_parts(shape))
        grid = scores[: positions * labels].reshape(positions, labels)
        if i:
            grid[0] = FORBIDDEN
            grid[0, int(own_parts[0]) % labels] = 0.0
            added.append(scores)
        sets.append([y for y in outputs if scores[oracle.parts(y, shape)].min() == 0.0] if i else [truth])
    rows = np.arange(1, N)
    left = AddedScores(take_features(features, rows), added)
    labels_ = [sets[0][0], *([np.zeros(0, np.int64)] * (N - 1))]
    task = PartialTask(features, oracle, labels_, shapes, loss or Hamming(), allowed=left, rows=rows, **options)
    return task, sets


def listed_value(task: PartialTask, sets: list[list[Any]], w: Any, i: int) -> float:
    """log sum over all outputs - log sum over those of the set: what pytorch-partial-crf's loss is for a chain."""
    theta, oracle, shape = task.features.scores(w, i), task.oracle, task.shapes[i]
    total = [theta[oracle.parts(y, shape)].sum() for y in oracle.enumerate(shape)]
    some = [theta[oracle.parts(y, shape)].sum() for y in sets[i]]
    return float(logsumexp(total) - logsumexp(some))
