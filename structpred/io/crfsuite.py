r"""CRFsuite's text format: a label, then attributes, separated by tabs; ``name:scale``; a blank line ends a sequence.

Inside names ``\:`` stands for a colon and ``\\`` for a backslash. Nothing else is special: no comments, no quotes, and
``@bos`` or ``__EOS__`` are names as any other.
"""

import itertools
import re
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from structpred.data.ragged import Ragged, coalesced, runs
from structpred.data.sequences import PackedSequences
from structpred.data.tokens import FLOAT32_END
from structpred.errors import DataError
from structpred.io.string_codes import SlicedList, StringCodes
from structpred.io.text import PathLike, first_error, numbered_pieces, quoted, read_text, source_name
from structpred.runtime.ranges import ends_of

# no two parts can take the same digits: what is not a number is refused in linear time
_NUMBER = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_ESCAPED = re.compile(r"\\([:\\])")

# The text is worked through in pieces, so that the strings of one piece can be freed before the next.
PIECE = 1 << 17
#: labels and fields as written that dictionaries may hold: so many each, or of a long text one for a hundred characters
FIELDS = 1 << 13


@dataclass(frozen=True, eq=False)
class AttributeCorpus(Ragged):
    """Labelled sequences of items with named, weighted attributes, integer-coded.

    labels: one list of strings per sequence; those read from a file are made on demand. attributes: the distinct
    attribute names in order of appearance. indptr: int64 (n_tokens + 1), codes: int32 (nnz) into attributes, values: float32
    (nnz). offsets: int64 (n_sequences + 1). lines: int64 (n_tokens), 1-based. name: the source, for messages.
    """

    labels: Sequence[list[str]]
    attributes: list[str]
    indptr: npt.NDArray[np.int64]
    codes: npt.NDArray[np.int32]
    values: npt.NDArray[np.float32]
    offsets: npt.NDArray[np.int64]
    lines: npt.NDArray[np.int64]
    name: str

    def where(self, token: int) -> str:
        """The file and line of item number ``token``, for messages."""
        return f"{self.name}:{self.lines[token]}"

    def dicts(self) -> list[list[dict[str, float]]]:
        """Each sequence as a list of dicts, one an item, from attribute names to values; hashing needs the names."""
        names, codes, values = self.attributes, self.codes.tolist(), self.values.tolist()
        items: list[dict[str, float]] = []
        for start, stop in itertools.pairwise(self.indptr.tolist()):
            item: dict[str, float] = {}
            for k in range(start, stop):
                item[names[codes[k]]] = item.get(names[codes[k]], 0.0) + values[k]
            items.append(item)
        return self.nested(items)

    def packed(self, names: list[str] | None = None) -> PackedSequences:
        """The corpus as packed features; names gives the feature of each id (those of a trained model, say).

        Without names the ids are those of ``attributes``. Attributes that are not among the names are left out. An
        attribute that occurs twice at one item counts with the sum of its values, as in CRFsuite.
        """
        ids = self.codes
        if names is not None:
            index = dict(zip(names, range(len(names)), strict=True))
            table = np.fromiter((index.get(name, -1) for name in self.attributes), np.int32, len(self.attributes))
            ids = table[self.codes]
        indptr, ids, values = coalesced(np.diff(self.indptr), ids, self.values)
        return PackedSequences(indptr, ids, values, self.offsets, len(self.attributes if names is None else names))


class _Labels(dict[str, int]):
    """A label as written -> its place in ``codes``."""

    def __init__(self) -> None:
        super().__init__()
        self.codes = StringCodes()

    def __missing__(self, field: str) -> int:
        _check_label(field)
        place = self[field] = self.codes[_ESCAPED.sub(r"\1", field)]
        return place


def _check_label(field: str) -> None:
    if not field.strip():
        raise ValueError("expected a label in front of the first tab, got none")


class _Fields(dict[str, int]):
    """An attribute field as written -> its slot in ``ids`` and ``weights``; each distinct field is taken apart once.

    ids: places in ``names``.
    """

    def __init__(self) -> None:
        super().__init__()
        self.names = StringCodes()
        self.forget()

    def forget(self) -> None:
        """Empty the table of fields, not the names: with real-valued scales nearly every field is new."""
        self.clear()
        self.ids = array("i")
        self.weights = array("f")

    def __missing__(self, field: str) -> int:
        name, scale = _attribute(field)
        slot = self[field] = len(self.ids)
        self.ids.append(self.names[name] if field else -1)
        self.weights.append(scale)
        return slot


def _attribute(field: str) -> tuple[str, float]:
    """The name and value of a field; ValueError says what is wrong with it."""
    if "\\" in field:
        colon = next((m.start() for m in re.finditer(r"\\.|:", field) if m.group() == ":"), len(field))
        name, separator, scale = _ESCAPED.sub(r"\1", field[:colon]), field[colon : colon + 1], field[colon + 1 :]
    else:
        name, separator, scale = field.partition(":")
    if not separator:
        return name, 1.0
    if not name:
        raise ValueError(f"expected an attribute name in front of the colon, got {quoted(field)}")
    if not _NUMBER.fullmatch(scale) or abs(float(scale)) >= FLOAT32_END:
        raise ValueError(
            f"expected a finite number after the colon, got {quoted(scale)} in {quoted(field)}; "
            r"a colon that belongs to the name is written \:"
        )
    return name, float(scale)


