"""Random features: what their inner products are close to, and what uses them."""

import numpy as np
import pytest
from sklearn.utils.estimator_checks import check_estimator

from structpred.errors import DataError, ParameterError
from structpred.models import RandomFeatures, SemiSupervisedSVM
from structpred.nonconvex.spreading import Growing

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


def test_a_semi_supervised_machine_takes_them() -> None:
    """Two groups of points, a label each: all others are found, and rows are scored without a kernel matrix."""
    rows = np.r_[X[:15] * 0.3, X[15:] * 0.3 + 3.0]
    y = np.r_[0, np.full(14, -1), 1, np.full(14, -1)]
    model = SemiSupervisedSVM(RandomFeatures(200, gamma=0.5), C=10.0, balance=0.5, solver=Growing(max_inner=20)).fit(rows, y)
    assert model.transduction_.tolist() == [0] * 15 + [1] * 15
    assert model.predict(rows + 0.01).tolist() == [0] * 15 + [1] * 15
    with pytest.raises(ParameterError, match="needs the kernel matrix"):
        SemiSupervisedSVM(RandomFeatures(20), solver="gradient").fit(rows, y)


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
