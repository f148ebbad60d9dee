"""What the tests of the command line share: how to start the program, and small data of every format."""

import contextlib
import io
import logging
import random
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from structpred.cli.app import run
from structpred.cli.session import Session
from structpred.runtime.interrupts import SIGNALS

PROGRAM = [sys.executable, "-m", "structpred.cli"]
Run = subprocess.CompletedProcess[str]
Shell = Callable[..., Run]


def call(*arguments: str, cwd: Path, stdin: str = "") -> Run:
    """Run `structpred ...` in this process, which saves the start of another: what it returned and wrote."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    source = io.TextIOWrapper(io.BytesIO(stdin.encode()), encoding="utf-8")
    session, streams = Session(arguments), {"stdin": source, "stdout": out, "stderr": err}
    with contextlib.chdir(cwd), mock.patch.multiple(sys, **streams), _as_if_new():
        session.start_logging()
        code = run(session)
    for stream in (out, err):
        stream.flush()
    return subprocess.CompletedProcess(arguments, code, *(stream.buffer.getvalue().decode() for stream in (out, err)))


@contextlib.contextmanager
def _as_if_new() -> Iterator[None]:
    """Warnings are shown, as outside of tests; what the program does to warnings, logging and signals is undone."""
    signals = {number: signal.getsignal(number) for number in SIGNALS}
    loggers = [logging.getLogger(name) for name in ("structpred", "structpred.trainers")]
    before = [(logger.level, list(logger.handlers)) for logger in loggers]
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        try:
            yield
        finally:
            for logger, (level, handlers) in zip(loggers, before, strict=True):
                logger.setLevel(level)
                logger.handlers[:] = handlers
            for number, handler in signals.items():
                signal.signal(number, handler)


def hear_interrupts() -> None:
    """To be called in a child before it starts: jobs in the background may ignore signals, and so would their children."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


WORDS = {"DT": ["the", "a"], "NN": ["cat", "dog", "tree"], "VB": ["sees", "likes"], "IN": ["under", "on"], "JJ": ["old", "big"]}
PATTERNS = (
    (("DT", "B-NP"), ("NN", "I-NP"), ("VB", "B-VP"), ("DT", "B-NP"), ("JJ", "I-NP"), ("NN", "I-NP")),
    (("NN", "B-NP"), ("VB", "B-VP"), ("IN", "B-PP"), ("DT", "B-NP"), ("NN", "I-NP"), (".", "O")),
    (("JJ", "B-NP"), ("NN", "I-NP"), ("VB", "B-VP"), (".", "O")),
)


def column_text(n_sentences: int, seed: int) -> str:
    """Sentences of three columns: word, part of speech, chunk label; some words are rare, so that not all is easy."""
    rng = np.random.default_rng(seed)
    sentences = []
    for _ in range(n_sentences):
        rows = []
        for pos, label in PATTERNS[rng.integers(len(PATTERNS))]:
            word = f"w{rng.integers(500)}" if rng.random() < 0.3 else rng.choice(WORDS.get(pos, ["."]))
            rows.append(f"{word} {'NN' if rng.random() < 0.2 else pos} {label}\n")
        sentences.append("".join(rows))
    return "\n".join(sentences)


def blanked(text: str, share: float) -> tuple[str, int]:
    """The text with `_` in place of a share of its labels; and how many they are."""
    rng, lines, n = random.Random(0), [], 0
    for line in text.split("\n"):
        fields = line.split(" ")
        if len(fields) > 1 and rng.random() < share:
            fields[-1], n = "_", n + 1
        lines.append(" ".join(fields))
    return "\n".join(lines), n


def crfsuite_text(columns: str) -> str:
    """The same sentences as labels with attributes."""
    lines = []
    for line in columns.split("\n"):
        fields = line.split(" ")
        lines.append(f"{fields[2]}\tw={fields[0]}\tp={fields[1]}:0.5" if len(fields) == 3 else "")
    return "\n".join(lines)


def ocr_text(n_words: int, seed: int) -> str:
    """Words over a, b, c, whose pixels are their letter's pattern with noise; folds 0, 1 and 2 in turn."""
    rng = np.random.default_rng(seed)
    patterns = rng.integers(0, 2, (3, 128))
    lines, number = [], 1
    for word in range(n_words):
        length = int(rng.integers(2, 6))
        for position in range(1, length + 1):
            letter = int(rng.integers(3))
            pixels = patterns[letter] ^ (rng.random(128) < 0.2)
            head = [number, "abc"[letter], -1 if position == length else number + 1, word, position, word % 3]
            lines.append("\t".join(map(str, [*head, *pixels.tolist()])) + "\n")
            number += 1
    return "".join(lines)


def train_on_shards(shell: Shell, client: Any, cwd: Path, model: Path, *arguments: str) -> Run:
    """`structpred train ... --shards 2`."""
    done = shell("train", *arguments, "--shards", "2", "--scheduler", client.scheduler.address, "-o", str(model), cwd=cwd)
    assert done.returncode == 0, done.stderr
    assert "2 shards of about" in done.stderr
    assert not list(model.parent.glob("*.ckpt*"))
    return done
