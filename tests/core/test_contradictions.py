"""What contradicts itself in plain sight stops training, with the sample; labels that are no output do not train."""

from typing import Any

import numpy as np
import pytest
from loss_cases import chains

from structpred.core.costs import GridCosts, PartCosts
from structpred.core.oracle import Oracle
from structpred.errors import DataError, OracleError, ParameterError
from structpred.features.parts import PartFeatures
from structpred.fused.chains import ChainSteps
from structpred.models import StructuredPredictor
from structpred.objectives.margin import MarginRescaling
from structpred.objectives.part_losses import ExtraParts, Hamming
from structpred.oracles.assignment import AssignmentOracle
from structpred.oracles.chain import ChainOracle
from structpred.oracles.dual_mrf import DualMRF
from structpred.oracles.mrf import graph_shape
from structpred.oracles.multiclass import MulticlassOracle
from structpred.slack.surrogate import SlackRescaling
from structpred.task.task import Task
from structpred.trainers.problem import Problem

TRAINERS = ["perceptron", "pa", "arow", "mira", "sgd", "bcfw", "n_slack", "one_slack"]


class TopK(Oracle):
    """Two of n."""

    def n_parts(self, shape: Any) -> int:
        return int(shape[0])

    def argmax(self, scores: Any, shape: Any) -> Any:
        return np.sort(np.argsort(-scores, kind="stable")[:2]).astype(np.int64)

    def parts(self, labels: Any, shape: Any) -> Any:
        return labels

    @staticmethod
    def example_shapes() -> Any:
        return [(3,), (5,)]


class Min(TopK):
    """Scores taken for costs."""

    def argmax(self, scores: Any, shape: Any) -> Any:
        return super().argmax(-scores, shape)


class Greedy(AssignmentOracle):
    """Row after row takes the best column left, and calls itself exact."""

    argmax_batch = None

    def argmax(self, scores: Any, shape: Any) -> Any:
        table, out = scores.reshape(shape[0], -1).copy(), np.empty(shape[0], np.int64)
        for row in range(shape[0]):
            out[row] = table[row].argmax()
            table[:, out[row]] = -np.inf
        return out


def data(n: int, oracle: Oracle, shape: Any, truth: Oracle) -> tuple[list[Any], list[Any], list[Any]]:
    """Random features; the truth is what `truth` finds at planted weights."""
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(oracle.n_parts(shape), 3)) for _ in range(n)]
    return X, [truth.argmax(x @ np.array([1.0, -2.0, 0.5]), shape) for x in X], [shape] * n


@pytest.mark.parametrize("surrogate", ["margin", "slack"])
@pytest.mark.parametrize("trainer", TRAINERS)
def test_an_oracle_that_minimises_stops_training(trainer: str, surrogate: str) -> None:
    """No trainer gives a certificate where the truth beats the answer: the error names sample and oracle and both scores."""
    if surrogate == "slack" and trainer in ("perceptron", "pa", "arow"):
        surrogate = "margin"
    model = StructuredPredictor(Min(), trainer=trainer, surrogate=None if surrogate == "margin" else surrogate, max_iter=5)
    with pytest.raises(
        OracleError, match=r"sample \d+: Min\.argmax gave an output with the score .*the true output has .*minimise"
    ):
        model.fit(*data(10, Min(), (5,), TopK()))


@pytest.mark.parametrize("trainer", ["bcfw", "n_slack", "mira"])
def test_a_greedy_search_that_calls_itself_exact_stops_training(trainer: str) -> None:
    """And trains where it says exact = False, without a proof."""
    given = data(30, Greedy(), (4,), AssignmentOracle())
    with pytest.raises(OracleError, match=r"Greedy\.argmax .*exact = False"):
        StructuredPredictor(Greedy(), trainer=trainer, max_iter=30, tol=0.0).fit(*given)

    class Honest(Greedy):
        exact = False

    assert not StructuredPredictor(Honest(), trainer=trainer, max_iter=3).fit(*given).certificate_.proven


