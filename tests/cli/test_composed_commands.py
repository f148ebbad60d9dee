"""Compositions of one's own in the shell: a file with members is all that training, prediction and evaluation need."""

import importlib
import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

CODE = '''
import numpy as np

from structpred import Instance
from structpred.oracles import ChainOracle, Composed, KnapsackOracle
from structpred.oracles.knapsack import knapsack_shape


class Rare(Composed):
    """Words with label 0 or 1; label 1 at most twice."""

    def __init__(self):
        super().__init__([
            (ChainOracle(), lambda shape: (shape, np.arange(2 * shape[0] + 4))),
            (KnapsackOracle(), lambda shape: (knapsack_shape(np.ones(shape[0]), 2.0), 1 + 2 * np.arange(shape[0]))),
        ], example_shapes=[(3, 2)])


def read(path):
    X, y = [], []
    for line in open(path):
        values, _, labels = line.partition("=")
        sizes = [float(v) for v in values.split()]
        rows = [{f"{'high' if label else 'low'}": size} for size in sizes for label in (0, 1)]
        X.append(Instance(rows + [{f"pair {k}": 1.0} for k in range(4)], (len(sizes), 2)))
        y.append([int(label) for label in labels.split()])
    return X, y
'''
OWN = ("--oracle", "rare_labels:Rare", "--reader", "rare_labels:read")


def test_train_predict_evaluate(
    here: Callable[..., tuple[int, str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`structpred train structure` takes a class that composes; what it predicts keeps the budget."""
    (tmp_path / "rare_labels.py").write_text(CODE)
    monkeypatch.syspath_prepend(tmp_path)
    rng = np.random.default_rng(0)
    with (tmp_path / "train.txt").open("w") as file:
        for _ in range(12):
            sizes = rng.normal(size=5).round(2)
            labels = [int(k in np.argsort(-sizes)[:2] and size > 0) for k, size in enumerate(sizes)]
            file.write(f"{' '.join(map(str, sizes))} = {' '.join(map(str, labels))}\n")
    importlib.invalidate_caches()
    try:
        code, _, err = here("train", "structure", "train.txt", *OWN, "--max-iter", "20", "-o", "m.spz", cwd=tmp_path)
        assert code == 0, err
        found = here("predict", "m.spz", "train.txt", *OWN, cwd=tmp_path)[1].splitlines()
        assert len(found) == 12
        assert max(line.split().count("1") for line in found) == 2
        assert json.loads(here("evaluate", "m.spz", "train.txt", *OWN, "--json", cwd=tmp_path)[1])["exact"] > 0.5
    finally:
        sys.modules.pop("rare_labels", None)
