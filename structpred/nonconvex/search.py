"""What all solvers share: a budget of inner problems, the best labels so far, the history, and what they return."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cache
from typing import Any, ClassVar, Literal

import numpy as np

from structpred.core.types import ArrayLike, Floats, Integers
from structpred.errors import ParameterError
from structpred.nonconvex.problem import Inner, SemiSupervisedProblem
from structpred.runtime.discovery import public_subclasses
from structpred.runtime.settings import checked_whole
from structpred.text.suggestions import named

#: how far the slopes of an inner problem may differ: of labels that are only looked at, and of those that are kept
LOOSE, TIGHT = 1e-2, 1e-8
#: a lower objective is one that is lower by more than this share
BETTER = 1e-9

Level = Literal["global", "eps-global", "local"]


@dataclass(frozen=True)
class Solution:
    """The labels or hidden states found, their classifier, and what is proven of them.

    p: weights, 0 or 1: (u,) of label +1 of the unlabelled points, or (n, K) of the states of each row. inner: the classifier.
    objective: the primal objective of the classifier with these labels. lower_bound <= the least objective <= objective.
    level: "global": branch and bound has shown that no labels are better by more than a millionth; "eps-global": by more than the
    share eps that was asked for; "local": neither, whatever the search. history: a row for each improvement, with
    "inner" (inner problems solved until then), "objective" and "event"; path: p at each of them. n_inner: inner problems in all.
    report: what the solver says besides, by name.
    """

    p: Floats
    inner: Any
    objective: float
    lower_bound: float
    level: Level
    history: list[dict[str, Any]] = field(default_factory=list)
    n_inner: int = 0
    report: dict[str, float] = field(default_factory=dict)
    path: list[Floats] = field(default_factory=list)

    @property
    def labels(self) -> Integers:
        """+1 or -1 for each unlabelled point."""
        return np.where(self.p >= 0.5, 1, -1)

    @property
    def states(self) -> Integers:
        """(n,) a state of each row's group."""
        return np.asarray(self.p.argmax(axis=1))


@dataclass(frozen=True)
class Solver(ABC):
    """A method for `SemiSupervisedProblem`; its settings are plain numbers.

    max_inner: the most inner problems that it may solve: the budget that solvers are compared by.
    """

    #: what users call it
    name: ClassVar[str] = ""
    #: whether it is for the losses of unlabelled points alone, not for other problems of two labels for each point
    unlabelled_only: ClassVar[bool] = False
    max_inner: int = 10_000

    def solve(self, problem: SemiSupervisedProblem, seed: int = 0, start: ArrayLike | None = None) -> Solution:
        """The best labels that it finds.

        start: (u,) weights in [0, 1] of label +1 to begin with; None: the solver's own start.
        Raises ParameterError for a start outside that set, and for settings out of their range.
        """
        search = Search(problem, self.max_inner)
        if problem.positives is not None and not float(problem.positives).is_integer():
            raise ParameterError(f"{self.name}: labels need a whole number of positives, got {problem.positives}")
        if self.unlabelled_only and problem.kind != SemiSupervisedProblem.kind:
            raise ParameterError(f"solver {self.name!r} is for unlabelled points, not for {problem.kind}; take 'staged' or 'ao'")
        p = None if start is None else problem.best_vertex(problem.checked_weights(start) - 0.5)
        if problem.u == 0:
            search.offer(np.zeros(0), None, "all points have labels")
            return search.solution("global", search.objective)
        return self._run(search, np.random.default_rng(seed), p)

    @abstractmethod
    def _run(self, search: "Search", rng: np.random.Generator, start: Floats | None) -> Solution:
        """Offer labels to the search until the budget is used up, or sooner. start: labels, 0 and 1, within the balance."""


