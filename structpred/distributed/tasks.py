"""What runs on workers: functions of the job, the shard's number and the round, which read the store and write to it.

Each gives the same bytes whenever and wherever it runs. What a process keeps of a shard is a cache: the task that it built, and
the state after the last round. A function takes the shard out of the cache while it works on it, so two at once never share one.
"""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np

from structpred.core.regulariser import Regulariser
from structpred.core.types import Floats, Integers
from structpred.distributed.cluster import is_memory_above
from structpred.distributed.reading import Print, read_shard
from structpred.distributed.shards import about_shard, in_shard
from structpred.distributed.store import Store, read_object, read_once
from structpred.errors import CheckpointError, DataError, FileFormatError, InfeasibleError, LossError, OracleError
from structpred.models.own_components import check_own, components_of
from structpred.models.settings import resolve_regulariser
from structpred.models.sharding import Columns, Sharding, holders_of, whole_of
from structpred.task.partial_task import is_partial
from structpred.task.steps import running_sum
from structpred.task.task import Task
from structpred.trainers.names import require
from structpred.trainers.problem import Surrogate, Trainer, is_convex
from structpred.trainers.running.stream import StreamProblem
from structpred.trainers.shards.rounds import IndexMap, Part, Report, RoundAlgorithm, Totals, losses_of, totals
from structpred.trainers.states import Arrays, flatten

log = logging.getLogger("structpred.distributed")


class Objective(NamedTuple):
    """What is minimised, the data aside, and by what. algorithm: None where only sums over the shards are asked for."""

    surrogate: Surrogate
    regulariser: Regulariser
    trainer: Trainer
    algorithm: RoundAlgorithm | None
    lam: float
    n_total: float
    seed: int


class Spec(NamedTuple):
    """All that a task must know of the run; the fields fill up while it begins. shards: objects with a method `load`.

    sharding: how the model is trained on them. prints: what the first read of each gave; empty before.
    """

    shards: Sequence[Any]
    model: Any
    sharding: Sharding
    plan: Any = None
    objective: Objective | None = None
    prints: Sequence[Print] = ()


class Job(NamedTuple):
    """Where the store is, the digest of the Spec in it, and a running number of the round, by which caches forget.

    every: after how many rounds the states of the shards go to the store.
    """

    folder: str
    digest: str
    number: int = 0
    every: int = 1

    @property
    def store(self) -> Store:
        """The files of the run."""
        return Store(self.folder)

    @property
    def spec(self) -> Spec:
        """Read once a process."""
        return cast(Spec, read_object(self.folder, self.digest))


class Facts(NamedTuple):
    """What the client learns of a shard that was built. weight: the sum of its sample weights. columns: without its rows.

    n: how many instances. partial: whether some labels are missing. checked: as certificates say it, of components of a user's
    own as they are here.
    """

    fingerprint: str
    n: int
    dtype: str
    certified: bool
    weight: float
    partial: bool
    columns: Columns
    checked: bool | None = None


class Closed(NamedTuple):
    """What the client learns of a round. digest: of what all shards know now. dual: None where there is none."""

    digest: str
    dual: float | None


class ReportNumbers(NamedTuple):
    """What of all reports is no vector. n_vectors: how many a report has. numbers: those of every shard, a row each."""

    n_vectors: int
    numbers: Floats


class Held:
    """A shard as a process keeps it: columns are the weights that occur in it; state is the one before round t."""

    def __init__(self, task: Task, columns: Columns) -> None:
        self.task, self.columns = task, columns
        self.checked: bool | None = None
        self.part: Part | None = None
        self.digest, self.used = "", 0
        self.state: Any = None
        self.t = -1


HELD: dict[tuple[str, int], Held] = {}
#: the shares of a worker's memory above which it keeps no states, which `_before` knows, nothing that tasks made in order to be
#: faster, such as features by column, and no shards. dask pauses it at 0.8
_STATES, _CACHES, _SHARDS = 0.4, 0.5, 0.7


def forget(folder: str) -> None:
    """Drop what this process keeps of a run, and of runs whose store is gone."""
    for key in list(HELD):
        if key[0] == folder or not Path(key[0]).exists():
            HELD.pop(key, None)
    read_once.cache_clear()
    place_of.cache_clear()
    _all_holders.cache_clear()


@contextmanager
def _held(job: Job, k: int) -> Iterator[Held]:
    """Shard k, from the cache or built again; what other workers took over is forgotten."""
    held = HELD.pop((job.folder, k), None) or _built(job, k)
    try:
        yield held
    except FileFormatError:  # the store's
        raise
    except (DataError, InfeasibleError, LossError, OracleError) as error:
        # something is wrong with a sample, or with code of a user's own that is asked about it
        raise in_shard(error, k, job.spec.shards[k]) from error
    held.used = job.number
    if held.part is not None and is_memory_above(_CACHES):  # only steps of the problem make such things
        held.part, held.task = None, held.task.take(np.arange(len(held.task)))
    if is_memory_above(_SHARDS):
        log.warning("shard %d is not kept in memory, and will be loaded again: give the workers more", k)
    else:
        HELD[job.folder, k] = held
    for key, other in list(HELD.items()):
        if key[0] == job.folder and other.used < job.number - 4:
            HELD.pop(key, None)