def test_a_bound_below_the_truth_stops_training() -> None:
    """A bound that the truth exceeds is no bound."""

    class Low(TopK):
        exact = False

        def argmax_bound(self, scores: Any, shape: Any) -> Any:
            return self.argmax(-scores, shape), float(np.sort(scores)[:2].sum())

    for surrogate in ("margin", "slack"):
        with pytest.raises(OracleError, match=r"Low\.argmax_bound gave the bound"):
            StructuredPredictor(Low(), surrogate=surrogate).fit(*data(10, Low(), (5,), TopK()))


def test_marginals_below_the_truth_stop_training() -> None:
    """log Z is at least the score of the truth."""

    class Short(MulticlassOracle):
        def marginals(self, scores: Any, shape: Any) -> Any:
            log_z, mu = super().marginals(scores, shape)
            return log_z - 5.0, mu

    given = data(4, Short(), (3,), MulticlassOracle())
    with pytest.raises(OracleError, match=r"Short\.marginals gave log_z = .*true output alone scores"):
        StructuredPredictor(Short(), trainer="lbfgs", check_components=False).fit(*given)


def test_rounding_is_no_contradiction() -> None:
    """Scores of 1e12 and ties everywhere train without an error."""
    X, y, shapes = data(6, TopK(), (5,), TopK())
    StructuredPredictor(TopK(), trainer="perceptron", max_iter=3).fit([1e12 * x for x in X], y, shapes)
    StructuredPredictor(TopK(), trainer="mira", max_iter=3).fit([np.round(x) for x in X], y, shapes)


class Rounds(MulticlassOracle):
    """Scores that agree to three digits are equal to it, and the last of equals is taken: it may miss the best by 5e-4."""

    argmax_batch = enumerate = None  # type: ignore[assignment]

    def argmax(self, scores: Any, shape: Any) -> Any:
        return np.array([len(scores) - 1 - int(scores[::-1].round(3).argmax())])


class RoundsInBatches(MulticlassOracle):
    """The same in batches."""

    enumerate = None  # type: ignore[assignment]

    def argmax_batch(self, scores: Any, offsets: Any, shapes: Any) -> Any:
        found = [Rounds().argmax(scores[a:b], shape) for a, b, shape in zip(offsets, offsets[1:], shapes, strict=False)]
        return np.concatenate(found), np.arange(len(shapes) + 1)


class BoundsALittleLow(MulticlassOracle):
    """The bound is too low by 1e-4, and so below the true output where this is the best."""

    exact = False
    argmax_batch = enumerate = None  # type: ignore[assignment]

    def argmax_bound(self, scores: Any, shape: Any) -> Any:
        return self.argmax(scores, shape), float(scores.max()) - 1e-4


class SumsALittleLow(MulticlassOracle):
    """log_z is too small by 1e-4."""

    marginals_batch = None  # type: ignore[assignment]

    def marginals(self, scores: Any, shape: Any) -> Any:
        log_z, mu = super().marginals(scores, shape)
        return log_z - 1e-4, mu


#: two classes, of which the first is true and the better one by 1e-4
NEARLY = np.array([1.0, 1.0 - 1e-4])


def small_task(oracle: Oracle) -> Task:
    """Two classes with a feature each; the first is true."""
    return Task(PartFeatures([np.eye(2)] * 3), oracle, [[0]] * 3, [(2,)] * 3, Hamming())


@pytest.mark.parametrize("call", [
    lambda: small_task(Rounds()).step(NEARLY, 1, 0.0),
    lambda: small_task(Rounds()).violations(NEARLY, 0.0),
    lambda: small_task(RoundsInBatches()).violations(NEARLY, 0.0),
    lambda: small_task(RoundsInBatches()).terms(NEARLY, range(3), loss_weight=0.0),
    lambda: small_task(BoundsALittleLow()).step(NEARLY, 1, 0.0),
    lambda: small_task(SumsALittleLow()).soft_step(np.array([40.0, -40.0]), 1),
    lambda: small_task(SumsALittleLow()).log_losses(np.array([40.0, -40.0]), np.ones(3)),
], ids=["step", "sweep", "batches", "terms", "bound", "log loss", "log losses"])  # fmt: skip
def test_a_small_cheat_is_named(call: Any) -> None:
    """An answer that the true output beats by 1e-4 is an error of the oracle, by every way to a step: it is no rounding."""
    with pytest.raises(
        OracleError, match=r"sample \d: \w+ALittleLow\.(argmax_bound|marginals) gave|sample \d: Rounds\w*\.argmax"
    ):
        call()


