"""--shards: parts hold what `structpred predict` writes, a run that was stopped does what is left, and models are trained."""

import gzip
import importlib
import os
import re
import signal
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from cli_helpers import Shell
from quiet_clusters import closing_quietly

from structpred.distributed import Shards, fit, predict
from structpred.distributed.predict import Job, write_part
from structpred.errors import ClusterError, DataError, ModelFileError, ParameterError
from structpred.io.columns import ColumnCorpus
from structpred.io.text import read_range
from structpred.models import ChainLabeler, load

NEEDS_DASK = "dask is not installed: pip install 'structpred[distributed]'"


def parts_of(model: Path, shards: Shards, folder: Path, suffix: str = ".txt") -> list[Path]:
    """The parts, made in this process."""
    job = Job(str(model), importlib.import_module("structpred.distributed.predict")._digest(str(model)), n=len(shards))
    parts = [folder / f"part{k}{suffix}" for k in range(len(shards))]
    for k, part in enumerate(parts):
        write_part(job, shards[k], k, str(part))
    return parts


@pytest.mark.parametrize(
    ("fixture", "model", "data", "format"),
    [("corpus", "chunk.spz", "test.txt", "columns"), ("treebanks", "p.spz", "test.conllu", "conllu")],
)
def test_a_part_is_what_predict_writes(
    shell: Shell, request: pytest.FixtureRequest, tmp_path: Path, fixture: str, model: str, data: str, format: str
) -> None:
    """Each part equals, byte by byte, what `structpred predict` writes for the same lines."""
    folder = request.getfixturevalue(fixture)
    shards = Shards.of_file(folder / data, 3, format=format)
    parts = parts_of(folder / model, shards, tmp_path)
    for shard, part in zip(shards, parts, strict=True):
        (tmp_path / "lines").write_bytes(read_range(shard.path, shard.start, shard.stop))
        assert part.read_text() == shell("predict", str(folder / model), "lines").stdout


@pytest.mark.parametrize(
    ("fixture", "model", "data", "format"),
    [
        ("corpus", "chunk.spz", "test.txt", "columns"),
        ("treebanks", "p.spz", "test.conllu", "conllu"),
        ("corpus", "attributes.spz", "test.crf", "crfsuite"),
    ],
)
def test_parts_join_to_the_prediction_of_the_whole(
    shell: Shell, request: pytest.FixtureRequest, tmp_path: Path, fixture: str, model: str, data: str, format: str
) -> None:
    """`cat` of all parts is, byte by byte, what `structpred predict` writes for all data, in every format of sentences."""
    folder = request.getfixturevalue(fixture)
    if not (folder / model).exists():
        options = ("--format", format, "--max-iter", "2", "-o", str(folder / model))
        shell("train", "chain", str(folder / "train.crf"), *options).check_returncode()
    parts = parts_of(folder / model, Shards.of_file(folder / data, 6, format=format), tmp_path)
    assert "".join(part.read_text() for part in parts) == shell("predict", str(folder / model), str(folder / data)).stdout


def test_parts_of_several_files_and_functions_keep_sentences_apart(corpus: Path, tmp_path: Path) -> None:
    """Where the data of a shard do not end in a blank line, its part does, so that no sentence runs into the next part's."""
    (tmp_path / "a.txt").write_text("the DT B-NP\ncat NN I-NP\n")
    (tmp_path / "b.txt").write_text("dog NN B-NP")
    parts = parts_of(corpus / "chunk.spz", Shards.of_files([tmp_path / "a.txt", tmp_path / "b.txt"]), tmp_path)
    text = "".join(part.read_text() for part in parts)
    assert [len(block.splitlines()) for block in text.split("\n\n")] == [2, 1]
    ChainLabeler("perceptron").fit([[["the"], ["cat"]]], [["DT", "NN"]]).save(tmp_path / "m.spz")
    functions = Shards.of_functions([Killer([]), Killer([])])
    assert "".join(part.read_text() for part in parts_of(tmp_path / "m.spz", functions, tmp_path)) == "NN\n\nNN\n"