class Incumbent:
    """What every search keeps: counts inner problems, keeps the best weights p, and never lets them become worse.

    problem: one with `solve`, `primal`, `gradient`, `best_vertex` and `told`. tol: for solutions that are kept. p: to begin with.
    """

    problem: Any
    inner: Any

    def __init__(self, problem: Any, max_inner: int, tol: float, p: Floats) -> None:
        self.problem, self.max_inner, self.tol = problem, checked_whole(max_inner, "max_inner"), tol
        self.n_inner = 0
        self.p, self.inner, self.objective = p, None, np.inf
        self.history: list[dict[str, Any]] = []
        self.path: list[Floats] = []

    @property
    def exhausted(self) -> bool:
        """Whether the budget is used up."""
        return self.n_inner >= self.max_inner

    def solve(self, *weights: Floats, start: Any = None, tol: float = LOOSE, stop_at: float = np.inf) -> Any:
        """An inner problem for these weights of labels or states, counted."""
        self.n_inner += 1
        return self.problem.solve(*weights, start=start, tol=tol, stop_at=stop_at)

    def offer(self, p: Floats, start: Any, event: str) -> bool:
        """Solve tightly for p and keep it if its objective is lower than the best; whether it was."""
        if start is not None and start.objective >= self.objective:
            return False  # a dual value, which solving tightly can only raise
        inner = self.solve(p, start=start, tol=self.tol)
        objective = self.problem.primal(inner, p)
        if self.inner is not None and not objective < self.objective - BETTER * abs(self.objective):
            return False
        self.p, self.inner, self.objective = p.copy(), inner, objective
        self.path.append(self.p)
        self.history.append({"inner": self.n_inner, "objective": objective, "event": event})
        if self.problem.told is not None:
            self.problem.told(self.history[-1])
        return True

    def climb(self, p: Floats, start: Any = None) -> tuple[Floats, Any]:
        """Alternate between the classifier for p and the labels for the classifier, p <- argmax_P <g(p), p>, while F rises.

        Alternating optimisation, the concave-convex procedure of Yu & Joachims 2009 for hidden states, and gradient ascent on F
        with full steps are this.
        """
        inner = self.solve(p, start=start)
        while not self.exhausted:
            better = self.problem.best_vertex(self.problem.gradient(inner))
            if np.array_equal(better, p):
                break
            found = self.solve(better, start=inner)
            if not found.objective < inner.objective - BETTER * abs(inner.objective):
                break
            p, inner = better, found
        return p, inner

    def solution(self, level: Level = "local", lower_bound: float | None = None, **report: float) -> Solution:
        """What the solver returns. lower_bound: 0 where none is known."""
        assert self.inner is not None
        bound = lower_bound or 0.0
        return Solution(self.p, self.inner, self.objective, bound, level, self.history, self.n_inner, report, self.path)


class Search(Incumbent):
    """The state of one run over labels."""

    problem: SemiSupervisedProblem
    inner: Inner | None

    def __init__(self, problem: SemiSupervisedProblem, max_inner: int, tol: float = TIGHT) -> None:
        super().__init__(problem, max_inner, tol, np.zeros(problem.u))
        self._root: Inner | None = None

    def root(self) -> Inner:
        """The classifier of the labelled points alone; no labels of the others have a lower objective."""
        if self._root is None:
            nothing = np.zeros(self.problem.u)
            self._root = self.solve(nothing, nothing, tol=self.tol)
        return self._root

    def supervised(self) -> Floats:
        """The labels that the classifier of the labelled points gives the others."""
        return self.problem.best_vertex(self.problem.gradient(self.root()))

    def solution(self, level: Level = "local", lower_bound: float | None = None, **report: float) -> Solution:
        """As the parent's; where no bound is known, that of the labelled points alone."""
        if self.inner is None:
            self.offer(self.supervised(), None, "supervised")
        assert self.inner is not None
        bound = self.root().objective if lower_bound is None else lower_bound
        bound = min(bound, self.inner.objective)  # a dual value: the objective is above the optimum by rounding errors
        return super().solution(level, bound, **report)


def random_labels(problem: SemiSupervisedProblem, rng: np.random.Generator) -> Floats:
    """Random labels within the balance, as weights 0 and 1."""
    return problem.best_vertex(rng.normal(size=problem.u))


@cache
def solvers(parent: Any = Solver) -> dict[str, type[Any]]:
    """The solvers with this parent by name."""
    return {kind.name: kind for kind in public_subclasses("structpred.nonconvex", parent)}


def resolve_solver(solver: Any, parent: Any = Solver) -> Any:
    """The solver with this parent for a name, or the object itself; ParameterError for anything else.

    >>> resolve_solver("pdm_rounds").degree
    0.2
    """
    if isinstance(solver, str):
        return named("solver", solver, solvers(parent), " or a solver object")()
    if not isinstance(solver, parent):
        raise ParameterError(f"solver: expected a name or an instance of a solver such as PDMRounds(degree=0.1), got {solver!r}")
    return solver
