"""What holds for every estimator: settings, files, what prediction leaves alone, and what a margin does not give."""

import pickle
from pathlib import Path
from typing import Any

import pytest
from model_zoo import KINDS
from sklearn.base import clone

from structpred.errors import ParameterError
from structpred.models import StructuredPredictor, load
from structpred.models.files import estimators
from structpred.oracles.multiclass import MulticlassOracle

#: the settings that go by position, with their defaults; further ones that do not have the common default
SETTINGS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "ChainLabeler": ({"trainer": "bcfw", "C": 1.0, "max_iter": 10, "tol": 0.0}, {"loss": "hamming", "n_jobs": None}),
    "DependencyParser": ({"trainer": "mira", "C": 0.01, "max_iter": 10, "tol": 0.0}, {"max_bits": 18, "label_C": 0.02}),
    "GaussianProcessLabeler": (
        {"trainer": "lbfgs", "C": 0.5, "max_iter": 200, "tol": 0.001}, {"kernel": "rbf", "surrogate": "log"}
    ),
    "GraphLabeler": ({"trainer": "bcfw", "C": 1.0, "max_iter": 50, "tol": 0.001}, {"bias": 1.0, "node_features": "x"}),
    "HierarchicalMultiLabel": ({"trainer": "bcfw", "C": 1.0, "max_iter": 50, "tol": 0.001}, {"label_weights": "uniform"}),
    "KernelChainLabeler": ({"trainer": "bcfw", "C": 1.0, "max_iter": 50, "tol": 0.001}, {"kernel": "rbf", "n_jobs": None}),
    "LinearClassifier": (
        {"trainer": "sdca", "C": 1.0, "max_iter": 1000, "tol": 1e-4}, {"fit_intercept": True}
    ),
    "LinearOrdinal": ({"trainer": "sdca", "C": 1.0, "max_iter": 1000, "tol": 1e-4}, {"class_weight": None}),
    "LinearRegressor": (
        {"loss": "squared", "trainer": "sdca", "C": 1.0, "max_iter": 1000, "tol": 1e-4}, {"fit_intercept": True}
    ),
    "MultiLabelMRF": ({"trainer": "bcfw", "C": 1.0, "max_iter": 50, "tol": 0.001}, {"edges": "complete", "scale": "auto"}),
    "ParsingPipeline": ({"trainer": "mira", "C": 0.01, "max_iter": 10, "tol": 0.0}, {"jackknife": 10, "tagger": None}),
    "SegmentLabeler": ({"trainer": "bcfw", "C": 1.0, "max_iter": 10, "tol": 0.0}, {"loss": "hamming", "word": 0}),
    "StructuredPredictor": (
        {"oracle": None, "loss": "hamming", "trainer": "bcfw", "C": 1.0}, {"max_iter": None, "tol": 0.001, "scoring": None}
    ),
}  # fmt: skip
COMMON = {
    "check_every": 10,
    "patience": None,
    "surrogate": None,
    "checkpoint": None,
    "resume": False,
    "random_state": None,
    "regulariser": None,
}


def test_every_estimator_is_found() -> None:
    """The walk over the package finds the estimators that users fit, and no parent of theirs."""
    assert list(sorted(estimators())) == list(SETTINGS)


@pytest.mark.parametrize("name", SETTINGS)
def test_settings_keep_their_places_and_defaults(name: str) -> None:
    """Settings go by position as documented, the others by name only; clones and pickles have the same; repr shows changes."""
    kind, (first, others) = estimators()[name], SETTINGS[name]
    oracle = MulticlassOracle()
    made = kind(*[oracle if key == "oracle" else value for key, value in first.items()])
    expected = {**COMMON, **others, **first} | ({"oracle": oracle} if "oracle" in first else {})
    assert {key: value for key, value in made.get_params(deep=False).items() if key in expected} == expected
    with pytest.raises(TypeError):
        kind(*first.values(), 1)
    changed = made.set_params(C=0.25)
    for copy in (clone(changed), pickle.loads(pickle.dumps(changed))):
        same = {key: value for key, value in copy.get_params(deep=False).items() if key != "oracle"}
        assert same == {key: value for key, value in changed.get_params(deep=False).items() if key != "oracle"}
        assert "C=0.25" in repr(copy)
        assert "tol" not in repr(copy)


@pytest.mark.parametrize("name", SETTINGS)
def test_inheritance_is_shallow(name: str) -> None:
    """Above an estimator stand the parent with the settings and at most one between."""
    longest = {object: 0}
    for kind in reversed(estimators()[name].__mro__[:-1]):
        ours = kind.__module__.startswith("structpred.")
        longest[kind] = max(longest.get(parent, 0) for parent in kind.__bases__) + ours
    assert longest[estimators()[name]] <= 3


def state_of(model: Any) -> dict[str, bytes]:
    """Every attribute, settings included, as bytes."""
    return {name: pickle.dumps(value) for name, value in vars(model).items()}


def methods_of(model: Any) -> list[str]:
    """The ways to predict that the model has."""
    names = ["predict", "predict_scores", "predict_score_gaps", "predict_kbest", "predict_marginals", "explain"]
    lacking = set() if model.probabilistic_ else {"predict_marginals"}
    if isinstance(model, StructuredPredictor):
        lacking |= {"predict_kbest"}  # its oracle has none
    return [name for name in names if hasattr(model, name) and name not in lacking]


@pytest.mark.parametrize("name", KINDS)
def test_prediction_changes_no_attribute(name: str, tmp_path: Path) -> None:
    """All ways to predict, score and explain leave a fitted model as it was, and one that was just read from a file."""
    example = KINDS[name]()
    example.model.save(tmp_path / "m.spz")
    arguments = {"predict_kbest": (example.X, 2), "explain": (example.X[0],)}
    for model in (example.model, load(tmp_path / "m.spz", oracle=example.oracle)):
        before = state_of(model)
        for method in methods_of(model):
            getattr(model, method)(*arguments.get(method, (example.X,)))
            assert state_of(model) == before, method
        model.score(example.X, example.y)
        assert state_of(model) == before


NO_MARGINS = ("chain_names", "segments", "gaussian_process", "linear", "ordinal", "regressor")


@pytest.mark.parametrize("name", [kind for kind in KINDS if kind not in NO_MARGINS])
def test_a_margin_gives_no_probabilities(name: str) -> None:
    """predict_marginals of a model trained for a margin is refused by every estimator, with what to train instead."""
    example = KINDS[name]()
    with pytest.raises(ParameterError, match=r"not log-probabilities; .*train with trainer='oeg'.*surrogate='log'"):
        example.model.predict_marginals(example.X)
