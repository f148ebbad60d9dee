"""SemiSupervisedSVM: labels that are missing are -1, and are found with the classifier."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import check_estimator

from structpred.errors import DataError, ModelFileError, ParameterError, StructpredWarning
from structpred.models import RobustSVM, SemiSupervisedSVM, load
from structpred.models.kernels.functions import RBF, Polynomial
from structpred.nonconvex.branch_and_bound import BranchAndBound
from structpred.nonconvex.pdm import PDM
from structpred.nonconvex.pdm_rounds import PDMRounds
from structpred.nonconvex.staged import StagedSearch

RNG = np.random.default_rng(0)
GROUPS = np.repeat([0, 1, 2], 10)
X = RNG.normal(size=(30, 2)) * 0.3 + np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 3.0]])[GROUPS]
TWO, THREE = np.where(GROUPS[:20] == 0, "a", "b"), GROUPS


def hidden(y: Any, every: int = 5) -> Any:
    """All but each fifth label replaced: by -1 for numbers, None for texts."""
    found = y.astype(object)
    found[np.arange(len(y)) % every != 0] = -1 if y.dtype.kind == "i" else None
    return found if y.dtype.kind != "i" else found.astype(int)


def test_it_finds_the_labels_and_proves_them() -> None:
    """Two and three groups of points, with a fifth of the labels: all right, on other rows too, and proven."""
    two = SemiSupervisedSVM(C=10.0, C2=5.0).fit(X[:20], hidden(TWO))
    three = SemiSupervisedSVM(RBF(0.5), C=10.0, C2=5.0).fit(X, hidden(THREE))
    assert (two.transduction_ == TWO).all()
    assert (three.transduction_ == THREE).all()
    assert (two.level_, three.level_) == ("global", "global")
    assert (two.predict(X[:20] + 0.01) == TWO).all()
    assert (three.predict(X + 0.01) == THREE).all()
    assert two.lower_bound_ == pytest.approx(two.objective_, rel=2e-6)
    assert three.decision_function(X).shape == (30, 3)
    assert {row["output"] for row in three.history_} == {0, 1, 2}


def test_with_all_labels_it_is_a_support_vector_machine() -> None:
    """No -1 in y: the decision values of scikit-learn's SVC with the same kernel and C."""
    y = np.where(X[:, 0] + 0.5 * RNG.normal(size=30) > 1.0, 1, 0)
    model, peer = SemiSupervisedSVM(RBF(1.0), C=2.0).fit(X, y), SVC(gamma=1.0, C=2.0, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), peer.decision_function(X), atol=1e-4)
    assert model.level_ == "global"


@pytest.mark.parametrize("solver", ["ao", "pdm", PDMRounds(degree=0.1), BranchAndBound(max_inner=50)])
def test_solvers_go_by_name_or_object(solver: Any) -> None:
    """Each returns labels, an objective above the bound, and says local unless it has proven them."""
    y = hidden(THREE[:20], 10)
    best = SemiSupervisedSVM(C=10.0, C2=5.0).fit(X[:20], y)
    found = SemiSupervisedSVM(C=10.0, C2=5.0, solver=solver).fit(X[:20], y)
    assert found.objective_ >= best.lower_bound_ - 1e-9
    assert found.lower_bound_ <= best.objective_ + 1e-9
    assert found.level_ == "local" or isinstance(solver, BranchAndBound)


def test_kernels_of_all_kinds_agree() -> None:
    """A name, an object, a function of CSR matrices and kernel values that are given lead to the same labels and values."""
    y, rows = hidden(THREE[:20]), X[:20]
    model = SemiSupervisedSVM(Polynomial(2)).fit(rows, y)
    for other in (
        SemiSupervisedSVM("polynomial").fit(sparse.csr_matrix(rows), y),
        SemiSupervisedSVM(lambda A, B: ((A @ B.T).toarray() + 1.0) ** 2).fit(rows, y),
    ):
        np.testing.assert_allclose(other.decision_function(X), model.decision_function(X), atol=1e-6)
    given = SemiSupervisedSVM("precomputed").fit((rows @ rows.T + 1.0) ** 2, y)
    np.testing.assert_allclose(given.decision_function((X @ rows.T + 1.0) ** 2), model.decision_function(X), atol=1e-6)


def test_it_warns_where_the_better_optimum_is_the_worse_classifier() -> None:
    """A narrow kernel and no balance: half of the labels that were found are wrong, at a lower objective, and folds of the
    labelled points say so; with the balance of the labelled points one in twenty is wrong, and nothing is said."""
    rng, y = np.random.default_rng(0), np.arange(120) % 2
    rows = (rng.normal(size=(120, 10)) + 0.7 * (2 * y - 1)[:, None]) / np.sqrt(10)
    given = np.where(np.arange(120) < 40, y, -1)
    free = SemiSupervisedSVM(RBF(4.0), 100.0, 1.0, balance=None, solver=PDM(max_inner=1500))
    with pytest.warns(StructpredWarning, match="a worse classifier: trained without .* errs on 20 of 40, .* alone on 7"):
        free.fit(rows, given)
    told = SemiSupervisedSVM(RBF(4.0), 100.0, 1.0, solver=PDM(max_inner=1500)).fit(rows, given)
    assert free.objective_ < 0.8 * told.objective_
    assert (free.transduction_ != y).mean() > 0.3 > 0.06 > (told.transduction_ != y).mean()


