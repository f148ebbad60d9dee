"""Which cluster: one of this machine where none is given; and what must hold of any before work begins on it."""

import contextlib
import hashlib
import logging
import os
import platform
import secrets
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from structpred.errors import ClusterError, DependencyError, ParameterError
from structpred.runtime.interrupts import leave_to_parent

log = logging.getLogger("structpred.distributed")
#: seconds that a scheduler may take to answer, and workers to come
PATIENCE = 10.0
#: how often workers are asked what they are, where some are lost meanwhile
_TRIALS = 3
#: what packed data take of the bytes of their files, at the very least (13 times was measured)
_TIMES = 6


@contextlib.contextmanager
def cluster_of(client: Any, n_shards: int) -> Iterator[Any]:
    """A client of dask: the one given; one of the scheduler at an address; or of worker processes here, for the time of the call.

    Raises ClusterError where no scheduler answers, and DependencyError without dask.
    """
    try:
        from distributed import Client
    except ImportError as error:
        raise DependencyError("shards need dask and distributed: install structpred[distributed]") from error
    if client is None:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        n_workers = max(min(n_shards, cores), 1)
        with (
            local_cluster(n_workers, env={"NUMBA_NUM_THREADS": "1"}, silence_logs=logging.CRITICAL) as cluster,
            Client(cluster, set_as_default=False) as own,
        ):
            own.register_plugin(_deaf_to_ctrl_c())
            yield own
    elif isinstance(client, str):
        try:
            own = Client(client, timeout=PATIENCE, set_as_default=False)
        except TypeError as error:  # what dask raises where there is no TLS context
            raise ClusterError(
                f"{client}: TLS needs certificates, and dask's configuration names none (distributed.comm.tls in a file of "
                "DASK_CONFIG's folder); or give a Client with its Security"
            ) from error
        except (OSError, TimeoutError, ValueError) as error:
            raise ClusterError(
                f"{client}: no dask scheduler answers there within {PATIENCE:g} s; is it running (`dask scheduler`), and is the "
                "address, tcp://HOST:PORT or tls://HOST:PORT, its own?"
            ) from error
        with own:
            yield own
    elif isinstance(client, Client):
        yield client
    else:
        raise ParameterError(
            f"client: expected None, a distributed.Client, or the address of a scheduler, got {type(client).__name__}"
        )


@contextlib.contextmanager
def local_cluster(n_workers: int, **settings: Any) -> Iterator[Any]:
    """A LocalCluster of processes with one thread each, on the loopback device. What goes wrong while it ends is logged alone.

    Other users reach that device, too: TLS with a key that these processes alone have keeps them out, there are no pages, and
    what workers move to disk lies in a folder of the owner. dask may fail to end a cluster that has lost a worker (a KeyError
    for its address); by then the work is done. DependencyError without cryptography, which makes the key.
    """
    import dask
    from distributed import LocalCluster, Security

    try:
        security = Security.temporary()
    except ImportError as error:
        raise DependencyError("a local cluster needs cryptography for its keys: install structpred[distributed]") from error
    no_pages: dict[str, list[str]] = {"distributed.scheduler.http.routes": [], "distributed.worker.http.routes": []}
    place = dask.config.get("temporary-directory", None)
    with TemporaryDirectory(prefix="structpred-", dir=place, ignore_cleanup_errors=True) as scratch, dask.config.set(no_pages):
        cluster = LocalCluster(
            n_workers=n_workers, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address="127.0.0.1:0",
            security=security, scheduler_kwargs={"dashboard": False}, local_directory=scratch, **settings,
        )  # fmt: skip
        try:
            yield cluster
        finally:
            try:
                cluster.close()
            except Exception:
                log.warning("the local cluster did not end as it should", exc_info=True)


def _deaf_to_ctrl_c() -> Any:
    """A plugin of workers here: Ctrl-C in a terminal reaches all processes, and this one alone decides what it means."""
    from distributed import WorkerPlugin

    class DeafToCtrlC(WorkerPlugin):  # type: ignore[misc]
        """In the main thread of a worker, as dask starts it."""

        def setup(self, worker: Any) -> None:
            leave_to_parent()

    return DeafToCtrlC()


