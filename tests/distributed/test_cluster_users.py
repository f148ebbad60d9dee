"""The cluster that runs where none is named is for the processes of its owner alone."""

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from quiet_clusters import closing_quietly

from structpred.distributed.cluster import local_cluster, workers_of
from structpred.errors import DependencyError

pytest.importorskip("dask", reason="dask is not installed: pip install 'structpred[distributed]'")
distributed = pytest.importorskip("distributed")
# tries every address over TCP, over TLS without a key, and over TLS with a key of its own: who answers
INTRUDER = """
import asyncio, json, logging, os, sys
from distributed import Security
from distributed.core import rpc
logging.disable(logging.CRITICAL)
own = Security.temporary()
async def asked(address, security):
    try:
        async with rpc(address, connection_args=security.get_connection_args("client"), timeout=5) as end:
            return bool(await asyncio.wait_for(end.identity(), 5))
    except BaseException as error:
        return type(error).__name__
async def main():
    ways = {"tcp": Security(require_encryption=False), "tls": own}
    found = {}
    for address in sys.argv[1:]:
        for protocol, security in ways.items():
            found[f"{protocol}://{address}"] = await asked(f"{protocol}://{address}", security)
    return found
asyncio.run(main())  # imports all that it needs, which the other user perhaps cannot read
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
print(json.dumps({"uid": os.getuid(), "found": asyncio.run(main())}))
"""


def places(client: Any) -> list[str]:
    """Where scheduler, workers and their nannies listen, as host:port."""
    workers = workers_of(client)
    ends = [client.scheduler.address, *workers, *(facts["nanny"] for facts in workers.values())]
    return [end.partition("://")[2] for end in ends]


def another_user(*addresses: str) -> dict[str, Any]:
    """What a process of another user is answered there. Skips the test where there can be none."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        pytest.skip("only root can start a process of another user")
    done = subprocess.run([sys.executable, "-c", INTRUDER, *addresses], capture_output=True, text=True, timeout=300, check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["uid"] == 65534
    return dict(found["found"])


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """A client of two worker processes, as `--shards` starts them."""
    with local_cluster(2) as cluster, distributed.Client(cluster, set_as_default=False) as client:
        client.wait_for_workers(2)
        yield client


@pytest.mark.slow
def test_no_other_user_is_let_in(client: Any) -> None:
    """Neither scheduler nor workers nor nannies answer a process of another user, over TCP or over TLS with a key of its own."""
    found = another_user(*places(client))
    assert len(found) == 10
    assert not [where for where, answer in found.items() if answer is True]
    assert set(client.run(os.getuid).values()) == {os.getuid()}


@pytest.mark.slow
def test_another_user_is_let_in_where_nothing_is_locked() -> None:
    """The same process is answered by all of dask's own local cluster: what refuses it above is ours."""
    settings = {"threads_per_worker": 1, "host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
    with (
        closing_quietly(distributed.LocalCluster(n_workers=1, **settings)) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        found = another_user(*places(client))
    assert [answer for where, answer in found.items() if where.startswith("tcp")] == [True] * 3


@pytest.mark.slow
def test_nothing_is_shown_and_nothing_shared(client: Any) -> None:
    """No page tells what runs, and workers write to a folder that is their owner's alone."""
    ports = [client.cluster.scheduler.services["dashboard"].port]
    ports += [facts["services"]["dashboard"] for facts in workers_of(client).values()]
    for port in ports:
        for page in ("status", "info/main/workers.html", "json/counts.json", "metrics"):
            with pytest.raises(urllib.error.HTTPError, match="404"):
                urllib.request.urlopen(f"http://127.0.0.1:{port}/{page}", timeout=10)
    folders = client.run(lambda dask_worker: dask_worker.local_directory)
    for folder in folders.values():
        shut = [up for up in (folder, *parents(folder)) if not os.stat(up).st_mode & 0o077]
        assert shut, folder


def parents(folder: str) -> Iterator[str]:
    """The folders around one, from the nearest on."""
    while (up := os.path.dirname(folder)) != folder:
        yield (folder := up)


def test_without_cryptography_there_is_no_local_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cluster without keys is not started: one line says what to install."""

    def lacking() -> Any:
        raise ImportError("no cryptography")

    monkeypatch.setattr(distributed.Security, "temporary", lacking)
    with pytest.raises(DependencyError, match=r"needs cryptography .* structpred\[distributed\]"), local_cluster(1):
        pass
