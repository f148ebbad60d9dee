"""Every trainer with every regulariser in every kind of model, from the shell: it trains, or it says in one line why not."""

import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from cli_helpers import Run, Shell

from structpred.cli.kinds.kind import found_kinds
from structpred.data.decisions import shortest_path_data
from structpred.models.bundles import FORMAT_VERSION
from structpred.objectives.names import regularisers
from structpred.storage.bundles import read_bundle
from structpred.trainers.names import trainers

#: what may be refused, and why: a line that fits none of them is a door that does not open
REFUSED = {
    r"trainer \w+ is for .* alone, not for \w+": "made for rows with a number or a label, or for label sets, which share a row",
    r"trainer \w+ needs [\w ]+, which \w+ does not have\.": "no map from the dual point to weights, no gradient, no projection",
    r"regulariser: \w+ cannot minimise \w+\. Trainers for \w+: \w": "a map from the dual point that moves, or is not linear",
    r"trainer='\w+' cannot minimise loss='spo\+': take for this loss trainer='adam' or": "SPO+ is no log loss, and not of rows",
}
CODE = """
import numpy as np

from structpred import Instance
from structpred.oracles.multiclass import MulticlassOracle


class Chooser(MulticlassOracle):
    pass


def read(path):
    values = np.load(path)["X"]
    return [Instance(rows, (3,)) for rows in values], [[int(rows[:, 0].argmax())] for rows in values]


def roads(path):
    data = np.load(path)
    return [Instance(row, (3, 3)) for row in data["F"]], data["costs"]
"""
ROADS = ("--oracle", "structpred.oracles.shortest_path:ShortestPathOracle", "--reader", "doors_of_mine:roads")
CHOICES = ("--oracle", "doors_of_mine:Chooser", "--reader", "doors_of_mine:read")


class Door(NamedTuple):
    """A kind of model with tiny data: where models go, data, options of `train` and of `predict`, the regularisers."""

    folder: Path
    data: Path
    train: tuple[str, ...]
    predict: tuple[str, ...]
    regularisers: tuple[str | None, ...]


@pytest.fixture
def doors(
    corpus: Path, treebanks: Path, labelled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[dict[str, Door]]:
    """All kinds."""
    (tmp_path / "doors_of_mine.py").write_text(CODE)
    monkeypatch.syspath_prepend(tmp_path)
    made = shortest_path_data(12, grid=(3, 3), degree=2, noise=0.1)
    rows = np.random.default_rng(0).normal(size=(12, 3, 4))
    np.savez(tmp_path / "own.npz", X=rows, F=made.features, costs=made.costs)
    importlib.invalidate_caches()
    every, columns = tuple(regularisers()), ("--format", "conll2000")
    yield {
        "chain": Door(tmp_path, corpus / "test.txt", (*columns, "--template", "chunking"), (), every),
        "parser": Door(tmp_path, treebanks / "dev.conllu", ("--max-bits", "8"), (), every),
        "pipeline": Door(tmp_path, treebanks / "dev.conllu", ("--max-bits", "8", "--jackknife", "2"), (), every),
        "multilabel": Door(tmp_path, labelled / "weather-test.arff", ("--edges", "tree"), (), every),
        "structure": Door(tmp_path, tmp_path / "own.npz", CHOICES, CHOICES, every),
        "decision": Door(tmp_path, tmp_path / "own.npz", ROADS, ROADS, (None,)),
    }
    sys.modules.pop("doors_of_mine", None)


def opened(shell: Shell, door: Door, *command: str) -> str:
    """What is wrong with a command, and where it trains with its model; nothing where it keeps the promise."""
    done = shell("train", *command, str(door.data), *door.train, "-o", "m.spz", "-q")
    if done.returncode == 0:
        return without_use(shell, door, done)
    lines = done.stderr.splitlines()
    said = lines[-1] if lines else ""
    refused = len(lines) == 1 and said.startswith("error: ") and any(re.search(why, said) for why in REFUSED)
    return "" if refused else f"exit {done.returncode}: {done.stderr[-400:]}"


def without_use(shell: Shell, door: Door, done: Run) -> str:
    """What is wrong with the model just trained: it predicts nothing, or is worth nothing without a warning."""
    predicted = shell("predict", "m.spz", str(door.data), *door.predict, "-q")
    if predicted.returncode != 0 or not predicted.stdout:
        return f"predict: exit {predicted.returncode}: {predicted.stderr[-400:]}"
    arrays = read_bundle(door.folder / "m.spz", kind="model", format_version=FORMAT_VERSION).arrays
    learnt = any(arrays[name].any() for name in ("weights", "weights.values") if name in arrays)
    return "" if learnt or "all weights are zero" in done.stderr else "zero weights without a warning"


@pytest.mark.mostly_slow
@pytest.mark.parametrize("choice", [("--trainer", "online_mkl"), ("--regulariser", "mkl"), ("--regulariser", "lp_mkl")])
def test_groups_are_learnt_about_in_the_shell(shell: Shell, doors: dict[str, Door], choice: tuple[str, str]) -> None:
    """What weighs groups of features trains from the shell, although the groups are not known when options are looked at."""
    assert opened(shell, doors["chain"], "chain", *choice, "--max-iter", "2") == ""


@pytest.mark.parametrize("kind", ["chain", "multilabel", "structure"])
def test_slack_rescaling_without_a_trainer_takes_one_that_closes_gaps(shell: Shell, doors: dict[str, Door], kind: str) -> None:
    """--surrogate slack alone takes corrective, and bcfw where the regulariser is one that corrective does not minimise."""
    passes = ("--surrogate", "slack", "--max-iter", "2")
    for more, taken in (((), "corrective"), (("--regulariser", "l1"), "bcfw")):
        assert opened(shell, doors[kind], kind, *passes, *more) == ""
        assert read_bundle(doors[kind].folder / "m.spz", kind="model", format_version=FORMAT_VERSION).header["trainer"] == taken


def test_the_doors_are_all_kinds(doors: dict[str, Door]) -> None:
    """Every kind of model that the shell has is tried here."""
    assert sorted(doors) == [kind.name for kind in found_kinds()]


@pytest.mark.slow
@pytest.mark.parametrize("name", list(trainers()))
@pytest.mark.parametrize("kind", ["chain", "decision", "multilabel", "parser", "pipeline", "structure"])
def test_every_trainer_and_regulariser_opens_or_says_why(shell: Shell, doors: dict[str, Door], kind: str, name: str) -> None:
    """Exit 0 with a model that predicts, and a warning where it is worth nothing; or one line of refusal of a known kind."""
    wrong = {}
    for regulariser in doors[kind].regularisers:
        chosen = () if regulariser is None else ("--regulariser", regulariser)
        if fault := opened(shell, doors[kind], kind, "--trainer", name, *chosen, "--max-iter", "2"):
            wrong[regulariser] = fault
    assert wrong == {}
