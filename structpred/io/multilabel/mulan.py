"""Multi-label data as Mulan keeps them: an ARFF file, and an XML file that says which attributes are labels.

Hierarchical data as CLUS-HMC keeps them are ARFF with one attribute of type hierarchical.
"""

import os
from collections.abc import Collection, Sequence
from typing import Any
from xml.parsers import expat

import numpy as np
import numpy.typing as npt

from structpred.core.types import Floats, Integers
from structpred.data.hierarchy import LabelHierarchy
from structpred.errors import DataError, ParameterError
from structpred.io.multilabel.arff import ArffTable, Attribute, read_arff
from structpred.io.multilabel.data import MultiLabelData, check_table, csr, label_table
from structpred.io.opening import Source
from structpred.io.text import PathLike, quoted, read_bytes, source_name
from structpred.runtime.ranges import ends_of

#: names of labels are whole paths: those above a path of many parts would be as long as the square of its length
_DEEPEST = 100


def read_mulan(path: Source, labels: PathLike | int | Sequence[str], *, encoding: str = "utf-8") -> MultiLabelData:
    """Read a multi-label ARFF file, plain or gzip, or an open binary one.

    labels: the label XML (a path); or how many of the last attributes are labels (-3: the first three, as MEKA has it); or a list
    of names. Labels keep the order of the ARFF file. Label attributes have the values 0 and 1, nominal or numeric, or `?` where
    the label is missing (-1 in Y). Nominal features whose values are numbers become these numbers, others one column per value,
    called name=value. Labels within labels in the XML are a hierarchy; rows are then closed.

    encoding: of the ARFF file; the XML names its own.

    Raises DataError with file and line for what cannot be read, labels that are not attributes, label values other than 0 and 1,
    and `?` among the features.
    """
    table = read_arff(path, encoding=encoding)
    names, parents = _label_names(table, labels)
    place = {one.name: k for k, one in enumerate(table.attributes)}
    columns = sorted(place[name] for name in names)
    ordered = [table.attributes[k].name for k in columns]
    others = features_of(table, names)
    check_table(len(table.lines), len(columns), table.size, table.name)
    Y = label_table(np.stack([_label_column(table, k) for k in columns], axis=1))
    parts, features = feature_columns(table, others)
    hierarchy = None
    if any(parent is not None for parent in parents.values()):
        at = {name: k for k, name in enumerate(ordered)}
        edges = [(at[parent], at[child]) for child, parent in parents.items() if parent is not None]
        hierarchy = LabelHierarchy(len(ordered), edges, ordered)
        Y = hierarchy.closed(Y)
    return MultiLabelData(csr(*parts, len(features)), Y, ordered, features, hierarchy, table.name)


def _label_names(table: ArffTable, labels: PathLike | int | Sequence[str]) -> tuple[list[str], dict[str, str | None]]:
    names = [one.name for one in table.attributes]
    if isinstance(labels, int) and not isinstance(labels, bool):
        if not 0 < abs(labels) < len(names):
            raise ParameterError(f"labels: expected from 1 to {len(names) - 1} of the {len(names)} attributes, got {labels}")
        return (names[-labels:] if labels > 0 else names[:-labels]), {}
    if isinstance(labels, list | tuple):
        known = set(names)
        for name in labels:
            if name not in known:
                raise DataError(f"{table.name}: there is no attribute {quoted(str(name))} to be a label")
        if not labels or len(set(labels)) < len(labels):
            raise ParameterError("labels: expected at least one name, and none twice")
        return list(labels), {}
    if not isinstance(labels, str | os.PathLike):
        raise ParameterError(f"labels: expected the path of a label XML, a number or a list of names, got {labels!r}")
    found, known = read_label_xml(labels), set(names)
    for name, (_, line) in found.items():
        if name not in known:
            raise DataError(f"{source_name(labels)}:{line}: the label {quoted(name)} is not an attribute of {table.name}")
    return list(found), {name: parent for name, (parent, _) in found.items()}


