"""RobustSVM: points whose loss exceeds the cap do not count."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import check_estimator

from structpred.errors import DataError, ModelFileError, ParameterError
from structpred.models import RandomFeatures, RobustSVM, load
from structpred.models.kernels.functions import RBF
from structpred.nonconvex.alternating import AlternatingOptimisation


def outliers(n: int = 60, share: float = 0.2, seed: int = 0) -> tuple[Any, Any, Any]:
    """(X, y, truth): two classes along the first axis, of which a share lies far away with the other class's label."""
    rng = np.random.default_rng(seed)
    truth = np.repeat([0, 1], n // 2)
    X = rng.normal(size=(n, 2)) * 0.5 + np.where(truth == 1, 1.5, -1.5)[:, None] * np.array([1.0, 0.0])
    y, flipped = truth.copy(), np.flatnonzero(np.arange(n) % round(1 / share) == 0)
    X[flipped] += np.where(truth[flipped] == 1, 8.0, -8.0)[:, None] * np.array([1.0, 0.0])
    y[flipped] = 1 - y[flipped]
    return X, y, truth


@pytest.mark.parametrize("kernel", ["linear", RBF(0.5)])
def test_without_a_cap_it_is_a_support_vector_machine(kernel: Any) -> None:
    """cap = inf: the decision values of scikit-learn's SVC, and global, for the problem is convex."""
    X, y, _ = outliers()
    model = RobustSVM(kernel, C=1.0, cap=np.inf).fit(X, y)
    peer = SVC(C=1.0, kernel="linear" if kernel == "linear" else "rbf", gamma=0.5, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), peer.decision_function(X), atol=1e-4)
    assert model.level_ == "global"
    assert not model.discarded_.any()


@pytest.mark.slow
def test_it_discards_flipped_outliers() -> None:
    """With a fifth of the labels wrong and far away it separates the rest, where the machine with the hinge loss does not."""
    X, y, truth = outliers()
    model, plain = RobustSVM("linear", cap=2.0).fit(X, y), SVC(kernel="linear").fit(X, y)
    assert np.array_equal(np.flatnonzero(model.discarded_), np.flatnonzero(y != truth))
    rng = np.random.default_rng(9)
    labels = rng.integers(0, 2, 200)
    new = rng.normal(size=(200, 2)) * 0.5 + np.where(labels == 1, 1.5, -1.5)[:, None] * np.array([1.0, 0.0])
    assert model.score(new, labels) >= 0.99
    assert plain.score(new, labels) <= 0.7


def test_the_objective_is_that_of_the_definition() -> None:
    """1/2 |w|^2 + C sum min(cap, V), from the fitted attributes; the bound is below, and few points are proven."""
    X, y, _ = outliers(30)
    model = RobustSVM(RBF(0.2), C=2.0, cap=1.5).fit(X, y)
    gram = np.exp(-0.2 * ((X[:, None] - X[None]) ** 2).sum(-1))
    beta = np.zeros(30)
    beta[model.support_] = model.dual_coef_[0]
    losses = np.minimum(1.5, np.maximum(0.0, 1.0 - np.where(y == 1, 1, -1) * model.decision_function(X)))
    assert 0.5 * beta @ gram @ beta + 2.0 * losses.sum() == pytest.approx(model.objective_, rel=1e-6)
    assert model.lower_bound_ <= model.objective_
    assert model.level_ == "global"
    local = RobustSVM(RBF(0.2), C=2.0, cap=1.5, solver="ao").fit(X, y)
    assert local.objective_ >= model.objective_ * (1.0 - 1e-6)
    assert (local.level_, local.lower_bound_) == ("local", None)


