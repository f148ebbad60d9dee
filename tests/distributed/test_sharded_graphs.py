"""Graphs on shards: the problems of the shards add up to the one of all data."""

from pathlib import Path
from typing import Any

import pytest
from graph_cases import GRIDS, MORE, PATHS, RICH
from shard_sums import check_same, n_total, no_further, pieces, sharded

from structpred.errors import DataError, ParameterError
from structpred.models import DecisionModel, GraphLabeler
from structpred.models.sharding import sharding_of
from structpred.objectives.log_loss import LogLoss
from structpred.objectives.margin import MarginRescaling
from structpred.oracles.mrf_enumeration import EnumerationMRF
from structpred.oracles.tree_mrf import TreeMRF
from structpred.trainers.bcfw import BCFW
from structpred.trainers.loop import RunSettings, train
from structpred.trainers.problem import Problem

#: by name the data, the oracle that serves them, and settings
DATA: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "paths": (PATHS, TreeMRF, {}),
    "grids": (GRIDS, EnumerationMRF, {"directed": False}),
    "edges with features": (RICH, EnumerationMRF, {"bias": 0.0}),
    "paths, then grids": ((PATHS[0][:6] + MORE[0][:6], PATHS[1][:6] + MORE[1][:6]), EnumerationMRF, {}),
}


@pytest.mark.parametrize("name", DATA)
def test_the_problems_of_shards_of_graphs_add_up(name: str) -> None:
    """Objective and gradient are sums over the shards; labels, directions and the oracle are those of all graphs."""
    (X, y), oracle, settings = DATA[name]
    model = GraphLabeler(**settings)
    one = sharded(model, [(X, y)])
    for bounds in ([0, 5, 12], list(range(13))):
        many = sharded(model, pieces(X, y, bounds))
        check_same(one, many, (LogLoss(), MarginRescaling()))
        assert n_total(many) == 12.0
        assert {type(task.oracle) for task, _ in many.parts} == {oracle}
        assert many.plan.field.encoder.classes.tolist() == one.plan.field.encoder.classes.tolist()


@pytest.mark.parametrize("name", DATA)
def test_the_model_is_that_of_fit(name: str, tmp_path: Path) -> None:
    """Trained on two shards' plan, the field and the weights are those of fit on all graphs, and so is the file."""
    (X, y), oracle, settings = DATA[name]
    model, fitted = GraphLabeler(**settings), GraphLabeler(trainer="bcfw", **settings, max_iter=5, tol=0.0).fit(X, y)
    made = sharded(model, pieces(X, y, [0, 7, 12]))
    whole = sharding_of(model).task(model, made.plan, X, y)[0]
    result = train(Problem(whole, MarginRescaling(), 1.0 / 12.0), BCFW(), RunSettings(max_iter=5, tol=0.0))
    sharding_of(model).keep(model, made.plan, made.whole.spread_result(result), no_further)
    assert model.coef_.tobytes() == fitted.coef_.tobytes()
    assert (model.directed_, type(model.oracle_)) == (fitted.directed_, oracle)
    model.save(tmp_path / "model")
    again = GraphLabeler.load(tmp_path / "model").predict(X)
    assert [labels.tolist() for labels in again] == [labels.tolist() for labels in fitted.predict(X)]


def test_graphs_that_do_not_fit_are_refused() -> None:
    """Other features, other kinds of labels, a label that `classes` lack: one line that says where."""
    model = GraphLabeler()
    with pytest.raises(DataError, match="shard 1: expected 3 features of nodes as in shard 0, got 2"):
        sharded(model, [PATHS, GRIDS])
    with pytest.raises(DataError, match="shard 1: expected no features of edges as in shard 0, got 2"):
        sharded(model, [GRIDS, RICH])
    with pytest.raises(DataError, match="shard 1: labels must be all strings or all whole numbers"):
        sharded(model, [PATHS, (PATHS[0], [[0] * 4 for _ in PATHS[1]])])
    with pytest.raises(DataError, match="'owl' is not among the labels in `classes`"):
        sharded(model, [PATHS], classes=["cat", "dog"])
    with pytest.raises(ParameterError, match="directed: expected True, False or None, got 'no'"):
        sharded(GraphLabeler(directed="no"), [PATHS])  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match=r"DecisionModel cannot be trained on shards: use fit. .*parsers, label sets, Graph"):
        sharding_of(DecisionModel(EnumerationMRF()))
