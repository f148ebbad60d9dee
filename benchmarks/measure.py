"""One measurement, one fresh process: CPU seconds by section, and the peak memory of the whole process.

`in_child("chunking:ours", trainer="sgd")` starts ``python measure.py chunking:ours {...}``; the function that is named gets a
`Stopwatch` and the arguments, and returns plain data. Other programs share the machine, so the times are CPU seconds of that
process (all its threads, and its children), never wall time, and linear algebra is kept to one thread.

This module imports the standard library only: at the start a child's peak memory is that of the process that started it.
"""

import importlib
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
ONE_THREAD = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")}


class Stopwatch:
    """CPU seconds by section.

    >>> watch = Stopwatch()
    >>> with watch("sum"):
    ...     _ = sum(range(1000))
    >>> list(watch.seconds)
    ['sum']
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """Add what happens inside to the section."""
        start = time.process_time()
        yield
        self.seconds[name] = self.seconds.get(name, 0.0) + time.process_time() - start


def in_child(
    function: str, *, environment: dict[str, str] | None = None, timeout: float = 590, **arguments: Any
) -> dict[str, Any]:
    """Call ``module:function`` in a fresh process; what it returned, with cpu_seconds, seconds (sections) and peak_mb."""
    command = [sys.executable, str(HERE / "measure.py"), function]
    env = {**os.environ, **ONE_THREAD, **(environment or {})}
    done = subprocess.run(command, env=env, input=json.dumps(arguments), stdout=subprocess.PIPE, text=True, check=True)
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def main() -> None:
    """The child's side: call the function and print the result as the last line of JSON."""
    module, name = sys.argv[1].split(":")
    watch = Stopwatch()
    returned = getattr(importlib.import_module(module), name)(
        watch, **json.load(sys.stdin)
    )  # arguments of a command line may be too long
    own = resource.getrusage(resource.RUSAGE_SELF)
    figures = {"cpu_seconds": own.ru_utime + own.ru_stime, "peak_mb": own.ru_maxrss / 1024, "seconds": watch.seconds}
    print()
    print(json.dumps({**(returned or {}), **figures}))


def data_folder() -> Path:
    """The folder of data sets: STRUCTPRED_DATA, else ../shared/data next to the project; ends the program where there is none."""
    folder = Path(os.environ.get("STRUCTPRED_DATA") or ROOT.parent / "shared" / "data")
    if not folder.is_dir():
        raise SystemExit(
            f"no data sets: set STRUCTPRED_DATA to the folder that holds conll2000/ and ocr_letters/ (looked in {folder})"
        )
    return folder


def scratch_folder() -> Path:
    """A new temporary folder for model files."""
    return Path(tempfile.mkdtemp(prefix="structpred-bench-"))


@contextmanager
def workers(n: int, **settings: Any) -> Iterator[Any]:
    """A client of n worker processes of this machine. settings: of dask's LocalCluster."""
    import logging

    from distributed import Client

    from structpred.distributed.cluster import local_cluster

    with (
        local_cluster(n, silence_logs=logging.ERROR, env=ONE_THREAD, **settings) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


def machine() -> str:
    """The machine in a few words."""
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in ("numpy", "numba"))
    hardware = f"{os.cpu_count()} cores, {platform.machine()}"
    return f"{time.strftime('%Y-%m-%d')}, {hardware}, Python {platform.python_version()}, {versions}"


def table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A Markdown table, padded so that it also reads well as plain text."""
    cells = [list(head), *([str(cell) for cell in row] for row in rows)]
    widths = [max(len(row[j]) for row in cells) for j in range(len(head))]
    lines = ["| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |" for row in cells]
    return "\n".join([lines[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *lines[1:]])


def verdict(what: str, met: bool, figure: str) -> str:
    """One line for one requirement."""
    return f"{'met    ' if met else 'NOT MET'}  {what}: {figure}"


if __name__ == "__main__":
    main()
