"""Promises of the command line on good input: what each command writes, where, and the exit code."""

import gzip
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
from cli_helpers import PROGRAM, Shell

from structpred.cli.app import COMMANDS, program
from structpred.models import ChainLabeler

CHUNKING = ("--format", "conll2000", "--template", "chunking")


def test_help_is_quick_and_names_every_command() -> None:
    """`structpred --help` loads neither NumPy nor scikit-learn nor numba, and names every command."""
    code = (
        "import sys\nfrom structpred.cli.app import run\nfrom structpred.cli.session import Session\n"
        "assert run(Session(('--help',))) == 0\n"
        "heavy = {'numpy', 'scipy', 'sklearn', 'numba'} & set(sys.modules)\nassert not heavy, heavy\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for name in ("train", "predict", "evaluate", "check-oracle", "doctor"):
        assert f"\n  {name} " in done.stdout


def test_train_says_what_it_does_and_leaves_one_file(shell: Shell, corpus: Path, tmp_path: Path) -> None:
    """Training reports data, passes, the certificate and its meaning on stderr, nothing on stdout, and removes its checkpoint."""
    done = shell("train", "chain", str(corpus / "train.txt"), *CHUNKING, "-o", "m.spz", "--dev", str(corpus / "test.txt"))
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert "120 sequences" in done.stderr
    passes = re.findall(r"^pass +(\d+) +\d+\.\d s .* dev \d+\.\d\d %$", done.stderr, re.M)
    assert passes == [str(k) for k in range(1, len(passes) + 1)] != []
    assert "primal" in done.stderr
    assert "best dev score" in done.stderr
    assert "these weights are kept, any bounds are theirs" in done.stderr
    assert os.listdir(tmp_path) == ["m.spz"]
    reader = {"format": "conll2000", "label_column": 2, "n_columns": 3, "template": "chunking", "missing": "_"}
    model = ChainLabeler.load(tmp_path / "m.spz")
    assert model.reader_ == reader
    assert f"\n{model.certificate_.meaning()}\n" in done.stderr


def test_a_command_stands_in_a_file_of_its_name() -> None:
    """A stranger finds a command in cli/NAME.py; only what shares its options or its one question with another lies beside it."""
    files = {name: program.get_command(click.Context(program), name).callback.__module__ for name in COMMANDS}
    named = {name: f"structpred.cli.{'import_model' if name == 'import' else name}" for name in COMMANDS}
    assert [name for name in COMMANDS if files[name] != named[name]] == ["evaluate", "export", "report", "check-oracle"]


@pytest.mark.slow
def test_quiet_says_nothing(process: Shell, corpus: Path) -> None:
    """With --quiet a run without trouble writes nothing to stdout or stderr."""
    done = process("train", "chain", str(corpus / "train.txt"), *CHUNKING, "-o", "m.spz", "--max-iter", "2", "-q")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_events_are_lines_of_json(shell: Shell, corpus: Path) -> None:
    """With --json stdout holds a start event, one event a pass, and an end event with the certificate; seeds decide the run."""
    command = ("train", "chain", str(corpus / "train.txt"), *CHUNKING, "-o", "m.spz", "--max-iter", "3", "--json", "--seed", "4")
    events = [json.loads(line) for line in shell(*command).stdout.splitlines()]
    assert [event["event"] for event in events] == ["start", "pass", "pass", "pass", "end"]
    assert events[0]["sequences"] == 120
    assert events[-1]["dual"] <= events[-1]["primal"]
    again = [json.loads(line) for line in shell(*command).stdout.splitlines()]
    assert again[-1]["primal"] == events[-1]["primal"]


def test_predict_adds_a_column(shell: Shell, corpus: Path, tmp_path: Path) -> None:
    """Column files come back as they were with one more column, to a file as to stdout, and without labels as well."""
    text = (corpus / "test.txt").read_text()
    done = shell("predict", str(corpus / "chunk.spz"), str(corpus / "test.txt"))
    assert done.returncode == 0, done.stderr
    assert "\n".join(line.rpartition(" ")[0] for line in done.stdout.split("\n")) == text
    assert shell("predict", str(corpus / "chunk.spz"), str(corpus / "test.txt"), "-o", "out.txt").stdout == ""
    assert (tmp_path / "out.txt").read_text() == done.stdout
    bare = "\n".join(line.rpartition(" ")[0] for line in text.split("\n"))
    piped = shell("predict", str(corpus / "chunk.spz"), "-", stdin=bare)
    assert [line.split(" ")[-1] for line in piped.stdout.split("\n")] == [line.split(" ")[-1] for line in done.stdout.split("\n")]


def test_gzip_is_read_and_written(shell: Shell, corpus: Path, tmp_path: Path) -> None:
    """Packed data give the same result, and a name ending in .gz is written packed."""
    (tmp_path / "test.txt.gz").write_bytes(gzip.compress((corpus / "test.txt").read_bytes()))
    done = shell("predict", str(corpus / "chunk.spz"), "test.txt.gz", "-o", "out.gz")
    assert done.returncode == 0, done.stderr
    plain = shell("predict", str(corpus / "chunk.spz"), str(corpus / "test.txt"))
    assert gzip.decompress((tmp_path / "out.gz").read_bytes()).decode() == plain.stdout


def test_evaluate_agrees_with_its_parts(shell: Shell, corpus: Path) -> None:
    """The JSON has every promised figure, equal to those of --pred on the predictions; the table shows types if asked."""
    model, data = str(corpus / "chunk.spz"), str(corpus / "test.txt")
    figures = json.loads(shell("evaluate", model, data, "--json").stdout)
    names = {"token_accuracy", "f1", "precision", "recall", "f1_strict", "sequence_accuracy", "n_tokens", "n_sequences", "scheme"}
    assert names <= set(figures)
    assert figures["n_sequences"] == 40
    assert figures["f1"] > 0.8
    piped = shell("evaluate", "--pred", "-", "--json", stdin=shell("predict", model, data).stdout)
    assert json.loads(piped.stdout) == figures
    short, long = shell("evaluate", model, data).stdout, shell("evaluate", model, data, "--per-type").stdout
    assert "\nVP " in long
    assert [line for line in long.splitlines() if line[:3] not in ("NP ", "VP ", "PP ")] == short.splitlines()
    assert "\nVP " not in short


def test_labels_and_confusions_are_listed_if_asked(shell: Shell, corpus: Path) -> None:
    """--per-label adds precision and recall of labels, --most-confused the confusions with their words; also for --pred."""
    model, asked = str(corpus / "chunk.spz"), ("--per-label", "--most-confused")
    data = str(corpus / "new.txt")
    (corpus / "new.txt").write_text((corpus / "test.txt").read_text().replace("B-PP", "B-NEW"))
    more = shell("evaluate", model, data, *asked).stdout
    assert more.startswith(shell("evaluate", model, data).stdout.rstrip())
    assert "\nB-NP " in more
    assert "B-NEW  B-PP" in more.split("for example")[1]
    assert "[" in more.split("for example")[1]
    assert "no token is wrong" in shell("evaluate", model, str(corpus / "test.txt"), *asked).stdout
    assert shell("evaluate", "--pred", "-", *asked, stdin=shell("predict", model, data).stdout).stdout == more


def test_an_unseen_label_is_wrong_not_an_error(shell: Shell, corpus: Path) -> None:
    """A gold label that the model has never seen counts as wrong when evaluating."""
    text = (corpus / "test.txt").read_text().replace("B-PP", "B-NEW")
    done = shell("evaluate", str(corpus / "chunk.spz"), "-", "--json", stdin=text)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["per_type"]["NEW"]["n_correct"] == 0


@pytest.mark.parametrize("extra", [(), ("--n-bits", "12")], ids=["dictionary", "hashed"])
def test_crfsuite_text(shell: Shell, corpus: Path, extra: tuple[str, ...]) -> None:
    """CRFsuite's text trains, with names or hashed, and predict writes one label per line, a blank line between sequences."""
    done = shell("train", "chain", str(corpus / "train.crf"), "--format", "crfsuite", "-o", "m.spz", *extra)
    assert done.returncode == 0, done.stderr
    labels = shell("predict", "m.spz", str(corpus / "test.crf")).stdout
    gold = (corpus / "test.crf").read_text().split("\n")
    assert [bool(line) for line in labels.split("\n")] == [bool(line) for line in gold]
    right = sum(line.split("\t")[0] == label for line, label in zip(gold, labels.split("\n"), strict=True))
    assert right > 0.8 * len(gold)


def test_ocr_letters(shell: Shell, corpus: Path) -> None:
    """OCR data train on chosen folds, are judged on others, and predict writes id and letter, from a pipe as well."""
    data = corpus / "train.data"
    done = shell(
        "train", "chain", str(data), "--format", "ocr", "--folds", "1-2", "-o", "m.spz", "--dev", str(data), "--dev-folds", "0"
    )
    assert done.returncode == 0, done.stderr
    assert "80 sequences" in done.stderr
    figures = json.loads(shell("evaluate", "m.spz", str(data), "--fold", "0", "--json").stdout)
    assert figures["n_sequences"] == 40
    assert figures["sequence_accuracy"] > 0.8
    letters = shell("predict", "m.spz", str(data)).stdout
    ids = [line.split("\t")[0] for line in data.read_text().splitlines()]
    assert [line.split("\t")[0] for line in letters.splitlines()] == ids
    assert shell("predict", "m.spz", "-", stdin=data.read_text()).stdout == letters


def test_a_config_file_holds_any_option(shell: Shell, corpus: Path, tmp_path: Path) -> None:
    """Options come from the file, in either spelling, and the command line wins."""
    lines = ['format = "conll2000"', 'template = "chunking"', "max_iter = 7", "C = 0.5", 'output = "m.spz"', "quiet = true"]
    (tmp_path / "c.toml").write_text("\n".join(lines))
    done = shell("train", "chain", str(corpus / "train.txt"), "--config", "c.toml", "--max-iter", "2")
    assert (done.returncode, done.stderr) == (0, "")
    model = ChainLabeler.load(tmp_path / "m.spz")
    assert (model.C, model.max_iter, model.n_iter_) == (0.5, 2, 2)


def test_strict_tells_by_the_exit_code(shell: Shell, corpus: Path, tmp_path: Path) -> None:
    """--strict exits with 3 where the gap is too large, with the model written, and with 0 where --tol is reached."""
    command = ("train", "chain", str(corpus / "train.txt"), *CHUNKING, "-o", "m.spz", "--strict", "--tol", "0.5")
    done = shell(*command, "--max-iter", "1")
    assert done.returncode == 3
    assert "not converged" in done.stderr
    assert (tmp_path / "m.spz").exists()
    assert shell(*command, "--max-iter", "200", "--check-every", "5").returncode == 0


def test_a_template_file_and_a_label_column(shell: Shell, corpus: Path, tmp_path: Path) -> None:
    """CRF++ templates work on columns whose label is not the last."""
    rows = [line.split(" ") for line in (corpus / "train.txt").read_text().split("\n")]
    (tmp_path / "t.txt").write_text("\n".join(f"{r[2]} {r[0]} {r[1]}" if len(r) == 3 else "" for r in rows))
    (tmp_path / "crfpp.txt").write_text("U00:%x[0,1]\nU01:%x[-1,1]/%x[0,2]\nB\n")
    command = ("train", "chain", "t.txt", "--format", "columns", "--template", "crfpp.txt", "-o", "m.spz")
    assert "holds the labels" not in shell(*command, "--label-column", "0").stderr
    os.remove(tmp_path / "crfpp.txt")  # the model has its own copy
    assert shell("evaluate", "m.spz", "t.txt").returncode == 0


@pytest.mark.slow
def test_a_closed_pipe_is_no_traceback(corpus: Path) -> None:
    """A reader that goes away, as `head` does, ends the program silently."""
    command = [*PROGRAM, "predict", str(corpus / "chunk.spz"), str(corpus / "test.txt")]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stderr is not None
    child.stdout.close()
    assert child.stderr.read() == ""
    assert child.wait(1800) == 141
    child.stderr.close()


@pytest.mark.slow
def test_lost_events_do_not_stop_training(corpus: Path, tmp_path: Path) -> None:
    """Where the reader of --json goes away, training continues and the model is written."""
    command = [*PROGRAM, "train", "chain", str(corpus / "train.txt"), *CHUNKING, "-o", str(tmp_path / "m.spz"), "--json"]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stdout is not None
    child.stdout.close()
    assert "training continues" in child.communicate()[1]
    assert child.returncode == 0
    assert (tmp_path / "m.spz").exists()


@pytest.mark.slow
def test_check_oracle(process: Shell, tmp_path: Path) -> None:
    """A sound oracle from the working folder passes with 0; one that minimises fails with 1 and the rule in words."""
    (tmp_path / "mine.py").write_text(
        "from structpred.oracles.multiclass import MulticlassOracle\n\n\n"
        "class Bad(MulticlassOracle):\n    def argmax(self, scores, shape):\n        return super().argmax(-scores, shape)\n"
    )
    good = process("check-oracle", "structpred.oracles.multiclass:MulticlassOracle")
    assert (good.returncode, good.stderr) == (0, "")
    assert "wrong argmax" in good.stdout
    bad = process("check-oracle", "mine:Bad")
    assert bad.returncode == 1
    assert "negated scores" in bad.stdout
    assert process("check-oracle", "mine:Missing").returncode == 2
    assert process("check-oracle", "no_such_module:X").returncode == 2


@pytest.mark.slow
def test_doctor_speaks_json(process: Shell) -> None:
    """`doctor --json` is one object whose verdict agrees with the exit code."""
    done = process("doctor", "--json")
    assert json.loads(done.stdout)["ok"] == (done.returncode == 0)


def test_the_installed_command_is_the_same(corpus: Path) -> None:
    """The script that installation makes runs the same program."""
    script = shutil.which("structpred", path=str(Path(sys.executable).parent))
    if script is None:
        pytest.skip("structpred is not installed here as a command")
    done = subprocess.run([script, "--version"], capture_output=True, text=True, check=False)
    assert done.stdout.startswith("structpred ")
