"""What a contract check found: a report where everything held, an error that lists the broken rules where it did not."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from structpred.contracts.engine import Examiner, brief
from structpred.core.oracle import Shape
from structpred.errors import OracleError, StructpredError
from structpred.text.markup import join, preformatted, tag


@dataclass(frozen=True)
class Report:
    """What was checked and held. checked: rule -> number of checks. skipped: rule -> the reason why it was not checked."""

    name: str
    shapes: tuple[Shape, ...]
    checked: dict[str, int]
    skipped: dict[str, str]

    def __str__(self) -> str:
        """One line a rule."""
        lines = [f"{self.name} satisfies its contract on {len(self.shapes)} shapes: {brief(list(self.shapes))}"]
        lines += [f"  held      {rule} ({n} checks)" for rule, n in sorted(self.checked.items())]
        lines += [f"  unchecked {rule}: {reason}" for rule, reason in sorted(self.skipped.items())]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """The outcome for notebooks; the rules unfold."""
        first, *rules = str(self).splitlines()
        count = f"{len(self.checked)} rules held, {len(self.skipped)} were not checked"
        return join(tag("p", first), tag("details", tag("summary", count), preformatted("\n".join(rules))))


@dataclass(frozen=True)
class OracleReport(Report):
    """The report of an oracle.

    argmax_seconds is the median CPU time of one argmax on these (small) shapes, for information: nothing depends on it.
    """

    argmax_seconds: float

    def __str__(self) -> str:
        """One line a rule, and the time of one argmax."""
        return f"{super().__str__()}\n  argmax takes {1e6 * self.argmax_seconds:.0f} CPU microseconds on these shapes (median)"


def raise_if_broken(examiner: Examiner, error: type[StructpredError]) -> None:
    """Raise `error` if a rule is broken: one line a rule, with the place, what was expected, what came, and the likely cause."""
    if not examiner.broken:
        return
    lines = [f"{examiner.name} breaks {len(examiner.broken)} of the rules of its contract:"]
    for rule, case in examiner.broken.items():
        often = f" ({case.times} times in all)" if case.times > 1 else ""
        lines.append(f"- {rule}, at {case.where}{often}: expected {case.expected}; got {case.came}. Likely cause: {case.cause}.")
    raise error("\n".join(lines))


def reported(examiner: Examiner, error: type[StructpredError], shapes: Iterable[Shape] = ()) -> Report:
    """The report of what was examined on these shapes; `error` for the rules that were found broken."""
    raise_if_broken(examiner, error)
    return Report(examiner.name, tuple(shapes), dict(examiner.checked), examiner.skipped)


def examined(
    thing: object, examine: Callable[..., object], error: type[StructpredError], seed: int, shapes: Iterable[Shape] | None = None
) -> Report:
    """The report of an examination, which may end where a case ends: examine(examiner), or (examiner, shape) for each shape."""
    examiner, tried = Examiner(thing, np.random.default_rng(seed)), None if shapes is None else list(shapes)
    for args in [()] if tried is None else [(shape,) for shape in tried]:
        with suppress(OracleError):
            examine(examiner, *args)
    return reported(examiner, error, tried or ())
