"""Exported programs beside the models they were written from: ``python benchmarks/deployment.py [--quick] [--rounds 5]``.

Model and program predict the same data in turns, in one process and one thread; the best of the rounds counts, in CPU seconds,
features included. The labels must be equal. What it costs to import a program is measured in fresh processes, beside that of
`import numpy`, which every program does.

--quick trains on 1,000 sentences and looks at one trainer.
"""

import argparse
import os
import resource
import runpy
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from measure import ONE_THREAD, data_folder, machine, scratch_folder, table, verdict

HEAD = ("model", "tokens or examples", "model, per CPU s", "program, per CPU s", "ratio", "program MB", "weights MB")


class Case(NamedTuple):
    """A fitted model, the data it predicts, and how many tokens (or examples) they have."""

    name: str
    model: Any
    X: Any
    n: int


def chunkers(limit: int | None, trainers: tuple[str, ...]) -> Iterator[Case]:
    """CoNLL-2000: templates over rows of columns, with IOB2 for the last trainer."""
    from structpred.io import read_columns
    from structpred.models import ChainLabeler

    train, test = (read_columns(str(data_folder() / "conll2000" / f"{part}.txt.gz")) for part in ("train", "test"))
    train, X = train.take(0, limit or len(train)), test.sentences()
    for trainer in trainers:
        rules = "iob2" if trainer == trainers[-1] else None
        model = ChainLabeler(trainer, max_iter=5, template="crfsuite", constraints=rules, random_state=0)
        yield Case(f"chunking, templates, {trainer}", model.fit(train, train.labels()), X, test.n_tokens)
    hashed = ChainLabeler("sgd", max_iter=5, template="crfsuite", n_bits=20, random_state=0).fit(train, train.labels())
    yield Case("chunking, hashed templates, sgd", hashed, X, test.n_tokens)


def taggers(limit: int | None) -> Iterator[Case]:
    """English EWT: parts of speech from feature dicts."""
    from structpred.io import read_treebank
    from structpred.models import ChainLabeler

    def features(words: list[str]) -> list[dict[str, Any]]:
        padded = ["<s>", *words, "</s>"]
        return [
            {"w": w.lower(), "suf3": w[-3:], "suf2": w[-2:], "title": w.istitle(), "digit": any(map(str.isdigit, w)),
             "before": padded[t].lower(), "after": padded[t + 2].lower(), "length": 0.1 * len(w)}
            for t, w in enumerate(words)
        ]  # fmt: skip

    folder = data_folder() / "ud_english_ewt"
    train, test = (read_treebank(str(folder / f"en_ewt-ud-{part}.conllu.gz")).sentences() for part in ("train", "test"))
    train, X = train[:limit], [features(sentence.forms) for sentence in test]
    model = ChainLabeler("mira", max_iter=5, random_state=0).fit([features(s.forms) for s in train], [s.upos for s in train])
    yield Case("tagging, dicts, mira", model, X, sum(map(len, X)))


def label_sets() -> Iterator[Case]:
    """Yeast (14 labels, all pairs), Enron (53 labels, a tree of pairs), ImCLEF07A (a hierarchy, paths, and sets with a leaf)."""
    from structpred.io import read_clus, read_mulan
    from structpred.models import HierarchicalMultiLabel, MultiLabelMRF

    for name, edges in (("yeast", "complete"), ("enron", "tree")):
        files = [
            str(data_folder() / f"multilabel_{name}" / f"{name}{end}") for end in ("-train.arff.gz", "-test.arff.gz", ".xml.gz")
        ]
        train, test = (read_mulan(file, files[2]) for file in files[:2])
        model = MultiLabelMRF(edges=edges, C=0.1, max_iter=5, random_state=0).fit(train)
        yield Case(f"{name}, {type(model.oracle_).__name__}", model, test.X.toarray(), len(test))
    folder = data_folder() / "hierarchical_imclef07a"
    train, test = (read_clus(str(folder / f"ImCLEF07A_{part}.arff.gz")) for part in ("Train", "Test"))
    for require in ("path", "leaf"):
        model = HierarchicalMultiLabel(C=0.1, max_iter=3, random_state=0, require=require).fit(train)
        yield Case(f"ImCLEF07A, require={require}", model, test.X.toarray(), len(test))


def cpu_seconds(call: Callable[[Any], Any], X: Any) -> tuple[float, Any]:
    """What a call takes, and gives."""
    start = time.process_time()
    found = call(X)
    return time.process_time() - start, found


def import_seconds(module: str, folder: Path, rounds: int) -> float:
    """CPU seconds of a process that imports a module, less those of one that imports nothing."""

    def of(code: str) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", code], check=True, cwd=folder, env={**os.environ, **ONE_THREAD})
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    return min(of(f"import {module}") for _ in range(rounds)) - min(of("pass") for _ in range(rounds))


def measured(case: Case, folder: Path, rounds: int) -> tuple[list[str], bool]:
    """A row of the table, and whether all labels were equal."""
    from structpred.export import export_predictor

    files = export_predictor(case.model, folder / "light.py")
    calls = case.model.predict, runpy.run_path(str(files.program))["predict"]
    best, equal = [float("inf")] * 2, True
    for call in calls:
        call(case.X[:1])
    for _ in range(rounds):
        found = [cpu_seconds(call, case.X) for call in calls]
        best = [min(before, seconds) for before, (seconds, _) in zip(best, found, strict=True)]
        equal &= all(a.tolist() == b.tolist() for a, b in zip(found[0][1], found[1][1], strict=True))
    sizes = [path.stat().st_size / 1e6 for path in files]
    speeds = [f"{case.n / seconds:,.0f}" for seconds in best]
    return [case.name, f"{case.n:,}", *speeds, f"{best[1] / best[0]:.1f}", f"{sizes[0]:.3f}", f"{sizes[1]:.1f}"], equal


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    limit, trainers = (1000, ("sgd",)) if given.quick else (None, ("sgd", "bcfw", "perceptron", "lbfgs"))
    folder, rows, equal = scratch_folder(), list[list[str]](), True
    for case in chain(chunkers(limit, trainers), taggers(limit), label_sets()):
        row, same = measured(case, folder, given.rounds)
        equal &= same
        rows.append(row)
    print(machine())
    print(table(HEAD, rows))
    cost = {module: import_seconds(module, folder, given.rounds) for module in ("numpy", "light")}
    print(verdict("the same labels", equal, "all" if equal else "not all"))
    print(verdict("import below 0.2 CPU s", cost["light"] < 0.2, f"{cost['light']:.3f} s, of it numpy {cost['numpy']:.3f} s"))
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
