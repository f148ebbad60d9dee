"""Weights theta_k = s_k v_k with one factor a group: a step costs what it touches, however many weights there are.

The average of the iterates is (A_k v_k - u_k) / R, as for `Weights`, with a sum A_k = s_k,1 + s_k,2 + ... for each group. A group
that becomes zero is emptied by the list of its touched coordinates. Small factors are multiplied into v: else the average is a
difference of large numbers, which cancel.

In kernel form the weights of a group are a function of its kernel (Martins et al. 2011, section 3.4).
"""

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Annotated, Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from structpred.core.group_scales import GroupScales, scaled
from structpred.core.regulariser import DualMap, Pieces, Regulariser, capabilities
from structpred.core.sparse import SparseVector, squared_norm
from structpred.core.types import Floats, Integers
from structpred.core.weights import Vector
from structpred.errors import ParameterError
from structpred.objectives.regularisers.l2 import L2
from structpred.runtime.lazy_names import later
from structpred.task.function_space import FunctionSpace, space_of
from structpred.task.steps import TaskLike
from structpred.trainers.states import COUNT, FIXED, Values

_kernels = later("structpred.trainers.online._grouped_kernels")

#: factors below this are multiplied into v: at 1e-2 the average of float32 weights is good to 6e-6, at 1e-6 only to 1e-2
LEAST = 1e-2
#: without an average nothing cancels: v may grow as long as it is far from overflow
LEAST_ALONE = 1e-15
#: how many coordinates share one place in the lists; a group with more touched ones than places is emptied as a whole
SHARE = 8


