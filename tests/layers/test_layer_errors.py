"""Clear errors of losses and layers: what, where, and why."""

from typing import Any

import numpy as np
import pytest
from layer_cases import LAYERS, LOSSES, Pairs, given, structure

from structpred import layers
from structpred.core.fixed_scores import FORBIDDEN
from structpred.errors import (
    ConvergenceError,
    DataError,
    InfeasibleError,
    LossError,
    MissingCapabilityError,
    OracleError,
    ParameterError,
)
from structpred.layers.record import Scores
from structpred.oracles.chain import ChainOracle


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_scores_that_are_not_finite_are_named(bad: float) -> None:
    """NaN or infinity in scores, true scores, costs, gold and pulled gradients: DataError with the sample and the part."""
    batch = structure("pairs").batch()
    numbers = np.zeros(batch.size)
    wrong = numbers.copy()
    wrong[batch.offsets[1] + 2] = bad
    loss, hinge = layers.SPOPlus(batch.oracle), layers.Hinge(batch.oracle)
    for call in (
        lambda: loss(batch, wrong, true_scores=numbers),
        lambda: loss(batch, numbers, true_scores=wrong),
        lambda: loss(batch, numbers, true_scores=numbers, gold=wrong),
        lambda: hinge(batch, numbers, gold=[[0, 1]] * 3, costs=wrong),
        lambda: Scores.of(batch.oracle, batch.shapes, fixed=(numbers > 0, wrong)),
        *(lambda kind=kind: LAYERS[kind](batch.oracle)(batch, numbers + 1.0).pull(wrong) for kind in LAYERS),
    ):
        with pytest.raises(DataError, match=r"sample 1: part 2 has the (true |fixed )?\w+( \w+)? (nan|inf|-inf)"):
            call()


@pytest.mark.parametrize(
    "make",
    [
        *(lambda oracle, s=s: layers.PerturbedLoss(oracle, sigma=s) for s in (0.0, -1.0, np.nan, np.inf)),
        lambda oracle: layers.PerturbedLayer(oracle, sigma=0.0),
        lambda oracle: layers.PerturbedLoss(oracle, samples=3),
        lambda oracle: layers.SmoothedDifferenceLayer(oracle, samples=1),
        lambda oracle: layers.PerturbedLoss(oracle, samples=0),
        lambda oracle: layers.PerturbedLoss(oracle, seed=-1),
        lambda oracle: layers.PerturbedLoss(oracle, samples=True),
        lambda oracle: layers.CRF(oracle, temperature=0.0),
        lambda oracle: layers.SoftMarginCRF(oracle, temperature=-1.0),
        lambda oracle: layers.SoftLayer(oracle, temperature=0.0),
        lambda oracle: layers.SPOPlus(oracle, scale=0.0),
        lambda oracle: layers.PerturbationGradient(oracle, width=0.0),
        lambda oracle: layers.BlackBoxLayer(oracle, lam=0.0),
        lambda oracle: layers.Hinge(oracle, cost_weight=0.0),
        lambda oracle: layers.NCE(oracle, size=1),
        lambda oracle: layers.ConeAlignment(oracle, max_rounds=0),
        lambda oracle: layers.AdaptiveSmoothedDifferenceLayer(oracle, target=0.0),
        lambda oracle: layers.ExpectedCost(oracle, "cost"),
    ],
)
def test_settings_out_of_range_are_refused(make: Any) -> None:
    """sigma, temperature and other widths of 0, and an odd number of antithetic samples, are refused before any work."""
    with pytest.raises(ParameterError):
        make(ChainOracle())


@pytest.mark.parametrize("kind", [layers.CRF, layers.SoftMarginCRF, layers.SoftLayer])
def test_marginals_are_asked_for_by_name(kind: Any) -> None:
    """Losses over marginals say which method the oracle lacks, and which oracles have it."""
    with pytest.raises(MissingCapabilityError, match=rf"{kind.__name__} needs marginals, which Pairs does not have"):
        kind(Pairs())


def test_what_is_not_given_is_asked_for() -> None:
    """A loss without its gold, true scores or costs names what it needs."""
    batch = structure("pairs").batch()
    numbers = np.zeros(batch.size)
    for kind, options, wanted in (
        (layers.SPOPlus, {"gold": [[0, 1]] * 3}, "true_scores="),
        (layers.Perceptron, {}, "gold="),
        (layers.Hinge, {"gold": [[0, 1]] * 3}, "costs="),
        (layers.NCE, {"gold": [[0, 1]] * 3}, "true_scores="),
    ):
        with pytest.raises(ParameterError, match=wanted):
            kind(batch.oracle)(batch, numbers, **options)


