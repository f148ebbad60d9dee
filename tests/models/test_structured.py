"""StructuredPredictor: matchings, chains as parts, single labels, and what faulty or inexact oracles do to it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import sparse

from structpred.core.oracle import Oracle
from structpred.errors import DataError, OracleError, ParameterError
from structpred.models import ChainLabeler, StructuredPredictor
from structpred.oracles.assignment import AssignmentOracle
from structpred.oracles.chain import ChainOracle
from structpred.oracles.multiclass import MulticlassOracle

Sample = tuple[list[np.ndarray], list[np.ndarray], list[tuple[int, ...]]]
HIDDEN = np.array([2.0, -1.0, 0.5])


def planted(oracle: Oracle, shapes: list[tuple[int, ...]], seed: int = 0) -> Sample:
    """Random features, and as the truth what the oracle finds under hidden weights."""
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(oracle.n_parts(shape), 3)) for shape in shapes]
    return X, [oracle.argmax(x @ HIDDEN, shape) for x, shape in zip(X, shapes, strict=True)], shapes


ORACLES = {
    "matchings": (AssignmentOracle(), [(3,), (4,), (5,)] * 10),
    "single labels": (MulticlassOracle(), [(3,), (5,)] * 15),
    "chains": (ChainOracle(), [(3, 3), (5, 3), (1, 3)] * 10),
}


@pytest.mark.slow
@pytest.mark.parametrize("trainer", ["bcfw", "sgd", "perceptron"])
@pytest.mark.parametrize("name", ORACLES)
def test_planted_weights_are_found(name: str, trainer: str) -> None:
    """With every trainer and structure: new instances get the outputs that the hidden weights give, nearly always."""
    oracle, shapes = ORACLES[name]
    model = StructuredPredictor(oracle, trainer=trainer, C=10.0, random_state=0).fit(*planted(oracle, shapes))
    assert model.score(*planted(oracle, shapes, seed=1)) > 0.9
    cosine = model.coef_ @ HIDDEN / np.linalg.norm(model.coef_) / np.linalg.norm(HIDDEN)
    assert cosine > 0.95
    assert model.n_features_in_ == 3


@pytest.mark.slow
@pytest.mark.parametrize("name", ORACLES)
def test_save_load_and_sparse_rows(name: str, tmp_path: Path) -> None:
    """A loaded model predicts the same; sparse rows give the model that dense rows give."""
    oracle, shapes = ORACLES[name]
    X, y, _ = planted(oracle, shapes)
    model = StructuredPredictor(oracle).fit(X, y, shapes)
    model.save(tmp_path / "m.spz")
    loaded = StructuredPredictor.load(tmp_path / "m.spz", oracle)
    assert all(map(np.array_equal, loaded.predict(X, shapes), model.predict(X, shapes)))
    assert loaded.certificate_ == model.certificate_
    thin = StructuredPredictor(oracle).fit([sparse.csr_array(x) for x in X], y, shapes)
    assert thin.coef_.tobytes() == model.coef_.tobytes()


@pytest.mark.slow
def test_single_labels_agree_with_the_chain_of_one_token() -> None:
    """Multiclass is a chain of length one: parts with crossed features give the optimum that ChainLabeler finds."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 40)
    tokens = np.eye(3)[labels] + rng.normal(0, 1.0, (40, 3))
    crossed = [np.kron(np.eye(3), np.concatenate([x, [1.0, 1.0]])) for x in tokens]  # start and stop scores: two constants
    tight: dict[str, Any] = {"C": 0.1, "tol": 1e-4, "max_iter": 5000}
    parts = StructuredPredictor(MulticlassOracle(), **tight).fit(crossed, labels[:, None], [(3,)] * 40)
    chain = ChainLabeler(fit_intercept=False, **tight).fit(tokens[:, None, :], labels[:, None])
    assert parts.certificate_.dual <= chain.certificate_.primal
    assert chain.certificate_.dual <= parts.certificate_.primal
    assert parts.converged_
    assert chain.converged_


def test_held_out_data_choose_the_weights() -> None:
    """With dev data the best pass is kept, as for chains."""
    oracle, shapes = ORACLES["matchings"]
    dev = planted(oracle, shapes, seed=2)
    model = StructuredPredictor(oracle, trainer="perceptron", max_iter=30, patience=2).fit(*planted(oracle, shapes), dev=dev)
    assert model.score(*dev) == max(row["dev_score"] for row in model.history_)
    assert model.stop_reason_ == "dev"


