"""Promises of kernels under graphs: a linear model of exact columns, predicted by the support, in files and explanations."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import StandardScaler

from structpred.distributed import Shards, fit
from structpred.errors import ParameterError
from structpred.export import export_predictor
from structpred.models import GraphLabeler, load
from structpred.models.fields.graph import GraphSharding
from structpred.models.kernels.functions import RBF
from structpred.oracles.mrf_enumeration import EnumerationMRF

QUICK: dict[str, Any] = {"trainer": "bcfw", "max_iter": 20, "tol": 0.0, "random_state": 0}
EDGES = np.array([(0, 1), (1, 2), (3, 2), (0, 3)])


def data(n: int = 15, seed: int = 0, *, edge_features: bool = True) -> tuple[list[Any], list[np.ndarray]]:
    """Rings of four nodes inside or outside of a circle, which no linear model tells apart; an edge knows whether ends differ."""
    rng = np.random.default_rng(seed)
    X: list[Any] = []
    y = []
    for _ in range(n):
        rows = rng.normal(size=(4, 2))
        outside = (rows**2).sum(axis=1) > 1.4
        unlike = (outside[EDGES[:, 0]] != outside[EDGES[:, 1]]) + rng.normal(0, 0.8, 4)
        X.append((rows * [1.0, 30.0] + [0.0, 5.0], EDGES, unlike[:, None])[: 2 + edge_features])
        y.append(np.where(outside, "out", "in"))
    return X, y


def similar(A: Any, B: Any) -> np.ndarray:
    """A kernel of one's own."""
    return rbf_kernel(A.toarray(), B.toarray(), 0.5)


def field_of(model: GraphLabeler, X: list[Any], y: list[np.ndarray]) -> Any:
    """The field that `fit` makes of these data."""
    sharding = GraphSharding()
    plan = sharding.plan(model, [sharding.scan(model, X, y)], None)
    return replace(plan.field, oracle=plan.oracle)


def columns_of(field: Any, X: list[Any]) -> np.ndarray:
    """What the rows of all nodes become, without the constant."""
    rows = field.inference(field.read(X)).features.nodes
    return sparse.csr_array((rows.values, rows.indices, rows.indptr)).toarray()[:, : field.n_columns]


def test_the_columns_are_those_of_the_kernel() -> None:
    """Their inner products are scikit-learn's kernel of standardised rows; the support names graph and node."""
    (X, y), (T, _) = data(), data(seed=1)
    model = GraphLabeler(kernel="rbf", gamma=0.5, n_components=1 - 1e-9, **QUICK).fit(X, y)
    rows, new = (np.concatenate([x[0] for x in some]) for some in (X, T))
    scaler = StandardScaler().fit(rows)
    field = field_of(model, X, y)
    A, B, phi = scaler.transform(rows), scaler.transform(new), columns_of(field, X)
    assert model.scale_ == "standard"
    np.testing.assert_allclose(phi @ phi.T, rbf_kernel(A, A, 0.5), atol=1e-4)
    np.testing.assert_allclose(columns_of(field, T) @ phi.T, rbf_kernel(B, A, 0.5), atol=1e-4)
    kept = np.array([X[i][0][v] for i, v in model.support_])
    np.testing.assert_allclose(field.columns.kept.rows.toarray(), scaler.transform(kept), atol=1e-6)


@pytest.mark.parametrize("edge_features", [False, True])
def test_it_is_the_linear_model_of_the_columns(edge_features: bool) -> None:
    """Objective and predictions are those of columns made outside; rings are told apart better than without a kernel."""
    (X, y), (T, truth) = data(60, edge_features=edge_features), data(60, seed=1, edge_features=edge_features)
    inside = GraphLabeler(kernel="rbf", C=10.0, **QUICK).fit(X, y)
    sides = [np.split(columns_of(field_of(inside, X, y), some), len(some)) for some in (X, T)]
    A, B = ([(rows, *x[1:]) for rows, x in zip(side, some, strict=True)] for side, some in zip(sides, (X, T), strict=True))
    outside = GraphLabeler(C=10.0, **QUICK).fit(A, y)
    assert inside.certificate_.primal == pytest.approx(outside.certificate_.primal, rel=1e-6)
    assert inside.certificate_.gap >= 0.0
    assert all((a == b).all() for a, b in zip(inside.predict(T), outside.predict(B), strict=True))
    assert inside.score(T, truth) > 0.9 > GraphLabeler(C=10.0, **QUICK).fit(X, y).score(T, truth)


def test_the_same_kernel_however_it_is_given() -> None:
    """By name and number, as an object, as a function, and as a matrix of its values."""
    (X, y), (T, truth) = data(), data(seed=1)
    common: dict[str, Any] = {"n_components": 1 - 1e-6, "C": 10.0, **QUICK}
    named = GraphLabeler(kernel="rbf", gamma=0.5, scale="standard", **common).fit(X, y)
    for kernel in (RBF(0.5), similar):
        assert GraphLabeler(kernel=kernel, scale="standard", **common).fit(X, y).score(T, truth) == named.score(T, truth)
    rows, new = (np.concatenate([x[0] for x in some]) for some in (X, T))
    scaler = StandardScaler().fit(rows)
    values = [rbf_kernel(scaler.transform(some), scaler.transform(rows), 0.5) for some in (rows, new)]
    K, L = ([(k, *x[1:]) for k, x in zip(np.split(v, len(X)), some, strict=True)] for v, some in zip(values, (X, T), strict=True))
    given = GraphLabeler(kernel="precomputed", **common).fit(K, y)
    assert given.scale_ is None
    assert given.certificate_.primal == pytest.approx(named.certificate_.primal, rel=1e-3)
    assert abs(given.score(L, truth) - named.score(T, truth)) <= 0.05


