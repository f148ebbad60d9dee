"""--shards of structures of a user's own: the shell trains and predicts what Python does, and says what fails in their code."""

import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cli_helpers import Shell, train_on_shards

from structpred.cli.structures.shards import ReadShard
from structpred.distributed import Shards, fit, predict
from structpred.errors import ClusterError, DataError
from structpred.models import StructuredPredictor
from structpred.oracles.multiclass import MulticlassOracle

# dask first: without it the folder of the tests of structpred.distributed is found as `distributed`
pytest.importorskip("dask", reason="dask is not installed: pip install 'structpred[distributed]'")
pytest.importorskip("distributed")

CODE = """
from structpred import Instance


def read(path):
    X, y = [], []
    for line in open(path):
        values, _, label = line.partition("=")
        X.append(Instance([{"size": float(v)} for v in values.split()], (3,)))
        y.append([int(label)] if label.strip() else None)
    return X, None if None in y else y
"""
OWN = ("--oracle", "structpred.oracles.multiclass:MulticlassOracle", "--reader", "readers:read")


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a reader, and with data that it reads."""
    (tmp_path / "readers.py").write_text(CODE)
    (tmp_path / "train.txt").write_text("1 0 0 = 0\n0 2 1 = 1\n0 0.5 1 = 2\n3 0 2 = 0\n-1 0 1 = 2\n")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    yield tmp_path
    for name in ("readers", "failing"):
        sys.modules.pop(name, None)


@pytest.mark.slow
def test_structures_learnt_in_the_shell_are_those_of_fit(shell: Shell, client: Any, own: Path) -> None:
    """`train structure --shards 2` gives the weights of `fit` where each shard is a part of what the reader gives."""
    train_on_shards(
        shell, client, own, own / "m.spz", "structure", "train.txt", *OWN, "--trainer", "n_slack", "--dev", "train.txt"
    )
    X, y = importlib.import_module("readers").read(own / "train.txt")
    model = StructuredPredictor(MulticlassOracle(), trainer="n_slack")
    fit(model, Shards.of_functions([lambda: (X[:2], y[:2]), lambda: (X[2:], y[2:])]), client=client, dev=(X, y))
    made = StructuredPredictor.load(own / "m.spz", MulticlassOracle())
    assert made.coef_.tobytes() == model.coef_.tobytes()
    assert made.report_["shards"].tolist() == [2.0]


def test_parts_of_what_a_reader_gives(own: Path) -> None:
    """The parts are all instances in order; fewer instances than parts is an error that says so."""
    path = str(own / "train.txt")
    _, y = importlib.import_module("readers").read(path)
    for n in range(1, 6):
        parts = [ReadShard("readers:read", path, k, n, labelled=True).load() for k in range(n)]
        assert [label for part in parts for label in part.y] == y
        assert all(len(part.X) == len(part.y) > 0 for part in parts)
    with pytest.raises(DataError, match=r"train\.txt: 5 instances do not make 6 shards; ask for fewer"):
        ReadShard("readers:read", path, 0, 6, labelled=True).load()


def test_parts_of_structures_are_what_predict_writes(shell: Shell, client: Any, own: Path) -> None:
    """The same for a structure of one's own, whose oracle no model file holds; labels need not be known."""
    done = shell("train", "structure", "train.txt", *OWN, "-o", "m.spz", cwd=own)
    assert done.returncode == 0, done.stderr
    (own / "new.txt").write_text("".join(line.partition("=")[0] + "\n" for line in (own / "train.txt").open()))
    options = ("--shards", "2", "--scheduler", client.scheduler.address, "-o", "out/{shard}.txt")
    done = shell("predict", "m.spz", "new.txt", *OWN, *options, cwd=own)
    assert done.returncode == 0, done.stderr
    parts = "".join((own / "out" / f"{k}.txt").read_text() for k in range(2))
    assert parts == shell("predict", "m.spz", "new.txt", *OWN, cwd=own).stdout
    assert len(list((own / "out").iterdir())) == 2


def test_a_worker_without_the_reader(own: Path) -> None:
    """It is said that it is the worker who does not find it."""
    with pytest.raises(ClusterError, match=r"nowhere:read, on this worker: there is no module 'nowhere' .* its PYTHONPATH"):
        ReadShard("nowhere:read", str(own / "train.txt"), 0, 1, labelled=True).load()


class OfElsewhere(MulticlassOracle):
    """An oracle whose module no other process has."""

    def __reduce__(self) -> Any:
        return importlib.import_module, ("nowhere",)


class OfAnotherVersion(MulticlassOracle):
    """An oracle whose module has it in this process alone."""

    def __reduce__(self) -> Any:
        return getattr, (importlib, "Nothing")


#: how what a worker does not find begins, in prediction and in training
PLACE = r"^(shard 0 \(function .*\)|reading the shards)"


