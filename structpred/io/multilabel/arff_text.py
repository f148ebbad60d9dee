"""The text of ARFF files: what the lines before @data declare, and rows taken apart.

Exported programs carry this file (`export/programs.py`).
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from structpred.errors import DataError
from structpred.io.lines import quoted

ARFF_NAMES = re.compile(r"\.arff(\.gz)?$", re.IGNORECASE)
# blanks, not \s, which runs over line ends: from each of many blank lines to the end of all of them
_HIERARCHICAL = re.compile(r"^[ \t]*+@attribute[ \t].*\bhierarchical\b", re.IGNORECASE | re.MULTILINE)
_RELATION = re.compile(r"^[ \t]*+@relation\b", re.IGNORECASE | re.MULTILINE)
_DATA = re.compile(r"^[ \t]*+@data\b", re.IGNORECASE | re.MULTILINE)
# *+ gives nothing back: what does not match is refused in linear time
_NAME = re.compile(r"""\s*+(?:'((?:[^'\\]|\\.)*+)'|"((?:[^"\\]|\\.)*+)"|([^\s{,%'"]\S*+))\s*+""")
_VALUE = re.compile(r"""\s*+(?:'((?:[^'\\]|\\.)*+)'|"((?:[^"\\]|\\.)*+)"|([^,'"]*+))\s*+(,|$)""")
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
    if "'" not in text and '"' not in text:
        return [value.strip() for value in text.split(",")]
    values, at = [], 0
    while True:
        match = _VALUE.match(text, at)
        if match is None:
            raise DataError(f"{where}: expected values separated by commas, quotes that close, got {quoted(text[at:])}")
        values.append(_group(match))
        at = match.end()
        if match.group(4) == "":
            return values


def sparse_row(text: str, n: int, where: str) -> tuple[list[int], list[str]]:
    """The places and values of a row ``{index value, index value}`` of n attributes. Raises DataError for any other."""
    if not text.endswith("}"):
        raise DataError(f"{where}: expected a sparse row to end with '}}', got {quoted(text[-60:])}; is the file cut short?")
    places, values = list[int](), list[str]()
    before, body = -1, text[1:-1].strip()
    for item in _sparse_items(body, where) if body else []:
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


def _sparse_items(body: str, where: str) -> list[str]:
    """The 'index value' items of a sparse row, single-spaced; quoted values keep their quotes."""
    body = body.replace("\t", " ")
    if "'" not in body and '"' not in body:
        return [item.strip() for item in body.split(",")]
    items, start, quote, escaped = [], 0, "", False
    for at, c in enumerate(body):
        if escaped or (quote and c == "\\"):
            escaped = not escaped
        elif quote:
            quote = "" if c == quote else quote
        elif c in "'\"":
            quote = c
        elif c == ",":
            items.append(body[start:at].strip())
            start = at + 1
    if quote:
        raise DataError(f"{where}: expected quotes that close, got {quoted(body)}")
    return [*items, body[start:].strip()]
