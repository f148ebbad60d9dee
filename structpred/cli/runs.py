"""What all `train` commands share: events as JSON lines, a line a pass, the checkpoint's file, and how an interruption ends."""

import json
import logging
import shlex
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from structpred.cli.corpora import check_input, check_output
from structpred.cli.session import EXIT_INTERRUPTED, Session, Stop
from structpred.core.result import Record
from structpred.errors import CheckpointError
from structpred.trainers.checkpoints import claimed, previous

log = logging.getLogger("structpred.cli")

Stamp = tuple[int, int] | None
#: why a run ended, for people
REASONS = {
    "max_iter": "as many as --max-iter",
    "search_bound": "as many as --max-iter; most of the gap is left open by the slack searches, not by training",
    "tol": "--tol reached",
    "dev": "--patience",
    "no_updates": "nothing left to learn",
}


class Events:
    """Lines of JSON on stdout, if they are wanted. A reader that goes away does not stop the training."""

    def __init__(self, wanted: bool) -> None:
        self.wanted = wanted

    def emit(self, event: str, **fields: Any) -> None:
        """Write one event."""
        if not self.wanted:
            return
        try:
            sys.stdout.write(json.dumps({"event": event, **fields}) + "\n")
            sys.stdout.flush()
        except OSError as error:
            self.wanted = False
            sys.stdout = None
            log.warning("the events on standard output are lost from here on (%s); training goes on", error.strerror)


class Reporter:
    """Called after each pass: an event, and a line in the log where there is news or some seconds have gone by.

    stages: the names of the parts of the training, where there are several; the number of the part stands in the row.
    """

    def __init__(self, events: Events, stages: Sequence[str] = ()) -> None:
        self.events, self.stages, self.said = events, stages, time.perf_counter()

    def __call__(self, row: Record) -> None:
        """Tell of one row of the history."""
        number = int(row.pop("stage", None) or 1)
        stage = {"stage": self.stages[number - 1]} if self.stages else {}
        self.events.emit("pass", **stage, **row)
        now = time.perf_counter()
        if row["primal"] is not None or row["dev_score"] is not None or now - self.said > 5:
            self.said = now
            log.info("%s%s", "".join(f"{name}: " for name in stage.values()), describe(row))


def describe(row: Record) -> str:
    """One row of the history as a line.

    >>> describe({"passes": 3, "seconds": 1.5, "primal": 2.0, "dual": 1.9, "gap": 0.1, "dev_score": None})
    'pass   3     1.5 s  primal 2  gap 5 %'
    """
    line = f"pass {row['passes']:>3}  {row['seconds'] or 0.0:6.1f} s"
    primal, gap, dev = row["primal"], row["gap"], row["dev_score"]
    if primal is not None:
        line += f"  primal {primal:.6g}"
    if primal and gap is not None:
        line += f"  gap {100 * gap / primal:.3g} %"
    if dev is not None:
        line += f"  dev {100 * dev:.2f} %"
    return line


def check_run_files(data: str, dev: str | None, others: Sequence[str], output: str, checkpoint: Path, resume: bool) -> None:
    """Raise DataError for what could not be written in the end, and CheckpointError where there is nothing to resume.

    others: further files to be read, which nothing must be written over.
    """
    inputs = [name for name in (data, dev, *others) if name is not None]
    check_input(data, "TRAIN")
    if dev is not None:
        check_input(dev, "--dev")
    check_output(output, "-o", inputs)
    check_output(str(checkpoint), "--checkpoint", [*inputs, output])
    with claimed(checkpoint):  # another run that writes it is an error now, not after all is read
        there = checkpoint.exists() or previous(checkpoint).exists()
    if resume and not there:
        raise CheckpointError(f"{checkpoint}: there is no checkpoint to resume from; leave --resume out to start anew")
    if there and not resume:
        log.warning("%s is of an earlier run and will be replaced; --resume would go on from it", checkpoint)


def interrupted(checkpoint: Path, resume: bool, session: Session, events: Events, before: Stamp) -> Stop:
    """How an interrupted run ends: the checkpoint, if there is one of this run, and the command that goes on.

    before: the stamp of the checkpoint's file before the run.
    """
    kept = stamp(checkpoint) is not None and (resume or stamp(checkpoint) != before)
    events.emit("interrupted", checkpoint=str(checkpoint) if kept else None)
    if not kept:
        return Stop(EXIT_INTERRUPTED, "interrupted: training had not begun, nothing was written")
    command = shlex.join(["structpred", *session.arguments, *([] if resume else ["--resume"])])
    return Stop(EXIT_INTERRUPTED, f"interrupted: the run is kept in {checkpoint}, no model was written. To go on:\n  {command}")


def stamp(path: Path) -> Stamp:
    """What tells one writing of a file from another; None where there is no file."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_mtime_ns
