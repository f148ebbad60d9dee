"""What a shard is and how the bytes of a file are read as one: a format, its options, and the function that reads it.

What it held when it was first read is kept as digests: each later read must give the same.
"""

import hashlib
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from functools import partial
from typing import Any, BinaryIO, NamedTuple, Self

import numpy as np

from structpred.errors import DataError, ParameterError
from structpred.io.columns import BOUNDARY, COLUMN_FORMATS, parse_columns
from structpred.io.crfsuite import parse_crfsuite
from structpred.io.multilabel.by_format import LABEL_FORMATS, Source, read_training
from structpred.io.opening import checked_encoding
from structpred.io.text import LONGEST_LINE, HeldBytes, PathLike, counted_from, read_range, read_text, source_name
from structpred.io.treebanks.formats import TREEBANK_FORMATS
from structpred.io.treebanks.reader import read_treebank

_PIECE = 1 << 16
_SPACE, _OPENING = b" \t\r\n", f"\n{BOUNDARY}".encode()


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
    """A piece of the data. It pickles small, and says in one line what it is (`str`). size: bytes on disk; None: not known."""

    size: int | None = None

    @abstractmethod
    def load(self) -> Loaded:
        """The data, read now. Raises DataError, naming file and line."""


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
    table: Source | None = None
    head: int = 0

    @classmethod
    def checked(cls, format: str, **options: Any) -> Self:
        """ParameterError for formats and encodings that there are not."""
        if format not in FORMATS:
            raise ParameterError(f"format: expected one of {', '.join(FORMATS)}, got {format!r}")
        made = cls(format, **options)
        checked_encoding(made.encoding)
        return made

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
    width = reading.n_columns or COLUMN_FORMATS[reading.format]
    text = read_text(HeldBytes(raw, name), reading.encoding)
    corpus = parse_columns(text, name, width, tabs=reading.tabs)
    column, n = reading.label_column, corpus.n_columns
    if not -n <= column < n:
        raise DataError(f"{corpus.where(0)}: expected a column {column} with labels, got {n} columns, numbered from 0")
    return corpus, corpus.labels(column)


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
    **dict.fromkeys(COLUMN_FORMATS, _columns), "crfsuite": _crfsuite, **dict.fromkeys(TREEBANK_FORMATS, _treebank),
    **dict.fromkeys(LABEL_FORMATS, _table),
}  # fmt: skip

#: what is compared -> its digest, or number; of the bytes where a shard digests them itself, else of all values
Print = dict[str, str]
_PLAIN = {type(None), bool, int, float, complex, str, bytes}


def read_shard(shard: Shard, first: Print | None) -> tuple[Loaded, Print]:
    """The shard's data, read now. Raises DataError, naming what differs, where they are no longer those of the first read."""
    data = shard.load()
    n = data.X.shape[0] if hasattr(data.X, "shape") else len(data.X) if hasattr(data.X, "__len__") else 0
    parts = {"labels": data.y, "features": data.X, "weights": (data.sample_weight, data.token_weight)}
    found = {"content": data.fingerprint} if data.fingerprint else {name: _digest(part) for name, part in parts.items()}
    now = {"rows": str(n), **found}
    if first is not None and (news := [name for name in first if first[name] != now.get(name)]):
        raise DataError(
            f"expected what the first read gave ({first['rows']} rows), got other {', '.join(news)} ({now['rows']} rows): shards "
            "are read again to be trained on, and by workers that take them over. Is a file being written, or a function random?"
        )
    return data, now


def _digest(value: Any) -> str:
    """Of values, not of objects: the same in every process, sets and dicts in any order. Of what is not known its class."""
    if hasattr(value, "tocsr"):
        matrix = value.tocsr()
        value = [matrix.shape, matrix.indptr, matrix.indices, matrix.data]
    elif hasattr(value, "__array__") and not isinstance(value, np.generic):
        array = np.asarray(value)
        if not array.dtype.hasobject:
            digest = hashlib.sha256(f"{array.dtype.str} {array.shape}".encode())
            digest.update(np.ascontiguousarray(array).view(np.uint8).data)
            return digest.hexdigest()
        value = array.tolist()
    elif is_dataclass(value) and not isinstance(value, type):
        value = [getattr(value, field.name) for field in fields(value)]
    elif isinstance(value, Mapping | Set | Sequence):
        pass
    elif hasattr(value, "arrays") and callable(value.arrays):  # a feature map
        value = [*value.arrays(), value.shapes if hasattr(value, "shapes") else None]
    elif hasattr(value, "nodes") and callable(value.nodes):  # a networkx graph
        value = [list(value.nodes(data=True)), list(value.edges(data=True))]
    if isinstance(value, Mapping | Set):
        value = list(value.items()) if isinstance(value, Mapping) else list(value)
        described = sorted(_repr(one) for one in value)
    elif isinstance(value, Sequence) and not isinstance(value, str | bytes):
        described = [_repr(one) for one in value]
    else:
        described = [repr(value) if type(value) in _PLAIN or isinstance(value, np.generic) else type(value).__qualname__]
    return hashlib.sha256("\n".join(described).encode("utf-8", "backslashreplace")).hexdigest()


