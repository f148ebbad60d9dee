"""Standard error: who reads it, lines that a closed one does not stop, and whose line a warning names."""

import shutil
import sys

#: characters of a line that is rewritten: what wraps would stay
_LINE = 79


def say(text: str) -> None:
    """One line on stderr, which is looked up for each line; one that cannot be written is lost, and the work continues."""
    _write(f"{text}\n")


def callers_level() -> int:
    """The `stacklevel` with which a warning names the line that called the package, however deep inside it is given.

    To be asked where the warning is given.
    """
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("structpred."):
        frame, level = frame.f_back, level + 1
    return level


def rewrite(text: str) -> None:
    """Put a text in place of the last one, on the line of a terminal or notebook on which nothing else is; "" clears it."""
    width = min(_LINE, shutil.get_terminal_size().columns - 1)
    _write(f"\r{text[:width].ljust(width)}" + ("" if text else "\r"))


def can_rewrite() -> bool:
    """Whether `rewrite` is for somebody's eyes, and nothing else has taken standard error, as some progress bars do."""
    return in_notebook() or (at_terminal() and sys.stderr is sys.__stderr__)


def _write(text: str) -> None:
    try:
        if sys.stderr is not None:
            sys.stderr.write(text)
            sys.stderr.flush()
    except (OSError, ValueError):
        pass


def at_terminal() -> bool:
    """Whether standard error is a terminal."""
    return sys.stderr is not None and sys.stderr.isatty()


def in_notebook() -> bool:
    """Whether standard error is the output of a notebook's cell."""
    return type(sys.stderr).__module__.startswith("ipykernel")
