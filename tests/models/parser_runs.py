"""Training runs of the parser in processes of their own, for tests that interrupt and kill them.

    python parser_runs.py run CASE FOLDER [--resume] [--pause SECONDS]
    python parser_runs.py kill CASE FOLDER KILLS SEED

`run` prints "stage s pass k" after pass k of a stage; exit code 3 if it was interrupted. `kill` forks runs, kills them at random
moments and resumes them, and prints what it saw as one line of JSON.
"""

import argparse
import functools
import json
import os
import signal
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from parser_cases import corpus, plain

from structpred.errors import CheckpointWarning, FileFormatError
from structpred.models import base
from structpred.models.parser.parser import DependencyParser
from structpred.storage.bundles import read_bundle
from structpred.trainers.corrective import Corrective
from structpred.trainers.loop import RunSettings

CASES: dict[str, dict[str, Any]] = {
    "mira": {"trainer": "mira", "max_iter": 25},
    "bcfw": {"trainer": Corrective(corners=4), "C": 0.1, "max_iter": 12, "check_every": 4},
    "sgd, projective": {"trainer": "sgd", "C": 1.0, "max_iter": 15, "projective": True},
    "perceptron, pruned": {"trainer": "perceptron", "max_iter": 15, "prune": 2, "n_jobs": 2},
    "lbfgs": {"trainer": "lbfgs", "C": 1.0, "max_iter": 8},
}
X, Y = corpus(80, 0, 0.3)
DEV = corpus(20, 1, 0.3)
FILE = "run.ckpt"


def parser(case: str, folder: Path, resume: bool, **options: Any) -> DependencyParser:
    """The parser of a case, which writes a checkpoint every hundredth of a second."""
    base.RunSettings = functools.partial(RunSettings, checkpoint_seconds=0.01)  # type: ignore[misc,assignment]
    return DependencyParser(**CASES[case], checkpoint=folder / FILE, resume=resume, random_state=1, **options)


def write_result(model: DependencyParser, path: Path) -> None:
    """All that must not depend on interruptions, as text."""

    def rows(history: list[Any]) -> list[dict[str, Any]]:
        return [{key: value for key, value in row.items() if "seconds" not in key} for row in history]

    relations = model.relations_
    found = {
        "weights": model.coef_.tobytes().hex(),
        "relations": None if relations is None else relations.coef_.tobytes().hex(),
        "histories": [rows(model.history_), rows(model.label_history_)],
        "certificates": [str(model.certificate_), str(model.label_certificate_)],
        "stop_reasons": [model.stop_reason_, None if relations is None else relations.stop_reason_],
        "trees": plain(model.predict(DEV[0])),
    }
    path.write_text(json.dumps(found), encoding="utf-8")


def run(case: str, folder: Path, resume: bool, pause: float) -> None:
    """One run that says how far it is."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # it is ignored in children of background jobs

    def after_pass(row: Any) -> None:
        print("stage", row.get("stage", 1), "pass", row["passes"], flush=True)
        time.sleep(pause)

    model = parser(case, folder, resume, callbacks=after_pass)
    try:
        model.fit(X, Y, dev=DEV)
    except KeyboardInterrupt as stop:
        print(stop, file=sys.stderr)
        write_result(model, folder / "result.json")
        sys.exit(3)
    write_result(model, folder / "result.json")


def forked(case: str, folder: Path, resume: bool) -> int:
    """Start a run in a child; its process id."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        write_result(parser(case, folder, resume).fit(X, Y, dev=DEV), folder / "result.json")
        code = 0
    finally:
        os._exit(code)


def killed_after(child: int, seconds: float, awaited: Path | None = None) -> int | None:
    """Kill the child after a while, or so long after a file has come; the exit status if it was done before, None if killed."""
    end = time.perf_counter() + seconds if awaited is None else None
    while end is None or time.perf_counter() < end:
        if end is None and awaited is not None and awaited.exists():
            end = time.perf_counter() + seconds
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.0005)
    os.kill(child, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return None if code == -signal.SIGKILL else code


def unreadable(folder: Path) -> int:
    """How many of the checkpoints that are there cannot be read."""
    bad = 0
    for path in folder.glob(f"{FILE}*"):
        try:
            if not path.name.endswith((".next", ".tmp")):
                read_bundle(path, kind="checkpoint")
        except FileFormatError:
            bad += 1
    return bad


def kill(case: str, folder: Path, enough: int, seed: int) -> dict[str, Any]:
    """Kill until it is enough, comparing the end of every round with the unbroken run."""
    warnings.simplefilter("ignore", CheckpointWarning)
    straight = folder / "straight"
    for _ in range(2):  # the second time nothing is left to compile
        straight.mkdir(exist_ok=True)
        start = time.perf_counter()
        write_result(parser(case, straight, resume=False).fit(X, Y, dev=DEV), straight / "result.json")
        seconds = time.perf_counter() - start
    expected, rng = json.loads((straight / "result.json").read_text()), np.random.default_rng(seed)
    seen = {"kills": 0, "in_relations": 0, "unreadable": 0, "other_ends": 0, "failures": 0, "seconds": seconds}
    rounds = 0
    while seen["kills"] < enough:
        here = folder / f"round {rounds}"
        here.mkdir()
        code, rounds = None, rounds + 1
        while code is None:
            resume = any((here / name).exists() for name in (FILE, f"{FILE}.previous"))
            wait = rng.uniform(0.0, seconds) if seen["kills"] < enough else 120.0
            second = here / f"{FILE}.relations"  # each fourth kill is in the second stage, however long the first one takes
            late = seen["kills"] % 4 == 3 and not second.exists()
            code = killed_after(forked(case, here, resume), 0.2 * wait if late else wait, second if late else None)
            if code is None:
                seen["kills"] += 1
                seen["in_relations"] += (here / f"{FILE}.relations").exists()
                seen["unreadable"] += unreadable(here)
        seen["failures"] += code != 0
        seen["other_ends"] += code == 0 and json.loads((here / "result.json").read_text()) != expected
    return seen


def main() -> None:
    """The command line."""
    options = argparse.ArgumentParser()
    options.add_argument("what", choices=("run", "kill"))
    options.add_argument("case", choices=CASES)
    options.add_argument("folder", type=Path)
    options.add_argument("numbers", type=int, nargs="*")
    options.add_argument("--resume", action="store_true")
    options.add_argument("--pause", type=float, default=0.0)
    given = options.parse_args()
    if given.what == "run":
        run(given.case, given.folder, given.resume, given.pause)
    else:
        print(json.dumps(kill(given.case, given.folder, *given.numbers)))


if __name__ == "__main__":
    main()
