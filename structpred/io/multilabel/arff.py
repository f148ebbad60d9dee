"""ARFF files (Weka's attribute-relation format): dense and sparse rows, quoted names, numbers, nominal values, text.

Nominal values become their place in the declaration, so that what a sparse row leaves out is zero, as the format says: the first
nominal value. A missing value, `?`, becomes NaN: whoever takes a column says whether values may be missing there.
"""

import re
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, NoReturn

import numpy as np

from structpred.core.types import Floats, Integers
from structpred.errors import DataError
from structpred.io.opening import Source
from structpred.io.text import quoted, read_text, split_lines, stream_name
from structpred.runtime.ranges import ends_of

ARFF_NAMES = re.compile(r"\.arff(\.gz)?$", re.IGNORECASE)
# blanks, not \s, which runs over line ends: from each of many blank lines to the end of all of them
_HIERARCHICAL = re.compile(r"^[ \t]*+@attribute[ \t].*\bhierarchical\b", re.IGNORECASE | re.MULTILINE)
_RELATION = re.compile(r"^[ \t]*+@relation\b", re.IGNORECASE | re.MULTILINE)
_DATA = re.compile(r"^[ \t]*+@data\b", re.IGNORECASE | re.MULTILINE)
# *+ gives nothing back: what does not match is refused in linear time
_NAME = re.compile(r"""\s*+(?:'((?:[^'\\]|\\.)*+)'|"((?:[^"\\]|\\.)*+)"|([^\s{,%'"]\S*+))\s*+""")
_VALUE = re.compile(r"""\s*+(?:'((?:[^'\\]|\\.)*+)'|"((?:[^"\\]|\\.)*+)"|([^,'"]*+))\s*+(,|$)""")
_ITEM = re.compile(r"""((?:'(?:[^'\\]|\\.)*+'|"(?:[^"\\]|\\.)*+"|[^,'"]++)*+)(,|$)""")
_NUMBERS = ("numeric", "real", "integer")


def arff_format(path: str, text: str) -> str | None:
    """What name and text show: "clus" is an ARFF file with labels in a hierarchy, "arff" another one; None for other files."""
    head = text[: end.start()] if (end := _DATA.search(text)) else text
    if ARFF_NAMES.search(path) or _RELATION.search(head):
        return "clus" if _HIERARCHICAL.search(head) else "arff"
    return None


class Attribute(NamedTuple):
    """One column. kind: "numeric", "nominal", "string", or another word of the declaration in lower case.

    values: the nominal values. rest: what follows the kind. line: where it is declared.
    """

    name: str
    kind: str
    values: tuple[str, ...]
    rest: str
    line: int


def arff_header(lines: Iterator[tuple[int, str]], name: str, text_kinds: tuple[str, ...]) -> tuple[str, list[Attribute]]:
    """The relation and the attributes, of numbered lines, which are taken up to @data. Raises as `read_arff` does."""
    relation, attributes, seen, number = "", list[Attribute](), dict[str, int](), 0
    for number, line in lines:
        text = line.strip()
        word = text[:10].split(None, 1)[0].lower() if text else ""
        if not text or text.startswith("%"):
            continue
        if word == "@relation":
            relation = unquoted(text[len("@relation") :].strip())
        elif text[:10].lower() == "@attribute":
            one = _attribute(text[10:], f"{name}:{number}", number, text_kinds)
            if one.name in seen:
                raise DataError(
                    f"{name}:{number}: the attribute {quoted(one.name)} is declared twice, first in line {seen[one.name]}"
                )
            seen[one.name] = number
            attributes.append(one)
        elif word == "@data":
            if not attributes:
                raise DataError(f"{name}:{number}: expected attributes before @data, got none")
            return relation, attributes
        else:
            raise DataError(f"{name}:{number}: expected @relation, @attribute, @data or a comment (%), got {quoted(text)}")
    raise DataError(f"{name}:{max(number, 1)}: expected @data, but the file ends; is it cut short, or not an ARFF file?")


def _attribute(text: str, where: str, line: int, text_kinds: tuple[str, ...]) -> Attribute:
    match = _NAME.match(text)
    if match is None or not text[:1].isspace():
        raise DataError(f"{where}: expected '@attribute NAME TYPE', got {quoted('@attribute' + text)}")
    name, rest = _group(match), text[match.end() :].strip()
    if rest.startswith("{"):
        if not rest.endswith("}"):
            raise DataError(f"{where}: expected nominal values within braces, got {quoted(rest)}")
        values = tuple(split_values(rest[1:-1], where))
        if len(set(values)) < len(values) or not values or "" in values:
            raise DataError(f"{where}: expected different nominal values, none of them empty, got {quoted(rest)}")
        return Attribute(name, "nominal", values, "", line)
    kind, _, tail = rest.replace("\t", " ").partition(" ")
    kind = kind.lower()
    if kind in _NUMBERS:
        return Attribute(name, "numeric", (), tail, line)
    if kind == "string" or kind in text_kinds:
        return Attribute(name, kind, (), tail.strip(), line)
    known = ", ".join((*_NUMBERS, "string", "{nominal,values}", *text_kinds))
    raise DataError(f"{where}: attribute {quoted(name)}: expected one of the types {known}, got {quoted(rest)}")


