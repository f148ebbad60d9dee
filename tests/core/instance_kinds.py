"""Training sets of every kind of features and oracle, small, for tests of inference and tasks."""

from typing import Any

import numpy as np

from structpred.core.fixed_scores import FORBIDDEN
from structpred.core.oracle import Oracle
from structpred.data.sequences import PackedSequences
from structpred.features.fixed_scores import FixedScores
from structpred.features.graphs import GraphFeatures
from structpred.features.label_rows import LabelRows
from structpred.features.parts import PartFeatures
from structpred.features.sequences import SequenceFeatures
from structpred.oracles.assignment import AssignmentOracle
from structpred.oracles.chain import ChainOracle
from structpred.oracles.mrf import graph_shape
from structpred.oracles.multiclass import MulticlassOracle
from structpred.oracles.tree_mrf import TreeMRF

N = 9
LENGTHS = (3, 1, 2, 5, 1, 4, 2, 2, 3)


def chains(fixed: bool = False) -> tuple[Any, Oracle, list[Any]]:
    """Sequences over three labels; fixed: the first label is forbidden at odd tokens."""
    rng, n = np.random.default_rng(0), sum(LENGTHS)
    data = PackedSequences(
        np.arange(0, 2 * n + 1, 2), rng.integers(0, 5, 2 * n), rng.normal(size=2 * n), np.cumsum([0, *LENGTHS]), 5
    )
    rows = np.array([[0.0, 0.0, 0.0], [FORBIDDEN, 0.0, 0.0]])
    scores = FixedScores(rows, (np.arange(n) % 2).astype(np.int32), np.zeros((3, 3))) if fixed else None
    return SequenceFeatures(data, 3, dtype=np.float64, fixed=scores), ChainOracle(), [(t, 3) for t in LENGTHS]


def graphs() -> tuple[Any, Oracle, list[Any]]:
    """Paths of three nodes with two states, one of them forbidden in every second graph."""
    rng, shape = np.random.default_rng(1), graph_shape(3, 2, np.array([[0, 1], [1, 2]]))
    barred = np.zeros(3 * 2 + 2 * 4)
    barred[0] = FORBIDDEN
    features = GraphFeatures(
        [shape] * N, [rng.normal(size=(3, 4)) for _ in range(N)], n_states=2, fixed=[barred if i % 2 else None for i in range(N)]
    )
    return features, TreeMRF(), [shape] * N


def rows_of_parts() -> tuple[Any, Oracle, list[Any]]:
    """Classes of different numbers."""
    rng = np.random.default_rng(2)
    return PartFeatures([rng.normal(size=(2 + i % 3, 4)) for i in range(N)]), MulticlassOracle(), [(2 + i % 3,) for i in range(N)]


def labels_of_rows() -> tuple[Any, Oracle, list[Any]]:
    """A weight row per label."""
    features = LabelRows(np.random.default_rng(3).normal(size=(N, 4)), 3, dtype=np.float64)
    return features, MulticlassOracle(), features.shapes


def matchings() -> tuple[Any, Oracle, list[Any]]:
    """An oracle without batches."""
    rng = np.random.default_rng(4)
    return PartFeatures([rng.normal(size=(9, 4)) for _ in range(N)]), AssignmentOracle(), [(3,)] * N


KINDS = {
    "chains": chains,
    "constrained chains": lambda: chains(True),
    "graphs": graphs,
    "classes": rows_of_parts,
    "label rows": labels_of_rows,
    "matchings": matchings,
}


def weights(features: Any) -> Any:
    """Random weights."""
    return np.random.default_rng(5).normal(size=features.dim)
