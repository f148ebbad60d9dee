"""Graphs on a cluster: what one machine gives, whichever workers there are."""

from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cluster_data import digest
from graph_cases import GRIDS, MORE, PATH, PATHS, graphs

from structpred.distributed import Shards, fit, predict
from structpred.distributed.cluster import local_cluster
from structpred.errors import DataError
from structpred.models import GraphLabeler
from structpred.models.settings import resolve_trainer
from structpred.oracles.dual_mrf import DualMRF
from structpred.trainers.bcfw import BCFW
from structpred.trainers.cocoa import CoCoA
from structpred.trainers.mixing import ParameterMixing
from structpred.trainers.oeg import OnlineEG

# dask first: without it the folder of these tests is found as `distributed`
pytest.importorskip("dask", reason="dask is not installed: pip install 'structpred[distributed]'")
distributed = pytest.importorskip("distributed")
BOUNDS = [0, 6, 12]
WEIGHTS = np.array([1.0, 2.0, 0.0, 3.0, 1.0, 1.0, 0.0, 0.5, 1.0, 2.0, 1.0, 1.0])


def shards(X: Any, y: Any, weights: Any = None, bounds: Any = BOUNDS) -> Shards:
    """Consecutive pieces, as functions."""

    def piece(a: int, b: int) -> tuple[Any, ...]:
        return (X[a:b], y[a:b]) if weights is None else (X[a:b], y[a:b], weights[a:b])

    return Shards.of_functions([partial(piece, a, b) for a, b in pairwise(bounds)])


@pytest.mark.mostly_slow
@pytest.mark.parametrize(
    ("trainer", "reference"),
    [
        ("bcfw", CoCoA(BCFW(), shards=2)),
        ("oeg", CoCoA(OnlineEG(), shards=2)),
        ("perceptron", ParameterMixing(resolve_trainer("perceptron")[0], shards=2)),
    ],
)
def test_rounds_are_those_of_one_process(here: Any, trainer: str, reference: Any) -> None:
    """Rounds on a cluster give the weights, and the certificate, of the same shards in one process, with sample weights."""
    X, y = GRIDS
    surrogate = resolve_trainer(trainer)[1]
    spread = fit(GraphLabeler(trainer, C=0.5, max_iter=3, tol=0.0), shards(X, y, WEIGHTS), client=here)
    alone = GraphLabeler(reference, C=0.5, max_iter=3, tol=0.0, surrogate=surrogate).fit(X, y, sample_weight=WEIGHTS)
    np.testing.assert_allclose(spread.coef_, alone.coef_, atol=1e-9)
    assert spread.certificate_.dual == pytest.approx(alone.certificate_.dual)
    other = fit(GraphLabeler(trainer, C=0.5, max_iter=3, tol=0.0), shards(X, y), client=here)
    assert not np.allclose(other.coef_, alone.coef_, atol=1e-3)


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_an_inexact_oracle_and_a_line_a_graph(here: Any, tmp_path: Path) -> None:
    """Bounds of an inexact oracle certify on shards, too; predictions are lines with the labels of a graph."""
    X, y = MORE
    model = fit(GraphLabeler(oracle=DualMRF(), C=0.1, max_iter=60, tol=0.05), shards(X, y), client=here)
    assert model.converged_
    parts = predict(model, shards(X, y), tmp_path / "{shard}.txt", client=here)
    lines = [line.split() for part in parts for line in part.read_text().splitlines()]
    assert lines == [labels.tolist() for labels in model.predict(X)]


def test_a_bad_shard_is_named(here: Any) -> None:
    """No graphs, an edge to nowhere, no labels: one line that names the shard; the model stays as it was."""
    (X, y), model = PATHS, GraphLabeler()
    for bad, message in (
        (([], []), r"shard 1 .*expected at least one graph"),
        (([(X[0][0], [(0, 9)])], y[:1]), r"shard 1 .*sample 0: .*9"),
        ((X, None), r"shard 1 .*y: expected a list with the node labels"),
    ):
        both = Shards.of_functions([lambda: PATHS, lambda bad=bad: bad])  # type: ignore[misc]
        with pytest.raises(DataError, match=message):
            fit(model, both, client=here)
    assert not hasattr(model, "coef_")


@pytest.mark.slow
def test_workers_never_show_in_the_bits(here: Any) -> None:
    """The bits are the same in one process, on one worker and on two."""
    data = shards(*GRIDS, WEIGHTS, [0, 3, 6, 9, 12])
    with local_cluster(2) as cluster, distributed.Client(cluster) as client:
        for n_workers in (2, 1):
            cluster.scale(n_workers)
            client.wait_for_workers(n_workers)
            for trainer in ("bcfw", "lbfgs", "n_slack", "one_slack", "sgd"):
                found = [digest(fit(GraphLabeler(trainer, C=0.5, max_iter=4), data, client=own)) for own in (here, client)]
                assert found[0] == found[1], (trainer, n_workers)
