"""`structpred warmup`: kernels are compiled before they are needed."""

import os
import subprocess
from pathlib import Path

import pytest
from cli_helpers import PROGRAM, Shell, column_text

COUNT = (
    "import structpred.cli.app as app, structpred.runtime.compiled as compiled, sys\nfrom structpred.cli.session import Session\n"
)
TRAIN = ("chain", "train.txt", "--format", "conll2000", "--template", "chunking", "--trainer", "sgd", "-o", "m.spz", "--quiet")


@pytest.mark.slow
def test_nothing_is_compiled_after_a_warmup(tmp_path: Path) -> None:
    """In a new environment a warmup compiles; then training and prediction of that kind compile nothing more."""
    (tmp_path / "train.txt").write_text(column_text(5, 0))
    env = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "kernels")}

    def run(*command: str) -> str:
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=env, timeout=1800, check=True)
        return done.stdout

    assert "kernels compiled in" in run(*PROGRAM, "warmup", "chain", "--trainer", "sgd")
    assert run(*PROGRAM, "warmup", "chain", "--trainer", "sgd") == "chain: all kernels are there\n"
    commands = [("train", *TRAIN), ("predict", "m.spz", "train.txt", "-o", "out.txt", "--quiet")]
    code = f"{COUNT}for one in {commands!r}: assert app.run(Session(one)) == 0\nprint(compiled.compiled_kernels())"
    assert run(PROGRAM[0], "-P", "-c", code) == "0\n"


def test_an_unknown_kind_is_refused_in_words(shell: Shell) -> None:
    """The message names the kinds that there are."""
    done = shell("warmup", "chian")
    assert done.returncode == 2
    assert "there are no kernels of 'chian'; say which: chain, multilabel, parser" in done.stderr


@pytest.mark.parametrize("kind", ["chain", "parser", "multilabel"])
def test_each_kind_has_a_sample_that_it_can_learn(shell: Shell, kind: str) -> None:
    """A warmup trains and predicts without a word but its line."""
    done = shell("warmup", kind)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"{kind}: ")
