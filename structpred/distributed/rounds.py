"""Rounds on a cluster, as the client sees them: it submits a task for each shard and one that closes the round, and waits.

Client and scheduler see keys and a few numbers: what shards report goes from worker to worker, vectors go through the store.
"""

import contextlib
import hashlib
import logging
import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from structpred.core.types import AnyArray, Floats
from structpred.distributed import sums, tasks
from structpred.distributed.cluster import without_module, workers_of
from structpred.distributed.store import Store
from structpred.errors import ClusterError
from structpred.models.sharding import Columns
from structpred.runtime.interrupts import abandon_if_asked

log = logging.getLogger("structpred.distributed")
#: seconds that a cluster without workers is waited for
PATIENCE = 60.0
#: weights of a slice, at least; how many slices there are at most; of how many shards reports are added at once
SLICE, _MOST_SLICES, TOGETHER = 1 << 19, 16, 8


#: which worker a shard is for; None: for any
Owners = Sequence[str | None]


class _Stalled(Exception):
    """Nobody works on the tasks of a round."""


class Rounds:
    """The rounds of one run. name: what its tasks are called. shards: what each of them is, for errors.

    every: after how many rounds the states of the shards go to the store.
    """

    def __init__(self, client: Any, store: Store, name: str, shards: Sequence[str], every: int = 1) -> None:
        self.client, self.store, self.name, self.shards = client, store, name, shards
        self.job = tasks.Job(str(store.folder), "", every=every)
        self.asked = 0
        self.whole: Columns | None = None
        self.token = secrets.token_hex(4)
        self.known = "", 0.0
        self.owners: list[str | None] = [None] * len(shards)

    def __repr__(self) -> str:
        """The same wherever it runs: it is part of what says whether two runs are the same, and have the same in the store."""
        return f"Rounds of {len(self.shards)} shards, states stored every {self.job.every}"

    def tell(self, spec: tasks.Spec) -> None:
        """The tasks from now on know this of the run."""
        self.job = self.job._replace(digest=self.store.write_object(spec))

    @property
    def dim(self) -> int:
        """How many weights occur in some shard."""
        return 0 if self.whole is None else self.whole.dim

    def round(self, what: str, each: Callable[..., Any], *args: Any, last: Callable[..., Any] | None = None) -> Any:
        """each(job, k, *args) of every shard; last(job, *values) of all of them, or the values themselves where it is None."""

        def submit(job: tasks.Job, label: str, owners: Owners) -> list[Any]:
            futures = self._each(job, label, owners, each, args)
            return futures if last is None else [*futures, self._submit(f"{label}-close", last, job, *futures)]

        found = self._run(what, submit, len(self.shards) if last is None else 1)
        return found if last is None else found[0]

    @contextlib.contextmanager
    def added(
        self, what: str, each: Callable[..., Any], *args: Any, last: Callable[..., Any], closing: Any = ()
    ) -> Iterator[Any]:
        """The reports each(job, k, *args) of every shard added up: the value of last(job, *closing, n, ends, *kept).

        The sums are `sum.n` of the store, in slices with these ends, until the context ends. A report is cut where it is, each
        worker adds a slice of the reports of some shards as soon as these are there, and they are dropped: memory holds some
        vectors, not one of each shard. Neither shows in the bits.
        """
        # as many slices as there are workers, as long as they are worth a message; the last end is that of all weights
        assert self.whole is not None
        n_rows = (self.dim - self.whole.tail) // max(self.whole.width, 1)
        n = min(len({*self.owners}), self.dim // SLICE, _MOST_SLICES, n_rows)
        ends = [n_rows * j // n * self.whole.width for j in range(1, n)] + [self.dim]

        def submit(job: tasks.Job, label: str, owners: Owners) -> list[Any]:
            n, futures = f"{self.token}-{job.number}", self._each(job, label, owners, each, args)
            closers: Owners = sorted({owner for owner in owners if owner is not None}) or [None]
            kept = []
            for j, (start, stop) in enumerate(zip([0, *ends], ends, strict=False)):
                total, by = None, closers[j % len(closers)]
                cuts = [
                    self._submit(f"{label}-cut{j}-{k:03}", sums.cut, job, k, start, stop, report, priority=1)
                    for k, report in enumerate(futures)
                ]
                for k in range(0, len(cuts), TOGETHER):
                    own, key = cuts[k : k + TOGETHER], f"{label}-add{j}-from{k}"
                    total = self._submit(key, sums.add, job, k, start, stop, total, *own, owner=by, priority=2)
                kept.append(self._submit(f"{label}-keep{j}", sums.keep, job, n, start, total, owner=by))
            return [*kept, self._submit(f"{label}-close", last, job, *closing, n, ends, *kept)]

        try:
            yield self._run(what, submit, 1)[0]
        finally:
            self.store.remove(*(path.name for path in self.store.folder.glob(f"sum.{self.token}-*")))

    def _run(self, what: str, submit: Callable[[tasks.Job, str, Owners], list[Any]], n_last: int) -> list[Any]:
        """The values of the last tasks of a round.

        A round that nobody works on any more is submitted again, which gives the same bytes: dask never gives a task that prefers
        a lost worker to a new one if there was no other at that moment. So the tasks prefer none then.
        """
        owners: Owners = self._assign()
        while True:
            self.job = job = self.job._replace(number=self.job.number + 1)
            label = f"{self.name}-{job.number:04}"
            futures: list[Any] = []
            try:
                with self._one_error(what):
                    futures = submit(job, label, owners)
                    return [self._wait(future, label) for future in futures[-n_last:]]
            except BaseException as error:
                with contextlib.suppress(Exception):
                    self.client.cancel(futures)
                if not isinstance(error, _Stalled):
                    raise
                log.warning("%s: no worker works on it: submitted again", what)
                owners = [None] * len(self.shards)

    def _each(self, job: tasks.Job, label: str, owners: Owners, function: Callable[..., Any], args: tuple[Any, ...]) -> list[Any]:
        return [self._submit(f"{label}-{k:03}", function, job, k, *args, owner=owner) for k, owner in enumerate(owners)]

    def _submit(self, key: str, function: Callable[..., Any], *args: Any, owner: str | None = None, priority: int = 0) -> Any:
        others = owner is not None
        return self.client.submit(
            function, *args, key=key, workers=owner, allow_other_workers=others, pure=False, priority=priority
        )

    def _wait(self, future: Any, label: str) -> Any:
        """The value; a signal ends the wait where the trainer says that its step may be abandoned. label: how the keys begin."""
        done, idle = threading.Event(), 0
        future.add_done_callback(lambda _: done.set())
        looked = peopled = time.monotonic()
        while not done.wait(0.2):
            abandon_if_asked()
            if time.monotonic() - looked > 1.0:
                looked = time.monotonic()
                found = self.client.processing()
                if found:
                    peopled = looked
                elif looked - peopled > PATIENCE:
                    raise ClusterError(_DESERTED)
                idle = 0 if not found or any(str(key).startswith(label) for own in found.values() for key in own) else idle + 1
            if idle == 3 and not done.is_set():
                raise _Stalled
        return future.result()

    def _assign(self) -> list[str | None]:
        """A shard stays with the worker that has it; those of workers that left, or have too many, go to the one with least."""
        try:
            self.client.wait_for_workers(1, timeout=PATIENCE)
            workers = sorted(self.client.nthreads())
        except TimeoutError as error:
            raise ClusterError(_DESERTED) from error
        except Exception as error:
            raise ClusterError(_LOST.format(error=_one_line(error))) from error
        most, counts = -(-len(self.owners) // len(workers)), Counter(dict.fromkeys(workers, 0))
        for k, owner in enumerate(self.owners):
            if owner not in counts or counts[owner] >= most:
                self.owners[k] = None
            else:
                counts[owner] += 1
        for k, owner in enumerate(self.owners):
            if owner is None:
                self.owners[k] = least = min(workers, key=lambda worker: (counts[worker], worker))
                counts[least] += 1
        return self.owners

    @contextlib.contextmanager
    def _one_error(self, what: str) -> Iterator[None]:
        """Whatever dask raises as one line of ours; errors of ours as they are."""
        from concurrent.futures import CancelledError

        from distributed import KilledWorker
        from distributed.comm import CommClosedError

        try:
            yield
        except KilledWorker as error:
            raise ClusterError(f"{what}: {self._which(str(error.task))}") from error
        except ModuleNotFoundError as error:
            raise without_module(what, error) from error
        except (CancelledError, CommClosedError) as error:
            raise ClusterError(_LOST.format(error=_one_line(error))) from error

    def _which(self, key: str) -> str:
        """What is known of a task that took its workers with it."""
        from dask import config

        times = config.get("distributed.scheduler.allowed-failures") + 1
        number = key.rsplit("-", 1)[-1]
        if not number.isdigit():
            return f"{times} workers died while they closed the round: give the workers more memory"
        return (
            f"shard {int(number)} ({self.shards[int(number)]}): {times} workers died while they worked on it; it is probably too "
            "large for the memory of a worker (cut the data into more shards), or code of yours crashes on it"
        )

    def compile(self) -> None:
        """One process of each host compiles, before all begin."""
        self._assign()
        hosts = {worker: facts.get("host", worker) for worker, facts in workers_of(self.client).items()}
        first: dict[str, int] = {}
        for k, owner in enumerate(self.owners):
            first.setdefault(hosts.get(str(owner), str(owner)), k)
        label = f"{self.name}-compile"
        with self._one_error("compiling"):
            futures = [
                self._submit(f"{label}-{k:03}", tasks.compile_kernels, self.job, k, owner=self.owners[k]) for k in first.values()
            ]
            for future in futures:
                self._wait(future, label)

    def end(self) -> None:
        """The workers forget the run; it does not matter whether they hear of it."""
        with contextlib.suppress(Exception):
            self.client.run(tasks.forget, str(self.store.folder))

    # what is asked of all shards

    def begin(self) -> tasks.Closed:
        """Before round 0."""
        with self.added("before the first round", tasks.begin, last=tasks.close, closing=(-1,)) as closed:
            return closed

    def advance(self, t: int) -> tasks.Closed:
        """Round t."""
        with self.added(f"round {t}", tasks.advance, t, last=tasks.close, closing=(t,)) as closed:
            return closed

    def losses(self, w: AnyArray) -> float:
        """sum_i p_i H_i(w); at the weights that it was last asked about no shard is."""
        digest = hashlib.sha256(np.ascontiguousarray(w).data).hexdigest()
        if self.known[0] != digest:
            with self._weights(w) as n:
                self.known = digest, float(self.round("the objective", sums.losses, n, last=sums.add_losses))
        return self.known[1]

    def pieces(self, w: AnyArray) -> list[dict[str, AnyArray]]:
        """The linear piece of each instance at w, by shard, as `sums.pieces` writes them."""
        with self._weights(w) as n:
            self.round("the pieces", sums.pieces, n)
            names = [f"pieces.{n}.{k}" for k in range(len(self.shards))]
            try:
                return [self.store.read(name) for name in names]
            finally:
                self.store.remove(*names)

    def sums(self, what: str, each: Callable[..., Any], w: AnyArray) -> tuple[list[float], Floats]:
        """The numbers and the vectors of the reports each(job, k, n) of every shard, each added up; `weights.n` are w."""
        with self._weights(w) as asked, self.added(what, each, asked, last=sums.sums_of) as (numbers, n, ends):
            return numbers, self.store.read_sum(f"{n}.0", ends)

    @contextlib.contextmanager
    def _weights(self, w: AnyArray) -> Iterator[str]:
        """Weights that the shards are asked about, by their name, which no other run has: workers keep what they read."""
        self.asked += 1
        n = f"{self.token}-{self.asked}"
        self.store.write(f"weights.{n}", {"vector": np.asarray(w, np.float64)})
        try:
            yield n
        finally:
            self.store.remove(f"weights.{n}")


_DESERTED = (
    f"the cluster has no workers any more, and none came within {PATIENCE:g} s; what was closed is in the store: resume from "
    "the checkpoint when there are some"
)
_LOST = (
    "the scheduler cannot be reached any more, or gave the run up ({error}); what was closed is in the store: start the "
    "scheduler again and resume from the checkpoint"
)


def _one_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else 'no reason given'}"
