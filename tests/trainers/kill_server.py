"""Kills training runs at random moments: a process of its own, which forks a run, kills it, resumes it, and so on.

    python kill_server.py CASE FOLDER KILLS SEED [HAZARD]

Imports and compilation happen once, before the first fork. Prints what it saw as one line of JSON. FOLDER gets the results. What
else goes wrong (HAZARD): "full", the disk of the checkpoint (2 MB) is full now and then; "removed", its folder is removed now and
then; "writers", another run is started with the same checkpoint.
"""

import functools
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from interrupted_run import write_result
from training_cases import BULK, SMOOTH, TRAINERS, chain_task

from structpred.core.result import Result
from structpred.errors import CheckpointError, CheckpointWarning, FileFormatError, StorageError
from structpred.models import GraphLabeler, LinearClassifier, MultiLabelMRF, base
from structpred.objectives.log_loss import LogLoss
from structpred.objectives.margin import MarginRescaling
from structpred.slack.surrogate import SlackRescaling
from structpred.storage.bundles import read_bundle
from structpred.trainers.arow import AROW
from structpred.trainers.loop import RunSettings, train
from structpred.trainers.owlqn import OWLQN
from structpred.trainers.passive_aggressive import PassiveAggressive
from structpred.trainers.perceptron import AveragedPerceptron
from structpred.trainers.problem import Problem
from structpred.trainers.running.checkpoints import previous
from structpred.trainers.running.stream import StreamProblem, train_stream

MISTAKE_DRIVEN = {"perceptron": AveragedPerceptron, "pa": PassiveAggressive, "arow": AROW}

#: case -> (trainer, threads, passes, whether it reads a stream)
CASES: dict[str, tuple[str, int, int, bool]] = {
    "perceptron": ("perceptron", 1, 150, False),
    "sgd": ("sgd", 1, 150, False),
    "mira": ("mira", 1, 150, False),
    "bcfw": ("bcfw", 1, 150, False),
    "bcfw-gaps": ("bcfw-gaps", 1, 150, False),
    "bcfw on two threads": ("bcfw", 2, 150, False),
    "corrective": ("corrective", 1, 60, False),
    "oeg": ("oeg", 1, 120, False),
    "lbfgs": ("lbfgs", 1, 400, False),
    "lbfgs on two threads": ("lbfgs", 2, 60, False),
    "pa": ("pa", 1, 150, False),
    "arow": ("arow", 1, 150, False),
    "owlqn": ("owlqn", 1, 150, False),
    "a stream": ("mira", 1, 100, True),
    "bmrm": ("bmrm", 1, 150, False),
    "pragam": ("pragam", 2, 60, False),
    "rows, sdca": ("rows sdca", 1, 400, False),
    "rows, pragam_b": ("rows pragam_b", 1, 400, False),
    "slack": ("bcfw-gaps", 1, 12, False),
    "slack, n_slack": ("n-slack", 1, 8, False),
    "label sets, slack": ("labels", 1, 25, False),
    "graphs": ("graphs", 1, 40, False),
}
HAZARDS = {"full": "corrective", "removed": "sgd", "writers": "mira"}
TOLD, NO_FOLDER = 5, 6  # exit statuses of runs that do not begin: told of another one, or their folder is gone already
EVERY = 0.01  # seconds between checkpoints


