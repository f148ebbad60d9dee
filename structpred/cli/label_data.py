"""Multi-label data files by format: read them as training data, or as a model expects them."""

import logging
import os
import re
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from structpred.cli.options import LABEL_FORMATS
from structpred.data.hierarchy import LabelHierarchy
from structpred.errors import DataError, ParameterError
from structpred.io.multilabel.arff import read_arff
from structpred.io.multilabel.clus import read_clus
from structpred.io.multilabel.data import MultiLabelData, read_libsvm_multilabel, read_npz_multilabel
from structpred.io.multilabel.mulan import feature_columns, read_mulan
from structpred.io.templates.numbered_names import NumberedNames
from structpred.io.text import quoted, read_bytes, read_text, source_name, split_lines

log = logging.getLogger("structpred.cli")

_ARFF_NAMES = re.compile(r"\.arff(\.gz)?$", re.IGNORECASE)
# blanks, not \s, which runs over line ends: from each of many blank lines to the end of all of them
_HIERARCHICAL = re.compile(r"^[ \t]*+@attribute[ \t].*\bhierarchical\b", re.IGNORECASE | re.MULTILINE)
_RELATION = re.compile(r"^[ \t]*+@relation\b", re.IGNORECASE | re.MULTILINE)
_DATA = re.compile(r"^[ \t]*+@data\b", re.IGNORECASE | re.MULTILINE)


class Source(NamedTuple):
    """How the training data are read. labels: of ARFF files, a label XML or a number as text; None: the XML beside the file."""

    format: str | None = None
    labels: str | None = None
    hierarchy: str | None = None
    zero_based: bool = False
    encoding: str = "utf-8"


def label_format(path: str, given: str | None) -> str:
    """The format that is given, or else what name and contents show. Raises ParameterError for formats of other data."""
    if given is not None:
        if given not in LABEL_FORMATS:
            raise ParameterError(f"multi-label data: --format must be {', '.join(LABEL_FORMATS)}, not {given}")
        return given
    if path == "-":
        raise ParameterError("data from standard input need --format: a stream can be read only once")
    if path.lower().endswith(".npz"):
        return "npz"
    raw = read_bytes(path)
    if raw.startswith(b"PK\x03\x04"):
        return "npz"
    head = raw.decode("utf-8", errors="replace")
    head = head[: end.start()] if (end := _DATA.search(head)) else head
    if _ARFF_NAMES.search(path) or _RELATION.search(head):
        return "clus" if _HIERARCHICAL.search(head) else "arff"
    return "libsvm"


def read_training(path: str, source: Source) -> tuple[MultiLabelData, dict[str, Any]]:
    """The data, and what a model file says of how they were read. Raises DataError, naming file and line, ParameterError."""
    start = time.perf_counter()
    format = label_format(path, source.format)
    if source.labels is not None and format != "arff":
        raise ParameterError(f"--labels says which attributes of an ARFF file are labels; {format} says so itself")
    if source.zero_based and format != "libsvm":
        raise ParameterError(f"--zero-based is for --format libsvm, not for {format}")
    labels = None
    if format == "arff":
        labels = label_source(path) if source.labels is None else source.labels
        data = read_mulan(path, int(labels) if _is_number(labels) else labels, encoding=source.encoding)
    elif format == "libsvm":
        data = read_libsvm_multilabel(path, zero_based=source.zero_based, encoding=source.encoding)
    elif format == "npz":
        data = read_npz_multilabel(path)
    else:
        data = read_clus(path, dag=format == "clus-dag", encoding=source.encoding)
    if source.hierarchy is not None:
        data = with_hierarchy(data, source.hierarchy, source.encoding)
    numbered = isinstance(data.feature_names, NumberedNames) or all(name.isdecimal() for name in data.feature_names)
    named = None if numbered else list(data.feature_names)
    log.info(
        "read %s: %d examples, %d features, %d labels, %.2f of them on in an example%s, format %s (%.1f s)",
        data.name, len(data), data.X.shape[1], len(data.label_names), data.cardinality,
        "" if data.hierarchy is None else f", hierarchy of depth {int(data.hierarchy.depths.max())}",
        format, time.perf_counter() - start,
    )  # fmt: skip
    return data, {"format": format, "labels": labels, "zero_based": source.zero_based, "feature_names": named}


def label_source(path: str) -> str:
    """The label XML that lies beside an ARFF file: of its name, or of the part before the last - or _.

    Raises DataError, naming what was looked for, where there is none.
    """
    if path == "-":
        raise DataError("<stdin>: ARFF from a stream needs --labels: a label XML, or how many of the last attributes are labels")
    stem = _ARFF_NAMES.sub("", path)
    folder, name = os.path.split(stem)
    names = [name]
    while found := re.match(r"(.+)[-_.][^-_.]*$", names[-1]):
        names.append(found[1])
    for candidate in names:
        for ending in (".xml", ".xml.gz"):
            if os.path.isfile(beside := os.path.join(folder, candidate + ending)):
                return beside
    looked = " or ".join(f"{candidate}.xml" for candidate in names)
    raise DataError(
        f"{path}: which attributes are labels? There is no {looked} (.gz) beside it; give --labels FILE.xml, or --labels N for "
        "the last N attributes (-N: the first)"
    )


