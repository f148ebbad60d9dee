"""No fit ends with weights that are no better than zero without a warning, and passes that fit each trainer keep it from that."""

import warnings
from typing import Any

import numpy as np
import pytest

from structpred import Instance
from structpred.errors import NoUpdateWarning
from structpred.models import ChainLabeler, DecisionModel, DependencyParser, GraphLabeler, MultiLabelMRF, StructuredPredictor
from structpred.models.base import StructuredEstimator
from structpred.models.bundles import to_bundle
from structpred.objectives.regularisers.l1 import L1
from structpred.oracles.multiclass import MulticlassOracle
from structpred.oracles.shortest_path import ShortestPathOracle
from structpred.trainers.names import trainers
from structpred.trainers.sgd import SGD
from structpred.tuning import tune

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(40, 3, 2))
X = [Instance(rows, (3,)) for rows in ROWS]
RIGHT = [[int(rows[:, 0].argmax())] for rows in ROWS]
NOISE = [[int(k)] for k in RNG.integers(3, size=40)]


def fitted(y: list[list[int]] = RIGHT, **settings: Any) -> StructuredPredictor:
    """A choice among three, on forty samples."""
    return StructuredPredictor(MulticlassOracle(), **settings).fit(X, y)


@pytest.mark.parametrize("trainer", ["bmrm", "ls_bmrm", "one_slack"])
def test_weights_of_zero_warn(trainer: str) -> None:
    """A plane or two are not enough for weights that are better than zero, and the fit says so, with what to do."""
    with pytest.warns(NoUpdateWarning, match="after 1 passes all weights are zero; give more passes") as caught:
        assert not fitted(trainer=trainer, max_iter=1).coef_.any()
    assert caught[0].filename == __file__
    assert fitted(trainer=trainer).score(X, RIGHT) > 0.9


def test_weights_of_zero_that_are_best_say_so() -> None:
    """Where the gap shows that nothing is better than zero, more passes are not what is recommended."""
    with pytest.warns(NoUpdateWarning, match="none are better, as the gap shows: take a larger C, or a weaker regulariser"):
        fitted(trainer="bcfw", regulariser=L1(100.0), max_iter=5)


def test_an_objective_above_that_of_zero_warns() -> None:
    """Weights that differ from zero and are worse than it warn, too."""
    with pytest.warns(NoUpdateWarning, match=r"the objective, [\d.]+, is not below that of zero weights; give more passes"):
        fitted(NOISE, trainer=SGD(averaged=False), C=1e4, max_iter=1)


@pytest.mark.mostly_slow
@pytest.mark.parametrize("trainer", [name for name, kind in trainers().items() if kind.requires == ("argmax",)])
def test_a_usual_fit_is_silent(trainer: str) -> None:
    """No trainer of any oracle warns at its default number of passes."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fitted(trainer=trainer).score(X, RIGHT) > 0.8


def test_passes_where_none_are_given() -> None:
    """None is the estimator's own number, or what the trainer needs at least; a number given is kept."""
    models: list[StructuredEstimator] = [
        ChainLabeler(), DependencyParser(), GraphLabeler(), MultiLabelMRF(), StructuredPredictor(MulticlassOracle()),
    ]  # fmt: skip
    assert [model._run_settings(None).max_iter for model in models] == [10, 10, 50, 50, 50]
    for name, kind in trainers().items():
        assert ChainLabeler(name)._run_settings(None).max_iter == max(10, kind.least_passes)
        assert ChainLabeler(name, max_iter=7)._run_settings(None).max_iter == 7
    more = {"bmrm", "lbfgs", "ls_bmrm", "n_slack", "one_slack", "owlqn"}
    assert {name for name, kind in trainers().items() if kind.least_passes > 1} == more


def test_decisions_take_the_passes_of_their_trainer() -> None:
    """A model of decisions counts passes as other estimators do, and warns as they do."""
    rows, costs = RNG.normal(size=(20, 3)), RNG.uniform(1.0, 2.0, size=(20, 12))
    settings: dict[str, Any] = {"shape": (3, 3), "trainer": "one_slack", "tol": 0.0, "C": 10.0}
    assert DecisionModel(ShortestPathOracle(), **settings).fit(rows, costs).n_iter_ == 200
    with pytest.warns(NoUpdateWarning, match="all weights are zero"):
        DecisionModel(ShortestPathOracle(), max_iter=1, **settings).fit(rows, costs)


@pytest.mark.filterwarnings("ignore::structpred.errors.NoUpdateWarning")
def test_a_search_goes_up_to_the_passes_of_the_trainer() -> None:
    """`tune` takes as many passes as the trainer that needs most of them, where the estimator has no number of its own."""
    found = tune(StructuredPredictor(MulticlassOracle()), {"trainer": ["bcfw", "bmrm"]}, X[:9], RIGHT[:9], dev=(X, RIGHT))
    assert max(trial.passes for trial in found.trials) == 200


@pytest.mark.slow
def test_slack_rescaling_without_a_trainer() -> None:
    """It is corrective under 1/2 |w|^2 where all is known, and bcfw where corrective does not fit."""
    assert to_bundle(fitted(surrogate="slack")).header["trainer"] == "corrective"
    assert to_bundle(fitted(surrogate="slack", regulariser="l1")).header["trainer"] == "bcfw"
    assert to_bundle(fitted()).header["trainer"] == "bcfw"
    assert to_bundle(fitted(surrogate="slack", trainer="sgd")).header["trainer"] == "sgd"
