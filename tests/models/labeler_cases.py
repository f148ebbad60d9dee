"""Small training sets in every form that ChainLabeler takes; all say the same, so that a test can run over all of them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from structpred.data.sequences import PackedSequences
from structpred.io.columns import ColumnCorpus
from structpred.io.crfsuite import read_crfsuite
from structpred.io.ocr import read_ocr
from structpred.io.templates.templates import Template, load_templates

WORDS = ["the dog barks", "a cat sleeps", "the cat sees a dog", "a dog sleeps", "the old dog sees the cat", "a cat barks"]
TAGS = {"the": "DET", "a": "DET", "dog": "NOUN", "cat": "NOUN", "barks": "VERB", "sleeps": "VERB", "sees": "VERB", "old": "ADJ"}
SENTENCES = [text.split() for text in WORDS]
Y = [[TAGS[word] for word in words] for words in SENTENCES]
NAMES = sorted(TAGS)


@dataclass(frozen=True)
class Case:
    """One form of input: name, samples, labels, settings of the estimator."""

    name: str
    X: Any
    y: list[list[Any]]
    settings: dict[str, Any]

    def __str__(self) -> str:
        return self.name


def one_hot() -> list[np.ndarray]:
    """A column per word, and one more with a number that is no whole one."""
    return [np.array([[*(float(w == name) for name in NAMES), 0.1 * len(w)] for w in words]) for words in SENTENCES]


def packed() -> PackedSequences:
    """The first columns of one_hot, packed."""
    flat = [NAMES.index(w) for words in SENTENCES for w in words]
    offsets = np.cumsum([0, *map(len, SENTENCES)])
    return PackedSequences(np.arange(len(flat) + 1), np.array(flat), np.ones(len(flat)), offsets, len(NAMES))


def ocr_words(folder: Path) -> Any:
    """Words of two letters, a and b, whose pixels are all on or half on."""
    lines, number = [], 1
    for word, text in enumerate(["ab", "ba", "abba", "bab"], 1):
        for position, letter in enumerate(text, 1):
            pixels = ["1" if letter == "a" or k % 2 else "0" for k in range(128)]
            after = number + 1 if position < len(text) else -1
            lines.append("\t".join(map(str, [number, letter, after, word, position, word % 2, *pixels])))
            number += 1
    path = folder / "letter.data"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return read_ocr(path)


def attributes(folder: Path) -> Any:
    """A file in CRFsuite's format, with a scaled attribute."""
    blocks = ["\n".join(f"{TAGS[w]}\tw={w}\tlength:{0.1 * len(w):.1f}" for w in words) for words in SENTENCES]
    path = folder / "train.crfsuite"
    path.write_text("\n\n".join(blocks) + "\n", encoding="utf-8")
    return read_crfsuite(path)


def vector_templates(folder: Path) -> list[Template]:
    """Those of chunking, and vectors of the word and of the next one from a file; "old" has none."""
    lines = [f"{name} " + " ".join(f"{np.sin(k * j + 1):.3f}" for j in range(3)) for k, name in enumerate(NAMES) if name != "old"]
    path = folder / "vectors.txt"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return [*load_templates("chunking"), *(Template(f"v[{k}]", ((0, k, f"vec:{path}"),)) for k in (0, 1))]


def arrays_beside() -> list[list[dict[str, Any]]]:
    """Dicts with a string, a number and two arrays, one of integers."""
    where = {name: k for k, name in enumerate(NAMES)}
    return [
        [{"w": w, "v": np.array([where[w], len(w), 0.5]), "n": 0.5, "k": np.array([len(w), where[w] % 3])} for w in words]
        for words in SENTENCES
    ]


def all_cases(folder: Path) -> list[Case]:
    """Every form."""
    rows = [[(w, w[-1]) for w in words] for words in SENTENCES]
    ocr = ocr_words(folder)
    numbers = [[sorted(set(TAGS.values())).index(tag) - 1 for tag in tags] for tags in Y]
    dense = one_hot()
    return [
        Case("arrays", dense, Y, {}),
        Case("integer arrays", [x.astype(int) for x in dense], numbers, {}),
        Case("csr arrays", [sparse.csr_array(x) for x in dense], Y, {}),
        Case("csr matrices", [sparse.csr_matrix(x) for x in dense], numbers, {}),
        Case("dicts", [[{"w": w, "length": 0.1 * len(w), "short": len(w) < 4} for w in words] for words in SENTENCES], Y, {}),
        Case("strings", [[[f"w={w}", f"end={w[-1]}"] for w in words] for words in SENTENCES], numbers, {}),
        Case("hashed", [[[f"w={w}", f"end={w[-1]}"] for w in words] for words in SENTENCES], Y, {"n_bits": 10}),
        Case("rows", rows, Y, {"template": "chunking"}),
        Case("hashed rows", rows, Y, {"template": "chunking", "n_bits": 10}),
        Case("columns", ColumnCorpus.from_rows(rows), Y, {"template": "chunking", "min_count": 2}),
        Case("attributes", attributes(folder), Y, {}),
        Case("ocr", ocr, ocr.letters, {}),
        Case("packed", packed(), numbers, {}),
        Case("arrays beside strings", arrays_beside(), Y, {}),
        Case("arrays beside hashed", arrays_beside(), numbers, {"n_bits": 10}),
        Case("vectors", rows, Y, {"template": vector_templates(folder)}),
        Case("vectors beside hashed", rows, Y, {"template": vector_templates(folder), "n_bits": 10}),
    ]


CASE_NAMES = [
    "arrays", "integer arrays", "csr arrays", "csr matrices", "dicts", "strings", "hashed", "rows", "hashed rows", "columns",
    "attributes", "ocr", "packed", "arrays beside strings", "arrays beside hashed", "vectors", "vectors beside hashed",
]  # fmt: skip


def plain(predictions: list[Any]) -> list[list[Any]]:
    """Predictions as lists of Python labels."""
    return [labels.tolist() for labels in predictions]
