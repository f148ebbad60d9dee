"""The problem all trainers solve: min_w  lam r(w) + sum_i p_i H_i(w), with r a regulariser, H_i from a surrogate, sum p_i = 1."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, wraps
from operator import attrgetter
from typing import Any, ClassVar, Protocol, TypeVar, cast

import numpy as np
import numpy.typing as npt

from structpred.core.group_scales import Scale
from structpred.core.products import dot
from structpred.core.regulariser import DualMap, Regulariser
from structpred.core.weights import Vector
from structpred.errors import ParameterError
from structpred.objectives.margin import MarginRescaling
from structpred.objectives.regularisers.l2 import L2
from structpred.task.partial_task import is_partial
from structpred.task.steps import Step, TaskLike

#: What a surrogate may have besides: the name, and what it promises. `structpred.check_surrogate` tries what can be tried.
SURROGATE_OPTIONAL: dict[str, str] = {
    "convex": "False: H_i is not convex in w, and there is no certificate",
    "may_be_negative": "True: H_i may be below zero; few trainers minimise it",
    "certified": "(task) -> bool: whether its bounds are valid, where the task alone does not say so",
    "check_task": "(task): raises ParameterError for a task that it does not fit",
    "terms": "(task, w, rows, shares=None) -> Terms: what `term` gives for these rows, summed up with these shares",
    "term_above": "(task, w, i, threshold, scale=1.0) -> Step: as `term`; may end early once H_i <= threshold is proven",
    "search": "(task, w, i, scale=1.0, *, threshold=None) -> SearchResult: the search behind a step of slack rescaling",
    "unsettled": "(task, w) -> by how much each value may be above H_i, the search having ended early",
    "gradient": "(task, w, shares) -> (values, gradient): H_i of every instance, and the slope of sum_i shares_i H_i",
    "squared_gradients": "(task, w, shares) -> sum_i shares_i (dH_i / dw_j)^2 for each weight j",
    "gamma": "the derivative changes by at most |z - z'| / gamma; 0 for a loss that has kinks",
    "dual_table": "(y) -> DualTable: the conjugate and its intervals, of a loss of one score (`rows/scalar_loss.py`)",
    "points": "the set of the points p whose maximum it is, of a loss of many scores (`rows/multiclass_loss.py`)",
    "loss_weight": "the number that loss(y_i, y) is multiplied by, where it is one",
    "needs_slack": "True: `term_above` needs a threshold, and `term` cannot be asked; for trainers that know each H_i's slack",
    "latent": "() -> Surrogate: the same of outputs that are known in part, not convex, for data that come in pieces",
}
#: What a trainer may have besides its methods: the name, and what it promises.
TRAINER_OPTIONAL: dict[str, str] = {
    "update_rule": "(problem, state) -> UpdateRule | None: `update` in numbers, for many updates in one compiled call",
    "last_objective": "(problem, state) -> (weights, primal, dual): both of a state that nothing continues from",
    "averaged": "whether the average of the iterates is returned",
    "state_at": "(problem, w, steps) -> state: at these weights, after this number of steps",
    "scaled_at": "(problem, w) -> state: at weights that explain the data already, the end of what begins for `WarmStart`",
    "like": "(problem) -> state: of the form of those that follow `scaled_at`, for nothing",
    "free": "the numbers of the weights that may move, where not all may: there are no shards then",
    "local_problem": "(problem, curvature) -> Problem: of a shard of CoCoA, whose steps raise its part of the dual",
    "begin": "(problem, blocks, w) -> state: these blocks at weights that are not their sum",
    "without_weights": "(state) -> state: the blocks alone, without weights",
    "own_sum": "(problem, state) -> what the blocks of the shard add up to, a new array",
    "dual_part": "(problem, state) -> float: the constants of the blocks of the shard, summed up",
    "mixed": "(before, state, eta) -> state: every block (1 - eta) what it was plus eta what it is",
}


class Surrogate(Protocol):
    """A convex function H_i of w for each instance, by its largest linear piece (or its tangent) at w.

    SURROGATE_OPTIONAL has what it may have besides. `structpred.check_surrogate` tests it.
    """

    requires: tuple[str | tuple[str, ...], ...]
    piecewise_linear: bool

    def term(self, task: TaskLike, w: Vector, i: int, scale: Scale = 1.0) -> Step:
        """The slope (-difference), value (violation) and upper bound of H_i at scale * w."""
        ...

    def offset(self, step: Step) -> float:
        """The constant of that piece: its value at w = 0."""
        ...

    def values(self, task: TaskLike, w: Vector) -> npt.NDArray[np.float64]:
        """Upper bounds of H_i(w), all i."""
        ...


@dataclass(frozen=True)
class Problem:
    """task: the training set. surrogate: what H_i is. lam: the strength of the regulariser, > 0. regulariser: r, 1/2 |w|^2 unless
    another is given; it gets the groups of the task's weights.

    p_i = sample_weight_i / (their sum): 1/n without weights.
    """

    task: TaskLike
    surrogate: Surrogate
    lam: float
    regulariser: Regulariser = field(default_factory=L2, kw_only=True)

    def __post_init__(self) -> None:
        if not (np.isfinite(self.lam) and self.lam > 0):
            raise ParameterError(f"lam must be positive and finite, got {self.lam} (lam = 1 / (C * n))")
        if self.surrogate.piecewise_linear and (i := self.task.sample_with_priors()) is not None:
            raise ParameterError(
                f"sample {i}: fixed scores that are neither zero nor forbidding (-1e30) are for the log loss only: a margin "
                "leaves them out"
            )
        if (check := getattr(self.surrogate, "check_task", None)) is not None:
            check(self.task)
        object.__setattr__(self, "regulariser", self.regulariser.grouped(self.task.groups, self.task.group_names))

    @cached_property
    def p(self) -> npt.NDArray[np.float64]:
        """The share of each instance in the objective."""
        return self.task.sample_weight / self.task.sample_weight.sum()

    @cached_property
    def dual_map(self) -> DualMap:
        """The regulariser's, with its first scales; ParameterError where it does not fit the weights."""
        found = self.regulariser.dual_map()  # type: ignore[attr-defined]
        fault = found.fault(self.task.dim) if isinstance(found, DualMap) else f"expected a DualMap, got {type(found).__name__}"
        if fault is not None:
            raise ParameterError(f"dual_map of {type(self.regulariser).__name__}: {fault}; run check_regulariser for details")
        return cast(DualMap, found)

    @cached_property
    def shares(self) -> npt.NDArray[np.float64]:
        """n * p_i of every instance: how much more than the average it counts; exactly 1 without weights."""
        weights = self.task.sample_weight
        return weights * (len(weights) / weights.sum())

    def share(self, i: int) -> float:
        """n * p_i: how much more than the average instance i counts."""
        return float(self.shares[i])

    @property
    def convex(self) -> bool:
        """Whether a local optimum is the global one: the surrogate is convex, and all outputs are known."""
        return is_convex(self.surrogate) and not is_partial(self.task)

    @property
    def certified(self) -> bool:
        """Whether the reported bounds are valid: as the task says, unless the surrogate has a `certified(task)` of its own."""
        own = getattr(self.surrogate, "certified", None)
        return bool(own(self.task)) if callable(own) else self.task.certified

    def primal(self, w: Vector) -> float:
        """The objective at w, exactly (in float64) if the oracle is exact; an upper bound if it gives bounds."""
        losses = self.surrogate.values(self.task, w)
        if not getattr(self.surrogate, "may_be_negative", False):
            losses = np.maximum(losses, 0.0)  # rounding may leave -1e-17
        return self.lam * self.regulariser.value(w) + dot(self.p, losses)