def test_gold_that_is_no_output_is_named() -> None:
    """Labels that the oracle refuses, and too few of them, are errors of the data."""
    batch = structure("pairs").batch()
    loss = layers.Perceptron(batch.oracle)
    with pytest.raises(DataError, match=r"sample 1: .*two different items"):
        loss(batch, np.zeros(batch.size), gold=[[0, 1], [2, 2], [0, 1]])
    with pytest.raises(DataError, match=r"sample 0: .*outside"):
        loss(batch, np.zeros(batch.size), gold=[[0, 9], [0, 1], [0, 1]])
    with pytest.raises(DataError, match="one gold output an instance, 3, got 2"):
        loss(batch, np.zeros(batch.size), gold=[[0, 1], [0, 1]])


@pytest.mark.parametrize("kind", [kind for kind in LOSSES if kind != "cone"])
def test_infeasible_instances_are_named(kind: str) -> None:
    """Where fixed scores leave no output, every loss says so, with the sample; where they leave one, it is found."""
    rng, whole = np.random.default_rng(0), structure("pairs")
    size = whole.batch().size
    fixed = np.zeros(size)
    mask = np.zeros(size, np.bool_)
    mask[[3, 4, 5]], fixed[[3, 4, 5]] = True, FORBIDDEN  # of the five items of sample 1 two are left
    loss = LOSSES[kind](whole.oracle)
    batch = whole.batch(fixed=(mask, fixed))
    options = given(loss, whole.batch(), rng)
    if "gold" in options:
        options["gold"][1] = np.array([3, 4])
    found = loss(batch, rng.normal(size=size), **options)
    assert found.labels[1].tolist() == [3, 4]
    assert np.isfinite(found.values).all()
    mask[6], fixed[6] = True, FORBIDDEN
    with pytest.raises(InfeasibleError, match="sample 1: no output is feasible"):
        loss(whole.batch(fixed=(mask, fixed)), rng.normal(size=size), **options).labels  # noqa: B018


@pytest.mark.parametrize("kind", LAYERS)
def test_infeasible_instances_of_layers_are_named(kind: str) -> None:
    """So do layers."""
    whole = structure("pairs")
    fixed = np.full(whole.batch().size, FORBIDDEN)
    with pytest.raises(InfeasibleError, match="sample 0: no output is feasible"):
        LAYERS[kind](whole.oracle)(whole.batch(fixed=(fixed < 0, fixed)), np.ones(len(fixed)))


class Guess(Pairs):
    """An oracle that may miss the maximum, and knows no bound."""

    exact = False


class Bounded(Guess):
    """One that knows how much it may have missed."""

    def argmax_bound(self, scores: np.ndarray, shape: Any) -> tuple[np.ndarray, float]:
        """A bound that is too high by one."""
        best = self.argmax(scores, shape)
        return best, float(scores[best].sum()) + 1.0


def test_inexact_oracles_prove_nothing() -> None:
    """Without a bound gaps are infinite, nothing is called proven, and SPO+ is refused as a bound of the regret, not as a loss;
    with a bound it is part of the gap.
    """
    rng = np.random.default_rng(1)
    for kind, gap in ((Pairs, 0.0), (Guess, np.inf), (Bounded, 1.0)):
        batch = Scores.of(kind(), [(3,), (4,)])
        theta, truth = rng.normal(size=(2, batch.size))
        loss = layers.SPOPlus(batch.oracle)
        found = loss(batch, theta, true_scores=truth)
        np.testing.assert_allclose(found.gap, gap)
        assert found.proven == np.isfinite(gap)
        if found.proven:
            np.testing.assert_allclose(loss.regret_bound(batch, theta, true_scores=truth), found.values + gap)
        else:
            with pytest.raises(MissingCapabilityError, match="bounds no regret"):
                loss.regret_bound(batch, theta, true_scores=truth)
        noisy = layers.PerturbedLoss(batch.oracle)(batch, theta, gold=[[0, 1]] * 2)
        np.testing.assert_allclose(noisy.gap, gap)
        np.testing.assert_allclose(layers.PerturbedLayer(batch.oracle)(batch, theta).gap, gap)


