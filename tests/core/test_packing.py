"""Batches: views for plain oracles, the whole buffer for compiled ones, the same answers."""

import numpy as np
import pytest

from structpred.core.packing import argmax_batch, check_finite, checked_labels
from structpred.errors import DataError, OracleError
from structpred.oracles.assignment import AssignmentOracle
from structpred.oracles.chain import ChainOracle
from structpred.oracles.multiclass import MulticlassOracle


@pytest.mark.parametrize("oracle", [ChainOracle(), MulticlassOracle(), AssignmentOracle()])
def test_batches_equal_single_calls(oracle) -> None:
    """On mixed shapes, with and without a batch method, float32 scores included."""
    rng, shapes = np.random.default_rng(0), list(oracle.example_shapes()) * 5
    pieces = [rng.normal(size=oracle.n_parts(s)).astype(np.float32) for s in shapes]
    offsets = np.cumsum([0, *map(len, pieces)])
    labels, ends = argmax_batch(oracle, np.concatenate(pieces), offsets, shapes)
    assert (labels.dtype, ends.dtype) == (np.int64, np.int64)
    for i, (piece, shape) in enumerate(zip(pieces, shapes, strict=True)):
        np.testing.assert_array_equal(labels[ends[i] : ends[i + 1]], oracle.argmax(piece.astype(float), shape))


@pytest.mark.parametrize("oracle", [ChainOracle(), MulticlassOracle(), AssignmentOracle()])
def test_an_empty_batch_is_allowed(oracle) -> None:
    """No instance: no labels and the offsets [0]."""
    labels, ends = argmax_batch(oracle, np.empty(0), np.zeros(1, np.int64), [])
    assert (labels.tolist(), ends.tolist()) == ([], [0])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_scores_that_are_not_finite_name_the_sample(bad) -> None:
    """The instance and the part are in the message."""
    scores = np.zeros(6)
    scores[4] = bad
    with pytest.raises(DataError, match=r"sample 1: part 1 has the score"):
        argmax_batch(MulticlassOracle(), scores, np.array([0, 3, 6]), [(3,), (3,)])
    with pytest.raises(DataError, match="sample 0: part 4"):
        check_finite(scores, np.array([0, 6]))


def test_offsets_that_do_not_fit_are_refused() -> None:
    """As many offsets as instances and one more, the last one the number of scores."""
    for offsets, shapes in (([0, 3], [(3,), (3,)]), ([0, 3, 5], [(3,), (3,)])):
        with pytest.raises(DataError, match="does not fit offsets"):
            argmax_batch(MulticlassOracle(), np.zeros(6), np.array(offsets), shapes)


@pytest.mark.parametrize("labels", [[0], np.zeros(1), np.zeros(1, np.int32), np.zeros((1, 1), np.int64), None])
def test_only_int64_vectors_are_labels(labels) -> None:
    """Anything else is an OracleError that says what came."""
    with pytest.raises(OracleError, match=r"MulticlassOracle\.argmax must return a 1-d int64 array of labels, got a "):
        checked_labels(labels, MulticlassOracle())


def test_chains_refuse_sequences_of_no_length() -> None:
    """A chain needs at least one position."""
    with pytest.raises(DataError, match="sample 1: the number of positions must be"):
        argmax_batch(ChainOracle(), np.zeros(6 + 4), np.array([0, 6, 10]), [(1, 2), (0, 2)])
