"""What all commands share: exit codes, how much is written to stderr, and how a command ends early."""

import logging
import signal
import warnings
from dataclasses import dataclass
from typing import Any

from structpred.errors import StructpredWarning
from structpred.runtime.interrupts import hear
from structpred.runtime.standard_error import say

EXIT_DATA = 1
EXIT_USAGE = 2
EXIT_NOT_CONVERGED = 3
EXIT_INTERRUPTED = 130  # 128 + SIGINT, as shells count; SIGTERM and SIGHUP end a run in the same way
EXIT_PIPE = 141  # 128 + SIGPIPE


class Stop(Exception):
    """A command ends here, with this exit code and this line on stderr."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


def interrupted(kept: str) -> Stop:
    """How an interrupted command ends; signals are heard no more, so that the last line, which says what was kept, is written."""
    hear(signal.SIG_IGN)
    return Stop(EXIT_INTERRUPTED, f"interrupted: {kept}")


@dataclass
class Session:
    """One call of the program.

    arguments: as typed, without the program's name. verbose: how often -v was given. kind: the Kind that --kind named.
    """

    arguments: tuple[str, ...] = ()
    verbose: int = 0
    quiet: bool = False
    kind: Any = None

    @property
    def tracebacks(self) -> bool:
        """Whether errors are shown with all that led to them."""
        return self.verbose >= 2

    def start_logging(self) -> None:
        """Send the log of `structpred` to stderr; called again when -v or --quiet is read."""
        logger = logging.getLogger("structpred")
        for handler in [h for h in logger.handlers if isinstance(h, StderrHandler)]:
            logger.removeHandler(handler)
        logger.addHandler(StderrHandler())
        logger.setLevel(logging.WARNING if self.quiet else logging.DEBUG if self.verbose else logging.INFO)
        # The loop logs every pass in full; training shows the same in a line made for people.
        loop = logging.getLogger("structpred.trainers")
        loop.setLevel(logging.DEBUG if self.verbose and not self.quiet else logging.WARNING)
        warnings.showwarning = _show_warning


class StderrHandler(logging.Handler):
    """Lines on stderr. The stream is looked up for each line, because a progress bar puts its own in its place."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line; what cannot be written is lost, and the work continues."""
        prefix = "" if record.levelno == logging.INFO else f"{record.levelname.lower()}: "
        say(prefix + record.getMessage())


def _show_warning(message: Any, category: type[Warning], *place: Any, **stream: Any) -> None:
    """A warning as one line, without the place in our sources that raised it."""
    name = "" if issubclass(category, StructpredWarning) else f"{category.__name__}: "
    say(f"warning: {name}{message}")
