"""The search for the output with the largest Phi = max(h, 0) * g, by any method, with an upper bound that always holds."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from structpred.errors import ParameterError
from structpred.slack.angular import angular_search
from structpred.slack.binary import binary_search
from structpred.slack.bisecting import bisecting_search
from structpred.slack.direct import direct_search
from structpred.slack.hull import hull_search
from structpred.slack.hybrid import hybrid_search
from structpred.slack.kbest import kbest_search
from structpred.slack.ledger import Goal, Ledger
from structpred.slack.problem import NEEDS, Candidate, SlackProblem
from structpred.slack.sarawagi import sarawagi_search

#: name -> search; each returns an upper bound of Phi
METHODS: dict[str, Callable[[Ledger], float]] = {
    "angular": angular_search,
    "hull": hull_search,
    "hybrid": hybrid_search,
    "kbest": kbest_search,
    "bisecting": bisecting_search,
    "binary": binary_search,
    "sarawagi": sarawagi_search,
    "direct": direct_search,
}

#: why a search ended
STATUS: dict[str, str] = {
    "proven": "upper_bound is reached: nothing has a larger Phi",
    "tolerance": "upper_bound <= (1 + rel) * phi + abs",
    "below_threshold": "upper_bound <= threshold: nothing has a Phi above the threshold (phi may be anything below it)",
    "max_queries": "cut short; upper_bound is still valid",
    "exhausted": "the method finds nothing more, and upper_bound stays above phi: plain queries miss some, or bounds are loose",
}

_PROVEN = 1e-9


@dataclass(frozen=True)
class SearchResult:
    """label: the best output found, at (h, g), phi = max(h, 0) * g; the truth, with phi = 0, where none has a larger one.

    upper_bound: nothing has a larger Phi. It holds however the search ended, up to rounding; inf where an inexact oracle gives
    no bounds. exact: phi is the maximum, proven to 1e-9 (relative). relaxed: label is a point mu of a relaxation, and phi and
    exact are about the relaxation; whole outputs may all have a smaller Phi. upper_bound holds for these as well.
    n_plain, n_constrained: queries (a direct maximisation and a list of the k best count as one constrained query each).
    status: a key of STATUS. method: the search that ran.
    """

    label: Any
    h: float
    g: float
    phi: float
    upper_bound: float
    exact: bool
    n_plain: int
    n_constrained: int
    status: str
    method: str
    relaxed: bool = False

    def __str__(self) -> str:
        """One line; it says so when the label is fractional or unproven."""
        kind = " of the relaxation (outputs may be fractional)" if self.relaxed else ""
        queries = f"{self.n_plain} plain and {self.n_constrained} constrained queries"
        return f"{self.method}: phi {self.phi:.6g}{kind}, at most {self.upper_bound:.6g} ({self.status}; {queries})"


def choose(problem: SlackProblem) -> str:
    """The method that "auto" stands for: direct, hybrid, kbest or hull, the first for which the problem offers what it needs.

    A relaxation takes hull, which is exact there. Otherwise the first two are exact, kbest is where its lists grow long enough,
    and hull only where its bound happens to be met.
    """
    if problem.relaxed:
        return "hull"
    return next((name for name in ("direct", "hybrid", "kbest") if problem.offers.intersection(NEEDS[name])), "hull")


def search(
    problem: SlackProblem, method: str = "auto", incumbent: Candidate | None = None, threshold: float | None = None,
    rel: float = 0.0, abs: float = 0.0, max_queries: int | None = None, *, lam0: float | None = None,
) -> SearchResult:  # fmt: skip
    """The output with the largest Phi, as far as `method` can find it, and an upper bound of Phi.

    incumbent: an output known already, re-scored at the present weights (see LabelCache). lam0: where to begin; the ray of the
    incumbent if there is one, else 1. threshold: whatever is not above it is of no interest; the search ends once nothing can be,
    and otherwise finds the same maximum as without. rel, abs: end at upper_bound <= (1 + rel) phi + abs.
    Raises ParameterError for an unknown method or bad settings, MissingCapabilityError where the problem lacks what the method
    needs.
    """
    if method != "auto" and method not in METHODS:
        raise ParameterError(f"slack search: expected 'auto' or one of {', '.join(METHODS)}, got {method!r}")
    chosen = choose(problem) if method == "auto" else method
    problem.require(chosen)
    ledger = Ledger(problem, Goal(threshold, rel, abs, max_queries), incumbent, lam0)
    upper = min(METHODS[chosen](ledger), ledger.ceiling)
    best, goal = ledger.best, ledger.goal
    phi = best.phi
    upper = float(max(upper, phi))
    proven = upper <= phi * (1.0 + _PROVEN) if phi > 0.0 else upper <= 1e-12
    if proven:
        status = "proven"
    elif goal.threshold is not None and upper <= goal.threshold:
        status = "below_threshold"
    elif upper <= goal.floor(phi):
        status = "tolerance"
    else:
        status = "max_queries" if ledger.cut else "exhausted"
    counts = ledger.n_plain, ledger.n_constrained
    point = (float(best.h), float(best.g), float(phi))
    return SearchResult(
        best.label, *point, upper, bool(proven and np.isfinite(upper)), *counts, status, chosen, ledger.problem.relaxed
    )
