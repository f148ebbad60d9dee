"""Promises of `train` when it is interrupted: a checkpoint, how to go on, and the same model in the end."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from cli_helpers import PROGRAM, Shell, hear_interrupts

from structpred.cli import training
from structpred.models import ChainLabeler
from structpred.trainers.loop import Run

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals are sent as POSIX systems do")


@pytest.mark.parametrize(
    ("trainer", "number"),
    [
        ("bcfw", signal.SIGINT),
        pytest.param("sgd", signal.SIGTERM, marks=pytest.mark.slow),
        pytest.param("bcfw", signal.SIGHUP, marks=pytest.mark.slow),
        pytest.param("perceptron", signal.SIGINT, marks=pytest.mark.slow),
    ],
)
def test_an_interrupted_run_goes_on_to_the_same_model(
    trainer: str, number: signal.Signals, shell: Shell, corpus: Path, tmp_path: Path
) -> None:
    """Interrupted, it exits with 130, keeps a checkpoint and says how to go on; that ends in the unbroken run's very weights."""
    options = [
        "--format",
        "conll2000",
        "--template",
        "chunking",
        "--trainer",
        trainer,
        "--max-iter",
        "150",
        "--check-every",
        "50",
    ]
    command = ["train", "chain", str(corpus / "train.txt"), *options, "--dev", str(corpus / "test.txt")]
    child = subprocess.Popen(
        [*PROGRAM, *command, "-o", "broken.spz", "--json"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        pipesize=4096,  # soon full: the run waits for its reader, and cannot end before the signal
        preexec_fn=hear_interrupts,
    )
    assert child.stdout is not None
    while '"pass"' not in child.stdout.readline():
        assert child.poll() is None
    child.send_signal(number)
    out, err = child.communicate(timeout=1800)
    assert child.returncode == 130, err
    assert "Traceback" not in err
    assert err.rstrip().endswith("--resume")
    assert '"event": "interrupted"' in out
    assert sorted(os.listdir(tmp_path)) == ["broken.spz.ckpt"]
    resumed = shell(*command, "-o", "broken.spz", "--resume", "-q")
    assert (resumed.returncode, resumed.stderr) == (0, ""), resumed.stderr
    assert shell(*command, "-o", "whole.spz", "-q").returncode == 0
    assert sorted(os.listdir(tmp_path)) == ["broken.spz", "whole.spz"]
    broken, whole = (ChainLabeler.load(tmp_path / f"{name}.spz") for name in ("broken", "whole"))
    assert broken.coef_.tobytes() == whole.coef_.tobytes()
    assert broken.certificate_ == whole.certificate_
    assert [row["dev_score"] for row in broken.history_] == [row["dev_score"] for row in whole.history_]


@pytest.mark.slow
def test_two_signals_at_once_end_in_a_true_message(shell: Shell, corpus: Path, tmp_path: Path) -> None:
    """Ctrl-C twice, some milliseconds apart: the last line says what is there, and what is there can be resumed."""
    command = ["train", "chain", str(corpus / "train.txt"), "--format", "conll2000", "--template", "chunking", "-o", "m.spz"]
    for k, pause in enumerate((0.0, 0.001, 0.003, 0.01, 0.02, 0.04)):
        folder = tmp_path / str(k)
        folder.mkdir()
        child = subprocess.Popen(
            [*PROGRAM, *command, "--max-iter", "100000", "--json"],
            cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, pipesize=4096, preexec_fn=hear_interrupts,
        )  # fmt: skip
        assert child.stdout is not None
        while '"pass"' not in child.stdout.readline():
            assert child.poll() is None
        child.send_signal(signal.SIGINT)
        time.sleep(pause)
        child.send_signal(signal.SIGINT)
        _, err = child.communicate(timeout=1800)
        assert child.returncode == 130, err
        assert "Traceback" not in err
        there = os.listdir(folder)
        assert there in (["m.spz.ckpt"], [])
        assert err.rstrip().endswith("--resume" if there else "interrupted: there was no checkpoint yet, nothing was written")


def test_signals_after_the_first_do_not_lose_the_last_line(
    shell: Shell, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the last line of an interrupted command is made, further signals are not heard."""
    heard = []

    def broken(run: Run) -> None:
        raise KeyboardInterrupt

    def stamp(path: Path) -> None:
        heard.append(signal.getsignal(signal.SIGTERM))

    monkeypatch.setattr(Run, "go", broken)
    monkeypatch.setattr(training, "_stamp", stamp)
    ended = shell(
        "train", "chain", str(corpus / "train.txt"), "--format", "conll2000", "--template", "chunking", "-o", "m.spz", "-q"
    )
    assert (ended.returncode, ended.stderr) == (130, "interrupted: there was no checkpoint yet, nothing was written\n")
    assert heard[-1] is signal.SIG_IGN
    assert os.listdir(tmp_path) == []


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=["Ctrl-C", "SIGTERM", "SIGHUP"])
def test_an_interruption_while_reading_leaves_nothing(number: signal.Signals, tmp_path: Path) -> None:
    """Before training has begun there is nothing to keep: exit code 130, one line, no file."""
    os.mkfifo(tmp_path / "pipe")
    command = [*PROGRAM, "train", "chain", "pipe", "--format", "conll2000", "--template", "chunking", "-o", "m.spz"]
    child = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True, preexec_fn=hear_interrupts)
    handle = os.open(tmp_path / "pipe", os.O_WRONLY)  # returns once the program has opened it to read
    child.send_signal(number)
    _, err = child.communicate(timeout=1800)
    os.close(handle)
    assert child.returncode == 130, err
    assert err == "interrupted: nothing was written\n"
    assert os.listdir(tmp_path) == ["pipe"]


def test_another_run_does_not_resume(shell: Shell, corpus: Path, tmp_path: Path) -> None:
    """A checkpoint of other settings is refused, and a named checkpoint stays after a whole run."""
    command = [
        "train",
        "chain",
        str(corpus / "train.txt"),
        "--format",
        "conll2000",
        "--template",
        "chunking",
        "-o",
        "m.spz",
        "-q",
    ]
    assert shell(*command, "--checkpoint", "keep.ckpt").returncode == 0
    assert sorted(os.listdir(tmp_path)) == ["keep.ckpt", "m.spz"]
    done = shell(*command, "--checkpoint", "keep.ckpt", "--resume", "-C", "3")
    assert done.returncode == 1
    assert "belongs to another run" in done.stderr
    longer = shell(*command, "--checkpoint", "keep.ckpt", "--resume", "--max-iter", "15")
    assert longer.returncode == 0
    assert ChainLabeler.load(tmp_path / "m.spz").n_iter_ == 15
