"""Sets of labels on shards: the problems of the shards add up to the one of all data."""

from typing import Any

import numpy as np
import pytest
from shard_sums import check_same, n_total, no_further, pieces, sharded

from structpred.data.hierarchy import LabelHierarchy
from structpred.errors import DataError, ParameterError
from structpred.models import HierarchicalMultiLabel, MultiLabelMRF
from structpred.models.sharding import sharding_of
from structpred.objectives.margin import MarginRescaling
from structpred.trainers.bcfw import BCFW
from structpred.trainers.loop import RunSettings, train
from structpred.trainers.problem import Problem

RNG = np.random.default_rng(4)
X = RNG.normal(size=(12, 3)) * [1.0, 10.0, 0.1]
TREE = LabelHierarchy.from_parents(np.array([-1, 0, 0, -1]), list("abcd"))
PATHS = np.array([[1, 1, 0, 0], [1, 0, 1, 0], [0, 0, 0, 1]])[RNG.integers(3, size=12)]
FREE = np.array([[k >> 3 & 1, k >> 2 & 1, k >> 1 & 1, k & 1] for k in (9, 13, 5, 7, 3, 14, 1, 12, 10, 15, 6, 13)])
MODELS = {
    "pairs": (lambda: MultiLabelMRF(C=1.0), FREE),
    "the two strongest pairs, scaled": (lambda: MultiLabelMRF(C=1.0, edges=2, scale="standard"), FREE),
    "a tree of pairs": (lambda: MultiLabelMRF(C=1.0, edges="tree", scale="maxabs"), FREE),
    "paths": (lambda: HierarchicalMultiLabel(C=1.0, hierarchy=TREE, label_weights="depth"), PATHS),
    "a path in each tree": (
        lambda: HierarchicalMultiLabel(C=1.0, hierarchy=TREE),
        PATHS | [[0, 0, 0, 1]] * (np.arange(12)[:, None] < 5),
    ),
    "closed sets": (lambda: HierarchicalMultiLabel(C=1.0, hierarchy=TREE, tables=True), TREE.closed(FREE)),
}


@pytest.mark.parametrize("kind", MODELS)
def test_the_problems_of_shards_of_examples_add_up(kind: str) -> None:
    """Objective and gradient are sums over the shards; pairs, scale and what outputs must be are those of all rows."""
    make, Y = MODELS[kind]
    one = sharded(make(), [(X, Y)])
    for bounds in ([0, 5, 12], list(range(13))):
        many = sharded(make(), pieces(X, Y, bounds))
        check_same(one, many, (MarginRescaling(),))
        assert n_total(many) == 12.0
        assert many.plan.field.edges.tolist() == one.plan.field.edges.tolist()
        assert many.plan.field.require == one.plan.field.require


@pytest.mark.parametrize("kind", MODELS)
def test_the_model_is_that_of_fit(kind: str) -> None:
    """Trained on two shards' plan, the field and the weights are those of fit on all rows."""
    make, Y = MODELS[kind]
    model, fitted = make(), make().set_params(trainer="bcfw", max_iter=40, tol=0.0).fit(X, Y)
    made = sharded(model, pieces(X, Y, [0, 7, 12]))
    whole = sharding_of(model).task(model, made.plan, X, Y)[0]
    settings = RunSettings(max_iter=40, tol=0.0, check_every=10)
    result = train(Problem(whole, MarginRescaling(), 1.0 / (model.C * 12)), BCFW(), settings)
    sharding_of(model).keep(model, made.plan, made.whole.spread_result(result), no_further)
    np.testing.assert_allclose(model.coef_, fitted.coef_, atol=1e-6)
    assert model.predict(X).tolist() == fitted.predict(X).tolist()
    assert type(model.oracle_) is type(fitted.oracle_)


def test_what_all_rows_are_is_asked_of_all_shards() -> None:
    """Outputs keep a rule only where the rows of every shard do."""
    model: Any = HierarchicalMultiLabel(hierarchy=TREE)
    assert sharded(model, pieces(X, PATHS, [0, 6, 12])).plan.field.require == "path"
    mixed = PATHS.copy()
    for row, need in (([1, 0, 0, 0], "node"), ([1, 1, 0, 1], "trees"), ([1, 1, 1, 1], "leaf")):
        mixed[11] = row
        assert sharded(model, pieces(X, mixed, [0, 6, 12])).plan.field.require == need


def test_examples_that_do_not_fit_are_refused() -> None:
    """Shards with other features, other labels or another hierarchy than the first are clear errors."""
    model = MultiLabelMRF()
    with pytest.raises(DataError, match="shard 1: expected 3 features as in shard 0, got 2"):
        sharded(model, [(X, FREE), (X[:, :2], FREE)])
    with pytest.raises(DataError, match="shard 1: its labels or features have other names"):
        sharded(model, [(X, FREE), (X, FREE[:, :3])])
    with pytest.raises(ParameterError, match="MultiLabelMRF has no list of labels"):
        sharded(model, [(X, FREE)], classes=["a"])
