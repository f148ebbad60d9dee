"""Losses of part scores under the trainers of the package: what goes together reaches one optimum, the rest says what does."""

import numpy as np
import pytest

from structpred.data.decisions import shortest_path_data
from structpred.errors import MissingCapabilityError, ParameterError, StructpredError
from structpred.layers import AdaptiveSmoothedDifferenceLayer, Scores, SparseMAPLoss
from structpred.layers.names import losses
from structpred.layers.perturbed import PerturbedLoss
from structpred.layers.surrogates import LossSurrogate
from structpred.models import DecisionModel
from structpred.oracles.assignment import AssignmentOracle
from structpred.oracles.shortest_path import ShortestPathOracle
from structpred.trainers.names import trainers

ORACLE = ShortestPathOracle()
DATA = shortest_path_data(40, grid=(3, 3), degree=3, noise=0.5, seed=5)
SMOOTH = ("crf", "soft_margin_crf", "perturbed", "sparsemap", "pointwise", "listwise", "nce")


def fitted(loss: object, trainer: str, **settings) -> DecisionModel:
    """A model of paths in small grids."""
    return DecisionModel(ORACLE, shape=DATA.shape, loss=loss, trainer=trainer, C=0.2, **settings).fit(DATA.features, DATA.costs)


def objective(model: DecisionModel, name: str) -> float:
    """1/2 |W|^2 / (C n) + the mean of the loss of this name at the model's costs."""
    n, loss = len(DATA.features), losses()[name](ORACLE)
    batch, true = Scores.of(ORACLE, [DATA.shape] * n), -DATA.costs
    found = loss(batch, -model.predict_costs(DATA.features), true_scores=true, costs=-true, ids=np.arange(n))
    norm = float((model.coef_**2).sum() + (model.intercept_**2).sum())
    return norm / (2.0 * 0.2 * n) + float(found.values.mean())


@pytest.mark.parametrize("name", SMOOTH)
def test_smooth_losses_are_minimised_from_features(name: str) -> None:
    """With lbfgs the objective at the weights is the certificate's primal, and no more than 1 % above the least there is."""
    model = fitted(name, "lbfgs", max_iter=200, tol=0.01)
    assert objective(model, name) == pytest.approx(model.certificate_.primal, rel=1e-6)
    assert model.certificate_.dual <= model.certificate_.primal
    assert model.certificate_.gap <= 0.01 * abs(model.certificate_.primal)


@pytest.mark.parametrize("name", ["hinge", "spo+"])
def test_hinges_have_certificates(name: str) -> None:
    """The margin-rescaled hinge of the regret and SPO+ are what trainers of support vector machines minimise and bound."""
    model = fitted(name, "n_slack", max_iter=50, tol=0.01)
    assert model.converged_
    assert objective(model, name) == pytest.approx(model.certificate_.primal, rel=1e-6)


def test_online_steps_come_near_the_optimum() -> None:
    """Stochastic steps reach what the quasi-Newton method reaches, to a few per cent."""
    best = fitted("crf", "lbfgs", max_iter=100, tol=0.01).certificate_.primal
    assert objective(fitted("crf", "sgd", max_iter=20), "crf") <= 1.05 * best
    best = fitted("perturbed", "lbfgs", max_iter=100, tol=0.01).certificate_.primal
    assert objective(fitted("perturbed", "sgd", max_iter=8), "perturbed") <= 1.1 * best


def test_a_loss_object_keeps_its_settings() -> None:
    """A loss with settings of its own is minimised as it is: other noise gives other weights, the same noise the same ones."""
    first, again, other = (
        fitted(PerturbedLoss(ORACLE, samples=4, sigma=sigma), "lbfgs", max_iter=20).coef_ for sigma in (0.5, 0.5, 2.0)
    )
    assert np.array_equal(first, again)
    assert not np.allclose(first, other)


@pytest.mark.parametrize(
    ("loss", "trainer"), [(SparseMAPLoss(ORACLE), "lbfgs"), (AdaptiveSmoothedDifferenceLayer(ORACLE, rate=0.2), "adam")]
)
def test_a_second_fit_has_the_same_bits(loss: object, trainer: str) -> None:
    """What a loss object keeps from one fit, or learns in it, does not reach into the next."""
    first, second = (fitted(loss, trainer, max_iter=4, random_state=0).coef_ for _ in range(2))
    assert np.array_equal(first, second)


def test_losses_that_change_on_the_way_are_refused() -> None:
    """A loss over pools that grow with training is no fixed function: trainers want `kbest`; a loss with kinks is not smooth."""
    rng = np.random.default_rng(0)
    model = DecisionModel(AssignmentOracle(), shape=(3,), loss="listwise", trainer="lbfgs")
    with pytest.raises(MissingCapabilityError, match="surrogate LossSurrogate needs kbest"):
        model.fit(rng.normal(size=(8, 2)), rng.normal(size=(8, 9)))
    with pytest.raises(ParameterError, match="Perceptron is not smooth"):
        LossSurrogate(losses()["perceptron"](ORACLE))


@pytest.mark.slow
@pytest.mark.parametrize("trainer", ["adam", *trainers()])
@pytest.mark.filterwarnings("ignore::structpred.errors.NoUpdateWarning")
def test_every_pair_works_or_says_what_goes_together(trainer: str) -> None:
    """Each loss with a name either trains, to finite costs, or is refused by one error that names what to take instead."""
    data = DATA.rows(slice(8))
    for name in losses():
        model = DecisionModel(ORACLE, shape=DATA.shape, loss=name, trainer=trainer, C=0.1, max_iter=2)
        said = ""
        try:
            model.fit(data.features, data.costs)
        except StructpredError as error:
            said = str(error)
        if said:
            assert "take for this loss" in said or name == "expected_cost"
        else:
            assert np.isfinite(model.predict_costs(data.features)).all()
            assert trainer == "adam" or name in ("spo+", "hinge", "perceptron", "fenchel_young", *SMOOTH)
