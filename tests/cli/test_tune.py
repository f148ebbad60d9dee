"""Promises of `structpred tune`: one command for each kind of model, the same end after any interruption."""

import json
import os
import shlex
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cli_helpers import PROGRAM, Shell, hear_interrupts

from structpred.models import ChainLabeler
from structpred.models.files import load_estimator

CHUNKING = ("--format", "conll2000", "--template", "chunking")


def chains(corpus: Path, *more: str) -> tuple[str, ...]:
    """A small search over settings of a chain."""
    files = ("--train", str(corpus / "train.txt"), "--dev", str(corpus / "test.txt"))
    grid = ("--C", "0.003", "0.03", "0.3", "--trainer", "sgd", "bcfw")
    return ("tune", "chain", *files, *CHUNKING, *grid, "--max-iter", "9", *more)


def without_seconds(printed: str) -> Any:
    """What --json prints, without what differs from run to run."""
    found = json.loads(printed)
    return {**found, "cpu_seconds": 0, "trials": [{**trial, "cpu_seconds": 0} for trial in found["trials"]]}


@pytest.mark.slow
def test_the_command_that_it_prints_trains_the_best(shell: Shell, corpus: Path, tmp_path: Path) -> None:
    """A table and a command on standard output; the command gives a model with the score of the table. A picture is drawn."""
    done = shell(*chains(corpus, "--picture", "p.svg", "--resume", "run", "--min-count", "1", "3"))
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["min_count", "C", "trainer", "passes", "dev", "score", "at", "pass", "CPU", "s"]
    assert len(lines) == 1 + 12 + 3
    assert lines[1].endswith("best")
    assert "pass 1, 12 of 12: min_count 3, C 0.3, trainer bcfw: " in done.stderr
    words = shlex.split(lines[-1])
    assert words[:5] == ["structpred", "train", "chain", str(corpus / "train.txt"), "-o"]
    assert shell(*words[1:], "-q").returncode == 0
    model = ChainLabeler.load(tmp_path / "best.spz")
    assert f"{100 * model.history_[-1]['dev_score']:.2f} %" == " ".join(lines[1].split()[4:6])
    assert (tmp_path / "p.svg").read_text().startswith("<?xml")
    assert sorted(os.listdir(tmp_path)) == ["best.spz", "p.svg", "run"]
    again = shell(*chains(corpus, "--resume", "run", "--min-count", "1", "3"))
    assert again.stdout == done.stdout
    assert "pass 1" not in again.stderr  # all of it is known


def test_folds_and_trainers_with_settings(shell: Shell, corpus: Path) -> None:
    """With --cv no held-out data are needed; trainers take settings, here and in the command that trains the best."""
    command = ("tune", "chain", "--train", str(corpus / "train.txt"), *CHUNKING, "--cv", "3", "--max-iter", "3", "--json")
    done = shell(*command, "--trainer", "bcfw,gap_sampling=True", "bcfw,averaged=False", "-C", "0.01", "--dev-metric", "f1")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["score"] == "f1"
    assert found["best"]["setting"]["trainer"] in ("bcfw,gap_sampling=True", "bcfw,averaged=False")
    assert found["command"].endswith(f"--dev-metric f1 --C 0.01 --max-iter {found['best']['passes']} --trainer "
                                     f"{found['best']['setting']['trainer']}")  # fmt: skip