@pytest.mark.parametrize("settings", [{"kernel": RandomFeatures(300, gamma=0.2)}, {"kernel": RBF(0.2), "n_components": 60}])
def test_features_take_the_place_of_the_kernel_matrix(settings: Any, tmp_path: Path) -> None:
    """With random features, or with all points as landmarks, the same points are discarded as with the kernel; files, too."""
    truth = np.repeat([0, 1], 30)
    X = np.random.default_rng(0).normal(size=(60, 2)) * 0.4 + np.where(truth == 1, 1.5, -1.5)[:, None]
    y = np.where(np.arange(60) % 6 == 0, 1 - truth, truth)
    model = RobustSVM(**settings, cap=2.0, solver="ao").fit(X, y)
    exact = RobustSVM(RBF(0.2), cap=2.0, solver="ao").fit(X, y)
    assert model.discarded_.tolist() == exact.discarded_.tolist()
    assert set(np.flatnonzero(model.discarded_)) <= set(np.flatnonzero(y != truth))
    assert model.discarded_.sum() >= 5
    assert model.objective_ == pytest.approx(exact.objective_, rel=0.1)
    model.save(tmp_path / "m.spz")
    assert load(tmp_path / "m.spz").decision_function(X).tobytes() == model.decision_function(X).tobytes()
    convex = RobustSVM(**settings, cap=np.inf).fit(X, y)
    assert convex.level_ == "eps-global"  # solved to a thousandth, as problems over features are
    assert 0.0 <= convex.objective_ - convex.lower_bound_ <= 2e-3 * convex.objective_


def test_a_file_holds_the_model(tmp_path: Path) -> None:
    """Loaded by its class or by `load` it predicts to the bit what it did, with the same proof, and can be fitted again."""
    X, y, _ = outliers(20)
    for cap in (1.5, np.inf):
        model = RobustSVM(cap=cap, solver=AlternatingOptimisation(max_inner=50)).fit(X, y)
        model.save(tmp_path / "m.spz")
        for read in (RobustSVM.load(tmp_path / "m.spz"), load(tmp_path / "m.spz")):
            assert read.decision_function(X).tobytes() == model.decision_function(X).tobytes()
            assert (read.level_, read.objective_, read.cap) == (model.level_, model.objective_, cap)
            assert read.discarded_.tolist() == model.discarded_.tolist()
            assert clone(read).fit(X, y).objective_ == model.objective_
    damaged = bytearray((tmp_path / "m.spz").read_bytes())
    damaged[len(damaged) // 2] ^= 1
    (tmp_path / "d.spz").write_bytes(damaged)
    with pytest.raises(ModelFileError):
        load(tmp_path / "d.spz")


def test_it_passes_the_checks_of_scikit_learn() -> None:
    """All of check_estimator."""
    check_estimator(RobustSVM(solver="ao"), on_skip=None)


@pytest.mark.parametrize(
    ("settings", "y", "error", "words"),
    [
        ({"cap": 0.0}, [0, 1, 0, 1], ParameterError, "cap must be a positive number"),
        ({"cap": np.nan}, [0, 1, 0, 1], ParameterError, "cap must be a positive number"),
        ({"C": -1}, [0, 1, 0, 1], ParameterError, "C must be a positive number"),
        ({}, [1, 1, 1, 1], DataError, r"one class only: \[1\]"),
        ({}, [0, 1, 2, 1], DataError, "expected two classes, got 3 classes"),
        ({"solver": "cccp"}, [0, 1, 0, 1], ParameterError, "'cccp' is for unlabelled points"),
        ({"kernel": RandomFeatures(10), "n_components": 2}, [0, 1, 0, 1], ParameterError, "there are no landmarks of RandomF"),
        ({"solver": "bnb"}, [0, 1, 0, 1], ParameterError, "solver: expected one of"),
    ],
)
def test_what_cannot_be_fitted_is_refused(settings: Any, y: Any, error: Any, words: str) -> None:
    """Each kind of bad input has an error that names it."""
    with pytest.raises(error, match=words):
        RobustSVM(**settings).fit([[0.0], [1.0], [2.0], [3.0]], y)
