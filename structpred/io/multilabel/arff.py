"""ARFF files (Weka's attribute-relation format): dense and sparse rows, quoted names, numbers, nominal values, text.

Nominal values become their place in the declaration, so that what a sparse row leaves out is zero, as the format says: the first
nominal value. A missing value, `?`, becomes NaN: whoever takes a column says whether values may be missing there.
"""

from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from structpred.errors import DataError
from structpred.io.multilabel.arff_text import Attribute, arff_header, sparse_row, split_values
from structpred.io.opening import Source
from structpred.io.text import quoted, read_text, split_lines, stream_name


@dataclass
class ArffTable:
    """Raw file contents. codes: CSR (n, n_attributes): numbers, and places of nominal values, NaN for `?`; text columns
    are zero there.

    texts: for each text column (by number) the text of each row (by number) that does not leave it out. lines: of the rows.
    size: of the file's text, in characters.
    """

    name: str
    relation: str
    attributes: list[Attribute]
    codes: Any
    texts: dict[int, dict[int, str]]
    lines: npt.NDArray[np.int64]
    size: int

    def where(self, row: int) -> str:
        """file:line of a row, for messages."""
        return f"{self.name}:{self.lines[row]}"

    def column(self, k: int) -> npt.NDArray[np.float64]:
        """One column of codes, dense."""
        column, by_column = np.zeros(len(self.lines)), self.by_column
        start, stop = by_column.indptr[k : k + 2]
        column[by_column.indices[start:stop]] = by_column.data[start:stop]
        return column

    @cached_property
    def by_column(self) -> Any:
        """The codes by column: a row-wise matrix is gone through as a whole for each column."""
        return self.codes.tocsc()


def read_arff(path: Source, *, text_kinds: tuple[str, ...] = (), encoding: str = "utf-8") -> ArffTable:
    """Read an ARFF file, plain or gzip, or an open binary one; ``-`` is standard input.

    text_kinds: further kinds of attributes whose values are text. Raises DataError with file and line: no @data, attributes
    declared twice or of an unknown kind, rows with a wrong number of values, invalid numbers or not finite, undeclared
    nominal values, indices out of range or out of order, no rows.
    """
    name = stream_name(path)
    whole = read_text(path, encoding)
    lines = enumerate(split_lines(whole), 1)
    relation, attributes = arff_header(lines, name, text_kinds)
    rows = _Rows(name, attributes)
    for number, line in lines:
        text = line.strip()
        if text and not text.startswith("%"):
            rows.add(number, text)
    if not rows.lines:
        raise DataError(f"{name}: expected at least one row after @data, got none")
    return ArffTable(name, relation, attributes, rows.matrix(), rows.texts, np.array(rows.lines, np.int64), len(whole))


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

    def _converted(self, number: int, places: Sequence[int], values: list[str]) -> npt.NDArray[np.float64]:
        readers, missing = self.readers, list[int]()
        if "?" in values:
            missing = [j for j, k in enumerate(places) if values[j] == "?" and self._may_miss(self.attributes[k])]
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

    def _may_miss(self, one: Attribute) -> bool:
        """Whether `?` is a missing value in this column, and not a value of its own."""
        return one.kind in ("numeric", "nominal") and "?" not in one.values

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

    def matrix(self) -> Any:
        """All rows as CSR."""
        from scipy import sparse

        parts = (np.array(self.values, np.float64), np.array(self.indices, np.int64), np.array(self.indptr, np.int64))
        return sparse.csr_array(parts, shape=(len(self.lines), len(self.attributes)))
