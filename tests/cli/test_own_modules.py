"""MODULE:CLASS on the command line: installed modules first, then the working folder."""

import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from structpred.cli.own_code import made
from structpred.core.oracle import Oracle

ROOT = Path(__file__).resolve().parents[2]
ORACLE = "from structpred.oracles.multiclass import MulticlassOracle\n\n\nclass Mine(MulticlassOracle):\n    pass\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, which Python's own path does not have."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    return tmp_path


@pytest.mark.slow
def test_a_file_in_the_working_folder_takes_no_module_s_place(tmp_path: Path) -> None:
    """A `numba.py` beside the user does not run where an oracle of the package, or a module of the user's own, is checked."""
    (tmp_path / "numba.py").write_text("import sys\nsys.exit('planted code ran')\n")
    (tmp_path / "own_tours.py").write_text(ORACLE)
    for name in ("structpred.oracles.multiclass:MulticlassOracle", "own_tours:Mine"):
        done = subprocess.run(
            [sys.executable, "-P", "-m", "structpred.cli", "check-oracle", name],
            capture_output=True, text=True, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False,
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, "")


def test_the_working_folder_comes_last(folder: Path) -> None:
    """The path is changed where the module is found nowhere else, and then at its end."""
    before = list(sys.path)
    made("structpred.oracles.multiclass:MulticlassOracle", Oracle, "a:B")
    assert sys.path == before
    (folder / "own_places.py").write_text(ORACLE)
    assert type(made("own_places:Mine", Oracle, "a:B")).__name__ == "Mine"
    assert sys.path == [*before, str(folder)]


def test_the_module_that_was_found_is_named(folder: Path) -> None:
    """Where an installed module hides the user's own, the error says which file was read."""
    (folder / "wave.py").write_text(ORACLE)
    with pytest.raises(click.UsageError, match=r"wave \(.*wave\.py\) has no 'Mine'") as found:
        made("wave:Mine", Oracle, "a:B")
    assert str(folder) not in str(found.value)
    with pytest.raises(click.UsageError, match="no module 'own_nowhere' here or among the installed ones"):
        made("own_nowhere:Mine", Oracle, "a:B")
    (folder / "own_lacking.py").write_text("import own_neighbour\n")
    with pytest.raises(ModuleNotFoundError, match="own_neighbour"):
        made("own_lacking:Mine", Oracle, "a:B")
