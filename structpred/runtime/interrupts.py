"""Ctrl-C, SIGTERM and SIGHUP: finish the step, then stop in order; a step that takes long is abandoned instead."""

import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any

#: what ends a run in order; a terminal that closes sends SIGHUP, which Windows has not
SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


class Abandoned(Exception):
    """A long step ended before its end because a signal came; the state is as it was before the step."""


_running: list["Interrupts"] = []


@contextmanager
def may_be_abandoned() -> Iterator[None]:
    """Around work that takes seconds and changes nothing of the state: a signal ends it early, with Abandoned."""
    inner = _running[-1] if _running and threading.current_thread() is threading.main_thread() else None
    if inner is None:
        yield
        return
    before, inner.listening = inner.listening, True
    try:
        yield
    finally:
        inner.listening = before


def abandon_if_asked() -> None:
    """Raise Abandoned where a signal has come during work that may be abandoned: called between pieces of it."""
    asked = bool(_running) and _running[-1].listening and _running[-1].raised is not None
    if asked and threading.current_thread() is threading.main_thread():
        _running[-1].holding = True
        raise Abandoned


def hear(handler: Any, numbers: Sequence[signal.Signals] = SIGNALS) -> None:
    """Set what these signals do in this process, but for those that it ignores (as under nohup)."""
    for number in numbers:
        if signal.getsignal(number) not in (signal.SIG_IGN, None):
            signal.signal(number, handler)


def leave_to_parent() -> None:
    """Ignore what a terminal sends to a whole group of processes, Ctrl-C and SIGHUP: the parent decides what it means."""
    hear(signal.SIG_IGN, [number for number in SIGNALS if number != signal.SIGTERM])


class Interrupts:
    """A context in which the first signal of `SIGNALS` only raises a flag; a second Ctrl-C or SIGTERM breaks in at once.

    While something is written (`held`) the second waits for its end. SIGHUP is never the second: service managers and terminals
    send it beside another. Outside the main thread Python allows no handlers: the flag then stays down and signals act as
    usual. So does a signal that the program ignores (as under nohup) or that is handled outside Python.
    """

    def __init__(self) -> None:
        self.raised: signal.Signals | None = None
        self.listening = self.holding = self.waiting = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> "Interrupts":
        if threading.current_thread() is threading.main_thread():
            self._before = {number: found for number in SIGNALS if (found := signal.getsignal(number)) is not None}
            hear(self._handle)
            _running.append(self)
        return self

    def asked(self) -> bool:
        """Whether to stop now, at the end of a step; if so, a second signal waits until `held` has ended."""
        self.holding = self.raised is not None
        return self.holding

    @contextmanager
    def held(self) -> Iterator[None]:
        """Around work that must not be broken in two: a second signal is a KeyboardInterrupt at its end."""
        self.holding = True
        try:
            yield
        finally:
            self.holding = False
            if self.waiting:
                raise KeyboardInterrupt

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.raised is None:
            self.raised = signal.Signals(number)
        elif number in (signal.SIGINT, signal.SIGTERM):
            self.waiting = True
            if not self.holding:
                raise KeyboardInterrupt

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self in _running:
            _running.remove(self)
        for number, handler in self._before.items():
            signal.signal(number, handler)
