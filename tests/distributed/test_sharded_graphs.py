"""Graphs on shards: the problems of the shards add up to the one of all data, and clusters train what one machine does."""

from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cluster_data import digest
from shard_sums import check_same, n_total, no_further, pieces, sharded

from structpred.distributed import Shards, fit, predict
from structpred.errors import DataError, ParameterError
from structpred.models import DecisionModel, GraphLabeler
from structpred.models.sharding import sharding_of
from structpred.objectives.log_loss import LogLoss
from structpred.objectives.margin import MarginRescaling
from structpred.oracles.dual_mrf import DualMRF
from structpred.oracles.mrf_enumeration import EnumerationMRF
from structpred.oracles.tree_mrf import TreeMRF
from structpred.trainers.bcfw import BCFW
from structpred.trainers.cocoa import CoCoA
from structpred.trainers.loop import RunSettings, train
from structpred.trainers.mixing import ParameterMixing
from structpred.trainers.oeg import OnlineEG
from structpred.trainers.problem import Problem

distributed = pytest.importorskip("distributed", reason="dask is not installed: pip install 'structpred[distributed]'")
RNG = np.random.default_rng(7)
GRID = np.array([(0, 1), (2, 1), (3, 4), (4, 5), (0, 3), (1, 4), (2, 5)])
PATH = np.array([(0, 1), (1, 2), (2, 3)])
NAMES = np.array(["cat", "dog", "owl"])
BOUNDS = [0, 6, 12]


def graphs(edges: Any, n_labels: int, edge_features: int = 0) -> tuple[list[Any], list[Any]]:
    """Twelve graphs of these edges whose nodes show their labels, but for some noise; along the first edge labels agree."""
    X, y = [], []
    for _ in range(12):
        codes = RNG.integers(0, n_labels, edges.max() + 1)
        codes[edges[0, 1]] = codes[edges[0, 0]]
        x = [np.eye(n_labels)[codes] + RNG.normal(0, 0.6, (len(codes), n_labels)), edges]
        X.append((*x, RNG.normal(size=(len(edges), edge_features))) if edge_features else tuple(x))
        y.append(NAMES[codes].tolist())
    return X, y


PATHS, GRIDS, RICH, MORE = graphs(PATH, 3), graphs(GRID, 2), graphs(GRID, 2, edge_features=2), graphs(GRID, 3)
#: by name the data, the oracle that serves them, and settings
DATA: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "paths": (PATHS, TreeMRF, {}),
    "grids": (GRIDS, EnumerationMRF, {"directed": False}),
    "edges with features": (RICH, EnumerationMRF, {"bias": 0.0}),
    "paths, then grids": ((PATHS[0][:6] + MORE[0][:6], PATHS[1][:6] + MORE[1][:6]), EnumerationMRF, {}),
}
WEIGHTS = np.array([1.0, 2.0, 0.0, 3.0, 1.0, 1.0, 0.0, 0.5, 1.0, 2.0, 1.0, 1.0])


def shards(X: Any, y: Any, weights: Any = None, bounds: Any = BOUNDS) -> Shards:
    """Consecutive pieces, as functions."""

    def piece(a: int, b: int) -> tuple[Any, ...]:
        return (X[a:b], y[a:b]) if weights is None else (X[a:b], y[a:b], weights[a:b])

    return Shards.of_functions([partial(piece, a, b) for a, b in pairwise(bounds)])


@pytest.fixture(scope="module")
def here() -> Iterator[Any]:
    """A client whose one worker is this process, with two threads."""
    with distributed.Client(processes=False, dashboard_address="127.0.0.1:0", n_workers=1, threads_per_worker=2) as client:
        yield client


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
    sharding_of(model).keep(model, made.plan, result, made.whole, no_further)
    assert model.coef_.tobytes() == fitted.coef_.tobytes()
    assert (model.directed_, type(model.oracle_)) == (fitted.directed_, oracle)
    model.save(tmp_path / "model")
    again = GraphLabeler.load(tmp_path / "model").predict(X)
    assert [labels.tolist() for labels in again] == [labels.tolist() for labels in fitted.predict(X)]


@pytest.mark.parametrize(
    ("trainer", "reference"),
    [
        ("bcfw", CoCoA(BCFW(), shards=2)),
        ("oeg", CoCoA(OnlineEG(), shards=2)),
        ("perceptron", ParameterMixing(GraphLabeler("perceptron")._trainer_and_surrogate()[0], shards=2)),
    ],
)
def test_rounds_are_those_of_one_process(here: Any, trainer: str, reference: Any) -> None:
    """Rounds on a cluster give the weights, and the certificate, of the same shards in one process, with sample weights."""
    X, y = GRIDS
    surrogate = GraphLabeler(trainer)._trainer_and_surrogate()[1]
    spread = fit(GraphLabeler(trainer, C=0.5, max_iter=3, tol=0.0), shards(X, y, WEIGHTS), client=here)
    alone = GraphLabeler(reference, C=0.5, max_iter=3, tol=0.0, surrogate=surrogate).fit(X, y, sample_weight=WEIGHTS)
    np.testing.assert_allclose(spread.coef_, alone.coef_, atol=1e-9)
    assert spread.certificate_.dual == pytest.approx(alone.certificate_.dual)
    other = fit(GraphLabeler(trainer, C=0.5, max_iter=3, tol=0.0), shards(X, y), client=here)
    assert not np.allclose(other.coef_, alone.coef_, atol=1e-3)


