"""Multi-label data of any format: read as training data, or as a model expects them."""

import os
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from structpred.data.hierarchy import LabelHierarchy
from structpred.errors import DataError, ParameterError
from structpred.io import opening
from structpred.io.multilabel.arff import ARFF_NAMES, arff_format, read_arff
from structpred.io.multilabel.data import MultiLabelData, csr, read_libsvm_multilabel, read_npz_multilabel
from structpred.io.multilabel.mulan import feature_columns, features_of, read_clus, read_mulan
from structpred.io.opening import open_bytes
from structpred.io.string_codes import NumberedNames
from structpred.io.text import LONGEST_LINE, quoted, read_text, source_name, split_lines, stream_name


class Source(NamedTuple):
    """How the training data are read.

    labels: of ARFF files, a label XML or a number as text; None: the XML next to the file. label_names, n_features: of LIBSVM
    files; None: those that the file shows.
    """

    format: str | None = None
    labels: str | None = None
    hierarchy: str | None = None
    zero_based: bool = False
    encoding: str = "utf-8"
    label_names: Sequence[str] | None = None
    n_features: int | None = None


def read_training(path: opening.Source, source: Source) -> tuple[MultiLabelData, dict[str, Any]]:
    """The data, and what a model file says of how they were read. Raises DataError, naming file and line, ParameterError."""
    name = _path_of(path)
    format = label_format(name, source.format)
    if source.labels is not None and format != "arff":
        raise ParameterError(f"--labels says which attributes of an ARFF file are labels; {format} says so itself")
    if source.zero_based and format != "libsvm":
        raise ParameterError(f"--zero-based is for --format libsvm, not for {format}")
    labels = None
    if format == "arff":
        labels = label_source(name) if source.labels is None else source.labels
    counted = labels is not None and re.fullmatch(r"-?\d{1,9}", labels)
    data = _read(path, source._replace(format=format), int(labels or 0) if counted else labels)
    if source.hierarchy is not None:
        data = with_hierarchy(data, source.hierarchy, source.encoding)
    numbered = isinstance(data.feature_names, NumberedNames) or all(name.isdecimal() for name in data.feature_names)
    named = None if numbered else list(data.feature_names)
    return data, {"format": format, "labels": labels, "zero_based": source.zero_based, "feature_names": named}


def _read(path: opening.Source, source: Source, labels: str | int | Sequence[str] | None) -> MultiLabelData:
    """The data in the format of `source`. labels: those of an ARFF file, as `read_mulan` takes them."""
    if labels is not None:
        return read_mulan(path, labels, encoding=source.encoding)
    if source.format == "libsvm":
        return read_libsvm_multilabel(
            path, label_names=source.label_names, n_features=source.n_features, zero_based=source.zero_based,
            encoding=source.encoding,
        )  # fmt: skip
    if source.format == "npz":
        return read_npz_multilabel(_path_of(path))
    return read_clus(path, dag=source.format == "clus-dag", encoding=source.encoding)


def _path_of(path: opening.Source) -> str:
    """The path as it was given, - among them; of an open file its name."""
    return path if isinstance(path, str) else stream_name(path)


class Reading(NamedTuple):
    """What a model knows of its data. label_names, n_features: as trained; facts: what `read_training` found."""

    label_names: list[str]
    n_features: int
    hierarchy: LabelHierarchy | None
    facts: dict[str, Any]

    @classmethod
    def of_model(cls, model: Any) -> "Reading":
        """From a fitted estimator, from the shell or from Python."""
        hierarchy = getattr(model, "hierarchy_", None)
        return cls(list(model.label_names_), model.n_features_in_, hierarchy, dict(getattr(model, "reader_", None) or {}))


def read_rows(reading: Reading, path: opening.Source, format: str | None, encoding: str = "utf-8") -> Any:
    """The features of a file (CSR), for prediction: labels may be there or not, and are not looked at in ARFF files."""
    kind = label_format(_path_of(path), format)
    if kind not in ("arff", "clus", "clus-dag"):
        return read_examples(reading, path, kind, labelled=False, encoding=encoding).X
    table = read_arff(path, text_kinds=("hierarchical",), encoding=encoding)
    parts, names = feature_columns(table, features_of(table, reading.label_names if kind == "arff" else ()))
    _check_features(reading, names, table.name)
    return csr(*parts, len(names))


def read_examples(
    reading: Reading, path: opening.Source, format: str | None, *, labelled: bool = True, encoding: str = "utf-8"
) -> MultiLabelData:
    """Examples with the labels of the model, in its order. labelled: False leaves labels as they are.

    Raises DataError, naming the file: other features than in training, labels that the model does not know or that are not
    columns, and, where they are asked for, labels that are missing in an example.
    """
    kind = label_format(_path_of(path), format)
    names = reading.label_names
    zero_based, known = bool(reading.facts.get("zero_based")), names if labelled else None
    source = Source(kind, None, None, zero_based, encoding, known, reading.n_features)
    data = _read(path, source, names if kind == "arff" else None)
    _check_features(reading, data.feature_names, data.name)
    if not labelled:
        return data
    Y = data.Y[:, _columns(names, data)]
    if (missing := np.argwhere(Y < 0)).size:
        i, k = missing[0].tolist()
        raise DataError(f"{data.name}: example {i + 1}: label {quoted(names[k])} is missing; only training data may lack labels")
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


LABEL_FORMATS = ("arff", "libsvm", "npz", "clus", "clus-dag")


def label_format(path: str, given: str | None) -> str:
    """The format that is given, else the one that name and contents show. Raises ParameterError for formats of other data."""
    if given is not None:
        if given not in LABEL_FORMATS:
            raise ParameterError(f"multi-label data: --format must be {', '.join(LABEL_FORMATS)}, not {given}")
        return given
    if path == "-":
        raise ParameterError("data from standard input need --format: a stream can be read only once")
    if path.lower().endswith(".npz"):
        return "npz"
    with open_bytes(path, path) as stream:
        raw = stream.read(LONGEST_LINE)
    if raw.startswith(b"PK\x03\x04"):
        return "npz"
    return arff_format(path, raw.decode("utf-8-sig", errors="replace")) or "libsvm"


def label_source(path: str) -> str:
    """The label XML that lies next to an ARFF file: of its name, or of the part before the last - or _.

    Raises DataError, naming what was looked for, where there is none.
    """
    if path == "-":
        raise DataError("<stdin>: ARFF from a stream needs --labels: a label XML, or how many of the last attributes are labels")
    stem = ARFF_NAMES.sub("", path)
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
        f"{path}: which attributes are labels? There is no {looked} (.gz) next to it; give --labels FILE.xml, or --labels N for "
        "the last N attributes (-N: the first)"
    )


def with_hierarchy(data: MultiLabelData, path: str, encoding: str = "utf-8") -> MultiLabelData:
    """The data with the hierarchy of a file, a line per edge: parent, tab (or space), child; # comments. Rows become closed.

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
