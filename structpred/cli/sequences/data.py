"""Labelled sequences by format: read them, whole or in pieces, find the labels, and write predictions in the same format."""

import itertools
import logging
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from structpred.errors import DataError, ParameterError
from structpred.io.columns import COLUMN_FORMATS, ROW_FORMATS, ColumnCorpus, format_columns, parse_columns
from structpred.io.crfsuite import AttributeCorpus, parse_crfsuite
from structpred.io.guesses import looks_like
from structpred.io.jsonl import parse_jsonl
from structpred.io.ocr import OcrWords, parse_ocr
from structpred.io.text import label_lines, read_bytes, read_text, source_name, split_lines
from structpred.io.validation.scan import scan_bytes
from structpred.models.chain.targets import comparable

if TYPE_CHECKING:
    from structpred.distributed import Shards

log = logging.getLogger("structpred.cli")

_WORD_OF_ATTRIBUTE = re.compile(r"(?:w|word|w\[0\])[=:](.*)", re.DOTALL)

#: what a model was trained on, in its own words -> the formats that fit
FORMATS_OF_INPUT = {"rows": tuple(ROW_FORMATS), "staged": tuple(ROW_FORMATS), "tokens": ("crfsuite",), "numeric": ("ocr",)}
Corpus = ColumnCorpus | AttributeCorpus | OcrWords


class Reader(NamedTuple):
    """How the training data were read, kept in the model file so that predict and evaluate read theirs alike.

    label_column: from 0. n_columns: with the labels. Both are None where the format has no columns, or before training.
    template: the name or file that was given, for people. missing: the label that stands for a missing one.
    """

    format: str
    label_column: int | None = None
    n_columns: int | None = None
    template: str | None = None
    missing: str | None = None

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
        if label_column is not None and chosen not in COLUMN_FORMATS:
            raise ParameterError(f"--label-column is for column files, not for --format {chosen}")
        column, width = known.get("label_column"), known.get("n_columns")
        if label_column is not None:
            column, width = label_column, None
        return cls(chosen, column, width, missing=known.get("missing"))


@dataclass(frozen=True)
class Data:
    """A data file in memory. labels: nested by sequence; None where the file has none. ids: of OCR letters."""

    corpus: Corpus
    labels: list[list[str]] | None
    ids: Sequence[str] = ()

    def known(self, predicted: list[list[str]], reader: Reader) -> tuple[Sequence[Sequence[Any]], Sequence[Any]]:
        """True and predicted labels where the true one is known; says how many are not."""
        labels, n = self.labels or [], self.corpus.n_tokens
        gold, found = comparable(labels, [np.array(row) for row in predicted], reader.missing)
        if (left := n - sum(map(len, gold))) > 0:
            log.warning("%s: %d of %d labels are missing, which are left out of the scores", self.corpus.name, left, n)
        return (gold, found) if left else (labels, predicted)


def read_data(
    path: str, reader: Reader, folds: Sequence[int] | None = None, *, encoding: str = "utf-8", on_error: str = "raise",
    word: int | None = None,
) -> Data:  # fmt: skip
    """Read a file in the reader's format. on_error: "skip" leaves out the sequences with an error, and warns how many they are.

    word: the column that is needed, if it is one alone; where a file has nothing but words, the others are filled with _.

    Raises DataError naming file and line, ParameterError for folds of other formats.
    """
    if folds is not None and reader.format != "ocr":
        raise ParameterError(f"--folds is for OCR data, not for --format {reader.format}")
    name = source_name(path)
    text = read_text(path, encoding) if on_error == "raise" else _sound_text(path, reader, encoding)
    return parse_data(text, name, reader, folds, word)


def parse_data(text: str, name: str, reader: Reader, folds: Sequence[int] | None = None, word: int | None = None) -> Data:
    """As `read_data`, for text that was read already; name: for messages."""
    if reader.format == "ocr":
        words = parse_ocr(text, name)
        ids = np.array([line.split("\t", 1)[0] for line in split_lines(text)])
        if folds is not None:
            chosen = np.isin(words.folds, folds)
            if not chosen.any():
                known = ", ".join(map(str, np.unique(words.folds).tolist()))
                raise DataError(
                    f"{words.name}: no word is in the chosen folds {', '.join(map(str, folds))}; the file has {known}"
                )
            words = words.select(chosen)
        return Data(words, words.letters, ids[words.lines - 1].tolist())
    if reader.format == "crfsuite":
        items = parse_crfsuite(text, name)
        if not items.attributes:
            hint = looks_like(split_lines(text[: 1 << 16])) or "; other format?"
            raise DataError(f"{items.where(0)}: no line has an attribute: expected tabs between label and attributes{hint}")
        return Data(items, list(items.labels))
    width = COLUMN_FORMATS.get(reader.format) if reader.n_columns is None else None
    rows = parse_jsonl(text, name) if reader.format == "jsonl" else parse_columns(text, name, width)
    if word is not None and rows.n_columns == 1 and reader.n_columns is not None and not looks_like(split_lines(text[: 1 << 16])):
        rows = _filled(rows, word, reader.n_columns - (reader.label_column == reader.n_columns - 1))
    column = _label_column(rows, reader)
    labels = None if column is None else rows.labels(column)
    return Data(rows, labels)


