"""Several kernels at once: learnt weights, means, landmarks, given matrices, files, and what is refused before training."""

import signal
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from estimator_contract.estimator_checks import check_sequence_estimator
from scipy import sparse

from structpred.errors import DataError, FileFormatError, ParameterError
from structpred.models import KernelChainLabeler, load
from structpred.models.kernels.expansion import KernelExpansion
from structpred.models.kernels.functions import RBF, Linear, Polynomial, listed_kernels
from structpred.runtime import memory
from structpred.trainers.online_mkl import OnlineMKL

RNG = np.random.default_rng(1)
X = [RNG.normal(size=(n, 2)).round(2) for n in (3, 1, 2, 4, 2)] * 2
Y = [["ab"[int(a * b > 0)] for a, b in x] for x in X]
NEW = [RNG.normal(size=(3, 2)), RNG.normal(size=(1, 2))]
KERNELS = ["linear", "quadratic", ("rbf", 5.0), ("b1spline", 0.3)]


def fitted(kernels: Any = KERNELS, **settings: Any) -> KernelChainLabeler:
    """A model after a few passes."""
    settings = {"C": 10.0, "max_iter": 8, "check_every": 8, **settings}
    return KernelChainLabeler(kernels=kernels, **settings).fit(X, Y)


def scores(model: Any, sequences: Any = NEW) -> np.ndarray:
    """The scores of the four best outputs of the first sequence."""
    return np.array([score for _, score in model.predict_kbest(sequences, 4)[0]])


def values(kernels: Any, sequences: Any) -> list[list[np.ndarray]]:
    """The values of each kernel with all training positions, sequence by sequence."""
    rows = sparse.csr_array(np.vstack(X))
    return [[kernel(sparse.csr_array(x), rows) for kernel in listed_kernels(kernels)] for x in sequences]


def test_which_kernels_matter() -> None:
    """The product of two numbers decides: the quadratic kernel gets more weight than the linear one; weights sum to one."""
    model = fitted(["linear", "quadratic"], max_iter=60)
    assert model.group_names_ == ["linear", "quadratic", "start and stop", "transitions"]
    assert model.group_weights_[1] > 2 * model.group_weights_[0]
    assert model.group_weights_.sum() == pytest.approx(1.0)
    assert model.score(X, Y) == 1.0


def test_scores_are_sums_over_the_support() -> None:
    """What a position adds is sum_k k(x, support of k) dual_coef_; positions without a coefficient are not kept."""
    model = fitted(["quadratic", ("rbf", 5.0)])
    assert model.dual_coef_.any(axis=1).all()
    ends = model.groups_[:3] // 8
    support = [sparse.csr_array(np.array([X[i][t] for i, t in model.support_[a:b]])) for a, b in pairwise(ends)]
    kernels = listed_kernels(["quadratic", ("rbf", 5.0)])
    rows = sparse.csr_array(NEW[0])
    adds = np.hstack([kernel(rows, own) for kernel, own in zip(kernels, support, strict=True)]) @ model.dual_coef_
    why = model.explain(NEW[0])
    codes = [model.classes_.tolist().index(label) for label in why.labels]
    emissions = sum(c.score for c in why.contributions if c.kind == "emission")
    assert emissions == pytest.approx(sum(adds[t, k] for t, k in enumerate(codes)), rel=1e-4)
    assert scores(model)[0] == pytest.approx(why.score, rel=1e-5)


def test_a_group_that_is_zero_is_not_kept() -> None:
    """A strong regulariser leaves few kernels, and files hold nothing of the others."""
    model = fitted(C=0.05, max_iter=30)
    gone = np.flatnonzero(model.group_weights_[:4] == 0.0)
    assert 0 < len(gone) < 4
    assert (np.diff(model.groups_)[gone] == 0).all()