def test_crfsuite_text_gives_labels(shell: Shell, corpus: Path, tmp_path: Path) -> None:
    """The part of a CRFsuite file has a label per line, also where the model hashes; packed where the name ends in .gz."""
    train = str(corpus / "train.crf")
    shell("train", "chain", train, "--format", "crfsuite", "--n-bits", "10", "--max-iter", "2", "-o", "m.spz").check_returncode()
    (part,) = parts_of(tmp_path / "m.spz", Shards.of_files([corpus / "test.crf"], format="crfsuite"), tmp_path, ".gz")
    assert gzip.decompress(part.read_bytes()).decode() == shell("predict", "m.spz", str(corpus / "test.crf")).stdout


def test_sets_of_labels(shell: Shell, labelled: Path, tmp_path: Path) -> None:
    """Parts of multi-label files have a line of names for each example."""
    shards = Shards.of_files([labelled / "weather-test.arff"], format="arff")
    (part,) = parts_of(labelled / "m.spz", shards, tmp_path)
    assert part.read_text() == shell("predict", str(labelled / "m.spz"), str(labelled / "weather-test.arff")).stdout


def test_functions_give_label_lines(tmp_path: Path) -> None:
    """Shards that are functions are written as labels, one a line."""
    chain = ChainLabeler("perceptron").fit([[["the"], ["cat"]]], [["DT", "NN"]])
    chain.save(tmp_path / "chain.spz")
    (part,) = parts_of(tmp_path / "chain.spz", Shards.of_functions([lambda: ([[["cat"]], [["the"], ["cat"]]], None)]), tmp_path)
    assert part.read_text() == "NN\n\nDT\nNN\n"


def test_errors_name_shard_file_and_line(corpus: Path, tmp_path: Path) -> None:
    """A bad line is an error with the shard's number, file and line; so is a model file that is not the client's."""
    text = (corpus / "test.txt").read_text().split("\n")
    (tmp_path / "bad.txt").write_text("\n".join([*text[:3], "one-column", *text[3:]]))
    with pytest.raises(DataError, match=r"shard 0 \(.*bad\.txt\): .*bad\.txt:4: expected 3 columns"):
        parts_of(corpus / "chunk.spz", Shards.of_files([tmp_path / "bad.txt"]), tmp_path)
    shard = Shards.of_files([corpus / "test.txt"])[0]
    with pytest.raises(ModelFileError, match=r"shard 5 .*this worker sees another file"):
        write_part(Job(str(corpus / "chunk.spz"), "other digest"), shard, 5, str(tmp_path / "part"))


