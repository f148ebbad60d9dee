"""python-crfsuite (CRFsuite 0.12), driven as its own examples do: features as lists of strings.

Nothing here imports structpred, numpy or numba, so that the peak memory is CRFsuite's own.
"""

import gzip
import time
from statistics import median
from typing import Any

from measure import Stopwatch

Rows = list[tuple[str, ...]]


def read_conll(path: str) -> list[Rows]:
    """Sentences of rows of columns."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        blocks = file.read().split("\n\n")
    return [[tuple(line.split(" ")) for line in block.split("\n") if line] for block in blocks if block.strip()]


def chunking_features(sentence: Rows) -> list[list[str]]:
    """The template of CRFsuite's chunking example, for each token of a sentence."""
    words, tags = [row[0] for row in sentence], [row[1] for row in sentence]
    out, last = [], len(sentence) - 1
    for t in range(len(sentence)):
        near = [k for k in range(-2, 3) if 0 <= t + k <= last]
        token = [f"w[{k}]={words[t + k]}" for k in near]
        token += [f"w[{k}]|w[{k + 1}]={words[t + k]}|{words[t + k + 1]}" for k in (-1, 0) if k in near and k + 1 in near]
        token += [f"pos[{k}]={tags[t + k]}" for k in near]
        token += [f"pos[{k}]|pos[{k + 1}]={tags[t + k]}|{tags[t + k + 1]}" for k in near if k + 1 in near]
        token += [
            f"pos[{k}]|pos[{k + 1}]|pos[{k + 2}]={tags[t + k]}|{tags[t + k + 1]}|{tags[t + k + 2]}" for k in near if k + 2 in near
        ]
        if t == 0:
            token.append("__BOS__")
        if t == last:
            token.append("__EOS__")
        out.append(token)
    return out


def train(
    watch: Stopwatch, features: list[Any], labels: list[list[str]], model: str, algorithm: str, params: dict[str, Any]
) -> None:
    """Append all sequences, then train; the model goes to a file."""
    import pycrfsuite

    trainer = pycrfsuite.Trainer(algorithm=algorithm, verbose=False)
    trainer.set_params(params)
    with watch("featurise"):
        for x, y in zip(features, labels, strict=True):
            trainer.append(x, y)
    with watch("train"):
        trainer.train(model)


def chunking(
    watch: Stopwatch, train_file: str, model: str, algorithm: str, params: dict[str, Any], limit: int | None = None
) -> None:
    """File to model on a CoNLL-2000 file."""
    with watch("read"):
        sentences = read_conll(train_file)[:limit]
    with watch("featurise"):
        features = [chunking_features(s) for s in sentences]
        labels = [[row[2] for row in s] for s in sentences]
    train(watch, features, labels, model, algorithm, params)


def tag_file(watch: Stopwatch, test_file: str, model: str, output: str) -> None:
    """What a script for one file does: read it, tag it, write the labels one a line."""
    import pycrfsuite

    tagger = pycrfsuite.Tagger()
    tagger.open(model)
    with open(output, "w", encoding="utf-8") as out:
        for sentence in read_conll(test_file):
            out.write("\n".join(tagger.tag(chunking_features(sentence))) + "\n\n")


def tag_chunks(watch: Stopwatch, test_file: str, model: str, repeats: int = 3) -> dict[str, Any]:
    """Labels of a test file, and tokens per second from lists of strings and from item sequences (median of the repeats)."""
    import pycrfsuite

    features = [chunking_features(s) for s in read_conll(test_file)]
    tagger = pycrfsuite.Tagger()
    tagger.open(model)
    labels = [tagger.tag(x) for x in features]
    n_tokens = sum(map(len, labels))
    lists = median(_cpu(tagger, features) for _ in range(repeats))
    items = [pycrfsuite.ItemSequence(x) for x in features]
    prepared = median(_cpu(tagger, items) for _ in range(repeats))
    return {"labels": labels, "from_lists": n_tokens / lists, "from_items": n_tokens / prepared}


def _cpu(tagger: Any, sequences: list[Any]) -> float:
    start = time.process_time()
    for x in sequences:
        tagger.tag(x)
    return time.process_time() - start


def ocr(
    watch: Stopwatch, file: str, model: str, algorithm: str, params: dict[str, Any], train_folds: list[int]
) -> dict[str, Any]:
    """Train on some folds of the OCR letters and test on the others: letter accuracy."""
    import pycrfsuite

    with watch("read"):
        words = read_letters(file)
    chosen = [(x, y) for fold, x, y in words if fold in train_folds]
    train(watch, [x for x, _ in chosen], [y for _, y in chosen], model, algorithm, params)
    tagger = pycrfsuite.Tagger()
    tagger.open(model)
    right = total = 0
    with watch("test"):
        for fold, x, y in words:
            if fold not in train_folds:
                right += sum(a == b for a, b in zip(tagger.tag(x), y, strict=True))
                total += len(y)
    return {"accuracy": right / total, "letters": total}


def read_letters(path: str) -> list[tuple[int, list[list[str]], list[str]]]:
    """(fold, features, letters) of each word: a feature for each pixel that is on."""
    names = [f"p{k}" for k in range(128)]
    words: list[tuple[int, list[list[str]], list[str]]] = []
    x: list[list[str]] = []
    y: list[str] = []
    with gzip.open(path, "rt", encoding="ascii") as file:
        for line in file:
            fields = line.rstrip("\n").rstrip("\t").split("\t")
            x.append([name for name, pixel in zip(names, fields[6:], strict=True) if pixel == "1"])
            y.append(fields[1])
            if fields[2] == "-1":
                words.append((int(fields[5]), x, y))
                x, y = [], []
    return words
