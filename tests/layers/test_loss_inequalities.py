"""What is proven of losses: which are never negative, convex, or bounds of the regret."""

import numpy as np
import pytest
from layer_cases import LOSSES, SOFT_LOSSES, STRUCTURES, WITH_MARGINALS, given, mixture, random_outputs, structure

from structpred import layers
from structpred.errors import DataError

NONNEGATIVE = [*(name for name in LOSSES if name.startswith(("spo+", "perceptron", "hinge", "imitation", "cone"))), "perturbed"]
CONVEX = [
    "spo+", "perceptron", "hinge", "imitation", "perturbed", "perturbed without pairs", "perturbed, multiplicative", "nce",
    "contrastive map", "pointwise", "pairwise", "listwise",
]  # fmt: skip


@pytest.mark.parametrize("name", STRUCTURES)
@pytest.mark.parametrize("kind", [*NONNEGATIVE, "perturbed without pairs"])
def test_losses_are_not_negative(kind: str, name: str) -> None:
    """Losses that say so are >= 0 for outputs and for mixtures, at every draw of scores."""
    rng, batch = np.random.default_rng(0), structure(name).batch()
    loss = LOSSES[kind](batch.oracle)
    assert loss.nonnegative
    for draw in range(10):
        options = given(loss, batch, rng)
        if draw % 2:
            options["gold"] = mixture(batch, rng)
        values = loss(batch, 2.0 * rng.normal(size=batch.size), step=draw, **options).values
        assert (values >= -1e-12).all()


@pytest.mark.parametrize("name", STRUCTURES)
@pytest.mark.parametrize("kind", ["perceptron", "cone"])
def test_losses_are_zero_where_gold_is_best(kind: str, name: str) -> None:
    """They vanish exactly where the decision is gold, and only there; the record's labels are the decision."""
    rng, batch = np.random.default_rng(1), structure(name).batch()
    loss = LOSSES[kind](batch.oracle)
    theta = rng.normal(size=batch.size)
    decision = batch.decide(theta)
    right = loss(batch, theta, gold=decision)
    assert np.abs(right.values).max() < 1e-12
    assert np.abs(right.gradient).max() < 1e-8
    assert all(np.array_equal(a, b) for a, b in zip(right.labels, decision, strict=True))
    gold = random_outputs(batch, rng)
    wrong = np.array([not np.array_equal(a, b) for a, b in zip(gold, decision, strict=True)])
    np.testing.assert_array_equal(loss(batch, theta, gold=gold).values > 1e-9, wrong)


@pytest.mark.parametrize("name", STRUCTURES)
@pytest.mark.parametrize("scale", [0.5, 1.0, 2.0, 3.0])
def test_spo_plus_bounds_the_regret(scale: float, name: str) -> None:
    """For every scale and any gold SPO+ is at least what the decision loses against gold at the true scores."""
    rng, batch = np.random.default_rng(2), structure(name).batch()
    loss = layers.SPOPlus(batch.oracle, scale=scale)
    for draw in range(10):
        theta, truth = rng.normal(size=(2, batch.size))
        gold = mixture(batch, rng) if draw % 2 else batch.points(batch.decide(truth))
        bound = loss.regret_bound(batch, theta, true_scores=truth, gold=gold)
        regret = batch.dots(truth, gold - batch.points(batch.decide(theta)))
        assert (bound >= regret - 1e-12).all()
        np.testing.assert_array_equal(bound, loss(batch, theta, true_scores=truth, gold=gold).values)


@pytest.mark.parametrize("name", STRUCTURES)
def test_perturbation_gradient_bounds_the_decision(name: str) -> None:
    """The forward PG loss is at least minus what the decision is truly worth, and near it for a narrow width."""
    rng, batch = np.random.default_rng(3), structure(name).batch()
    for width in (1e-7, 0.3, 2.0):
        theta, truth = rng.normal(size=(2, batch.size))
        worth = batch.dots(truth, batch.points(batch.decide(theta)))
        values = layers.PerturbationGradient(batch.oracle, width=width)(batch, theta, true_scores=truth).values
        assert (values >= -worth - 1e-6).all()
        if width == 1e-7:
            np.testing.assert_allclose(values, -worth, atol=1e-6)