def _built(job: Job, k: int) -> Held:
    spec = job.spec
    with about_shard(k, spec.shards[k]):
        data, _ = read_shard(spec.shards[k], spec.prints[k] if spec.prints else None)
        task, columns = spec.sharding.task(spec.model, spec.plan, data.X, data.y, data.sample_weight, data.token_weight)
        if not len(task):
            raise DataError("expected at least one sample, got none; leave the shard out")
        held = Held(task, columns)
        if (goal := spec.objective) is not None:
            regulariser = resolve_regulariser(spec.model.regulariser, goal.trainer)
            components = components_of(task, goal.trainer, goal.surrogate, regulariser)
            held.checked = check_own(components, spec.model.check_components)
        return held


@contextmanager
def part_of(job: Job, k: int) -> Iterator[tuple[Held, Part]]:
    """Shard k as a part of the problem."""
    with _held(job, k) as held:
        if held.digest != job.digest:
            held.part, held.digest, held.t = None, job.digest, -1
        if held.part is None:
            at, goal, problem = place_of(job.folder, k), *_problem_of(job, held)
            held.part = Part(problem, k, len(job.spec.shards), at, partial(_holders, job.folder, at), goal.seed)
        yield held, held.part


def _problem_of(job: Job, held: Held) -> tuple[Objective, StreamProblem]:
    """What is minimised, and of the shard's instances."""
    goal = job.spec.objective
    assert goal is not None
    problem = StreamProblem.of(held.task, goal.surrogate, goal.lam, goal.n_total, regulariser=goal.regulariser)
    require(goal.trainer, problem)
    return goal, problem


def _holders(folder: str, at: IndexMap | None) -> Integers:
    """How many shards have each of the weights at these places: as long as these, so that shards do not keep it."""
    found = _all_holders(folder)
    return found if at is None else at.of(found)


@lru_cache(maxsize=1)
def _all_holders(folder: str) -> Integers:
    """Those of all weights, read once a process."""
    return Store(folder).read("holders")["holders"]


def whole_columns(store: Store, columns: Columns) -> Columns:
    """The weights of all shards, by those of one."""
    return columns._replace(rows=store.read("whole").get("rows"))


@lru_cache(maxsize=64)
def place_of(folder: str, k: int) -> IndexMap | None:
    """Where the weights of shard k are in the whole, a number for each row; None: at the same places. Read once a process."""
    columns = _columns(Store(folder), k)
    return columns.at(whole_columns(Store(folder), columns))


# ------------------------------------------------------------------------------------------------ before the first round


def scan(job: Job, k: int) -> tuple[Print, Any]:
    """What the shard holds, and what all shards must agree on, as this one has it."""
    spec = job.spec
    with about_shard(k, spec.shards[k]):
        data, seen = read_shard(spec.shards[k], spec.prints[k] if spec.prints else None)
        return seen, spec.sharding.scan(spec.model, data.X, data.y)


def compile_kernels(job: Job, k: int) -> None:
    """What the rounds do, on two instances of shard k: one process of each host compiles, the others find its kernels on disk."""
    spec = job.spec
    assert spec.objective is not None
    with _held(job, k) as held:
        if is_partial(held.task) and is_convex(spec.objective.surrogate):
            return  # what is minimised then is not known before all shards are built
        dim, (goal, problem) = held.task.dim, _problem_of(job, held)
        part = _few(Part(problem, 0, len(spec.shards)))
        losses_of(part, np.zeros(dim))
        if hasattr(goal.surrogate, "gradient"):
            goal.surrogate.gradient(part.problem.task, np.zeros(dim), part.problem.p)
        if (algorithm := goal.algorithm) is not None:
            state, report = algorithm.begin(part)
            algorithm.advance(part, state, algorithm.close(None, totals(dim, [(None, report)] * part.n_shards)), 0)


def build(job: Job, k: int) -> Facts:
    """Build the shard, keep it, and write which of the model's weights occur in it."""
    with _held(job, k) as held:
        task, columns = held.task, held.columns
        sizes = np.array(columns[1:4])
        job.store.write(f"rows.{k}", {"sizes": sizes} if columns.rows is None else {"sizes": sizes, "rows": columns.rows})
        facts = task.fingerprint(), len(task), str(task.dtype), bool(task.certified), running_sum(task.sample_weight)
        return Facts(*facts, is_partial(task), columns._replace(rows=None), held.checked)


