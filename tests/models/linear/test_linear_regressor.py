"""Linear regression, and classifiers with other losses: the objectives of scikit-learn, files, and errors that say why."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.svm import LinearSVR

from structpred.errors import DataError, MissingCapabilityError, ParameterError
from structpred.models import LinearClassifier, LinearOrdinal, LinearRegressor, load
from structpred.objectives.part_losses import Hamming
from structpred.objectives.scalar.errors import Huber
from structpred.objectives.scalar.margins import Hinge, SmoothedHinge

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
Y = X @ [1.0, -2.0, 0.5] + 0.3 * RNG.normal(size=40) + 0.7
WEIGHTS = RNG.random(40)
TIGHT: dict[str, Any] = {"tol": 1e-11, "max_iter": 5000}
CLASSES = np.where(Y > 0.5, "yes", "no")


def test_squared_errors_are_ridge_regression() -> None:
    """The weights of Ridge(alpha=1 / C), with weights of samples; trained by L-BFGS, too."""
    peer = Ridge(alpha=1 / 0.7, fit_intercept=False).fit(X, Y, WEIGHTS)
    for trainer in ("sdca", "lbfgs"):
        model = LinearRegressor(trainer=trainer, C=0.7, fit_intercept=False, **TIGHT).fit(X, Y, WEIGHTS)
        assert model.converged_
        np.testing.assert_allclose(model.coef_[0], peer.coef_, atol=1e-5)
        np.testing.assert_allclose(model.predict(X), peer.predict(X), atol=1e-4)


def test_absolute_errors_are_support_vector_regression_without_a_tube() -> None:
    """The weights and the intercept of LinearSVR(epsilon=0), whose intercept is regularised alike."""
    model = LinearRegressor("absolute", C=0.5, intercept_scaling=2.0, **TIGHT).fit(X, Y)
    peer = LinearSVR(epsilon=0.0, C=0.5, intercept_scaling=2.0, tol=1e-10, max_iter=1_000_000, random_state=0).fit(X, Y)
    np.testing.assert_allclose(model.coef_[0], peer.coef_, atol=1e-4)
    np.testing.assert_allclose(model.intercept_, peer.intercept_, atol=1e-4)


def test_a_narrow_huber_is_absolute_and_a_wide_one_squared() -> None:
    """Both ends of its width, where gamma times the squared loss is the loss."""
    narrow, wide = (LinearRegressor(Huber(gamma), C=gamma if gamma > 1 else 1.0, **TIGHT).fit(X, Y) for gamma in (1e-6, 1e4))
    np.testing.assert_allclose(narrow.coef_, LinearRegressor("absolute", **TIGHT).fit(X, Y).coef_, atol=1e-4)
    np.testing.assert_allclose(wide.coef_, LinearRegressor(**TIGHT).fit(X, Y).coef_, atol=1e-4)


def test_sparse_rows_give_the_same() -> None:
    """CSR in, the same bits out."""
    thin = X * (np.abs(X) > 0.5)
    one, other = (LinearRegressor().fit(rows, Y) for rows in (thin, sparse.csr_matrix(thin)))
    assert one.coef_.tobytes() == other.coef_.tobytes()
    np.testing.assert_allclose(one.predict(thin), other.predict(sparse.csr_matrix(thin)), atol=1e-12)


@pytest.mark.parametrize(
    "model",
    [
        LinearRegressor(Huber(0.25)),
        LinearRegressor("absolute", fit_intercept=False),
        LinearClassifier(surrogate=SmoothedHinge(0.1)),
    ],
)
def test_a_saved_model_is_the_same_model(model: Any, tmp_path: Path) -> None:
    """Weights, loss and predictions come back from the file; a second fit gives the same bits."""
    y = CLASSES if isinstance(model, LinearClassifier) else Y
    model.fit(X, y).save(tmp_path / "m.spz")
    loaded = load(tmp_path / "m.spz")
    assert type(loaded) is type(model)
    assert (loaded.predict(X) == model.predict(X)).all()
    assert loaded.certificate_ == model.certificate_
    assert loaded.fit(X, y).coef_.tobytes() == model.coef_.tobytes()


def test_logistic_classifiers_are_logistic_regression() -> None:
    """Weights, decision values and probabilities of LogisticRegression, with a certificate; of a table each column's."""
    peer = LogisticRegression(C=0.7, fit_intercept=False, tol=1e-10, max_iter=10_000).fit(X, CLASSES)
    model = LinearClassifier(surrogate="logistic", C=0.7, fit_intercept=False, **TIGHT).fit(X, CLASSES)
    assert model.converged_
    np.testing.assert_allclose(model.coef_, peer.coef_, atol=1e-4)
    np.testing.assert_allclose(model.decision_function(X), peer.decision_function(X), atol=1e-3)
    np.testing.assert_allclose(model.predict_proba(X), peer.predict_proba(X), atol=1e-4)
    table = np.column_stack([CLASSES == "yes", X[:, 0] > 0]).astype(int)
    many = LinearClassifier(surrogate="logistic", C=0.7, fit_intercept=False, **TIGHT).fit(X, table)
    np.testing.assert_allclose(many.predict_proba(X)[:, 0], peer.predict_proba(X)[:, 1], atol=1e-4)


