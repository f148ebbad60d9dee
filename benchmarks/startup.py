"""What a user waits for besides the work: ``python benchmarks/startup.py``.

`import structpred` in a fresh process; and the first `train` in a new environment (an empty cache of compiled kernels), the
second one, and one in a process that has trained before. CPU seconds of whole processes, medians of five.
"""

import shutil
import sys
import time
from statistics import median
from typing import Any

from measure import Stopwatch, data_folder, in_child, machine, scratch_folder, table, verdict

RUNS = 5
HEAVY = ("numba", "cvxpy", "ortools", "sklearn", "scipy", "matplotlib")


def importing(watch: Stopwatch) -> dict[str, Any]:
    """Import the package; which heavy modules came along."""
    import structpred  # noqa: F401

    return {"loaded": [name for name in HEAVY if name in sys.modules]}


def nothing(watch: Stopwatch) -> None:
    """The interpreter alone."""


def first_train(watch: Stopwatch, train_file: str, trainer: str) -> dict[str, Any]:
    """Train on 50 sentences, twice in one process: the second time everything is compiled and loaded."""
    from structpred.io import read_columns
    from structpred.models import ChainLabeler

    corpus = read_columns(train_file).take(0, 50)
    compiled: list[tuple[str, float]] = []
    with watch("first"):
        listen(compiled)  # loads numba, which is part of what a user waits for
    for name in ("first", "again"):
        with watch(name):
            ChainLabeler(trainer, max_iter=2, template="chunking").fit(corpus, corpus.labels()).predict(corpus)
    return {"compiled": compiled}


def listen(compiled: list[tuple[str, float]]) -> None:
    """Note the CPU seconds that each of our functions takes to compile (with what it calls)."""
    from numba.core import event

    starts: list[float] = []

    class Watcher(event.Listener):  # type: ignore[misc]
        def on_start(self, event: Any) -> None:
            starts.append(time.process_time())

        def on_end(self, event: Any) -> None:
            function = event.data["dispatcher"].py_func
            compiled.append((f"{function.__module__}.{function.__qualname__}", time.process_time() - starts.pop()))

    event.register("numba:compile", Watcher())


def main() -> None:
    """Print the tables and the verdicts."""
    train_file = str(data_folder() / "conll2000" / "train.txt.gz")
    bare = median(in_child("startup:nothing")["cpu_seconds"] for _ in range(RUNS))
    imports = [in_child("startup:importing") for _ in range(RUNS)]
    seconds, loaded = median(r["cpu_seconds"] for r in imports), imports[0]["loaded"]
    rows = []
    costs: dict[str, dict[str, float]] = {}
    worst = {"first": 0.0, "second": 0.0}
    for trainer in ("perceptron", "sgd", "bcfw"):
        folder = scratch_folder()
        environment = {"NUMBA_CACHE_DIR": str(folder)}
        arguments = {"train_file": train_file, "trainer": trainer}
        first = in_child("startup:first_train", environment=environment, **arguments)
        later = [in_child("startup:first_train", environment=environment, **arguments) for _ in range(RUNS)]
        shutil.rmtree(folder)
        hot = median(r["seconds"]["again"] for r in later)
        second = median(r["seconds"]["first"] for r in later)
        extra = first["seconds"]["first"] - second
        worst = {"first": max(worst["first"], extra), "second": max(worst["second"], second - hot)}
        rows.append([trainer, *(f"{x:.2f}" for x in (first["seconds"]["first"], second, hot, extra, second - hot))])
        costs[trainer] = dict(first["compiled"])
    print(f"\nStarting up ({machine()}); CPU seconds\n")
    print(table(["trainer", "first train", "second", "hot process", "compilation", "second over hot"], rows))
    print("\nCompilation by function, with what it calls\n")
    names = sorted({name for by_name in costs.values() for name in by_name})
    print(table(["function", *costs], [[n, *(f"{c[n]:.2f}" if n in c else "" for c in costs.values())] for n in names]))
    print(f"\nimport structpred: {seconds:.2f} s (the interpreter alone {bare:.2f} s); loads {', '.join(loaded) or 'none'}\n")
    print(verdict("first train compiles for at most 5 s", worst["first"] <= 5, f"{worst['first']:.2f} s"))
    print(verdict("second train at most 1 s over a hot process", worst["second"] <= 1, f"{worst['second']:.2f} s"))
    heavy = {"numba", "cvxpy", "ortools"} & set(loaded)
    print(verdict("import structpred below 0.5 s", seconds < 0.5, f"{seconds:.2f} s"))
    print(verdict("it loads neither numba, cvxpy nor ortools", not heavy, ", ".join(sorted(heavy)) or "none"))


if __name__ == "__main__":
    main()