def test_forms_of_a_kernel_agree() -> None:
    """Names, functions and given matrices, dense or sparse, give the same model."""

    def own(a: Any, b: Any) -> Any:
        return RBF(0.1)(a, b)

    named, called = fitted(["quadratic", ("rbf", 5.0)]), fitted([Polynomial(2, normalised=True), own])
    np.testing.assert_array_equal(scores(called), scores(named))
    given = [[sparse.csr_array(one), other] for one, other in values(["quadratic", ("rbf", 5.0)], X)]
    model = KernelChainLabeler(kernels=["precomputed"] * 2, C=10.0, max_iter=8).fit(given, Y)
    np.testing.assert_allclose(scores(model, values(["quadratic", ("rbf", 5.0)], NEW)), scores(named), atol=1e-5)


def test_a_certified_gap() -> None:
    """trainer="corrective" closes the gap of the objective that online_mkl minimises, and gives a model of the same form."""
    batch = fitted(trainer="corrective", max_iter=200, tol=0.01)
    assert batch.converged_
    online = fitted(max_iter=100)
    assert batch.certificate_.dual <= online.certificate_.primal
    assert batch.group_names_ == online.group_names_
    assert batch.score(X, Y) == 1.0


def test_the_mean_is_one_kernel() -> None:
    """combine="average" is the kernel that is the mean of all, under 1/2 |w|^2."""
    mean = fitted(combine="average")

    def own(a: Any, b: Any) -> Any:
        kernels = [kernel.fitted(sparse.csr_array(np.vstack(X))) for kernel in listed_kernels(["linear", "quadratic"])]
        return sum(kernel(a, b) for kernel in kernels) / 2

    mean, one = fitted(["linear", "quadratic"], combine="average"), fitted([own], trainer="proximal", regulariser="l2")
    np.testing.assert_allclose(scores(mean), scores(one), rtol=1e-6)
    assert mean.group_names_ == ["mean of linear, quadratic", "start and stop", "transitions"]


@pytest.mark.parametrize("trainer", ["online_mkl", "bcfw"])
def test_all_positions_as_landmarks_are_the_kernel(trainer: str) -> None:
    """With as many landmarks as distinct positions nothing is lost: the objective and the scores are those of the kernel."""
    kernel = "rbf" if trainer == "bcfw" else None
    kernels = None if kernel else ["quadratic", ("rbf", 5.0)]
    settings = {"trainer": trainer, "C": 10.0, "max_iter": 5, "random_state": 0, "check_every": 5, "tol": 0.0}
    named = {"kernel": kernel} if kernel else {"kernels": kernels}
    full, landmarks = (KernelChainLabeler(**named, n_components=m, **settings).fit(X, Y) for m in (None, 100))
    assert landmarks.certificate_.primal == pytest.approx(full.certificate_.primal, rel=1e-4)
    np.testing.assert_allclose(scores(landmarks), scores(full), rtol=1e-3, atol=1e-3)
    few = KernelChainLabeler(**named, n_components=4, **settings).fit(X, Y)
    assert len(np.unique(few.support_, axis=0)) <= 4


@pytest.mark.parametrize("trainer", ["online_mkl", pytest.param("corrective", marks=pytest.mark.slow)])
def test_explicit_features_beside_kernels(trainer: str, tmp_path: Path) -> None:
    """The model is the one with the linear kernel as a Gram matrix, its support are features, and files hold it."""
    settings: dict[str, Any] = {"trainer": trainer, "max_iter": 8 if trainer == "online_mkl" else 60, "tol": 1e-4}
    model, gram = fitted(["features", "quadratic"], **settings), fitted(["quadratic", "linear"], **settings)
    assert model.group_names_ == ["quadratic", "features", "start and stop", "transitions"]
    np.testing.assert_allclose(model.group_weights_, gram.group_weights_, atol=1e-3 if trainer == "corrective" else 1e-5)
    np.testing.assert_allclose(scores(model), scores(gram), rtol=1e-3 if trainer == "corrective" else 1e-5)
    assert model.support_[-2:].tolist() == [[-1, 0], [-1, 1]]
    assert model.input_.feature_names()[-1] == "features (1)"
    model.save(tmp_path / "m.spz")
    again = load(tmp_path / "m.spz")
    assert scores(again).tolist() == scores(model).tolist()
    assert again.kernels[-1] == Linear(normalised=True, explicit=True)
    assert again.fit(X, Y).coef_.tobytes() == model.coef_.tobytes()


