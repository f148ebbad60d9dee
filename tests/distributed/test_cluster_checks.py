"""What is checked of a cluster before any work begins on it."""

import contextlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from structpred.distributed import cluster
from structpred.distributed.cluster import check_cluster, check_memory, cluster_of, facts_here, local_cluster
from structpred.errors import ClusterError, ParameterError


class MadeUp:
    """A client whose second worker answers as told: `change` gets its facts."""

    def __init__(self, change: Any, n_workers: int = 2) -> None:
        self.change, self.n_workers = change, n_workers

    def wait_for_workers(self, n: int, timeout: float) -> None:
        if self.n_workers < n:
            raise TimeoutError

    def run(self, function: Any, *args: Any, on_error: str) -> dict[str, Any]:
        first, second = function(*args), function(*args)
        return {"tcp://a:1": first, "tcp://b:2": self.change(second)}


def other_version(facts: Any) -> Any:
    """The facts of a worker with an old numpy."""
    return {**facts, "versions": {**facts["versions"], "numpy": "1.0"}}


BAD = {
    "version": (other_version, r"numpy: expected .* everywhere, as here, got 1\.0 on tcp://b:2"),
    "blind": (lambda facts: {**facts, "seen": None, "own": None}, "1 of 2 workers do not see .* tcp://b:2; give store="),
    "folder of its own": (lambda facts: {**facts, "own": "check-elsewhere"}, "do not see the same folder"),
    "no structpred": (lambda facts: ModuleNotFoundError("structpred"), "1 of 2 workers cannot run structpred: tcp://b:2"),
}


@pytest.mark.parametrize("fault", BAD)
def test_a_worker_that_differs_is_named(tmp_path: Path, fault: str) -> None:
    """Other versions, a store that a worker does not share, a missing package: one line that names the worker; no file stays."""
    change, message = BAD[fault]
    with pytest.raises(ClusterError, match=message) as caught:
        check_cluster(MadeUp(change), tmp_path)
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_workers_that_are_alike_pass_and_other_processors_warn(tmp_path: Path) -> None:
    """Workers that are all alike are accepted in silence; processors of two kinds are a warning that names both."""
    check_cluster(MadeUp(lambda facts: facts), tmp_path)
    with pytest.warns(UserWarning, match="Abacus"):
        check_cluster(MadeUp(lambda facts: {**facts, "processor": "Abacus"}), tmp_path)


def test_no_workers_and_no_scheduler_are_one_line_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cluster without workers, an address where nobody answers, and what is no client at all: one line that says what to do."""
    pytest.importorskip("dask", reason="dask is not installed: pip install 'structpred[distributed]'")
    monkeypatch.setattr(cluster, "PATIENCE", 0.2)
    with pytest.raises(ClusterError, match=r"no workers .* `dask worker ADDRESS`"):
        check_cluster(MadeUp(None, n_workers=0), tmp_path)
    with (
        pytest.raises(ClusterError, match=r"tcp://127\.0\.0\.1:9: no dask scheduler answers"),
        cluster_of("tcp://127.0.0.1:9", 2),
    ):
        pass
    with pytest.raises(ClusterError, match=r"TLS needs certificates"), cluster_of("tls://127.0.0.1:9", 2):
        pass
    with pytest.raises(ParameterError, match=r"expected None, a distributed\.Client, or the address"), cluster_of(7, 2):
        pass


def test_a_folder_that_is_not_there_is_not_seen(tmp_path: Path) -> None:
    """A worker without the folder says so instead of failing."""
    found = facts_here(str(tmp_path / "nowhere"), "check")
    assert found["seen"] is None
    assert found["own"] is None


def test_shards_that_no_memory_holds_are_refused_before_they_are_read() -> None:
    """A shard larger than any worker, and shards larger than all workers, are one line each; workers without a limit pass."""

    class Shard:
        """A file of some size."""

        def __init__(self, size: int) -> None:
            self.size = size

        def __str__(self) -> str:
            return "big.txt"

    workers = {f"tcp://{name}:1": {"memory_limit": 10**9} for name in "ab"}
    with pytest.raises(ClusterError, match=r"^big\.txt: .* at least 1\.2 GB, .* more than 1 GB: cut the data into more shards"):
        check_memory(workers, [Shard(10), Shard(2 * 10**8)])
    with pytest.raises(ClusterError, match=r"at least 2\.4 GB, .* together have 2 GB \(tcp://a:1, tcp://b:1\)"):
        check_memory(workers, [Shard(10**8)] * 4)
    check_memory({"tcp://a:1": {"memory_limit": 0}}, [Shard(10**12)])
    check_memory({}, [Shard(10**12)])
    check_memory(workers, [Shard(10**6), object()])


SEVEN = """
from distributed import Client
from structpred.distributed.cluster import workers_of

with Client(processes=False, dashboard_address="127.0.0.1:0", n_workers=7, threads_per_worker=1) as client:
    client.wait_for_workers(7)
    found = workers_of(client)
    assert sorted(found) == sorted(client.nthreads())
    assert all(facts["memory_limit"] > 0 and facts["host"] for facts in found.values())
    print(len(found), flush=True)
"""


@pytest.mark.slow
def test_all_workers_are_known() -> None:
    """Also the sixth and seventh: what they hold is counted, and no host compiles twice.

    Seven workers in one process may wait for each other for ever where the machine stands still while they start or end. So
    they have a process of their own, which is given up then, and another one tries.
    """
    pytest.importorskip("dask", reason="dask is not installed: pip install 'structpred[distributed]'")
    for _ in range(5):
        with contextlib.suppress(subprocess.TimeoutExpired):
            child = subprocess.run([sys.executable, "-c", SEVEN], capture_output=True, text=True, timeout=120)
            if "TimeoutError" not in child.stderr:
                break
    assert child.stdout.split() == ["7"], child.stderr


def test_a_cluster_that_does_not_end_well_takes_no_result_along(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What dask raises while a local cluster ends is logged; what the body raises passes."""
    pytest.importorskip("dask", reason="dask is not installed: pip install 'structpred[distributed]'")

    class Ends:
        """A cluster that lost a worker."""

        def __init__(self, **settings: Any) -> None:
            assert settings["n_workers"] == 3

        def close(self) -> None:
            raise KeyError("tcp://127.0.0.1:35951")

    monkeypatch.setattr(pytest.importorskip("distributed"), "LocalCluster", Ends)
    with local_cluster(3):
        done = True
    assert done
    assert "did not end as it should" in caplog.text
    with pytest.raises(ZeroDivisionError), local_cluster(3):
        1 / 0  # noqa: B018


def test_a_worker_that_dies_while_it_is_asked_is_no_fault_of_the_others(tmp_path: Path) -> None:
    """It is asked again who is there; one that is lost each time is an error that names it."""

    class Losing(MadeUp):
        """A second worker whose connection breaks the first `times` times."""

        def __init__(self, times: int) -> None:
            super().__init__(lambda facts: facts)
            self.times = times

        def run(self, function: Any, *args: Any, on_error: str) -> dict[str, Any]:
            found = super().run(function, *args, on_error=on_error)
            self.times -= 1
            return found if self.times < 0 else {**found, "tcp://b:2": ConnectionResetError("reset by peer")}

    check_cluster(Losing(2), tmp_path)
    with pytest.raises(ClusterError, match=r"1 of 2 workers cannot run structpred: tcp://b:2: ConnectionResetError"):
        check_cluster(Losing(9), tmp_path)
