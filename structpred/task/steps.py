"""What trainers and surrogates see of a training set: steps, what many say together in one vector, and the protocols of tasks."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice, pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np

from structpred.core.group_scales import Scale
from structpred.core.oracle import Labels
from structpred.core.sparse import SparseVector, sparse_dot
from structpred.core.types import ArrayLike, Floats, Integers
from structpred.core.weights import Vector
from structpred.errors import DataError
from structpred.runtime.interrupts import abandon_if_asked
from structpred.runtime.threads import run_ranges
from structpred.task.fast.update_rules import UpdateRule
from structpred.task.instance_subset import checked_rows

#: What a task may say that it `offers`, in an attribute `capabilities`: the name, and what it has then besides `TaskLike`.
TASK_CAPABILITIES: dict[str, str] = {
    "rows": "one score a row: indptr, indices, values, targets, row, margins, combined and squared_norms, as RowTask has them",
    "signed_rows": "rows of two classes, whose targets are all 1",
    "parts": "outputs are sets of parts: features, oracle, inference, labels, shapes, parts and the methods of Task",
    "missing": "some outputs are known in part: rows, allowed, place, completed and with_labels, as PartialTask has them",
}


class Step(NamedTuple):
    """What one instance says at the present weights, for the output y that inference found.

    difference: phi(x_i, y_i) - phi(x_i, y). loss: loss(y_i, y). violation: loss_weight * loss - <w, difference>, by
    how much y (with its weighted loss) scores above the truth. bound: no output's violation exceeds it (equal to
    `violation` for an exact oracle; meaningless if the task is not `certified`).
    """

    difference: SparseVector
    loss: float
    violation: float
    bound: float


class Terms(NamedTuple):
    """The linear pieces of some rows summed up, and the numbers of each row.

    difference: sum_k shares[k] * difference_k, dense, float64. offset: sum_k shares[k] * offset_k. So offset - <w', difference>
    is at most sum_k shares[k] H_k(w') for every w' (convex H_k): a cutting plane. losses, violations, bounds: those of the step
    of each row, in the order of the rows.
    """

    difference: Floats
    offset: float
    losses: Floats
    violations: Floats
    bounds: Floats


#: (instances, rule, loss_weight) -> (how many updates were made, in order, whether the weights changed). None is made where the
#: first step is in doubt, so that the plain update has to look at it. It ends early where all would take too long.
CompiledUpdates = Callable[[Integers, UpdateRule, float], tuple[int, bool]]


class Pair(Protocol):
    """Scoring and decoding in one compiled call; the results are those of the plain calls, for any number of threads."""

    def decode(self, w: Vector, n_jobs: int) -> tuple[Labels, Integers]:
        """(flat labels, label offsets): the best output of every instance."""
        ...


class TaskLike(Protocol):
    """What trainers and surrogates use: kept by Task and by CallbackTask."""

    dim: int
    dtype: np.dtype[Any]
    certified: bool
    sample_weight: Floats

    @property
    def groups(self) -> Integers:
        """Group k of the weights is groups[k]:groups[k+1]."""
        ...

    @property
    def group_names(self) -> Sequence[str]:
        """What the groups are called."""
        ...

    def __len__(self) -> int:
        """The number of instances."""
        ...

    def require(self, needs: Sequence[str | tuple[str, ...]], who: str) -> None:
        """Raise MissingCapabilityError unless the task can do all of `needs`."""
        ...

    def step(self, w: Vector, i: int, loss_weight: float, scale: Scale = 1.0) -> Step:
        """Loss-augmented inference for instance i at the weights scale * w. The arrays are only good until the next call."""
        ...

    def violations(self, w: Vector, loss_weight: float) -> Floats:
        """The bound on the violation of each instance."""
        ...

    def terms(self, w: Vector, rows: ArrayLike, shares: ArrayLike | None = None, *, loss_weight: float = 1.0) -> Terms:
        """The steps of these rows summed up, weighed by `shares`, and the numbers of each row."""
        ...

    def sample_with_priors(self) -> int | None:
        """The first instance with fixed scores that do more than forbid; None where there is none."""
        ...

    def fingerprint(self) -> str:
        """A digest of data, loss and structure: tasks with equal digests give identical runs."""
        ...


def offers(task: object, name: str) -> bool:
    """Whether a task says that it has what TASK_CAPABILITIES promises under this name."""
    return name in getattr(task, "capabilities", ())


#: fewer pairs are added faster by one thread than others are started
FEW_PAIRS = 50_000


class Block(NamedTuple):
    """Losses, violations, bounds, differences of instances from `first` on; the pairs of first + k are ends[k]:ends[k + 1]."""

    first: int
    losses: Floats
    violations: Floats
    bounds: Floats
    indices: Integers
    values: Floats
    ends: Integers


def checked_shares(shares: ArrayLike | None, n: int) -> Floats:
    """n finite weights, one per row, ones if there are none given; else DataError."""
    found = np.ones(n) if shares is None else np.asarray(shares, dtype=np.float64)
    if found.shape != (n,) or not np.isfinite(found).all():
        raise DataError(f"shares: expected {n} finite numbers, one per row, got an array of shape {found.shape}")
    return found


def summed(
    size: tuple[int, int], rows: ArrayLike, shares: ArrayLike | None, term: Callable[[int], Step],
    offset: Callable[[Step], float],
) -> Terms:  # fmt: skip
    """The terms of these rows, one after the other, so that the sum does not depend on who computes it.

    size: (number of instances, length of the weights). Raises DataError for rows that are not instances, or none at all.
    """
    from structpred.core._sparse_kernels import add_into

    at = checked_rows(rows, size[0])
    weights, difference, total = checked_shares(shares, len(at)), np.zeros(size[1]), 0.0
    losses, violations, bounds = np.empty((3, len(at)))
    for k, i in enumerate(at.tolist()):
        abandon_if_asked()
        step, share = term(i), float(weights[k])
        add_into(difference, *step.difference, share)
        total += share * offset(step)
        losses[k], violations[k], bounds[k] = step.loss, step.violation, step.bound
    return Terms(difference, total, losses, violations, bounds)


class SummedPieces:
    """What surrogates share whose pieces are found one by one."""

    def terms(self: Any, task: TaskLike, w: Vector, rows: ArrayLike, shares: ArrayLike | None = None) -> Terms:
        """The pieces that `term` gives for these rows, summed up with these shares (ones if not given)."""
        return summed((len(task), task.dim), rows, shares, lambda i: self.term(task, w, i), self.offset)


class SmoothSurrogate(ABC):
    """What surrogates share that have a gradient everywhere: no linear pieces, and values that come with the gradient."""

    piecewise_linear = False

    @abstractmethod
    def term(self, task: TaskLike, w: Vector, i: int, scale: Scale = 1.0) -> Step:
        """The gradient (-difference) and the value of H_i at scale * w, with its upper bound."""

    @abstractmethod
    def gradient(self, task: TaskLike, w: Vector, shares: Floats) -> tuple[Floats, Floats]:
        """H_i of every instance, and the gradient of sum_i shares_i H_i (flat, float64)."""

    def offset(self, step: Step) -> float:
        """There are no linear pieces, so there is nothing to offset."""
        raise TypeError(f"{type(self).__name__} is not a maximum of linear functions; use a trainer for smooth losses")

    def values(self, task: TaskLike, w: Vector) -> Floats:
        """H_i(w) of every instance, upper bounds where the oracle gives bounds."""
        return self.gradient(task, w, np.ones(len(task)))[0]

    def terms(self, task: TaskLike, w: Vector, rows: ArrayLike, shares: ArrayLike | None = None) -> Terms:
        """Gradient and values of these rows, summed up with these shares (ones if not given): the tangent at w."""
        return summed(
            (len(task), task.dim), rows, shares, lambda i: self.term(task, w, i),
            lambda step: step.violation + sparse_dot(w, step.difference),
        )  # fmt: skip


def one_run(rows: ArrayLike, n: int) -> range | None:
    """The range that these rows are, where each follows the one before; else None."""
    at = checked_rows(rows, n)
    return range(int(at[0]), int(at[-1]) + 1) if (np.diff(at) == 1).all() else None


def added(out: Floats, blocks: Iterable[Block], coefs: Floats, start: int, n_jobs: int) -> Iterator[tuple[Block, slice]]:
    """Each block, once its differences times `coefs` have been added to `out`, and the place of its instances in `coefs`.

    coefs: one number for each instance from `start` on. Threads divide the coordinates, not the instances: each coordinate is
    a sum in the order of the data, whoever adds it up.
    """
    left = iter(blocks)
    while some := list(islice(left, 1 if n_jobs == 1 else 8 * n_jobs)):
        places = [slice(block.first - start, block.first - start + len(block.losses)) for block in some]
        _add(out, some, [coefs[here] for here in places], n_jobs)
        yield from zip(some, places, strict=True)


def _add(out: Floats, blocks: Sequence[Block], coefs: Sequence[Floats], n_jobs: int) -> None:
    from structpred.core._sparse_kernels import add_each

    def between(low: int, high: int) -> None:
        for block, own in zip(blocks, coefs, strict=True):
            add_each(out, block.indices, block.values, block.ends, own, low, high)

    cuts = [0, len(out)]
    if n_jobs > 1 and sum(len(block.indices) for block in blocks) > FEW_PAIRS:
        sample = np.concatenate([block.indices[::97] for block in blocks])
        cuts[1:1] = np.quantile(sample, np.arange(1, 2 * n_jobs) / (2 * n_jobs)).astype(np.int64).tolist()
    run_ranges(between, list(pairwise(cuts)), n_jobs)


def running_sum(values: Floats) -> float:
    """The sum in order, one after the other, as compiled loops add it (numpy adds pairwise)."""
    return float(np.add.accumulate(values)[-1]) if len(values) else 0.0


def summed_squares(dim: int, shares: Floats, step: Callable[[int], Step]) -> Floats:
    """sum_i shares_i g_i^2, where g_i is the gradient of instance i, squared weight by weight: dense, float64."""
    total = np.zeros(dim)
    for i, share in enumerate(shares):
        gradient = step(i).difference
        total[gradient.indices] += share * gradient.values**2
    return total