@pytest.mark.slow
def test_every_kind_of_model_is_tuned(shell: Shell, treebanks: Path, labelled: Path) -> None:
    """Parsers by UAS, without relations, which have no part in it; multi-label models by their accuracy; on folds, too."""
    parser = ("tune", "parser", "--train", str(treebanks / "train.conllu"), "-C", "0.001", "0.1", "--max-iter", "3", "--json")
    found = [json.loads(shell(*parser, *more).stdout) for more in (("--dev", str(treebanks / "dev.conllu")), ("--cv", "2"))]
    assert [len(one["trials"]) for one in found] == [2, 2]
    assert [one["score"] for one in found] == ["UAS", "UAS"]
    assert "--unlabelled" not in found[0]["command"]
    assert found[0]["command"].endswith(str(treebanks / "dev.conllu"))
    weather = ("tune", "multilabel", "--train", str(labelled / "weather-train.arff"), "--max-iter", "3", "--json")
    grids = (("-C", "0.01", "1"), ("--edges", "none", "tree"))
    found = [json.loads(shell(*weather, "--cv", "2", *grid).stdout) for grid in grids]
    assert found[0]["command"].endswith("--tol 0.0")
    assert {trial["setting"]["edges"] for trial in found[1]["trials"]} == {"none", "tree"}


def test_label_sets_are_tuned_in_one_line(shell: Shell, labelled: Path, tmp_path: Path) -> None:
    """Without values there is a grid by the data, less what is given, on three folds; -o runs the command that is printed."""
    weather, tree = (str(labelled / f"{name}-train.arff") for name in ("weather", "tree"))
    done = shell("tune", "multilabel", weather, "--max-iter", "1", "--scale", "maxabs", "-o", "m.spz", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert len(found["trials"]) >= 10
    assert "scale" not in found["best"]["setting"]
    assert {trial["setting"]["edges"] for trial in found["trials"]} == {"none", "complete"}
    assert all({"edges", "C"} <= set(trial["setting"]) and trial["passes"] == 1 for trial in found["trials"])
    assert "pass 1, 30 of " in done.stderr
    model, words = load_estimator(tmp_path / "m.spz", "MultiLabelMRF"), shlex.split(found["command"])
    assert found["best"]["setting"]["C"] == model.C
    assert words[:6] == ["structpred", "train", "multilabel", weather, "-o", "m.spz"]
    again = shell(*[word.replace("m.spz", "again.spz") for word in words[1:]])
    assert again.returncode == 0, again.stderr
    np.testing.assert_array_equal(load_estimator(tmp_path / "again.spz", "MultiLabelMRF").coef_, model.coef_)
    done = shell("tune", "multilabel", tree, "--max-iter", "1", "-C", "1", "--dev", str(labelled / "tree-test.arff"), "--json")
    assert done.returncode == 0, done.stderr
    trials = json.loads(done.stdout)["trials"]
    assert {(trial["setting"]["require"], trial["setting"]["scale"]) for trial in trials} == {
        ("auto", "standard"),
        ("none", "standard"),
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--C 0.1", "nothing to choose from: give an option several values, such as --C 0.1 0.3 1"),
        ("--C 0.1 1", "held-out data are needed: --dev FILE, or --cv K"),
        ("--C 0.1 1 --dev {dev} --cv 3", "--cv K cannot be combined with held-out data"),
        ("--C 0.1 0 --dev {dev}", "Invalid value for '--C' / '-C': 0.0 is not in the range x>0."),
        ("--C 0.1 nan --dev {dev}", "-C and --tol must be finite numbers"),
        ("--C 0.1 0.1 --dev {dev}", "C: 0.1 is given twice"),
        ("--C --dev {dev}", "Option '--C' requires an argument."),
        ("--C 0.1 1 --dev {dev} {dev}", "--dev takes one value, which all settings share"),
        ("--C 0.1 1 --dev -", "files must be named: the data are read several times"),
        ("--C 0.1 1 --dev nowhere.txt", "--dev nowhere.txt: there is no such file"),
        ("--C 0.1 1 --dev {dev} --trainer sgd bcwf", "did you mean 'bcfw'?"),
        ("--C 0.1 1 --dev {dev} --trainer sgd,rate=1", "--trainer: sgd has no setting 'rate'; it has averaged"),
        ("--C 0.1 1 --dev {dev} --trainer sgd,averaged", "--trainer: expected NAME,SETTING=VALUE"),
        ("--C 0.1 1 --dev {dev} --min-passes 30", "min_passes must be at most max_passes"),
        ("--C 0.1 1 --dev {dev} --picture p.pdf", "expected a name that ends in .png or .svg"),
        ("--C 0.1 1 --dev {dev} --resume no/run", "no/run: the folder around it does not exist"),
    ],
)
def test_wrong_usage(arguments: str, message: str, shell: Shell, corpus: Path, tmp_path: Path) -> None:
    """What can be known to be wrong is an error of one line before anything is read or written."""
    words = arguments.format(dev=corpus / "test.txt").split()
    done = shell("tune", "chain", "--train", str(corpus / "train.txt"), *CHUNKING, *words)
    assert done.returncode in (1, 2)
    assert message in done.stderr.splitlines()[-1]
    assert "pass 1" not in done.stderr
    assert os.listdir(tmp_path) == []


