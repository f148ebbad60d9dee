"""Rounds of training over shards, as pure functions: what a shard does in a round, and how the reports of all are closed.

An algorithm says both. `ShardedTrainer` runs it in one process, one shard after the other (`CoCoA`, `ParameterMixing`); the
package `distributed` runs the same functions as tasks on a cluster. What a function returns depends on its arguments alone, so a
task that is run twice, late, or elsewhere gives the same bytes.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from typing import Annotated, Any, NamedTuple, cast

import numpy as np

from structpred.core.products import dot
from structpred.core.sparse import SparseVector
from structpred.core.types import AnyArray, Floats, Integers
from structpred.core.weights import Vector, Weights
from structpred.errors import ParameterError
from structpred.runtime.settings import checked_positive, checked_whole
from structpred.task.steps import running_sum
from structpred.task.task import Task
from structpred.trainers.problem import ByInner, Problem, Trainer, kept
from structpred.trainers.running.stream import StreamProblem
from structpred.trainers.states import COUNT


class IndexMap(NamedTuple):
    """The numbers that the weights of a shard have in the whole: a table, a row for each feature, and a tail that all have.

    rows: row j of the shard's table is row rows[j] of the whole, ascending. width: weights a row. tail: weights after the table.
    dim: the number of weights of the whole.
    """

    rows: Integers
    width: int
    tail: int
    dim: int

    def of(self, vector: AnyArray) -> AnyArray:
        """The shard's part of a vector of the whole."""
        own = len(self.rows) * self.width
        found = np.empty(own + self.tail, vector.dtype)
        # the rows are there: of them that is known, and "raise" would write into a copy of `out` first
        np.take(self._table(vector), self.rows, axis=0, out=found[:own].reshape(-1, self.width), mode="clip")
        found[own:] = vector[self.dim - self.tail :]
        return found

    def add_to(self, out: AnyArray, change: AnyArray) -> None:
        """out += change, a vector of the shard, at its places in `out`, a vector of the whole."""
        from structpred.core import _sparse_kernels

        own = len(self.rows) * self.width
        _sparse_kernels.add_rows(self._table(out), self.rows, change[:own].reshape(-1, self.width))
        out[self.dim - self.tail :] += change[own:]

    def cut(self, start: int, stop: int) -> tuple[slice, "IndexMap"]:
        """Which of the shard's weights are those from start to stop of the whole, and where they are among these.

        Both are at ends of rows; if stop is the last of them, the tail is included.
        """
        end = self.dim - self.tail
        first, last = np.searchsorted(self.rows, [start // self.width, min(stop, end) // self.width]).tolist()
        tail = self.tail if stop == self.dim else 0
        rows = self.rows[first:last] - start // self.width
        return slice(first * self.width, last * self.width + tail), IndexMap(rows, self.width, tail, stop - start)

    def among(self, indices: Integers) -> Integers:
        """Where weights of the shard are in the whole, by their numbers in the shard."""
        own = len(self.rows) * self.width
        row, column = np.divmod(np.minimum(indices, own - 1), self.width) if own else (indices, indices)
        table = self.rows[row] * self.width + column if own else indices
        return np.where(indices < own, table, indices + (self.dim - self.tail - own)).astype(np.int64)

    def _table(self, vector: AnyArray) -> AnyArray:
        return vector[: self.dim - self.tail].reshape(-1, self.width)


class Part(NamedTuple):
    """One shard of a problem. problem: its instances, with their shares in the whole data, over the weights that occur in it.

    at: where these are in the whole; None: both have the same weights. shard, n_shards: its number, of all. shards(): how many
    shards have each of its weights, which nobody keeps; None: all have all. seed: of the whole run.
    """

    problem: StreamProblem
    shard: int
    n_shards: int
    at: IndexMap | None = None
    shards: Callable[[], Integers] | None = None
    seed: int = 0


class Common(NamedTuple):
    """What all shards know before a round. vectors: float64, each as long as the weights; the first are the weights themselves.

    numbers: float64, what else the algorithm keeps, such as the dual's sums.
    """

    vectors: tuple[Floats, ...]
    numbers: Floats

    def of(self, at: IndexMap | None) -> "Common":
        """The same for a shard with these weights."""
        return self if at is None else Common(tuple(at.of(vector) for vector in self.vectors), self.numbers)

    def moved(self, steps: list[Floats], mass: float) -> tuple[tuple[Floats, ...], float]:
        """(the vectors after a step of w, their mass): the average goes on to w after its own step, by its share of the mass.

        The mass of the average is the last of the numbers.
        """
        w, total = self.vectors[0], float(self.numbers[-1]) + mass
        averages = zip(self.vectors[1:], steps[1:], strict=True)
        return (w + steps[0], *(average + (mass / total) * (w + step - average) for average, step in averages)), total


class Report(NamedTuple):
    """What a shard tells after a round: changes of the vectors, in its own weights, sparse or dense float64; and numbers."""

    changes: tuple[SparseVector | Floats, ...]
    numbers: Floats


class Totals(NamedTuple):
    """What all shards tell after a round. changes: those of each vector, added in the order of the shards, in the weights of
    the whole. numbers: those of every shard, a row each.
    """

    changes: tuple[Floats, ...]
    numbers: Floats


class RoundAlgorithm(ABC):
    """An algorithm of training over shards. It pickles small: its settings only."""

    @abstractmethod
    def begin(self, part: Part) -> tuple[Any, Report]:
        """The state of a shard before the first round, a NamedTuple of arrays or None; and the weights it begins with."""

    @abstractmethod
    def advance(self, part: Part, state: Any, common: Common, t: int) -> tuple[Any, Report]:
        """Round number t (from 0) of a shard: its new state, and its report. `common` is in the weights of the shard.

        The state that is given may be changed: whoever may need it again keeps a copy.
        """

    @abstractmethod
    def close(self, common: Common | None, totals: Totals) -> Common:
        """What all know after the round. common: what was known before, None for the reports of `begin`."""

    def weights(self, common: Common) -> Floats:
        """The weights to return: the average where there is one, else w."""
        return common.vectors[-1]

    def dual(self, common: Common, lam: float) -> float | None:
        """The dual value after the round; None where there is none."""
        return None


def add(out: Floats, change: SparseVector | Floats, at: IndexMap | None) -> None:
    """out += change, which is in the weights of a shard: it has each at most once."""
    if isinstance(change, SparseVector):
        out[change.indices if at is None else at.among(change.indices)] += change.values
    elif at is None:
        out += change
    else:
        at.add_to(out, change)


def totals(dim: int, reports: Iterable[tuple[IndexMap | None, Report]]) -> Totals:
    """The reports, each with the `at` of its shard, added up. dim: the number of weights of the whole."""
    changes: tuple[Floats, ...] = ()
    numbers = []
    for at, report in reports:
        changes = changes or tuple(np.zeros(dim) for _ in report.changes)
        for whole, change in zip(changes, report.changes, strict=True):
            add(whole, change, at)
        numbers.append(report.numbers)
    return Totals(changes, np.array(numbers))


def cut(change: SparseVector | Floats, at: IndexMap | None, start: int, stop: int) -> SparseVector | Floats:
    """What a change says of the weights from start to stop of the whole; pairs are then in the numbering of these."""
    if not isinstance(change, SparseVector):
        return change[slice(start, stop) if at is None else at.cut(start, stop)[0]]
    indices = change.indices if at is None else at.among(change.indices)
    inside = np.flatnonzero((indices >= start) & (indices < stop))
    return SparseVector(indices[inside] - start, change.values[inside])


def sparse(change: Floats) -> SparseVector | Floats:
    """As pairs, where these are shorter."""
    at = np.flatnonzero(change)
    return SparseVector(at, change[at]) if 2 * len(at) < len(change) else change


def mean_change(weights: Weights, v: Vector, w: Vector) -> Floats:
    """The mean of the iterates less w, where they began at w = scale * v with a new average; exactly zero where none moved."""
    a, r = float(weights.scaled_mass), float(weights.mass)
    found: Floats = (a * (weights.v.astype(np.float64) - v) - weights.u) / r
    return found if a == r else found + (a / r) * v - w


def round_size(n: int, passes: float) -> int:
    """The number of instances, of n, in a round of that many passes; one at least."""
    return max(round(passes * n), 1)


def round_order(part: Part, trainer: Trainer, problem: Problem, state: Any, passes: float, t: int) -> Integers:
    """The instances of round t: the next ones of passes whose orders depend on the seed, the shard and their number alone."""
    n = len(problem.task)
    size = round_size(n, passes)
    first, last = t * size, (t + 1) * size
    pieces = []
    for n_pass in range(first // n, -(-last // n)):
        rng = np.random.Generator(np.random.PCG64([part.seed, part.shard, n_pass]))
        order = trainer.order(problem, state, rng, n_pass)
        pieces.append(order[max(first - n_pass * n, 0) : last - n_pass * n])
    return np.concatenate(pieces)


def losses_of(part: Part, w: AnyArray) -> float:
    """sum_i p_i H_i(w) of the shard, at weights of its own."""
    problem = part.problem
    values = problem.surrogate.values(problem.task, w.astype(problem.task.dtype))
    if not getattr(problem.surrogate, "may_be_negative", False):
        values = np.maximum(values, 0.0)
    return dot(problem.p, values)


class ShardedState(NamedTuple):
    """common: what all shards know. shards: the state of each. rounds: how many were closed, a single number."""

    common: Common
    shards: tuple[Any, ...]
    rounds: Annotated[Integers, COUNT]


class ShardedTrainer(ByInner, Trainer):
    """An algorithm of training over shards, which are runs of neighbouring instances here. One "pass" is one round of all shards.

    trainer: that of a shard. shards: how many there are; the result depends on it. passes: of a shard in a round. seed: of the
    order of instances.
    """

    bulk = True

    def __init__(self, trainer: Trainer, shards: int, passes: float, seed: int) -> None:
        self.trainer, self.shards = trainer, checked_whole(shards, "shards")
        self.passes, self.seed = checked_positive(passes, "passes"), checked_whole(seed, "seed", 0)

    @property
    @abstractmethod
    def algorithm(self) -> RoundAlgorithm:
        """What the shards do; the same on a cluster."""

    def parts(self, problem: Problem) -> list[Part]:
        """The shards of a problem, made once."""
        return kept(problem, f"shards {self.shards} {self.seed}", lambda: neighbours(problem, self.shards, self.seed))

    def init_state(self, problem: Problem) -> ShardedState:
        """Every shard at its beginning, and what all know then."""
        algorithm, parts = self.algorithm, self.parts(problem)
        begun = [algorithm.begin(part) for part in parts]
        reports = [(part.at, report) for part, (_, report) in zip(parts, begun, strict=True)]
        common = algorithm.close(None, totals(problem.task.dim, reports))
        return ShardedState(common, tuple(state for state, _ in begun), np.array(0))

    def calls(self, problem: Problem, item: int) -> int:
        """Visits of a round."""
        return sum(round_size(len(part.problem.task), self.passes) for part in self.parts(problem))

    def update(self, problem: Problem, state: ShardedState, item: int) -> tuple[ShardedState, bool]:
        """One round: every shard from what all knew before it."""
        algorithm, t, shards = self.algorithm, int(state.rounds), list(state.shards)

        def reports() -> Iterator[tuple[IndexMap | None, Report]]:
            for k, part in enumerate(self.parts(problem)):
                shards[k], report = algorithm.advance(part, shards[k], state.common.of(part.at), t)
                yield part.at, report

        common = algorithm.close(state.common, totals(problem.task.dim, reports()))
        changed = not np.array_equal(common.vectors[0], state.common.vectors[0])
        return ShardedState(common, tuple(shards), np.array(t + 1)), changed

    def weights(self, problem: Problem, state: ShardedState) -> Vector:
        """What the algorithm returns, in the type of the task's weights."""
        return cast(Vector, self.algorithm.weights(state.common).astype(problem.task.dtype))

    def objective(self, problem: Problem, state: ShardedState) -> tuple[float | None, float | None]:
        """The dual value, and the primal at the weights to return: sums over the shards in their order. None without a dual."""
        dual = self.algorithm.dual(state.common, problem.lam)
        if dual is None:
            return None, None
        w = self.weights(problem, state)
        losses = [losses_of(part, w if part.at is None else part.at.of(w)) for part in self.parts(problem)]
        return problem.lam * problem.regulariser.value(w) + running_sum(np.array(losses)), dual


def neighbours(problem: Problem, n_shards: int, seed: int) -> list[Part]:
    """Runs of neighbouring instances of about the same number.

    Raises ParameterError where there are fewer instances than shards, or all of a shard have the weight zero.
    """
    task = cast(Task, problem.task)
    if n_shards > len(task):
        raise ParameterError(f"shards={n_shards}: every shard needs an instance, and there are {len(task)}; take fewer shards")
    total = float(task.sample_weight.sum())
    ends = [len(task) * k // n_shards for k in range(n_shards + 1)]
    rows = [np.arange(first, last) for first, last in pairwise(ends)]
    for k, own in enumerate(rows):
        if not task.sample_weight[own].any():
            raise ParameterError(
                f"sample_weight: samples {own[0]}..{own[-1]}, which are shard {k} of {n_shards}, all have the weight zero: leave "
                "them out"
            )
    problems = [
        StreamProblem(task.take(own), problem.surrogate, problem.lam, total, regulariser=problem.regulariser) for own in rows
    ]
    return [Part(found, k, n_shards, seed=seed) for k, found in enumerate(problems)]
