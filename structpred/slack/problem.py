"""What a search for the most violating output sees: two numbers for each output y of one instance at the present weights,

    h(y) = 1 + f(y) - f(y_i)   (by how much the margin of 1 is violated),   g(y) = loss(y_i, y) >= 0,

f being the score. The slack-rescaled hinge is max_y Phi(y), Phi = max(h, 0) * g (Tsochantaridis et al. 2005; Choi, Meshi & Srebro
2016, eqs. 2, 4 and 10). The truth is the point (1, 0), so the maximum is never negative.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from structpred.core.group_scales import Scale, scaled_dot
from structpred.core.sparse import SparseVector
from structpred.core.types import Floats
from structpred.core.weights import Vector
from structpred.errors import MissingCapabilityError
from structpred.task.steps import TaskLike


class Candidate(NamedTuple):
    """An output as a point (h, g). bound: no output that the query was about has a larger value, inf if nothing is known.

    The value of a query is h + lam * g, that of slack_argmax is Phi. label: the output itself (labels, or a point mu of a
    relaxation); None if a query that was cut short found none, so that only `bound` counts.
    """

    h: float
    g: float
    label: Any
    bound: float = np.inf

    @property
    def phi(self) -> float:
        """h * g, and 0 where either is not positive."""
        return self.h * self.g if self.h > 0.0 and self.g > 0.0 else 0.0

    def value(self, lam: float) -> float:
        """h + lam * g."""
        return self.h + lam * self.g


class Levels(NamedTuple):
    """For each value of the loss the largest h: g ascending, with their h and labels."""

    g: Floats
    h: Floats
    labels: Sequence[Any]


class SlackProblem(ABC):
    """One instance at the present weights. What is not offered is never called.

    offers: which of "constrained", "levels", "slack_argmax", "kbest" can be called; `plain` always can. relaxed: outputs are
    points of a polytope, mixtures allowed. closed: the constrained oracle cannot leave out the ends of an angle (relaxations).
    loss_unit: every g is a multiple of it; 0 if no such number is known. truth: the point (1, 0) with the true output.
    """

    relaxed: bool = False
    closed: bool = False
    loss_unit: float = 0.0
    offers: frozenset[str] = frozenset()
    truth: Candidate

    @abstractmethod
    def plain(self, lam: float) -> Candidate:
        """The output with the largest h + lam * g of all outputs, h < 0 and g = 0 included (eq. 11)."""

    def constrained(self, lam: float, alpha: float, beta: float, beta_inclusive: bool) -> Candidate | None:
        """The same among outputs with h > 0, g > 0 and beta h < g < alpha h (eq. 12); beta h <= g if `beta_inclusive`.

        The two tests at one ray (g < r h as the upper end, g >= r h as the lower) are complementary to the last bit: no
        output is lost between two neighbouring angles. None: proven that there is none.
        """
        raise NotImplementedError("constrained")

    def levels(self) -> Levels:
        """The largest h for every value that g takes."""
        raise NotImplementedError("levels")

    def slack_argmax(self) -> Candidate:
        """The output with the largest Phi, directly."""
        raise NotImplementedError("slack_argmax")

    def kbest(self, lam: float, k: int) -> list[Candidate]:
        """The k outputs with the largest h + lam * g, best first; fewer if there are fewer."""
        raise NotImplementedError("kbest")

    @abstractmethod
    def rescore(self, label: Any) -> Candidate:
        """The point of an output found earlier, at the present weights."""

    def mix(self, t: float, first: Any, second: Any) -> Any:
        """The point t * first + (1 - t) * second of a relaxation."""
        raise NotImplementedError("mix")

    @abstractmethod
    def require(self, method: str) -> None:
        """Raise MissingCapabilityError where the search `method` needs what this problem does not offer."""


#: search -> what it needs besides `plain`: any one of these
NEEDS: dict[str, tuple[str, ...]] = {
    "angular": ("constrained",),
    "hybrid": ("constrained",),
    "direct": ("slack_argmax", "levels"),
    "kbest": ("kbest",),
}


class Output(NamedTuple):
    """An output by what training needs of it: psi = phi(x_i, y_i) - phi(x_i, y), and its loss."""

    difference: SparseVector
    loss: float


class StepProblem(SlackProblem):
    """Instance i at the weights scale * w, by `task.step`: the loss need not split over parts, and nothing can be constrained."""

    def __init__(self, task: TaskLike, w: Vector, i: int, scale: Scale = 1.0) -> None:
        self.task, self.w, self.i, self.scale = task, w, i, scale
        self.truth = Candidate(1.0, 0.0, Output(SparseVector(np.empty(0, np.int64), np.empty(0)), 0.0))

    @property
    def bounded(self) -> bool:
        """Whether plain queries come with a bound."""
        return self.task.certified

    def require(self, method: str) -> None:
        """Raise MissingCapabilityError for searches that need more than plain queries."""
        if method in NEEDS:
            raise MissingCapabilityError(
                f"slack search {method!r} needs {' or '.join(NEEDS[method])}, but {type(self.task).__name__} offers plain "
                "queries alone; take 'auto' or 'hull', or write an Oracle and use Task"
            )

    def plain(self, lam: float) -> Candidate:
        """A step with the loss weighted by lam."""
        step = self.task.step(self.w, self.i, lam, self.scale)
        psi = SparseVector(step.difference.indices.copy(), step.difference.values.copy())
        bound = 1.0 + max(step.bound, step.violation) if self.task.certified else np.inf
        return self.rescore(Output(psi, step.loss))._replace(bound=bound)

    def rescore(self, label: Any) -> Candidate:
        """The point of an output found earlier."""
        return Candidate(1.0 - scaled_dot(self.w, label.difference, self.scale), label.loss, label)

    def difference(self, label: Any) -> SparseVector:
        """psi of an output."""
        return label.difference
