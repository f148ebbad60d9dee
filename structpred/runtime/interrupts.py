"""Ctrl-C and SIGTERM: finish the step, then stop in order; a step that takes long is given up instead."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any


class GivenUp(Exception):
    """A long step ended before its end because a signal came; the state is as it was before the step."""


_running: list["Interrupts"] = []


@contextmanager
def may_be_given_up() -> Iterator[None]:
    """Around work that takes seconds and changes nothing of the state: a signal ends it early, with GivenUp."""
    inner = _running[-1] if _running and threading.current_thread() is threading.main_thread() else None
    if inner is None:
        yield
        return
    before, inner.listening = inner.listening, True
    try:
        yield
    finally:
        inner.listening = before


def give_up_if_asked() -> None:
    """Raise GivenUp where a signal has come during work that may be given up: called between pieces of it."""
    asked = bool(_running) and _running[-1].listening and _running[-1].raised is not None
    if asked and threading.current_thread() is threading.main_thread():
        raise GivenUp


class Interrupts:
    """A context in which the first SIGINT or SIGTERM only raises a flag; a second Ctrl-C breaks in at once.

    Outside the main thread Python allows no handlers: the flag then stays down and signals act as usual. So does a signal
    that the program ignores (as under nohup) or that is handled outside Python.
    """

    def __init__(self) -> None:
        self.raised: signal.Signals | None = None
        self.listening = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> "Interrupts":
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                if signal.getsignal(number) not in (signal.SIG_IGN, None):
                    self._before[number] = signal.signal(number, self._handle)
            _running.append(self)
        return self

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.raised is not None:
            raise KeyboardInterrupt
        self.raised = signal.Signals(number)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self in _running:
            _running.remove(self)
        for number, handler in self._before.items():
            signal.signal(number, handler)
