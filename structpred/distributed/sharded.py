"""The problem whose data are elsewhere: what the loop and the trainers of one machine see of shards on a cluster."""

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any, NamedTuple, cast

import numpy as np

from structpred.core.group_scales import Scale
from structpred.core.sparse import SparseVector
from structpred.core.types import AnyArray, ArrayLike, Floats, Integers
from structpred.core.weights import Vector
from structpred.distributed import sums, tasks
from structpred.distributed.rounds import Rounds
from structpred.distributed.store import digest_of_common
from structpred.distributed.tasks import Closed, Facts
from structpred.errors import CheckpointError
from structpred.models.sharding import Columns
from structpred.runtime.interrupts import may_be_abandoned
from structpred.task.steps import Step, TaskLike, Terms, running_sum
from structpred.trainers.problem import ByInner, Problem, Surrogate, Trainer
from structpred.trainers.shards.rounds import ShardedTrainer, round_size
from structpred.trainers.states import COUNT, Values


class ShardedTask:
    """All shards as one instance with the share 1: what is summed over the data is summed where they are.

    It has no steps: a trainer gets the sums of a smooth surrogate (`Summed`), or runs as rounds (`RoundTrainer`). gathers: all
    shards are one task with their instances, in the order of the shards, whose pieces a surrogate gets (`Gathered`).
    """

    def __init__(self, rounds: Rounds, facts: Sequence[Facts], whole: Columns, gathers: bool = False) -> None:
        self.rounds, self.dim = rounds, whole.dim
        self.dtype = np.dtype(facts[0].dtype)
        self.certified = all(one.certified and not one.partial for one in facts)
        total = running_sum(np.array([one.weight for one in facts]))
        self.sample_weight = np.array([total])
        if gathers:
            self.sample_weight = np.concatenate(rounds.round("the sample weights", tasks.sample_weight))
        self.groups, self.group_names = whole.own_groups, list(whole.group_names)
        self.sizes = [one.n for one in facts]
        self._prints = [one.fingerprint for one in facts]

    def __len__(self) -> int:
        """One instance: all data; or the number of these."""
        return len(self.sample_weight)

    def require(self, needs: Sequence[str | tuple[str, ...]], who: str) -> None:
        """The tasks of the shards are asked, where they are."""

    def sample_with_priors(self) -> None:
        """The problems of the shards are checked where they are."""

    def random_features(self) -> Floats:
        """What a start near zero is made of, summed over the shards."""
        return self.rounds.sums("the start", sums.start, np.zeros(self.dim))[1]

    def fingerprint(self) -> str:
        """That of all shards, in their order: how many there are is a part of it."""
        return hashlib.sha256("\n".join(self._prints).encode()).hexdigest()


class Summed:
    """A surrogate whose values, gradients or planes are summed over the shards. What else is known of it is its own."""

    requires: tuple[str | tuple[str, ...], ...] = ()

    def __init__(self, surrogate: Surrogate) -> None:
        self.summed = f"{type(surrogate).__name__} {sorted(vars(surrogate).items())}"
        self.piecewise_linear = surrogate.piecewise_linear
        for name in ("convex", "gamma", "may_be_negative"):
            if hasattr(surrogate, name):
                setattr(self, name, getattr(surrogate, name))

    def gradient(self, task: TaskLike, w: Vector, shares: Floats) -> tuple[Floats, Floats]:
        """The mean loss of all data as that of the one instance, and its gradient."""
        value, slope = cast(Any, task).rounds.sums("the gradient", sums.gradient, w)
        return np.array(value), slope

    def squared_gradients(self, task: TaskLike, w: Vector, shares: Floats) -> Floats:
        """Those of all instances, wherever they are."""
        return cast(Floats, cast(Any, task).rounds.sums("the squared gradients", sums.squares, w)[1])

    def term(self, task: TaskLike, w: Vector, i: int, scale: Scale = 1.0) -> Step:
        """A plane that touches the mean loss of all data at w; `loss` is its constant."""
        with may_be_abandoned():
            (value, constant), slope = cast(Any, task).rounds.sums("the plane", sums.plane, w)
        at = np.flatnonzero(slope)
        return Step(SparseVector(at, slope[at]), constant, value, value)

    def offset(self, step: Step) -> float:
        """The constant of the plane."""
        return step.loss

    def terms(self, task: TaskLike, w: Vector, rows: ArrayLike, shares: ArrayLike | None = None) -> Terms:
        """The same for bundle methods."""
        (value, constant), slope = cast(Any, task).rounds.sums("the plane", sums.plane, w)
        return Terms(slope, constant, *np.array([[constant], [value], [value]]))

    def values(self, task: TaskLike, w: Vector) -> Floats:
        """The mean loss of all data."""
        return np.array([cast(Any, task).rounds.losses(w)])


