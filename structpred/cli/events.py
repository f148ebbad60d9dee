"""What training reports: events as JSON lines on standard output, and a line for people where there is news."""

import json
import logging
import sys
import time
from collections.abc import Sequence
from typing import Any

from structpred.core.result import Record

log = logging.getLogger("structpred.cli")

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
            log.warning("the events on standard output are lost from here on (%s); training continues", error.strerror)


class Reporter:
    """Called after each pass: an event, and a line in the log where there is news or after a few seconds.

    stages: the names of the parts of the training, where there are several; each row holds the number of its part.
    """

    def __init__(self, events: Events, stages: Sequence[str] = ()) -> None:
        self.events, self.stages, self.said = events, stages, time.perf_counter()

    def __call__(self, row: Record) -> None:
        """Report one row of the history."""
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
