"""Digests of the results of all trainers on real data, to see whether a change of the code changes a bit.

    python benchmarks/digests.py --write before.json         at one commit
    python benchmarks/digests.py --compare before.json       at another: differences, and the ratio of CPU seconds
    PYTHONPATH=OTHER python benchmarks/digests.py ...        with the structpred of another checkout

A digest covers weights, history (but for seconds) and certificate. Corpora are cut so that all of it takes some minutes.
"""

import argparse
import hashlib
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from measure import data_folder, machine, table

CHAIN = ("bcfw", "sgd", "perceptron", "mira", "pa", "arow", "oeg", "lbfgs", "owlqn", "n_slack", "one_slack")
TREE = ("mira", "sgd", "bcfw", "perceptron", "oeg")
FIELD = ("bcfw", "sgd", "mira", "perceptron", "one_slack")
CLOCKS = ("seconds", "cpu_seconds")


def digest(model: Any) -> str:
    """Of all that training gave."""
    rows = [{key: row[key] for key in row if key not in CLOCKS} for row in model.history_]
    certificate = model.certificate_
    text = repr((rows, certificate.primal, certificate.dual, certificate.proven, model.n_iter_, model.stop_reason_))
    return hashlib.sha256(model.coef_.tobytes() + text.encode()).hexdigest()[:16]


def ocr() -> Iterator[tuple[str, Callable[[], Any]]]:
    """OCR fold 0, every trainer of chains."""
    from structpred.io import read_ocr
    from structpred.models import ChainLabeler

    words = read_ocr(str(data_folder() / "ocr_letters" / "letter.data.gz"))
    part = words.select(words.folds == 0)
    for name in CHAIN:
        passes = 2 if name in ("n_slack", "one_slack") else 4
        yield (
            name,
            lambda name=name, passes=passes: ChainLabeler(name, 1.0, passes, tol=0.0, check_every=2).fit(
                part.packed(), part.letters
            ),
        )


def crfsuite_template() -> str:
    """The templates of CRFsuite's example, by the name that the version at hand has for them."""
    from structpred.io import built_in_templates

    return "crfsuite" if "crfsuite" in built_in_templates() else "chunking"


def conll() -> Iterator[tuple[str, Callable[[], Any]]]:
    """2,000 sentences of CoNLL-2000."""
    from structpred.io import read_columns
    from structpred.models import ChainLabeler

    corpus, template = read_columns(str(data_folder() / "conll2000" / "train.txt.gz")).take(0, 2000), crfsuite_template()
    for name in ("sgd", "bcfw", "mira", "oeg"):
        yield (
            name,
            lambda name=name: ChainLabeler(name, 0.5, 4, template=template, tol=0.0, check_every=4).fit(corpus, corpus.labels()),
        )


def ewt() -> Iterator[tuple[str, Callable[[], Any]]]:
    """600 sentences of EWT."""
    from structpred.io import read_treebank
    from structpred.models import DependencyParser

    bank = read_treebank(str(data_folder() / "ud_english_ewt" / "en_ewt-ud-train.conllu.gz")).take(range(600))
    for name in TREE:
        yield name, lambda name=name: DependencyParser(name, 0.1, max_iter=2, tol=0.0, check_every=2, random_state=0).fit(bank)


def yeast() -> Iterator[tuple[str, Callable[[], Any]]]:
    """300 examples of yeast, margin and slack rescaling."""
    from structpred.io import read_mulan
    from structpred.models import MultiLabelMRF

    folder = data_folder() / "multilabel_yeast"
    data = read_mulan(str(folder / "yeast-train.arff.gz"), str(folder / "yeast.xml.gz")).take(range(300))
    for name in FIELD:
        yield name, lambda name=name: MultiLabelMRF(name, 0.1, 3, 0.0, check_every=3, random_state=0, scale=None).fit(data)
    for name in ("bcfw", "sgd", "one_slack"):
        yield (
            f"{name}, slack",
            lambda name=name: MultiLabelMRF(name, 0.1, 2, 0.0, surrogate="slack", check_every=2, random_state=0, scale=None).fit(
                data
            ),
        )


def snakes() -> Iterator[tuple[str, Callable[[], Any]]]:
    """40 images of snakes, edges that see their ends."""
    from snakes import graph, images

    from structpred.models import GraphLabeler

    n_colours = 1 + max(int(picture.max()) for name in ("train", "test") for picture in images(name)[0])
    pictures, labels = images("train", 40)
    graphs = [graph(picture, n_colours, True) for picture in pictures]
    for name in ("bcfw", "sgd", "mira"):
        yield (
            name,
            lambda name=name: GraphLabeler(name, C=1.0, max_iter=3, tol=0.0, check_every=3, random_state=0).fit(graphs, labels),
        )


def matching() -> Iterator[tuple[str, Callable[[], Any]]]:
    """An own oracle without any compiled method: matchings of five, planted."""
    from structpred.models import StructuredPredictor
    from structpred.oracles.assignment import AssignmentOracle

    rng, oracle = np.random.default_rng(0), AssignmentOracle()
    X = [rng.normal(size=(25, 8)) for _ in range(200)]
    y = [oracle.argmax(x @ np.linspace(-1, 1, 8) + rng.normal(size=25), (5,)) for x in X]
    for name in FIELD:
        yield (
            name,
            lambda name=name: StructuredPredictor(oracle, trainer=name, max_iter=5, tol=0.0, check_every=5).fit(
                X, y, [(5,)] * len(X)
            ),
        )


DATA = {"ocr": ocr, "conll2000": conll, "ewt": ewt, "yeast": yeast, "snakes": snakes, "matching": matching}


def measured(only: list[str]) -> dict[str, Any]:
    """name -> digest and CPU seconds; each run twice, so that kernels are loaded the second time."""
    found = {}
    for data, runs in DATA.items():
        for name, run in runs() if not only or data in only else ():
            run()
            start = time.process_time()
            model = run()
            found[f"{data}, {name}"] = {"digest": digest(model), "seconds": time.process_time() - start}
            print(f"{data}, {name}: {found[f'{data}, {name}']}", flush=True)
    return found


def main() -> None:
    """Write, or compare."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--write", type=Path)
    options.add_argument("--compare", type=Path)
    options.add_argument("--only", nargs="*", default=[], choices=list(DATA))
    given = options.parse_args()
    found = measured(given.only)
    if given.write:
        given.write.write_text(json.dumps(found, indent=1))
    if given.compare:
        before = json.loads(given.compare.read_text())
        rows = [
            [
                name,
                "same" if before[name]["digest"] == row["digest"] else "DIFFERENT",
                f"{row['seconds'] / before[name]['seconds']:.2f}",
            ]
            for name, row in found.items()
            if name in before
        ]
        print(f"\n{machine()}\n\n{table(['run', 'bits', 'CPU seconds, after / before'], rows)}")


if __name__ == "__main__":
    main()
