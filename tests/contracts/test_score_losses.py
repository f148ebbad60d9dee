"""check_score_loss and check_layer name what is wrong, and pass every loss and layer of ours over every structure."""

import sys
from pathlib import Path

import numpy as np
import pytest

from structpred import layers
from structpred.contracts.score_losses import check_layer, check_score_loss
from structpred.errors import LossError
from structpred.layers.loss import Layer, Loss, Point, Terms
from structpred.oracles.chain import ChainOracle
from structpred.oracles.multiclass import MulticlassOracle

sys.path.insert(0, str(Path(__file__).parents[1] / "layers"))
from layer_cases import LAYERS, LOSSES, POOLED, SOFT_LOSSES, STRUCTURES, WITH_MARGINALS, structure


@pytest.mark.mostly_slow
@pytest.mark.parametrize("name", STRUCTURES)
@pytest.mark.parametrize("kind", [*LOSSES, *SOFT_LOSSES])
def test_losses_of_ours_pass(kind: str, name: str) -> None:
    """No false alarm."""
    if kind in SOFT_LOSSES and name not in WITH_MARGINALS:
        pytest.skip("needs marginals")
    whole = structure(name)
    loss = (LOSSES | SOFT_LOSSES)[kind](whole.oracle)
    if isinstance(loss, POOLED):
        pytest.skip("a loss over pools that are given")
    assert check_score_loss(loss, shapes=whole.shapes).checked["gradient"] >= 3


@pytest.mark.mostly_slow
@pytest.mark.parametrize("name", STRUCTURES)
@pytest.mark.parametrize("kind", [*LAYERS, "soft"])
def test_layers_of_ours_pass(kind: str, name: str) -> None:
    """No false alarm; estimates are said to be none that could be compared."""
    if kind == "soft" and name not in WITH_MARGINALS:
        pytest.skip("needs marginals")
    whole = structure(name)
    layer = (LAYERS | {"soft": layers.SoftLayer})[kind](whole.oracle)
    report = check_layer(layer, shapes=whole.shapes)
    assert ("pull-back" in report.checked) == (kind in ("soft", "sparsemap"))


class Own(Loss):
    """The perceptron loss, as a user writes it, with something wrong."""

    smooth = True
    slope, value, noise = 1.0, 1.0, 0.0

    def terms(self, batch, theta, given):
        best = batch.best(theta)
        mu = batch.counts(best)
        values = best.values - batch.dots(theta, given.target) + self.noise * np.random.default_rng().random(len(batch))
        return Terms(self.value * values, self.slope * (mu - given.target), best.gaps)


class Halved(Own):
    """A value of half the loss."""

    value = 0.5


class Scaled(Own):
    """A gradient 1 % too large."""

    slope = 1.01


class Noisy(Own):
    """Noise that nobody can draw again."""

    noise = 0.1


class Negative(Own):
    """Less than zero."""

    def terms(self, batch, theta, given):
        found = super().terms(batch, theta, given)
        return found._replace(values=found.values - 0.5)


class Capped(Own):
    """Not convex, though it says so."""

    def terms(self, batch, theta, given):
        found = super().terms(batch, theta, given)
        flat = found.values > 0.5
        sizes = np.diff(batch.offsets)
        return found._replace(
            values=np.minimum(found.values, 0.5), gradient=np.where(np.repeat(flat, sizes), 0.0, found.gradient)
        )


@pytest.mark.parametrize(
    ("kind", "rule"),
    [(Halved, "gradient"), (Scaled, "gradient"), (Noisy, "nondeterminism"), (Negative, "no exceptions"), (Capped, "convexity")],
)
@pytest.mark.parametrize("oracle", [MulticlassOracle, ChainOracle])
def test_wrong_losses_are_named(kind, rule, oracle) -> None:
    """The error names the loss and the rule; a negative value is refused by the loss's own parent."""
    with pytest.raises(LossError, match=rf"{kind.__name__} breaks(.|\n)*- {rule}, at"):
        check_score_loss(kind(oracle()))


def test_a_right_loss_of_a_users_own_passes() -> None:
    """The same loss with nothing wrong."""
    assert check_score_loss(Own(ChainOracle())).checked["convexity"] == 6


class Doubled(layers.SoftLayer):
    """A pull-back twice too large."""

    def point(self, batch, theta, ids, kept, step):
        found = super().point(batch, theta, ids, kept, step)
        return Point(found.mu, lambda g: 2.0 * found.pull(g), found.gap)


class Bent(layers.SoftLayer):
    """A pull-back that is not linear."""

    def point(self, batch, theta, ids, kept, step):
        found = super().point(batch, theta, ids, kept, step)
        return Point(found.mu, lambda g: np.maximum(found.pull(g), 0.0), found.gap)


class Unscaled(Layer):
    """A sum in place of a mean: outside of the hull."""

    smooth = False

    def point(self, batch, theta, ids, kept, step):
        best = batch.counts(batch.best(theta))
        return Point(2.0 * best, lambda g: g, np.zeros(len(batch)))


@pytest.mark.parametrize(("kind", "rule"), [(Doubled, "pull-back"), (Bent, "linear"), (Unscaled, "hull")])
def test_wrong_layers_are_named(kind, rule) -> None:
    """The error names the layer and the rule."""
    with pytest.raises(LossError, match=rf"{kind.__name__} breaks(.|\n)*- {rule}, at"):
        check_layer(kind(ChainOracle()))
