"""The task: steps equal what enumeration and dense arithmetic say, and everything that does not fit is refused by sample."""

import numpy as np
import pytest

from structpred.core.oracle import Oracle
from structpred.data.sequences import PackedSequences
from structpred.errors import DataError, MissingCapabilityError, OracleError, ParameterError
from structpred.features.parts import PartFeatures
from structpred.features.sequences import SequenceFeatures
from structpred.objectives.part_losses import Hamming, LabelCosts
from structpred.oracles.assignment import AssignmentOracle
from structpred.oracles.chain import ChainOracle
from structpred.oracles.multiclass import MulticlassOracle
from structpred.task.steps import running_sum
from structpred.task.task import Task

LENGTHS = (3, 1, 2)


def packed(rng: np.random.Generator) -> PackedSequences:
    """Three sequences of 3, 1 and 2 tokens with two of five features each."""
    n = sum(LENGTHS)
    return PackedSequences(
        np.arange(0, 2 * n + 1, 2), rng.integers(0, 5, 2 * n), rng.normal(size=2 * n), np.cumsum([0, *LENGTHS]), 5
    )


def chain_task(compiled: bool = True, **options) -> Task:
    """A chain task over two labels, with token weights."""
    rng = np.random.default_rng(0)
    data = packed(rng)
    options = {"token_weights": [rng.uniform(0.5, 2.0, n) for n in LENGTHS], **options}
    labels = [rng.integers(0, 2, n) for n in LENGTHS]
    shapes = [(n, 2) for n in LENGTHS]
    features = SequenceFeatures(data, 2, dtype=np.float64)
    return Task(features, ChainOracle(), labels, shapes, Hamming(), compiled=compiled, **options)


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize(("loss_weight", "scale"), [(0.0, 1.0), (1.0, 1.0), (0.5, 0.25), (1e6, 2.0)])
def test_step_is_the_largest_violation(compiled, loss_weight, scale) -> None:
    """The violation is the largest of loss_weight * loss - <w, difference> over all outputs, and difference and loss fit it."""
    task, rng = chain_task(compiled), np.random.default_rng(1)
    for _ in range(5):
        w = rng.normal(size=task.dim)
        for i, shape in enumerate(task.shapes):
            step = task.step(w, i, loss_weight, scale)
            constant, ell = task.costs(i)
            every = []
            for y in task.oracle.enumerate(shape):
                difference = task.difference(i, y).dense(task.dim)
                loss = constant + ell[task.oracle.parts(y, shape)].sum()
                every.append((loss_weight * loss - scale * (w @ difference), loss, difference))
            top = max(every, key=lambda e: e[0])
            assert step.violation == pytest.approx(top[0], rel=1e-10, abs=1e-10)
            assert step.violation == step.bound
            assert step.loss == pytest.approx(top[1], abs=1e-12)
            np.testing.assert_allclose(step.difference.dense(task.dim), top[2], atol=1e-12)
            assert (np.diff(step.difference.indices) > 0).all()
        values = task.violations(w, loss_weight)
        np.testing.assert_allclose(values, [task.step(w, i, loss_weight).violation for i in range(3)], rtol=1e-10, atol=1e-9)


def test_bounds_of_inexact_oracles_reach_the_step() -> None:
    """With argmax_bound the step's bound is what no output's violation exceeds, and the task counts as certified."""

    class Greedy(AssignmentOracle):
        exact = False

        def argmax_bound(self, scores, shape):
            rows = scores.reshape(shape[0], -1)
            return np.arange(shape[0]), float(rows.max(axis=1).sum())

    rng = np.random.default_rng(0)
    features = PartFeatures([rng.normal(size=(9, 4)) for _ in range(3)])
    options = (features, [rng.permutation(3) for _ in range(3)], [(3,)] * 3, Hamming())
    exact, bounded = (Task(options[0], oracle, *options[1:]) for oracle in (AssignmentOracle(), Greedy()))
    w = rng.normal(size=4)
    assert bounded.certified
    for i in range(3):
        best, step = exact.step(w, i, 1.0), bounded.step(w, i, 1.0)
        assert step.violation <= best.violation + 1e-12 <= step.bound + 2e-12