@pytest.mark.parametrize("wrong", [[-2, 0], [-1, 2], [-1, -1], [0, -1]])
def test_files_name_features_that_are_there(wrong: list[int]) -> None:
    """A file whose support is neither a position nor a feature is refused; so are features without explicit ones."""
    part = fitted(["quadratic", "features"]).input_.to_bundle()
    KernelExpansion.from_bundle(part)
    part.arrays["support.at"][-1] = wrong
    with pytest.raises(FileFormatError, match=r"support\.at: expected a sample"):
        KernelExpansion.from_bundle(part)
    part = fitted(["quadratic"]).input_.to_bundle()
    part.arrays["support.at"][-1] = [-1, 0]
    with pytest.raises(FileFormatError, match=r"support\.at: expected a sample"):
        KernelExpansion.from_bundle(part)


def test_explicit_features_need_not_be_normalised() -> None:
    """Those of Linear(explicit=True) are the features as they are."""
    model, gram = fitted(["rbf", Linear(explicit=True)]), fitted(["rbf", Linear()])
    np.testing.assert_allclose(scores(model), scores(gram), rtol=1e-5)
    assert scores(model) != pytest.approx(scores(fitted(["rbf", "linear"])), rel=1e-2)


@pytest.mark.parametrize("settings", [{}, {"combine": "average"}, {"n_components": 5}], ids=str)
def test_files_give_the_same_bits(settings: dict[str, Any], tmp_path: Path) -> None:
    """A model that was read back has its kernels, groups and reports, gives the same scores, and can be fitted again."""
    model = fitted(**settings)
    model.save(tmp_path / "m.spz")
    again = load(tmp_path / "m.spz")
    assert scores(again).tolist() == scores(model).tolist()
    assert (again.combine, again.n_components) == (model.combine, model.n_components)
    assert again.group_weights_.tolist() == model.group_weights_.tolist()
    assert again.group_names_ == model.group_names_
    assert again.fit(X, Y).certificate_ == model.certificate_


def own(a: Any, b: Any) -> Any:
    """A kernel function of a user's."""
    return (a @ b.T).toarray()


def test_functions_are_given_again(tmp_path: Path) -> None:
    """A file names a function; load takes one for each that is missing."""
    model = fitted(["quadratic", own])
    model.save(tmp_path / "own.spz")
    with pytest.raises(ParameterError, match="kernel function own: give load"):
        load(tmp_path / "own.spz").predict(NEW)
    with pytest.raises(ParameterError, match="needs 1 kernel functions, got 2"):
        KernelChainLabeler.load(tmp_path / "own.spz", kernel=[own, own])
    assert scores(KernelChainLabeler.load(tmp_path / "own.spz", kernel=own)).tolist() == scores(model).tolist()


def test_held_out_data_and_resumed_runs(tmp_path: Path) -> None:
    """Held-out scores while training are those of prediction; a run that was stopped and resumed gives the same model."""
    model = fitted(check_every=1, tol=0.0)
    seen = KernelChainLabeler(kernels=KERNELS, C=10.0, max_iter=8, tol=0.0).fit(X, Y, dev=(X, Y))
    assert max(row["dev_score"] for row in seen.history_) == pytest.approx(seen.score(X, Y))
    fitted(max_iter=3, tol=0.0, checkpoint=tmp_path / "c")
    again = fitted(tol=0.0, checkpoint=tmp_path / "c", resume=True)
    assert again.coef_.tobytes() == model.coef_.tobytes()


