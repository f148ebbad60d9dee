"""What the bytes of a shard mean: formats and their options, as the shell reads them."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from structpred.errors import DataError, ParameterError
from structpred.io.columns import ColumnCorpus, parse_columns
from structpred.io.crfsuite import parse_crfsuite
from structpred.io.multilabel.by_format import LABEL_FORMATS, read_training
from structpred.io.multilabel.by_format import Source as TableSource
from structpred.io.opening import checked_encoding
from structpred.io.text import HeldBytes, counted_from, read_range, read_text
from structpred.io.treebanks.formats import TREEBANK_FORMATS
from structpred.io.treebanks.reader import read_treebank


class Loaded(NamedTuple):
    """The data of a shard, as fit takes them.

    fingerprint: a digest of its bytes and how they were read; empty where there are no bytes. sample_weight: a number for each
    sample; None: all count alike. token_weight: the same for each position, nested like y.
    """

    X: Any
    y: Any
    fingerprint: str = ""
    sample_weight: Any = None
    token_weight: Any = None


class Shard(ABC):
    """A piece of the data. It pickles small, and says in one line what it is (`str`)."""

    @abstractmethod
    def load(self) -> Loaded:
        """The data, read now. Raises DataError, naming file and line."""

    @property
    def size(self) -> int | None:
        """Bytes on disk; None where that is not known."""
        return None


@dataclass(frozen=True)
class Reading:
    """A format and its options: see `Shards.of_file`.

    table: how a file with sets of labels is read. head: the bytes before its first example, which all pieces of it begin with.
    """

    format: str
    label_column: int = -1
    n_columns: int | None = None
    tabs: bool = False
    encoding: str = "utf-8"
    table: TableSource | None = None
    head: int = 0

    @classmethod
    def checked(cls, format: str, **options: Any) -> Self:
        """ParameterError for formats and encodings that there are not."""
        if format not in FORMATS:
            raise ParameterError(f"format: expected one of {', '.join(FORMATS)}, got {format!r}")
        made = cls(format, **options)
        checked_encoding(made.encoding)
        return made

    def check_cutting(self) -> None:
        """Raise ParameterError unless the file consists of lines, which are known by their bytes."""
        if self.format == "npz":
            raise ParameterError(
                "npz files cannot be cut: write the examples as ARFF or LIBSVM text, or give one file a shard to Shards.of_files"
            )
        if "\n \t".encode(self.encoding)[-3:] != b"\n \t":
            raise ParameterError(f"encoding: a file in {self.encoding} cannot be cut at ends of lines; give one file a shard")

    def read(self, path: str, start: int, stop: int | None) -> Loaded:
        """The data in bytes start..stop of a file. Raises DataError that names the file and the line from there."""
        with self.held(path, start, stop) as raw:
            digest = hashlib.sha256(repr((self, len(raw))).encode())
            digest.update(raw)
            return Loaded(*FORMATS[self.format](self, raw, path), digest.hexdigest())

    @contextmanager
    def held(self, path: str, start: int, stop: int | None) -> Iterator[bytes]:
        """Bytes start..stop of a file, behind its header; errors count their lines from there."""
        raw = read_range(path, start, stop)
        head = read_range(path, 0, self.head) if start else b""
        with counted_from(path, start, head.count(b"\n")):
            yield head + raw


def _columns(reading: Reading, raw: bytes, name: str) -> tuple[Any, Any]:
    width = 3 if reading.format == "conll2000" and reading.n_columns is None else reading.n_columns
    text = read_text(HeldBytes(raw, name), reading.encoding)
    corpus = parse_columns(text, name, width, tabs=reading.tabs)
    return corpus, corpus.labels(_label_column(corpus, reading))


def _label_column(corpus: ColumnCorpus, reading: Reading) -> int:
    if not -corpus.n_columns <= reading.label_column < corpus.n_columns:
        at, n = reading.label_column, corpus.n_columns
        raise DataError(f"{corpus.where(0)}: expected a column {at} with labels, got {n} columns, numbered from 0")
    return reading.label_column


def _crfsuite(reading: Reading, raw: bytes, name: str) -> tuple[Any, Any]:
    corpus = parse_crfsuite(read_text(HeldBytes(raw, name), reading.encoding), name)
    return corpus, list(corpus.labels)


def _treebank(reading: Reading, raw: bytes, name: str) -> tuple[Any, Any]:
    format, held = TREEBANK_FORMATS[reading.format], HeldBytes(raw, name)
    return read_treebank(held, format, missing_heads=True, encoding=reading.encoding), None


def _table(reading: Reading, raw: bytes, name: str) -> tuple[Any, Any]:
    assert reading.table is not None
    return read_training(HeldBytes(raw, name), reading.table)[0], None


#: what reads the bytes of a format
FORMATS = {
    **dict.fromkeys(("columns", "conll2000"), _columns), "crfsuite": _crfsuite, **dict.fromkeys(TREEBANK_FORMATS, _treebank),
    **dict.fromkeys(LABEL_FORMATS, _table),
}  # fmt: skip
