"""What a user waits for besides the work: ``python benchmarks/startup.py``.

Imports in fresh processes; commands that end with a missing file; the first `train` in a new environment (an empty cache of
compiled kernels), the second one, and one in a process that has trained before; README's first example and `structpred warmup` in
new environments; and `structpred predict` as a whole process, in turns with a script that uses python-crfsuite. CPU seconds of
whole processes, medians of five.
"""

import gzip
import importlib
import os
import re
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

from measure import HERE, ONE_THREAD, ROOT, Stopwatch, data_folder, in_child, machine, scratch_folder, table, verdict

RUNS = 5
PAIRS = 7
HEAVY = ("numba", "cvxpy", "ortools", "sklearn", "scipy", "matplotlib")
STRUCTPRED = (sys.executable, "-m", "structpred.cli")


def importing(watch: Stopwatch, modules: list[str]) -> dict[str, Any]:
    """Import modules; which heavy ones came along."""
    for name in modules:
        importlib.import_module(name)
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
            ChainLabeler(trainer, max_iter=2, template="crfsuite").fit(corpus, corpus.labels()).predict(corpus)
    return {"compiled": compiled}


def readme(watch: Stopwatch) -> dict[str, Any]:
    """README's first example, in a scratch folder; what compiling took."""
    code = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    assert code is not None
    os.chdir(scratch_folder())
    compiled: list[tuple[str, float]] = []
    with watch("all"):
        listen(compiled)
        exec(code[1], {})
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


def cpu_of(*command: str, environment: dict[str, str] | None = None) -> float:
    """CPU seconds of a whole process; its output is thrown away, and it may fail."""
    env = {**os.environ, **ONE_THREAD, **(environment or {})}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def imports() -> None:
    """What imports and commands with a missing file cost."""
    rows = [["the interpreter alone", f"{median(in_child('startup:nothing')['cpu_seconds'] for _ in range(RUNS)):.2f}", ""]]
    for modules in (["structpred"], ["structpred.models.chain.labeler"], ["structpred.models.parser.parser"], ["sklearn.base"]):
        runs = [in_child("startup:importing", modules=modules) for _ in range(RUNS)]
        rows.append([f"import {modules[0]}", f"{median(r['cpu_seconds'] for r in runs):.2f}", ", ".join(runs[0]["loaded"])])
    missing = {
        name: median(cpu_of(*STRUCTPRED, *name.split()) for _ in range(RUNS))
        for name in ("predict none.spz none.txt", "evaluate none.spz none.txt", "inspect none.spz")
    }
    rows += [[f"structpred {name}", f"{seconds:.2f}", ""] for name, seconds in missing.items()]
    print(table(["process", "CPU s", "loads"], rows) + "\n")
    print(verdict("import structpred below 0.5 s", float(rows[1][1]) < 0.5, f"{rows[1][1]} s"))
    print(verdict("import of a model below 0.5 s", float(rows[2][1]) < 0.5, f"{rows[2][1]} s"))
    print(verdict("a missing file within 0.4 s", max(missing.values()) <= 0.4, f"{max(missing.values()):.2f} s"))


def commands(train_file: str, test_file: str) -> None:
    """`structpred predict` and a script with python-crfsuite, in turns; models of the same template."""
    folder = scratch_folder()
    ours, theirs, data = str(folder / "m.spz"), str(folder / "m.crfsuite"), folder / "test.txt"
    data.write_bytes(gzip.decompress(Path(test_file).read_bytes()))
    kind = ("train", "chain", train_file, "--format", "conll2000", "--template", "crfsuite", "--trainer", "sgd")
    cpu_of(*STRUCTPRED, *kind, "-o", ours)
    in_child("peers.crfsuite:chunking", train_file=train_file, model=theirs, algorithm="ap", params={"max_iterations": 10})
    script = str(HERE / "peers" / "crfsuite_tagger.py")
    pairs = [
        (cpu_of(*STRUCTPRED, "predict", ours, str(data)), cpu_of(sys.executable, script, theirs, str(data))) for _ in range(PAIRS)
    ]
    mine, peer = (median(column) for column in zip(*pairs, strict=True))
    ratio = median(a / b for a, b in pairs)
    print(table(["whole process", "CPU s"], [["structpred predict", f"{mine:.2f}"], ["python-crfsuite", f"{peer:.2f}"]]) + "\n")
    print(verdict("structpred predict faster than a script", ratio < 1, f"{ratio:.2f} of its CPU seconds ({PAIRS} pairs)"))
    shutil.rmtree(folder)


def new_environments() -> None:
    """README's first example, and a warmup of each kind of model, with empty caches."""
    rows = []
    for name in ("README's first example", "chain", "multilabel", "parser"):
        folder = scratch_folder()
        environment = {"NUMBA_CACHE_DIR": str(folder)}

        def seconds(name: str, environment: dict[str, str]) -> float:
            if name in ("chain", "multilabel", "parser"):
                return cpu_of(*STRUCTPRED, "warmup", name, environment=environment)
            return float(in_child("startup:readme", environment=environment)["cpu_seconds"])

        first, second = seconds(name, environment), seconds(name, environment)
        rows.append([name, f"{first:.2f}", f"{second:.2f}", f"{first - second:.2f}"])
        shutil.rmtree(folder)
    print(table(["new environment", "first process", "second", "compilation"], rows) + "\n")
    print(verdict("README's first example compiles for at most 8 s", float(rows[0][3]) <= 8, f"{rows[0][3]} s"))


def versions(seconds: list[float]) -> str:
    """The sum, and of how many."""
    return f"{sum(seconds):.2f}" * bool(seconds) + f" ({len(seconds)})" * (len(seconds) > 1)


def main() -> None:
    """Print the tables and the verdicts."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # pip leaves compiled modules behind; a clone has them from its second run on
    conll = data_folder() / "conll2000"
    train_file = str(conll / "train.txt.gz")
    print(f"\nStarting up ({machine()}); CPU seconds\n")
    imports()
    commands(train_file, str(conll / "test.txt.gz"))
    new_environments()
    rows = []
    costs: dict[str, dict[str, list[float]]] = {}
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
        costs[trainer] = {}
        for name, seconds in first["compiled"]:
            costs[trainer].setdefault(name, []).append(seconds)
    head = ["trainer", "first train", "second", "hot process", "compilation", "second over hot"]
    print("\n" + table(head, rows))
    print("\nCompilation by function, with what it calls; how many versions, if more than one\n")
    names = sorted({name for by_name in costs.values() for name in by_name})
    print(table(["function", *costs], [[n, *(versions(c.get(n, [])) for c in costs.values())] for n in names]))
    print()
    print(verdict("first train compiles for at most 3 s", worst["first"] <= 3, f"{worst['first']:.2f} s"))
    print(verdict("second train at most 0.3 s over a hot process", worst["second"] <= 0.3, f"{worst['second']:.2f} s"))


if __name__ == "__main__":
    main()
