"""The features of multi-label files: ARFF of Mulan, MEKA and CLUS, LIBSVM's text, npz. Labels are not looked at."""

import io
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from structpred.export.light.weights import PredictorError, Rows, from_dense, read_bytes, read_text, source_name
from structpred.io.multilabel.arff import Attribute, arff_format, arff_header, sparse_row, split_values
from structpred.io.text import split_lines
from structpred.runtime.ranges import ends_of


class Examples(NamedTuple):
    """Feature rows, how many features there are, and their names; None where they are numbers."""

    rows: Rows
    n_features: int
    names: list[str] | None


def read_examples(path: str, labels: Sequence[str], n_features: int, zero_based: bool) -> Examples:
    """The features of a file, whose format its name and contents show. labels: attributes of ARFF files that are no features."""
    raw, name = read_bytes(path), source_name(path)
    if raw.startswith(b"PK\x03\x04"):
        return parse_npz(raw, name, n_features)
    text = read_text(path, raw)
    if (format := arff_format(path, text)) is not None:
        return parse_arff(text, name, () if format == "clus" else labels)
    return parse_libsvm(text, name, n_features, zero_based)


def _rows_of(examples: Sequence[Sequence[tuple[int, float]]]) -> Rows:
    """Rows of pairs (feature, value) in ascending order."""
    flat = [pair for example in examples for pair in example]
    ids, values = np.array([k for k, _ in flat], np.int64), np.array([x for _, x in flat], np.float64)
    return Rows(ends_of(np.array([len(example) for example in examples])), ids, values)


def parse_libsvm(text: str, name: str, n_features: int, zero_based: bool) -> Examples:
    """Labels before the first space, then index:value by ascending index; `#` starts a comment."""
    examples = []
    for number, line in enumerate(text.split("\n"), 1):
        example = line.removesuffix("\r").split("#", 1)[0].rstrip().replace("\t", " ")
        if not example:
            continue
        head, _, tail = example.partition(" ")
        pairs, before = [], -1
        for item in (example if ":" in head else tail).split():
            index, colon, value = item.partition(":")
            try:
                k, x = int(index) - (0 if zero_based else 1), float(value)
            except ValueError:
                k, x = -1, np.nan
            if not colon or not before < k < n_features or not np.isfinite(x) or "_" in item:
                raise PredictorError(f"{name}:{number}: expected index:value, ascending, of {n_features} features, got {item!r}")
            pairs.append((k, x))
            before = k
        examples.append(pairs)
    if not examples:
        raise PredictorError(f"{name}: expected at least one example, got none")
    return Examples(_rows_of(examples), n_features, None)


def parse_npz(raw: bytes, name: str, n_features: int) -> Examples:
    """X, or X_data, X_indices, X_indptr and X_shape of a CSR matrix; and feature_names."""
    try:
        with np.load(io.BytesIO(raw), allow_pickle=False) as loaded:
            arrays = {key: loaded[key] for key in loaded.files if key.startswith(("X", "feature_names"))}
        names = [str(one) for one in arrays["feature_names"].ravel()] if "feature_names" in arrays else None
        if "X" in arrays:
            return Examples(from_dense(arrays["X"], n_features, name), n_features, names)
        indptr, columns = arrays["X_indptr"].astype(np.int64), arrays["X_indices"].astype(np.int64)
        counts, n = np.diff(indptr), int(arrays["X_shape"][1])
        at = np.repeat(np.arange(len(counts)), counts) * n + columns
    except (KeyError, ValueError, OSError) as error:
        raise PredictorError(f"{name}: expected an npz file with X or the parts of a CSR matrix: {error}") from None
    order = np.argsort(at, kind="stable")
    if (np.diff(at[order]) == 0).any():
        raise PredictorError(f"{name}: expected a matrix in which no entry comes twice")
    return Examples(Rows(indptr, columns[order], arrays["X_data"].astype(np.float64)[order]), n, names)


#: from a value in the file to the feature's place after the first of its attribute, and its value
Reader = Callable[[str], tuple[int, float]]


def parse_arff(text: str, name: str, labels: Sequence[str]) -> Examples:
    """Numeric and nominal features: nominal values that are numbers become these, others a feature per value."""
    lines = enumerate(split_lines(text), 1)
    _, attributes = arff_header(lines, name, ("hierarchical",))
    readers, firsts, names = dict[int, Reader](), dict[int, int](), list[str]()
    for k, one in enumerate(attributes):
        if one.kind == "hierarchical" or one.name in set(labels):
            continue
        if one.kind not in ("numeric", "nominal"):
            raise PredictorError(f"{name}: feature {one.name!r}: expected numeric or nominal values, got {one.kind}")
        readers[k], own = _reader(one)
        firsts[k] = len(names)
        names += own
    # what a sparse row leaves out of a nominal attribute is its first value
    left_out = {k: read(attributes[k].values[0]) for k, read in readers.items() if attributes[k].kind == "nominal"}
    examples = []
    for number, line in lines:
        row = line.strip()
        if not row or row.startswith("%"):
            continue
        where, sparse = f"{name}:{number}", row.startswith("{")
        given = dict(
            zip(*sparse_row(row, len(attributes), where), strict=True) if sparse else enumerate(split_values(row, where))
        )
        if not sparse and len(given) != len(attributes):
            raise PredictorError(f"{where}: expected values of {len(attributes)} attributes, got {len(given)}: {row[:60]!r}")
        pairs = {firsts[k] + place: x for k, (place, x) in left_out.items() if k not in given}
        for k, value in given.items():
            if k in readers:
                try:
                    place, x = readers[k](value)
                except (KeyError, ValueError):
                    raise PredictorError(f"{where}: attribute {attributes[k].name!r}: cannot be {value[:60]!r}") from None
                pairs[firsts[k] + place] = x
        examples.append([(j, pairs[j]) for j in sorted(pairs) if pairs[j] != 0.0])
    if not examples:
        raise PredictorError(f"{name}: expected at least one row after @data, got none")
    return Examples(_rows_of(examples), len(names), names)


def _reader(one: Attribute) -> tuple[Reader, list[str]]:
    """How the values of an attribute become features, and the names of these."""

    def number(value: str) -> tuple[int, float]:
        x = float(value)
        if not np.isfinite(x) or "_" in value:
            raise ValueError
        return 0, x

    if one.kind == "numeric":
        return number, [one.name]
    code = {value: k for k, value in enumerate(one.values)}
    try:
        known = {value: number(value) for value in one.values}
    except ValueError:
        return lambda value: (code[value], 1.0), [f"{one.name}={value}" for value in one.values]
    return known.__getitem__, [one.name]
