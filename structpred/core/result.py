"""What training gives back: weights, a certificate, the history, and why it stopped."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from structpred.core.weights import Vector
from structpred.text.markup import join, scrolling, table, tag

#: One row of the history. Keys: passes, seconds, cpu_seconds, oracle_calls, primal, dual, gap, dev_score; None where not known.
Record = dict[str, float | int | None]

#: by how much, relative to 1 + |primal|, bounds may cross by rounding
CROSSING = 1e-5
#: by how much, relative to the sizes of its terms, a sum in float64 may be wrong: a few units in the last place
ROUNDING = 8 * float(np.finfo(np.float64).eps)
#: what a certificate says of classes from outside the package
_OWN = {True: "own classes checked on examples", False: "own classes were not checked"}


@dataclass(frozen=True)
class Certificate:
    """Bounds on the training objective: dual <= optimum <= primal, where primal is the objective at the returned weights.

    gap = primal - dual, or None where either is missing. `proven` is False where the oracle may have missed the
    maximum: `primal` is then only an estimate from below, and the numbers prove nothing. local: the problem is not convex, as
    where labels are missing: `primal` is its value at a local optimum at best, and no bound on the optimum is known.
    checked: True where every class from outside the package that took part passed its contract, which is tried on examples and
    proves nothing of other inputs; False where that was turned off, None where no such class took part, or nobody asked.
    """

    primal: float | None = None
    dual: float | None = None
    proven: bool = False
    local: bool = False
    checked: bool | None = None

    @property
    def gap(self) -> float | None:
        """primal - dual."""
        return None if self.primal is None or self.dual is None else self.primal - self.dual

    @property
    def relative_gap(self) -> float | None:
        """The gap as a share of the primal."""
        return None if self.gap is None or self.primal is None else self.gap / max(abs(self.primal), 1e-300)

    @property
    def certifies(self) -> bool:
        """Whether the bounds prove anything about the weights: there are two of them, both hold, and they do not cross."""
        return self.gap is not None and self.proven and not self.local and not crossing(self.primal, self.dual)

    def meaning(self) -> str:
        """What the numbers say of the weights, in two sentences or three.

        >>> Certificate(primal=14.28, proven=True).meaning()
        'Nothing is certified: no lower bound on the optimum was computed. Judge the model by its scores on new data.'
        """
        if self.gap is not None and self.certifies:
            share = 100 * max(self.relative_gap or 0.0, 0.0)
            note = "" if self.checked is None else f" {_OWN[self.checked].capitalize()}."
            if share <= 1.0:
                return f"The training objective is optimal to {share:.3g} %. More passes can hardly lower it.{note}"
            bounds = f"the optimum of the training objective is at most {share:.3g} % below what was reached"
            if share >= 100.0:  # "121 % below" says nothing of an objective that cannot be negative
                bounds = f"the optimum of the training objective lies between {self.dual:.3g} and {self.primal:.3g}"
            advice = "Scores usually settle long before this gap closes."
            if share > 50.0:
                advice = "That says little of these weights: train longer, or judge them by their scores on new data."
            return f"The bounds hold: {bounds}. {advice}{note}"
        if self.primal is None:
            why = "no objective was computed"
        elif self.local:
            why = "the problem is not convex, and training may have ended in a local optimum"
        elif self.dual is None:
            why = "no lower bound on the optimum was computed"
        elif crossing(self.primal, self.dual):
            why = "the lower bound lies above what was reached, so that one of them is wrong"
        else:
            why = "inference is inexact, and the bounds are estimates"
        return f"Nothing is certified: {why}. Judge the model by its scores on new data."

    def __str__(self) -> str:
        """One line; it says so when it is not a proof."""
        if self.primal is None:
            return "no certificate (this trainer has no objective)"
        line = f"primal {self.primal:.6g}"
        if self.dual is not None:
            line += f", dual {self.dual:.6g}, gap {self.gap:.3g} ({100 * (self.relative_gap or 0.0):.3g} % of the primal)"
        if self.local:
            return f"{line}, local: the problem is not convex, and no bound on the optimum is known"
        if not self.proven:
            return f"{line}: an estimate, not a proof (the oracle is inexact)"
        if self.dual is None:
            line += ", without a lower bound"
        return line if self.checked is None else f"{line}, {_OWN[self.checked]}"

    def _repr_html_(self) -> str:
        """The bounds as a table, and the line, for notebooks."""
        shown = ["" if value is None else f"{value:.6g}" for value in (self.primal, self.dual, self.gap)]
        return join(table(("primal", "dual", "gap"), [shown], numbers=3), tag("p", str(self)), tag("p", self.meaning()))


def crossing(primal: float | None, dual: float | None) -> bool:
    """Whether a lower bound lies above an upper bound of the same number, by more than rounding."""
    return primal is not None and dual is not None and dual > primal + CROSSING * (1.0 + abs(primal))


def sound(bound: float, size: float) -> float:
    """A lower bound; minus infinity, which bounds nothing, where its terms, whose sizes add up to `size`, may be rounding."""
    return bound if ROUNDING * size <= CROSSING * (1.0 + abs(bound)) else -float("inf")


class History(list[Record]):
    """The rows of a history: a list, which notebooks show as a table."""

    def _repr_html_(self) -> str:
        """A column for each figure that some row has."""
        names = list(dict.fromkeys(name for row in self for name, value in row.items() if value is not None))
        rows = [[_figure(row.get(name)) for name in names] for row in self]
        return scrolling(table(names, rows, numbers=len(names)))


def _figure(value: Any) -> str:
    return "" if value is None else value if isinstance(value, str) else f"{value:.6g}"


@dataclass(frozen=True)
class Result:
    """The outcome of one training run.

    stop_reason: "max_iter", "search_bound" (max_iter passes, but more of them will not close the gap: more than half of it, or
    some of it where the last pass changed nothing, lies between the bounds of searches and what they found), "tol", "dev"
    (no better on held-out data), "callback", "no_updates" (a pass changed nothing), "interrupted" or "imported"
    (another program learnt the weights).

    passes counts passes over the data, from the very start if the run was resumed. report: what the trainer says besides,
    by name. Group k of the weights, group_names[k], is groups[k]:groups[k+1].
    """

    weights: Vector
    certificate: Certificate
    history: Sequence[Record] = field(default_factory=list)
    stop_reason: str = "max_iter"
    passes: int = 0
    progress: Any = None
    report: dict[str, npt.NDArray[np.float64]] = field(default_factory=dict)
    groups: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(1, np.int64))
    group_names: Sequence[str] = ()
