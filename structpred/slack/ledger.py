"""What a search has asked and learnt so far; shared by all searches."""

from dataclasses import dataclass

import numpy as np

from structpred.errors import ParameterError
from structpred.slack.problem import Candidate, SlackProblem

#: plain queries use lam in [1 / LAM_MAX, LAM_MAX]: beyond, h is lost in the rounding of h + lam g
LAM_MAX = float(2**40)
#: levels of the loss that are looked at one by one; where there are more, they are taken for a continuum
MAX_LEVELS = 4096


@dataclass(frozen=True)
class Goal:
    """When a search may stop: at an upper bound <= max(threshold, (1 + rel) * best Phi + abs), or after max_queries queries.

    Raises ParameterError for settings that make no sense.
    """

    threshold: float | None = None
    rel: float = 0.0
    abs: float = 0.0
    max_queries: int | None = None

    def __post_init__(self) -> None:
        if not (np.isfinite(self.rel) and self.rel >= 0 and np.isfinite(self.abs) and self.abs >= 0):
            raise ParameterError(f"rel and abs must be finite and >= 0, got {self.rel} and {self.abs}")
        if self.threshold is not None and not np.isfinite(self.threshold):
            raise ParameterError(f"threshold must be a finite number or None, got {self.threshold}")
        whole = isinstance(self.max_queries, int | np.integer) and not isinstance(self.max_queries, bool)
        if self.max_queries is not None and not (whole and self.max_queries >= 1):
            raise ParameterError(f"max_queries must be a whole number >= 1 or None, got {self.max_queries!r}")

    def floor(self, phi: float) -> float:
        """The upper bound that is good enough once an output with `phi` is known."""
        good = phi * (1.0 + self.rel) + self.abs
        return good if self.threshold is None else max(good, self.threshold)


class Ledger:
    """Makes the queries of a search and keeps the best output, the lines (lam, K) of plain queries and the bound they give.

    smooth: the smallest K^2 / (4 lam) so far. Every output with h, g > 0 has K >= h + lam g >= 2 sqrt(lam h g), so none has a
    larger Phi (Lemma 5), whichever lam was asked. Where g takes multiples of a unit only, the lines are read at these, which
    is sharper: no output with the loss g has h > min (K - lam g). ceiling: the better of the two. cut: the budget ran out.
    """

    def __init__(self, problem: SlackProblem, goal: Goal, incumbent: Candidate | None = None, lam0: float | None = None) -> None:
        self.problem, self.goal = problem, goal
        self.best = problem.truth
        self.n_plain = self.n_constrained = 0
        self.ceiling = self.smooth = np.inf
        self.cut = False
        self.lines: list[tuple[float, float]] = []
        self.incumbent = incumbent
        if incumbent is not None:
            self.offer(incumbent)
        # the ray of the incumbent: where the query line touches its hyperbola (section 4.5, label cache)
        self.lam0 = float(lam0 if lam0 is not None else self.best.h / self.best.g if self.best.phi > 0.0 else 1.0)
        if not (np.isfinite(self.lam0) and self.lam0 > 0):
            raise ParameterError(f"lam0 must be finite and > 0, got {self.lam0}")

    @property
    def floor(self) -> float:
        """An upper bound that is good enough."""
        return self.goal.floor(self.best.phi)

    def may_ask(self) -> bool:
        """Whether the budget allows another query; notes that it does not."""
        limit = self.goal.max_queries
        self.cut = limit is not None and self.n_plain + self.n_constrained >= limit
        return not self.cut

    def open(self) -> bool:
        """Whether plain queries still have something to do and something to do it with."""
        return self.ceiling > self.floor and self.may_ask()

    def offer(self, found: Candidate) -> None:
        """Keep the candidate if its Phi is larger than the best so far (ties: the first stays)."""
        if found.label is not None and found.phi > self.best.phi:
            self.best = found

    def plain(self, lam: float) -> Candidate:
        """One plain query."""
        self.n_plain += 1
        found = self.problem.plain(lam)
        self.offer(found)
        self.lines.append((lam, found.bound))
        self.smooth = min(self.smooth, found.bound**2 / (4.0 * lam))
        self.ceiling = min(self.ceiling, self.smooth, self.top_level()[1])
        return found

    def top_level(self) -> tuple[float, float]:
        """(g, bound of Phi) for the level of the loss that the lines allow most; (0, inf) where there are no levels."""
        return top_level(self.lines, self.problem.loss_unit)

    def constrained(self, lam: float, alpha: float, beta: float, beta_inclusive: bool) -> Candidate | None:
        """One constrained query."""
        self.n_constrained += 1
        found = self.problem.constrained(lam, alpha, beta, beta_inclusive)
        if found is not None:
            self.offer(found)
        return found

    def kbest(self, lam: float, k: int) -> list[Candidate]:
        """The k best outputs of one plain query, which counts as a constrained one: it costs more."""
        self.n_constrained += 1
        found = self.problem.kbest(lam, k)
        for one in found:
            self.offer(one)
        return found


def top_level(lines: list[tuple[float, float]], unit: float) -> tuple[float, float]:
    """(g, bound of Phi) for the multiple g of `unit` at which the lines allow the largest Phi; (0, inf) where there are none."""
    finite = np.array([line for line in lines if line[1] < np.inf])
    if not unit > 0.0 or not len(finite):
        return 0.0, np.inf
    lam, K = finite[:, :1], finite[:, 1:]
    last = float((K / lam).min()) / unit  # beyond this loss some line says h < 0
    if last > MAX_LEVELS:
        return 0.0, np.inf
    g = unit * np.arange(1.0, max(last, 0.0) + 2.0)
    rounding = 4.0 * np.finfo(np.float64).eps * (np.abs(K) + lam * g)  # h is what is left of two large numbers
    bounds = np.maximum((K - lam * g + rounding).min(axis=0), 0.0) * g
    k = int(bounds.argmax())
    return float(g[k]), float(bounds[k])


def is_tangent(found: Candidate, lam: float) -> bool:
    """Whether the line of the query touches the hyperbola of what it found: then that output is the best of all (Lemma 2)."""
    return found.phi > 0.0 and abs(found.h - lam * found.g) <= 1e-12 * found.h


def same_point(a: Candidate | None, b: Candidate | None) -> bool:
    """Whether both are there and lie at the same place."""
    return a is not None and b is not None and (a.h, a.g) == (b.h, b.g)