def test_a_cheat_within_rounding_passes() -> None:
    """What is missing by 1e-9 of the scores is rounding, as solvers leave it, and no error."""
    assert small_task(Rounds()).step(np.array([1.0, 1.0 - 1e-9]), 1, 0.0).violation == pytest.approx(-1e-9, abs=1e-15)


def test_compiled_steps_serve_only_what_they_were_written_for() -> None:
    """A chain whose subclass decodes otherwise is trained by its own argmax, and found out."""

    class Worst(ChainOracle):
        def argmax(self, scores: Any, shape: Any) -> Any:
            return ChainOracle().argmax(-scores, shape)

    good = chains(Hamming())
    assert isinstance(good.steps, ChainSteps)
    with pytest.raises(OracleError, match=r"sample 0: Worst\.argmax gave"):
        Task(good.features, Worst(), good.labels, good.shapes, Hamming())

    class Same(ChainOracle):
        def argmax(self, scores: Any, shape: Any) -> Any:
            return ChainOracle().argmax(scores, shape)

    assert not isinstance(Task(good.features, Same(), good.labels, good.shapes, Hamming()).steps, ChainSteps)


class Careless(AssignmentOracle):
    """Its parts accept anything."""

    def parts(self, labels: Any, shape: Any) -> Any:
        return np.arange(shape[0]) * shape[0] + labels


class Turned(AssignmentOracle):
    """Column 3 + k is another name of column k."""

    def parts(self, labels: Any, shape: Any) -> Any:
        return super().parts(labels % shape[0], shape)


class WrongParts:
    """How many of the true parts are missing."""

    def costs(self, labels: Any, shape: Any, oracle: Any) -> PartCosts:
        found = np.zeros(oracle.n_parts(shape))
        found[oracle.parts(labels, shape)] = -1.0
        return PartCosts(float(len(labels)), found)


@pytest.mark.parametrize("labels", [[3, 1, 2], [0, 1, 5]])
def test_an_output_may_be_written_in_several_ways(labels: list[int]) -> None:
    """True labels that enumerate lists in other words, with the same parts, are accepted."""
    task = Task(PartFeatures([np.eye(9)]), Turned(), [labels], [(3,)], WrongParts())
    assert task.parts[0].tolist() == [0, 4, 8]


@pytest.mark.parametrize("labels", [[0, 0, 0], [2, 2, 1]])
def test_labels_that_are_no_output_are_refused(labels: list[int]) -> None:
    """Where parts() does not refuse them, fit looks them up among all outputs of small shapes."""
    X = [np.eye(9)] * 2
    with pytest.raises(DataError, match=r"sample 1: the true labels .* are not among the 6 outputs that Careless\.enumerate"):
        StructuredPredictor(Careless()).fit(X, [[0, 1, 2], labels], [(3,)] * 2)


def failing(base: type[Any], method: str, at: int) -> Any:
    """An object of a subclass whose method raises when it is called for the at-th time."""
    calls = []

    def fail(self: Any, *args: Any) -> Any:
        calls.append(args)
        if len(calls) > at:
            raise KeyError("lost")
        return getattr(super(kind, self), method)(*args)

    kind = type("Failing", (base,), {method: fail})
    return kind


@pytest.mark.parametrize("method", ["argmax", "parts", "enumerate"])
def test_an_exception_of_an_oracle_names_the_sample(method: str) -> None:
    """Whatever a user's oracle raises comes with the sample and the method."""
    oracle = failing(AssignmentOracle, method, 1)()
    X, y, _ = data(3, AssignmentOracle(), (3,), AssignmentOracle())
    shapes = [(3,)] * 3
    if method == "enumerate":  # asked once a shape
        oracle = failing(AssignmentOracle, method, 0)()
    with pytest.raises(OracleError, match=rf"sample \d: Failing\.{method} raised KeyError: 'lost'"):
        StructuredPredictor(oracle, max_iter=2).fit(X, y, shapes)