@pytest.mark.parametrize(("balance", "seconds"), [(0.25, 4), ({0: 0.75, 1: 0.25}, 4), (0.0, 0), ("labelled", 8)])
def test_the_balance_holds(balance: Any, seconds: int) -> None:
    """So many of the sixteen unlabelled points get the second class."""
    y = hidden(THREE[:20])
    found = SemiSupervisedSVM(balance=balance).fit(X[:20], y)
    assert (found.transduction_[y == -1] == 1).sum() == seconds


def test_landmarks_take_the_place_of_the_kernel_matrix() -> None:
    """With all points as landmarks the labels are those of the exact kernel, with a third of them too; rows are scored alike."""
    exact = SemiSupervisedSVM(RBF(0.5), C=10.0, C2=5.0).fit(X, hidden(THREE))
    for size in (30, 10):
        model = SemiSupervisedSVM(RBF(0.5), C=10.0, C2=5.0, n_components=size).fit(X, hidden(THREE))
        assert model.transduction_.tolist() == exact.transduction_.tolist()
        assert (model.predict(X) == exact.predict(X)).all()
        assert model.dual_coef_.shape == (3, size)
        assert model.objective_ >= model.lower_bound_


@pytest.mark.parametrize(("kernel", "size"), [("rbf", None), ("precomputed", None), ("rbf", 10)])
def test_a_file_holds_the_model(kernel: str, size: int | None, tmp_path: Path) -> None:
    """Loaded by its class or by `load` it predicts to the bit what it did, with the same proof, and can be fitted again."""
    rows, y = (X, hidden(THREE)) if kernel == "rbf" else (X @ X.T, hidden(THREE))
    model = SemiSupervisedSVM(kernel, solver=StagedSearch(max_inner=200), n_components=size).fit(rows, y)
    model.save(tmp_path / "m.spz")
    for read in (SemiSupervisedSVM.load(tmp_path / "m.spz"), load(tmp_path / "m.spz")):
        assert read.decision_function(rows).tobytes() == model.decision_function(rows).tobytes()
        assert (read.level_, read.objective_, read.history_) == (model.level_, model.objective_, model.history_)
        assert read.transduction_.tolist() == model.transduction_.tolist()
        assert clone(read).fit(rows, y).objective_ == model.objective_
    damaged = bytearray((tmp_path / "m.spz").read_bytes())
    damaged[len(damaged) // 2] ^= 1
    (tmp_path / "d.spz").write_bytes(damaged)
    with pytest.raises(ModelFileError):
        load(tmp_path / "d.spz")


def test_it_passes_the_checks_of_scikit_learn() -> None:
    """All of check_estimator but the one whose classes are -1 and 1: here -1 is no class."""
    reason = {"check_classifiers_classes": "-1 is the label of unlabelled points"}
    check_estimator(SemiSupervisedSVM(solver=StagedSearch(max_inner=100)), expected_failed_checks=reason, on_skip=None)


@pytest.mark.parametrize(
    ("settings", "y", "error", "words"),
    [
        ({}, [-1] * 6, DataError, "no labelled point"),
        ({}, [1, 1, -1, -1, -1, -1], DataError, r"one class only: \[1\]; -1 stands for .* call classes -1 and 1 .* 0 and 1"),
        ({}, [1, 1, -1, None, -1, 0], DataError, r"got None and -1, which both stand for an unlabelled point"),
        ({"balance": 1.5}, [0, 1, -1, -1, -1, -1], ParameterError, r"a share in \[0, 1\]"),
        ({"balance": {0: 0.9, 1: 0.9}}, [0, 1, -1, -1, -1, -1], ParameterError, "must sum to 1"),
        ({"balance": {0: 0.5, 7: 0.5}}, [0, 1, -1, -1, -1, -1], ParameterError, r"a share for each of \[0, 1\]"),
        ({"balance": 0.5}, [0, 1, 2, -1, -1, -1], ParameterError, "a table of shares"),
        ({"kernel": lambda A, B: -(A @ B.T).toarray()}, [0, 1, -1, -1, -1, -1], DataError, "not positive semidefinite"),
        ({"kernel": "precomputed"}, [0, 1, -1, -1, -1, -1], DataError, "expected a square matrix"),
        ({"kernel": "rfb"}, [0, 1, -1, -1, -1, -1], ParameterError, "did you mean 'rbf'"),
        ({"solver": "bnb"}, [0, 1, -1, -1, -1, -1], ParameterError, "solver: expected one of"),
        ({"n_components": 0}, [0, 1, -1, -1, -1, -1], ParameterError, "n_components must be a whole number >= 1"),
        ({"C2": -1.0}, [0, 1, -1, -1, -1, -1], ParameterError, "C2 must be a positive number"),
    ],
)
def test_what_cannot_be_fitted_is_refused(settings: Any, y: Any, error: Any, words: str) -> None:
    """Each kind of bad input has an error that names it."""
    with pytest.raises(error, match=words):
        SemiSupervisedSVM(**settings).fit(X[:6], y)


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("large", [1e160, 1e308])
@pytest.mark.parametrize("n_components", [None, 3])
@pytest.mark.parametrize("machine", [SemiSupervisedSVM, RobustSVM])
def test_values_that_cannot_be_squared_are_refused(machine: Any, n_components: int | None, large: float) -> None:
    """Where gamma follows the features' variance and that overflows, the error alone says so, and how large they are."""
    X = np.array([[0.0], [0.3], [0.6], [2.0], [2.3], [large]])
    with pytest.raises(DataError, match=r"variance of the features.*up to 1e\+.*scale the features"):
        machine(n_components=n_components).fit(X, [0, 0, 1, 0, 1, 1])