def test_an_inexact_oracle_without_bound_is_not_certified() -> None:
    """exact = False alone takes the proof away."""

    class Guess(MulticlassOracle):
        exact = False

    assert not Task(PartFeatures([np.eye(2)]), Guess(), [[0]], [(2,)], Hamming()).certified


def test_missing_capabilities_are_named() -> None:
    """The task asks its oracle."""
    with pytest.raises(MissingCapabilityError, match="X needs argmax_relaxed, which ChainOracle does not have"):
        chain_task().require(("argmax", "argmax_relaxed"), "X")


BAD = [
    ({"labels": [[0]]}, "2 samples with features but 1 labellings"),
    ({"labels": [[0], [3]]}, r"sample 1: .*outside \[0, 3\)"),
    ({"labels": [[0], [-1]]}, r"sample 1: .*outside \[0, 3\)"),
    ({"shapes": [(3,), (4,)]}, r"sample 1: shape \(4,\) has 4 parts, but the features have 3 rows"),
    ({"token_weights": [[1.0]]}, "2 samples but token weights for 1"),
    ({"token_weights": [[1.0], [1.0, 2.0]]}, r"sample 1: expected 1 token weights, one per position, got .* \(2,\)"),
    ({"token_weights": [[1.0], [-1.0]]}, "sample 1: token weights must be finite and >= 0"),
    ({"token_weights": [[np.nan], [1.0]]}, "sample 0: token weights must be finite and >= 0"),
]


@pytest.mark.parametrize(("change", "message"), BAD)
def test_what_does_not_fit_is_refused(change, message) -> None:
    """The error names the sample and both sides."""
    given = {"labels": [[0], [1]], "shapes": [(3,)] * 2, "token_weights": None, **change}
    with pytest.raises(DataError, match=message):
        Task(
            PartFeatures([np.eye(3), np.eye(3)]),
            MulticlassOracle(),
            given["labels"],
            given["shapes"],
            Hamming(),
            token_weights=given["token_weights"],
        )


def test_chains_refuse_labels_and_token_weights_of_other_lengths() -> None:
    """A label too many, a label out of range, or token weights shifted between sequences, are found although the totals fit."""
    rng = np.random.default_rng(0)
    features, shapes = SequenceFeatures(packed(rng), 2), [(n, 2) for n in LENGTHS]
    right = [np.zeros(n, np.int64) for n in LENGTHS]
    shifted = [np.ones(n) for n in (1, 3, 2)]
    for labels, weights, i in ((shifted, None, 0), ([*right[:2], np.array([0, 2])], None, 2), (right, shifted, 0)):
        with pytest.raises(DataError, match=f"sample {i}"):
            Task(features, ChainOracle(), labels, shapes, Hamming(), token_weights=weights)


@pytest.mark.parametrize("weights", [[1.0], [1.0, -1.0], [0.0, 0.0], [np.nan, 1.0], [np.inf, 1.0], [[1.0, 1.0]]])
def test_sample_weights_are_checked(weights) -> None:
    """One finite number >= 0 per sample, not all zero."""
    with pytest.raises(ParameterError, match="sample_weight"):
        Task(PartFeatures([np.eye(2)] * 2), MulticlassOracle(), [[0], [1]], [(2,)] * 2, Hamming(), sample_weight=weights)


def test_scores_that_are_not_finite_are_found() -> None:
    """Weights that overflow are a DataError before the oracle sees them."""
    task = Task(PartFeatures([1e200 * np.eye(2)]), MulticlassOracle(), [[0]], [(2,)], Hamming())
    with pytest.raises(DataError, match="part 0 has the score inf"):
        task.argmax(np.array([1e200, 0.0]), 0)


