"""The slack-rescaled hinge as a surrogate: what trainers use, for any oracle, or for a task of three functions."""

from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from structpred.core.group_scales import Scale, scaled_dot
from structpred.core.sparse import SparseVector
from structpred.core.types import Floats
from structpred.core.weights import Vector
from structpred.errors import MissingCapabilityError, ParameterError
from structpred.runtime.settings import checked_whole
from structpred.slack.ledger import Goal
from structpred.slack.problem import Candidate, SlackProblem, StepProblem
from structpred.slack.search import METHODS, SearchResult, choose, search
from structpred.slack.task_problem import TaskProblem, oracle_needs
from structpred.task.steps import Step, SummedPieces, TaskLike
from structpred.task.task import Task


class LabelCache:
    """The last `size` different outputs of each instance of a task, size 0 keeps none; and what the last searches over a whole
    task found at which weights. Copies and files of it are empty.
    """

    def __init__(self, size: int) -> None:
        self.size = checked_whole(size, "the size of a label cache", 0)
        self._kept: WeakKeyDictionary[TaskLike, dict[int, list[Any]]] = WeakKeyDictionary()
        self._sweeps: WeakKeyDictionary[TaskLike, tuple[Vector, Any]] = WeakKeyDictionary()

    def __repr__(self) -> str:
        return f"LabelCache({self.size})"

    def __reduce__(self) -> tuple[type["LabelCache"], tuple[int]]:
        return LabelCache, (self.size,)

    def best(self, task: TaskLike, i: int, problem: SlackProblem) -> Candidate | None:
        """The kept output of instance i with the largest Phi at the present weights; None if there is none above 0."""
        candidates = [problem.rescore(label) for label in self._kept.get(task, {}).get(i, ())]
        best = max(candidates, key=lambda one: one.phi, default=None)
        return best if best is not None and best.phi > 0.0 else None

    def keep(self, task: TaskLike, i: int, label: Any) -> None:
        """Put an output in front; the one not used for longest goes."""
        if not self.size:
            return
        kept = self._kept.setdefault(task, {}).setdefault(i, [])
        kept[:] = [label, *(other for other in kept if _key(other) != _key(label))][: self.size]

    def keep_sweep(self, task: TaskLike, w: Vector, found: Any) -> None:
        """Keep what a sweep found at these weights, and nothing older."""
        self._sweeps[task] = (w.copy(), found)

    def swept(self, task: TaskLike, w: Vector) -> Any | None:
        """What was found at just these weights; None if the last searches were made at others."""
        kept = self._sweeps.get(task)
        return kept[1] if kept is not None and np.array_equal(kept[0], w) else None


def _key(label: Any) -> bytes:
    """The bytes of an array, or of the arrays of a step's output."""
    if hasattr(label, "tobytes"):
        return label.tobytes()
    return bytes(label.difference.indices.tobytes() + label.difference.values.tobytes())


