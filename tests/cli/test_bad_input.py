"""Promises of the command line on bad input: the exit code, one line that names the place, no traceback, nothing written."""

import pickle
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from cli_helpers import PROGRAM, Shell

Here = Callable[..., tuple[int, str, str]]

TRAIN = ("train", "chain", "--format", "conll2000", "--template", "chunking", "-o", "m.spz")

# what is wrong -> (arguments, exit code, what the message says); {c} is the folder of good files
USAGE = {
    "labels in front": ((*TRAIN[:4], "-o", "m.spz", "{c}/train.txt", "--label-column", "0"), 2, "words in column 0"),
    "unknown template": ((*TRAIN, "{c}/train.txt", "--template", "chunkin"), 2, "chunking, crfsuite, ner, pos"),
    "unknown trainer": ((*TRAIN, "{c}/train.txt", "--trainer", "adam"), 2, "bcfw"),
    "passes elsewhere": ((*TRAIN, "{c}/train.txt", "--epochs", "5"), 2, "--epochs'; here that is --max-iter"),
    "a loss as trainer": ((*TRAIN, "{c}/train.txt", "--trainer", "crf"), 2, "here that is 'lbfgs' or 'oeg'"),
    "a trainer of nets": ((*TRAIN, "{c}/train.txt", "--trainer", "adam"), 2, "got 'adam'; here that is 'sgd'"),
    "a scheme elsewhere": ((*TRAIN, "{c}/train.txt", "--constraints", "bio"), 2, "here that is 'iob2'"),
    "C is no number": ((*TRAIN, "{c}/train.txt", "-C", "nan"), 2, "finite"),
    "patience without dev": ((*TRAIN, "{c}/train.txt", "--patience", "2"), 2, "--dev"),
    "strict without tol": ((*TRAIN, "{c}/train.txt", "--strict"), 2, "--tol"),
    "model to stdout": ((*TRAIN[:-1], "-", "{c}/train.txt"), 2, "must be a file"),
    "folds of columns": ((*TRAIN, "{c}/train.txt", "--folds", "1"), 2, "--format ocr"),
    "folds that are none": ((*TRAIN, "{c}/train.txt", "--folds", "3-1"), 2, "1-9"),
    "label column missing": ((*TRAIN, "{c}/train.txt", "--label-column", "7"), 2, "3 columns"),
    "template reads the label": ((*TRAIN, "{c}/train.txt", "--label-column", "1"), 2, "holds the labels"),
    "config key": (
        (*TRAIN, "{c}/train.txt", "--config", "bad.toml"),
        2,
        "bad.toml: unknown key 'max-itr'; did you mean 'max-iter'",
    ),
    "config value": ((*TRAIN, "{c}/train.txt", "--config", "value.toml"), 2, "value.toml: max-iter"),
    "config missing": ((*TRAIN, "{c}/train.txt", "--config", "none.toml"), 2, "none.toml: cannot be read"),
    "format of another model": (("predict", "{c}/chunk.spz", "{c}/test.txt", "--format", "ocr"), 2, "another kind"),
    "evaluate without data": (("evaluate", "{c}/chunk.spz"), 2, "MODEL and DATA"),
}
FILES = {
    "train missing": ((*TRAIN, "none.txt"), 1, "none.txt: there is no such file"),
    "dev missing": ((*TRAIN, "{c}/train.txt", "--dev", "none.txt"), 1, "--dev none.txt: there is no such file"),
    "dev without labels": ((*TRAIN, "{c}/train.txt", "--dev", "two.txt"), 1, "two.txt: expected 3 columns with labels"),
    "output folder missing": ((*TRAIN[:-1], "no/m.spz", "{c}/train.txt"), 1, "the folder no does not exist"),
    "output is a folder": ((*TRAIN[:-1], ".", "{c}/train.txt"), 1, "this is a folder"),
    "output is the input": ((*TRAIN[:-1], "two.txt", "two.txt"), 1, "files to be read"),
    "nothing to resume": ((*TRAIN, "{c}/train.txt", "--resume"), 1, "m.spz.ckpt: there is no checkpoint"),
    "short row": ((*TRAIN, "short.txt"), 1, "short.txt:2: expected 3 columns, got 2"),
    "long row": ((*TRAIN, "long.txt"), 1, "long.txt:4: expected 3 columns, got 4"),
    "empty file": ((*TRAIN, "empty.txt"), 1, "empty.txt: expected at least one sentence, got an empty file"),
    "columns as crfsuite": (
        ("train", "chain", "{c}/train.txt", "--format", "crfsuite", "-o", "m.spz"),
        1,
        "train.txt:1: no line has",
    ),
    "no plain format": (
        ("train", "chain", "rag.txt", "-o", "m.spz"),
        1,
        "columns: 1 with 1, 1 with 2; the first: 'a DT'. Name it",
    ),
    "treebank for a chain": (("train", "chain", "tree.txt", "-o", "m.spz"), 1, "the format conllu; this looks like a treebank"),
    "columns as ocr": (("train", "chain", "{c}/train.txt", "--format", "ocr", "-o", "m.spz"), 1, "train.txt:1: expected 134"),
    "damaged gzip": ((*TRAIN, "cut.gz"), 1, "cut.gz: damaged or truncated gzip"),
    "no such fold": (("train", "chain", "{c}/train.data", "--format", "ocr", "--folds", "7", "-o", "m.spz"), 1, "has 0, 1, 2"),
    "model missing": (("predict", "none.spz", "{c}/test.txt"), 1, "none.spz: there is no such file"),
    "model truncated": (("predict", "truncated.spz", "{c}/test.txt"), 1, "truncated.spz: this model file was truncated"),
    "model with a flipped bit": (("predict", "flipped.spz", "{c}/test.txt"), 1, "checksum"),
    "model of a newer version": (("predict", "newer.spz", "{c}/test.txt"), 1, "format version 9"),
    "model is a pickle": (("predict", "pickle.spz", "{c}/test.txt"), 1, "pickle"),
    "model is no model": (("evaluate", "{c}/train.txt", "{c}/test.txt"), 1, "not a model file"),
    "too few columns": (("predict", "{c}/chunk.spz", "one.txt"), 1, "one.txt:1: expected 3 columns, or 2 without the labels"),
    "evaluate without labels": (("evaluate", "{c}/chunk.spz", "two.txt"), 1, "two.txt: expected labels"),
    "predictions over the model": (("predict", "{c}/chunk.spz", "two.txt", "-o", "{c}/chunk.spz"), 1, "files to be read"),
    "one column as predictions": (("evaluate", "--pred", "one.txt"), 1, "one.txt:1: expected at least 2 columns"),
}


