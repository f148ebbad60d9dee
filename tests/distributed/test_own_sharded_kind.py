"""A kind of estimator that shards take, added as one file of a package of one's own."""

import importlib
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from shard_sums import check_same, pieces, sharded

from structpred.distributed import Shards, fit
from structpred.errors import DataError, ParameterError
from structpred.objectives.log_loss import LogLoss
from structpred.objectives.margin import MarginRescaling

# dask first: without it the folder of these tests is found as `distributed`
pytest.importorskip("dask", reason="dask is not installed: pip install 'structpred[distributed]'")
pytest.importorskip("distributed")

FILE = '''
"""Rows of numbers, each with one of several labels."""

from dataclasses import dataclass, field

import numpy as np

from structpred.errors import DataError
from structpred.features.label_rows import LabelRows
from structpred.models.base import StructuredEstimator, checked_sample_weight
from structpred.models.bundles import CLASSES, COMMON, restore_weights, restored
from structpred.models.settings import resolve_loss
from structpred.models.sharding import Sharding, refuse_classes
from structpred.oracles.multiclass import MulticlassOracle
from structpred.storage.schema import Field, Record
from structpred.task.task import Task


class RowSharding(Sharding):
    """The plan: how many features there are, and the labels of all rows."""

    def read(self, model, X, y, *, whole):
        if len(X) != len(y):
            raise DataError(f"X has {len(X)} rows, but y has {len(y)} labels")
        return np.asarray(X, np.float64), list(y)

    def scanned(self, model, data):
        return data[0].shape[1], set(data[1])

    def plan(self, model, scans, classes):
        refuse_classes(model, classes)
        if len({width for width, _ in scans}) > 1:
            raise DataError("the shards have different numbers of features")
        return scans[0][0], sorted(set().union(*(labels for _, labels in scans)))

    def built(self, model, plan, data, *, sample_weight=None):
        (rows, y), (_, labels) = data, plan
        weights, gold = checked_sample_weight(sample_weight, len(y)), [[labels.index(label)] for label in y]
        features = LabelRows(rows, len(labels))
        return Task(features, MulticlassOracle(), gold, features.shapes, resolve_loss(model.loss), sample_weight=weights)

    def keep(self, model, plan, result, further):
        model.classes_ = np.array(plan[1])
        model._keep(result)
        model._stop_if_interrupted()


@dataclass(eq=False, repr=False)
class RowLabels(StructuredEstimator):
    """A linear classifier."""

    classes_: np.ndarray = field(init=False)

    _sharding = RowSharding()
    _HEADER = Record({**COMMON, "classes": Field(CLASSES, "classes_", np.ndarray.tolist)})

    @classmethod
    def _from_bundle(cls, head, bundle, oracle):
        model = restored(cls, head)
        model.classes_ = np.array(head["classes"])
        restore_weights(model, bundle.arrays, None)
        return model

    def fit(self, X, y, *, sample_weight=None):
        self._sharding.fit(self, X, y, sample_weight=sample_weight)
        return self

    def predict(self, X):
        return self.classes_[(np.asarray(X) @ self.coef_.reshape(-1, len(self.classes_))).argmax(axis=1)]
'''
RNG = np.random.default_rng(4)
X = RNG.normal(size=(30, 4))
Y = ["abc"[k] for k in (X[:, :3] + 0.5 * RNG.normal(size=(30, 3))).argmax(axis=1)]
CUT = pieces(X, Y, [0, 12, 30])  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def kind(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The class of the file."""
    folder = tmp_path_factory.mktemp("code")
    (folder / "own_rows.py").write_text(FILE)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        yield importlib.import_module("own_rows").RowLabels
    del sys.modules["own_rows"]


def test_one_file_adds_a_kind_that_shards_take(here: Any, kind: Any, tmp_path: Path) -> None:
    """Not a line of the package is edited. Both shards add up to the one problem; trained on them with n-slack the model has the
    bits of `fit`, with bcfw its optimum; it is saved and loaded as any other.
    """
    assert len(FILE.strip().splitlines()) < 75
    check_same(sharded(kind(), [(X, Y)]), sharded(kind(), CUT), (LogLoss(), MarginRescaling()))
    shards = Shards.of_functions([lambda part=part: part for part in CUT])  # type: ignore[misc]
    alone, spread = (kind(trainer="n_slack", max_iter=200, C=0.03) for _ in range(2))
    alone.fit(X, Y)
    fit(spread, shards, client=here)
    assert spread.coef_.tobytes() == alone.coef_.tobytes()
    assert spread.converged_
    rounds = fit(kind(trainer="bcfw", max_iter=100, check_every=5, C=0.03), shards, client=here)
    assert rounds.converged_
    assert rounds.certificate_.primal == pytest.approx(alone.certificate_.primal, rel=2e-3)
    assert np.mean(spread.predict(X) == np.array(Y)) > 0.8
    spread.save(tmp_path / "model")
    assert kind.load(tmp_path / "model").predict(X).tolist() == spread.predict(X).tolist()


def test_what_the_file_refuses_names_the_shard(here: Any, kind: Any) -> None:
    """Its own errors say in which shard; weights of tokens, and a list of labels, are refused without a line of it."""
    bad = Shards.of_functions([lambda: CUT[0], lambda: (X[:3], Y[:2])])
    with pytest.raises(DataError, match=r"shard 1 \(function .*\): X has 3 rows, but y has 2 labels"):
        fit(kind(), bad, client=here)
    with pytest.raises(ParameterError, match="classes: RowLabels has no list of labels"):
        fit(kind(), Shards.of_functions([lambda: CUT[0]]), classes=["a"], client=here)
    with pytest.raises(ParameterError, match="token_weight: RowLabels weighs whole samples alone"):
        fit(kind(), Shards.of_functions([lambda: (*CUT[0], None, [1.0])]), client=here)
