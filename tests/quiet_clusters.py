"""Local clusters that tests start themselves: what dask raises when they close is no fault of ours."""

import contextlib
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def closing_quietly(cluster: Any) -> Iterator[Any]:
    """The cluster, which is closed afterwards, whatever dask raises then."""
    try:
        yield cluster
    finally:
        with contextlib.suppress(Exception):
            cluster.close()
