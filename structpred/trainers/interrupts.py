"""Ctrl-C and SIGTERM: finish the step, then stop in order."""

import signal
import threading
from types import FrameType, TracebackType
from typing import Any


class Interrupts:
    """A context in which the first SIGINT or SIGTERM only raises a flag; a second Ctrl-C breaks in at once.

    Outside the main thread Python allows no handlers: the flag then stays down and signals act as usual. So does a signal
    that the program ignores (as under nohup) or that is handled outside Python.
    """

    def __init__(self) -> None:
        self.raised: signal.Signals | None = None
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> "Interrupts":
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                if signal.getsignal(number) not in (signal.SIG_IGN, None):
                    self._before[number] = signal.signal(number, self._handle)
        return self

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.raised is not None:
            raise KeyboardInterrupt
        self.raised = signal.Signals(number)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