@pytest.fixture(scope="session")
def bad_files(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of files that are wrong in one way each."""
    folder = tmp_path_factory.mktemp("bad")
    texts = {
        "short.txt": "a DT B-NP\nb NN\n",
        "long.txt": "a DT B-NP\nb NN I-NP\n\nc NN B-NP O\n",
        "empty.txt": "",
        "one.txt": "a\nb\n",
        "rag.txt": "a DT\nb\n",
        "tree.txt": "# text = a\n1\ta\ta\tX\t_\t_\t0\troot\t_\t_\n",
        "two.txt": "a DT\nb NN\n",
        "bad.toml": "max-itr = 3\n",
        "value.toml": "max-iter = 3.5\n",
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    model = (corpus / "chunk.spz").read_bytes()
    flipped = bytearray(model)
    flipped[len(model) // 2] ^= 4
    newer = re.sub(rb'("format_version": ?)1', rb"\g<1>9", model, count=1)
    assert newer != model
    (folder / "truncated.spz").write_bytes(model[: len(model) // 2])
    (folder / "flipped.spz").write_bytes(bytes(flipped))
    (folder / "newer.spz").write_bytes(newer)
    (folder / "pickle.spz").write_bytes(pickle.dumps({"w": 1}))
    (folder / "cut.gz").write_bytes(b"\x1f\x8b\x08\x00\x00")
    return folder


@pytest.mark.parametrize("name", [*USAGE, *FILES])
def test_bad_input_is_one_clear_line(name: str, here: Here, corpus: Path, bad_files: Path) -> None:
    """The exit code is that of the kind of mistake, the message says what and where, and no file appears."""
    arguments, code, message = {**USAGE, **FILES}[name]
    before = sorted(path.name for path in bad_files.iterdir())
    found, out, err = here(*(argument.replace("{c}", str(corpus)) for argument in arguments), cwd=bad_files)
    assert found == code, err
    assert out == ""
    assert "Traceback" not in err
    assert err.count("error: ") == 1
    assert message in err
    assert sorted(path.name for path in bad_files.iterdir()) == before


@pytest.mark.slow
@pytest.mark.parametrize("name", [*USAGE, *FILES])
def test_the_shell_sees_the_same(name: str, process: Shell, corpus: Path, bad_files: Path) -> None:
    """In a process of its own the program ends with the same exit code and message."""
    arguments, code, message = {**USAGE, **FILES}[name]
    done = process(*(argument.replace("{c}", str(corpus)) for argument in arguments), cwd=bad_files)
    assert (done.returncode, done.stdout) == (code, ""), done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_two_vs_show_the_traceback(shell: Shell) -> None:
    """With -vv an error of ours comes with all that led to it, and the one line still ends the message."""
    done = shell(*TRAIN, "-", "-vv", stdin="a b\n")
    assert done.returncode == 1
    assert "Traceback" in done.stderr
    assert done.stderr.splitlines()[-1].startswith("error: <stdin>:1: expected 3 columns")


@pytest.mark.slow
def test_a_full_disk_behind_stdout(corpus: Path, shell: Shell) -> None:
    """Where standard output cannot be written, the exit code is 1 and the reason is named."""
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    with open("/dev/full", "w") as full:
        command = [*PROGRAM, "predict", str(corpus / "chunk.spz"), str(corpus / "test.txt")]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=1800)
    assert done.returncode == 1
    assert "No space left" in done.stderr
    assert "Traceback" not in done.stderr
