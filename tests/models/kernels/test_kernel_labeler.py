"""Maximum-margin labelling with a kernel: the problem it solves, prediction, files, and what it refuses."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from estimator_contract.estimator_checks import check_sequence_estimator
from scipy import sparse

from structpred.errors import DataError, ModelFileError, ParameterError
from structpred.models import ChainLabeler, KernelChainLabeler, load
from structpred.models.kernels.functions import RBF, Polynomial
from structpred.storage.bundles import read_bundle, write_bundle

RNG = np.random.default_rng(1)
X = [RNG.normal(size=(n, 2)).round(2) for n in (3, 1, 2, 4, 2)]
Y = [["ab"[int(a * b > 0)] for a, b in x] for x in X]
NEW = [RNG.normal(size=(3, 2)), RNG.normal(size=(1, 2))]


def scores(model: ChainLabeler, sequences: Any) -> np.ndarray:
    """The scores of the four best outputs of the first sequence."""
    return np.array([score for _, score in model.predict_kbest(sequences, 4)[0]])


def rows_of(sequences: Any) -> list[np.ndarray]:
    """Each sequence as values of RBF(0.5) with all training positions."""
    kernel, all_rows = RBF(0.5), sparse.csr_array(np.vstack(X))
    return [kernel(sparse.csr_array(x), all_rows) for x in sequences]


@pytest.mark.parametrize("trainer", ["bcfw", "oeg"])
def test_the_linear_kernel_is_the_linear_model(trainer: str) -> None:
    """With the linear kernel every step is that of ChainLabeler: the same bounds after each pass, and the same scores."""
    settings: dict[str, Any] = {"trainer": trainer, "max_iter": 6, "tol": 0.0, "check_every": 1, "random_state": 3}
    settings["C"] = 1.0
    plain, kernel = ChainLabeler(fit_intercept=False, **settings), KernelChainLabeler(kernel="linear", **settings)
    plain.fit(X, Y), kernel.fit(X, Y)
    for a, b in zip(plain.history_, kernel.history_, strict=True):
        assert (b["primal"], b["dual"]) == pytest.approx((a["primal"], a["dual"]), rel=2e-5)
    assert np.allclose(scores(plain, NEW), scores(kernel, NEW), atol=2e-5)


def test_forms_of_a_kernel_agree() -> None:
    """A name with settings, a function, and precomputed values of the same kernel give the same model."""

    def own(a: Any, b: Any) -> Any:
        return RBF(0.5)(a, b)

    settings: dict[str, Any] = {"max_iter": 5, "random_state": 0}
    wanted = scores(KernelChainLabeler(kernel=RBF(0.5), **settings).fit(X, Y), NEW)
    function = KernelChainLabeler(kernel=own, **settings).fit(X, Y)
    given = KernelChainLabeler(kernel="precomputed", **settings).fit(rows_of(X), Y)
    assert np.allclose(scores(function, NEW), wanted, rtol=1e-12)
    assert np.allclose(scores(given, rows_of(NEW)), wanted, atol=1e-4)
    assert given.support_.tolist() == function.support_.tolist()


def test_scores_are_sums_over_the_support() -> None:
    """A position adds k(x, support) dual_coef_ to the scores of its labels: as explained in the coordinates of training."""
    model = KernelChainLabeler(kernel=Polynomial(2), max_iter=5).fit(X, Y)
    support = sparse.csr_array(np.array([X[i][t] for i, t in model.support_]))
    adds = Polynomial(2)(sparse.csr_array(NEW[0]), support) @ model.dual_coef_
    why = model.explain(NEW[0])
    codes = [model.classes_.tolist().index(label) for label in why.labels]
    emissions = sum(c.score for c in why.contributions if c.kind == "emission")
    assert emissions == pytest.approx(sum(adds[t, k] for t, k in enumerate(codes)), rel=1e-5)
    assert scores(model, NEW)[0] == pytest.approx(why.score, rel=1e-5)


def test_held_out_data_and_pieces() -> None:
    """Scores on held-out data while training are those of prediction; partial_fit takes the first batch as its support."""
    model = KernelChainLabeler(max_iter=3, check_every=1, tol=0.0).fit(X, Y, dev=(X, Y))
    assert model.history_[-1]["dev_score"] == pytest.approx(KernelChainLabeler(max_iter=3, tol=0.0).fit(X, Y).score(X, Y))
    pieces = KernelChainLabeler("perceptron").partial_fit(X[:3], Y[:3]).partial_fit(X[3:], Y[3:])
    assert pieces.support_[:, 0].max() == 2
    assert pieces.n_iter_ == 2


@pytest.mark.parametrize("kernel", ["linear", Polynomial(3, 0.5), "rbf", RBF(0.5)], ids=str)
def test_files_give_the_same_bits(kernel: Any, tmp_path: Path) -> None:
    """A model that was read back has its kernel and gives the same scores, bit for bit."""
    model = KernelChainLabeler(kernel=kernel, max_iter=2).fit(X, Y)
    model.save(tmp_path / "m.spz")
    again = load(tmp_path / "m.spz")
    assert again.kernel == kernel
    assert scores(again, NEW).tolist() == scores(model, NEW).tolist()
    assert again.fit(X, Y).certificate_ == model.certificate_


def test_files_of_given_kernels(tmp_path: Path) -> None:
    """A precomputed kernel is read back; a function must be given again, and only where it is one."""
    given = KernelChainLabeler(kernel="precomputed", max_iter=2).fit(rows_of(X), Y)
    given.save(tmp_path / "given.spz")
    assert scores(load(tmp_path / "given.spz"), rows_of(NEW)).tolist() == scores(given, rows_of(NEW)).tolist()
    with pytest.raises(ParameterError, match="holds its kernel, 'precomputed'; leave kernel= out"):
        KernelChainLabeler.load(tmp_path / "given.spz", kernel=rows_of)

    def own(a: Any, b: Any) -> Any:
        return (a @ b.T).toarray()

    model = KernelChainLabeler(kernel=own, max_iter=2).fit(X, Y)
    model.save(tmp_path / "own.spz")
    with pytest.raises(ParameterError, match=r"kernel function own: give load\(path, kernel=...\)"):
        load(tmp_path / "own.spz").predict(NEW)
    load(tmp_path / "own.spz").save(tmp_path / "again.spz")
    with pytest.raises(ParameterError, match="kernel function own: give load"):
        load(tmp_path / "again.spz").predict(NEW)
    assert scores(KernelChainLabeler.load(tmp_path / "again.spz", kernel=own), NEW).tolist() == scores(model, NEW).tolist()


def test_a_bent_support_is_refused(tmp_path: Path) -> None:
    """Support rows that could not have come from training are an error of ours, at the latest when L is needed."""
    model = KernelChainLabeler(kernel="linear", max_iter=2).fit(X, Y)
    model.save(tmp_path / "m.spz")
    bundle = read_bundle(tmp_path / "m.spz", kind="model")
    bundle.arrays["input.support.values"][:] = 0.0
    write_bundle(tmp_path / "m.spz", bundle, kind="model")
    with pytest.raises(DataError, match="no support of its kernel; was its file altered"):
        load(tmp_path / "m.spz").predict(NEW)
    bundle.arrays["input.support.indptr"][:] = 0
    write_bundle(tmp_path / "m.spz", bundle, kind="model")
    with pytest.raises(ModelFileError, match="contents are inconsistent"):
        load(tmp_path / "m.spz")


def test_bad_input_is_refused() -> None:
    """Precomputed rows of the wrong number, other regularisers than 1/2 |w|^2, and kernel values that overflow."""
    with pytest.raises(DataError, match="precomputed kernel: expected a column for each of the 12 positions, got 2 columns"):
        KernelChainLabeler(kernel="precomputed").fit(X, Y)
    with pytest.raises(ParameterError, match=r"a kernel knows norms of functions, not single weights.*'l1'"):
        KernelChainLabeler(regulariser="l1").fit(X, Y)
    with pytest.raises(DataError, match="must be finite; are features scaled"):
        KernelChainLabeler(kernel=Polynomial(40)).fit([x * 1e9 for x in X], Y)
    model = KernelChainLabeler(kernel=Polynomial(40), max_iter=1).fit(X, Y)
    with pytest.raises(DataError, match="sample 1, position 0: the kernel gives values that are not finite"):
        model.predict([NEW[0], np.array([[1e9, 1e9]])])


@pytest.mark.slow
@pytest.mark.parametrize("trainer", ["bcfw", "one_slack", "n_slack", "pragam"])
def test_the_dual_over_clique_marginals(trainer: str) -> None:
    """The certificate encloses the optimum of the M3N dual in kernel form, over clique marginals, as cvxpy finds it."""
    import cvxpy as cp

    kernel, C = RBF(0.5), 2.0
    gram = kernel(*[sparse.csr_array(np.vstack(X))] * 2)
    codes = [np.array(["ab".index(label) for label in labels]) for labels in Y]
    emissions, transitions, ends, cost, rules = [], 0, 0, 0, []
    for own in codes:
        n, gold = len(own), np.eye(2)[own]
        nodes = cp.Variable((n, 2), nonneg=True)
        rules += [cp.sum(nodes[0]) == 1]
        emissions.append(gold - nodes)
        ends = ends + cp.hstack((gold[0] - nodes[0], gold[-1] - nodes[-1]))
        cost = cost + cp.sum(cp.multiply(1 - gold, nodes))
        for t in range(n - 1):
            edge = cp.Variable((2, 2), nonneg=True)
            rules += [cp.sum(edge, axis=1) == nodes[t], cp.sum(edge, axis=0) == nodes[t + 1]]
            transitions = transitions + np.outer(gold[t], gold[t + 1]) - edge
    root = np.linalg.cholesky(gram + 1e-12 * np.eye(len(gram)))
    square = cp.sum_squares(root.T @ cp.vstack(emissions)) + cp.sum_squares(transitions) + cp.sum_squares(ends)
    optimum = cp.Problem(cp.Maximize(cost - C / 2 * square), rules).solve(solver="CLARABEL") / len(X)

    model = KernelChainLabeler(trainer, C, 3000, 1e-3, kernel=kernel).fit(X, Y)
    found = model.certificate_
    assert found.dual <= optimum + 1e-6
    assert optimum - 1e-6 <= found.primal
    assert found.relative_gap <= 1e-3


@pytest.mark.slow
def test_it_passes_the_checks_of_estimators() -> None:
    """The promises of estimators of sequences hold, as for ChainLabeler."""
    report = check_sequence_estimator(KernelChainLabeler(max_iter=5))
    assert len(report.named("passed")) >= 30, str(report)