def test_an_unknown_kind(shell: Shell) -> None:
    """An unknown kind of model is answered with the nearest one."""
    done = shell("tune", "chian")
    assert (done.returncode, done.stderr.splitlines()[-1]) == (
        2, "error: there is no command 'chian' of 'structpred tune'; did you mean 'chain'?",
    )  # fmt: skip


def test_values_in_a_configuration_file(shell: Shell, corpus: Path, tmp_path: Path) -> None:
    """Lists of a configuration file are the values of an option."""
    (tmp_path / "t.toml").write_text('format = "conll2000"\ntemplate = "chunking"\nC = [0.01, 0.1]\nmax-iter = 3\n')
    files = ("--train", str(corpus / "train.txt"), "--dev", str(corpus / "test.txt"))
    done = shell("tune", "chain", *files, "--config", "t.toml", "--json")
    assert done.returncode == 0, done.stderr
    assert [trial["setting"] for trial in json.loads(done.stdout)["trials"]] == [{"C": 0.01}, {"C": 0.1}]


@pytest.mark.slow
@pytest.mark.parametrize(("number", "jobs"), [(signal.SIGKILL, "1"), (signal.SIGKILL, "2"), (signal.SIGINT, "2")])
def test_killed_and_resumed(number: signal.Signals, jobs: str, shell: Shell, corpus: Path, tmp_path: Path) -> None:
    """Killed or interrupted again and again and continued with another number of processes: the table of a search in peace."""
    command = [*PROGRAM, *chains(corpus, "--json", "--resume", "run", "--jobs", jobs)]
    state, known = tmp_path / "run" / "tuning.json", 0
    for _ in range(2):
        child = subprocess.Popen(
            command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, preexec_fn=hear_interrupts
        )
        while child.poll() is None and (not state.exists() or len(json.loads(state.read_bytes())["runs"]) < known + 2):
            time.sleep(0.01)
        child.send_signal(number)
        err = child.communicate(timeout=600)[1]
        known = len(json.loads(state.read_bytes())["runs"])
        if number == signal.SIGINT:
            assert child.returncode == 130, err
            assert "interrupted: the state is kept in run. To continue:\n  structpred tune chain" in err
    resumed = shell(*chains(corpus, "--json", "--resume", "run"))
    assert resumed.returncode == 0, resumed.stderr
    assert without_seconds(resumed.stdout) == without_seconds(shell(*chains(corpus, "--json")).stdout)
    assert os.listdir(tmp_path / "run") == ["tuning.json"]


def test_a_trainer_with_settings_trains(shell: Shell, corpus: Path, tmp_path: Path) -> None:
    """`train`, too, takes a trainer with settings, and the model file says which."""
    command = ("train", "chain", str(corpus / "train.txt"), *CHUNKING, "-o", "m.spz", "--max-iter", "1")
    assert shell(*command, "--trainer", "bcfw,gap_sampling=True").returncode == 0
    assert load_estimator(tmp_path / "m.spz", "ChainLabeler").trainer.gap_sampling
