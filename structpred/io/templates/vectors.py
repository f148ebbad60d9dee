"""Vectors of words in templates: an atom whose transform is `vec:FILE` stands for the vector of the string at its place.

FILE is text as word2vec writes it, a word and its numbers a line, with or without a first line of the two sizes; or FILE.npy, a
2-d array that NumPy wrote, beside FILE.txt with its words, one a line. The latter is mapped, and not read, where it is float32.

A model file holds the vectors of all words, float32, so that it predicts without FILE, also words that training did not see.
"""

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from structpred.data.tokens import Part
from structpred.errors import DataError, ParameterError
from structpred.io.columns import ColumnCorpus
from structpred.io.templates.coded import CorpusReading
from structpred.io.templates.featurizer import checked_corpus
from structpred.io.templates.templates import TEMPLATES, VECTORS, Atom, Template
from structpred.io.text import quoted, read_text, source_name, split_lines
from structpred.storage.bundles import Bundle
from structpred.storage.schema import Array, array_of

#: the row of each word in a table of vectors
Vectors = tuple[dict[str, int], npt.NDArray[np.float32]]
#: what the vectors of a file may take in a model file, and so in memory
MOST_BYTES = 1 << 30


class VectorTemplates:
    """Templates of one atom each, `vec:FILE`, and the vectors of each such transform, which are read where `files` lack them.

    Raises ParameterError for a vector among other atoms, at some tokens or in transitions, DataError as `read_vectors` does.
    """

    def __init__(self, templates: Sequence[Template], files: Mapping[str, Vectors] | None = None) -> None:
        self.templates, self.files, self.names = list[Template](), dict(files or {}), [template.name for template in templates]
        paths = dict[str, str]()
        for template in templates:
            if len(template.atoms) != 1 or template.transition or template.at != "any":
                raise ParameterError(f"template {template.name!r}: a vector stands alone, at every token, and not in transitions")
            path = (given := template.atoms[0].transform).removeprefix(VECTORS)
            if paths.setdefault(base := Path(path).name, path) != path:
                raise ParameterError(f"templates: {paths[base]} and {path} have one name; rename one of these files")
            held = self.files.get(name := f"{VECTORS}{base}") or template.resources.get(given) or read_vectors(path)
            self.files[name], atom = held, template.atoms[0]._replace(transform=name)
            # whoever has the templates can train again
            self.templates.append(replace(template, atoms=(atom,), resources={name: held}))

    def split(self, sequences: Any) -> tuple[ColumnCorpus, list[Part]]:
        """The corpus, and for each template the vectors."""
        corpus = checked_corpus(sequences, self.templates)
        return corpus, vectors_at(corpus, self.templates, self.files)

    def to_bundle(self) -> Bundle:
        """Templates, words and vectors."""
        found = Bundle({"templates": [template.to_dict() for template in self.templates]})
        for k, (words, table) in enumerate(self.files.values()):
            found.texts[f"words.{k}"], found.arrays[f"table.{k}"] = list(words), table
        return found

    @classmethod
    def from_bundle(cls, part: Bundle) -> "VectorTemplates":
        """The inverse of to_bundle; ValueError, KeyError or IndexError where the parts do not fit."""
        templates = [Template.from_dict(entry) for entry in TEMPLATES.read(part.header["templates"], "templates")]
        files = {}
        for k, name in enumerate(dict.fromkeys(template.atoms[0].transform for template in templates)):
            words = {word: row for row, word in enumerate(part.texts[f"words.{k}"])}
            files[name] = words, array_of(part.arrays, f"table.{k}", Array(("float32",), (len(words), None)))
        return cls(templates, files)


def vectors_at(corpus: ColumnCorpus, templates: Sequence[Template], files: Mapping[str, Vectors]) -> list[Part]:
    """For each template the vectors: of a word, else of it in lower case, else none."""
    parts = list[Part]()
    for ((column, offset, name),) in (template.atoms for template in templates):
        words, table = files[name]
        index = {word: words.get(word, words.get(word.lower(), -1)) for word in corpus.vocabularies[column]}
        plain = [Template("", (Atom(column, offset),))]
        rows = CorpusReading(corpus, plain, 0, {(column, ""): index}).at(column, offset, "", False)
        parts.append((table[rows[rows >= 0]], rows >= 0))
    return parts


def read_vectors(path: str) -> Vectors:
    """The words of a file, each with its row of the table, and the table.

    Raises DataError, naming file and line: another number of numbers than before, numbers that are not finite in 32 bits, a word
    twice, bytes that are not UTF-8, sizes in the first line that are not those of the file, more than MOST_BYTES.
    """
    name, first = source_name(path), 1
    if name.endswith(".npy"):
        table, name = _mapped(name), str(Path(name).with_suffix(".txt"))
        words = list(split_lines(read_text(name)))
        if len(words) != len(table):
            raise DataError(f"{name}: expected {len(table):,} words, one for each row of {path}, got {len(words):,}")
    else:
        words, values, claimed, width = [], array("f"), None, 0  # nothing is allocated because of what the first line claims
        for number, line in enumerate(split_lines(read_text(name)), 1):
            where, (word, *numbers) = f"{name}:{number}", line.rstrip(" ").split(" ")
            if number == 1 and len(numbers) == 1 and word.isdecimal() and numbers[0].isdecimal() and len(line) < 40:
                claimed, width, first = int(word), int(numbers[0]), 2
            else:
                words.append(word)
                width = width or len(numbers)
                try:
                    values.extend(map(float, numbers))
                except ValueError:
                    numbers = []
                if not word or not numbers or len(numbers) != width:
                    raise DataError(f"{where}: expected a word and {width or 'some'} numbers, spaces between: {quoted(line)}")
            _check_size(max(claimed or 0, len(words)), width, where)
        if not words or claimed not in (None, len(words)):
            says = "vectors" if claimed is None else f"{claimed:,} vectors, as it says"
            raise DataError(f"{name}:1: expected {says}, got {len(words):,}; was the file cut?")
        table = np.frombuffer(values, np.float32).reshape(-1, width)
    rows: dict[str, int] = {}
    for row, word in enumerate(words):
        if rows.setdefault(word, row) != row:
            raise DataError(f"{name}:{row + first}: expected each word once, got {quoted(word)}, as in line {rows[word] + first}")
    if not (-np.inf < table.min() and table.max() < np.inf):  # NaN is neither
        row = int(np.isfinite(table).all(axis=1).argmin())
        raise DataError(f"{name}:{row + first}: expected numbers that are finite in 32 bits, got others")
    return rows, table


def _mapped(path: str) -> npt.NDArray[np.float32]:
    try:
        table = np.lib.format.open_memmap(path, mode="r")
    except Exception as error:  # of many kinds, where a header is hostile
        raise DataError(f"{path}: expected an array that NumPy wrote, complete and without objects: {error}") from None
    if table.ndim != 2 or table.dtype.kind != "f" or not table.size:
        raise DataError(f"{path}: expected a 2-d array of floats, a row for each word, got {table.dtype} of shape {table.shape}")
    _check_size(len(table), table.shape[1], path)
    with np.errstate(over="ignore"):  # what does not fit becomes infinite
        return np.asarray(table, np.float32, order="C").view(np.ndarray)


def _check_size(n: int, width: int, where: str) -> None:
    if 4 * n * width > MOST_BYTES:
        size = f"{where}: {n:,} vectors of {width:,} numbers take {4 * n * width / 2**30:,.1f} GiB"
        raise DataError(f"{size}, a model file {MOST_BYTES / 2**30:g} at most: keep the first {MOST_BYTES // (4 * width):,}")
