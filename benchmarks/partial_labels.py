"""What labels that are missing cost: ``python benchmarks/partial_labels.py [--only letters] [--full]``.

OCR letters with 30 % of the letters unlabelled, CoNLL-2000 chunks with half of the tokens unlabelled, the English Web Treebank
with 30 % of the heads missing. Each is trained max-margin and by likelihood: on the sequences or trees that are wholly labelled,
on all inputs with the labels that are left, and with all labels. For sequences also on every run of labelled tokens as a sequence
of its own, with the features that the tokens have in the whole sequence: no label is wasted, only what links them. Without --full
some of the training data only; --seed draws other labels that are missing.
"""

import argparse
import logging
import time
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from measure import data_folder, machine, table

logger = logging.getLogger(__name__)
#: the settings of each way, for sequences and for trees; with missing labels max-margin takes more passes, as rounds do
CHAINS = {"margin": {"trainer": "bcfw", "max_iter": 10}, "likelihood": {"trainer": "lbfgs", "max_iter": 40}}
TREES = {"margin": {"trainer": "mira", "max_iter": 8}, "likelihood": {"trainer": "lbfgs", "max_iter": 20, "C": 0.3}}
SIZES = {"letters": 2000, "chunks": 1000, "trees": 1000}


def fragments(data: Any, y: Sequence[Sequence[Any]]) -> tuple[Any, list[list[Any]]]:
    """The runs of labelled tokens of packed sequences, each as a sequence, and their labels."""
    from structpred.data.sequences import PackedSequences
    from structpred.runtime.ranges import spans

    flat = [label for labels in y for label in labels]
    known = np.array([label is not None for label in flat])
    opens = known.copy()
    opens[1:] &= ~known[:-1]
    first = np.zeros(len(flat), np.bool_)
    first[data.offsets[:-1]] = True
    opens |= known & first
    tokens = np.flatnonzero(known)
    starts = np.flatnonzero(opens[tokens])
    rows = spans(data.indptr[tokens], data.indptr[tokens + 1])
    indptr = np.concatenate(([0], np.cumsum(np.diff(data.indptr)[tokens])))
    offsets = np.append(starts, len(tokens))
    labels = [[flat[t] for t in tokens[a:b].tolist()] for a, b in pairwise(offsets.tolist())]
    return PackedSequences(indptr, data.indices[rows], data.values[rows], offsets, data.n_features), labels


def whole(data: Any, y: Sequence[Sequence[Any]]) -> tuple[Any, list[Sequence[Any]]]:
    """The sequences without a missing label."""
    rows = [i for i, labels in enumerate(y) if None not in labels]
    logger.info("%d of %d sequences are wholly labelled", len(rows), len(y))
    return data.gather(np.array(rows, dtype=np.int64)), [y[i] for i in rows]


def compare_chains(train: tuple[Any, Any], test: tuple[Any, Any], share: float, seed: int, template: str | None) -> list[Any]:
    """For each way (name, the four accuracies, seconds of the last two)."""
    from structpred.models import ChainLabeler

    input_, X = ChainLabeler(template=template)._input_for(train[0])
    packed, held_out, y = input_.fit_transform(X), input_.transform(test[0]), train[1]
    rng, found = np.random.default_rng(seed), []
    some = [[None if rng.random() < share else label for label in labels] for labels in y]
    for name, settings in CHAINS.items():
        row: list[Any] = [name]
        passes = {"max_iter": 2 * settings["max_iter"]} if name == "margin" else {}
        seconds = []
        for (data, labels), own in (
            (whole(packed, some), {}),
            (fragments(packed, some), {}),
            ((packed, some), passes),
            ((packed, y), {}),
        ):
            start = time.process_time()
            model = ChainLabeler(**{**settings, **own}).fit(data, labels)
            seconds.append(time.process_time() - start)
            row.append(100 * model.score(held_out, test[1]))
        found.append([*row, *seconds[2:]])
        logger.info("%s: %s", name, found[-1])
    return found


def letters(n: int | None, seed: int) -> list[Any]:
    """OCR letters: fold 0 is the test set."""
    from structpred.io.ocr import read_ocr

    words = read_ocr(data_folder() / "ocr_letters" / "letter.data.gz")
    test = words.select(np.asarray(words.folds) == 0)
    rest = words.select(np.asarray(words.folds) != 0)
    train = rest if n is None else rest.select(np.arange(len(rest)) % max(len(rest) // n, 1) == 0)
    return compare_chains((train, train.letters), (test, test.letters), 0.3, seed, None)


def chunks(n: int | None, seed: int) -> list[Any]:
    """CoNLL-2000."""
    from structpred.io.columns import read_columns

    train, test = (read_columns(data_folder() / "conll2000" / f"{name}.txt.gz") for name in ("train", "test"))
    train = train.take(0, len(train) if n is None else n)
    return compare_chains((train, train.labels()), (test, test.labels()), 0.5, seed, "crfsuite")


def trees(n: int | None, seed: int) -> list[Any]:
    """The English Web Treebank: heads only, projective trees, the test set."""
    from structpred.io import read_treebank
    from structpred.models import DependencyParser

    folder = data_folder() / "ud_english_ewt"
    train, test = (read_treebank(folder / f"en_ewt-ud-{name}.conllu.gz") for name in ("train", "test"))
    train = train if n is None else train.take(np.arange(0, len(train), len(train) // n)[:n])
    rng, X, found = np.random.default_rng(seed), train.sentences(), []
    heads = [tree.heads for tree in train.trees()]
    some = [np.where(rng.random(len(own)) < 0.3, -1, own) for own in heads]
    whole = [i for i, own in enumerate(some) if own.min() >= 0]
    logger.info("trees: %d of %d sentences have all heads", len(whole), len(heads))
    for name, settings in TREES.items():
        row: list[Any] = [name]
        seconds = []
        passes = {"max_iter": 2 * settings["max_iter"]} if name == "margin" else {}
        alone = [X[i] for i in whole], [some[i] for i in whole]
        for (data, y), own in ((alone, {}), ((X, some), passes), ((X, heads), {})):
            start = time.process_time()
            model = DependencyParser(labelled=False, projective=True, **{**settings, **own}).fit(data, [list(h) for h in y])
            seconds.append(time.process_time() - start)
            row.append(100 * model.score(test))
        found.append([*row[:2], "", *row[2:], *seconds[1:]])
        logger.info("%s: %s", name, found[-1])
    return found


SETS = {
    "letters": (letters, "30 % of the letters"),
    "chunks": (chunks, "50 % of the tokens"),
    "trees": (trees, "30 % of the heads"),
}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=SETS)
    parser.add_argument("--full", action="store_true", help="all training data")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.WARNING)
    logger.setLevel(logging.INFO)
    print(machine())
    rows = []
    for name, (run, missing) in SETS.items():
        if arguments.only in (None, name):
            for way, *scores, missing_s, all_s in run(None if arguments.full else SIZES[name], arguments.seed):
                cells = [f"{score:.2f}" if score != "" else "" for score in scores]
                rows.append([name, missing, way, *cells, f"{missing_s:.0f}", f"{all_s:.0f}"])
    head = ["data", "missing", "way", "whole ones alone", "runs of labels", "labels missing", "all labels"]
    print(table([*head, "s, missing", "s, all"], rows))


if __name__ == "__main__":
    main()
