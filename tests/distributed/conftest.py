"""What tests of shards share: a cluster that needs no process of its own."""

from collections.abc import Iterator
from typing import Any

import pytest


@pytest.fixture(scope="module")
def here() -> Iterator[Any]:
    """A client whose one worker is this process, with two threads."""
    # not "distributed": that is also the name of a folder of these tests
    pytest.importorskip("dask", reason="dask is not installed: pip install 'structpred[distributed]'")
    from distributed import Client

    with Client(processes=False, dashboard_address="127.0.0.1:0", n_workers=1, threads_per_worker=2) as client:
        yield client
