"""Sequences in files: columns, CRFsuite's text and OCR letters, read and written as `structpred predict` does."""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from structpred.export.light.weights import Ints, PredictorError
from structpred.io.recognise import looks_like

_ESCAPED = re.compile(r"\\([:\\])")
_NUMBER = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_N_PIXELS = 128


class ColumnText(NamedTuple):
    """A column file: its columns, where sentences begin, the line of each token (from 1), and the text."""

    columns: list[Sequence[str]]
    offsets: Ints
    lines: list[int]
    text: str


def parse_columns(text: str, name: str, widths: Sequence[int]) -> ColumnText:
    """A token per line, blank lines between sentences. widths: how many columns there may be; empty: any number."""
    rows, lines, starts = list[list[str]](), list[int](), [0]
    allowed, before = tuple(widths), 0
    for number, line in enumerate(text.split("\n"), 1):
        # only space and tab separate columns: other white space does occur inside tokens
        fields = [field for field in line.removesuffix("\r").replace("\t", " ").split(" ") if field]
        if not fields:
            continue
        if allowed and len(fields) not in allowed:
            expected = " or ".join(map(str, allowed))
            hint = looks_like(text.split("\n"))
            raise PredictorError(f"{name}:{number}: expected {expected} columns, got {len(fields)}: {line[:60]!r}{hint}")
        allowed = (len(fields),)
        if rows and number > before + 1:
            starts.append(len(rows))
        rows.append(fields)
        lines.append(number)
        before = number
    if not rows:
        raise PredictorError(f"{name}: expected at least one sentence, got none")
    return ColumnText(list(zip(*rows, strict=True)), np.array([*starts, len(rows)], np.int64), lines, text)


def with_labels(read: ColumnText, labels: Sequence[str]) -> str:
    """The text as it was, with one more column; behind a tab where the first token's line has one, else a space."""
    out = read.text.split("\n")
    separator = "\t" if "\t" in out[read.lines[0] - 1] else " "
    for number, label in zip(read.lines, labels, strict=True):
        row = out[number - 1]
        bare = row.removesuffix("\r")
        out[number - 1] = f"{bare}{separator}{label}{row[len(bare) :]}"
    return "\n".join(out)


class Attributes(NamedTuple):
    """Tokens of CRFsuite's text: the name and value of each attribute, how many each token has, where sequences begin."""

    names: list[str]
    values: list[float]
    counts: list[int]
    offsets: Ints


def parse_crfsuite(text: str, name: str) -> Attributes:
    """A label, then attributes, separated by tabs; blank lines between sequences. The labels are not looked at."""
    found, starts, before = Attributes([], [], [], np.zeros(0, np.int64)), [0], 0
    known: dict[str, tuple[str, float]] = {}
    for number, line in enumerate(text.split("\n"), 1):
        label, *fields = line.removesuffix("\r").split("\t")
        if not label and not fields:
            continue
        if found.counts and number > before + 1:
            starts.append(len(found.counts))
        fields = [field for field in fields if field]
        try:
            if not label.strip():
                raise ValueError("expected a label in front of the first tab, got none")
            for field in fields:
                if field not in known:
                    known[field] = _attribute(field)
        except ValueError as error:
            raise PredictorError(f"{name}:{number}: {error}") from None
        found.names.extend(known[field][0] for field in fields)
        found.values.extend(known[field][1] for field in fields)
        found.counts.append(len(fields))
        before = number
    if not found.counts:
        raise PredictorError(f"{name}: expected at least one sequence, got none")
    return found._replace(offsets=np.array([*starts, len(found.counts)], np.int64))


def _attribute(field: str) -> tuple[str, float]:
    """The name and the value of `name:value`; in names a backslash stands before a colon or a backslash."""
    colon = next((match.start() for match in re.finditer(r"\\.|:", field) if match.group() == ":"), len(field))
    name, separator, scale = _ESCAPED.sub(r"\1", field[:colon]), field[colon : colon + 1], field[colon + 1 :]
    if not separator:
        return name, 1.0
    if not name or not _NUMBER.fullmatch(scale) or not np.isfinite(np.float32(float(scale))):
        raise ValueError(f"expected an attribute name, a colon and a finite number, got {field[:60]!r}")
    return name, float(np.float32(float(scale)))


class Letters(NamedTuple):
    """Letters of the OCR file: their ids, their pixels, where words begin."""

    ids: list[str]
    pixels: Any
    offsets: Ints


def parse_ocr(text: str, name: str) -> Letters:
    """A letter per line: id, letter, id of the next letter or -1, three numbers, and 128 pixels of 0 and 1."""
    ids, pixels, ends = list[str](), list[list[int]](), list[int]()
    for number, line in enumerate(text.split("\n"), 1):
        fields = line.removesuffix("\r").removesuffix("\t").split("\t")
        if fields == [""]:
            continue
        if len(fields) != 6 + _N_PIXELS or not set(fields[6:]) <= {"0", "1"}:
            raise PredictorError(f"{name}:{number}: expected 6 columns and {_N_PIXELS} pixels of 0 and 1, separated by tabs")
        ids.append(fields[0])
        pixels.append(list(map(int, fields[6:])))
        if fields[2] == "-1":
            ends.append(len(ids))
    if not ids or not ends or ends[-1] != len(ids):
        raise PredictorError(f"{name}: expected whole words of letters, the last of each with the next id -1")
    return Letters(ids, np.array(pixels, dtype=np.float64), np.array([0, *ends], np.int64))
