"""--shards of parsers, label sets and structures: the shell trains and predicts what Python does with the same shards."""

import gzip
import importlib
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cli_helpers import Run, Shell, blanked
from label_helpers import N_FEATURES

from structpred.cli.events import Events
from structpred.cli.structures.shards import ReadShard
from structpred.distributed import Shards, fit, predict
from structpred.errors import ClusterError, DataError
from structpred.io.multilabel.clus import read_clus
from structpred.io.treebanks.reader import read_treebank
from structpred.models import DependencyParser, HierarchicalMultiLabel, MultiLabelMRF, StructuredPredictor, load
from structpred.oracles.multiclass import MulticlassOracle

# dask first: without it the folder of the tests of structpred.distributed is found as `distributed`
pytest.importorskip("dask", reason="dask is not installed: pip install 'structpred[distributed]'")
distributed = pytest.importorskip("distributed")

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


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """A client whose one worker is this process; so the shell, which runs here in tests, finds it by its address."""
    with distributed.Client(processes=False, dashboard_address="127.0.0.1:0", n_workers=1, threads_per_worker=2) as client:
        yield client


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


def train(shell: Shell, client: Any, cwd: Path, model: Path, *arguments: str) -> Run:
    """`structpred train ... --shards 2`."""
    done = shell("train", *arguments, "--shards", "2", "--scheduler", client.scheduler.address, "-o", str(model), cwd=cwd)
    assert done.returncode == 0, done.stderr
    assert "2 shards of about" in done.stderr
    assert not list(model.parent.glob("*.ckpt*"))
    return done


@pytest.mark.parametrize("trainer", ["mira", "lbfgs"])
def test_parsers_learnt_in_the_shell_are_those_of_fit(
    shell: Shell, client: Any, treebanks: Path, tmp_path: Path, trainer: str
) -> None:
    """`train parser --shards 2` gives the heads and relations of `fit` over the same shards; predict writes both."""
    options = ("--trainer", trainer, "--max-iter", "4", "--dev", "dev.conllu", "--json")
    done = train(shell, client, treebanks, tmp_path / "m.spz", "parser", "train.conllu", *options)
    events = [json.loads(line) for line in done.stdout.splitlines()]
    stages = [event["stage"] for event in events if event["event"] == "pass"]
    assert stages == ["arcs"] * 4 + ["relations"] * 4
    assert events[-1]["relations"]["passes"] == 4
    assert events[-1]["dev"]["las"] > 0.5
    for line in ("arcs: trained 4 passes", "relations: trained 4 passes", "LAS"):
        assert line in done.stderr
    made, model = load(tmp_path / "m.spz"), DependencyParser(trainer, C=0.01, max_iter=4)
    dev: Any = read_treebank(treebanks / "dev.conllu")
    fit(model, Shards.of_file(treebanks / "train.conllu", 2, format="conllu"), client=client, dev=dev)
    assert made.coef_.tobytes() == model.coef_.tobytes()
    assert model.relation_features_ is not None
    assert stages_of(made) == stages_of(model)
    assert made.relation_features_.slots.tolist() == model.relation_features_.slots.tolist()
    assert made.reader_ == {"format": "conllu", "template": None}
    output = ("--shards", "3", "--scheduler", client.scheduler.address, "-o", str(tmp_path / "{shard}.conllu"))
    assert shell("predict", str(tmp_path / "m.spz"), "test.conllu", *output, cwd=treebanks).returncode == 0
    whole = shell("predict", str(tmp_path / "m.spz"), "test.conllu", cwd=treebanks).stdout
    assert "".join((tmp_path / f"{k}.conllu").read_text() for k in range(3)) == whole
    assert "\tnsubj\t" in whole


