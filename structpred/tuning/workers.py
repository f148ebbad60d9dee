"""Runs in processes: each holds the work, does one run after the other, and ends when the program that started it does."""

import multiprocessing
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection, wait
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Protocol, cast

from structpred.errors import ConvergenceError, NoUpdateWarning, StructpredError
from structpred.runtime.interrupts import leave_to_parent
from structpred.runtime.processes import end_with_parent, sendable
from structpred.tuning.folder import Known


class Job(NamedTuple):
    """One setting on one fold, to be trained to this number of passes in all. number, fold: of the setting, of the fold."""

    number: int
    setting: dict[str, Any]
    fold: int
    passes: int
    checkpoint: Path


class Work(Protocol):
    """What is tuned. It is pickled where there are several processes."""

    def fit(self, setting: dict[str, Any], fold: int, passes: int, checkpoint: Path) -> Sequence[float]:
        """Train to `passes` passes in all, from the checkpoint if there is one; the score on held-out data after each pass."""


def do(work: Work, job: Job) -> Known:
    """Do one job. A setting whose weights become infinite has failed; other errors are raised."""
    start = time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NoUpdateWarning)  # of a first rung nothing else is expected
            scores, error = [float(score) for score in work.fit(job.setting, job.fold, job.passes, job.checkpoint)], None
    except ConvergenceError as failure:
        scores, error = [], str(failure)
    return Known(job.passes, scores, time.process_time() - start, error)


class Workers:
    """A context in which jobs are done, on this number of processes; on one they are done in this process.

    What is done does not depend on their number, only the order in which it is done.
    """

    def __init__(self, work: Work, n_jobs: int) -> None:
        self.work, self.n_jobs = work, n_jobs
        self.processes: dict[Connection, Any] = {}

    def __enter__(self) -> "Workers":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for connection in self.processes:
            connection.close()
        for process in self.processes.values():
            process.terminate()  # a run that is under way writes its checkpoint
        for process in self.processes.values():
            process.join()

    def run(self, jobs: Sequence[Job]) -> Iterator[tuple[Job, Known]]:
        """Do the jobs, and yield each when it is done. Raises what a job raises."""
        if self.n_jobs == 1:
            for job in jobs:
                yield job, do(self.work, job)
            return
        if jobs and not self.processes:
            context = multiprocessing.get_context("spawn")  # a fork would copy the locks of threads
            for _ in range(self.n_jobs):
                ours, theirs = context.Pipe()
                process = context.Process(target=_serve, args=(theirs, self.work))
                process.start()
                theirs.close()
                self.processes[ours] = process
        left, busy, idle = list(jobs)[::-1], dict[Any, Job](), list(self.processes)
        while left or busy:
            while left and idle:
                busy[idle[-1]] = left[-1]
                idle.pop().send(left.pop())
            for connection in wait(list(busy)):
                job = busy.pop(connection)
                yield job, _answer(connection, job)
                idle.append(connection)  # type: ignore[arg-type]


def _answer(connection: Any, job: Job) -> Known:
    try:
        answer = connection.recv()
    except (EOFError, ConnectionResetError):
        raise StructpredError(
            f"the process that trained {job.setting} ended: was it killed, or was there too little memory? Try fewer processes"
        ) from None
    if isinstance(answer, BaseException):
        raise answer
    return cast(Known, answer)


def _serve(connection: Connection, work: Work) -> None:
    """What a process does."""
    leave_to_parent()
    threading.Thread(target=end_with_parent, daemon=True).start()  # what it would write is a later run's
    try:
        while True:
            job = connection.recv()
            try:
                answer: Any = do(work, job)
            except Exception as error:
                answer = sendable(error)
            connection.send(answer)
    except (EOFError, OSError, KeyboardInterrupt):
        pass