def sample_weight(job: Job, k: int) -> Floats:
    """Those of shard k."""
    with _held(job, k) as held:
        return held.task.sample_weight


def join(job: Job, *facts: Facts) -> list[Facts]:
    """Write which weights occur in some shard, and how many shards have each; returns the facts."""
    store = job.store
    shards = [_columns(store, k) for k in range(len(facts))]
    whole = whole_of(shards)
    store.write("whole", {} if whole.rows is None else {"rows": whole.rows})
    store.write("holders", {"holders": holders_of(shards, whole)})
    return list(facts)


def _columns(store: Store, k: int) -> Columns:
    """Which weights occur in shard k, as far as places go."""
    found = store.read(f"rows.{k}")
    n_rows, width, tail = found["sizes"].tolist()
    return Columns(found.get("rows"), n_rows, width, tail, np.empty(0, np.int64), ())


# ------------------------------------------------------------------------------------------------ rounds of an algorithm


def begin(job: Job, k: int) -> Report:
    """The state of shard k before the first round, and the weights that it begins with."""
    with part_of(job, k) as (held, part):
        held.state, report = _algorithm(job).begin(part)
        held.t = 0
        _keep_state(job, k, held)
        return report


def advance(job: Job, k: int, t: int) -> Report:
    """Round t of shard k, after those again that are missing since its last state in memory or in the store."""
    with part_of(job, k) as (held, part):
        if not _stored(job, t) <= held.t <= t:
            held.state, held.t = _before(job, k, part, t)
        first, held.t = held.t, -1  # while it changes
        for now in range(first, t + 1):  # all but the last are closed, and what they reported is known
            common = job.store.read_common(f"common.{now}").of(part.at)
            held.state, report = _algorithm(job).advance(part, held.state, common, now)
        held.t = t + 1
        _keep_state(job, k, held)
        return report


def close(job: Job, t: int, n: str, ends: Sequence[int], *kept: ReportNumbers) -> Closed:
    """End round t with the sums of `n`; -1 are those of `begin`."""
    store, algorithm = job.store, _algorithm(job)
    before = None if t < 0 else store.read_common(f"common.{t}")
    changes = tuple(store.read_sum(f"{n}.{j}", ends) for j in range(kept[0].n_vectors))
    after = algorithm.close(before, Totals(changes, kept[0].numbers))
    digest = store.write_common(f"common.{t + 1}", after)
    store.remove(f"common.{t - job.every}")  # no state that is needed is that old
    assert job.spec.objective is not None
    return Closed(digest, algorithm.dual(after, job.spec.objective.lam))


def _algorithm(job: Job) -> RoundAlgorithm:
    assert job.spec.objective is not None
    return cast(RoundAlgorithm, job.spec.objective.algorithm)


def _keep_state(job: Job, k: int, held: Held) -> None:
    """In the store, once in `job.every` rounds; in memory where there is room: all states may be far larger than the data."""
    if held.state is None:
        return
    if held.t == _stored(job, held.t):
        job.store.write(f"state.{k}.{held.t}", flatten(held.state))
        job.store.remove(f"state.{k}.{held.t - 2 * job.every}")
    if is_memory_above(_STATES):
        # also between two writes: its rounds since then run again, as after a loss. To write it then would be simple, too, but
        # what is read and removed would no longer follow from the number of the round
        if held.t != _stored(job, held.t):
            log.warning("shard %d: no memory for its state: its last rounds will run again; give the workers more, or every=1", k)
        held.state, held.t = None, -1


def _before(job: Job, k: int, part: Part, t: int) -> tuple[Any, int]:
    """The last state in the store before round t, and the round before which it is."""
    like, _ = _algorithm(job).begin(_few(part))
    if like is None:
        return None, t
    first = _stored(job, t)
    try:
        return _filled(like, job.store.read(f"state.{k}.{first}")), first
    except (CheckpointError, KeyError) as error:
        raise CheckpointError(f"shard {k}: its state before round {first} is not in the store: {error}") from error


def _stored(job: Job, t: int) -> int:
    """The last round up to t before which states go to the store."""
    return t - t % job.every


def _few(part: Part) -> Part:
    """Two instances of a shard that count: what they take is of the same form."""
    task = cast(Task, part.problem.task)
    return part._replace(problem=part.problem.with_task(task.take(np.flatnonzero(task.sample_weight)[:2])))


def _filled(like: Any, arrays: Arrays, prefix: str = "") -> Any:
    """A state of this form with these arrays: the inverse of `flatten`. The store checks bytes, and only rounds write to it."""
    values = []
    for name, value in like._asdict().items():
        if hasattr(value, "_asdict"):
            value = _filled(value, arrays, f"{prefix}{name}.")
        elif isinstance(value, np.ndarray):
            value = arrays[prefix + name]
        values.append(value)
    return type(like)(*values)
