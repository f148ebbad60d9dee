"""Label sequences as features, an oracle and shapes: one table of transitions, or scores of each step by its own features."""

from itertools import pairwise

import numpy as np
import numpy.typing as npt

from structpred.core.feature_map import FeatureMap
from structpred.core.oracle import Oracle, Shape
from structpred.core.types import Integers
from structpred.core.weights import padded
from structpred.data.sequences import PackedSequences
from structpred.features.fixed_scores import FixedScores
from structpred.features.graphs import GraphFeatures
from structpred.features.positions import PositionSequences
from structpred.features.rows import FeatureRows, stack_rows
from structpred.features.sequences import SequenceFeatures
from structpred.models.chain.inputs import Input, n_transitions
from structpred.oracles.chain import ChainOracle
from structpred.oracles.mrf import graph_shape
from structpred.oracles.tree_mrf import TreeMRF


def chain_problem(
    data: PackedSequences | PositionSequences, n_labels: int, fixed: FixedScores | None, dtype: npt.DTypeLike = np.float32
) -> tuple[FeatureMap, Oracle, list[Shape]]:
    """The feature map of some sequences, the oracle for its parts, and their shapes.

    With features of transitions (`n_transitions`) the weights are float64, in the order of the table of `SequenceFeatures`
    without the columns that pad it; behind it n_labels rows (label before) for each of those features.
    """
    lengths = data.lengths.tolist()
    if isinstance(data, PositionSequences):
        return data.features(n_labels, fixed), ChainOracle(), [(length, n_labels) for length in lengths]
    if not data.n_transitions:
        features: FeatureMap = SequenceFeatures(data, n_labels, dtype=dtype, fixed=fixed)
        return features, ChainOracle(), [(length, n_labels) for length in lengths]
    paths = {t: graph_shape(t, n_labels, [(s, s + 1) for s in range(t - 1)]) for t in sorted(set(lengths))}
    shapes = [paths[length] for length in lengths]
    nodes, edges = _rows(data)
    given = None
    if fixed is not None:
        each = pairwise(data.offsets.tolist())
        given = [np.append(fixed.of(a, b, edges=False), np.tile(fixed.edges, (b - a - 1, 1))) for a, b in each]
    features = graphs = GraphFeatures(shapes, nodes, edge_rows=edges, n_states=n_labels, fixed=given)
    starts, names = data.blocks
    n = data.n_features - data.n_transitions
    rows = np.where(starts <= n, starts, starts + 2 + (n_labels - 1) * (starts - n) + n_labels)
    own = int(np.searchsorted(starts, n))
    graphs.groups = np.concatenate((rows[: own + 1], [n + 2, n + 2 + n_labels], rows[own + 1 :])) * n_labels
    graphs.group_names = [*names[:own], "start and stop", "transitions", *names[own:]]
    return features, TreeMRF(), shapes


def table_width(input_: Input, n_labels: int) -> int:
    """The columns of the weight table of a fitted labeler, with those that pad it."""
    return n_labels if n_transitions(input_) else padded(n_labels)


def n_weights(input_: Input, n_labels: int) -> int:
    """The number of its weights."""
    return ((input_.n_features or 0) + 2 + (1 + n_transitions(input_)) * n_labels) * table_width(input_, n_labels)


def _rows(data: PackedSequences) -> tuple[FeatureRows, FeatureRows]:
    """The features of tokens, with two more for the first and the last one, and those of steps behind a constant 1."""
    from scipy import sparse

    n, last = data.n_features - data.n_transitions, data.offsets[1:] - 1
    table = sparse.csr_array((data.values, data.indices, data.indptr), (data.n_tokens, data.n_features))
    ends = np.zeros((data.n_tokens, 2))
    ends[data.offsets[:-1], 0] = ends[last, 1] = 1.0
    steps = np.flatnonzero(ends[:, 0] == 0.0)
    nodes = stack_rows(sparse.hstack((table[:, :n], sparse.csr_array(ends)), format="csr"))
    constant = sparse.csr_array(np.ones((len(steps), 1)))
    edges = stack_rows(sparse.hstack((constant, table[steps, n:]), format="csr"), "features of transitions")
    places: Integers = data.offsets - np.arange(len(data.offsets))
    return nodes._replace(offsets=data.offsets), edges._replace(offsets=places)
