"""Promises of kernels under label sets: a linear model of exact columns, predicted by the support, in files and explanations."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel
from sklearn.model_selection import cross_val_score
from sklearn.preprocessing import StandardScaler

from structpred.data.hierarchy import LabelHierarchy
from structpred.distributed import Shards, fit
from structpred.errors import DataError, ModelFileError, ParameterError
from structpred.export import export_predictor
from structpred.models import HierarchicalMultiLabel, MultiLabelMRF, load
from structpred.models.kernels.functions import RBF, Polynomial
from structpred.storage.bundles import Bundle, read_bundle, write_bundle

PARENTS = [-1, 0, 0]
QUICK: dict[str, Any] = {"max_iter": 30, "tol": 0.0, "random_state": 0}


def data(n: int = 40, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A ring inside another one, which no linear model tells apart, each row twice; labels closed under 0 -> 1, 2."""
    rng = np.random.default_rng(seed)
    X = np.repeat(rng.normal(size=(n // 2, 2)), 2, axis=0) * [1.0, 30.0] + [0.0, 5.0]
    radius = (X[:, 0] ** 2 + ((X[:, 1] - 5.0) / 30.0) ** 2) > 1.0
    return X, np.stack((radius, radius & (X[:, 0] > 0), radius & (X[:, 1] > 5)), axis=1).astype(int)


def similar(A: Any, B: Any) -> np.ndarray:
    """A kernel of one's own."""
    return rbf_kernel(A.toarray(), B.toarray(), 0.5)


def model_of(kind: str, **settings: Any) -> Any:
    """An estimator of either kind."""
    if kind == "hierarchy":
        return HierarchicalMultiLabel(hierarchy=PARENTS, **(QUICK | settings))
    return MultiLabelMRF(**(QUICK | settings))


KINDS = pytest.mark.parametrize("kind", ["sets", "hierarchy"])


@KINDS
@pytest.mark.parametrize("name", ["rbf", "polynomial"])
def test_the_columns_are_those_of_the_kernel(kind: str, name: str) -> None:
    """Their inner products are scikit-learn's kernel of standardised rows, between training rows and of new rows with these."""
    (X, Y), (T, _) = data(), data(seed=1)
    model = model_of(kind, kernel=name, n_components=1 - 1e-9).fit(X, Y)
    scaler = StandardScaler().fit(X)
    theirs = {"rbf": lambda a, b: rbf_kernel(a, b, 0.5), "polynomial": lambda a, b: polynomial_kernel(a, b, 2, 0.5, 1.0)}[name]
    A, B = scaler.transform(X), scaler.transform(T)
    phi, new = columns_of(model, X), columns_of(model, T)
    assert model.scale_ == "standard"
    assert len(model.support_) <= 20  # of rows that come twice one
    np.testing.assert_allclose(phi @ phi.T, theirs(A, A), atol=1e-4)
    np.testing.assert_allclose(new @ phi.T, theirs(B, A), atol=1e-4)


def columns_of(model: Any, X: Any) -> np.ndarray:
    """What rows become, without the constant."""
    field = model._field
    rows = field.features(sparse.csr_array(X), joined=False).nodes
    return sparse.csr_array((rows.values, rows.indices, rows.indptr)).toarray()[:, : field.n_columns]


@KINDS
def test_it_is_the_linear_model_of_the_columns(kind: str) -> None:
    """Objective, certificate and predictions are those of columns made outside, and rings are told apart."""
    (X, Y), (T, truth) = data(200), data(100, seed=1)
    inside = model_of(kind, kernel="rbf", C=10.0).fit(X, Y)
    columns = [columns_of(inside, rows) for rows in (X, T)]
    outside = model_of(kind, C=10.0, scale=None).fit(columns[0], Y)
    assert inside.certificate_.primal == pytest.approx(outside.certificate_.primal, rel=1e-6)
    assert (inside.predict(T) == outside.predict(columns[1])).all()
    assert inside.certificate_.gap >= 0.0
    assert (inside.predict(T) == truth).all(axis=1).mean() > 0.85


def test_a_share_of_the_trace_or_a_number_of_columns() -> None:
    """What is left of the trace is at most what was asked for, and would be more with one column less."""
    X, Y = data(200)
    for share in (0.5, 0.9, 0.99):
        model = MultiLabelMRF(kernel="rbf", n_components=share, max_iter=1).fit(X, Y)
        kept = (columns_of(model, X) ** 2).sum(axis=0)
        r = len(kept)
        assert kept[: r - 1].sum() < share * len(X) <= kept.sum() + 1e-3
    assert columns_of(MultiLabelMRF(kernel="rbf", n_components=7, max_iter=1).fit(X, Y), X).shape[1] == 7
    assert len(MultiLabelMRF(kernel="rbf", n_components=10_000, max_iter=1).fit(X, Y).support_) <= 100


@KINDS
def test_the_same_kernel_however_it_is_given(kind: str) -> None:
    """By name and number, as an object, as a function, and as a matrix of its values."""
    (X, Y), (T, _) = data(), data(seed=1)
    common: dict[str, Any] = {"n_components": 1 - 1e-6, "scale": "standard"}
    named = model_of(kind, kernel="rbf", gamma=0.5, **common).fit(X, Y)
    for kernel in (RBF(0.5), similar):
        other = model_of(kind, kernel=kernel, **common).fit(X, Y)
        np.testing.assert_allclose(other.predict_scores(T), named.predict_scores(T), atol=1e-3)
    scaler = StandardScaler().fit(X)
    K, new = (rbf_kernel(scaler.transform(rows), scaler.transform(X), 0.5) for rows in (X, T))
    given = model_of(kind, kernel="precomputed", n_components=1 - 1e-6).fit(K, Y)
    assert given.scale_ is None
    np.testing.assert_allclose(given.predict_scores(new), named.predict_scores(T), atol=1e-2)


@KINDS
@pytest.mark.parametrize("kernel", ["rbf", "precomputed", Polynomial(3), similar])
def test_files_hold_the_support(kind: str, kernel: Any, tmp_path: Path) -> None:
    """A model that was loaded gives the same bits; a function of one's own must be given again, and only that."""
    X, Y = data()
    rows = X @ X.T if kernel == "precomputed" else X
    model = model_of(kind, kernel=kernel, n_components=0.9).fit(rows, Y)
    model.save(tmp_path / "m.spz")
    if kernel is similar:
        with pytest.raises(ParameterError, match="kernel function similar"):
            load(tmp_path / "m.spz").predict(rows)
        again = type(model).load(tmp_path / "m.spz", kernel=similar)
    else:
        again = load(tmp_path / "m.spz")
        if isinstance(kernel, str):
            with pytest.raises(ParameterError, match="leave kernel= out"):
                type(model).load(tmp_path / "m.spz", kernel=similar)
    assert again.predict_scores(rows).tobytes() == model.predict_scores(rows).tobytes()
    assert again.get_params()["n_components"] == 0.9
    assert again.get_params()["gamma"] == "scale"
    assert (again.support_ == model.support_).all()
    again.fit(rows, Y)
    assert again.coef_.tobytes() == model.coef_.tobytes()


@pytest.mark.parametrize("bend", ["at", "indices", "values", "header"])
def test_a_bent_support_is_no_model_file(bend: str, tmp_path: Path) -> None:
    """Arrays of the support that do not fit each other raise ModelFileError when the file is loaded."""
    path = tmp_path / "m.spz"
    MultiLabelMRF(max_iter=1, kernel="rbf").fit(*data()).save(path)
    found = read_bundle(path, kind="model")
    arrays, header = dict(found.arrays), dict(found.header)
    if bend == "header":
        header["columns"] = None
    else:
        arrays[f"kernel.support.{bend}"] = arrays[f"kernel.support.{bend}"][:-1]
    write_bundle(path, Bundle(header, arrays), kind="model", format_version=found.format_version)
    with pytest.raises(ModelFileError):
        load(path)


@KINDS
@pytest.mark.parametrize("kernel", ["rbf", "polynomial"])
def test_explanations_speak_of_training_rows_and_add_up(kind: str, kernel: str) -> None:
    """The addends are kernel values with support rows times their weights; their sum is the score of the output."""
    (X, Y), (T, _) = data(), data(seed=1)
    model = model_of(kind, kernel=kernel, C=10.0).fit(X, Y)
    for x in T[::5]:
        why = model.explain(x)
        field = model._field
        inference = field.inference(field.read([x]))
        labels, _ = inference.decode(model.coef_)
        parts = inference.oracle.parts(np.asarray(labels[0] if np.ndim(labels[0]) else labels), inference.shapes[0])
        assert why.score == pytest.approx(inference.scores(model.coef_, 0)[parts].sum(), abs=1e-4)
        similarities = [c for c in why.contributions if c.feature.startswith("row ")]
        assert {int(c.feature[4:]) for c in similarities} <= set(model.support_.tolist())
        if kernel == "rbf":
            one, scaler = similarities[0], StandardScaler().fit(X)
            value = rbf_kernel(scaler.transform([x]), scaler.transform(X[[int(one.feature[4:])]]), 0.5)[0, 0]
            assert one.value == pytest.approx(value, abs=1e-5)
        contrast = model.explain(x, against="runner-up")
        assert contrast.score == pytest.approx(sum(c.score for c in contrast.contributions), abs=1e-9)
        assert contrast.score >= -1e-6


@pytest.mark.parametrize("trainer", [None, "oeg"])
@pytest.mark.parametrize("need", ["path", "node", "trees", "leaf", None])
def test_files_explanations_and_programs_under_every_rule(need: str | None, trainer: str | None, tmp_path: Path) -> None:
    """A file keeps rule and kernel; what a label's alternative loses is the label's score; no program is written."""
    X, Y = data()
    tree, rows = LabelHierarchy.from_parents([-1, 0, 0]), np.array([[1, 1, 0], [1, 0, 1]])[Y[:, 1]]
    model = HierarchicalMultiLabel(trainer, hierarchy=tree, require=need, kernel="rbf", max_iter=5, threshold="f1").fit(X, rows)
    model.save(tmp_path / "m.spz")
    again = load(tmp_path / "m.spz")
    assert (again.require_, again.kernel, again.threshold) == (need, "rbf", "f1")
    scores = model.predict_scores(X)
    assert again.predict_scores(X).tobytes() == scores.tobytes()
    assert (again.predict(X) == model.predict(X)).all()
    for x, own in zip(X[::8], scores[::8], strict=True):
        for label in ("1", "2"):
            why = again.explain(x, label=label)
            assert why.score == pytest.approx(abs(own[int(label)]), abs=1e-5)
            assert why.score == pytest.approx(sum(c.score for c in why.contributions), abs=1e-9)
    with pytest.raises(ParameterError, match="it has a kernel, which light programs do not have"):
        export_predictor(again, tmp_path / "program.py")
    assert not (tmp_path / "program.py").exists()


def test_the_strongest_rows_of_each_label() -> None:
    """top_features names training rows; the norm is that of the function."""
    X, Y = data()
    model = MultiLabelMRF(kernel="rbf", edges=[], **QUICK).fit(X, Y)
    first = model.top_features(5).labels[0]
    assert all(int(name.removeprefix("row ")) in model.support_ for name, _ in first.positive + first.negative)
    beta = np.array([dict(model.top_features(100).labels[0].positive + model.top_features(100).labels[0].negative)[f"row {i}"]
                     for i in model.support_])  # fmt: skip
    rows = StandardScaler().fit(X).transform(X)[model.support_]
    assert first.norm == pytest.approx(np.sqrt(beta @ rbf_kernel(rows, rows, 0.5) @ beta), rel=1e-3)


def test_missing_labels_held_out_data_and_the_log_loss() -> None:
    """What linear models can: labels that are missing, held-out data, probabilities."""
    (X, Y), dev = data(), data(seed=1)
    hidden = np.where(np.random.default_rng(0).random(Y.shape) < 0.3, -1, Y)
    assert MultiLabelMRF(kernel="rbf", max_iter=10).fit(X, hidden, dev=dev).score(*dev) > 0.5
    for trainer in ("lbfgs", None):
        model = MultiLabelMRF(trainer, kernel="rbf", surrogate="log", max_iter=20).fit(X, Y)
        p = model.predict_marginals(X)
        assert ((p >= 0) & (p <= 1)).all()
        assert model.probabilistic_


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kernel": "rbff"}, "kernel: .*did you mean 'rbf'"),
        ({"kernel": "rbf", "gamma": -1.0}, "gamma: expected 'scale', or a number > 0"),
        ({"kernel": RBF(1.0), "gamma": 2.0}, "given by name"),
        ({"kernel": "rbf", "n_components": 2.5}, "n_components: expected a share"),
        ({"kernel": "rbf", "n_components": 0}, "n_components: expected a share"),
        ({"kernel": "rbf", "signs": {"*": 1}}, "signs: a kernel has functions"),
    ],
)  # fmt: skip
def test_settings_that_do_not_fit(settings: dict[str, Any], message: str) -> None:
    """Each is refused with what was expected."""
    with pytest.raises(ParameterError, match=message):
        MultiLabelMRF(**settings).fit(*data())


def test_what_is_no_kernel_is_refused() -> None:
    """Matrices and functions that are not symmetric, positive semidefinite, square or finite."""
    X, Y = data()
    K = X @ X.T
    for matrix, message in (
        (K[:, :-1], "a column for each of the 40"),
        (-K, "positive semidefinite"),
        (K + np.arange(40), "symmetric"),
    ):
        with pytest.raises(DataError, match=message):
            MultiLabelMRF(kernel="precomputed").fit(matrix, Y)
    for function, message in ((lambda A, B: -similar(A, B), "semidefinite"), (lambda A, B: similar(A, B) * np.nan, "finite")):
        with pytest.raises(DataError, match=message):
            MultiLabelMRF(kernel=function).fit(X, Y)


def test_shards_and_programs_refuse_a_kernel(tmp_path: Path) -> None:
    """Shards do not have all rows; a light program has no kernels, and nothing is written."""
    X, Y = data()
    model = MultiLabelMRF(kernel="rbf", max_iter=2)
    with pytest.raises(ParameterError, match="kernel: training on shards does not take it"):
        fit(model, Shards.of_functions([lambda: (X, Y)]))
    with pytest.raises(ParameterError, match="it has a kernel, which light programs do not have"):
        export_predictor(model.fit(X, Y), tmp_path / "program.py")
    assert not list(tmp_path.iterdir())


def test_features_are_scaled_where_they_are_dense() -> None:
    """scale="auto": maxabs for weights of features, standard for a kernel, nothing where most entries are zero."""
    (X, Y), rng = data(), np.random.default_rng(0)
    thin = X * (rng.random(X.shape) < 0.4)
    for settings, rows, scale in (
        ({}, X, "maxabs"),
        ({"kernel": "rbf"}, X, "standard"),
        ({}, thin, None),
        ({"scale": None}, X, None),
    ):
        model = MultiLabelMRF(max_iter=2, **settings).fit(rows, Y)
        assert model.scale_ == scale
        same = MultiLabelMRF(max_iter=2, **(settings | {"scale": scale})).fit(rows, Y)
        assert model.coef_.tobytes() == same.coef_.tobytes()


def test_an_almost_constant_feature_is_left_as_it_is() -> None:
    """Rounding of a mean is no variance: 0.1 in every row stays a constant."""
    X, Y = data()
    model = MultiLabelMRF(max_iter=2, scale="standard").fit(np.column_stack((X, np.full(len(X), 0.1))), Y)
    assert model._field.scale.factor[2] == 1.0


def test_a_hierarchy_that_is_no_tree() -> None:
    """A directed graph of labels, whose inference is another one, takes kernels, too."""
    X, Y = data()
    graph = LabelHierarchy(3, [(0, 2), (1, 2)])
    model = HierarchicalMultiLabel(hierarchy=graph, kernel="rbf", max_iter=3).fit(X, graph.closed(Y))
    assert graph.broken(model.predict(X)) is None


@pytest.mark.parametrize("trainer", ["marginal_bcfw", "bcfw", "corrective"])
def test_resumed_runs_end_in_the_same_bits(trainer: str, tmp_path: Path) -> None:
    """A checkpoint after half of the passes leads where all passes lead; bounds never cross."""
    X, Y = data()
    common: dict[str, Any] = {"kernel": "rbf", "tol": 0.0, "random_state": 0}
    whole = MultiLabelMRF(trainer, max_iter=6, **common).fit(X, Y)
    MultiLabelMRF(trainer, max_iter=3, checkpoint=tmp_path / "c", **common).fit(X, Y)
    resumed = MultiLabelMRF(trainer, max_iter=6, checkpoint=tmp_path / "c", resume=True, **common).fit(X, Y)
    assert resumed.coef_.tobytes() == whole.coef_.tobytes()
    assert all(row["gap"] >= 0 for row in whole.history_ if row.get("gap") is not None)


def test_folds_of_a_precomputed_kernel() -> None:
    """scikit-learn cuts rows and columns of a matrix of kernel values: scores are those of the kernel by name."""
    X, Y = data(60)
    model = MultiLabelMRF(kernel="rbf", gamma=0.5, scale=None, n_components=1 - 1e-6, max_iter=10)
    given = MultiLabelMRF(kernel="precomputed", n_components=1 - 1e-6, max_iter=10)
    scaled = StandardScaler().fit_transform(X)
    named, computed = (
        cross_val_score(m, rows, Y, cv=3) for m, rows in ((model, scaled), (given, rbf_kernel(scaled, scaled, 0.5)))
    )
    np.testing.assert_allclose(named, computed, atol=0.1)
