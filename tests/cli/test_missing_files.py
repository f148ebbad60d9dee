"""A file that is not there is reported before anything expensive is imported."""

import subprocess
import sys
from pathlib import Path

import pytest

PROBE = """
import sys
from structpred.cli.app import run
from structpred.cli.session import Session
code = run(Session(tuple(sys.argv[1:])))
print(code, *(name for name in ("numba", "scipy", "sklearn", "structpred.models.base", "structpred.io") if name in sys.modules))
"""
TRAIN = ("--format", "conll2000", "--template", "chunking", "-o", "new.spz")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("predict", "empty", "none.txt"), "error: DATA none.txt: there is no such file"),
        (("evaluate", "none.spz", "empty"), "error: MODEL none.spz: there is no such file"),
        (("train", "chain", "empty", "--dev", "none.txt", *TRAIN), "error: --dev none.txt: there is no such file"),
        (("validate", "."), "error: FILE .: expected a file, got a folder"),
    ],
)
def test_missing_files_come_before_expensive_imports(tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    """The message names the file and its place on the command line; no model, reader, compiler or SciPy was imported for it."""
    (tmp_path / "empty").touch()
    command = [sys.executable, "-P", "-c", PROBE, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=600, check=False)
    assert (done.stdout, done.stderr) == ("1\n", f"{message}\n")
