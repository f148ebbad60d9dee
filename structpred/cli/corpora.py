"""Data files by format: read them, find the labels, and write predictions in the way of the format."""

import gzip
import itertools
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from structpred.core.atomic import write_atomic
from structpred.errors import DataError, ParameterError, StorageError
from structpred.io.columns import ColumnCorpus, format_columns, read_columns
from structpred.io.crfsuite import AttributeCorpus, read_crfsuite
from structpred.io.ocr import OcrWords, read_ocr
from structpred.io.text import open_output, read_text, source_name, split_lines

#: what a model was trained on, in its own words -> the formats that fit
FORMATS_OF_INPUT = {"rows": ("columns", "conll2000"), "tokens": ("crfsuite",), "numeric": ("ocr",)}
Corpus = ColumnCorpus | AttributeCorpus | OcrWords


@dataclass(frozen=True)
class Reader:
    """How the training data were read, kept in the model file so that predict and evaluate read theirs alike.

    label_column: from 0. n_columns: with the labels. Both are None where the format has no columns, or before training.
    template: the name or file that was given, for people.
    """

    format: str
    label_column: int | None = None
    n_columns: int | None = None
    template: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain data for a model file."""
        return asdict(self)

    @classmethod
    def of_model(cls, model: Any, path: str, format: str | None, label_column: int | None) -> "Reader":
        """The reader that a model file names, or that the user does. Raises ParameterError where neither does or they clash."""
        known = dict(getattr(model, "reader_", None) or {})
        fitting = FORMATS_OF_INPUT[model.input_.kind]
        chosen = format or known.get("format")
        if chosen is None:
            raise ParameterError(f"{path} does not say which format it was trained on: give --format {' or '.join(fitting)}")
        if chosen not in fitting:
            raise ParameterError(f"{path} was trained on another kind of data: --format must be {' or '.join(fitting)}")
        if label_column is not None and chosen not in FORMATS_OF_INPUT["rows"]:
            raise ParameterError(f"--label-column is for column files, not for --format {chosen}")
        column, width = known.get("label_column"), known.get("n_columns")
        return cls(chosen, column if label_column is None else label_column, width if label_column is None else None)


@dataclass(frozen=True)
class Data:
    """A data file in memory. labels: nested by sequence; None where the file has none. ids: of OCR letters."""

    corpus: Corpus
    labels: list[list[str]] | None
    n_sequences: int
    n_tokens: int
    ids: Sequence[str] = ()


def read_data(path: str, reader: Reader, folds: Sequence[int] | None = None, *, ids: bool = False) -> Data:
    """Read a file in the reader's format; with `ids`, those of OCR letters, too.

    Raises DataError naming file and line, ParameterError for folds of other formats.
    """
    if reader.format == "ocr":
        return _read_ocr(path, folds, ids)
    if folds is not None:
        raise ParameterError(f"--folds is for OCR data, not for --format {reader.format}")
    if reader.format == "crfsuite":
        items = read_crfsuite(path)
        if not items.attributes:
            raise DataError(
                f"{items.where(0)}: no line has an attribute: expected tabs between label and attributes; other format?"
            )
        return Data(items, items.labels, len(items), items.n_tokens)
    rows = read_columns(path, n_columns=3 if reader.format == "conll2000" and reader.n_columns is None else None)
    column = _label_column(rows, reader)
    labels = None if column is None else rows.labels(column)
    return Data(rows, labels, len(rows), rows.n_tokens)


def _label_column(rows: ColumnCorpus, reader: Reader) -> int | None:
    """Where the labels are; None if this file has no labels, as data to predict may."""
    if reader.n_columns is None or reader.label_column is None:
        column = -1 if reader.label_column is None else reader.label_column
        if not -rows.n_columns <= column < rows.n_columns:
            raise ParameterError(f"--label-column {column}: {rows.name} has {rows.n_columns} columns, numbered from 0")
        return column % rows.n_columns
    if rows.n_columns == reader.n_columns:
        return reader.label_column
    last = reader.label_column == reader.n_columns - 1
    if last and rows.n_columns == reader.n_columns - 1:
        return None
    without = f", or {reader.n_columns - 1} without the labels," if last else ""
    raise DataError(
        f"{rows.where(0)}: expected {reader.n_columns} columns{without} as in the training data, got {rows.n_columns}"
    )


def _read_ocr(path: str, folds: Sequence[int] | None, ids: bool) -> Data:
    if ids and (path == "-" or (os.path.exists(path) and not os.path.isfile(path))):
        return _read_ocr_stream(path, folds)
    words = read_ocr(path)
    numbered = np.array([line.split("\t", 1)[0] for line in split_lines(read_text(path))]) if ids else np.empty(0, str)
    if folds is not None:
        chosen = np.isin(words.folds, folds)
        if not chosen.any():
            known = ", ".join(map(str, np.unique(words.folds).tolist()))
            raise DataError(f"{words.name}: no word is in the chosen folds {', '.join(map(str, folds))}; the file has {known}")
        words = words.select(chosen)
    return Data(words, words.letters, len(words), words.n_letters, numbered[words.lines - 1].tolist() if ids else ())


def _read_ocr_stream(path: str, folds: Sequence[int] | None) -> Data:
    """What can be read only once (a pipe) goes through a temporary file, because letters and ids are read one after the other."""
    raw = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    with tempfile.TemporaryDirectory(prefix="structpred-") as folder:
        copy = Path(folder) / "stream"
        copy.write_bytes(raw)
        try:
            data = _read_ocr(str(copy), folds, ids=True)
        except DataError as error:
            raise DataError(str(error).replace(str(copy), source_name(path))) from None
    return data


def features_of(data: Data, *, hashed: bool) -> Any:
    """What the model takes as X. Hashing needs the names of attributes, one dict a token."""
    if not hashed or not isinstance(data.corpus, AttributeCorpus):
        return data.corpus
    corpus = data.corpus
    names, bounds = corpus.attributes, corpus.indptr.tolist()
    codes, values = corpus.codes.tolist(), corpus.values.tolist()
    tokens: list[dict[str, float]] = []
    for start, stop in itertools.pairwise(bounds):
        token: dict[str, float] = {}
        for k in range(start, stop):
            token[names[codes[k]]] = token.get(names[codes[k]], 0.0) + values[k]
        tokens.append(token)
    offsets = corpus.offsets.tolist()
    return [tokens[start:stop] for start, stop in itertools.pairwise(offsets)]


def format_predictions(data: Data, predictions: Sequence[Sequence[Any]]) -> str:
    """Column files: the lines as they were, with one more column. CRFsuite: one label a line. OCR: id and letter."""
    lists = [[str(label) for label in labels] for labels in predictions]
    if isinstance(data.corpus, ColumnCorpus):
        return format_columns(data.corpus, lists)
    if isinstance(data.corpus, OcrWords):
        flat = [label for labels in lists for label in labels]
        return "".join(f"{name}\t{label}\n" for name, label in zip(data.ids, flat, strict=True))
    return "\n".join("".join(f"{label}\n" for label in labels) for labels in lists)


def write_output(path: str, text: str) -> None:
    """Write a result: at once to standard output (``-``), else atomically, packed if the name ends in .gz."""
    if path == "-":
        if sys.stdout is None:
            raise StorageError("standard output is closed; give -o FILE")
        with open_output("-") as stream:
            stream.write(text)
        return
    raw = text.encode()
    write_atomic(path, gzip.compress(raw, mtime=0) if path.endswith(".gz") else raw)


def check_input(path: str, option: str) -> None:
    """Raise DataError now for a file that is not there or cannot be read."""
    if path == "-":
        return
    if not os.path.exists(path):
        raise DataError(f"{option} {path}: there is no such file")
    if os.path.isdir(path):
        raise DataError(f"{option} {path}: expected a file, got a folder")
    if not os.access(path, os.R_OK):  # not opened: a pipe would notice
        raise DataError(f"{option} {path}: cannot be read: permission denied")


def check_output(path: str, option: str, inputs: Sequence[str] = ()) -> None:
    """Raise DataError now where writing would fail later: no such folder, no permission, a folder, one of the inputs."""
    from structpred.core.compiled import writable

    if path == "-":
        return
    target = os.path.realpath(path)
    folder = os.path.dirname(target)
    if os.path.isdir(target):
        raise DataError(f"{option} {path}: expected the name of a file, but this is a folder")
    if not os.path.isdir(folder):
        raise DataError(f"{option} {path}: the folder {os.path.dirname(path) or folder} does not exist; make it first")
    if not writable(Path(folder)):
        raise DataError(f"{option} {path}: nothing can be written in the folder {folder}: permission denied, or the disk is full")
    for name in inputs:
        if name != "-" and os.path.realpath(name) == target:
            raise DataError(f"{option} {path}: this is one of the files to be read; give another name")