def not_definite(a: Any, b: Any) -> Any:
    """Minus the linear kernel."""
    return -(a @ b.T).toarray()


def not_symmetric(a: Any, b: Any) -> Any:
    """One row decides."""
    return np.add.outer(np.asarray(a.sum(axis=1)).ravel(), np.zeros(b.shape[0]))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kernels": "rbf"}, "expected a list such as"),
        ({"kernels": []}, "expected a list such as"),
        ({"kernels": [("rbf", -1.0)]}, "sigma\\^2"),
        ({"kernels": [("linear", 3)]}, "has no such parameter"),
        ({"kernels": ["rbff"]}, "did you mean 'rbf'"),
        ({"kernels": ["rbf", "precomputed"]}, "either all are 'precomputed', or none"),
        ({"kernels": ["features"]}, "one group beside at least one kernel"),
        ({"kernels": ["rbf", "features", Linear(explicit=True)]}, "one group beside at least one kernel"),
        ({"kernels": ["rbf", "features"], "combine": "average"}, "with combine='mkl'"),
        ({"kernels": ["rbf", "features"], "n_components": 3}, "without n_components"),
        ({"kernels": ["rbf"], "combine": "sum"}, "combine: expected 'mkl' or 'average', got 'sum'"),
        ({"kernels": ["rbf"], "n_components": 0}, "n_components must be a whole number >= 1"),
        ({"kernels": ["rbf"], "trainer": "bcfw"}, "any other trainer takes coordinates by landmarks"),
        ({"kernels": ["rbf"], "regulariser": "l1"}, "a kernel knows norms of functions"),
    ],
)
def test_bad_settings_are_refused(settings: dict[str, Any], message: str) -> None:
    """The error says what was expected."""
    with pytest.raises(ParameterError, match=message):
        KernelChainLabeler(**settings).fit(X, Y)


@pytest.mark.parametrize(
    ("kernel", "message"),
    [(not_definite, "not positive semidefinite.*eigenvalue -"), (not_symmetric, "not symmetric")],
)
def test_what_is_no_kernel_is_refused(kernel: Any, message: str) -> None:
    """A function whose matrix is not symmetric, or has a negative eigenvalue, is refused by name before training."""
    with pytest.raises(DataError, match=f"kernel {kernel.__name__} .*{message}"):
        fitted(["linear", kernel])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda x: [x[0][:, :-1], *x[1:]], "sample 1, kernel 0: expected a column per training position"),
        (lambda x: x[:1], "sample 1: expected a list of 2 arrays of kernel values"),
        (lambda x: [x[0], x[1][:-1]], "sample 1: the kernels have different numbers of positions"),
        (lambda x: [x[0], x[1] * np.inf], "its values must be finite"),
    ],
)
def test_given_matrices_must_fit(change: Any, message: str) -> None:
    """Gram matrices of the wrong size are refused; the sample and the kernel are named."""
    given = values(["linear", "quadratic"], X)
    given[1] = change(given[1])
    with pytest.raises(DataError, match=message):
        KernelChainLabeler(kernels=["precomputed"] * 2).fit(given, Y)
    whole = values(["linear", "quadratic"], X)
    with pytest.raises(DataError, match=r"a column for each of the 24 positions, got the shapes \[\(24, 25\)\]"):
        KernelChainLabeler(kernels=["precomputed"]).fit([[np.pad(x[0], ((0, 0), (0, 1)))] for x in whole], Y)


