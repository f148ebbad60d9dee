"""The weights of an exported program, its command line, and sums of weights in the order in which training takes them."""

import argparse
import hashlib
import io
import json
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from structpred.data.tokens import Part, in_front
from structpred.errors import DataError
from structpred.runtime.ranges import ends_of

# An exported program says here who wrote it, and the file beside it that has its weights, with its checksum.
VERSION = ""
WEIGHTS = ""
SHA256 = ""

Arrays = dict[str, npt.NDArray[Any]]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

#: the score of what is forbidden, and what is too low to be anything else
FORBIDDEN = -1e30
LOWEST = 0.5 * FORBIDDEN

#: something is wrong with the data or with a file; the message says what and where
PredictorError = DataError


class Rows(NamedTuple):
    """Feature rows: row r has the features ids[indptr[r]:indptr[r + 1]] with these values; values None: all are 1."""

    indptr: Ints
    ids: npt.NDArray[Any]
    values: npt.NDArray[Any] | None


#: the labels of tokens, one after the other, by their features and by where sequences begin
Decoder = Callable[[Rows, Ints], list[str]]


def read_weights(path: str, sha256: str) -> tuple[dict[str, Any], Arrays]:
    """The settings and arrays of a weights file. PredictorError where it cannot be read, or belongs to another program."""
    try:
        with open(path, "rb") as stream:
            raw = stream.read()
    except OSError as error:
        raise PredictorError(
            f"{path}: the weights of this program cannot be read: {error.strerror}; structpred export wrote two files: "
            "keep them in one folder, under their own names"
        ) from None
    if hashlib.sha256(raw).hexdigest() != sha256:
        raise PredictorError(f"{path}: expected the weights that were written with this program, got others; export both again")
    with np.load(io.BytesIO(raw), allow_pickle=False) as loaded:
        arrays = {name: loaded[name] for name in loaded.files}
    return json.loads(arrays.pop("settings").tobytes()), arrays


def texts_of(arrays: Arrays, name: str) -> list[str]:
    """A list of strings, which the file holds as JSON."""
    return json.loads(arrays[f"text.{name}"].tobytes())


def behind_arrays(rows: Rows, parts: Sequence[Part], arrays: Arrays) -> Rows:
    """The features of tokens, behind the columns of their arrays, standardised as the model does."""
    return Rows(*in_front(rows, parts, arrays["arrays.scale.shift"], arrays["arrays.scale.factor"])) if parts else rows


def row_sums(table: npt.NDArray[Any], rows: Rows, chosen: Ints) -> Floats:
    """For each chosen row the sum of its features' rows of the table times their values, float64, in the order of the features.

    One feature of all rows at a time, the rows with most features first: each sum is the same to the last bit as one by one.
    """
    starts = rows.indptr[chosen]
    counts = rows.indptr[chosen + 1] - starts
    order = np.argsort(-counts, kind="stable")
    starts, counts = starts[order], counts[order]
    sums = np.zeros((len(chosen), table.shape[1]))
    for j in range(int(counts[0]) if len(counts) else 0):
        n = int(np.searchsorted(-counts, -j))
        at = starts[:n] + j
        if rows.values is None:
            sums[:n] += table[rows.ids[at]]
        else:
            sums[:n] += rows.values[at].astype(np.float64)[:, None] * table[rows.ids[at]]
    out = np.empty_like(sums)
    out[order] = sums
    return out


def from_dense(matrix: Any, n_columns: int, sample: str) -> Rows:
    """A 2-d array of numbers as rows without zeros. PredictorError for another shape, and for values that are not finite."""
    dense = np.asarray(matrix.toarray() if hasattr(matrix, "toarray") else matrix)
    if dense.ndim != 2 or dense.dtype.kind not in "fiub":
        raise PredictorError(f"{sample}: expected a 2-d array of numbers, got {dense.ndim}-d {dense.dtype}")
    if dense.shape[1] != n_columns:
        raise PredictorError(f"{sample}: expected {n_columns} feature columns, got {dense.shape[1]}")
    numbers = dense.astype(np.float64)
    if not np.isfinite(numbers).all():
        raise PredictorError(f"{sample}: features must be finite")
    at, columns = np.nonzero(numbers)
    return Rows(ends_of(np.bincount(at, minlength=len(numbers))), columns, numbers[at, columns])


def beside(program: str) -> tuple[dict[str, Any], Arrays]:
    """The settings and arrays that belong to the program in this file."""
    return read_weights(os.path.join(os.path.dirname(os.path.abspath(program)), WEIGHTS), SHA256)


def run(predict_file: Callable[[str], str], what: str) -> int:
    """The command line of a program: FILE [-o OUTPUT]; returns the exit code."""
    parser = argparse.ArgumentParser(description=f"{what} Written by structpred {VERSION}; needs NumPy alone.")
    parser.add_argument("file", metavar="FILE", help="the data; - is standard input; gzip is unpacked")
    parser.add_argument("-o", "--output", default="-", metavar="OUTPUT", help="where to write; default: standard output")
    given = parser.parse_args()
    try:
        raw = predict_file(given.file).encode()
        if given.output == "-":
            sys.stdout.buffer.write(raw)
            sys.stdout.buffer.flush()
            return 0
        with open(given.output, "wb") as stream:
            stream.write(raw)
    except PredictorError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    except BrokenPipeError:  # the reader has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as error:
        sys.stderr.write(f"error: {error.filename or 'standard output'}: {error.strerror}\n")
        return 1
    return 0