def with_hierarchy(data: MultiLabelData, path: str, encoding: str = "utf-8") -> MultiLabelData:
    """The data with the hierarchy of a file, a line an edge: parent, tab (or space), child; # comments. Rows become closed.

    Raises DataError with file and line: other lines, labels that the data do not have, an edge twice; and for a cycle.
    """
    place = {name: k for k, name in enumerate(data.label_names)}
    edges: dict[tuple[int, int], int] = {}
    name = source_name(path)
    for number, line in enumerate(split_lines(read_text(path, encoding)), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        pair = line.split("\t") if "\t" in line else line.split()
        if len(pair) != 2:
            raise DataError(f"{name}:{number}: expected a parent and a child, separated by a tab, got {quoted(line)}")
        for label in pair:
            if label.strip() not in place:
                raise DataError(f"{name}:{number}: {data.name} has no label {quoted(label.strip())}")
        edge = (place[pair[0].strip()], place[pair[1].strip()])
        if edge in edges:
            raise DataError(f"{name}:{number}: duplicate edge, first given on line {edges[edge]}")
        edges[edge] = number
    try:
        hierarchy = LabelHierarchy(len(place), list(edges), data.label_names)
    except DataError as error:
        raise DataError(f"{name}: {error}") from None
    return replace(data, Y=hierarchy.closed(data.Y), hierarchy=hierarchy)


class Reading(NamedTuple):
    """What a model knows of its data. label_names, n_features: as trained; facts: what `read_training` told it."""

    label_names: list[str]
    n_features: int
    hierarchy: LabelHierarchy | None
    facts: dict[str, Any]

    @classmethod
    def of_model(cls, model: Any) -> "Reading":
        """From a fitted estimator, from the shell or from Python."""
        hierarchy = getattr(model, "hierarchy_", None)
        return cls(list(model.label_names_), model.n_features_in_, hierarchy, dict(getattr(model, "reader_", None) or {}))


def read_rows(reading: Reading, path: str, format: str | None, encoding: str = "utf-8") -> Any:
    """The features of a file (CSR), for prediction: labels may be there or not, and are not looked at in ARFF files."""
    kind = label_format(path, format)
    if kind not in ("arff", "clus", "clus-dag"):
        return read_examples(reading, path, kind, labelled=False, encoding=encoding).X
    table = read_arff(path, text_kinds=("hierarchical",), encoding=encoding)
    known = set(reading.label_names) if kind == "arff" else set()
    kept = [k for k, one in enumerate(table.attributes) if one.kind != "hierarchical" and one.name not in known]
    if not kept:
        raise DataError(f"{table.name}: every attribute is a label; there are no features")
    X, names = feature_columns(table, kept)
    _check_features(reading, names, table.name)
    return X


def read_examples(
    reading: Reading, path: str, format: str | None, *, labelled: bool = True, encoding: str = "utf-8"
) -> MultiLabelData:
    """Examples with the labels of the model, in its order. labelled: False leaves labels as they are.

    Raises DataError, naming the file: other features than in training, labels that the model does not know, or that are missing.
    """
    kind = label_format(path, format)
    names = reading.label_names
    if kind == "arff":
        data = read_mulan(path, names, encoding=encoding)
    elif kind == "libsvm":
        zero_based = bool(reading.facts.get("zero_based"))
        known = names if labelled else None
        data = read_libsvm_multilabel(
            path, label_names=known, n_features=reading.n_features, zero_based=zero_based, encoding=encoding
        )
    else:
        data = read_npz_multilabel(path) if kind == "npz" else read_clus(path, dag=kind == "clus-dag", encoding=encoding)
    _check_features(reading, data.feature_names, data.name)
    if not labelled:
        return data
    Y = data.Y[:, _columns(names, data)]
    if reading.hierarchy is not None:
        Y = reading.hierarchy.closed(Y)
    return MultiLabelData(data.X, np.ascontiguousarray(Y), names, data.feature_names, reading.hierarchy, data.name)


def _columns(names: Sequence[str], data: MultiLabelData) -> list[int]:
    """Where the labels of the model are in the data."""
    place, known = {name: k for k, name in enumerate(data.label_names)}, set(names)
    unknown = [name for name in data.label_names if name not in known]
    missing = [name for name in names if name not in place]
    if unknown or missing:
        what = f"{quoted(unknown[0])} is not among them" if unknown else f"{quoted(missing[0])} is missing"
        raise DataError(f"{data.name}: expected the {len(names)} labels that the model was trained with, but {what}")
    return [place[name] for name in names]


def _check_features(reading: Reading, names: Sequence[str], source: str) -> None:
    known = reading.facts.get("feature_names")
    if len(names) != reading.n_features:
        raise DataError(f"{source}: expected the {reading.n_features} features of the training data, got {len(names)}")
    if known is None or isinstance(names, NumberedNames) or all(name.isdecimal() for name in names):
        return
    for k, (one, other) in enumerate(zip(known, names, strict=True)):
        if one != other:
            raise DataError(f"{source}: feature {k} is {quoted(other)}, but {quoted(one)} in the training data")


def size_of(path: str) -> float:
    """Megabytes of a file."""
    return Path(path).stat().st_size / 1e6


def _is_number(text: str) -> bool:
    return re.fullmatch(r"-?\d{1,9}", text) is not None
