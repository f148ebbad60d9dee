"""Kills training runs at random moments: a process of its own, which forks a run, kills it, resumes it, and so on.

    python kill_server.py CASE FOLDER KILLS SEED

Imports and compilation happen once, before the first fork. Prints what it saw as one line of JSON.
"""

import json
import os
import signal
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from interrupted_run import write_result
from training_cases import SMOOTH, TRAINERS, chain_task

from structpred.core.result import Result
from structpred.core.storage import read_bundle
from structpred.errors import CheckpointWarning, FileFormatError
from structpred.objectives.log_loss import LogLoss
from structpred.objectives.margin import MarginRescaling
from structpred.trainers.checkpoints import previous
from structpred.trainers.loop import RunSettings, train
from structpred.trainers.owlqn import OWLQN
from structpred.trainers.passive_aggressive import AROW, PassiveAggressive
from structpred.trainers.perceptron import AveragedPerceptron
from structpred.trainers.problem import Problem
from structpred.trainers.stream import StreamProblem, train_stream

MISTAKE_DRIVEN = {"perceptron": AveragedPerceptron, "pa": PassiveAggressive, "arow": AROW}

#: case -> (trainer, threads, passes, whether it reads a stream)
CASES: dict[str, tuple[str, int, int, bool]] = {
    "perceptron": ("perceptron", 1, 150, False),
    "sgd": ("sgd", 1, 150, False),
    "mira": ("mira", 1, 150, False),
    "bcfw": ("bcfw", 1, 150, False),
    "bcfw-gaps": ("bcfw-gaps", 1, 150, False),
    "bcfw-all": ("bcfw-all", 1, 80, False),
    "bcfw on two threads": ("bcfw", 2, 150, False),
    "oeg": ("oeg", 1, 120, False),
    "lbfgs": ("lbfgs", 1, 400, False),
    "lbfgs on two threads": ("lbfgs", 2, 60, False),
    "pa": ("pa", 1, 150, False),
    "arow": ("arow", 1, 150, False),
    "owlqn": ("owlqn", 1, 150, False),
    "a stream": ("mira", 1, 100, True),
}


def run(case: str, folder: Path, resume: bool) -> Result:
    """One run, with a checkpoint every hundredth of a second: about half of the time goes into writing them."""
    name, threads, passes, streamed = CASES[case]
    task = chain_task(n=150 if streamed else 100, weighted=True)
    task.n_jobs = threads
    if task._fused is not None:
        task._fused.n_jobs = threads
    settings = RunSettings(
        max_iter=passes, check_every=20, seed=1, checkpoint=folder / "run.ckpt", checkpoint_seconds=0.01, resume=resume
    )
    if streamed:
        return train_stream(StreamProblem(task, MarginRescaling(), 0.5), TRAINERS[name](), tail_of(task), settings)[0]
    if name in MISTAKE_DRIVEN:
        return train(Problem(task, MarginRescaling(0.0), 0.01), MISTAKE_DRIVEN[name](), settings)
    if name == "owlqn" or name in SMOOTH:
        return train(Problem(task, LogLoss(), 0.001), OWLQN() if name == "owlqn" else SMOOTH[name](), settings)
    return train(Problem(task, MarginRescaling(), 0.01), TRAINERS[name](), settings)


def tail_of(task: Any) -> Callable[..., Any]:
    """The task's instances from number `skip` on, in batches of fifty."""
    from structpred.core.features import SequenceFeatures
    from structpred.core.task import Task

    def batches(skip: int, crc: int) -> Any:
        for a in range(skip, len(task), 50):
            b = min(a + 50, len(task))
            data = SequenceFeatures(task.features.data.take(a, b), 3, dtype=np.float64)
            yield Task(data, task.oracle, task.labels[a:b], task.shapes[a:b], task.loss, sample_weight=task.sample_weight[a:b])

    return batches


def forked(case: str, folder: Path, resume: bool) -> int:
    """Start the run in a child; its process id."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        write_result(run(case, folder, resume), folder / "result.json")
        code = 0
    finally:
        os._exit(code)


def killed_after(child: int, seconds: float) -> int | None:
    """Kill the child after a while; the exit status if it was done before, None if it was killed."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
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
    for path in (folder / "run.ckpt", previous(folder / "run.ckpt")):
        try:
            if path.exists():
                read_bundle(path, kind="checkpoint")
        except FileFormatError:
            bad += 1
    return bad


def main() -> None:
    """Kill until it is enough, comparing the end of every round with the unbroken run."""
    case, base, enough, seed = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    warnings.simplefilter("ignore", CheckpointWarning)
    straight = base / "straight"
    for _ in range(2):  # the second time nothing is left to compile
        straight.mkdir(exist_ok=True)
        start = time.perf_counter()
        write_result(run(case, straight, resume=False), straight / "result.json")
        seconds = time.perf_counter() - start
    expected, rng = json.loads((straight / "result.json").read_text()), np.random.default_rng(seed)
    seen = {"kills": 0, "rounds": 0, "inside_writes": 0, "unreadable": 0, "other_ends": 0, "failures": 0}
    while seen["kills"] < enough:
        folder = base / f"round {seen['rounds']}"
        folder.mkdir()
        code = None
        while code is None:
            resume = any(path.exists() for path in (folder / "run.ckpt", previous(folder / "run.ckpt")))
            patience = rng.uniform(0.0, seconds / 5) if seen["kills"] < enough else 120.0
            code = killed_after(forked(case, folder, resume), patience)
            if code is None:
                seen["kills"] += 1
                seen["inside_writes"] += any(path.name.endswith((".tmp", ".next")) for path in folder.iterdir())
                seen["unreadable"] += unreadable(folder)
        seen["failures"] += code != 0
        seen["other_ends"] += code == 0 and json.loads((folder / "result.json").read_text()) != expected
        seen["rounds"] += 1
    print(json.dumps({**seen, "seconds": seconds}))


if __name__ == "__main__":
    main()