def check_cluster(client: Any, store: str | os.PathLike[str]) -> None:
    """Whether all workers can train together: the same versions as here, and a store that all of them read and write.

    client: a distributed.Client. store: a folder.

    Raises ClusterError, which names workers, where there is none, where one has another Python, structpred, numpy or numba, or
    does not see what others write to the store. Processors that differ are a warning: exp and log may differ in their last bits
    there, so that a run repeats bit for bit only on workers of one kind.

    Examples
    --------
    >>> import tempfile
    >>> from distributed import Client
    >>> with tempfile.TemporaryDirectory() as folder, Client(processes=False, dashboard_address="127.0.0.1:0") as client:
    ...     check_cluster(client, folder)
    """
    try:
        client.wait_for_workers(1, timeout=PATIENCE)
    except TimeoutError:
        raise ClusterError(
            f"the cluster has no workers (none came within {PATIENCE:g} s): start some, `dask worker ADDRESS`"
        ) from None
    folder = Path(os.path.abspath(store))
    word, name = secrets.token_hex(16), f"check-{secrets.token_hex(4)}"
    (folder / name).write_text(word)
    try:
        found = _asked(client, str(folder), name)
        failed = {worker: error for worker, error in found.items() if isinstance(error, BaseException)}
        if failed:
            worker, error = next(iter(failed.items()))
            raise ClusterError(
                f"{len(failed)} of {len(found)} workers cannot run structpred: {worker}: {type(error).__name__}: {error}"
            )
        _check_versions(found)
        there = {file.name for file in folder.iterdir()}
        blind = [worker for worker, facts in found.items() if facts["seen"] != word or facts["own"] not in there]
        if blind:
            raise ClusterError(
                f"{folder}: {len(blind)} of {len(found)} workers do not see the same folder there, or cannot write to it: "
                f"{_some(blind)}; give store= a folder that this machine and all workers share"
            )
    finally:
        for file in folder.glob(f"{name}*"):
            file.unlink(missing_ok=True)
    kinds = sorted({str(facts["processor"]) for facts in found.values()})
    if len(kinds) > 1:
        warnings.warn(
            f"the workers have different processors ({', '.join(kinds)}): exp and log may differ in their last bits, so that "
            "another run may give other last digits",
            stacklevel=2,
        )


def _asked(client: Any, folder: str, name: str) -> dict[str, Any]:
    """What all workers say. One that dies just then is no fault of the others: they are asked again, without it."""
    for _ in range(_TRIALS):
        found: dict[str, Any] = client.run(facts_here, folder, name, on_error="return")
        if not any(isinstance(error, OSError) for error in found.values()):
            break
        client.wait_for_workers(1, timeout=PATIENCE)
    return found


def facts_here(folder: str, name: str) -> dict[str, Any]:
    """What this process is, and what it sees of the store; it leaves a file there."""
    try:
        seen: str | None = (Path(folder) / name).read_text()
        digest = hashlib.sha256(f"{platform.node()} {os.getpid()} {id(seen)}".encode()).hexdigest()[:16]
        own: str | None = f"{name}-{digest}"
        (Path(folder) / str(own)).touch()
    except OSError:
        seen = own = None
    return {"versions": _versions(), "processor": _processor(), "seen": seen, "own": own}


def _versions() -> dict[str, str]:
    import numpy as np

    import structpred

    python = ".".join(map(str, sys.version_info[:3]))
    return {"structpred": structpred.__version__, "numpy": np.__version__, "numba": version("numba"), "Python": python}


def _processor() -> str:
    with contextlib.suppress(OSError), open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def _check_versions(found: Mapping[str, Any]) -> None:
    here = _versions()
    for name, expected in here.items():
        others: dict[str, list[str]] = {}
        for worker, facts in found.items():
            if (other := facts["versions"].get(name)) != expected:
                others.setdefault(str(other), []).append(worker)
        if others:
            said = "; ".join(f"{other} on {_some(workers)}" for other, workers in others.items())
            raise ClusterError(f"{name}: expected {expected} everywhere, as here, got {said}: install the same on all workers")


def workers_of(client: Any) -> dict[str, Any]:
    """What the scheduler knows of each worker, by its address.

    `client.scheduler_info` tells of five of them, and of none where the client itself asks at that moment for less.
    """
    return client.sync(client.scheduler.identity, n_workers=-1)["workers"]


def check_memory(workers: Mapping[str, Any], shards: Sequence[Any]) -> None:
    """ClusterError where the workers cannot hold the shards, or one of these no worker: training needs many times their bytes.

    workers: as `workers_of` gives them.
    """
    limits = {worker: facts["memory_limit"] for worker, facts in workers.items()}
    needs = [(_TIMES * (getattr(shard, "size", None) or 0), shard) for shard in shards]
    if not limits or not all(limits.values()):
        return  # workers without a limit, or lost just now: the next round waits for others
    if (largest := max(needs, key=lambda need: need[0]))[0] > max(limits.values()):
        raise ClusterError(
            f"{largest[1]}: training on this shard needs at least {_gb(largest[0])}, and no worker has more than "
            f"{_gb(max(limits.values()))}: cut the data into more shards"
        )
    if (total := sum(need for need, _ in needs)) > sum(limits.values()):
        raise ClusterError(
            f"training on these shards needs at least {_gb(total)}, and the workers together have {_gb(sum(limits.values()))} "
            f"({_some(list(limits))}): start more workers"
        )


def without_module(what: str, error: ModuleNotFoundError) -> ClusterError:
    """What to raise where a worker does not find a module, over `what` it did."""
    return ClusterError(
        f"{what}: a worker has no module {error.name!r}: code of yours must be installed there, or on its PYTHONPATH"
    )


def is_memory_above(share: float) -> bool:
    """Whether this worker has used more than that share of the memory that it may use."""
    from distributed import get_worker

    try:
        worker = get_worker()
    except ValueError:  # this is no worker
        return False
    limit = worker.memory_manager.memory_limit
    return bool(limit) and bool(worker.monitor.get_process_memory() > share * limit)


def _gb(size: float) -> str:
    return f"{size / 1e9:.3g} GB"


def _some(workers: list[str]) -> str:
    return ", ".join(workers[:3]) + (f" and {len(workers) - 3} more" if len(workers) > 3 else "")