@pytest.mark.parametrize("method", ["scores", "adjoint"])
def test_an_exception_of_a_feature_map_names_the_sample(method: str) -> None:
    """Likewise of a user's feature map; scores of another length, or not finite, are told by sample too."""
    features = failing(PartFeatures, method, 0)([np.eye(3)] * 2)
    task = Task(features, MulticlassOracle(), [[0], [1]], [(3,)] * 2, Hamming())
    with pytest.raises(OracleError, match=rf"sample 1: Failing\.{method} raised KeyError"):
        task.step(np.zeros(3), 1, 1.0)


@pytest.mark.parametrize(("found", "message"), [(np.zeros(2), "3 in all"), (np.array([0, np.nan, 0]), "sample 1: part 1 has")])
def test_bad_scores_of_a_feature_map_name_the_sample(found: Any, message: str) -> None:
    """A wrong number of scores, or NaN in the middle of training, is an error with the sample."""
    kind = type("Mine", (PartFeatures,), {"scores": lambda self, w, i: found.copy()})
    task = Task(kind([np.eye(3)] * 2), MulticlassOracle(), [[0], [1]], [(3,)] * 2, Hamming())
    with pytest.raises((OracleError, DataError), match=message):
        task.step(np.zeros(3), 1, 1.0)


def test_priors_of_any_feature_map_are_refused_under_a_margin() -> None:
    """The guard asks fixed_scores, whatever attributes the map has: a margin would leave the priors out."""
    kind = type("Prior", (PartFeatures,), {"fixed_scores": lambda self, i: np.array([0.0, 1.0, -1e30]) if i else None})
    task = Task(kind([np.eye(3)] * 2), MulticlassOracle(), [[0], [1]], [(3,)] * 2, Hamming())
    for surrogate in (MarginRescaling(), SlackRescaling()):
        with pytest.raises(ParameterError, match="sample 1: fixed scores"):
            Problem(task, surrogate, 1.0)


def test_compiled_and_plain_know_the_same_grid() -> None:
    """The grid that all instances share is what compiled steps get; none is shared where answers differ."""
    task = chains(Hamming())
    assert task._costs.shared_grid == GridCosts(1.0)


class Bounding(TopK):
    """Its bounds are what is told."""

    exact = False
    told = "found"

    def argmax_bound(self, scores: Any, shape: Any) -> Any:
        labels = self.argmax(scores, shape)
        found = float(scores[labels].sum())
        return labels, {"nan": np.nan, "inf": np.inf, "below": found - 0.1, "found": found}[self.told]


@pytest.mark.parametrize("surrogate", [MarginRescaling(), SlackRescaling("bisecting")])
@pytest.mark.parametrize("told", ["nan", "inf", "below"])
def test_bounds_that_bound_nothing_are_refused(told: str, surrogate: Any) -> None:
    """A bound that is NaN, infinite or below what was found names the method and the sample, in steps and in slack searches."""
    rng = np.random.default_rng(0)
    oracle = Bounding()
    features = PartFeatures([rng.normal(size=(5, 4)) for _ in range(6)])
    task = Task(features, oracle, [np.array([0, 1])] * 6, [(5,)] * 6, ExtraParts())
    w = rng.normal(size=4)
    surrogate.term(task, w, 2)
    oracle.told = told
    with pytest.raises(OracleError, match=r"sample 2: Bounding.argmax_bound gave the bound \S+ with an output that scores"):
        surrogate.term(task, w, 2)


@pytest.mark.parametrize("told", [np.nan, np.inf, -np.inf])
def test_bounds_of_a_batch_that_bound_nothing_are_refused(told: float) -> None:
    """One such bound of a batch names the sample."""

    class Batched(DualMRF):
        def argmax_bound_batch(self, scores: Any, offsets: Any, shapes: Any) -> Any:
            labels, ends, bounds = super().argmax_bound_batch(scores, offsets, shapes)
            bounds[3] = told
            return labels, ends, bounds

    rng, shape = np.random.default_rng(0), graph_shape(3, 2, [(0, 1), (1, 2)])
    features = PartFeatures([rng.normal(size=(14, 4)) for _ in range(6)])
    task = Task(features, Batched(), [np.array([0, 1, 0])] * 6, [shape] * 6, Hamming())
    with pytest.raises(OracleError, match=r"sample 3: Batched.argmax_bound_batch gave the bound \S+ with an output"):
        task.violations(rng.normal(size=4), 1.0)