def read_label_xml(path: PathLike) -> dict[str, tuple[str | None, int]]:
    """The labels of a Mulan label file: name -> (the label that contains it, or None; its line).

    Raises DataError with file and line: no XML, entities, elements other than labels and label, a label without a name or twice.
    """
    name, stack, found = source_name(path), list[str](), dict[str, tuple[str | None, int]]()
    parser = expat.ParserCreate(namespace_separator=" ")

    def start(tag: str, attributes: dict[str, str]) -> None:
        line, kind = parser.CurrentLineNumber, tag.rpartition(" ")[2]
        if kind != ("label" if stack else "labels"):
            raise DataError(f"{name}:{line}: expected {'<label>' if stack else '<labels>'}, got <{kind}>")
        label = attributes.get("name", "")
        if stack and not label:
            raise DataError(f"{name}:{line}: expected a label with a name")
        if label in found:
            raise DataError(f"{name}:{line}: the label {quoted(label)} is given twice, first on line {found[label][1]}")
        if stack:
            found[label] = (stack[-1] or None, line)
        stack.append(label if stack else "")

    def refuse(*_: Any) -> None:
        raise DataError(f"{name}:{parser.CurrentLineNumber}: a label file has no document type and no entities")

    parser.StartElementHandler = start
    parser.EndElementHandler = lambda _: stack.pop()
    parser.StartDoctypeDeclHandler = refuse
    try:
        parser.Parse(read_bytes(path), True)
    except expat.ExpatError as error:
        raise DataError(f"{name}:{error.lineno}: expected XML: {expat.ErrorString(error.code)}") from None
    except (LookupError, ValueError) as error:  # an encoding that is not known
        if isinstance(error, DataError):
            raise
        raise DataError(f"{name}: expected XML: {error}") from None
    if not found:
        raise DataError(f"{name}: expected at least one label, got none")
    return found


def _label_column(table: ArffTable, k: int) -> npt.NDArray[np.int8]:
    """0 and 1 of a label attribute, -1 where the label is missing."""
    one, codes = table.attributes[k], table.column(k)
    missing = np.isnan(codes)
    codes[missing] = 0.0
    values: npt.NDArray[Any] = codes
    if one.kind == "nominal":
        if not set(one.values) <= {"0", "1"}:
            listed = quoted(", ".join(one.values))
            raise DataError(f"{table.name}:{one.line}: label {quoted(one.name)}: expected the values 0 and 1, got {listed}")
        values = np.array([float(value) for value in one.values])[codes.astype(np.int64)]
    elif one.kind != "numeric":
        raise DataError(f"{table.name}:{one.line}: label {quoted(one.name)}: expected the values 0 and 1, got {one.kind}")
    bad = (values != 0.0) & (values != 1.0)
    if bad.any():
        row = int(bad.argmax())
        raise DataError(f"{table.where(row)}: label {quoted(one.name)}: expected 0 or 1, got {values[row]:g}")
    return np.where(missing, -1, values).astype(np.int8)


def feature_columns(table: ArffTable, columns: Sequence[int]) -> tuple[tuple[Integers, Integers, Floats], list[str]]:
    """The features in these columns: row pointers, ids, values; and their names.

    Nominal ones become numbers or one column per value. Raises DataError with file and line for a missing value.
    """
    missing = np.isnan(table.values)
    if missing.any() and (missing := missing & np.isin(table.ids, columns)).any():
        first = int(missing.argmax())
        row = int(np.searchsorted(table.indptr, first, side="right")) - 1
        name = quoted(table.attributes[int(table.ids[first])].name)
        raise DataError(f"{table.where(row)}: attribute {name}: missing value (?); only labels may be missing, fill in features")
    n_nominal = sum(table.attributes[k].kind == "nominal" for k in columns)
    check_table(len(table.lines), n_nominal, table.size, table.name, "nominal features")
    names, counts = list[str](), np.zeros(len(table.lines), np.int64)
    blocks = list[tuple[Integers, Integers | int, Floats]]()
    for k in columns:
        rows, ids, values, own = _features_of(table, k)
        blocks.append((rows, len(names) + ids, values))
        counts[rows] += 1
        names += own
    indptr = ends_of(counts)
    at, found, entries = indptr[:-1].copy(), np.empty(indptr[-1], np.int64), np.empty(indptr[-1])
    for rows, ids, values in blocks:
        found[at[rows]], entries[at[rows]] = ids, values
        at[rows] += 1
    return (indptr, found, entries), names


def _features_of(table: ArffTable, k: int) -> tuple[Integers, Integers | int, Floats, list[str]]:
    """Of one column: the rows with a feature, which one of its own, the value, and the names of its features."""
    one = table.attributes[k]
    if one.kind not in ("numeric", "nominal"):
        raise DataError(f"{table.name}:{one.line}: feature {quoted(one.name)}: expected numeric or nominal, got {one.kind}")
    try:
        numbers = np.array(list(map(float, one.values)))
    except ValueError:
        numbers = np.array([np.nan])
    if one.kind == "numeric" or numbers.tolist() == list(range(len(numbers))):  # the codes are the values themselves
        rows, values = table.entries(k)
        return rows, 0, values, [one.name]
    codes = table.column(k).astype(np.int64)
    if np.isfinite(numbers).all():
        rows = np.flatnonzero(numbers[codes])
        return rows, 0, numbers[codes][rows], [one.name]
    return np.arange(len(codes)), codes, np.ones(len(codes)), [f"{one.name}={value}" for value in one.values]