@pytest.mark.parametrize("name", ["chain", "tree", "pairs"])
@pytest.mark.parametrize("kind", CONVEX)
def test_losses_are_convex(kind: str, name: str) -> None:
    """The value in the middle of two points is at most the mean of theirs, for noise of either kind too."""
    rng, batch = np.random.default_rng(4), structure(name).batch()
    loss = LOSSES[kind](batch.oracle)
    options = given(loss, batch, rng)
    for _ in range(5):
        a, b = 2.0 * rng.normal(size=(2, batch.size))
        middle, *ends = (loss(batch, theta, **options).values for theta in ((a + b) / 2, a, b))
        assert (middle <= (ends[0] + ends[1]) / 2 + 1e-10).all()


@pytest.mark.parametrize("name", WITH_MARGINALS)
def test_the_crf_is_the_likelihood(name: str) -> None:
    """The CRF loss is -log p(gold) by enumeration, at any temperature; the soft-margin one that of the augmented scores."""
    rng, whole = np.random.default_rng(5), structure(name)
    batch = whole.batch()
    theta, costs, gold = rng.normal(size=batch.size), rng.random(batch.size), random_outputs(whole.batch(), rng)
    point = batch.points(gold)
    for loss, scores, t in (
        (layers.CRF(batch.oracle, temperature=0.5), theta, 0.5),
        (layers.SoftMarginCRF(batch.oracle, cost_weight=2.0), theta + 2.0 * costs, 1.0),
    ):
        found = loss(batch, theta, gold=gold, costs=costs).values
        logs = [
            t * np.log(np.exp(whole.vertices(shape) @ own / t).sum())
            for shape, own in zip(batch.shapes, batch.split(scores), strict=True)
        ]
        np.testing.assert_allclose(found, np.array(logs) - batch.dots(scores, point), rtol=1e-9)


def test_a_perceptron_of_multiclass_is_its_closed_form() -> None:
    """The perceptron loss is max theta - theta_gold, the hinge with unit costs the multiclass hinge of Crammer and Singer."""
    from structpred.objectives.part_losses import Hamming

    rng, batch = np.random.default_rng(6), structure("multiclass").batch()
    theta, gold = rng.normal(size=batch.size), [np.array([1])] * 3
    own = batch.split(theta)
    np.testing.assert_allclose(
        layers.Perceptron(batch.oracle)(batch, theta, gold=gold).values, [t.max() - t[1] for t in own], atol=1e-15
    )
    costs = layers.part_costs(batch, Hamming(), gold)
    np.testing.assert_allclose(
        layers.Hinge(batch.oracle)(batch, theta, gold=gold, costs=costs).values,
        [max(0.0, 1.0 + np.delete(t, 1).max() - t[1]) for t in own], atol=1e-15,
    )  # fmt: skip


@pytest.mark.parametrize("kind", ["spo+", "perceptron", "hinge", "perturbed", "crf"])
def test_gold_outside_the_hull_is_refused(kind: str) -> None:
    """A dense gold that is no mixture of outputs makes some loss negative, and the error names the sample."""
    rng, batch = np.random.default_rng(7), structure("multiclass").batch()
    loss = (LOSSES | SOFT_LOSSES)[kind](batch.oracle)
    gold = mixture(batch, rng)
    gold[batch.offsets[1]] += 9.0
    theta = 0.1 * rng.normal(size=batch.size)
    theta[batch.offsets[1]] += 5.0
    options = given(loss, batch, rng) | {"gold": gold}
    if "true_scores" in options:
        options["true_scores"] = np.zeros(batch.size)
    with pytest.raises(DataError, match=r"sample 1: .* not a mixture of outputs"):
        loss(batch, theta, **options)