def test_samples_with_weight_two_are_copies() -> None:
    """At the optimum, weight 2 is the same as standing there twice."""
    oracle, shapes = ORACLES["matchings"]
    X, y, _ = planted(oracle, shapes[:9])
    tight: dict[str, Any] = {"C": 0.05, "tol": 1e-5, "max_iter": 20000}
    weighted = StructuredPredictor(oracle, **tight).fit(X, y, shapes[:9], sample_weight=[2] * 3 + [1] * 6)
    repeated = StructuredPredictor(oracle, **tight).fit(X[:3] + X, y[:3] + y, shapes[:3] + shapes[:9])
    assert weighted.certificate_.primal == pytest.approx(repeated.certificate_.primal, rel=2e-5)


class Faulty(AssignmentOracle):
    """Matchings, with an answer of the wrong kind."""

    def __init__(self, answer: Callable[[npt.NDArray[np.int64]], Any]) -> None:
        self.answer = answer

    def argmax(self, scores: Any, shape: Any) -> Any:
        return self.answer(super().argmax(scores, shape))


@pytest.mark.parametrize(
    ("answer", "came"),
    [
        (lambda labels: labels.astype(np.int32), "1-d array of int32"),
        (lambda labels: labels.astype(float), "1-d array of float64"),
        (lambda labels: labels[None], "2-d array of int64"),
        (lambda labels: labels.tolist(), "list"),
        (lambda labels: None, "NoneType"),
    ],
)
@pytest.mark.parametrize("trainer", ["bcfw", "sgd", "perceptron"])
def test_an_answer_of_the_wrong_kind_is_an_oracle_error(trainer: str, answer: Any, came: str) -> None:
    """An oracle that returns no 1-d int64 array is named with what it returned, in training and in prediction."""
    X, y, shapes = planted(AssignmentOracle(), [(3,)] * 4)
    model = StructuredPredictor(AssignmentOracle(), trainer=trainer).fit(X, y, shapes)
    before = model.coef_.tobytes()
    model.oracle = Faulty(answer)
    for call in (lambda: model.fit(X, y, shapes), lambda: model.predict(X, shapes)):
        with pytest.raises(OracleError, match=f"Faulty.argmax must return a 1-d int64 array of labels, got a {came}"):
            call()
    assert model.coef_.tobytes() == before


class Rough(MulticlassOracle):
    """Looks at the first two labels only, and says that it may miss the maximum."""

    exact = False
    argmax_batch = None  # type: ignore[assignment]

    def argmax(self, scores: Any, shape: Any) -> Any:
        return super().argmax(scores[:2], (2,))

    @staticmethod
    def example_shapes():
        return [(2,), (4,)]


def test_an_inexact_oracle_proves_nothing(tmp_path: Path) -> None:
    """With exact = False the certificate is not proven and says so; training never counts as converged; a file keeps that."""
    X, y, shapes = planted(MulticlassOracle(), [(4,)] * 20)
    model = StructuredPredictor(Rough(), tol=0.5, max_iter=30).fit(X, y, shapes)
    assert not model.certificate_.proven
    assert "not a proof (the oracle is inexact)" in str(model.certificate_)
    assert not model.converged_
    model.save(tmp_path / "m.spz")
    assert not StructuredPredictor.load(tmp_path / "m.spz", Rough()).certificate_.proven
    exact = StructuredPredictor(MulticlassOracle(), tol=0.5, max_iter=30).fit(X, y, shapes)
    assert exact.certificate_.proven
    assert exact.converged_


X0, Y0, S0 = planted(AssignmentOracle(), [(3,), (2,), (4,)])


def swapped(samples: list[Any], i: int, value: Any) -> list[Any]:
    """The list with another entry i."""
    return [*samples[:i], value, *samples[i + 1 :]]