def _filled(words: ColumnCorpus, column: int, width: int) -> ColumnCorpus:
    """Words alone as rows of so many columns, _ in all but one."""
    if width > 1:
        log.warning("%s: words alone, taken for column %d of %d; the others are filled with _", words.name, column, width)
    codes = np.zeros((words.n_tokens, width), np.int32)
    codes[:, column] = words.codes[:, 0]
    return replace(words, vocabularies=[words.vocabularies[0] if k == column else ["_"] for k in range(width)], codes=codes)


def head_of(path: str, reader: Reader, encoding: str) -> Data:
    """The first sentences of a file. Raises DataError and ParameterError as for the whole."""
    from structpred.distributed.reading import held_head

    return parse_data(read_text(held_head(path, reader.format), encoding), path, reader)


def shards_of(path: str, n: int, reader: Reader, encoding: str) -> "Shards":
    """n byte ranges of a file, each read as the reader says."""
    from structpred.distributed import Shards

    format = "columns" if reader.n_columns is not None else reader.format
    column = -1 if reader.label_column is None else reader.label_column
    return Shards.of_file(
        os.path.abspath(path), n, format=format, label_column=column, n_columns=reader.n_columns, encoding=encoding
    )


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
    hint = (
        looks_like(split_lines((rows.text or "")[: 1 << 16])) or "; one token per line is expected, or running text with --text"
    )
    raise DataError(
        f"{rows.where(0)}: expected {reader.n_columns} columns{without} as in the training data, got {rows.n_columns}{hint}"
    )


def refuse_running_text(data: Data, known: Sequence[str]) -> None:
    """Raise DataError where the column of the labels holds words: running text, a sentence per line, taken for tokens.

    known: the labels of the model. Labels are not used in prediction, so there may be a placeholder: a single character or
    sign, or the same string on several tokens.
    """
    found = {label for labels in data.labels or [] for label in labels}
    words = [label for label in found if len(label) > 1 and any(map(str.isalnum, label))]
    if not isinstance(data.corpus, ColumnCorpus) or len(words) < len(found) or not found.isdisjoint(known):
        return
    if len(found) > 1 or data.corpus.n_tokens == 1:
        n = data.corpus.n_columns
        raise DataError(
            f"{data.corpus.where(0)}: expected one token per line, in {n} columns with a label of the model or {n - 1} without, "
            f"as in the training data; got {sorted(found)[0]!r} as a label, which the model does not have: is this running text? "
            "structpred predict --text has it tokenized"
        )


def _sound_text(path: str, reader: Reader, encoding: str) -> str:
    """The text of a file with blank lines in place of sequences that have an error, so that line numbers stay."""
    raw, name = read_bytes(path, encoding), source_name(path)
    lines = raw.decode("utf-8", "replace").split("\n")
    # the number of columns is that of most lines: the labels may be missing
    format = "columns" if reader.format in COLUMN_FORMATS and reader.n_columns is not None else reader.format
    scan = scan_bytes(raw, name, format)
    broken, n = np.flatnonzero(scan.tokens.broken).tolist(), len(scan.tokens)
    if not (left := len(broken)):
        return "\n".join(lines)
    first = next(scan.problems())
    place = f"{name}:{first.line}: {first.text}"
    if left == n:
        raise DataError(f"{name}: expected at least one sequence without an error, got none; the first error: {place}")
    log.warning("%s: %d of %d sequences with errors left out; first: %s", name, left, n, place)
    for number in itertools.chain.from_iterable(map(scan.tokens.of, broken)):
        lines[number - 1] = ""
    return "\n".join(lines)


def tokens_of(data: Data) -> list[list[str]]:
    """What to show of each token, by sequence: the first column, the attribute that names the word, the id of an OCR letter.

    A token of which no attribute names a word is called by its number in the sequence, from 1: #1, #2 and so on.
    """
    corpus = data.corpus
    if isinstance(corpus, ColumnCorpus):
        return corpus.labels(0)
    bounds = list(itertools.pairwise(corpus.offsets.tolist()))
    if isinstance(corpus, OcrWords):
        return [list(data.ids[start:stop]) for start, stop in bounds]
    words = [match[1] if (match := _WORD_OF_ATTRIBUTE.fullmatch(name)) else None for name in corpus.attributes]
    codes, places = corpus.codes.tolist(), corpus.indptr.tolist()

    def named(token: int, number: int) -> str:
        return next((word for k in codes[places[token] : places[token + 1]] if (word := words[k]) is not None), f"#{number}")

    return [[named(token, token - start + 1) for token in range(start, stop)] for start, stop in bounds]


def format_predictions(data: Data, predictions: Sequence[Sequence[Any]]) -> str:
    """Column files: the lines as they were, with one more column. CRFsuite: one label per line. OCR: id and letter."""
    lists = [list(map(str, labels.tolist() if isinstance(labels, np.ndarray) else labels)) for labels in predictions]
    if isinstance(data.corpus, ColumnCorpus):
        return format_columns(data.corpus, lists)
    if isinstance(data.corpus, OcrWords):
        flat = [label for labels in lists for label in labels]
        return "".join(f"{name}\t{label}\n" for name, label in zip(data.ids, flat, strict=True))
    return label_lines(lists)
