"""Linear classifiers: the objectives they promise, sparse rows, weights, files, and errors that say what is wrong."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.svm import LinearSVC

from structpred.errors import DataError, ParameterError
from structpred.models import LinearClassifier, LinearOrdinal, load
from structpred.objectives.part_losses import LabelCosts

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
SCORE = X @ [1.0, -2.0, 0.5] + 0.3 * RNG.normal(size=40)
TWO = np.where(SCORE > 0.2, "yes", "no")
MANY = np.digitize(SCORE, [-1.5, 0.0, 1.5]) * 10
TABLE = np.column_stack([SCORE > 0, X[:, 0] > 0.5, np.zeros(40)]).astype(int)
TIGHT: dict[str, Any] = {"tol": 1e-10, "max_iter": 5000}
Y = {"two": TWO, "many": MANY, "table": TABLE}


@pytest.mark.parametrize("constant", [0.0, 2.0])
def test_two_classes_have_the_weights_of_liblinear(constant: float) -> None:
    """Weights, intercept and decision values of LinearSVC with the hinge, with intercept_scaling and without intercept."""
    settings = {
        "fit_intercept": constant > 0,
        "intercept_scaling": constant or 1.0,
        "C": 0.7,
        "class_weight": {"yes": 2.0, "no": 1},
    }
    model = LinearClassifier(**settings, **TIGHT).fit(X, TWO)
    peer = LinearSVC(loss="hinge", tol=1e-10, max_iter=1_000_000, random_state=0, **settings).fit(X, TWO)
    assert model.converged_
    np.testing.assert_allclose(model.coef_, peer.coef_, atol=1e-5)
    np.testing.assert_allclose(model.intercept_, peer.intercept_, atol=1e-5)
    np.testing.assert_allclose(model.decision_function(X), peer.decision_function(X), atol=1e-4)
    assert (model.predict(X) == peer.predict(X)).all()


@pytest.mark.parametrize("trainer", ["sdca", pytest.param("projected_ascent", marks=pytest.mark.slow)])
def test_many_classes_have_the_weights_of_crammer_and_singer(trainer: str) -> None:
    """As LinearSVC(multi_class="crammer_singer"), by the ascent of its own and by projected ascent."""
    peer = LinearSVC(multi_class="crammer_singer", fit_intercept=False, tol=1e-10, max_iter=1_000_000, random_state=0).fit(
        X, MANY
    )
    model = LinearClassifier(trainer, fit_intercept=False, tol=1e-9, max_iter=2000).fit(X, MANY)
    assert model.classes_.tolist() == [0, 10, 20, 30]
    np.testing.assert_allclose(model.coef_, peer.coef_, atol=1e-4)
    best = np.sort(X @ peer.coef_.T, axis=1)[:, -2:]
    clear = best[:, 1] - best[:, 0] > 1e-6  # at the optimum two classes of one row score the same: either is right
    assert clear.sum() > 0.9 * len(X)
    assert (model.predict(X) == peer.predict(X))[clear].all()


def test_a_table_is_a_problem_for_each_label() -> None:
    """Each row of weights is that of its column alone; the certificate holds the sums; a label never on is never given."""
    model = LinearClassifier(**TIGHT).fit(X, TABLE)
    alone = [LinearClassifier(**TIGHT).fit(X, TABLE[:, k]) for k in range(2)]
    for k, one in enumerate(alone):
        assert model.coef_[k].tobytes() == one.coef_[0].tobytes()
    assert model.predict(X).shape == TABLE.shape
    assert not model.predict(X)[:, 2].any()
    assert model.certificate_.primal >= sum(one.certificate_.primal for one in alone)
    assert {row["output"] for row in model.history_} == {0, 1, 2}


@pytest.mark.parametrize("kind", Y)
@pytest.mark.parametrize("trainer", ["bcfw", "one_slack"])
def test_other_trainers_reach_the_same_objective(kind: str, trainer: str) -> None:
    """Whatever trainer of margins is named, its bounds hold the optimum of the default one."""
    best = LinearClassifier(C=0.1, **TIGHT).fit(X, Y[kind]).certificate_
    found = LinearClassifier(trainer, C=0.1, tol=1e-2, max_iter=500).fit(X, Y[kind])
    assert found.converged_
    assert found.certificate_.dual <= best.primal + 1e-9
    assert best.dual <= found.certificate_.primal + 1e-9


def test_the_intercept_of_pragam_b_is_free() -> None:
    """Rows far from the origin: a regularised intercept cannot follow, a free one makes the weights those of centred rows."""
    far, settings = X + np.array([0.0, 0.0, 50.0]), {"tol": 1e-3, "max_iter": 2000, "C": 0.1}
    model, centred = (LinearClassifier("pragam_b", **settings).fit(rows, TWO) for rows in (far, X))
    np.testing.assert_allclose(model.coef_, centred.coef_, atol=0.1)
    assert model.score(far, TWO) == pytest.approx(centred.score(X, TWO), abs=0.05)
    assert model.converged_


@pytest.mark.parametrize("kind", Y)
def test_sparse_rows_give_the_same_and_stay_sparse(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """CSR in, the same bits out; nothing on the way asks for a dense copy."""
    thin = X * (np.abs(X) > 0.5)
    dense, rows = LinearClassifier().fit(thin, Y[kind]), sparse.csr_matrix(thin)
    for name in ("toarray", "todense"):
        monkeypatch.setattr(sparse.csr_matrix, name, lambda self: pytest.fail("a dense copy"))
    model = LinearClassifier().fit(rows, Y[kind])
    assert model.coef_.tobytes() == dense.coef_.tobytes()
    np.testing.assert_allclose(model.decision_function(rows), dense.decision_function(thin), atol=1e-12)


@pytest.mark.slow
def test_costs_between_classes() -> None:
    """A loss makes one mistake cost more than others: other weights, the same ones by another trainer."""
    loss = LabelCosts([[0, 1, 2, 3], [1, 0, 9, 2], [2, 1, 0, 1], [3, 2, 1, 0]])
    model, other = (
        LinearClassifier(trainer, loss=loss, tol=1e-9, max_iter=2000).fit(X, MANY) for trainer in ("sdca", "projected_ascent")
    )
    np.testing.assert_allclose(model.coef_, other.coef_, atol=1e-3)
    assert np.abs(model.coef_ - LinearClassifier().fit(X, MANY).coef_).max() > 0.1


@pytest.mark.parametrize("kind", Y)
def test_checkpoints_resume_to_the_same_bits(kind: str, tmp_path: Path) -> None:
    """Also where each label has a run and a file of its own."""
    whole = LinearClassifier(max_iter=9, tol=0.0).fit(X, Y[kind])
    file = tmp_path / "run.ckpt"
    LinearClassifier(max_iter=4, tol=0.0, checkpoint=file).fit(X, Y[kind])
    again = LinearClassifier(max_iter=9, tol=0.0, checkpoint=file, resume=True).fit(X, Y[kind])
    assert again.coef_.tobytes() == whole.coef_.tobytes()
    assert again.n_iter_ == 9


@pytest.mark.parametrize("y", [TWO, MANY, MANY * 1.0, SCORE > 0, TABLE, TWO.astype(object)], ids=range(6))
def test_a_saved_model_is_the_same_model(y: Any, tmp_path: Path) -> None:
    """Weights, classes with their type, predictions and settings come back from the file."""
    model = LinearClassifier(class_weight=None if y.ndim == 2 else "balanced", fit_intercept=y is not MANY).fit(X, y)
    model.save(tmp_path / "m.spz")
    loaded = load(tmp_path / "m.spz")
    assert loaded.classes_.dtype == model.classes_.dtype
    assert loaded.decision_function(X).tobytes() == model.decision_function(X).tobytes()
    assert (loaded.predict(X) == model.predict(X)).all()
    assert loaded.get_params() == model.get_params()


def test_held_out_rows_choose_the_weights() -> None:
    """With dev the history holds the share of held-out rows that are right, of two classes and of many; patience ends the run."""
    for y in (TWO, MANY):
        model = LinearClassifier(patience=3, tol=0.0).fit(X[:30], y[:30], dev=(X[30:], y[30:]))
        assert model.stop_reason_ == "dev"
        assert max(row["dev_score"] for row in model.history_) == pytest.approx(model.score(X[30:], y[30:]))


BAD: dict[str, tuple[dict[str, Any], Any, Any, type[Exception], str]] = {
    "one class": ({}, X, np.zeros(40), DataError, "one class only"),
    "NaN": ({}, np.where(X > 2.0, np.nan, X), TWO, DataError, "NaN"),
    "numbers as classes": ({}, X, SCORE, DataError, "[Cc]ontinuous"),
    "lengths": ({}, X, TWO[:-1], DataError, "inconsistent"),
    "C": ({"C": 0.0}, X, TWO, ParameterError, "C must be a positive number"),
    "scaling": ({"intercept_scaling": 0.0}, X, TWO, ParameterError, "intercept_scaling must be"),
    "loss": ({"loss": LabelCosts(1.0 - np.eye(2))}, X, TWO, ParameterError, "use class_weight"),
    "weights of a table": ({"class_weight": "balanced"}, X, TABLE, ParameterError, "table of labels"),
    "trainer": ({"trainer": "sdac"}, X, TWO, ParameterError, "sdca"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_refused_in_words(case: str) -> None:
    """One class, NaN, numbers where classes belong, settings out of range: an error of ours that says so, before training."""
    settings, rows, y, kind, said = BAD[case]
    with pytest.raises(kind, match=said):
        LinearClassifier(**settings).fit(rows, y)


def test_rows_of_zeros_and_rows_without_weight_are_no_problem() -> None:
    """A row of zeros pulls on the intercept alone, a weight of zero is as if the row were not there."""
    rows, y = np.vstack([X, np.zeros((2, 3)), 100 * X[:2]]), np.r_[TWO, ["yes", "no"], TWO[:2]]
    weights = np.r_[np.ones(42), 0.0, 0.0]
    one = LinearClassifier(**TIGHT).fit(rows, y, weights)
    other = LinearClassifier(**TIGHT).fit(rows[:42], y[:42])
    np.testing.assert_allclose(one.coef_, other.coef_, atol=1e-4)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::structpred.errors.NoUpdateWarning")
def test_scikit_learn_accepts_both_classifiers() -> None:
    """The whole of check_estimator at default settings, where weights must equal repetition to 1e-7."""
    from sklearn.utils.estimator_checks import check_estimator

    for model in (LinearClassifier(), LinearOrdinal()):
        check_estimator(model, on_skip=None)
