"""One line of progress on stderr, only where stderr is a terminal."""

import sys
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING

from structpred.core.result import Record

if TYPE_CHECKING:
    from rich.progress import Progress


class ProgressLine:
    """A context that shows passes, the latest gap and the time left; silent where stderr is not a terminal."""

    def __init__(self, name: str, total: int) -> None:
        self.name, self.total = name, total
        self.bar: Progress | None = None

    def __enter__(self) -> "ProgressLine":
        if sys.stderr is not None and sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

            columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn())
            self.bar = Progress(*columns, console=Console(file=sys.stderr), transient=True)
            self.bar.start()
            self.job = self.bar.add_task(self.name, total=self.total)
        return self

    def update(self, passes: int, part: float, history: Sequence[Record]) -> None:
        """Show `passes` whole passes and `part` of the next."""
        if self.bar is not None:
            known = [row for row in history if row["gap"] is not None]
            gap = f", gap {known[-1]['gap']:.3g}" if known else ""
            done = min(passes + part, self.total)
            self.bar.update(self.job, completed=done, description=f"{self.name}: pass {passes + 1} of {self.total}{gap}")

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self.bar is not None:
            self.bar.stop()