def run(case: str, folder: Path, resume: bool) -> Result:
    """One run, with a checkpoint every hundredth of a second: about half of the time goes into writing them."""
    name, threads, passes, streamed = CASES[case]
    if name in ("labels", "graphs") or name.startswith("rows"):
        return estimated(name, passes, folder / "run.ckpt", resume)
    task = chain_task(n=150 if streamed else 100, weighted=True)
    task.n_jobs = task.inference.n_jobs = threads
    settings = RunSettings(
        max_iter=passes, check_every=20, seed=1, checkpoint=folder / "run.ckpt", checkpoint_seconds=EVERY, resume=resume
    )
    if streamed:
        return train_stream(StreamProblem(task, MarginRescaling(), 0.5), TRAINERS[name](), tail_of(task), settings)[0]
    if name in MISTAKE_DRIVEN:
        return train(Problem(task, MarginRescaling(0.0), 0.01), MISTAKE_DRIVEN[name](), settings)
    if name == "owlqn" or name in SMOOTH:
        return train(Problem(task, LogLoss(), 0.001), OWLQN() if name == "owlqn" else SMOOTH[name](), settings)
    surrogate = SlackRescaling() if case.startswith("slack") else MarginRescaling()
    return train(Problem(task, surrogate, 0.01), {**TRAINERS, **BULK}[name](), settings)


def estimated(name: str, passes: int, file: Path, resume: bool) -> Result:
    """What an estimator learns of label sets, graphs or rows."""
    base.RunSettings = functools.partial(RunSettings, checkpoint_seconds=EVERY)  # type: ignore[misc,assignment]
    rng, options = np.random.default_rng(0), {"max_iter": passes, "checkpoint": file, "resume": resume}
    if name == "labels":
        X, Y = rng.normal(size=(40, 3)), rng.integers(0, 2, (40, 4))
        model: Any = MultiLabelMRF("bcfw", surrogate="slack", **options).fit(X, Y)
    elif name.startswith("rows"):
        X = rng.normal(size=(300, 20))
        model = LinearClassifier(name.removeprefix("rows "), tol=0.0, C=10.0, **options).fit(X, rng.integers(0, 2, 300))
    else:
        graphs = [(rng.normal(size=(4, 3)), np.array([(0, 1), (1, 2), (2, 3), (3, 0)])) for _ in range(20)]
        model = GraphLabeler("bcfw", **options).fit(graphs, [rng.integers(0, 3, 4) for _ in graphs])
    return Result(model.coef_, model.certificate_, model.history_, model.stop_reason_, model.n_iter_)


def tail_of(task: Any) -> Callable[..., Any]:
    """The task's instances from number `skip` on, in batches of fifty."""
    from structpred.features.sequences import SequenceFeatures
    from structpred.task.task import Task

    def batches(skip: int, crc: int) -> Any:
        for a in range(skip, len(task), 50):
            b = min(a + 50, len(task))
            data = SequenceFeatures(task.features.data.take(a, b), 3, dtype=np.float64)
            yield Task(data, task.oracle, task.labels[a:b], task.shapes[a:b], task.loss, sample_weight=task.sample_weight[a:b])

    return batches