class GroupedWeights(NamedTuple):
    """v, and u of the average (float64, empty if there is none). Group k is groups[k]:groups[k+1]; factors, squares |v_k|^2 and
    masses A_k of each; mass: R, a single number. touched, starts, counts: the lists of touched coordinates.
    """

    v: Vector
    u: Floats
    groups: Annotated[Integers, FIXED]
    factors: Annotated[Floats, Values(0)]
    squares: Floats
    masses: Annotated[Floats, Values(0)]
    mass: Annotated[Floats, Values(0)]
    touched: Annotated[Integers, COUNT]
    starts: Annotated[Integers, FIXED]
    counts: Annotated[Integers, COUNT]

    @staticmethod
    def zeros(groups: Integers, dtype: npt.DTypeLike, *, averaged: bool = False) -> "GroupedWeights":
        """All weights zero."""
        dim, n = int(groups[-1]), len(groups) - 1
        starts = np.concatenate(([0], np.cumsum(np.diff(groups) // SHARE + 1))).astype(np.int64)
        return GroupedWeights(
            np.zeros(dim, dtype), np.zeros(dim if averaged else 0), groups.copy(), np.ones(n), np.zeros(n), np.zeros(n),
            np.array(0.0), np.zeros(starts[-1], np.int64), starts, np.zeros(n, np.int64),
        )  # fmt: skip

    def fault(self, dim: int) -> str | None:
        """What does not fit together in saved arrays; None where all does."""
        room = np.diff(self.starts)
        if (self.counts > room + 1).any():
            return "counts: more coordinates than a list can hold"
        for k in np.flatnonzero((self.counts > 0) & (self.counts <= room)).tolist():
            own = self.touched[self.starts[k] : self.starts[k] + self.counts[k]]
            if own.min() < self.groups[k] or own.max() >= self.groups[k + 1]:
                return f"touched: a coordinate outside group {k}"
        return None if (self.factors >= self.least).all() else f"factors: expected at least {self.least}"

    @property
    def least(self) -> float:
        """What factors are at least."""
        return LEAST if len(self.u) else LEAST_ALONE

    @property
    def scales(self) -> GroupScales:
        """The factors, as tasks take them: those of empty groups are zero, so that nothing is looked up there."""
        return GroupScales(self.groups, np.where(self.counts > 0, self.factors, 0.0))

    @property
    def norms(self) -> Floats:
        """|theta_k| of each group."""
        return self.factors * np.sqrt(np.maximum(self.squares, 0.0))

    def add(self, delta: SparseVector, coef: float) -> float:
        """theta += coef * delta, in time proportional to the length of delta; returns |delta|^2."""
        _kernels().add_grouped(self.v, self.u, self._groups(), self._lists(), delta.indices, delta.values, coef)
        return squared_norm(delta)

    def cut(self, at: Integers, signs: npt.NDArray[np.int8]) -> None:
        """Zero in place of those of these coordinates that have the wrong sign."""
        own = signs[at] if signs.ndim else signs
        wrong = at[own * self.v[at] < 0.0]
        if len(wrong):
            factors = self.factors[np.searchsorted(self.groups, wrong, side="right") - 1]
            self.add(SparseVector(wrong, self.v[wrong] * factors), -1.0)
            self.v[wrong] = -0.0  # zero without rounding; listed, as `add` has it

    def shrink(self, norms: Floats, new: Floats) -> None:
        """Give each group, whose norm is norms[k], the norm new[k]; a group of norm zero keeps it."""
        _kernels().scale_groups(self.v, self.u, self._groups(), self._lists(), norms, new, self.least)

    def prox(self, regulariser: Regulariser, step: float) -> None:
        """theta = prox(theta), where the regulariser has no prox of group norms: in time proportional to all weights."""
        new = regulariser.prox(scaled(self.v, self.scales), step)
        if len(self.u):
            self.u[:] -= scaled(self.v, GroupScales(self.groups, self.masses))
        self.v[:] = new
        self.factors.fill(1.0)
        self.masses.fill(0.0)
        self.counts[:] = np.diff(self.starts) + 1
        self.recount()

    def recount(self) -> None:
        """The squares anew, without the rounding errors of their updates."""
        _kernels().count_squares(self.v, self.groups, self.squares)

    def include(self) -> None:
        """Let the present weights enter the average."""
        self.masses[:] += self.factors
        self.mass.fill(self.mass.item() + 1.0)

    def current(self) -> Vector:
        """The present weights, of v's type."""
        return cast(Vector, scaled(self.v, self.scales).astype(self.v.dtype))

    def average(self) -> Vector:
        """The mean of all included iterates; the present weights while there are none."""
        if not len(self.u) or self.mass.item() == 0.0:
            return self.current()
        mean = (scaled(self.v, GroupScales(self.groups, self.masses)) - self.u) / self.mass.item()
        return cast(Vector, mean.astype(self.v.dtype))

    def in_doubt(self) -> bool:
        """Whether something may no longer be finite."""
        return not all(np.isfinite(array.sum()) for array in (self.v, self.factors, self.squares, self.masses))

    def _groups(self) -> tuple[Any, ...]:
        return self.groups, self.factors, self.squares, self.masses

    def _lists(self) -> tuple[Any, ...]:
        return self.touched, self.starts, self.counts


class FunctionWeights(NamedTuple):
    """theta_k = s_k v_k, where v_k are the coefficients and the values of functions: a wrong label costs a row of each kernel.

    What `GroupedWeights` are, with norms and inner products of the functions. space: what the weights mean; not part of the
    state.
    """

    grouped: GroupedWeights
    space: FunctionSpace

    def __getattr__(self, name: str) -> Any:
        """All else as the grouped weights have it: v, factors, scales, norms, shrink, include, current, average, in_doubt."""
        return getattr(self.grouped, name)

    def add(self, delta: SparseVector, coef: float) -> float:
        """theta += coef * delta, the joint features of outputs; returns |delta|^2."""
        own, space, kernels = self.grouped, self.space, _kernels()
        back = space.n_labels * space.n
        cuts = np.searchsorted(delta.indices, space.groups[: len(space.grams) + 1]).tolist()
        total = 0.0
        for k, gram in enumerate(space.grams):
            if cuts[k] == cuts[k + 1]:
                continue
            here = slice(cuts[k], cuts[k + 1])
            add, matrix = kernels.add_dense, gram
            if not isinstance(gram, np.ndarray):
                add, matrix = kernels.add_sparse, (gram.indptr, gram.indices, gram.data)
            grown, square = add(
                own.v, own.u, own.masses.item(k), (int(space.groups[k]) + back, back, space.n), matrix,
                delta.indices[here], delta.values[here], coef / own.factors.item(k),
            )  # fmt: skip
            own.squares[k] += grown
            own.counts[k] = own.starts[k + 1] - own.starts[k] + 1  # too many to list: values change everywhere
            total += square
        rest = slice(cuts[-1], None)
        return total + own.add(SparseVector(delta.indices[rest], delta.values[rest]), coef)

    def prox(self, regulariser: Regulariser, step: float) -> None:
        """Not for functions: their regularisers have a prox of group norms."""
        raise TypeError(f"{type(regulariser).__name__} has no prox of group norms")

    def recount(self) -> None:
        """The squares anew, without the rounding errors of their updates."""
        self.grouped.squares[:] = self.space.squares(self.grouped.v)


class FunctionNorms(Regulariser):
    """A regulariser of group norms, where the weights are functions: the norms are those of the functions.

    Raises ParameterError for one that depends on more than the norms of the groups.
    """

    def __init__(self, inner: Regulariser, space: FunctionSpace) -> None:
        if not (isinstance(inner, L2) or "group_prox" in capabilities(inner)):
            raise ParameterError(
                f"regulariser: a kernel knows norms of functions, not single weights; {type(inner).__name__} needs more than "
                "the norms of groups: leave it out, or take 'mkl'"
            )
        self.inner, self.space = inner, space
        self.strong_convexity, self.adapts = inner.strong_convexity, inner.adapts  # type: ignore[misc]

    # as the inner one has them
    reach = property(attrgetter("inner.reach"))
    first_memory = property(attrgetter("inner.first_memory"))
    rescale = property(attrgetter("inner.rescale"))

    def grouped(self, groups: npt.NDArray[np.int64], names: Sequence[str]) -> "FunctionNorms":
        """The inner one gets a group of length one for each norm."""
        return FunctionNorms(self.inner.grouped(np.arange(len(names) + 1), names), self.space)

    def value(self, w: Vector) -> float:
        """That of the norms."""
        return self.inner.value(self.space.norms(w))

    def group_prox(self, norms: Floats, step: float) -> Floats:
        """That of the norms."""
        return cast(Floats, getattr(self.inner, "group_prox", self.inner.prox)(norms, step))

    def prox(self, w: Vector, step: float) -> Vector:
        """Each function shrinks as its norm does."""
        norms = self.space.norms(w)
        ratios = np.divide(self.group_prox(norms, step), norms, out=np.zeros_like(norms), where=norms > 0.0)
        return cast(Vector, (np.repeat(ratios, np.diff(self.space.groups)) * w).astype(w.dtype))

    def bound(self, loss: float, lam: float, u: Pieces) -> float:
        """That of the norms of u, which is a sum of joint features."""
        full = self.space.as_weights(np.concatenate([piece.copy() for piece in u]))
        return self.inner.bound(loss, lam, [self.space.norms(full)])

    @property
    def dual_map(self) -> Callable[[], DualMap]:
        """The scales of the inner one, where it has them; for trainers that know the space of functions."""
        found = self.inner.dual_map  # type: ignore[attr-defined]
        ends = self.space.groups[1:]
        return lambda: DualMap.of(ends, np.broadcast_to(found().scale, ends.shape))

    def fingerprint(self) -> str:
        """That of the inner one; the Gram matrices are part of the task's."""
        return f"FunctionNorms {self.inner.fingerprint()}"


def online_weights(task: TaskLike, *, averaged: bool) -> GroupedWeights | FunctionWeights:
    """Zero weights of the kind that the features of a task take."""
    grouped, space = GroupedWeights.zeros(task.groups, task.dtype, averaged=averaged), space_of(task)
    return grouped if space is None else FunctionWeights(grouped, space)