class Here:
    """In place of a cluster: parts are made one after the other in this process; `made` has their numbers."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.made: list[int] = []
        self.broken: int | None = None
        module = importlib.import_module("structpred.distributed.predict")
        monkeypatch.setattr(module, "cluster_of", lambda client, n: nullcontext())
        monkeypatch.setattr(module, "check_cluster", lambda client, folder: None)
        monkeypatch.setattr(module, "_completed", self.completed)

    def completed(self, client: Any, job: Job, work: dict[int, tuple[Any, str]]) -> Iterator[tuple[int, Any]]:
        for k, (shard, target) in work.items():
            if k == self.broken:
                raise KeyboardInterrupt
            self.made.append(k)
            yield k, write_part(job, shard, k, target)


@pytest.fixture
def inside(monkeypatch: pytest.MonkeyPatch) -> Here:
    """Predict without a cluster."""
    pytest.importorskip("cloudpickle", reason=NEEDS_DASK)
    return Here(monkeypatch)


def test_a_stopped_run_does_what_is_left(inside: Here, corpus: Path, tmp_path: Path) -> None:
    """Parts that are complete are kept by the same call, those that were touched are made again; after the end all is new."""
    shards, output = Shards.of_file(corpus / "test.txt", 4), tmp_path / "out" / "{shard:02}.txt"
    inside.broken = 2
    with pytest.raises(KeyboardInterrupt):
        predict(corpus / "chunk.spz", shards, output)
    (tmp_path / "out" / "01.txt").write_text("touched")
    inside.broken = None
    parts = predict(corpus / "chunk.spz", shards, output)
    assert inside.made == [0, 1, 1, 2, 3]
    assert sorted(os.listdir(tmp_path / "out")) == [part.name for part in parts] == ["00.txt", "01.txt", "02.txt", "03.txt"]
    assert b"".join(part.read_bytes() for part in parts).count(b"\n") == (corpus / "test.txt").read_bytes().count(b"\n")
    predict(corpus / "chunk.spz", shards, output)
    assert inside.made[5:] == [0, 1, 2, 3]


def test_another_model_or_another_cut_is_another_run(inside: Here, corpus: Path, tmp_path: Path) -> None:
    """Parts of another model, of other shards, or of a data file that changed, are not taken for those of this run."""
    data, output = tmp_path / "data.txt", tmp_path / "{shard}.txt"
    data.write_bytes((corpus / "test.txt").read_bytes())
    rows = ColumnCorpus.from_rows([[("a", "DT", "x"), ("b", "NN", "y")]])
    other = ChainLabeler("perceptron", template="chunking").fit(rows, [["B-NP", "I-NP"]])
    runs: list[tuple[Any, int]] = [(corpus / "chunk.spz", 3), (other, 3), (corpus / "chunk.spz", 2)]
    for model, n in runs:
        inside.broken = n - 1
        with pytest.raises(KeyboardInterrupt):
            predict(model, Shards.of_file(data, n), output)
    os.utime(data, (1, 1))
    with pytest.raises(KeyboardInterrupt):
        predict(corpus / "chunk.spz", Shards.of_file(data, 2), output)
    assert inside.made == [0, 1, 0, 1, 0, 0]
    assert not [name for name in os.listdir(tmp_path) if name.endswith(".model")]


@pytest.mark.parametrize("output", ["out.txt", "{part}.txt", "{shard.txt", "{shard!r:x}.txt"])
def test_outputs_need_the_number_of_the_shard(inside: Here, corpus: Path, tmp_path: Path, output: str) -> None:
    """An output that would put all parts into one file, or that cannot be filled in, is refused before anything is done."""
    with pytest.raises(ParameterError, match=r"output: expected a name with \{shard\}"):
        predict(corpus / "chunk.spz", Shards.of_file(corpus / "test.txt", 2), tmp_path / output)


def test_inputs_are_not_written_over(inside: Here, corpus: Path, tmp_path: Path) -> None:
    """A part with the name of the data, or of the model, is refused."""
    (tmp_path / "1.txt").write_bytes((corpus / "test.txt").read_bytes())
    with pytest.raises(ParameterError, match=r"1\.txt is one of the files to be read"):
        predict(corpus / "chunk.spz", Shards.of_file(tmp_path / "1.txt", 2), tmp_path / "{shard}.txt")


USAGE = {
    ("--scheduler", "tcp://a:1"): "--scheduler needs --shards",
    ("--shards", "2"): "--shards needs --output with the number of the shard",
    ("--shards", "2", "-o", "{shard}.txt", "--json"): "--json cannot be combined with --shards",
    ("--shards", "2", "-o", "{shard}.txt", "--on-error", "skip"): "--on-error skip cannot be combined",
    ("--shards", "2", "-o", "{shard}.txt", "--folds", "0"): "--folds is for OCR data",
    ("--shards", "999", "-o", "{shard}.txt"): "would be empty",
}


@pytest.mark.parametrize("options", USAGE, ids=" ".join)
def test_what_shards_do_not_take(shell: Shell, corpus: Path, options: tuple[str, ...]) -> None:
    """Options that do not go with --shards, and a cut that leaves nothing, are usage errors that say so."""
    done = shell("predict", str(corpus / "chunk.spz"), str(corpus / "test.txt"), *options)
    assert done.returncode == 2, done.stderr
    assert USAGE[options] in done.stderr


COLUMNS = ("chain", "train.txt", "--format", "conll2000", "--template", "chunking")
TRAINING = {
    (*COLUMNS, "--scheduler", "tcp://a:1"): "--scheduler, --store and --store-every need --shards N",
    (*COLUMNS, "--store", "folder"): "--scheduler, --store and --store-every need --shards N",
    (*COLUMNS, "--store-every", "5"): "--scheduler, --store and --store-every need --shards N",
    (*COLUMNS, "--shards", "2", "--store-every", "0"): "'--store-every': 0 is not in the range x>=1",
    (*COLUMNS, "--shards", "2", "--dev-fraction", "0.1"): "--shards and --dev-fraction exclude each other",
    (*COLUMNS, "--shards", "2", "--on-error", "skip"): "--shards needs --on-error raise",
    (*COLUMNS, "--shards", "2", "--n-jobs", "2"): "--n-jobs is for training without --shards",
    ("chain", "train.data", "--format", "ocr", "--shards", "2"): "not for pixels",
    ("chain", "-", "--format", "crfsuite", "--shards", "2"): "TRAIN must be a plain file",
    (*COLUMNS, "--shards", "2", "--signs", "train.txt"): "--signs is for training without --shards",
    ("decision", "train.txt", "--oracle", "a:b", "--reader", "a:b", "--shards", "2"): "leave --shards out",
}


@pytest.mark.parametrize("arguments", TRAINING, ids=lambda arguments: " ".join(arguments[-3:]))
def test_what_training_on_shards_does_not_take(shell: Shell, corpus: Path, arguments: tuple[str, ...]) -> None:
    """Options and kinds of models that do not go with --shards are usage errors, before anything is read."""
    done = shell("train", *arguments, "-o", "m.spz", cwd=corpus)
    assert done.returncode == 2, done.stderr
    assert TRAINING[arguments] in done.stderr


# -------------------------------------------------------------------------------------------- on a cluster


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Two worker processes, without TLS, so that its address is all that a shell needs; a shard that takes two is given up."""
    dask = pytest.importorskip("dask", reason=NEEDS_DASK)
    distributed = pytest.importorskip("distributed")

    settings = {"distributed.scheduler.allowed-failures": 1, "distributed.worker.daemon": False}
    local = {"threads_per_worker": 1, "host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
    with (
        dask.config.set(settings),
        closing_quietly(distributed.LocalCluster(n_workers=2, **local)) as started,
        distributed.Client(started, set_as_default=False) as client,
    ):
        yield client


class Killer:
    """A shard's function that kills its process as long as there are marks to remove."""

    def __init__(self, marks: list[Path]) -> None:
        self.marks = marks

    def __call__(self) -> tuple[Any, None]:
        for mark in self.marks:
            if mark.exists():
                mark.unlink()
                os.kill(os.getpid(), signal.SIGKILL)
        return [[["cat"]]], None


@pytest.mark.slow
def test_a_killed_worker_loses_nothing(cluster: Any, tmp_path: Path) -> None:
    """A worker that is killed over a shard costs that shard's work; all parts are there in the end, and no file besides."""
    model = ChainLabeler("perceptron").fit([[["the"], ["cat"]]], [["DT", "NN"]])
    (tmp_path / "mark").touch()
    shards = Shards.of_functions([Killer([]), Killer([tmp_path / "mark"]), Killer([]), Killer([])])
    parts = predict(model, shards, tmp_path / "out" / "{shard}.txt", cluster)
    assert [part.read_text() for part in parts] == ["NN\n\n"] * 3 + ["NN\n"]
    assert not (tmp_path / "mark").exists()
    assert sorted(os.listdir(tmp_path / "out")) == [part.name for part in parts]


@pytest.mark.slow
def test_a_shard_that_kills_every_worker_is_named(cluster: Any, tmp_path: Path) -> None:
    """A shard that takes every worker with it is one clear error with its number, not a run without end."""
    model = ChainLabeler("perceptron").fit([[["the"], ["cat"]]], [["DT", "NN"]])
    marks = [tmp_path / f"mark{k}" for k in range(9)]
    for mark in marks:
        mark.touch()
    cluster.wait_for_workers(2)  # one alone would take both shards with it
    with pytest.raises(ClusterError, match=r"shard 1 .*every worker that took it died"):
        predict(model, Shards.of_functions([Killer([]), Killer(marks)]), tmp_path / "out" / "{shard}.txt", cluster)


@pytest.mark.slow
def test_predict_shards_from_the_shell(cluster: Any, shell: Shell, corpus: Path, tmp_path: Path) -> None:
    """`--shards N --scheduler ADDRESS` writes the parts on that cluster; a bad line is exit code 1, and complete parts stay."""
    data, model, address = str(corpus / "test.txt"), str(corpus / "chunk.spz"), cluster.scheduler.address
    done = shell("predict", model, data, "--shards", "3", "--scheduler", address, "-o", "out/{shard:03}.txt")
    assert done.returncode == 0, done.stderr
    assert "wrote 3 parts" in done.stderr
    whole = "".join((tmp_path / "out" / f"00{k}.txt").read_text() for k in range(3))
    assert whole == shell("predict", model, data).stdout
    text = (corpus / "test.txt").read_text()
    (tmp_path / "bad.txt").write_text("\n".join([*[text] * 40, "one-column\n"]))  # beyond what the shell looks at itself
    done = shell("predict", model, "bad.txt", "--shards", "3", "--scheduler", address, "-o", "bad/{shard}.txt")
    assert done.returncode == 1
    assert "error: shard 2 (" in done.stderr
    assert re.search(r"bad\.txt: byte [\d,]+ \+ line \d+: expected 3 columns, got 1: 'one-column'", done.stderr), done.stderr


@pytest.mark.slow
def test_train_on_shards_from_the_shell(cluster: Any, shell: Shell, corpus: Path, tmp_path: Path) -> None:
    """`train chain --shards 3` gives the weights of `fit` over the same shards; predict knows how the data were read."""
    options = ("--shards", "3", "--scheduler", cluster.scheduler.address, "--trainer", "lbfgs", "--max-iter", "2", "-C", "1")
    train = ("train", "chain", str(corpus / "train.txt"), "--format", "conll2000", "--template", "chunking", "--n-bits", "12")
    done = shell(*train, *options, "--coding", "none", "-o", "m.spz")
    assert done.returncode == 0, done.stderr
    assert "3 shards of about" in done.stderr
    assert os.listdir(tmp_path) == ["m.spz"]
    model = ChainLabeler("lbfgs", C=1.0, template="chunking", n_bits=12, max_iter=2, tol=0.0)
    fit(model, Shards.of_file(corpus / "train.txt", 3, format="conll2000"), client=cluster)
    assert load(tmp_path / "m.spz").coef_.tobytes() == model.coef_.tobytes()
    assert shell("predict", "m.spz", str(corpus / "test.txt")).stdout.count("\n") > 0


@pytest.mark.slow
def test_store_every_says_what_the_store_has(cluster: Any, shell: Shell, corpus: Path, tmp_path: Path) -> None:
    """`--store-every 2` writes the states of the shards in every second round."""
    train = ("train", "chain", str(corpus / "train.txt"), "--format", "conll2000", "--template", "chunking", "--n-bits", "12")
    options = ("--shards", "2", "--scheduler", cluster.scheduler.address, "--trainer", "bcfw", "--max-iter", "3", "-C", "1")
    done = shell(*train, *options, "--store", "kept", "--store-every", "2", "--checkpoint", "m.ckpt", "-o", "m.spz")
    assert done.returncode == 0, done.stderr
    states = {path.name for path in (tmp_path / "kept").glob("run-*/state.*")}
    assert states == {"state.0.0", "state.0.2", "state.1.0", "state.1.2"}


@pytest.mark.slow
def test_a_bad_line_stops_training_on_shards(cluster: Any, shell: Shell, corpus: Path, tmp_path: Path) -> None:
    """A bad line far down is exit code 1 and one line that names shard, file and place; nothing is left behind."""
    text = (corpus / "train.txt").read_text()
    (corpus / "bad.txt").write_text("\n".join([*[text] * 15, "one-column\n"]))
    options = ("--shards", "3", "--scheduler", cluster.scheduler.address, "--template", "chunking", "--format", "conll2000")
    done = shell("train", "chain", str(corpus / "bad.txt"), *options, "-o", "m.spz")
    assert done.returncode == 1
    assert list(tmp_path.iterdir()) == []
    assert re.search(r"error: shard 2 \(.*\): .*bad\.txt: byte [\d,]+ \+ line \d+: expected 3 columns", done.stderr), done.stderr
