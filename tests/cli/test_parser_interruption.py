"""Promises of `train parser` when it is interrupted in either stage: checkpoints, how to go on, and the same model in the end."""

import os
import signal
import subprocess
import tempfile
from pathlib import Path

import pytest
from cli_helpers import PROGRAM, Shell, hear_interrupts

from structpred.models import DependencyParser

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals are sent as POSIX systems do")

LONG = ("--max-iter", "150", "--check-every", "75")


def stopped(command: list[str], stage: str, number: signal.Signals, folder: Path) -> tuple[int, str, str]:
    """Start the training, send the signal once the stage has passes behind it: exit code, stdout, stderr."""
    with tempfile.TemporaryFile("w+", encoding="utf-8") as errors:  # no pipe: nobody would read it before the signal
        child = subprocess.Popen(
            [*PROGRAM, *command, "-o", "broken.spz", "--json"],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            pipesize=4096,  # soon full: the run waits for its reader, and cannot end before the signal
            preexec_fn=hear_interrupts,
        )
        assert child.stdout is not None
        while f'"stage": "{stage}"' not in child.stdout.readline():
            assert child.poll() is None
        child.send_signal(number)
        out, _ = child.communicate(timeout=1800)
        errors.seek(0)
        return child.returncode, out, errors.read()


def check_same(folder: Path) -> None:
    """Arcs and relations of broken.spz and whole.spz have the same weights, certificates and held-out scores, to the bit."""
    broken, whole = (DependencyParser.load(folder / f"{name}.spz") for name in ("broken", "whole"))
    for one, other in ((broken, whole), (broken.relations_, whole.relations_)):
        assert one is not None
        assert other is not None
        assert one.coef_.tobytes() == other.coef_.tobytes()
        assert one.certificate_ == other.certificate_
        assert [row["dev_score"] for row in one.history_] == [row["dev_score"] for row in other.history_]


@pytest.mark.parametrize(
    ("trainer", "stage", "number"),
    [
        ("mira", "arcs", signal.SIGINT),
        pytest.param("bcfw", "relations", signal.SIGTERM, marks=pytest.mark.slow),
        pytest.param("bcfw", "arcs", signal.SIGTERM, marks=pytest.mark.slow),
        pytest.param("mira", "relations", signal.SIGINT, marks=pytest.mark.slow),
        pytest.param("perceptron", "arcs", signal.SIGINT, marks=pytest.mark.slow),
    ],
)
@pytest.mark.slow
def test_an_interrupted_run_goes_on_to_the_same_model(
    trainer: str, stage: str, number: signal.Signals, shell: Shell, treebanks: Path, tmp_path: Path
) -> None:
    """Interrupted in either stage, it exits with 130 and says how to go on; that ends in the unbroken run's very weights."""
    command = ["train", "parser", str(treebanks / "train.conllu"), "--trainer", trainer, *LONG, "--prune", "3"]
    command += ["--dev", str(treebanks / "dev.conllu")]
    code, out, err = stopped(command, stage, number, tmp_path)
    assert code == 130, err
    assert "Traceback" not in err
    assert err.rstrip().endswith("--resume")
    assert '"event": "interrupted"' in out
    kept = {"broken.spz.ckpt"} | ({"broken.spz.ckpt.relations"} if stage == "relations" else set())
    assert set(os.listdir(tmp_path)) == kept
    resumed = shell(*command, "-o", "broken.spz", "--resume", "-q")
    assert (resumed.returncode, resumed.stderr) == (0, ""), resumed.stderr
    assert shell(*command, "-o", "whole.spz", "-q").returncode == 0
    assert sorted(os.listdir(tmp_path)) == ["broken.spz", "whole.spz"]
    check_same(tmp_path)


@pytest.mark.slow
def test_a_killed_run_goes_on_to_the_same_model(shell: Shell, treebanks: Path, tmp_path: Path) -> None:
    """Killed without notice in the second stage, the run goes on behind the first, and ends in the same weights."""
    command = ["train", "parser", str(treebanks / "train.conllu"), *LONG]
    code, _, _ = stopped(command, "relations", signal.SIGKILL, tmp_path)
    assert code == -signal.SIGKILL
    resumed = shell(*command, "-o", "broken.spz", "--resume", "-q")
    assert (resumed.returncode, resumed.stderr) == (0, ""), resumed.stderr
    assert shell(*command, "-o", "whole.spz", "-q").returncode == 0
    check_same(tmp_path)


def test_a_named_checkpoint_makes_a_run_longer(shell: Shell, treebanks: Path, tmp_path: Path) -> None:
    """A named checkpoint stays, of both stages, and a run resumed with more passes is the longer run; another run is refused."""
    command = ["train", "parser", str(treebanks / "train.conllu"), "-q"]
    kept = ["--checkpoint", "keep.ckpt"]
    assert shell(*command, "-o", "broken.spz", "--max-iter", "2", *kept).returncode == 0
    assert sorted(os.listdir(tmp_path)) == ["broken.spz", "keep.ckpt", "keep.ckpt.relations"]
    other = shell(*command, "-o", "broken.spz", "-C", "3", *kept, "--resume")
    assert other.returncode == 1
    assert "belongs to another run" in other.stderr
    assert shell(*command, "-o", "broken.spz", "--max-iter", "5", *kept, "--resume").returncode == 0
    assert shell(*command, "-o", "whole.spz", "--max-iter", "5").returncode == 0
    check_same(tmp_path)


@pytest.mark.slow
def test_a_new_run_forgets_the_old_relations(shell: Shell, treebanks: Path, tmp_path: Path) -> None:
    """A run that starts anew leaves nothing of an earlier one's second stage for a later --resume to stumble over."""
    command = ["train", "parser", str(treebanks / "train.conllu"), "--checkpoint", "keep.ckpt"]
    assert shell(*command, "-o", "old.spz", "--max-iter", "2", "--label-C", "5").returncode == 0
    code, _, err = stopped([*command, *LONG], "arcs", signal.SIGINT, tmp_path)
    assert code == 130, err
    assert "keep.ckpt.relations" not in os.listdir(tmp_path)
    resumed = shell(*command, *LONG, "-o", "broken.spz", "--resume", "-q")
    assert (resumed.returncode, resumed.stderr) == (0, ""), resumed.stderr