BAD: dict[str, tuple[Any, Any, Any, str]] = {
    "NaN": (swapped(X0, 1, X0[1] * np.nan), Y0, S0, "sample 1: .*NaN"),
    "columns": (swapped(X0, 2, X0[2][:, :1]), Y0, S0, "sample 2: expected 3 feature columns, got 1"),
    "rows": (swapped(X0, 1, X0[1][:2]), Y0, S0, "sample 1: shape .* has 4 parts, but the features have 2 rows"),
    "one matrix": (X0[0], Y0, S0, "one sample instead of a list"),
    "one sparse matrix": (sparse.csr_array(X0[0]), Y0, S0, "one sample instead of a list"),
    "no samples": ([], [], [], "at least one"),
    "X nothing": (None, Y0, S0, "X: .*got NoneType"),
    "y nothing": (X0, None, S0, "y: .*got NoneType"),
    "shapes nothing": (X0, Y0, None, r"X: the shapes are missing. .*structpred.Instance\(features, shape\)"),
    "fewer labellings": (X0, Y0[:2], S0, "3 samples with features but 2 labellings"),
    "fewer shapes": (X0, Y0, S0[:2], "3 samples .* 2 shapes"),
    "no shape": (X0, Y0, swapped(S0, 1, None), "sample 1: expected a shape, got None"),
    "unhashable shape": (X0, Y0, swapped(S0, 1, {2: 1}), "sample 1: a shape must be hashable"),
    "nameless shape": (X0, Y0, swapped(S0, 1, object()), "sample 1: the repr of the shape .* is a memory address"),
    "a shape the oracle refuses": (X0, Y0, swapped(S0, 2, 4), "sample 2: AssignmentOracle.n_parts refuses the shape 4"),
    "infeasible truth": (X0, swapped(Y0, 1, [0, 0]), S0, "sample 1: the true labels do not fit"),
    "short truth": (X0, swapped(Y0, 0, [0, 1]), S0, "sample 0: the true labels do not fit"),
    "fractions": (X0, swapped(Y0, 1, [0.5, 1.0]), S0, "sample 1: expected labels as a 1-d .*, got 1-d float"),
    "text": (X0, swapped(Y0, 1, ["a", "b"]), S0, "sample 1: expected labels as a 1-d array of whole numbers"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_data_are_named_and_change_nothing(name: str) -> None:
    """Unusable data raise DataError with the sample or the cause; a model fitted before stays as it was."""
    X, y, shapes, message = BAD[name]
    model = StructuredPredictor(AssignmentOracle()).fit(X0, Y0, S0)
    before = dict(vars(model))
    with pytest.raises(DataError, match=message):
        model.fit(X, y, shapes)
    assert vars(model) == before


def test_bad_settings_are_named() -> None:
    """A class in place of an oracle, a dev tuple of four, weights that do not fit: ParameterError says which."""
    with pytest.raises(ParameterError, match="oracle: expected an instance"):
        StructuredPredictor(AssignmentOracle).fit(X0, Y0, S0)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match=r"dev: expected a tuple \(X, y\), got 4"):
        StructuredPredictor(AssignmentOracle()).fit(X0, Y0, S0, dev=(X0, Y0, S0, S0))
    with pytest.raises(DataError, match="dev: X: the shapes are missing"):
        StructuredPredictor(AssignmentOracle()).fit(X0, Y0, S0, dev=(X0, Y0))
    with pytest.raises(DataError, match="dev: sample 0"):
        StructuredPredictor(AssignmentOracle()).fit(X0, Y0, S0, dev=(swapped(X0, 0, X0[0] * np.inf), Y0, S0))
    with pytest.raises(ParameterError, match="sample_weight"):
        StructuredPredictor(AssignmentOracle()).fit(X0, Y0, S0, sample_weight=[1, 2])


def test_bad_input_to_predict_is_named() -> None:
    """Prediction names the sample whose rows and shape do not fit; an empty list gives an empty list."""
    model = StructuredPredictor(AssignmentOracle()).fit(X0, Y0, S0)
    for X, shapes, message in (
        (X0, S0[:2], "X has 3 samples but there are 2 shapes"),
        (X0, swapped(S0, 1, (3,)), r"sample 1: shape \(3,\) has 9 parts, but the features have 4 rows"),
        ([x[:, :2] for x in X0], S0, "sample 0: expected 3 feature columns, got 2"),
        (X0[0], S0, "one sample instead of a list"),
    ):
        with pytest.raises(DataError, match=message):
            model.predict(X, shapes)
    assert model.predict([], []) == []
    with pytest.raises(DataError, match="X has 3 samples but y has 2"):
        model.score(X0, Y0[:2], S0)
    with pytest.raises(DataError, match="sample 1: the true labels do not fit the shape"):
        model.score(X0, swapped(Y0, 1, [0]), S0)