def test_arrays_that_do_not_fit_are_refused() -> None:
    """Scores, ids, pools, masks of another length, and steps below 0."""
    batch = structure("pairs").batch()
    numbers, loss = np.zeros(batch.size), layers.Perceptron(batch.oracle)
    gold = [[0, 1]] * 3
    for call, message in (
        (lambda: loss(batch, numbers[1:], gold=gold), "10 in a flat array"),
        (lambda: loss(batch, numbers.reshape(2, 5), gold=gold), r"shape \(2, 5\)"),
        (lambda: loss(batch, "scores", gold=gold), "one score a part"),
        (lambda: loss(batch, numbers, gold=gold, ids=[1, 2]), "expected 3 whole numbers"),
        (lambda: loss(batch, numbers, gold=gold, ids=[1.5, 2, 3]), "whole numbers"),
        (lambda: layers.NCE(batch.oracle)(batch, numbers, true_scores=numbers, pool=[[]]), "one pool of outputs an instance"),
        (lambda: layers.NCE(batch.oracle)(batch, numbers, true_scores=numbers, pool=[[]] * 3), "sample 0: its pool"),
        (lambda: Scores.of(batch.oracle, batch.shapes, fixed=(numbers, numbers)), "truth values"),
    ):
        with pytest.raises(DataError, match=message):
            call()
    with pytest.raises(ParameterError, match="step"):
        loss(batch, numbers, gold=gold, step=-1)


def test_a_batch_of_another_oracle_is_refused() -> None:
    """A loss is called with batches of its own oracle."""
    batch = structure("pairs").batch()
    with pytest.raises(ParameterError, match="another Pairs"):
        layers.Perceptron(Pairs())(batch, np.zeros(batch.size), gold=[[0, 1]] * 3)


def test_the_cone_has_its_own_errors() -> None:
    """Cone alignment takes no fixed scores, and says where its rounds do not suffice."""
    rng, whole = np.random.default_rng(2), structure("assignment")
    batch = whole.batch()
    theta, gold = rng.normal(size=batch.size), [np.arange(n) for (n,) in batch.shapes]
    with pytest.raises(ConvergenceError, match=r"samples \[.*max_rounds"):
        layers.ConeAlignment(batch.oracle, max_rounds=1)(batch, -10 * batch.points(gold), gold=gold)
    with pytest.raises(ParameterError, match="fixed scores"):
        layers.ConeAlignment(batch.oracle)(whole.batch(fixed=(theta > 0, theta)), theta, gold=gold)


def test_costs_of_outputs_must_be_numbers() -> None:
    """A cost function that raises or gives NaN is named with the sample."""
    batch = structure("pairs").batch()
    theta = np.zeros(batch.size)
    with pytest.raises(DataError, match="sample 0: the cost of the output"):
        layers.ExpectedCost(batch.oracle, lambda labels, i: np.nan)(batch, theta)
    with pytest.raises(LossError, match="sample 0: cost raised ZeroDivisionError"):
        layers.ExpectedCost(batch.oracle, lambda labels, i: 1 / 0)(batch, theta)


def test_multiplicative_noise_does_not_move_zero() -> None:
    """The perturbed layer with multiplicative noise refuses a score of 0, naming sample and part; fixed zeros are fine."""
    whole = structure("pairs")
    theta = np.ones(whole.batch().size)
    theta[4] = 0.0
    layer = layers.PerturbedLayer(whole.oracle, multiplicative=True)
    with pytest.raises(DataError, match="sample 1: part 1 has the score 0"):
        layer(whole.batch(), theta)
    layer(whole.batch(fixed=(theta == 0, theta)), theta)


class Beyond(Pairs):
    """An oracle whose parts do not exist."""

    def parts(self, labels: np.ndarray, shape: Any) -> np.ndarray:
        """One too far."""
        return labels + shape[0]


def test_parts_that_do_not_exist_are_the_oracles_fault() -> None:
    """Parts beyond n_parts are refused before compiled code writes there."""
    batch = Scores.of(Beyond(), [(3,)])
    with pytest.raises(OracleError, match=r"sample 0: .* does not exist"):
        batch.decide(np.zeros(3))


class Refusing(ChainOracle):
    """A chain oracle that refuses chains of four positions, in its own words."""

    def argmax(self, scores: np.ndarray, shape: Any) -> np.ndarray:
        """Refuse, or decode."""
        self.refuse(shape)
        return super().argmax(scores, shape)

    def marginals(self, scores: np.ndarray, shape: Any) -> tuple[float, np.ndarray]:
        """Refuse, or sum."""
        self.refuse(shape)
        return super().marginals(scores, shape)

    def refuse(self, shape: Any) -> None:
        """InfeasibleError without a sample's number."""
        if shape[0] == 4:
            raise InfeasibleError("no sequence of four")


@pytest.mark.parametrize("kind", [layers.Perceptron, layers.PerturbedLoss, layers.CRF])
def test_errors_of_oracles_get_the_number_of_the_sample(kind: Any) -> None:
    """An oracle that refuses an instance in its own words is told with the sample, by argmax and by marginals."""
    batch = Scores.of(Refusing(), [(2, 2), (3, 2), (4, 2), (4, 2)], n_jobs=2)
    with pytest.raises(InfeasibleError, match=r"^sample 2: no sequence of four"):
        kind(batch.oracle)(batch, np.zeros(batch.size), gold=np.zeros(batch.size))