def test_a_narrow_corner_is_the_hinge() -> None:
    """The smoothed hinge with a small gamma has the weights of the hinge; scales of classes take scalar losses, too."""
    narrow, hinge = (LinearClassifier(surrogate=name, **TIGHT).fit(X, CLASSES) for name in (SmoothedHinge(1e-6), "hinge"))
    np.testing.assert_allclose(narrow.coef_, hinge.coef_, atol=1e-4)
    np.testing.assert_allclose(hinge.coef_, LinearClassifier(**TIGHT).fit(X, CLASSES).coef_, atol=1e-5)
    assert not hasattr(hinge, "predict_proba")
    assert LinearOrdinal(surrogate="smoothed_hinge").fit(X, np.digitize(Y, [-1.0, 1.0])).converged_


@pytest.mark.parametrize(
    ("settings", "y", "error", "words"),
    [
        ({"loss": "sqared"}, Y, ParameterError, "loss: expected one of absolute, .*'sqared'; did you mean 'squared'"),
        ({"loss": Hamming()}, Y, ParameterError, "instance of a ScalarLoss"),
        ({"loss": Hinge()}, Y, DataError, r"Hinge is for two classes, \+1 and -1"),
        ({"surrogate": "hinge"}, Y, ParameterError, "a regressor's is its loss"),
        ({"trainer": "bcfw"}, Y, MissingCapabilityError, "needs argmax, but a regression task offers rows alone"),
        ({}, CLASSES, DataError, "could not convert string to float|dtype"),
        ({}, np.r_[np.nan, Y[1:]], DataError, "NaN"),
        ({}, np.column_stack((Y, Y)), DataError, "1d array"),
        ({"C": -1.0}, Y, ParameterError, "C must be a positive number"),
    ],
)
def test_bad_input_is_refused(settings: dict[str, Any], y: Any, error: type[Exception], words: str) -> None:
    """Losses, targets and settings that do not fit, with what was expected."""
    with pytest.raises(error, match=words):
        LinearRegressor(**settings).fit(X, y)


def test_scalar_losses_are_refused_where_there_are_many_classes() -> None:
    """The error says what they are for."""
    with pytest.raises(MissingCapabilityError, match="Logistic is for rows with two classes or a number"):
        LinearClassifier(surrogate="logistic").fit(X, np.arange(40) % 3)
    with pytest.raises(MissingCapabilityError, match=r'LogLoss needs marginals, .*: its log loss is surrogate="logistic"'):
        LinearClassifier(surrogate="log").fit(X, CLASSES)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::structpred.errors.NoUpdateWarning")
def test_scikit_learn_accepts_the_regressor() -> None:
    """The whole of check_estimator, run until nothing changes: weights must equal repetition to 1e-7."""
    from sklearn.utils.estimator_checks import check_estimator

    check_estimator(LinearRegressor(tol=0.0, max_iter=300, check_every=300), on_skip=None)
