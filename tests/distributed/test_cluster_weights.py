"""Weights of samples, and of the positions in them, on shards."""

from functools import partial
from typing import Any

import numpy as np
import pytest
from cluster_data import digest
from graph_cases import PATHS
from shard_sums import Sharded, n_total, sums

from structpred import Instance
from structpred.distributed import Shards, fit
from structpred.distributed.cluster import local_cluster
from structpred.errors import DataError, ParameterError
from structpred.io.templates.arc_featurizer import ArcFeaturizer
from structpred.models import (
    ChainLabeler,
    DependencyParser,
    GraphLabeler,
    HierarchicalMultiLabel,
    MultiLabelMRF,
    StructuredPredictor,
)
from structpred.models.bundles import to_bundle
from structpred.models.parser.sentences import as_treebank
from structpred.models.parser.sharding import RelationSharding
from structpred.models.settings import resolve_trainer
from structpred.models.sharding import sharding_of
from structpred.objectives.log_loss import LogLoss
from structpred.oracles.multiclass import MulticlassOracle
from structpred.trainers.mixing import ParameterMixing

# dask first: without it the folder of these tests is found as `distributed`
pytest.importorskip("dask", reason="dask is not installed: pip install 'structpred[distributed]'")
distributed = pytest.importorskip("distributed")
RNG = np.random.default_rng(8)
X = [RNG.normal(size=(n, 3)) for n in RNG.integers(1, 5, 24)]
Y = [np.where(x.sum(axis=1) + RNG.normal(size=len(x)) > 0, "a", "b").tolist() for x in X]
WEIGHTS = np.zeros(24)  # the first ones of the first shard are zero
WEIGHTS[2:] = RNG.choice([0.0, 1.0, 2.0, 3.0], 22, p=[0.1, 0.4, 0.4, 0.1])
TIMES = WEIGHTS.astype(int)
TOKENS = [RNG.choice([0.0, 1.0, 5.0], len(y)).tolist() for y in Y]
HALVES = (slice(0, 10), slice(10, 24))
CERTIFIED = ("lbfgs", "owlqn", "oeg", "bcfw", "n_slack", "one_slack", "bmrm")


def weighted(rows: slice) -> tuple[Any, Any, Any]:
    """Samples with their weights."""
    return X[rows], Y[rows], WEIGHTS[rows]


def weighted_tokens(rows: slice) -> tuple[Any, Any, Any, Any]:
    """Samples with their weights, and those of their tokens."""
    return *weighted(rows), TOKENS[rows]


def repeated(rows: slice) -> tuple[Any, Any]:
    """Each sample as often as its weight says."""
    at = np.repeat(np.arange(24)[rows], TIMES[rows]).tolist()
    return [X[i] for i in at], [Y[i] for i in at]


def shards(function: Any) -> Shards:
    """Two shards of what the function makes of their samples."""
    return Shards.of_functions([partial(function, rows) for rows in HALVES])


@pytest.mark.mostly_slow
@pytest.mark.parametrize(
    "trainer", [one if one in ("lbfgs", "n_slack", "oeg") else pytest.param(one, marks=pytest.mark.slow) for one in CERTIFIED]
)
def test_a_weight_of_two_is_the_sample_twice(here: Any, trainer: str) -> None:
    """With weights, with repeated samples, and in one process: the same optimum, as each gap proves."""
    models = [ChainLabeler(trainer, C=0.1, max_iter=300, tol=5e-3, check_every=5) for _ in range(3)]
    models[0].fit(X, Y, sample_weight=WEIGHTS)
    for model, function in zip(models[1:], (weighted, repeated), strict=True):
        fit(model, shards(function), client=here)
    for model in models:
        assert model.converged_
        assert model.certificate_.primal == pytest.approx(models[0].certificate_.primal, rel=5e-3)
    plain = ChainLabeler(trainer, C=0.1, max_iter=300, tol=5e-3, check_every=5).fit(X, Y)
    assert plain.certificate_.primal != pytest.approx(models[0].certificate_.primal, rel=2e-2)


