"""Classes on a scale: the objective of all thresholds, thresholds in order, files, and agreement with two classes."""

from pathlib import Path

import numpy as np
import pytest

from structpred.errors import DataError
from structpred.models import LinearClassifier, LinearOrdinal, load

RNG = np.random.default_rng(1)
X = RNG.normal(size=(30, 3))
Y = np.digitize(X @ [2.0, -1.0, 0.0] + 0.5 * RNG.normal(size=30), [-1.0, 0.5, 2.0])


def test_it_is_the_optimum_of_all_thresholds() -> None:
    """As a convex program over w and thresholds; the certificate holds its value over C (K - 1) n."""
    import cvxpy as cp

    C = 0.5
    model = LinearOrdinal(C=C, tol=1e-10, max_iter=5000).fit(X, Y)
    w, b = cp.Variable(3), cp.Variable(3)
    sides = [cp.sum(cp.pos(1 - cp.multiply(np.where(k < Y, 1.0, -1.0), X @ w - b[k]))) for k in range(3)]
    program = cp.Problem(cp.Minimize((cp.sum_squares(w) + cp.sum_squares(b)) / 2 + C * sum(sides)))
    program.solve(solver=cp.CLARABEL)
    assert model.certificate_.primal * C * 3 * 30 == pytest.approx(float(program.value), rel=1e-7)
    np.testing.assert_allclose(model.coef_[0], w.value, atol=1e-3)
    np.testing.assert_allclose(model.thresholds_, b.value, atol=1e-3)
    assert (np.diff(model.thresholds_) > 0).all()
    assert np.abs(model.predict(X) - Y).mean() < 0.4


def test_two_classes_are_a_linear_classifier() -> None:
    """The one threshold is minus the intercept."""
    y = Y > 1
    one, other = (kind(tol=1e-10, max_iter=5000).fit(X, y) for kind in (LinearOrdinal, LinearClassifier))
    np.testing.assert_allclose(one.coef_, other.coef_, atol=1e-5)
    assert one.thresholds_[0] == pytest.approx(-other.intercept_[0], abs=1e-5)
    assert (one.predict(X) == other.predict(X)).all()


def test_a_saved_model_is_the_same_model(tmp_path: Path) -> None:
    """Thresholds and predictions come back from the file."""
    model = LinearOrdinal().fit(X, Y * 5)
    model.save(tmp_path / "m.spz")
    loaded = load(tmp_path / "m.spz")
    assert loaded.thresholds_.tobytes() == model.thresholds_.tobytes()
    assert (loaded.predict(X) == model.predict(X)).all()


def test_one_class_is_refused() -> None:
    """There is no threshold to learn."""
    with pytest.raises(DataError, match="one class only"):
        LinearOrdinal().fit(X, np.ones(30))