def test_n_slack_is_that_of_one_machine(here: Any) -> None:
    """Planes of each graph, found in shards, give the weights and the certificate of `fit`, bit by bit; held-out data, too."""
    X, y = PATHS
    settings: dict[str, Any] = {"C": 0.5, "max_iter": 6, "tol": 0.0, "check_every": 1}
    for dev in (None, graphs(PATH, 3)):
        alone = GraphLabeler("n_slack", **settings).fit(X, y, dev=dev)
        spread = fit(GraphLabeler("n_slack", **settings), shards(X, y), client=here, dev=dev)
        assert spread.coef_.tobytes() == alone.coef_.tobytes()
        assert spread.certificate_ == alone.certificate_
        if dev is not None:
            scores = [[row["dev_score"] for row in model.history_] for model in (spread, alone)]
            assert scores[0] == scores[1]


@pytest.mark.parametrize("trainer", ["one_slack", "lbfgs"])
def test_sums_bound_the_same_optimum(here: Any, trainer: str) -> None:
    """The certificates of a run on shards and of `fit` agree: each lower bound is below the other's objective."""
    X, y = GRIDS
    settings: dict[str, Any] = {"C": 0.2, "max_iter": 40, "tol": 0.02, "check_every": 2}
    alone = GraphLabeler(trainer, **settings).fit(X, y, sample_weight=WEIGHTS)
    spread = fit(GraphLabeler(trainer, **settings), shards(X, y, WEIGHTS), client=here)
    for one, other in ((alone, spread), (spread, alone)):
        assert one.certificate_.dual is not None
        assert 0.95 * other.certificate_.primal < one.certificate_.dual <= other.certificate_.primal * (1 + 1e-6)


def test_labels_of_nodes_may_be_missing(here: Any) -> None:
    """L-BFGS ends at the objective of `fit` where some nodes have no label, or a set, in one shard alone."""
    X, y = PATHS
    known = [*y[:8], [None, *y[8][1:]], [{"cat", "dog"}, *y[9][1:]], *y[10:]]
    alone = GraphLabeler("lbfgs", C=0.3, max_iter=25).fit(X, known)
    spread = fit(GraphLabeler("lbfgs", C=0.3, max_iter=25), shards(X, known), client=here)
    assert spread.certificate_.local
    assert spread.certificate_.primal == pytest.approx(alone.certificate_.primal, rel=1e-5)
    with pytest.raises(DataError, match=r"shard 1 .*some labels are missing, .*: on shards lbfgs and owlqn learn"):
        fit(GraphLabeler("bcfw"), shards(X, known), client=here)


def test_an_inexact_oracle_and_a_line_a_graph(here: Any, tmp_path: Path) -> None:
    """Bounds of an inexact oracle certify on shards, too; predictions are lines with the labels of a graph."""
    X, y = MORE
    model = fit(GraphLabeler(oracle=DualMRF(), C=0.1, max_iter=60, tol=0.05), shards(X, y), client=here)
    assert model.converged_
    parts = predict(model, shards(X, y), tmp_path / "{shard}.txt", client=here)
    lines = [line.split() for part in parts for line in part.read_text().splitlines()]
    assert lines == [labels.tolist() for labels in model.predict(X)]


def test_graphs_that_do_not_fit_are_refused(here: Any) -> None:
    """Other features, other kinds of labels, a label that `classes` lack, no graphs, a bad graph: one line that says where."""
    (X, y), model = PATHS, GraphLabeler()
    with pytest.raises(DataError, match="shard 1: expected 3 features of nodes as in shard 0, got 2"):
        sharded(model, [PATHS, GRIDS])
    with pytest.raises(DataError, match="shard 1: expected no features of edges as in shard 0, got 2"):
        sharded(model, [GRIDS, RICH])
    with pytest.raises(DataError, match="shard 1: labels must be all strings or all whole numbers"):
        sharded(model, [PATHS, (X, [[0] * 4 for _ in y])])
    with pytest.raises(DataError, match="'owl' is not among the labels in `classes`"):
        sharded(model, [PATHS], classes=["cat", "dog"])
    with pytest.raises(ParameterError, match="directed: expected True, False or None, got 'no'"):
        sharded(GraphLabeler(directed="no"), [PATHS])  # type: ignore[arg-type]
    for bad, message in (
        (([], []), r"shard 1 .*expected at least one graph"),
        (([(X[0][0], [(0, 9)])], y[:1]), r"shard 1 .*sample 0: .*9"),
        ((X, None), r"shard 1 .*y: expected a list with the node labels"),
    ):
        both = Shards.of_functions([lambda: PATHS, lambda bad=bad: bad])  # type: ignore[misc]
        with pytest.raises(DataError, match=message):
            fit(model, both, client=here)
    assert not hasattr(model, "coef_")
    with pytest.raises(ParameterError, match=r"DecisionModel cannot be trained on shards: use fit. .*parsers, label sets, Graph"):
        sharding_of(DecisionModel(EnumerationMRF()))


@pytest.mark.slow
def test_workers_never_show_in_the_bits(here: Any) -> None:
    """The bits are the same in one process, on one worker and on two."""
    data = shards(*GRIDS, WEIGHTS, [0, 3, 6, 9, 12])
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0") as cluster,
        distributed.Client(cluster) as client,
    ):
        for n_workers in (2, 1):
            cluster.scale(n_workers)
            client.wait_for_workers(n_workers)
            for trainer in ("bcfw", "lbfgs", "n_slack", "one_slack", "sgd"):
                found = [digest(fit(GraphLabeler(trainer, C=0.5, max_iter=4), data, client=own)) for own in (here, client)]
                assert found[0] == found[1], (trainer, n_workers)