def _repr(value: Any) -> str:
    """The text of a plain value, or of plain values, at once: of such most data are; else a digest."""
    if type(value) is dict and {*map(type, value)} <= {str} and {*map(type, value.values())} <= _PLAIN:
        return repr(sorted(value.items()))
    plain = type(value) in _PLAIN or (type(value) in (list, tuple) and {*map(type, value)} <= _PLAIN)
    return repr(value) if plain else _digest(value)


def size_of(path: PathLike) -> int:
    """The bytes of a file. Raises DataError where there is none, or it is empty."""
    name = source_name(path)
    if name == "<stdin>":
        raise ParameterError("shards: expected a file, got standard input, which cannot be read where the shards are")
    if not os.path.isfile(path):
        raise DataError(f"{name}: {'expected a file, got a folder' if os.path.isdir(path) else 'there is no such file'}")
    if not (size := os.path.getsize(path)):
        raise DataError(f"{name}: expected at least one sentence, got an empty file; leave it out")
    return size


def cuts_of(path: PathLike, n: int, reading: Reading) -> tuple[list[int], int]:
    """n + 1 ascending places, from 0 to the size of the file, at each of which a sentence or example begins, except for the last.

    Also the bytes of a header, which are a part of the first piece.

    Raises ParameterError where a shard would be empty, and for files that cannot be cut; DataError for a table without @data.
    """
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise ParameterError(f"n: expected a number of shards >= 1, got {n!r}")
    size, name = size_of(path), source_name(path)
    if n == 1:
        return [0, size], 0
    # it must consist of lines, which are known by their bytes
    if reading.format == "npz":
        raise ParameterError(
            "npz files cannot be cut: write the examples as ARFF or LIBSVM text, or give one file a shard to Shards.of_files"
        )
    if "\n \t".encode(reading.encoding)[-3:] != b"\n \t":
        raise ParameterError(f"encoding: a file in {reading.encoding} cannot be cut at ends of lines; give one file a shard")
    with open(path, "rb") as file:
        if _is_packed(file):
            raise ParameterError(
                f"{name}: a gzip file cannot be cut into byte ranges: unpack it, or give one file a shard to Shards.of_files"
            )
        following, first, at = _follower(reading), _first(file, reading, size), "blank lines"
        file.seek(0)
        if reading.format in COLUMN_FORMATS and _OPENING in b"\n" + file.read(_PIECE):
            following, at = partial(_next_sentence, opening=_OPENING[1:]), f"{BOUNDARY} lines"
        bounds = [0]
        for k in range(1, n + 1):
            bounds.append(following(file, first + k * (size - first) // n, size) if k < n else size)
            if bounds[-1] <= max(bounds[-2], first):
                hint = ", or are there no blank lines between the sentences?" if reading.table is None else ""
                raise ParameterError(
                    f"{name}: shard {k - 1} of {n} would be empty: cut at {at if hint else 'ends of lines'}, "
                    f"{size:,} bytes give fewer pieces; ask for fewer shards{hint}"
                )
    return bounds, first


def held_head(path: PathLike, format: str) -> HeldBytes:
    """The first bytes of a file, its header and the first sentences or examples: what is wrong with all lines shows there."""
    size, reading = size_of(path), Reading(format, table=Source(format) if format in LABEL_FORMATS else None)
    with open(path, "rb") as file:
        whole = format == "npz" or _is_packed(file)
        stop = None if whole else _follower(reading)(file, _first(file, reading, size) + _PIECE, size)
    return HeldBytes(read_range(path, 0, stop), source_name(path))


def _is_packed(file: BinaryIO) -> bool:
    return file.read(2) == b"\x1f\x8b"


def _first(file: BinaryIO, reading: Reading, size: int) -> int:
    """Where the first example begins, behind a header; 0 of sentences, which have none."""
    if reading.table is None:
        return 0
    file.seek(0)
    if reading.format != "libsvm":
        while (line := file.readline(LONGEST_LINE)).lower().split(None, 1)[:1] != [b"@data"]:
            if not line:
                raise DataError(f"{file.name}: expected @data in front of the examples, got none; is it an ARFF file?")
    return _follower(reading)(file, file.tell(), size)


def _follower(reading: Reading) -> Callable[[BinaryIO, int, int], int]:
    """What finds the next sentence, or example, in a file of that size."""
    if reading.table is None:
        return _next_sentence
    return partial(_next_example, comment=b"#" if reading.format == "libsvm" else b"%")


def _next_example(file: BinaryIO, at: int, size: int, comment: bytes) -> int:
    """The first place, `at` or later, where a line with an example begins; the size where there is none."""
    file.seek(max(at - 1, 0))
    if at:
        file.readline(LONGEST_LINE)  # the rest of the line that ends there or later
    while line := file.readline(LONGEST_LINE):
        if (text := line.strip()) and not text.startswith(comment):
            return file.tell() - len(line)
    return size


def _next_sentence(file: BinaryIO, at: int, size: int, opening: bytes = b"") -> int:
    """The first place, `at` or later, where a sentence begins behind a blank line, or a line with this opening; else the size."""
    back = max(at - _PIECE, 0)
    file.seek(back)
    before = file.read(at - back)
    blank = before.endswith(b"\n") and not before[before.rfind(b"\n", 0, -1) + 1 :].strip(_SPACE)
    if not before.endswith(b"\n"):
        file.readline()
    while line := file.readline(_PIECE):
        if (blank or opening) and line.startswith(opening) and line.strip(_SPACE):
            return file.tell() - len(line)
        blank = not line.strip(_SPACE)
    return size
