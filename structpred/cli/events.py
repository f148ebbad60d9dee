"""What training reports to programs: events as JSON lines on standard output."""

import json
import logging
import sys
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
    """Called after each pass: writes an event.

    stages: the names of the parts of the training, where there are several; each row holds the number of its part.
    """

    def __init__(self, events: Events, stages: Sequence[str] = ()) -> None:
        self.events, self.stages = events, stages

    def __call__(self, row: Record) -> None:
        """Report one row of the history."""
        number = int(row.pop("stage", None) or 1)
        stage = {"stage": self.stages[number - 1]} if self.stages else {}
        self.events.emit("pass", **stage, **row)