@pytest.mark.slow
def test_weights_of_tokens_count_as_on_one_machine(here: Any) -> None:
    """n-slack has the bits of `fit` with the same weights; the gap of bcfw is one about the same optimum."""
    for trainer in ("n_slack", "bcfw"):
        spread, alone, plain = (ChainLabeler(trainer, C=0.1, max_iter=300, tol=5e-3, check_every=5) for _ in range(3))
        fit(spread, shards(weighted_tokens), client=here)
        alone.fit(X, Y, sample_weight=WEIGHTS, token_weight=TOKENS)
        plain.fit(X, Y, sample_weight=WEIGHTS)
        assert trainer == "bcfw" or spread.coef_.tobytes() == alone.coef_.tobytes()
        assert spread.certificate_.primal == pytest.approx(alone.certificate_.primal, rel=5e-3)
        assert spread.certificate_.primal != pytest.approx(plain.certificate_.primal, rel=2e-2)


def test_weights_of_tokens_that_cannot_be_taken_name_the_shard(here: Any) -> None:
    """Lists that do not fit the tokens, and estimators that do not weigh them, are one line each."""
    bad = Shards.of_functions([lambda: (X, Y), lambda: (X, Y, None, [[1.0] * 9] * 24)])
    with pytest.raises(ParameterError, match=r"shard 1 \(function .*\): token_weight, sample 0: expected \d finite numbers"):
        fit(ChainLabeler("bcfw"), bad, client=here)
    given = [Instance(np.eye(3)[:, :2], (3,))]
    words, trees = [[{"form": "a", "upos": "T"}]], [[(0, "root")]]
    for model, features, truth in (
        (MultiLabelMRF(edges=[]), np.eye(1), np.array([[1, 0]])),
        (StructuredPredictor(MulticlassOracle()), given, [[0]]),
        (DependencyParser(), words, trees),
        (GraphLabeler(), PATHS[0][:1], PATHS[1][:1]),
    ):
        one = Shards.of_functions([lambda features=features, truth=truth: (features, truth, None, [[1.0]])])  # type: ignore[misc]
        with pytest.raises(ParameterError, match=rf"shard 0 .*token_weight: {type(model).__name__} weighs whole samples alone"):
            fit(model, one, client=here)


def test_an_estimator_that_was_fitted_before_chooses_its_trainer_anew(here: Any) -> None:
    """What `fit` takes by itself where it can is no way to train on shards; it is not what shards are asked for."""
    rows, sets = np.eye(4), np.array([[1, 0], [0, 1], [1, 1], [0, 0]])
    data = Shards.of_functions([partial(_rows, rows[:2], sets[:2]), partial(_rows, rows[2:], sets[2:])])
    again = MultiLabelMRF(max_iter=2).fit(rows, sets)
    assert to_bundle(again).header["trainer"] == "marginal_bcfw"
    assert digest(fit(again, data, client=here)) == digest(fit(MultiLabelMRF(max_iter=2), data, client=here))


def _rows(X: Any, y: Any) -> tuple[Any, Any]:
    return X, y


@pytest.mark.mostly_slow
@pytest.mark.parametrize("trainer", ["perceptron", "sgd", "mira", "pa"])
def test_online_trainers_weigh_as_mixing_does_in_one_process(here: Any, trainer: str) -> None:
    """The rounds of a cluster give the weights of the same shards in one process, and others than without weights."""
    even = Shards.of_functions([partial(weighted, rows) for rows in (slice(0, 12), slice(12, 24))])
    spread = fit(ChainLabeler(trainer, max_iter=3), even, client=here)
    mixing = ParameterMixing(resolve_trainer(trainer)[0], shards=2)
    alone = ChainLabeler(mixing, surrogate=resolve_trainer(trainer)[1], max_iter=3)
    alone.fit(X, Y, sample_weight=WEIGHTS)
    np.testing.assert_allclose(spread.coef_, alone.coef_, atol=1e-9)