def test_labels_of_a_wrong_type_are_found() -> None:
    """An oracle that returns floats is an OracleError that names it."""

    class Floats(MulticlassOracle):
        def argmax(self, scores, shape):
            return np.array([0.0])

    with pytest.raises(OracleError, match=r"Floats\.argmax must return a 1-d int64 array of labels, got a 1-d array of float64"):
        Task(PartFeatures([np.eye(2)]), Floats(), [[0]], [(2,)], Hamming())


def test_fingerprints_tell_tasks_apart() -> None:
    """Equal tasks agree, compiled or not; other data, labels, losses, weights, types or dimensions do not."""
    base = {"loss": Hamming(), "oracle": MulticlassOracle(), "dtype": np.float64, "labels": [[0], [1]], "columns": 2}

    def make(**change) -> str:
        given = {"rows": np.eye(2), "sample_weight": None, "token_weights": None, **base, **change}
        features = PartFeatures([given["rows"]] * 2, n_columns=given["columns"], dtype=given["dtype"])
        weights = {name: given[name] for name in ("sample_weight", "token_weights")}
        return Task(features, given["oracle"], given["labels"], [(2,)] * 2, given["loss"], **weights).fingerprint()

    class Other(MulticlassOracle):
        pass

    wide = np.hstack((np.eye(2), np.zeros((2, 1))))
    changed = [
        make(labels=[[1], [0]]),
        make(loss=LabelCosts([[0.0, 2.0], [2.0, 0.0]])),
        make(rows=2 * np.eye(2)),
        make(rows=wide, columns=3),
        make(dtype=np.float32),
        make(sample_weight=[1.0, 2.0]),
        make(token_weights=[[1.0], [2.0]]),
        make(oracle=Other()),
    ]
    assert make() == make()
    assert chain_task(True).fingerprint() == chain_task(False).fingerprint()
    assert len({make(), *changed}) == 1 + len(changed)


def test_running_sum_adds_in_order() -> None:
    """As a loop does, not pairwise as NumPy does: compiled and plain losses must agree to the last bit."""
    values = np.random.default_rng(0).normal(size=1000)
    total = 0.0
    for x in values:
        total += x
    assert running_sum(values) == total
    assert running_sum(np.empty(0)) == 0.0


def test_an_oracle_of_ones_own_needs_three_methods_only() -> None:
    """No label grid, no enumerate, nothing optional: Hamming then counts missed parts."""

    class Pairs(Oracle):
        def n_parts(self, shape):
            return shape[0]

        def argmax(self, scores, shape):
            return np.sort(np.argsort(-scores, kind="stable")[:2]).astype(np.int64)

        def parts(self, labels, shape):
            return labels

        @staticmethod
        def example_shapes():
            return [(3,)]

    task = Task(PartFeatures([np.eye(4)]), Pairs(), [[0, 1]], [(4,)], Hamming())
    step = task.step(np.zeros(4), 0, 1.0)
    assert (step.loss, step.violation) == (2.0, 2.0)
    assert task.argmax(np.array([1.0, 2.0, 0.0, 3.0]), 0).tolist() == [1, 3]


class RowwiseMatching(AssignmentOracle):
    """A wrong oracle: the best column of each row, which is no matching where two rows want the same one."""

    enumerate = None

    def argmax(self, scores, shape):
        return scores.reshape(shape[0], shape[0]).argmax(axis=1).astype(np.int64)


def test_an_infeasible_output_found_while_training_names_the_sample_and_the_oracle():
    """What an oracle's argmax returns and its own parts() refuses is an OracleError with the sample's index."""
    x = np.array([[1.0], [0.0], [1.0], [0.0]])
    task = Task(PartFeatures([x]), RowwiseMatching(), [[1, 0]], [(2,)], Hamming())
    with pytest.raises(OracleError, match=r"sample 0: RowwiseMatching\.argmax returned an output that its own parts"):
        task.step(np.array([5.0]), 0, 0.0)
