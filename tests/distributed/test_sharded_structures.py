"""Outputs of any structure on shards: the problems of the shards add up to the one of all data."""

import numpy as np
import pytest
from shard_sums import check_same, n_total, no_further, pieces, sharded

from structpred import Instance
from structpred.errors import DataError, ParameterError
from structpred.features.label_rows import LabelRows
from structpred.models import StructuredPredictor
from structpred.models.sharding import sharding_of
from structpred.objectives.log_loss import LogLoss
from structpred.objectives.margin import MarginRescaling
from structpred.oracles.composed import Composed
from structpred.oracles.multiclass import MulticlassOracle
from structpred.trainers.bcfw import BCFW
from structpred.trainers.loop import RunSettings, train
from structpred.trainers.problem import Problem

RNG = np.random.default_rng(3)
Y = [[int(RNG.integers(3))] for _ in range(8)]
ARRAYS = [Instance(RNG.normal(size=(3, 4)), (3,)) for _ in Y]
DICTS = [Instance([{f"w{RNG.integers(9)}": 1.0, "size": float(k)} for k in range(3)], (3,)) for _ in Y]


@pytest.mark.parametrize("X", [ARRAYS, DICTS], ids=["arrays", "dicts"])
def test_the_problems_of_shards_of_instances_add_up(X: list[Instance]) -> None:
    """Objective and gradient are the sums over the shards, and names know nothing of the shards."""
    one = sharded(StructuredPredictor(MulticlassOracle()), [(X, Y)])
    for bounds in ([0, 3, 8], list(range(9))):
        many = sharded(StructuredPredictor(MulticlassOracle()), pieces(X, Y, bounds))
        check_same(one, many, (LogLoss(), MarginRescaling()))
        assert n_total(many) == 8.0
        assert many.plan.names == one.plan.names
    assert many.parts[0][0].dim < one.whole.dim or X is ARRAYS  # a shard has its own features alone


def test_a_feature_map_has_all_weights_in_every_shard() -> None:
    """Maps of features that are not rows of parts are taken as they are: nothing is left out, and the sums agree."""
    rows = np.abs(RNG.normal(size=(8, 2)))
    one = sharded(StructuredPredictor(MulticlassOracle()), [(LabelRows(rows, 3), Y)])
    many = sharded(StructuredPredictor(MulticlassOracle()), [(LabelRows(rows[a:b], 3), Y[a:b]) for a, b in ((0, 5), (5, 8))])
    check_same(one, many, (LogLoss(), MarginRescaling()))
    assert many.whole.rows is None
    assert [columns.at(many.whole) for _, columns in many.parts] == [None, None]


def test_compositions_are_trained_on_shards_as_they_are() -> None:
    """Two oracles that must agree: the sums of the shards are those of one of them alone, whose outputs are the same."""
    both = Composed([(MulticlassOracle(), lambda shape: (shape, np.arange(3)))] * 2, example_shapes=[(3,)])
    one = sharded(StructuredPredictor(both), [(ARRAYS, Y)])
    check_same(one, sharded(StructuredPredictor(both), pieces(ARRAYS, Y, [0, 3, 8])), (MarginRescaling(),))


def test_what_is_kept_is_what_fit_keeps() -> None:
    """Weights of named features go to the places of their names, and the model predicts as the one of fit."""
    fitted = StructuredPredictor(MulticlassOracle(), C=10.0, max_iter=300, tol=1e-4).fit(DICTS, Y)
    model = StructuredPredictor(MulticlassOracle(), C=10.0)
    made = sharded(model, [(DICTS, Y)])
    result = train(Problem(made.parts[0][0], MarginRescaling(), 1.0 / 80.0), BCFW(), RunSettings(max_iter=300, tol=1e-4))
    sharding_of(model).keep(model, made.plan, made.whole.spread_result(result), no_further)
    assert model.feature_names_ == sorted(fitted.feature_names_ or [])
    order = [(fitted.feature_names_ or []).index(name) for name in model.feature_names_ or []]
    np.testing.assert_allclose(model.coef_, fitted.coef_[order], atol=0.05)
    assert [labels.tolist() for labels in model.predict(DICTS)] == [labels.tolist() for labels in fitted.predict(DICTS)]


def test_instances_that_do_not_fit_are_refused() -> None:
    """Shards with other features than the first, no instances, or a list of classes are clear errors."""
    model, wide = StructuredPredictor(MulticlassOracle()), [Instance(np.ones((3, 5)), (3,))]
    with pytest.raises(DataError, match="shard 1: expected 4 features as in shard 0, got 5"):
        sharded(model, [(ARRAYS, Y), (wide, [[0]])])
    with pytest.raises(DataError, match="shard 1: expected rows of numbers as in shard 0"):
        sharded(model, [(ARRAYS, Y), (DICTS, Y)])
    with pytest.raises(DataError, match="expected at least one sample"):
        sharded(model, [([], [])])
    with pytest.raises(ParameterError, match="classes: StructuredPredictor has no list of labels"):
        sharded(model, [(ARRAYS, Y)], classes=[0, 1, 2])
