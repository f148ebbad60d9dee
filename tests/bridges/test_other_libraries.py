"""The page docs/howto/other_libraries.md shows what its code prints, and `structpred.bridges` what it has."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from structpred import bridges

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_the_page_shows_what_its_code_prints(tmp_path: Path) -> None:
    """Every block runs in its turn, and prints what stands below it."""
    for name in ("pandas", "datasets", "spacy", "nltk"):
        pytest.importorskip(name, reason=f"{name} is not installed: pip install 'structpred[bridges]'")
    text = (ROOT / "docs" / "howto" / "other_libraries.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", text, re.DOTALL)
    known = "from structpred.bridges import annotator\nannotator.factory\n"  # what the entry point does where it is installed
    code = known + "\nprint('@', end='')\n".join(block for block, _ in blocks)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-P", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, cwd=tmp_path, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("@") == [output for _, output in blocks]


def test_nothing_is_imported_before_it_is_used() -> None:
    """structpred.bridges and its component load none of the libraries, nor a model; public names are there when asked for."""
    code = "import sys, structpred.bridges.annotator\n"
    code += "found = {'pandas', 'datasets', 'spacy', 'nltk', 'numba', 'structpred.models.chain'} & set(sys.modules)\n"
    command = [sys.executable, "-c", f"{code}assert not found, found"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run(command, check=True, timeout=600, env=environment)
    assert set(bridges.__all__) <= set(dir(bridges))


@pytest.mark.parametrize("name", ["pandas", "datasets", "spacy", "nltk"])
def test_each_library_has_an_extra(name: str) -> None:
    """What is missing is said with the extra that installs it, and pyproject.toml has that extra."""
    import tomllib

    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert [one.partition(">=")[0] for one in extras[name]] == [name]
    assert name in extras["bridges"][0]
    assert f'extra="{name}"' in Path(importlib.util.find_spec(f"structpred.bridges.{name}").origin).read_text()  # type: ignore
