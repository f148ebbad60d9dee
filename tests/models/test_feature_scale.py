"""Promises of scaled features: they equal those of scikit-learn's scalers, and live in the model file."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from structpred.errors import ModelFileError, ParameterError
from structpred.models import HierarchicalMultiLabel, MultiLabelMRF, load
from structpred.storage.bundles import Bundle, read_bundle, write_bundle
from structpred.trainers.marginal_bcfw import MarginalBCFW

SCALERS = {"standard": StandardScaler(), "maxabs": MaxAbsScaler()}


def data() -> tuple[np.ndarray, np.ndarray]:
    """Features of very different sizes, one of them constant; labels closed under 0 -> 1."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 4)) * [1e-3, 1.0, 1e4, 0.0] + [0.0, 5.0, 1e6, 3.0]
    first = (X[:, 0] > 0).astype(int)
    return X, np.stack((first, first * (X[:, 2] > 1e6)), axis=1)


@pytest.mark.parametrize("scale", SCALERS)
def test_a_scaled_model_is_the_model_of_scaled_data(scale: str) -> None:
    """scale= gives the weights, at the optimum, and predictions that scikit-learn's scaler in front gives."""
    X, Y = data()
    scaled = SCALERS[scale].fit_transform(X)
    inside = MultiLabelMRF(MarginalBCFW(joint=True), max_iter=100, tol=1e-8, scale=scale).fit(X, Y)
    outside = MultiLabelMRF(MarginalBCFW(joint=True), max_iter=100, tol=1e-8, scale=None).fit(scaled, Y)
    np.testing.assert_allclose(inside.coef_, outside.coef_, rtol=1e-3, atol=1e-3)
    assert (inside.predict(sparse.csr_array(X)) == outside.predict(scaled)).all()


@pytest.mark.parametrize("model", [MultiLabelMRF(max_iter=5), HierarchicalMultiLabel(max_iter=5, hierarchy=[-1, 0])])
@pytest.mark.parametrize("scale", SCALERS)
def test_the_scale_is_in_the_file(model: Any, scale: str, tmp_path: Path) -> None:
    """A model that was loaded scales new data as the one that was saved, and a model without a scale has none."""
    X, Y = data()
    model.set_params(scale=scale).fit(X, Y).save(tmp_path / "m.spz")
    again = load(tmp_path / "m.spz")
    assert again.get_params()["scale"] == scale
    assert (again.predict_scores(X[:5]) == model.predict_scores(X[:5])).all()
    model.set_params(scale=None).fit(X, Y).save(tmp_path / "m.spz")
    assert load(tmp_path / "m.spz")._field.scale is None


def test_an_unknown_scale_is_refused() -> None:
    """A scale that is none names those that there are."""
    X, Y = data()
    with pytest.raises(ParameterError, match="'standard' or 'maxabs', got 'minmax'"):
        MultiLabelMRF(scale="minmax").fit(X, Y)


BENDS: dict[str, Any] = {
    "short": lambda a: {**a, "scale.factor": a["scale.factor"][:-1]},
    "zero": lambda a: {**a, "scale.factor": a["scale.factor"] * 0},
    "negative": lambda a: {**a, "scale.factor": -a["scale.factor"]},
    "infinite": lambda a: {**a, "scale.shift": a["scale.shift"] + np.inf},
    "two axes": lambda a: {**a, "scale.shift": a["scale.shift"][None]},
    "whole numbers": lambda a: {**a, "scale.shift": a["scale.shift"].astype(np.int64)},
    "missing": lambda a: {name: array for name, array in a.items() if name != "scale.shift"},
    "unknown": lambda a: {**a, "scale.more": a["scale.shift"]},
}


@pytest.mark.parametrize("bend", BENDS)
def test_a_bent_scale_is_no_model_file(bend: str, tmp_path: Path) -> None:
    """Arrays of the scale that do not fit the model raise ModelFileError when the file is loaded."""
    path = tmp_path / "m.spz"
    MultiLabelMRF(max_iter=1, scale="standard").fit(*data()).save(path)
    found = read_bundle(path, kind="model")
    write_bundle(path, Bundle(found.header, BENDS[bend](found.arrays)), kind="model", format_version=found.format_version)
    with pytest.raises(ModelFileError, match="scale"):
        load(path)


@pytest.mark.parametrize("setting", [None, "maxabs", "other", 3])
def test_a_bent_setting_is_no_model_file(setting: Any, tmp_path: Path) -> None:
    """A header that names another scale than the arrays hold raises ModelFileError when the file is loaded."""
    path = tmp_path / "m.spz"
    MultiLabelMRF(max_iter=1, scale="standard").fit(*data()).save(path)
    found = read_bundle(path, kind="model")
    bent = replace(found, header={**found.header, "scale": setting})
    write_bundle(path, bent, kind="model", format_version=found.format_version)
    with pytest.raises(ModelFileError, match="scale"):
        load(path)
