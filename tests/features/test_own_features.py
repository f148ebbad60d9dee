"""A feature map of one's own, with fast calls for blocks, is one file: none of the package is edited, and training uses them."""

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import structpred
from structpred.contracts.checks import check_feature_map
from structpred.objectives.log_loss import LogLoss
from structpred.objectives.margin import MarginRescaling
from structpred.objectives.part_losses import Hamming
from structpred.oracles.multiclass import MulticlassOracle
from structpred.task.fast.part_steps import PartSteps
from structpred.task.task import Task
from structpred.trainers.lbfgs import LBFGS
from structpred.trainers.loop import RunSettings, train
from structpred.trainers.one_slack import OneSlackCuttingPlane
from structpred.trainers.problem import Problem

PACKAGE = Path(structpred.__file__).parent
FAST = ("score_block", "adjoint_block", "add_spread")
ONE_FILE = '''
import numpy as np
from structpred import FeatureMap
from structpred.core.sparse import SparseVector


class Blocks(FeatureMap):
    """A row of numbers a sample, and a block of weights for each of k classes."""

    def __init__(self, rows, k):
        self.rows, self.k, self.d = rows, k, rows.shape[1]
        self.dim, self.dtype, self.groups = k * self.d, np.dtype(np.float64), np.array([0, k * self.d])

    def __len__(self):
        return len(self.rows)

    def n_parts(self, i):
        return self.k

    def scores(self, w, i):
        return w.reshape(self.k, self.d) @ self.rows[i]

    def adjoint(self, i, parts, counts):
        return SparseVector((parts[:, None] * self.d + np.arange(self.d)).ravel(), np.outer(counts, self.rows[i]).ravel())

    def arrays(self):
        return (self.rows,)

    def score_block(self, w, scale, start, stop, places, out):
        out[:] = scale * (self.rows[start:stop] @ w.reshape(self.k, self.d).T).ravel()

    def adjoint_block(self, start, parts, counts, ends):
        owners = start + np.repeat(np.arange(len(ends) - 1), np.diff(ends))
        values = counts[:, None] * self.rows[owners]
        return (parts[:, None] * self.d + np.arange(self.d)).ravel(), values.ravel(), ends * self.d

    def add_spread(self, i, mu, coef, out):
        out += coef * np.outer(mu, self.rows[i]).ravel()
'''


def test_a_map_with_fast_calls_is_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At most 40 lines, 9 of them for fast calls: these are checked, trainers ask them, and the weights are those without."""
    before = {path: path.stat().st_mtime_ns for path in PACKAGE.rglob("*.py")}
    folder = tmp_path / "features_of_mine"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "blocks.py").write_text(ONE_FILE)
    monkeypatch.syspath_prepend(tmp_path)
    kind = importlib.import_module("features_of_mine.blocks").Blocks
    assert len(ONE_FILE.strip().splitlines()) <= 40

    asked: dict[str, int] = dict.fromkeys(FAST, 0)

    class Counted(kind):  # type: ignore[misc, valid-type]
        """The same map, whose fast calls are counted."""

        def __getattribute__(self, name: str) -> Any:
            if name in asked:
                asked[name] += 1
            return super().__getattribute__(name)

    rng = np.random.default_rng(0)
    rows, labels = (x := rng.normal(size=(300, 5))), [[int(y)] for y in x[:, :4].argmax(axis=1)]
    assert set(FAST) <= set(check_feature_map(kind(rows, 4)).checked)

    plain = type("Plain", (kind,), dict.fromkeys(FAST))
    found = []
    for made in (Counted, plain):
        task = Task(made(rows, 4), MulticlassOracle(), labels, [(4,)] * 300, Hamming())
        assert type(task.steps) is PartSteps
        for surrogate, trainer in ((MarginRescaling(), OneSlackCuttingPlane()), (LogLoss(), LBFGS())):
            found.append(train(Problem(task, surrogate, 0.01), trainer, RunSettings(max_iter=8)).weights)
    assert min(asked.values()) > 0
    for fast, slow in zip(found[:2], found[2:], strict=True):
        np.testing.assert_allclose(fast, slow, rtol=0, atol=1e-9)
        assert np.abs(fast).max() > 0.0
    assert {path: path.stat().st_mtime_ns for path in PACKAGE.rglob("*.py")} == before