class RoundState(NamedTuple):
    """t: rounds closed. digest: of what all shards know after them. dual: NaN where there is none.

    started: 0 before the shards have their first states.
    """

    t: Annotated[Integers, COUNT]
    started: Annotated[Integers, Values(0, 1)]
    digest: Annotated[Integers, Values(0, 255)]
    dual: Annotated[Floats, Values(nan=True)]


class RoundTrainer(ByInner, Trainer):
    """A trainer over shards whose rounds run on a cluster. The state of the shards is in the store; here is what it is called."""

    trainer: ShardedTrainer
    bulk = True

    def __init__(self, trainer: ShardedTrainer, rounds: Rounds) -> None:
        self.trainer, self.rounds = trainer, rounds

    def minimises(self, surrogate: Surrogate) -> bool:  # type: ignore[override]
        """The trainers of the shards were asked before there was a `Summed`."""
        return True

    def calls(self, problem: Problem, item: int) -> int:
        """Visits of a round."""
        return sum(round_size(n, self.trainer.passes) for n in cast(Any, problem.task).sizes)

    def init_state(self, problem: Problem) -> RoundState:
        """Nothing is done before the first round, so that a resumed run does not begin twice."""
        return RoundState(np.array(0), np.array(0), np.zeros(32, np.int64), np.array(np.nan))

    def update(self, problem: Problem, state: RoundState, item: int) -> tuple[RoundState, bool]:
        """A round."""
        with may_be_abandoned():
            if not state.started:
                state = _after(self.rounds.begin(), 0)
            t = int(state.t)
            with _the_right_store():
                return _after(self.rounds.advance(t), t + 1), True

    def kept_elsewhere(self, state: RoundState) -> bool:
        """In the store, which has what this round and the one before it need."""
        return True

    def weights(self, problem: Problem, state: RoundState) -> Vector:
        """Read from the store."""
        if not state.started:
            return cast(Vector, np.zeros(problem.task.dim, problem.task.dtype))
        with _the_right_store():
            common = self.rounds.store.read_common(f"common.{state.t}")
        if digest_of_common(common) != bytes(state.digest.tolist()).hex():
            raise CheckpointError(f"{self.rounds.store.folder}: the store is not that of the checkpoint: round {state.t} differs")
        return cast(Vector, self.trainer.algorithm.weights(common).astype(problem.task.dtype))

    def objective(self, problem: Problem, state: RoundState) -> tuple[float | None, float | None]:
        """The primal at the weights, and the dual value of the last round; None where the algorithm has none."""
        dual = float(state.dual)
        if np.isnan(dual):
            return None, None
        return problem.primal(self.weights(problem, state)), dual


@contextmanager
def _the_right_store() -> Iterator[None]:
    """What is missing in the store may be in another one."""
    try:
        yield
    except CheckpointError as error:
        raise CheckpointError(
            f"{error}; the store must be that of the checkpoint: give the folder of that run, or start without resume"
        ) from error


def _after(closed: Closed, t: int) -> RoundState:
    digest = np.frombuffer(bytes.fromhex(closed.digest), np.uint8).astype(np.int64)
    return RoundState(np.array(t), np.array(1), digest, np.array(np.nan if closed.dual is None else closed.dual))


Arrays = dict[str, AnyArray]


class Gathered:
    """A surrogate whose pieces are found by the shards, all of a sweep at once."""

    __slots__ = ("__dict__", "_steps", "_surrogate", "_w")  # no part of vars(), which says whether two runs are the same
    requires: tuple[str | tuple[str, ...], ...] = ()

    def __init__(self, surrogate: Surrogate) -> None:
        self.gathered = f"{type(surrogate).__name__} {sorted(vars(surrogate).items())}"
        self.piecewise_linear = surrogate.piecewise_linear
        self._surrogate = surrogate
        self._w: Vector | None = None
        self._steps: list[Step] = []

    def term(self, task: TaskLike, w: Vector, i: int, scale: Scale = 1.0) -> Step:
        """The piece of instance i at w, which a sweep does not change."""
        if w is not self._w:
            with may_be_abandoned():
                found = cast(Any, task).rounds.pieces(w)
            self._w, self._steps = w, [step for arrays in found for step in _steps(arrays)]
        return self._steps[i]

    def offset(self, step: Step) -> float:
        """The constant of that piece."""
        return self._surrogate.offset(step)

    def values(self, task: TaskLike, w: Vector) -> Floats:
        """Upper bounds of H_i(w), all i."""
        return np.concatenate([arrays["numbers"][2] for arrays in cast(Any, task).rounds.pieces(w)])


def _steps(arrays: Arrays) -> list[Step]:
    ends, (losses, violations, bounds) = arrays["ends"].tolist(), arrays["numbers"].tolist()
    pairs = [SparseVector(arrays["indices"][a:b], arrays["values"][a:b]) for a, b in zip([0, *ends[:-1]], ends, strict=True)]
    return [Step(*parts) for parts in zip(pairs, losses, violations, bounds, strict=True)]