def features_of(table: ArffTable, labels: Collection[str]) -> list[int]:
    """The columns that are neither these labels nor a hierarchy of them; DataError where there are none."""
    known = set(labels)
    kept = [k for k, one in enumerate(table.attributes) if one.kind != "hierarchical" and one.name not in known]
    if not kept:
        raise DataError(f"{table.name}: every attribute is a label; there are no features")
    return kept


def read_clus(path: Source, *, dag: bool = False, encoding: str = "utf-8") -> MultiLabelData:
    """Read a hierarchical ARFF file, plain or gzip: ``@ATTRIBUTE class hierarchical 1,1/1,1/2,2``, rows end ``...,1/2@2``.

    Labels are the paths, in the order of the declaration; the ancestors that it leaves out follow. Ancestors of a row's labels
    are switched on; where a row has `?` in their place, all its labels are missing (-1 in Y). dag: the declaration lists edges
    parent/child of a directed acyclic graph instead, with `root` above all, and rows name nodes. Raises DataError with file and
    line: no hierarchical attribute or two, a label declared twice or not at all, a cycle, a row without labels.
    """
    table = read_arff(path, text_kinds=("hierarchical",), encoding=encoding)
    columns = [k for k, one in enumerate(table.attributes) if one.kind == "hierarchical"]
    if len(columns) != 1:
        raise DataError(f"{table.name}: expected one attribute of type hierarchical, got {len(columns)}")
    one = table.attributes[columns[0]]
    where = f"{table.name}:{one.line}"
    entries = [entry.strip() for entry in one.rest.split(",")]
    if not all(part for entry in entries for part in entry.split("/")) or len(set(entries)) < len(entries):
        raise DataError(f"{where}: expected labels separated by commas, none empty and none twice, got {quoted(one.rest)}")
    if not dag and (deepest := max(entry.count("/") for entry in entries)) >= _DEEPEST:
        raise DataError(f"{where}: expected paths of at most {_DEEPEST} labels, got one of {deepest + 1}")
    names, edges = _graph(entries, where) if dag else _paths(entries)
    check_table(len(table.lines), len(names), table.size, table.name)
    try:
        hierarchy = LabelHierarchy(len(names), edges, names)
    except DataError as error:
        raise DataError(f"{where}: {error}") from None
    Y = hierarchy.closed(_targets(table, columns[0], one, names))
    parts, features = feature_columns(table, [k for k in range(len(table.attributes)) if k != columns[0]])
    return MultiLabelData(csr(*parts, len(features)), Y, names, features, hierarchy, table.name)


def _paths(entries: Sequence[str]) -> tuple[list[str], list[tuple[int, int]]]:
    """The labels of a tree given by paths, and its edges."""
    names = list(entries)
    known = set(names)
    for entry in entries:
        parts = entry.split("/")
        for k in range(1, len(parts)):
            above = "/".join(parts[:k])
            if above not in known:
                known.add(above)
                names.append(above)
    place = {name: k for k, name in enumerate(names)}
    return names, [(place[name.rpartition("/")[0]], place[name]) for name in names if "/" in name]


def _graph(entries: Sequence[str], where: str) -> tuple[list[str], list[tuple[int, int]]]:
    """The labels of a graph given by edges parent/child; "root" is above all and no label."""
    place: dict[str, int] = {}
    edges = []
    for entry in entries:
        parent, _, child = entry.rpartition("/")
        if parent and child == "root":
            raise DataError(f'{where}: expected "root" above all labels, got {quoted(parent)} above it')
        for name in (parent, child):
            if name not in ("", "root"):
                place.setdefault(name, len(place))
        if parent not in ("", "root"):
            edges.append((place[parent], place[child]))
    return list(place), edges


def _targets(table: ArffTable, column: int, one: Attribute, names: Sequence[str]) -> npt.NDArray[np.integer[Any]]:
    place, texts = {name: k for k, name in enumerate(names)}, table.texts[column]
    Y = np.zeros((len(table.lines), len(names)), np.int8 if "?" in texts.values() else np.uint8)
    for i in range(len(table.lines)):
        text = texts.get(i)
        if text == "?":
            Y[i] = -1
            continue
        if not text:
            raise DataError(f"{table.where(i)}: attribute {quoted(one.name)}: expected labels joined by '@', got none")
        for label in text.split("@"):
            if label not in place:
                raise DataError(f"{table.where(i)}: the label {quoted(label)} is not declared in line {one.line}")
            Y[i, place[label]] = 1
    return Y