def forked(case: str, folder: Path, there: Path, resume: bool, limited: bool = False) -> int:
    """Start the run in a child; its process id. there: where its checkpoint is."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        if limited:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
        result = run(case, there, resume)
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        write_result(result, folder / "result.json")
        code = 0
    except (CheckpointError, StorageError) as error:
        code = TOLD if "another run" in str(error) else 1 if there.exists() else NO_FOLDER
        if code == 1:
            traceback.print_exc()
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def killed_after(child: int, seconds: float, disturb: Callable[[], None], moment: float) -> int | None:
    """Kill the child after a while; the exit status if it was done before, None if it was killed. `disturb` it at a moment."""
    start = time.perf_counter()
    disturbed = False
    while (now := time.perf_counter() - start) < seconds:
        if now >= moment and not disturbed:
            disturb()
            disturbed = True
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.0005)
    os.kill(child, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return None if code == -signal.SIGKILL else code


class Hazard:
    """What goes wrong besides kills, and how often it did."""

    def __init__(self, kind: str, case: str, base: Path, rng: np.random.Generator) -> None:
        self.kind, self.case, self.rng, self.count = kind, case, rng, 0
        self.disk = base / "disk"
        self.mounted = kind == "full" and self._mount()

    def _mount(self) -> bool:
        self.disk.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(self.disk)]
        return shutil.which("mount") is not None and subprocess.run(command, capture_output=True, check=False).returncode == 0

    def place(self, folder: Path) -> Path:
        """Where the checkpoints of a round are, made anew if they are gone."""
        there = (self.disk if self.mounted else folder) / "checkpoints"
        there.mkdir(exist_ok=True)
        return there

    def limited(self) -> bool:
        """Whether a limit on the size of files has to stand in for a full disk."""
        return self.kind == "full" and not self.mounted and self.rng.random() < 0.5

    def strike(self, folder: Path, there: Path, resume: bool) -> None:
        """In the middle of a run."""
        if self.kind == "full" and self.mounted:
            filler = self.disk / "filler"
            if filler.exists():
                filler.unlink()
            else:
                with filler.open("wb", buffering=0) as file:
                    fill(file)
        elif self.kind == "removed":
            shutil.rmtree(there, ignore_errors=True)
        elif self.kind == "writers":
            code = os.waitstatus_to_exitcode(os.waitpid(forked(self.case, folder, there, resume), 0)[1])
            self.count += code == TOLD
            return
        self.count += self.kind != ""

    def round_over(self) -> None:
        """A new round begins with an empty disk."""
        if self.mounted:
            for path in self.disk.iterdir():
                shutil.rmtree(path) if path.is_dir() else path.unlink()

    def end(self) -> None:
        """Nothing stays mounted."""
        if self.mounted:
            subprocess.run(["umount", str(self.disk)], check=False)


def fill(file: Any) -> None:
    """Write until the disk is full."""
    try:
        while file.write(b"x" * 4096):
            pass
    except OSError:
        return


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
    kind = sys.argv[5] if len(sys.argv) > 5 else ""
    warnings.simplefilter("ignore", CheckpointWarning)
    straight = base / "straight"
    for _ in range(2):  # the second time nothing is left to compile
        straight.mkdir(exist_ok=True)
        start = time.perf_counter()
        write_result(run(case, straight, resume=False), straight / "result.json")
        seconds = time.perf_counter() - start
    expected, rng = json.loads((straight / "result.json").read_text()), np.random.default_rng(seed)
    hazard = Hazard(kind, case, base, rng)
    try:
        seen = killed_rounds(case, base, enough, seconds, expected, rng, hazard)
    finally:
        hazard.end()
    print(json.dumps({**seen, "hazards": hazard.count, "seconds": seconds}))


def killed_rounds(
    case: str, base: Path, enough: int, seconds: float, expected: Any, rng: np.random.Generator, hazard: Hazard
) -> dict[str, int]:
    """Rounds of one run each, killed and resumed until it ends."""
    seen = {"kills": 0, "rounds": 0, "inside_writes": 0, "unreadable": 0, "other_ends": 0, "failures": 0}
    while seen["kills"] < enough:
        folder = base / f"round {seen['rounds']}"
        folder.mkdir()
        code = None
        while code is None:
            there = hazard.place(folder)
            resume = any(path.exists() for path in (there / "run.ckpt", previous(there / "run.ckpt")))
            patience = rng.uniform(0.0, seconds / 5) if seen["kills"] < enough else 120.0
            strike = functools.partial(hazard.strike, folder, there, resume)
            child = forked(case, folder, there, resume, hazard.limited())
            code = killed_after(child, patience, strike, rng.uniform(0.0, min(patience, seconds / 5)))
            if code in (TOLD, NO_FOLDER):  # the other one was first, or nothing was there to begin with: once more
                code = None
            elif code is None:
                seen["kills"] += 1
                seen["inside_writes"] += there.exists() and any(path.name.endswith(".tmp") for path in there.iterdir())
                seen["unreadable"] += unreadable(there)
        seen["failures"] += code != 0
        seen["other_ends"] += code == 0 and json.loads((folder / "result.json").read_text()) != expected
        seen["rounds"] += 1
        hazard.round_over()
    return seen


if __name__ == "__main__":
    main()