def test_every_estimator_weighs_its_samples() -> None:
    """Sums with weights are those of the repeated samples, for label sets, hierarchies, graphs, instances, heads, relations."""
    rows, sets = np.abs(RNG.normal(size=(6, 3))), RNG.integers(0, 2, (6, 3))
    sets[:, 0] |= sets[:, 1]
    given = [Instance(RNG.normal(size=(3, 2)), (3,)) for _ in range(6)]
    words = [[{"form": f"w{k % 3}", "upos": f"T{k % 2}"} for k in range(i, i + 3)] for i in range(6)]
    trees = [[(0, "root"), (1, "a"), (1 + i % 2, "b")] for i in range(6)]
    relations = RelationSharding(ArcFeaturizer().fit(as_treebank(words, trees)), projective=True, single_root=True)
    models: list[tuple[Any, Any, Any]] = [
        (MultiLabelMRF(edges=[(0, 2)]), rows, sets),
        (HierarchicalMultiLabel(hierarchy=np.array([[0, 1]])), rows, sets),
        (GraphLabeler(), [(x.features, [(0, 1), (1, 2)]) for x in given], [["a", "b", "ab"[i % 2]] for i in range(6)]),
        (StructuredPredictor(MulticlassOracle()), given, [[i % 3] for i in range(6)]),
        (DependencyParser(projective=True, max_bits=6), words, trees),
        (ChainLabeler(missing="_"), words, trees),
    ]
    times = np.array([1, 2, 0, 1, 3, 1])
    for model, features, truth in models:
        sharding = relations if isinstance(model, ChainLabeler) else sharding_of(model)
        picked = np.repeat(np.arange(6), times)
        again = [of[picked] if isinstance(of, np.ndarray) else [of[i] for i in picked] for of in (features, truth)]
        plan = sharding.plan(model, [sharding.scan(model, features, truth)], None)
        made = [sharding.task(model, plan, features, truth, times), sharding.task(model, plan, *again)]
        found = []
        for task, columns in made:
            one = Sharded(plan, [(task, columns)], columns)
            assert n_total(one) == 8.0
            found.append(sums(one, np.linspace(-1.0, 1.0, columns.dim), LogLoss()))
        assert found[0][0] == pytest.approx(found[1][0])
        np.testing.assert_allclose(found[0][1], found[1][1], atol=1e-9)


def test_weights_that_do_not_fit_name_the_shard(here: Any) -> None:
    """Too few weights, one below zero, no weight at all in a shard, too many things in a shard: one line each."""
    for weights, message in (
        (np.ones(3), r"shard 1 \(function .*\): sample_weight must have one number per sample, shape \(24,\), got shape \(3,\)"),
        (-np.ones(24), r"shard 1 .*sample_weight must be finite and >= 0"),
        (np.zeros(24), r"shard 1 .*with a positive sum"),
        (["a"] * 24, r"shard 1 .*sample_weight: expected numbers"),
    ):
        bad = Shards.of_functions([lambda: (X, Y), lambda weights=weights: (X, Y, weights)])  # type: ignore[misc]
        with pytest.raises(ParameterError, match=message):
            fit(ChainLabeler("bcfw"), bad, client=here)
    with pytest.raises(DataError, match=r"expected a pair \(X, y\), .* or \(X, y, sample_weight, token_weight\), got tuple of 5"):
        Shards.of_functions([lambda: (X, Y, None, None, None)])[0].load()


def test_delayed_objects_and_bags_have_weights() -> None:
    """A tuple of three, and samples of three or four, hold weights; samples of two and of three are not mixed."""
    import dask

    one = Shards.of_delayed([dask.delayed((X[:2], Y[:2], [1.0, 2.0]))])[0].load()
    assert one.sample_weight == [1.0, 2.0]
    bag = Shards.of_delayed([dask.delayed([(X[0], Y[0], 2.0), (X[1], Y[1], 0.5)])])[0].load()
    assert bag.sample_weight == [2.0, 0.5]
    assert bag.y == Y[:2]
    bag = Shards.of_delayed([dask.delayed([(X[0], Y[0], 2.0, TOKENS[0]), (X[1], Y[1], 0.5, TOKENS[1])])])[0].load()
    assert (bag.sample_weight, bag.token_weight) == ([2.0, 0.5], TOKENS[:2])
    with pytest.raises(DataError, match=r"sample 1: expected a pair .* as in all, got tuple of 2"):
        Shards.of_delayed([dask.delayed([(X[0], Y[0], 2.0), (X[1], Y[1])])])[0].load()


@pytest.mark.slow
def test_workers_never_show_in_weighted_runs(here: Any) -> None:
    """The bits are the same in one process and on two workers."""
    with local_cluster(2) as cluster, distributed.Client(cluster) as client:
        for trainer in ("lbfgs", "bcfw", "n_slack"):
            found = [
                digest(fit(ChainLabeler(trainer, C=1.0, max_iter=4), shards(weighted), client=own)) for own in (here, client)
            ]
            assert found[0] == found[1], trainer
