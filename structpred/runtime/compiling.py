"""A line that is rewritten while kernels compile: which one, and for how long."""

import threading
import time

from structpred.runtime.standard_error import can_rewrite, rewrite

#: seconds from one rewriting to the next
EVERY = 1.0


class CompilingLine:
    """Names the kernel that is being compiled, by a thread that lives as long as that takes."""

    def __init__(self) -> None:
        self._told = time.monotonic()
        self._done, self._teller = threading.Event(), threading.Thread()

    def begin(self, name: str) -> None:
        """This kernel is compiled from now on."""
        self._done = threading.Event()
        self._teller = threading.Thread(target=self._tell, args=(name, self._done), daemon=True)
        self._teller.start()

    def end(self) -> None:
        """It is compiled. Nothing is left of the line."""
        self._done.set()
        if self._teller.is_alive():
            self._teller.join()

    def _tell(self, name: str, done: threading.Event) -> None:
        begun, shown = time.monotonic(), False
        while not done.wait(max(0.0, self._told + EVERY - time.monotonic())):
            self._told = now = time.monotonic()
            if can_rewrite():
                rewrite(f"structpred: compiling kernels: {name}, {now - begun:.0f} s")
                shown = True
        if shown:
            rewrite("")