class SlackRescaling(SummedPieces):
    """H_i(w) = max_y  loss(y_i, y) * max(0, 1 + <w, phi(x_i, y)> - <w, phi(x_i, y_i)>)  (Tsochantaridis et al. 2005).

    H_i is a maximum of pieces that are linear in w, with slope -loss * psi and constant loss: margin rescaling with psi scaled by
    the loss. The truth is one of the pieces (zero), so H_i >= 0. Where no output violates the margin the step is empty and
    trainers move towards the truth.

    Steps carry the search's upper bound, and `values` are upper bounds: gaps and certificates are valid whether or not the search
    found the maximum. They are proofs except where an inexact oracle gives no bounds at all (`certified`).

    Parameters
    ----------
    method : str
        The search, one of slack/search.py; "auto": the best that the oracle allows. "sarawagi" looks for what exceeds a slack,
        for the trainer n_slack alone; `values`, asked without one, are then those of "hull", by plain queries, too.
    relaxed : bool
        Maximise over the polytope of argmax_relaxed instead of over outputs. H_i is then larger, and steps may be fractional.
    rel, abs : float
        A search ends once its upper bound is at most (1 + rel) * phi + abs.
    max_queries : int, optional
        A search ends after this many calls of the oracle.
    cache_size : int
        How many outputs are kept for each instance. Later searches start from them; a resumed run starts without them.

    Raises
    ------
    ParameterError
        For an unknown method, a negative or infinite `rel` or `abs`, max_queries < 1 or cache_size < 0.

    References
    ----------
    Tsochantaridis, Joachims, Hofmann and Altun (2005), section 2.2.1; Choi, Meshi and Srebro (2016) for the searches.

    Examples
    --------
    >>> from structpred.models import ChainLabeler
    >>> model = ChainLabeler(surrogate=SlackRescaling(cache_size=3), max_iter=5).fit([np.eye(2)], [["a", "b"]])
    >>> model.predict([np.eye(2)])[0].tolist()
    ['a', 'b']
    """

    #: H_i is a maximum of functions linear in w, so cutting planes and Frank-Wolfe apply
    piecewise_linear = True

    def __init__(
        self, method: str = "auto", *, relaxed: bool = False, rel: float = 0.0, abs: float = 0.0,
        max_queries: int | None = None, cache_size: int = 0,
    ) -> None:  # fmt: skip
        if method != "auto" and method not in METHODS:
            raise ParameterError(f"method: expected 'auto' or one of {', '.join(METHODS)}, got {method!r}")
        Goal(None, rel, abs, max_queries)
        self.method, self.relaxed = method, bool(relaxed)
        self.rel, self.abs, self.max_queries = float(rel), float(abs), max_queries
        self.cache_size, self._cache = cache_size, LabelCache(cache_size)
        self.requires: tuple[str | tuple[str, ...], ...] = oracle_needs(method, self.relaxed)

    @property
    def needs_slack(self) -> bool:
        """Whether the search is for what exceeds a given slack."""
        return self.method == "sarawagi"

    def problem(self, task: TaskLike, w: Vector, i: int, scale: Scale = 1.0) -> TaskProblem | StepProblem:
        """The search problem of instance i at scale * w."""
        if isinstance(task, Task):
            return TaskProblem(task, w, i, scale, relaxed=self.relaxed)
        if self.relaxed:
            raise MissingCapabilityError(
                f"SlackRescaling(relaxed=True) needs argmax_relaxed, but {type(task).__name__} offers argmax alone; write an "
                "Oracle with it and use Task"
            )
        return StepProblem(task, w, i, scale)

    def search(self, task: TaskLike, w: Vector, i: int, scale: Scale = 1.0, *, threshold: float | None = None) -> SearchResult:
        """The search for instance i at scale * w; with a threshold it may end as soon as no output has a Phi above it."""
        return self._searched(task, self.problem(task, w, i, scale), i, threshold, self.method)

    def _value(self, task: TaskLike, problem: TaskProblem | StepProblem, i: int) -> SearchResult:
        """The search without a slack."""
        return self._searched(task, problem, i, None, "hull" if self.needs_slack else self.method)

    def _searched(
        self, task: TaskLike, problem: TaskProblem | StepProblem, i: int, threshold: float | None, method: str
    ) -> SearchResult:
        incumbent = self._cache.best(task, i, problem) if self.cache_size else None
        return search(problem, method, incumbent, threshold, self.rel, self.abs, self.max_queries)

    def term(self, task: TaskLike, w: Vector, i: int, scale: Scale = 1.0) -> Step:
        """The linear piece of H_i found at scale * w: difference = loss * psi, violation = its value, bound >= H_i."""
        return self.term_above(task, w, i, None, scale)

    def term_above(self, task: TaskLike, w: Vector, i: int, threshold: float | None, scale: Scale = 1.0) -> Step:
        """The same, but the search may end once H_i <= threshold is proven: fewer queries for cutting planes.

        bound > threshold unless that is so; a piece above the threshold is found if the search can find one.
        """
        problem = self.problem(task, w, i, scale)
        result = self._searched(task, problem, i, threshold, self.method)
        if not result.phi > 0.0:
            return Step(SparseVector(np.empty(0, np.int64), np.empty(0)), 0.0, 0.0, _finite(result.upper_bound, 0.0))
        self._cache.keep(task, i, result.label)
        psi = problem.difference(result.label)
        difference = SparseVector(psi.indices, result.g * psi.values)
        # from the difference, as trainers see it: so that violation + <w, difference> is the offset to the last bit but rounding
        violation = result.g - scaled_dot(w, difference, scale)
        return Step(difference, result.g, violation, max(violation, _finite(result.upper_bound, violation)))

    def offset(self, step: Step) -> float:
        """The constant of the linear piece: the loss."""
        return step.loss

    def values(self, task: TaskLike, w: Vector) -> Floats:
        """Upper bounds of H_i(w), all i; for a task that is not `certified`, the largest values found."""
        found = [self._value(task, self.problem(task, w, i), i) for i in range(len(task))]
        self._cache.keep_sweep(task, w, [_missed(one) for one in found])  # since a run that ends asks for it next
        return np.array([_finite(one.upper_bound, one.phi) for one in found])

    def unsettled(self, task: TaskLike, w: Vector) -> Floats:
        """By how much the search of each instance may have missed H_i(w): its upper bound less the value found, 0 where exact.

        This part of a duality gap does not go away with more training; a better search (see `choose`) closes it.
        """
        if (found := self._cache.swept(task, w)) is None:
            found = np.zeros(len(task))
            for i in range(len(task)):
                problem = self.problem(task, w, i)
                if self._chosen(problem) != "direct":  # which is exact
                    found[i] = _missed(self._value(task, problem, i))
        return np.asarray(found)

    def _chosen(self, problem: TaskProblem | StepProblem) -> str:
        return choose(problem) if self.method == "auto" else self.method

    def certified(self, task: TaskLike) -> bool:
        """Whether bounds hold: plain queries are exact or bounded, or the search rests on queries that are exact by contract."""
        if task.certified or self.relaxed:
            return True
        if not isinstance(task, Task):
            return False
        problems = (TaskProblem(task, np.zeros(task.dim, task.dtype), i) for i in range(len(task)))
        return all(self._chosen(problem) in ("direct", "hybrid", "angular") for problem in problems)


def _finite(bound: float, otherwise: float) -> float:
    return bound if np.isfinite(bound) else otherwise


def _missed(result: SearchResult) -> float:
    """By how much a search may have missed the maximum."""
    return 0.0 if result.exact or result.method == "direct" else _finite(result.upper_bound, result.phi) - result.phi