@pytest.mark.parametrize(
    ("oracle", "said"),
    [
        (OfElsewhere, f"{PLACE}: a worker has no module 'nowhere': code of yours must be installed there, or on its PYTHONPATH$"),
        (OfAnotherVersion, r"a worker has another version of code of yours, which must be the same everywhere: .* 'Nothing'"),
    ],
)
def test_a_worker_without_the_oracle(client: Any, own: Path, oracle: type, said: str) -> None:
    """Training and prediction say in one line what a worker does not find, and what must be done."""
    X, y = importlib.import_module("readers").read(own / "train.txt")
    model = StructuredPredictor(oracle(), max_iter=1).fit(X, y)
    with pytest.raises(ClusterError, match=said):
        predict(model, Shards.of_functions([lambda: (X, y)]), own / "out" / "{shard}.txt", client)
    with pytest.raises(ClusterError, match=said):
        fit(model, Shards.of_functions([lambda: (X, y)]), client=client)
    assert list((own / "out").iterdir()) == []


@pytest.mark.mostly_slow
@pytest.mark.parametrize("shards", [False, True])
def test_a_reader_that_fails_is_one_line(shell: Shell, client: Any, own: Path, shards: bool) -> None:
    """Reader, file, error and place are named, with and without shards; with them the shard, too, in training and prediction."""
    train_on_shards(shell, client, own, own / "m.spz", "structure", "train.txt", *OWN)
    (own / "bad.txt").write_text("1 0 0 = 0\n0 x 1 = 1\n")
    said = r"bad\.txt: --reader readers:read failed: ValueError: could not .*: 'x' \(.*readers\.py, line 9\)"
    more = ("--shards", "2", "--scheduler", client.scheduler.address) if shards else ()
    shard = r"shard \d \(.*bad\.txt, part \d of 2\): .*" if shards else ""
    for command in (("train", "structure", "bad.txt", "-o", "never.spz"), ("predict", "m.spz", "bad.txt", "-o", "{shard}.txt")):
        done = shell(*command, *OWN, *more, cwd=own)
        assert done.returncode == 1, done.stderr
        assert "Traceback" not in done.stderr
        assert re.fullmatch(f"error: {shard}{said}", done.stderr.rstrip().splitlines()[-1]), done.stderr
    assert sorted(path.name for path in own.glob("*.spz*")) == ["m.spz"]


FAILING = """
import threading
from structpred.oracles.multiclass import MulticlassOracle


class Gone(Exception):
    def __init__(self):
        super().__init__(threading.Lock())  # goes to no other process

    def __str__(self):
        return "the solver\\nis gone"


class Tour(MulticlassOracle):
    left = -1  # calls before it fails

    def argmax(self, scores, shape):
        if not Tour.left:
            raise Gone()
        Tour.left -= 1
        return super().argmax(scores, shape)
"""


@pytest.mark.mostly_slow
@pytest.mark.parametrize("shards", [False, True])
@pytest.mark.parametrize("trainer", ["bcfw", "n_slack"])
def test_an_oracle_that_fails_is_one_line(shell: Shell, client: Any, own: Path, shards: bool, trainer: str) -> None:
    """In training and prediction sample, method, error and place are named; on shards the shard, too."""
    (own / "failing.py").write_text(FAILING)
    code = ("--oracle", "failing:Tour", "--reader", "readers:read")
    assert shell("train", "structure", "train.txt", *code, "--max-iter", "1", "-o", "m.spz", cwd=own).returncode == 0
    more = ("--shards", "2", "--scheduler", client.scheduler.address) if shards else ()
    shard = r"shard \d \(.*train\.txt, part \d of 2\): " if shards else ""
    train = ("train", "structure", "train.txt", "--trainer", trainer, "--max-iter", "50", "--tol", "0", "-o", "never.spz")
    for left, command in ((20, train), (0, ("predict", "m.spz", "train.txt", "-o", "{shard}.txt"))):
        importlib.import_module("failing").Tour.left = left
        done = shell(*command, *code, *more, cwd=own)
        assert done.returncode == 1, done.stderr
        said = rf"error: {shard}sample \d: Tour\.argmax raised Gone: the solver is gone \(.*failing\.py, line 19\)"
        assert re.fullmatch(said, done.stderr.rstrip().splitlines()[-1]), done.stderr


def test_a_bug_keeps_its_traceback(shell: Shell, client: Any, own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What code of structpred raises in a worker is not told in a line: it is to be reported with all that is known."""

    def broken(*arguments: Any) -> None:
        raise KeyError("by hand")

    monkeypatch.setattr("structpred.distributed.tasks.losses_of", broken)
    options = (*OWN, "--shards", "2", "--scheduler", client.scheduler.address, "-o", "never.spz")
    done = shell("train", "structure", "train.txt", *options, cwd=own)
    assert done.returncode == 1, done.stderr
    assert "Traceback" in done.stderr
    assert "KeyError: 'by hand'" in done.stderr
    assert "this is a bug in structpred, or in code of yours" in done.stderr


@pytest.mark.slow
def test_processes_of_the_shell_find_the_reader(shell: Shell, process: Shell, client: Any, own: Path) -> None:
    """Without --scheduler worker processes find the user's module in the working folder; they show in no bit of the model."""
    train_on_shards(shell, client, own, own / "here.spz", "structure", "train.txt", *OWN)
    done = process("train", "structure", "train.txt", *OWN, "--shards", "2", "-o", "there.spz", cwd=own)
    assert done.returncode == 0, done.stderr
    one, other = (StructuredPredictor.load(own / f"{name}.spz", MulticlassOracle()) for name in ("here", "there"))
    assert one.coef_.tobytes() == other.coef_.tobytes()