class _Found:
    """What was read so far; arrays that grow, so that nothing is held twice when they are put together.

    most: the labels, and the fields, that dictionaries may hold as they are written.
    """

    def __init__(self, most: int) -> None:
        self.fields, self.label_fields, self._most = _Fields(), _Labels(), most
        self.labels, self.lengths = array("i"), array("i")
        self.lines, self.ids, self.values = array("q"), array("i"), array("f")

    def add_labels(self, labels: Iterable[str]) -> None:
        """Labels as they are written."""
        self.labels.extend(map(self.label_fields.__getitem__, labels))
        if len(self.label_fields) > self._most:
            self.label_fields.clear()

    def add_fields(self, attributes: Iterable[str], n: int) -> npt.NDArray[np.bool_] | bool:
        """n attributes as they are written; returns which of them were not empty."""
        slots = np.fromiter(map(self.fields.__getitem__, attributes), np.int32, n)
        ids, values = np.asarray(self.fields.ids)[slots], np.asarray(self.fields.weights)[slots]
        kept: npt.NDArray[np.bool_] | bool = True
        if "" in self.fields:
            kept = ids >= 0
            ids, values = ids[kept], values[kept]
        self.ids.frombytes(ids.tobytes())
        self.values.frombytes(values.tobytes())
        if len(self.fields) > self._most:
            self.fields.forget()
        return kept


def parse_crfsuite(text: str, name: str) -> AttributeCorpus:
    """As `read_crfsuite`, for text that was read already; name: for messages."""
    given = len(text)
    if "\r" in text:
        text = f"{text}\n".replace("\r\n", "\n")
    found = _Found(max(FIELDS, given // 100))
    for number, piece in numbered_pieces(text, PIECE):
        _parse_piece(piece, number, name, found)
    if not found.labels:
        raise DataError(f"{name}: expected at least one sequence, got {'only blank lines' if given else 'an empty file'}")
    labels, names = list(found.label_fields.codes), list(found.fields.names)
    del found.label_fields, found.fields  # the tables
    lines = np.asarray(found.lines)
    offsets, indptr = runs(lines), ends_of(np.asarray(found.lengths))
    sliced = SlicedList(labels, np.asarray(found.labels), offsets)
    return AttributeCorpus(sliced, names, indptr, np.asarray(found.ids), np.asarray(found.values), offsets, lines, name)


def _parse_piece(piece: str, number: int, name: str, found: _Found) -> None:
    buffer = np.frombuffer(piece.encode(), np.uint8)
    ends = np.append(np.flatnonzero(buffer == 10), len(buffer))
    blank = np.diff(ends, prepend=-1) == 1
    tabs = np.diff(np.searchsorted(np.flatnonzero(buffer == 9), ends), prepend=0)
    try:
        kept = _take_apart(piece, tabs, blank, found)
    except ValueError:
        raise first_error(enumerate(piece.split("\n"), number), line_problem, name) from None
    lengths = tabs[~blank]
    if not kept.all():
        before = np.zeros(len(kept) + 1, np.int32)
        np.cumsum(kept, out=before[1:])
        lengths = np.diff(before[np.append(0, np.cumsum(lengths))])
    found.lengths.frombytes(lengths.astype(np.int32).tobytes())
    found.lines.frombytes((np.flatnonzero(~blank) + number).astype(np.int64).tobytes())


def _take_apart(piece: str, tabs: npt.NDArray[np.intp], blank: npt.NDArray[np.bool_], found: _Found) -> npt.NDArray[np.bool_]:
    """The labels and attributes of a piece go to `found`; the answer says which attribute fields were not empty.

    tabs: of each line, blank: which lines are.
    """
    firsts = np.cumsum(tabs + 1) - tabs - 1
    is_attribute = np.ones(int(firsts[-1] + tabs[-1]) + 1, np.bool_)
    is_attribute[firsts] = False
    firsts = firsts[~blank]
    kept = np.ones(int(tabs.sum()), np.bool_)
    before = done = 0
    for entries in _entries(piece.replace("\n", "\t")):
        after = before + len(entries)
        here = firsts[np.searchsorted(firsts, before) : np.searchsorted(firsts, after)] - before
        found.add_labels(map(entries.__getitem__, here.tolist()))
        mask = is_attribute[before:after]
        count = int(np.count_nonzero(mask))
        kept[done : done + count] = found.add_fields(itertools.compress(entries, mask.tobytes()), count)
        before, done = after, done + count
    return kept


def _entries(text: str) -> Iterator[list[str]]:
    """The text between tabs, chunk by chunk: a line may have very many attributes."""
    start = 0
    while start <= len(text):
        stop = text.find("\t", start + PIECE)
        stop = len(text) if stop < 0 else stop
        yield text[start:stop].split("\t")
        start = stop + 1


def line_problem(line: str) -> str | None:
    """What is wrong with one line of a file in CRFsuite's format; None for a good line, and for an empty one.

    >>> line_problem("B-NP\\tw=the\\tp:0.5"), line_problem("B-NP\\tp:x")[:40]
    (None, 'expected a finite number after the colon')
    """
    label, tab, rest = line.partition("\t")
    try:
        if line:
            _check_label(label)
        for field in itertools.chain.from_iterable(_entries(rest)) if tab else ():
            _attribute(field)
    except ValueError as error:
        return str(error)
    return None


def read_crfsuite(path: PathLike, *, encoding: str = "utf-8") -> AttributeCorpus:
    """Read a file in CRFsuite's text format (training and tagging files alike: the first field is always a label).

    An attribute without a scale has the value 1. Empty fields (a trailing tab) are ignored. Raises DataError with
    file and line: an empty label, an empty attribute name, a scale that is not a finite number, no item at all, and
    what `read_text` raises.
    """
    return parse_crfsuite(read_text(path, encoding), source_name(path))
