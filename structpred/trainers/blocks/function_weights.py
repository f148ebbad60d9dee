"""Weights in kernel form with one factor a group, for online trainers (Martins et al. 2011, section 3.4)."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from structpred.core.regulariser import DualMap, Pieces, Regulariser, capabilities
from structpred.core.sparse import SparseVector
from structpred.core.types import Floats
from structpred.core.weights import Vector
from structpred.errors import ParameterError
from structpred.objectives.regularisers.l2 import L2
from structpred.runtime.lazy_names import later
from structpred.task.function_space import FunctionSpace, space_of
from structpred.task.steps import TaskLike
from structpred.trainers.online.grouped_weights import GroupedWeights

_kernels = later("structpred.trainers.blocks._function_kernels")


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

    def grouped(self, groups: npt.NDArray[np.int64], names: Sequence[str]) -> "FunctionNorms":
        """The inner one gets a group of length one for each norm."""
        return FunctionNorms(self.inner.grouped(np.arange(len(names) + 1), names), self.space)

    def value(self, w: Vector) -> float:
        """That of the norms."""
        return self.inner.value(self.space.norms(w))

    def group_prox(self, norms: Floats, step: float) -> Floats:
        """That of the norms."""
        own = getattr(self.inner, "group_prox", self.inner.prox)
        return cast(Floats, own(norms, step))

    def prox(self, w: Vector, step: float) -> Vector:
        """Each function shrinks as its norm does."""
        norms = self.space.norms(w)
        ratios = np.divide(self.group_prox(norms, step), norms, out=np.zeros_like(norms), where=norms > 0.0)
        return cast(Vector, (np.repeat(ratios, np.diff(self.space.groups)) * w).astype(w.dtype))

    def bound(self, loss: float, lam: float, u: Pieces) -> float:
        """That of the norms of u, which is a sum of joint features."""
        full = self.space.as_weights(np.concatenate([piece.copy() for piece in u]))
        return self.inner.bound(loss, lam, [self.space.norms(full)])

    def reach(self, value: float) -> float:
        """As for the inner one."""
        return self.inner.reach(value)

    @property
    def dual_map(self) -> Callable[[], DualMap]:
        """The scales of the inner one, where it has them; for trainers that know the space of functions."""
        found = self.inner.dual_map  # type: ignore[attr-defined]
        ends = self.space.groups[1:]
        return lambda: DualMap.of(ends, np.broadcast_to(found().scale, ends.shape))

    def first_memory(self, n_groups: int) -> Floats:
        """That of the inner one."""
        return self.inner.first_memory(n_groups)

    def rescale(self, scale: Floats, memory: Floats, squares: Floats) -> tuple[Floats, Floats]:
        """That of the inner one."""
        return self.inner.rescale(scale, memory, squares)

    def fingerprint(self) -> str:
        """That of the inner one; the Gram matrices are part of the task's."""
        return f"FunctionNorms {self.inner.fingerprint()}"


def online_weights(task: TaskLike, *, averaged: bool) -> GroupedWeights | FunctionWeights:
    """Zero weights of the kind that the features of a task take."""
    grouped, space = GroupedWeights.zeros(task.groups, task.dtype, averaged=averaged), space_of(task)
    return grouped if space is None else FunctionWeights(grouped, space)
