"""The features of multi-label files: ARFF of Mulan, MEKA and CLUS, LIBSVM's text, npz. Labels are not looked at."""

import io
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from structpred.export.light.weights import PredictorError, Rows, from_dense, read_bytes, read_text, source_name
from structpred.io.multilabel.arff import arff_format, parse_arff
from structpred.io.multilabel.data import LibsvmRows
from structpred.io.multilabel.mulan import feature_columns, features_of


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
        table = parse_arff(text, name, ("hierarchical",))
        rows, names = feature_columns(table, features_of(table, () if format == "clus" else labels))
        return Examples(Rows(*rows), len(names), names)
    found = LibsvmRows(name, zero_based, n_features)
    for _ in found.read(text):
        pass
    return Examples(Rows(*map(np.asarray, (found.indptr, found.indices, found.values))), n_features, None)


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
