"""Fixtures of the command line's tests: a shell, the same without a new process, and a folder of small data."""

import logging
import subprocess
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cli_helpers import PROGRAM, Run, Shell, call, column_text, crfsuite_text, ocr_text
from label_helpers import write_all
from treebank_helpers import treebank_text

from structpred.cli.app import run
from structpred.cli.session import Session

Here = Callable[..., tuple[int, str, str]]


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """Run `structpred ...` in the folder of the test, without a new process."""

    def run(*arguments: str, stdin: str = "", cwd: Path = tmp_path) -> Run:
        return call(*arguments, cwd=cwd, stdin=stdin)

    return run


@pytest.fixture
def process(tmp_path: Path) -> Shell:
    """Run `structpred ...` in a process of its own, in the folder of the test: for what depends on a new process."""

    def run(*arguments: str, stdin: str = "", cwd: Path = tmp_path) -> Run:
        return subprocess.run(
            [*PROGRAM, *arguments], input=stdin, capture_output=True, text=True, cwd=cwd, timeout=1800, check=False
        )

    return run


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """A dask client whose one worker is this process; so the shell, which runs here in tests, finds it by its address."""
    from distributed import Client

    with Client(processes=False, dashboard_address="127.0.0.1:0", n_workers=1, threads_per_worker=2) as client:
        yield client


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with train, test and dev files of every format, and a chunking model trained from the shell."""
    folder = tmp_path_factory.mktemp("corpus")
    for name, size, seed in (("train", 120, 0), ("test", 40, 1)):
        text = column_text(size, seed)
        (folder / f"{name}.txt").write_text(text)
        (folder / f"{name}.crf").write_text(crfsuite_text(text))
        (folder / f"{name}.data").write_text(ocr_text(size, 0))
    command = ("train", "chain", "train.txt", "--format", "conll2000", "--template", "chunking", "-o", "chunk.spz")
    call(*command, "--trainer", "sgd", cwd=folder).check_returncode()
    return folder


@pytest.fixture(scope="session")
def treebanks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with train, test and dev treebanks, one with crossing arcs, and a parser trained from the shell."""
    folder = tmp_path_factory.mktemp("treebanks")
    for name, size, seed in (("train", 80, 0), ("test", 30, 1), ("dev", 20, 2)):
        (folder / f"{name}.conllu").write_text(treebank_text(size, seed))
    (folder / "crossing.conllu").write_text(treebank_text(60, 3, crossing=True))
    call("train", "parser", "train.conllu", "-o", "p.spz", "--max-iter", "4", cwd=folder).check_returncode()
    return folder


@pytest.fixture(scope="session")
def labelled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with multi-label data of every format, and a model trained from the shell with slack rescaling."""
    folder = tmp_path_factory.mktemp("labelled")
    write_all(folder)
    command = ("train", "multilabel", "weather-train.arff", "-o", "m.spz", "--surrogate", "slack")
    call(*command, cwd=folder).check_returncode()
    return folder


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Here:
    """Run `structpred ...` in this process: exit code, stdout, stderr. What it does to logging and warnings is undone."""
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
    for name in ("structpred", "structpred.trainers"):
        monkeypatch.setattr(logging.getLogger(name), "level", logging.getLogger(name).level)
        monkeypatch.setattr(logging.getLogger(name), "handlers", list(logging.getLogger(name).handlers))

    def inner(*arguments: str, cwd: Path) -> tuple[int, str, str]:
        monkeypatch.chdir(cwd)
        session = Session(arguments)
        session.start_logging()
        return (run(session), *capsys.readouterr())

    return inner