Made = TypeVar("Made")


def once_per_problem(make: Callable[[Problem], Made]) -> Callable[[Problem], Made]:
    """`make`, called once for each problem, which keeps what was made, as it keeps its other cached properties."""
    key = f"{make.__module__}.{make.__qualname__}"

    @wraps(make)
    def found(problem: Problem) -> Made:
        return kept(problem, key, lambda: make(problem))

    return found


def kept(problem: Problem, key: str, make: Callable[[], Made]) -> Made:
    """What was made for this key of a problem, once."""
    there = vars(problem)
    if key not in there:
        there[key] = make()
    return cast(Made, there[key])


def is_convex(surrogate: Surrogate) -> bool:
    """Whether it is convex in w, as all are that do not say otherwise."""
    return bool(getattr(surrogate, "convex", True))


def lacks_slack(trainer: "Trainer | type[Trainer]", surrogate: Surrogate) -> bool:
    """Whether the surrogate needs the slack of each instance, and the trainer knows none."""
    return getattr(surrogate, "needs_slack", False) and not trainer.knows_slack


class Trainer(ABC):
    """What the shared loop asks of a learning algorithm, and what the algorithm says of itself.

    Your own trainer is a subclass with `init_state`, `update` and, where the usual ones do not fit, the other methods.
    Settings are attributes of the object. All that changes is in the state: a NamedTuple of arrays (nested ones allowed),
    changed in place or replaced by `update`.

    An online trainer may have a method `update_rule(problem, state)`: `update` in numbers (`task/fast/update_rules.py`),
    or None where that is not possible. Then many updates can be one compiled call. A subclass that changes `update` alone is not
    affected. TRAINER_OPTIONAL has what else is looked up by name. `structpred.check_trainer` tests a trainer.

    Attributes
    ----------
    name : str
        What users call it. Names are looked for in this package; a class elsewhere needs none.
    requires : tuple of str, or of tuples of str
        The methods of the oracle that it needs (of an inner tuple any one).
    regulariser_requires : tuple of str, or of tuples of str
        The methods of the regulariser that it needs besides those that all have. The default, `squared_norm`, is met by 1/2 |w|^2
        alone: for trainers whose weights are sums of steps, or that look at no regulariser at all.
    default_regulariser : type
        That of the regulariser that it takes where none is named.
    surrogates : tuple of callables
        One of each form that it can minimise, piecewise linear or smooth; the first makes its default. Others of these forms are
        minimised, too, unless `minimises` says otherwise.
    kinds : tuple of types
        If given, it minimises surrogates of these types alone, whose duals it knows.
    certified : bool
        Whether `objective` gives a dual value, so that there is a gap.
    online : bool
        Whether the state does not depend on a fixed data set, so that training can continue on other data.
    needs_n_total : bool
        Whether an online trainer must know how many samples there will be, because the regulariser's strength depends on it.
    nonconvex : bool
        Whether it goes along gradients alone, so that it finds a local optimum of a surrogate that is not convex.
    completes : bool
        Whether it completes outputs that are known in part itself; then any surrogate will do.
    bulk : bool
        Whether a step looks at all instances: a pass is then one item.
    asks : str
        What it asks of the data where that is all it asks, so that they may be elsewhere: "sums" of values and gradients, or of
        pieces; the "pieces" of all instances; else empty.
    knows_slack : bool
        Whether it asks above the slack of each instance, by `term_above`.
    least_passes : int
        How many passes it takes at least where the user names no number: a method that adds one plane a pass needs many.
    """

    name: ClassVar[str] = ""
    requires: tuple[str | tuple[str, ...], ...] = ("argmax",)
    regulariser_requires: ClassVar[tuple[str | tuple[str, ...], ...]] = ("squared_norm",)
    default_regulariser: ClassVar[type[Regulariser]] = L2
    surrogates: ClassVar[tuple[Callable[[], Surrogate], ...]] = (MarginRescaling,)
    kinds: ClassVar[tuple[type, ...]] = ()
    certified: ClassVar[bool] = False
    online: ClassVar[bool] = False
    needs_n_total: ClassVar[bool] = False
    nonconvex: ClassVar[bool] = False
    completes: ClassVar[bool] = False
    bulk: ClassVar[bool] = False
    asks: ClassVar[str] = ""
    knows_slack: ClassVar[bool] = False
    least_passes: ClassVar[int] = 1

    def __repr__(self) -> str:
        """The class and its settings."""
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"

    @classmethod
    def minimises(cls, surrogate: Surrogate) -> bool:
        """Whether it can minimise this surrogate: one of the same form is in `surrogates`, it is never negative, and it is convex
        or need not be; or it is of one of the `kinds`."""
        if cls.kinds:
            return isinstance(surrogate, cls.kinds)
        if lacks_slack(cls, surrogate):
            return False
        if getattr(surrogate, "may_be_negative", False) or not (cls.nonconvex or is_convex(surrogate)):
            return False
        return any(make().piecewise_linear == surrogate.piecewise_linear for make in cls.surrogates)

    @classmethod
    def fits(cls, regulariser: Regulariser) -> bool:
        """Whether it can minimise a regulariser that has the methods it needs."""
        return True

    @classmethod
    def certifies(cls, surrogate: Surrogate) -> bool:
        """Whether there is a gap with this surrogate."""
        return cls.certified

    @abstractmethod
    def init_state(self, problem: Problem) -> Any:
        """The state before the first step."""

    def state_dim(self, problem: Problem) -> int:
        """The number of weights that the indices in its state are about."""
        return problem.task.dim

    def order(self, problem: Problem, state: Any, rng: np.random.Generator, n_pass: int) -> npt.NDArray[np.int64]:
        """The items of pass number n_pass (from 0), in order: a new permutation of the instances every pass."""
        return np.zeros(1, np.int64) if self.bulk else rng.permutation(len(problem.task))

    def calls(self, problem: Problem, item: int) -> int:
        """How many calls of the oracle the history counts for an item: one, and none for items below zero."""
        return int(item >= 0)

    def state_after(self, problem: Problem, state: Any, passes: int) -> Any:
        """A state like the one that a run has after that many passes, for a checkpoint to fill; `state` is a new one."""
        return state

    @abstractmethod
    def update(self, problem: Problem, state: Any, item: int) -> tuple[Any, bool]:
        """One step: (state, whether the weights changed)."""

    def finish_pass(self, problem: Problem, state: Any) -> Any:
        """The state after a whole pass; the same one unless something is done between passes."""
        return state

    def kept_elsewhere(self, state: Any) -> bool:
        """Whether the state names what is kept elsewhere, which lasts from step to step: a checkpoint is written after each."""
        return False

    def weights(self, problem: Problem, state: Any) -> Vector:
        """The weights to return: of `state.weights` the average where one is kept, else the present ones.

        Raises ParameterError for a state that has none.
        """
        kept: Any = getattr(state, "weights", None)
        if not hasattr(kept, "average"):
            raise ParameterError(
                f"trainer: {type(self).__name__} needs a method `weights` of its own, which gives the flat weights of a state; "
                f"the usual one gives `state.weights.average()`, and there is no such thing in {type(state).__name__}"
            )
        return kept.average()

    def objective(self, problem: Problem, state: Any) -> tuple[float | None, float | None]:
        """(primal at the weights to return, dual) at the end of a pass; None where the algorithm has none."""
        return None, None

    def primal(self, problem: Problem, w: Vector) -> float:
        """What it minimises, at any weights: another value than the problem's where it adds terms (an l1 term)."""
        return problem.primal(w)

    def gap_estimate(self, problem: Problem, state: Any) -> float | None:
        """A cheap guess of the gap, to decide when computing it is worthwhile; None if there is none."""
        return None

    def finished(self, problem: Problem, state: Any) -> bool:
        """Whether more passes would change nothing, by a criterion of its own."""
        return False

    def relabelled(self, problem: Problem, state: Any, rows: npt.NDArray[np.int64]) -> Any:
        """The state to go on from where the true outputs of these instances are others now: that of online learners, which make
        no claim about the data, else a new one."""
        return state if self.online and not self.certifies(problem.surrogate) else self.init_state(problem)

    def report(self, problem: Problem, state: Any) -> dict[str, npt.NDArray[np.float64]]:
        """What else it says of the run, by name: arrays that come with the weights.

        The usual answer is dual_point for states with a field `point`: u, where w is not linear in it; else empty.
        """
        point = getattr(state, "point", None)
        return {"dual_point": point} if isinstance(point, np.ndarray) and len(point) else {}


class ByInner:
    """What a trainer that runs another says of itself: what the trainer inside says.

    To be named before `Trainer` among the parents of a class with an attribute `trainer`, the trainer inside.
    """

    trainer: Trainer

    requires = property(attrgetter("trainer.requires"))
    regulariser_requires: ClassVar[Any] = property(attrgetter("trainer.regulariser_requires"))
    default_regulariser = property(attrgetter("trainer.default_regulariser"))
    surrogates = property(attrgetter("trainer.surrogates"))
    knows_slack: ClassVar[Any] = property(attrgetter("trainer.knows_slack"))
    minimises = property(attrgetter("trainer.minimises"))
    fits = property(attrgetter("trainer.fits"))
    certifies = property(attrgetter("trainer.certifies"))
    state_dim = property(attrgetter("trainer.state_dim"))
