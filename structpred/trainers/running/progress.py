"""What a run shows while it trains: nothing, lines on stderr with a bar on a terminal, or one changing output in a notebook."""

import math
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

import numpy as np

from structpred.core.result import Record
from structpred.errors import ParameterError
from structpred.runtime.standard_error import at_terminal, in_notebook, rewrite, say
from structpred.text.markup import scrolling, table, tag
from structpred.text.tables import cut

#: rows of the history that a notebook shows
_ROWS = 8
#: seconds between changes of a bar or of a notebook's output
_PAUSE = 0.25
#: characters of a bar
_WIDTH = 20
#: seconds between lines of passes that have neither an objective nor a score
_QUICK = 0.1


class Display:
    """A context around the passes of a run, which shows nothing: the parent of those that do.

    trainer: its name. total: passes at most. stage: the part of the training that the run is, where there are several.
    """

    def __init__(self, trainer: str, total: int, stage: str = "") -> None:
        self.total, self.stage = total, cut(stage, 40)
        self.title = f"{trainer} ({self.stage})" if stage else trainer

    def __enter__(self) -> Self:
        return self

    def update(self, passes: int, part: float, history: Sequence[Record], doing: str = "") -> None:
        """This number of whole passes is done, and `part` of the next; doing: what is under way in place of a pass."""

    def tell(self, history: Sequence[Record]) -> None:
        """The last row of the history is new."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """The end of the run."""

    def heading(self, passes: int, doing: str) -> str:
        """What the run does now."""
        return f"{self.title}: {doing or f'pass {min(passes + 1, self.total)} of {self.total}'}"


class Lines(Display):
    """A line on stderr for each pass; of very short ones for those with an objective or a score."""

    said = -math.inf

    def tell(self, history: Sequence[Record]) -> None:
        """Write the line."""
        now = time.perf_counter()
        if has_news(history[-1]) or now - self.said >= _QUICK:
            self.said = now
            say((f"{self.stage}: " if self.stage else "") + describe(history[-1]))


class Bar(Lines):
    """Lines, and below them one that changes: the passes, the latest gap and the time left, as long as the run lasts."""

    def __enter__(self) -> Self:
        self.began, self.shown = time.perf_counter(), -math.inf
        return self

    def update(self, passes: int, part: float, history: Sequence[Record], doing: str = "") -> None:
        """Move the bar, if it has stood for a while."""
        now = time.perf_counter()
        if now - self.shown >= _PAUSE:
            self.shown = now
            done = min(passes + part, self.total) / self.total
            known = done > 0 and now - self.began >= 1  # the first moments say little
            left = f"{(now - self.began) * (1 / done - 1):.0f} s left" if known else ""
            gaps = [row["gap"] for row in history if row["gap"] is not None]
            gap = f", gap {gaps[-1]:.3g}" if gaps else ""
            rewrite(f"[{'=' * round(_WIDTH * done):{_WIDTH}}] {left:>11}  {self.heading(passes, doing)}{gap}")

    def tell(self, history: Sequence[Record]) -> None:
        """Write the line where the bar was."""
        rewrite("")
        super().tell(history)
        self.shown = -math.inf

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        rewrite("")


class Output(Display):
    """One output of a notebook's cell: a bar and the latest rows that say something, changed in place some times a second."""

    def __enter__(self) -> Self:
        from IPython.display import display

        self.now: tuple[int, float, Sequence[Record], str] = (0, 0.0, (), "")
        self.shown = time.perf_counter()
        self.handle: Any = display(self._view(), display_id=True)  # type: ignore[no-untyped-call,unused-ignore]
        return self

    def update(self, passes: int, part: float, history: Sequence[Record], doing: str = "") -> None:
        """Change the output, if it has stood for a while."""
        self.now = (passes, part, history, doing)
        if time.perf_counter() - self.shown >= _PAUSE:
            self.handle.update(self._view())
            self.shown = time.perf_counter()

    def tell(self, history: Sequence[Record]) -> None:
        """As `update`."""
        self.update(int(history[-1]["passes"] or 0), 0.0, history)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.handle.update(self._view(ended=True))

    def _view(self, ended: bool = False) -> "View":
        passes, part, history, doing = self.now
        if ended:
            seconds = history[-1]["seconds"] if history else None
            return View(f"{self.title}: {passes} passes in {seconds or 0.0:.1f} s", None, history)
        return View(self.heading(passes, doing), min(passes + part, self.total) / self.total, history)


class View:
    """What a notebook shows of a run. done: the share of the passes that is done, None at the end."""

    def __init__(self, heading: str, done: float | None, history: Sequence[Record]) -> None:
        news = list(filter(has_news, history[:-1]))
        self.heading, self.done, self.rows = heading, done, [figures(row) for row in [*news, *history[-1:]][-_ROWS:]]

    def __repr__(self) -> str:
        """The heading, where there is no HTML."""
        return self.heading

    def _repr_html_(self) -> str:
        bar = "" if self.done is None else tag("progress", value=self.done, max=1)
        names = list(dict.fromkeys(name for row in self.rows for name in row))
        rows = [[row.get(name, "") for name in names] for row in self.rows]
        return scrolling(tag("div", self.heading, " ", bar), table(names, rows, numbers=len(names)) if rows else "")


def checked_verbose(verbose: Any) -> bool:
    """Whether to show anything; ParameterError for anything but a whole number >= 0, True and False."""
    if not isinstance(verbose, int | np.integer) or verbose < 0:
        raise ParameterError(f"verbose must be 0 (silent) or 1 (a line a pass), got {verbose!r}")
    return bool(verbose)


def display_of(verbose: int, trainer: str, total: int, stage: str) -> Display:
    """What shows a run to whoever reads standard error; verbose=0 shows nothing."""
    kind = Display if not verbose else Output if in_notebook() else Bar if at_terminal() else Lines
    return kind(trainer, total, stage)


def has_news(row: Record) -> bool:
    """Whether a row has an objective, or a score on held-out data."""
    return row["primal"] is not None or row["dev_score"] is not None


def figures(row: Record) -> dict[str, str]:
    """What a row of the history says, as people write it: shares in per cent, the gap as one of the primal."""
    primal, gap, dev = row["primal"], row["gap"], row["dev_score"]
    found = {"pass": str(row["passes"]), "seconds": f"{row['seconds'] or 0.0:.1f}"}
    if primal is not None:
        found["primal"] = f"{primal:.6g}"
    if primal and gap is not None:
        found["gap"] = f"{100 * gap / abs(primal):.3g} %"
    if dev is not None:
        found["dev"] = f"{100 * dev:.2f} %"
    return found


def describe(row: Record) -> str:
    """One row of the history as a line.

    >>> describe({"passes": 3, "seconds": 1.5, "primal": 2.0, "dual": 1.9, "gap": 0.1, "dev_score": None})
    'pass   3     1.5 s  primal 2  gap 5 %'
    """
    said = figures(row)
    first = f"pass {said.pop('pass'):>3}  {said.pop('seconds'):>6} s"
    return "  ".join([first, *(f"{name} {value}" for name, value in said.items())])
