"""Hierarchical multi-label data as CLUS-HMC keeps them: ARFF with one attribute of type hierarchical."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from structpred.data.hierarchy import LabelHierarchy
from structpred.errors import DataError
from structpred.io.multilabel.arff import ArffTable, Attribute, read_arff
from structpred.io.multilabel.data import MultiLabelData, check_table, csr
from structpred.io.multilabel.mulan import feature_columns
from structpred.io.opening import Source
from structpred.io.text import quoted

#: names of labels are whole paths: those above a path of many parts would be as long as the square of its length
_DEEPEST = 100


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
