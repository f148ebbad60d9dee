"""Batches: views for plain oracles, the whole buffer for compiled ones, the same answers."""

import numpy as np
import pytest

from structpred.core.oracle import Oracle
from structpred.core.packing import argmax_batch, check_finite, checked_labels, marginals_batch, project_batch
from structpred.errors import DataError, InfeasibleError, OracleError
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


class Choice(Oracle):
    """The best of n labels; base of the oracles below."""

    def n_parts(self, shape):
        """One part per label."""
        return shape[0]

    def argmax(self, scores, shape):
        """The best label."""
        return np.array([int(scores.argmax())])

    def parts(self, labels, shape):
        """The label itself."""
        return labels

    @staticmethod
    def example_shapes():
        """Not used here."""
        return [(2,)]


def test_answers_in_a_shared_buffer_are_copied() -> None:
    """An argmax that gives the same array every time still predicts each sample's own answer."""

    class Shared(Choice):
        buffer = np.zeros(1, np.int64)

        def argmax(self, scores, shape):
            self.buffer[0] = scores.argmax()
            return self.buffer

    labels, ends = argmax_batch(Shared(), np.eye(3).ravel(), np.array([0, 3, 6, 9]), [(3,)] * 3)
    assert (labels.tolist(), ends.tolist()) == ([0, 1, 2], [0, 1, 2, 3])


def test_a_batch_buffer_is_copied() -> None:
    """What a batch method returns may be used again by its next call."""

    class Shared(Choice):
        buffer = np.zeros(1, np.int64)

        def argmax_batch(self, scores, offsets, shapes):
            self.buffer[0] = scores.argmax()
            return self.buffer, np.array([0, 1])

    first, _ = argmax_batch(Shared(), np.array([1.0, 0.0]), np.array([0, 2]), [(2,)])
    argmax_batch(Shared(), np.array([0.0, 1.0]), np.array([0, 2]), [(2,)])
    assert first.tolist() == [0]


def test_an_exception_of_the_oracle_names_the_sample() -> None:
    """The sample, the method and the exception are in an OracleError; errors of structpred pass as they are."""

    class Raises(Choice):
        error: Exception = KeyError("node 7")

        def argmax(self, scores, shape):
            if scores.argmax() == 1:
                raise self.error
            return super().argmax(scores, shape)

    scores, offsets, shapes = np.array([1.0, 0.0, 0.0, 1.0]), np.array([0, 2, 4]), [(2,), (2,)]
    with pytest.raises(OracleError, match=r"sample 1: Raises\.argmax raised KeyError: 'node 7'") as caught:
        argmax_batch(Raises(), scores, offsets, shapes)
    assert isinstance(caught.value.__cause__, KeyError)
    oracle = Raises()
    oracle.error = InfeasibleError("nothing is left")
    with pytest.raises(InfeasibleError, match=r"^nothing is left$"):
        argmax_batch(oracle, scores, offsets, shapes)


def test_a_wrong_answer_names_the_sample() -> None:
    """Labels of another type are refused with the number of the sample."""

    class Floats(Choice):
        def argmax(self, scores, shape):
            labels = super().argmax(scores, shape)
            return labels if scores.argmax() == 0 else labels.astype(float)

    with pytest.raises(OracleError, match=r"sample 1: Floats\.argmax must return a 1-d int64 array of labels, got a 1-d array"):
        argmax_batch(Floats(), np.array([1.0, 0.0, 0.0, 1.0]), np.array([0, 2, 4]), [(2,), (2,)])


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (np.array([0, 1]), r"must return \(labels, label_offsets\), got ndarray"),
        ((np.array([0, 1]), [0, 1, 2]), "must return a 1-d int64 array of labels, got a list"),
        ((np.array([0.0, 1.0]), np.array([0, 1, 2])), "must return a 1-d int64 array"),
        ((np.array([0, 1]), np.array([0, 1])), "must return 3 ascending label_offsets"),
        ((np.array([0, 1]), np.array([0, 1, 3])), "must return 3 ascending label_offsets"),
        ((np.array([0, 1]), np.array([0, 3, 2])), "must return 3 ascending label_offsets"),
        ((np.array([0, 1]), np.array([1, 1, 2])), "must return 3 ascending label_offsets"),
        ((np.array([0, 1]), np.empty(0, np.int64)), "must return 3 ascending label_offsets"),
    ],
)
def test_answers_of_a_batch_method_are_checked(answer, message) -> None:
    """Type, number and order of the offsets: nothing else is handed on to be cut into samples."""

    class Batch(Choice):
        def argmax_batch(self, scores, offsets, shapes):
            return answer

    with pytest.raises(OracleError, match=rf"Batch\.argmax_batch {message}"):
        argmax_batch(Batch(), np.zeros(4), np.array([0, 2, 4]), [(2,), (2,)])


def test_an_exception_of_a_batch_method_is_told() -> None:
    """Its name and the number of samples are in the error."""

    class Batch(Choice):
        def argmax_batch(self, scores, offsets, shapes):
            raise ZeroDivisionError("division by zero")

    with pytest.raises(OracleError, match=r"a batch of 1 samples: Batch\.argmax_batch raised ZeroDivisionError"):
        argmax_batch(Batch(), np.zeros(2), np.array([0, 2]), [(2,)])


@pytest.mark.parametrize("shapes", [[(4, 3), (1, 3), (7, 3)], [(2, 2), (3, 2), (2, 4), (5, 2)], []])
def test_marginals_of_a_batch_are_the_loop(shapes) -> None:
    """To the last bit, whether the oracle has a call for batches or a subclass changed `marginals`; so are projections."""

    class Plain(ChainOracle):
        def marginals(self, scores, shape):
            return super().marginals(scores, shape)

    rng, oracle = np.random.default_rng(0), ChainOracle()
    offsets = np.cumsum([0, *(oracle.n_parts(shape) for shape in shapes)])
    scores = rng.normal(size=offsets[-1])
    one, other = (marginals_batch(o, scores, offsets, shapes) for o in (oracle, Plain()))
    for a, b in zip(one, other, strict=True):
        assert a.tobytes() == b.tobytes()
    expected = [oracle.project(scores[a:b], shape) for a, b, shape in zip(offsets, offsets[1:], shapes, strict=False)]
    assert project_batch(oracle, scores, offsets, shapes).tolist() == np.concatenate([*expected, np.empty(0)]).tolist()


def test_batches_of_another_size_are_refused() -> None:
    """What a batch method returns must have a number for each part, or the error names it."""

    class Short(ChainOracle):
        def marginals_batch(self, scores, offsets, shapes):
            log_zs, mu = super().marginals_batch(scores, offsets, shapes)
            return log_zs, mu[:-1]

        def project_batch(self, points, offsets, shapes):
            return points[1:]

    arguments = (Short(), np.zeros(8), np.array([0, 8]), [(2, 2)])
    with pytest.raises(OracleError, match=r"Short\.marginals_batch: expected 8 numbers"):
        marginals_batch(*arguments)
    with pytest.raises(OracleError, match=r"Short\.project_batch: expected 8 numbers"):
        project_batch(*arguments)
