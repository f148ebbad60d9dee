"""Promises of `train` where its checkpoint cannot be written, or is being written by another run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from cli_helpers import Shell

from structpred.trainers.running.checkpoints import claimed

OPTIONS = ["--format", "conll2000", "--template", "chunking", "--max-iter", "2", "-o", "m.spz"]


@pytest.mark.slow
def test_a_checkpoint_that_cannot_be_written_is_a_warning(corpus: Path, tmp_path: Path) -> None:
    """Where no checkpoint fits on the disk, a warning says so, the model is written and the exit code is 0."""
    (tmp_path / "full.py").write_text(
        "import errno\nfrom structpred.cli.app import main\nfrom structpred.storage import atomic\n"
        "real = atomic._write_temporary\n"
        "def write(path, data, mode):\n    if '.ckpt' in path.name:\n        raise OSError(errno.ENOSPC, 'full')\n"
        "    real(path, data, mode)\natomic._write_temporary = write\nmain()\n"
    )
    done = subprocess.run(
        [sys.executable, "full.py", "train", "chain", str(corpus / "train.txt"), *OPTIONS],
        cwd=tmp_path, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "warning: no checkpoint after 2 passes: m.spz.ckpt: could not be written: the disk is full" in done.stderr
    assert "training continues" in done.stderr
    assert (tmp_path / "m.spz").exists()


def test_a_checkpoint_of_a_run_that_goes_on_is_an_error(shell: Shell, corpus: Path, tmp_path: Path) -> None:
    """While another run writes the checkpoint, `train` ends with exit code 1 and a line that says so, before it reads."""
    with claimed(tmp_path / "m.spz.ckpt"):
        done = shell("train", "chain", str(corpus / "train.txt"), *OPTIONS)
    assert done.returncode == 1
    assert done.stderr.startswith("error: m.spz.ckpt: another run is writing this checkpoint")
    assert not (tmp_path / "m.spz").exists()