def test_memory_is_asked_for_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the Gram matrices do not fit, their size is said, and landmarks are offered; no kernel is called."""
    monkeypatch.setattr(memory, "available_bytes", lambda: 80 << 20)
    many = [np.arange(6000.0).reshape(-1, 1) / 6000]
    with pytest.raises(DataError, match=r"2 Gram matrices of 6,000 positions would need 0.3 GiB.*n_components"):
        KernelChainLabeler(kernels=[pytest.fail, pytest.fail]).fit(many, [[0] * 6000])


@pytest.mark.usefixtures("hears_interrupts")
def test_ctrl_c_in_the_first_pass_keeps_what_was_learnt(monkeypatch: pytest.MonkeyPatch) -> None:
    """There are no weights of groups yet; the model predicts all the same."""
    update = OnlineMKL.update

    def pressed(trainer: OnlineMKL, problem: Any, state: Any, item: int) -> Any:
        signal.raise_signal(signal.SIGINT)
        monkeypatch.setattr(OnlineMKL, "update", update)
        return update(trainer, problem, state, item)

    monkeypatch.setattr(OnlineMKL, "update", pressed)
    monkeypatch.setattr("structpred.trainers.loop.try_step", lambda problem, trainer: None)
    model = KernelChainLabeler("online_mkl", kernels=["linear", "rbf"], max_iter=3)
    rows = [np.eye(3), np.eye(3)[:2]]
    with pytest.raises(KeyboardInterrupt):
        model.fit(rows, [["a", "b", "a"], ["a", "b"]])
    assert model.stop_reason_ == "interrupted"
    assert not hasattr(model, "group_weights_")
    assert [len(labels) for labels in model.predict(rows)] == [3, 2]


def test_pieces_are_refused() -> None:
    """Every position must be known: there is no training on pieces."""
    with pytest.raises(ParameterError, match="use fit, not pieces"):
        KernelChainLabeler(kernels=["rbf"]).partial_fit(X, Y)


@pytest.mark.slow
def test_it_passes_the_checks_of_estimators() -> None:
    """The promises of estimators of sequences hold, as for ChainLabeler."""
    report = check_sequence_estimator(KernelChainLabeler(kernels=["linear", ("rbf", 5.0)], C=10.0, max_iter=10))
    assert len(report.named("passed")) >= 25, str(report)


@pytest.mark.parametrize("settings", [{}, {"n_components": 6, "trainer": "proximal"}], ids=["functions", "landmarks"])
def test_norms_of_groups_are_those_of_functions(settings: dict[str, Any], tmp_path: Path) -> None:
    """d' K d of a kernel's coefficients d: also in a file; 0 where the kernel was taken out; small groups are small by them."""
    kernels = ["quadratic", ("rbf", 5.0)]
    model = fitted(kernels, regulariser="mkl", **settings)
    squares = []
    for k, (a, b) in enumerate(pairwise(model.groups_[:3] // 8)):
        support = sparse.csr_array(np.array([X[i][t] for i, t in model.support_[a:b]]))
        d = model.dual_coef_[a:b]
        squares.append(np.sum(d * (listed_kernels(kernels)[k](support, support) @ d)))
    np.testing.assert_allclose(model.group_norms_[:2], np.sqrt(squares), rtol=1e-5)
    shares = model.group_norms_ / model.group_norms_.sum()
    assert ((shares <= 1e-3) == (model.report_["small_groups"] > 0)).all()
    model.save(tmp_path / "m.spz")
    assert load(tmp_path / "m.spz").group_norms_.tolist() == model.group_norms_.tolist()
    smaller = model.without_groups(["rbf"])
    assert smaller.group_norms_[1] == 0.0
    assert smaller.group_norms_[0] == model.group_norms_[0]


@pytest.mark.parametrize("settings", [{"kernel": own}, {"kernels": ["linear", own], "combine": "average"}])
def test_functions_with_landmarks_are_given_again(tmp_path: Path, settings: dict[str, Any]) -> None:
    """The same where landmarks take the place of a Gram matrix, of one kernel and of the mean of several."""
    model = KernelChainLabeler(n_components=4, max_iter=5, **settings).fit(X, Y)
    model.save(tmp_path / "own.spz")
    again = KernelChainLabeler.load(tmp_path / "own.spz", kernel=own)
    assert scores(again).tolist() == scores(model).tolist()
    assert own in (again.kernel, *(again.kernels or ()))
