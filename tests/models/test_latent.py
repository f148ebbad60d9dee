"""LatentSVM: groups whose classes nobody named."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

from structpred.errors import DataError, ModelFileError, ParameterError
from structpred.models import LatentSVM, load
from structpred.models.kernels.functions import RBF
from structpred.nonconvex.latent_search import LatentPDM

RNG = np.random.default_rng(0)
#: four clusters in a square, whose diagonals are the groups: no line separates them
CLUSTER = np.repeat([0, 1, 2, 3], 8)
X = RNG.normal(size=(32, 2)) * 0.3 + np.array([[0.0, 0.0], [2.0, 2.0], [0.0, 2.0], [2.0, 0.0]])[CLUSTER]
Y = np.where(CLUSTER < 2, "same", "other")


@pytest.mark.slow
def test_linear_states_separate_what_one_line_does_not() -> None:
    """Two states for each group find the clusters of the square; with one each the groups cannot be separated."""
    model = LatentSVM("linear", C=10.0).fit(X, Y)
    assert model.score(X, Y) == 1.0
    assert LatentSVM("linear", C=10.0, n_states=1).fit(X, Y).score(X, Y) < 0.9
    hidden = model.predict_hidden(X)
    assert (hidden == model.states_).all()
    assert len({(cluster, state) for cluster, state in zip(CLUSTER, hidden, strict=True)}) == 4
    assert (model.classes_[model.group_of_state_[hidden]] == model.predict(X)).all()


def test_the_objective_is_that_of_the_definition() -> None:
    """1/2 |w|^2 + 1/2 |b|^2 + C sum of the losses of the groups, from the fitted attributes."""
    model = LatentSVM(RBF(0.5), C=3.0, n_states={"same": 2, "other": 3}, solver=LatentPDM(max_inner=60)).fit(X, Y)
    gram = np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(-1))
    scores = gram[:, model.support_] @ model.dual_coef_.T + model.intercept_
    own = model.classes_[model.group_of_state_][None] == Y[:, None]
    losses = 1.0 + np.where(own, -np.inf, scores).max(axis=1) - np.where(own, scores, -np.inf).max(axis=1)
    own_gram = gram[np.ix_(model.support_, model.support_)]
    norm = np.vdot(model.dual_coef_ @ own_gram, model.dual_coef_) + (model.intercept_**2).sum()
    assert 0.5 * norm + 3.0 * np.maximum(0.0, losses).sum() == pytest.approx(model.objective_, rel=1e-5)
    lead = np.where(Y == "same", 1, -1) * model.decision_function(X)
    np.testing.assert_allclose(lead, 1.0 - losses, atol=1e-9)
    assert (model.level_, model.lower_bound_) == ("local", None)  # probes know of no bound


def test_probes_are_no_worse_than_alternation() -> None:
    """The default solver reaches at most the objective of one run of alternating steps; its history only falls."""
    rng = np.random.default_rng(4)
    rows, y = rng.normal(size=(40, 2)), rng.integers(0, 2, 40)
    one = LatentSVM(RBF(1.0), n_states=3, solver="cccp").fit(rows, y)
    best = LatentSVM(RBF(1.0), n_states=3, solver=LatentPDM(max_inner=100)).fit(rows, y)
    assert best.objective_ <= one.objective_ * (1.0 + 1e-6)
    objectives = [row["objective"] for row in best.history_]
    assert objectives == sorted(objectives, reverse=True)


def test_few_rows_are_proven() -> None:
    """Branch and bound closes on some ten rows and says global; the probes are not below it."""
    few, solver = np.arange(0, 32, 3), LatentPDM(max_inner=60)
    proven = LatentSVM("linear", solver="branch_and_bound").fit(X[few], Y[few])
    assert proven.level_ == "global"
    assert LatentSVM("linear", solver=solver).fit(X[few], Y[few]).objective_ >= proven.lower_bound_ * (1.0 - 1e-6)


def test_kernels_of_all_kinds_agree() -> None:
    """A name, sparse rows, kernel values that are given, and landmarks lead to the same groups."""
    settings: dict[str, Any] = {"C": 10.0, "solver": "cccp"}
    model = LatentSVM("linear", **settings).fit(X, Y)
    same = LatentSVM("linear", **settings).fit(sparse.csr_matrix(X), Y)
    given = LatentSVM("precomputed", **settings).fit(X @ X.T, Y)
    np.testing.assert_allclose(same.decision_function(X), model.decision_function(X), atol=1e-9)
    np.testing.assert_allclose(given.decision_function(X @ X.T), model.decision_function(X), atol=1e-9)
    exact = LatentSVM(RBF(0.5), **settings).fit(X, Y)
    near = LatentSVM(RBF(0.5), n_components=32, **settings).fit(X, Y)
    np.testing.assert_allclose(near.decision_function(X), exact.decision_function(X), atol=1e-2)
    assert near.score(X, Y) == 1.0


def test_a_file_holds_the_model(tmp_path: Path) -> None:
    """Loaded by its class or by `load` it predicts to the bit what it did and can be fitted again."""
    model = LatentSVM(n_states=2, solver=LatentPDM(max_inner=30)).fit(X, Y)
    model.save(tmp_path / "m.spz")
    for read in (LatentSVM.load(tmp_path / "m.spz"), load(tmp_path / "m.spz")):
        assert read.decision_function(X).tobytes() == model.decision_function(X).tobytes()
        assert read.predict_hidden(X).tolist() == model.states_.tolist()
        assert (read.level_, read.objective_, read.history_) == (model.level_, model.objective_, model.history_)
        assert clone(read).fit(X, Y).objective_ == model.objective_
    damaged = bytearray((tmp_path / "m.spz").read_bytes())
    damaged[len(damaged) // 2] ^= 1
    (tmp_path / "d.spz").write_bytes(damaged)
    with pytest.raises(ModelFileError):
        load(tmp_path / "d.spz")


@pytest.mark.slow
def test_it_passes_the_checks_of_scikit_learn() -> None:
    """All of check_estimator."""
    check_estimator(LatentSVM(solver="cccp"), on_skip=None)


@pytest.mark.parametrize(
    ("settings", "y", "error", "words"),
    [
        ({}, [1, 1, 1, 1], DataError, "at least two groups"),
        ({}, [[0, 1], [1, 0], [1, 1], [0, 0]], DataError, "1d array"),
        ({"n_states": 0}, [0, 1, 0, 1], ParameterError, "n_states of group 0 must be a whole number >= 1"),
        ({"n_states": {0: 2}}, [0, 1, 0, 1], ParameterError, r"for each of the groups with rows, \[0, 1\]"),
        ({"n_states": {0: 2, 1: 1, 7: 2}}, [0, 1, 0, 1], ParameterError, r"for each of the groups with rows, \[0, 1\]"),
        ({"solver": "staged"}, [0, 1, 0, 1], ParameterError, "solver: expected one of"),
        ({"C": 0}, [0, 1, 0, 1], ParameterError, "C must be a positive number"),
        ({"kernel": lambda A, B: -(A @ B.T).toarray()}, [0, 1, 0, 1], DataError, "not positive semidefinite"),
    ],
)
def test_what_cannot_be_fitted_is_refused(settings: Any, y: Any, error: Any, words: str) -> None:
    """Each kind of bad input has an error that names it."""
    with pytest.raises(error, match=words):
        LatentSVM(**settings).fit([[0.0], [1.0], [2.0], [3.0]], y)
