"""Random features: what their inner products are close to, and who uses them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

from structpred.errors import DataError, ParameterError
from structpred.models import LatentSVM, LinearClassifier, RandomFeatures, SemiSupervisedSVM, load
from structpred.nonconvex.staged import StagedSearch

X = np.random.default_rng(0).normal(size=(30, 3))


def test_inner_products_are_close_to_the_kernel() -> None:
    """The error is about 1 / sqrt(n_components), so a hundred times more columns make it ten times smaller; norms are one."""
    exact = np.exp(-0.3 * ((X[:, None] - X[None]) ** 2).sum(-1))
    errors = []
    for n in (100, 10_000):
        features = RandomFeatures(n, gamma=0.3).fit_transform(X)
        assert features.dtype == np.float32
        assert features.shape == (30, n)
        np.testing.assert_allclose((features**2).sum(axis=1), 1.0, rtol=1e-5)
        errors.append(np.abs(features @ features.T - exact).mean())
    assert errors[0] < 0.1
    assert errors[1] < 0.2 * errors[0]


def test_the_seed_decides() -> None:
    """The same seed gives the same columns, another one others; gamma=None is scikit-learn's "scale"."""
    one, same, other = (RandomFeatures(20, random_state=seed).fit(X) for seed in (1, 1, 2))
    assert np.array_equal(one.transform(X), same.transform(X))
    assert not np.array_equal(one.transform(X), other.transform(X))
    assert one.gamma_ == pytest.approx(1.0 / (3 * X.var()))


def test_a_linear_machine_takes_them() -> None:
    """In a pipeline a linear machine whose data no line separates does."""
    y = (np.abs(X[:, 0]) > 0.7).astype(int)
    model = make_pipeline(RandomFeatures(400, gamma=1.0), LinearClassifier(C=100.0)).fit(X, y)
    assert model.score(X, y) == 1.0
    assert LinearClassifier(C=100.0).fit(X, y).score(X, y) < 0.9


@pytest.mark.parametrize("kind", ["two classes", "three classes", "hidden states"])
def test_kernel_machines_take_them_in_place_of_a_kernel(kind: str, tmp_path: Path) -> None:
    """All missing labels are found; rows are scored without kernel values; a file holds the model and its directions."""
    centres = np.repeat([[0.0, 0.0, 0.0], [4.0, 0.0, 0.0], [0.0, 4.0, 0.0]], 10, axis=0)
    rows, truth = 0.3 * X + centres, np.repeat([0, 1, 1 if kind == "two classes" else 2], 10)
    phi = RandomFeatures(200, gamma=0.5, random_state=3)
    if kind == "hidden states":
        model: Any = LatentSVM(phi, C=10.0, n_states={0: 1, 1: 2}, solver="cccp").fit(rows, np.minimum(truth, 1))
        truth = np.minimum(truth, 1)
    else:
        y = np.where(np.arange(30) % 10 < 2, truth, -1)
        model = SemiSupervisedSVM(phi, C=10.0, solver=StagedSearch(max_inner=60)).fit(rows, y)
        assert model.transduction_.tolist() == truth.tolist()
        h = (model.decision_function(rows) + 0.0).reshape(30, -1)
        np.testing.assert_allclose(phi.fit_transform(rows) @ model.dual_coef_.T + model.intercept_, h, atol=1e-4)
        with pytest.raises(ParameterError, match="no landmarks of RandomFeatures"):
            SemiSupervisedSVM(phi, n_components=5).fit(rows, y)
    assert model.predict(sparse.csr_matrix(rows)).tolist() == truth.tolist()
    model.save(tmp_path / "m.spz")
    read = load(tmp_path / "m.spz")
    assert read.decision_function(rows).tobytes() == model.decision_function(rows).tobytes()
    assert clone(read).get_params()["kernel"].get_params() == phi.get_params()


def test_it_passes_the_checks_of_scikit_learn() -> None:
    """All of check_estimator."""
    check_estimator(RandomFeatures(10), on_skip=None)


@pytest.mark.parametrize(
    ("settings", "words"), [({"n_components": 0}, "n_components must be"), ({"gamma": -1.0}, "gamma must be")]
)
def test_settings_out_of_range_are_refused(settings: dict[str, float], words: str) -> None:
    """No columns, a negative gamma; and X that is no table of numbers."""
    with pytest.raises(ParameterError, match=words):
        RandomFeatures(**settings).fit(X)  # type: ignore[arg-type]
    with pytest.raises(DataError):
        RandomFeatures(4).fit([["a"]])