def _group(match: re.Match[str]) -> str:
    """What a name or value says, without its quotes and escapes."""
    single, double, plain = match.group(1), match.group(2), match.group(3)
    if plain is not None:
        return plain.strip()
    return re.sub(r"\\(.)", r"\1", single if single is not None else double)


def unquoted(text: str) -> str:
    """A name without its quotes.

    >>> unquoted("'a b'"), unquoted("plain")
    ('a b', 'plain')
    """
    match = _VALUE.fullmatch(text)
    return text if match is None else _group(match)


def split_values(text: str, where: str) -> list[str]:
    """Values separated by commas, quoted ones without their quotes. Raises DataError for quotes that do not close.

    >>> split_values("a, 'b,c',0", "file:1")
    ['a', 'b,c', '0']
    """
    return _separated(_VALUE, _group, text, where)


def _separated(pattern: re.Pattern[str], value: Callable[[re.Match[str]], str], text: str, where: str) -> list[str]:
    """The values of the matches that make up a text, the last group of each the comma behind it."""
    if "'" not in text and '"' not in text:
        return [part.strip() for part in text.split(",")]
    values, at, comma = list[str](), 0, ","
    while comma:
        if (match := pattern.match(text, at)) is None:
            raise DataError(f"{where}: expected values separated by commas, quotes that close, got {quoted(text[at:])}")
        values.append(value(match))
        at, comma = match.end(), match[pattern.groups]
    return values


def sparse_row(text: str, n: int, where: str) -> tuple[list[int], list[str]]:
    """The places and values of a row ``{index value, index value}`` of n attributes. Raises DataError for any other."""
    if not text.endswith("}"):
        raise DataError(f"{where}: expected a sparse row to end with '}}', got {quoted(text[-60:])}; is the file cut short?")
    places, values = list[int](), list[str]()
    before, body = -1, text[1:-1].strip().replace("\t", " ")
    # quoted values keep their quotes
    for item in _separated(_ITEM, lambda match: match[1].strip(), body, where) if body else []:
        index, _, value = item.partition(" ")
        k = int(index) if index.isascii() and index.isdigit() and len(index) < 10 else -1
        if not (0 <= k < n) or not value:
            raise DataError(f"{where}: expected 'index value' with an index from 0 to {n - 1}, got {quoted(item)}")
        if k <= before:
            raise DataError(f"{where}: expected ascending indices, got {k} after {before}")
        places.append(k)
        values.append(unquoted(value.strip()))
        before = k
    return places, values


@dataclass
class ArffTable:
    """Raw file contents. Row i has the numbers values[indptr[i]:indptr[i + 1]] in the columns of `ids`: places of nominal values,
    NaN for `?`, nothing in text columns.

    texts: for each text column (by number) the text of each row (by number) that does not leave it out. lines: of the rows.
    size: of the file's text, in characters.
    """

    name: str
    relation: str
    attributes: list[Attribute]
    indptr: Integers
    ids: Integers
    values: Floats
    texts: dict[int, dict[int, str]]
    lines: Integers
    size: int

    def where(self, row: int) -> str:
        """file:line of a row, for messages."""
        return f"{self.name}:{self.lines[row]}"

    @cached_property
    def _by_column(self) -> tuple[Integers, Integers, Integers]:
        """The row of each number, the numbers by their columns, and where those of each column begin."""
        ends = ends_of(np.bincount(self.ids, minlength=len(self.attributes)))
        return np.repeat(np.arange(len(self.lines)), np.diff(self.indptr)), np.argsort(self.ids, kind="stable"), ends

    def entries(self, k: int) -> tuple[Integers, Floats]:
        """The numbers of a column, and their rows."""
        rows, order, ends = self._by_column
        at = order[ends[k] : ends[k + 1]]
        return rows[at], self.values[at]

    def column(self, k: int) -> Floats:
        """One column of codes, dense."""
        (rows, values), column = self.entries(k), np.zeros(len(self.lines))
        column[rows] = values
        return column


