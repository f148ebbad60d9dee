"""Signs of linear models with the default trainer, dual ascent: exact, certified, told, kept in files, and refused in words."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from structpred.errors import MissingCapabilityError, ParameterError
from structpred.models import LinearClassifier, LinearRegressor, load

RNG = np.random.default_rng(0)
X = RNG.normal(size=(50, 4))
NUMBERS = X @ [1.0, -1.0, 0.5, 0.0] + 0.3 * RNG.normal(size=50)
TWO, THREE = (NUMBERS > 0).astype(int), np.digitize(NUMBERS, [-0.7, 0.7])
TABLE = np.array([[0, 1, 0, 0], [0, 1, 0, 0], [-1, 1, 0, 0]])
CASES: dict[str, tuple[Any, Any, set[str], Any]] = {
    "two": (LinearClassifier(signs={"0": -1, "2": 1}), TWO, {"0"}, [[-1, 0, 1, 0]]),
    "logistic": (LinearClassifier(signs=[-1, 0, 1, 0], surrogate="logistic"), TWO, {"0"}, [[-1, 0, 1, 0]]),
    "three": (LinearClassifier(signs={"0 -> 2": -1, "1": 1}), THREE, {"0 -> 2", "1 -> 2"}, TABLE),
    "softmax": (LinearClassifier(signs=TABLE, surrogate="softmax"), THREE, {"0 -> 2", "1 -> 2"}, TABLE),
    "squared": (LinearRegressor(signs={"0": -1, "2": 1}), NUMBERS, {"0"}, [[-1, 0, 1, 0]]),
    "absolute": (LinearRegressor("absolute", signs=[-1, 0, 1, 0]), NUMBERS, {"0"}, [[-1, 0, 1, 0]]),
    "intercept": (LinearRegressor(signs={"intercept": -1}), NUMBERS + 9.0, {"intercept"}, [[0, 0, 0, 0]]),
}


@pytest.mark.parametrize("name", CASES)
def test_weights_obey_and_the_binding_constraints_are_told(name: str, tmp_path: Path) -> None:
    """min c * w is 0.0 in the shape of coef_, the gap is closed, and the file tells the same; names are those that contradict."""
    model, y, names, signs = CASES[name]
    model.fit(X, y)
    assert model.converged_
    np.testing.assert_array_equal(model.signs_, signs)
    assert (model.signs_ * model.coef_).min() == 0.0
    bound = model.binding_constraints()
    assert {entry.name for entry in bound} == names
    assert all(entry.sign * entry.pull < 0 and entry.weight == 0 for entry in bound)
    model.save(tmp_path / "m.spz")
    again = load(tmp_path / "m.spz")
    np.testing.assert_array_equal(again.signs_, model.signs_)
    assert again.binding_constraints() == bound
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_signs_that_leave_nothing_are_an_error() -> None:
    """Each weight is pulled against its sign: of two classes and of numbers."""
    for model, y in ((LinearClassifier(signs={"0": -1}, fit_intercept=False), 2.0 * TWO - 1.0),
                     (LinearRegressor(signs={"0": -1}, fit_intercept=False), NUMBERS)):  # fmt: skip
        with pytest.raises(ParameterError, match="force all weights to zero"):
            model.fit(y[:, None], y)


@pytest.mark.parametrize(
    ("signs", "why"),
    [
        ([-1, 0], r"expected one for each of 4 features, or an array \(3, 4\) as coef_, got shape \(2,\)"),
        (TABLE.T, r"got shape \(4, 3\)"),
        ([1, "a", 0, 0], "expected a flat array of -1, 0 and 1"),
        ([[1], [1, 0]], "expected an array of -1, 0 and 1"),
        ([1.5, 0, 0, 0], "got 1.5 for weight 0"),
        ({"0": 1, "* -> 2": -1}, r"'0 -> 2' would have to be zero"),
        ({"0 -> 9": 1}, "no weight is called '0 -> 9'"),
    ],
)
def test_wrong_signs_are_refused_in_words(signs: Any, why: str) -> None:
    """Lengths, shapes, texts, ragged lists, other numbers, conflicts and unknown classes."""
    with pytest.raises(ParameterError, match=why):
        LinearClassifier(signs=signs).fit(X, THREE)


def test_trainers_that_cannot_keep_signs_name_those_that_can_here() -> None:
    """Those for rows of numbers with this loss, and no others."""
    with pytest.raises(MissingCapabilityError, match=r"Trainers for SignConstraints: owlqn, pegasos, sdca$"):
        LinearRegressor(trainer="lbfgs", signs={"0": 1}).fit(X, NUMBERS)
    with pytest.raises(MissingCapabilityError, match=r"Trainers for SignConstraints: bcfw, bmrm, .*pegasos, .*sdca, sgd$"):
        LinearClassifier("mira", signs={"0": 1}).fit(X, TWO)


def test_pegasos_keeps_signs_and_has_no_dual_point() -> None:
    """What its projections cut off is forgotten, so that nothing is said of the constraints that bind."""
    for y in (TWO, THREE):
        model = LinearClassifier("pegasos", signs={"0": -1, "1": 1}, max_iter=5).fit(X, y)
        assert (model.signs_ * model.coef_).min() == 0.0
        assert model.binding_constraints() == []