@pytest.mark.parametrize("kernel", ["rbf", "polynomial", similar])
def test_files_hold_the_support(kernel: Any, tmp_path: Path) -> None:
    """A model that was loaded predicts and explains the same; a function of one's own must be given again, and only that."""
    X, y = data()
    model = GraphLabeler(kernel=kernel, n_components=0.9, **QUICK).fit(X, y)
    model.save(tmp_path / "m.spz")
    if kernel is similar:
        with pytest.raises(ParameterError, match="kernel function similar"):
            load(tmp_path / "m.spz").predict(X)
        again = GraphLabeler.load(tmp_path / "m.spz", kernel=similar)
    else:
        again = load(tmp_path / "m.spz")
        with pytest.raises(ParameterError, match="leave kernel= out"):
            GraphLabeler.load(tmp_path / "m.spz", kernel=similar)
    assert [labels.tolist() for labels in again.predict(X)] == [labels.tolist() for labels in model.predict(X)]
    assert again.explain(X[0]) == model.explain(X[0])
    assert (again.support_ == model.support_).all()
    assert (again.scale_, again.get_params()["n_components"]) == ("standard", 0.9)
    assert again.fit(X, y).coef_.tobytes() == model.coef_.tobytes()


def test_explanations_speak_of_training_nodes_and_add_up() -> None:
    """The addends are kernel values with support nodes times their weights; their sum is the score of the output."""
    (X, y), (T, _) = data(), data(seed=1)
    model = GraphLabeler(kernel="rbf", C=10.0, oracle=EnumerationMRF(), **QUICK).fit(X, y)
    support, field = {f"node {v} of graph {i}" for i, v in model.support_.tolist()}, field_of(model, X, y)
    for x in T[:4]:
        why, inference = model.explain(x), field.inference(field.read([x]))
        best = model.oracle_.argmax(theta := inference.scores(model.coef_, 0), inference.shapes[0])
        assert why.score == pytest.approx(theta[model.oracle_.parts(best, inference.shapes[0])].sum(), abs=1e-4)
        assert {c.feature for c in why.contributions if c.kind == "node"} <= support | {"bias"}
        contrast = model.explain(x, node=1)
        assert contrast.score == pytest.approx(sum(c.score for c in contrast.contributions), abs=1e-9)
        assert contrast.score >= -1e-6
    shown = model.top_features(5)
    assert any(name.split(" -> ")[0] in support for name, _ in shown.positive + shown.negative)


def test_shards_programs_and_signs_refuse_a_kernel(tmp_path: Path) -> None:
    """Shards do not have all nodes; light programs have no graphs; functions have no signs."""
    X, y = data()
    with pytest.raises(ParameterError, match="kernel: training on shards does not take it"):
        fit(GraphLabeler(kernel="rbf"), Shards.of_functions([lambda: (X, y)]))
    with pytest.raises(ParameterError, match="GraphLabeler cannot be exported"):
        export_predictor(GraphLabeler(kernel="rbf", max_iter=1).fit(X, y), tmp_path / "program.py")
    with pytest.raises(ParameterError, match="signs: a kernel has functions"):
        GraphLabeler(kernel="rbf", signs={"*": 1}).fit(X, y)
    with pytest.raises(ParameterError, match="n_components: expected a share"):
        GraphLabeler(kernel="rbf", n_components=0).fit(X, y)


@pytest.mark.parametrize("scale", ["standard", "maxabs"])
def test_node_features_are_scaled_where_that_is_asked(scale: str, tmp_path: Path) -> None:
    """scale= without a kernel is the model of rows scaled outside, on any cut of the data and in files; "auto" leaves them."""
    X, y = data()
    rows = np.concatenate([x[0] for x in X])
    shift, size = (rows.mean(axis=0), rows.std(axis=0)) if scale == "standard" else (0.0, np.abs(rows).max(axis=0))
    scaled = [((x[0] - shift) / size, *x[1:]) for x in X]
    inside, outside = GraphLabeler(scale=scale, **QUICK).fit(X, y), GraphLabeler(**QUICK).fit(scaled, y)
    assert (inside.scale_, outside.scale_) == (scale, None)
    np.testing.assert_allclose(inside.coef_, outside.coef_, rtol=1e-6, atol=1e-9)
    inside.save(tmp_path / "m.spz")
    assert [p.tolist() for p in load(tmp_path / "m.spz").predict(X)] == [p.tolist() for p in outside.predict(scaled)]
    sharding = GraphSharding()
    halves = [sharding.scan(inside, X[part], y[part]) for part in (slice(7), slice(7, None))]
    for ours, whole in zip(sharding.plan(inside, halves, None).field.scale, field_of(inside, X, y).scale, strict=True):
        assert whole is None if ours is None else ours == pytest.approx(whole)


@pytest.mark.parametrize("trainer", ["bcfw", "corrective"])
def test_resumed_runs_end_in_the_same_bits(trainer: str, tmp_path: Path) -> None:
    """A checkpoint after half of the passes leads where all passes lead."""
    X, y = data()
    common: dict[str, Any] = {"kernel": "rbf", "tol": 0.0, "random_state": 0}
    whole = GraphLabeler(trainer, max_iter=6, **common).fit(X, y)
    GraphLabeler(trainer, max_iter=3, checkpoint=tmp_path / "c", **common).fit(X, y)
    resumed = GraphLabeler(trainer, max_iter=6, checkpoint=tmp_path / "c", resume=True, **common).fit(X, y)
    assert resumed.coef_.tobytes() == whole.coef_.tobytes()