def read_arff(path: Source, *, text_kinds: tuple[str, ...] = (), encoding: str = "utf-8") -> ArffTable:
    """Read an ARFF file, plain or gzip, or an open binary one; ``-`` is standard input.

    text_kinds: further kinds of attributes whose values are text. Raises DataError with file and line: no @data, attributes
    declared twice or of an unknown kind, rows with a wrong number of values, invalid numbers or not finite, undeclared
    nominal values, indices out of range or out of order, no rows.
    """
    return parse_arff(read_text(path, encoding), stream_name(path), text_kinds)


def parse_arff(whole: str, name: str, text_kinds: tuple[str, ...]) -> ArffTable:
    """As `read_arff`, for text that was read already; name: for messages."""
    lines = enumerate(split_lines(whole), 1)
    relation, attributes = arff_header(lines, name, text_kinds)
    rows = _Rows(name, attributes)
    for number, line in lines:
        text = line.strip()
        if text and not text.startswith("%"):
            rows.add(number, text)
    if not rows.lines:
        raise DataError(f"{name}: expected at least one row after @data, got none")
    indptr, ids, values = np.asarray(rows.indptr), np.asarray(rows.indices), np.asarray(rows.values)
    return ArffTable(name, relation, attributes, indptr, ids, values, rows.texts, np.array(rows.lines, np.int64), len(whole))


@dataclass
class _Rows:
    """Collects rows, and says what is wrong with one."""

    name: str
    attributes: list[Attribute]
    lines: list[int] = field(default_factory=list)
    texts: dict[int, dict[int, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.indptr, self.indices, self.values = array("q", [0]), array("q"), array("d")
        self.readers: list[Callable[[str], float]] = []
        for k, one in enumerate(self.attributes):
            if one.kind == "numeric":
                self.readers.append(float)
            elif one.kind == "nominal":
                self.readers.append({value: float(place) for place, value in enumerate(one.values)}.__getitem__)
            else:
                self.texts[k] = {}
                self.readers.append(lambda _: 0.0)

    def add(self, number: int, text: str) -> None:
        """Take in one row."""
        n, where = len(self.attributes), f"{self.name}:{number}"
        places, values = sparse_row(text, n, where) if text.startswith("{") else self._dense(number, text)
        row = len(self.lines)
        self.lines.append(number)
        if self.texts:
            for k, value in zip(places, values, strict=True):
                if k in self.texts:
                    self.texts[k][row] = value
        found = self._converted(number, places, values)
        filled = np.flatnonzero(found)
        self.indices.extend(np.asarray(places, np.int64)[filled].tolist())
        self.values.extend(found[filled].tolist())
        self.indptr.append(len(self.indices))

    def _dense(self, number: int, text: str) -> tuple[Sequence[int], list[str]]:
        expected = len(self.attributes)
        plain = "'" not in text and '"' not in text
        values = split_values(text, f"{self.name}:{number}") if not plain or text.count(",") == expected - 1 else None
        if values is None or len(values) != expected:
            got = text.count(",") + 1 if values is None else len(values)
            self._refuse(number, f"expected {expected} values, one per attribute, got {got}: {quoted(text)}")
        return range(expected), values

    def _converted(self, number: int, places: Sequence[int], values: list[str]) -> Floats:
        readers, missing = self.readers, list[int]()
        if "?" in values:
            asked = [(j, self.attributes[k]) for j, k in enumerate(places) if values[j] == "?"]  # it may be a value of their own
            missing = [j for j, one in asked if one.kind in ("numeric", "nominal") and "?" not in one.values]
            values = list(values)
            for j in missing:  # something that can be read, for now
                values[j] = (*self.attributes[places[j]].values, "0")[0]
        try:
            found = np.fromiter((readers[k](value) for k, value in zip(places, values, strict=True)), np.float64, len(values))
            marked = any("_" in value and readers[k] is float for k, value in zip(places, values, strict=True))
            if np.isfinite(found).all() and not marked:
                found[missing] = np.nan
                return found
        except (ValueError, KeyError):
            pass
        for k, value in zip(places, values, strict=True):
            self._explain(number, self.attributes[k], value)
        raise AssertionError("a row that cannot be read has a value that cannot be read")

    def _explain(self, number: int, one: Attribute, value: str) -> None:
        """Raise DataError if this is the bad value of the row."""
        label = f"attribute {quoted(one.name)}"
        if one.kind == "nominal" and value not in one.values:
            listed = ", ".join(one.values[:10]) + (", ..." if len(one.values) > 10 else "")
            self._refuse(number, f"{label}: expected one of {listed}, got {quoted(value)}")
        if one.kind == "numeric":
            try:
                x = float(value)
            except ValueError:
                x = np.nan
            if not np.isfinite(x) or "_" in value:
                self._refuse(number, f"{label}: expected a finite number, got {quoted(value)}")

    def _refuse(self, number: int, problem: str) -> NoReturn:
        raise DataError(f"{self.name}:{number}: {problem}")