def test_heads_alone_and_on_shards(shell: Shell, client: Any, treebanks: Path, tmp_path: Path) -> None:
    """--unlabelled and --prune go with --shards as without."""
    options = ("--unlabelled", "--prune", "2", "--max-iter", "1", "--json")
    done = train(shell, client, treebanks, tmp_path / "m.spz", "parser", "train.conllu", *options)
    model = load(tmp_path / "m.spz")
    assert model.relations_ is None
    assert f"pruning: 2 heads per word hold {100 * model.kept_:.2f} % of the true arcs" in done.stderr
    assert [json.loads(line)["stage"] for line in done.stdout.splitlines() if '"pass"' in line] == ["arcs"]


SETS = {
    "weather-train.arff": {"format": "arff", "labels": "weather.xml"},
    "train.svm": {"format": "libsvm", "label_names": ["0", "1", "2", "3"], "n_features": N_FEATURES},
    "tree-train.arff": {"format": "clus"},
}


@pytest.mark.parametrize("name", SETS)
def test_label_sets_learnt_in_the_shell_are_those_of_fit(
    shell: Shell, client: Any, labelled: Path, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`train multilabel --shards 2` gives the weights of `fit` over the same shards, in every format of text."""
    options = ("--max-iter", "2", "--scale", "standard", "--dev", name)
    train(shell, client, labelled, tmp_path / "m.spz", "multilabel", name, *options)
    monkeypatch.chdir(labelled)
    settings: dict[str, Any] = {"C": 0.1, "max_iter": 2, "tol": 0.01, "scale": "standard"}
    hierarchy = read_clus(name).hierarchy if name.startswith("tree") else None
    model: Any = HierarchicalMultiLabel(hierarchy=hierarchy, **settings) if hierarchy else MultiLabelMRF(**settings)
    whole, shards = (Shards.of_label_sets(name, n, **SETS[name]) for n in (1, 2))  # type: ignore[arg-type]
    fit(model, shards, client=client, dev=((data := whole[0].load().X).X, data.Y))
    made = load(tmp_path / "m.spz")
    assert made.coef_.tobytes() == model.coef_.tobytes()
    assert made.label_names_ == model.label_names_
    assert shell("evaluate", str(tmp_path / "m.spz"), name, cwd=labelled).returncode == 0


def test_a_hierarchy_beside_the_data(shell: Shell, client: Any, labelled: Path, tmp_path: Path) -> None:
    """--hierarchy goes with --shards: workers close the rows of their examples, in files whose labels all lines show alone."""
    (tmp_path / "edges.txt").write_text("1\t3\n")
    options = ("--hierarchy", str(tmp_path / "edges.txt"), "--max-iter", "1")
    train(shell, client, labelled, tmp_path / "m.spz", "multilabel", "train.svm", *options)
    found = shell("predict", str(tmp_path / "m.spz"), "test.svm", cwd=labelled).stdout.splitlines()
    assert all("1" in line.split("\t") for line in found if "3" in line.split("\t"))


def test_structures_learnt_in_the_shell_are_those_of_fit(shell: Shell, client: Any, own: Path) -> None:
    """`train structure --shards 2` gives the weights of `fit` where each shard is a part of what the reader gives."""
    train(shell, client, own, own / "m.spz", "structure", "train.txt", *OWN, "--trainer", "n_slack", "--dev", "train.txt")
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


def test_a_run_that_is_continued_ends_in_the_same_weights(shell: Shell, client: Any, treebanks: Path, tmp_path: Path) -> None:
    """--resume continues a run on shards from its checkpoint and store, in both stages, as for sequence labellers."""
    run = ("parser", "train.conllu", "--trainer", "oeg", "--checkpoint", str(tmp_path / "c"))
    train(shell, client, treebanks, tmp_path / "two.spz", *run, "--max-iter", "2")
    assert (tmp_path / "c.store").is_dir()
    train(shell, client, treebanks, tmp_path / "four.spz", *run, "--max-iter", "4", "--resume")
    train(shell, client, treebanks, tmp_path / "whole.spz", *run[:-1], str(tmp_path / "other"), "--max-iter", "4")
    two, four, whole = (load(tmp_path / f"{name}.spz") for name in ("two", "four", "whole"))
    assert stages_of(four) == stages_of(whole)
    assert not set(stages_of(two)) & set(stages_of(whole))


def stages_of(parser: DependencyParser) -> list[bytes]:
    """The weights of heads and relations."""
    assert parser.relations_ is not None
    return [parser.coef_.tobytes(), parser.relations_.coef_.tobytes()]


@pytest.mark.parametrize("stage", ["arcs", "relations"])
def test_interrupted_in_either_stage(
    shell: Shell, client: Any, treebanks: Path, tmp_path: Path, stage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command that an interrupted run names ends in the weights of one that was not, and leaves no files behind."""
    run = ("parser", "train.conllu", "--trainer", "oeg", "--max-iter", "4")
    train(shell, client, treebanks, tmp_path / "whole.spz", *run)
    emit = Events.emit

    def stop(events: Events, event: str, **fields: Any) -> None:
        if fields.get("stage") == stage and fields["passes"] == 3:
            raise KeyboardInterrupt
        emit(events, event, **fields)

    with monkeypatch.context() as patch:
        patch.setattr(Events, "emit", stop)
        more = ("--shards", "2", "--scheduler", client.scheduler.address, "-o", str(tmp_path / "m.spz"))
        done = shell("train", *run, *more, cwd=treebanks)
    assert done.returncode == 130, done.stderr
    assert done.stderr.rstrip().endswith("--resume")
    train(shell, client, treebanks, tmp_path / "m.spz", *run, "--resume")
    assert stages_of(load(tmp_path / "m.spz")) == stages_of(load(tmp_path / "whole.spz"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.spz", "whole.spz"]


# ------------------------------------------------------------------------------------------------ missing labels


def with_missing(kind: str, corpus: Path, labelled: Path, treebanks: Path) -> tuple[str, tuple[str, ...]]:
    """Data without some of their labels; and what to say to `train`."""
    if kind == "chain":
        text = blanked((corpus / "train.txt").read_text(), 0.3)[0].replace(" _\n", " ???\n")
        return text, ("chain", "--format", "conll2000", "--template", "chunking", "--missing", "???")
    if kind == "multilabel":
        return (labelled / "weather-train.arff").read_text().replace(",0,0\n", ",?,0\n"), ("multilabel", "--labels", "4")
    return (treebanks / "train.conllu").read_text().replace("\t0\troot\t0:root", "\t_\t_\t_"), ("parser",)


@pytest.mark.parametrize("kind", ["chain", "multilabel", "parser"])
def test_labels_that_are_missing(
    shell: Shell, client: Any, corpus: Path, labelled: Path, treebanks: Path, tmp_path: Path, kind: str
) -> None:
    """lbfgs and owlqn learn from what is known, as without shards; other trainers are one line that says so."""
    text, options = with_missing(kind, corpus, labelled, treebanks)
    (tmp_path / "part").write_text(text)
    for more in (("lbfgs",), ("owlqn", "--regulariser", "l1")):
        done = train(shell, client, tmp_path, tmp_path / "m.spz", *options, "part", "--max-iter", "3", "--trainer", *more)
        assert "missing" in done.stderr
        assert "local: the problem is not convex" in done.stderr
        model = load(tmp_path / "m.spz")
        assert not {"_", "???"} & set(getattr(getattr(model, "relations_", model), "classes_", ()))
    options = (*options, "part", "--shards", "2", "--scheduler", client.scheduler.address, "-o", "never.spz")
    for trainer in ("perceptron", "bcfw"):
        done = shell("train", *options, "--trainer", trainer)
        assert done.returncode == 1, done.stderr
        assert "Traceback" not in done.stderr
        said = r"^error: .*: on shards lbfgs and owlqn learn from them, with the log loss; else train without shards, or leave .*"
        assert re.fullmatch(said, done.stderr.rstrip().splitlines()[-1]), done.stderr


# ------------------------------------------------------------------------------------------------ code of the user


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


@pytest.mark.parametrize("shards", [False, True])
def test_a_reader_that_fails_is_one_line(shell: Shell, client: Any, own: Path, shards: bool) -> None:
    """Reader, file, error and place are named, with and without shards; with them the shard, too, in training and prediction."""
    train(shell, client, own, own / "m.spz", "structure", "train.txt", *OWN)
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
    train(shell, client, own, own / "here.spz", "structure", "train.txt", *OWN)
    done = process("train", "structure", "train.txt", *OWN, "--shards", "2", "-o", "there.spz", cwd=own)
    assert done.returncode == 0, done.stderr
    here, there = (StructuredPredictor.load(own / f"{name}.spz", MulticlassOracle()) for name in ("here", "there"))
    assert here.coef_.tobytes() == there.coef_.tobytes()


# ------------------------------------------------------------------------------------------------ prediction


@pytest.mark.parametrize("data", ["weather-test.arff", "bare.arff"])
def test_parts_of_label_sets_are_what_predict_writes(
    shell: Shell, client: Any, labelled: Path, tmp_path: Path, data: str
) -> None:
    """The parts of `predict --shards 3`, one after the other, are what `predict` writes; labels may be missing."""
    model = str(labelled / "m.spz")
    options = ("--shards", "3", "--scheduler", client.scheduler.address, "-o", str(tmp_path / "{shard}.txt"))
    done = shell("predict", model, data, *options, cwd=labelled)
    assert done.returncode == 0, done.stderr
    parts = [(tmp_path / f"{k}.txt").read_text() for k in range(3)]
    assert all(parts)
    assert "".join(parts) == shell("predict", model, data, cwd=labelled).stdout


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


# ------------------------------------------------------------------------------------------------ what is refused


WRONG = {
    ("none.arff",): (1, "TRAIN none.arff: there is no such file"),
    ("-", "--format", "arff", "--labels", "4"): (2, "TRAIN must be a plain file, not -"),
    ("train.npz",): (2, "npz files cannot be cut: write the examples as ARFF or LIBSVM text, or give"),
    ("packed.svm",): (2, "a gzip file cannot be cut into byte ranges: unpack it"),
    ("weather-train.arff", "--encoding", "utf-16"): (2, "a file in utf-16 cannot be cut at ends of lines"),
    ("weather-train.arff", "--trainer", "marginal_bcfw"): (2, "MarginalBCFW cannot be trained on shards; trainers that can: "),
    ("weather-train.arff", "--labels", "none.xml"): (1, "none.xml: there is no such file"),
    ("train.svm", "--labels", "4"): (2, "--labels says which attributes of an ARFF file are labels"),
    ("train.svm", "--shards", "99"): (2, r"shard \d+ of 99 would be empty"),
    ("bad.svm",): (1, r"shard 1 \(.*\): .*bad\.svm: byte [\d,]+ \+ line 1200: expected index:value, got 'x'"),
}


@pytest.mark.parametrize("arguments", WRONG, ids=" ".join)
def test_what_label_sets_on_shards_do_not_take(shell: Shell, labelled: Path, arguments: tuple[str, ...]) -> None:
    """Files that cannot be cut or read, and trainers that shards do not take, are one line before any cluster is asked."""
    text = (labelled / "train.svm").read_text()
    (labelled / "packed.svm").write_bytes(gzip.compress(text.encode()))
    (labelled / "bad.svm").write_text(f"{text * 30}1 x\n")  # beyond what the shell looks at first
    code, message = WRONG[arguments]
    options = (*arguments, "--scheduler", "tcp://127.0.0.1:1", "-o", "never.spz")
    done = shell("train", "multilabel", *options, *(() if "--shards" in arguments else ("--shards", "2")), cwd=labelled)
    assert done.returncode == code, done.stderr
    assert re.search(message, done.stderr), done.stderr
