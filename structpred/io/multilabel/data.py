"""Multi-label data sets, and two of their formats: LIBSVM's text and NumPy's npz."""

import os
import sys
from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from structpred.data.hierarchy import LabelHierarchy
from structpred.errors import DataError
from structpred.io.opening import Source, check_unpacked, limit_of_unpacking
from structpred.io.string_codes import NumberedNames, StringCodes
from structpred.io.text import quoted, read_text, source_name, split_lines, stream_name
from structpred.runtime.memory import check_fits

#: the largest number of features that a file may show by its indices alone: a few bytes of text can name any
MOST_FEATURES = 1 << 27
#: labels are kept as a table; a larger one than this must not be more than 20 times its file
_SMALL_TABLE, _TABLE_RATIO = 64 << 20, 20
#: labels that are looked at, and examples whose labels go into the table, at a time
_CHUNK = 1 << 16
#: an array without entries may have axes of this number of entries, whatever the size of its file
_SMALL_AXES = 1 << 20


def check_table(n_rows: int, n_columns: int, size: int, name: str, kind: str = "labels") -> None:
    """Raise DataError for a table out of all proportion to its file, of `size` bytes or characters."""
    if n_rows * n_columns > max(_SMALL_TABLE, _TABLE_RATIO * size):
        raise DataError(
            f"{name}: {n_rows:,} examples with {n_columns:,} {kind} would make a table of {n_rows * n_columns:,} entries, more "
            f"than {_TABLE_RATIO} times the file; are these {kind}, or numbers of the examples?"
        )


def label_table(Y: npt.NDArray[Any]) -> npt.NDArray[np.integer[Any]]:
    """0 and 1 as uint8; as int8 where some labels are -1, not known."""
    return Y.astype(np.int8 if (Y < 0).any() else np.uint8)


@dataclass(frozen=True, eq=False)
class MultiLabelData:
    """Examples with several labels each.

    X: a SciPy CSR array (n, d) of float64. Y: uint8 (n, n_labels), 1 where the label is on; or int8, with -1 where it is not
    known. label_names, feature_names: one a column. hierarchy: over the labels, or None; rows of Y are then closed: a label that
    is on has its parents on. name: the source, for messages. Raises DataError where these do not fit each other.
    """

    X: Any
    Y: npt.NDArray[np.integer[Any]]
    label_names: list[str]
    feature_names: Sequence[str]
    hierarchy: LabelHierarchy | None = None
    name: str = "data"

    def __post_init__(self) -> None:
        n, d = self.X.shape
        if self.Y.ndim != 2 or len(self.Y) != n:
            raise DataError(f"{self.name}: {n} rows of features but labels of shape {self.Y.shape}")
        if len(self.label_names) != self.Y.shape[1] or len(self.feature_names) != d:
            raise DataError(
                f"{self.name}: {self.Y.shape[1]} labels with {len(self.label_names)} names, {d} features with "
                f"{len(self.feature_names)} names"
            )
        for names, what in ((self.label_names, "label"), (self.feature_names, "feature")):
            if not isinstance(names, NumberedNames) and len(set(names)) < len(names):
                twice = next(name for name, count in Counter(names).items() if count > 1)
                raise DataError(f"{self.name}: the {what} name {quoted(twice)} comes more than once")
        if self.hierarchy is not None and self.hierarchy.n != self.Y.shape[1]:
            raise DataError(f"{self.name}: {self.Y.shape[1]} labels but a hierarchy of {self.hierarchy.n}")

    def __len__(self) -> int:
        """The number of examples."""
        return len(self.Y)

    @property
    def cardinality(self) -> float:
        """The mean number of labels of an example that are known to be on."""
        return float((self.Y == 1).sum() / max(len(self.Y), 1))

    def take(self, rows: npt.ArrayLike) -> "MultiLabelData":
        """Some of the examples, by number or by mask."""
        chosen = np.asarray(rows)
        chosen = np.flatnonzero(chosen) if chosen.dtype == np.bool_ else chosen.astype(np.int64)
        names = (self.label_names, self.feature_names)
        return MultiLabelData(self.X[chosen], self.Y[chosen], *names, self.hierarchy, self.name)


def read_libsvm_multilabel(
    path: Source, *, label_names: Sequence[str] | None = None, n_features: int | None = None, zero_based: bool = False,
    encoding: str = "utf-8",
) -> MultiLabelData:  # fmt: skip
    """Read LIBSVM's multi-label text: ``1,3 4:0.5 7:1``, labels before the first space, then index:value in ascending order.

    path: or an open binary file. A line without labels begins with a space. `#` starts a comment.

    label_names: the labels and their order; None: those of the file, as numbers if they are such, else by the alphabet.
    n_features: None for the largest index, which may then be 2**27 at most. zero_based: whether indices begin at 0. Raises
    DataError with file and line.
    """
    text = read_text(path, encoding)
    name = stream_name(path)
    rows = LibsvmRows(name, zero_based, n_features)
    codes, labels = StringCodes(), array("i")
    unchecked = _CHUNK
    lines, ends = array("i"), array("i", [0])  # a list for each example would take many times the memory of a short line
    for number, own in rows.read(text):
        labels.extend(map(codes.__getitem__, own))
        lines.append(number)
        ends.append(len(labels))
        if len(labels) > unchecked:  # before the names of far too many labels fill the memory
            check_table(len(lines), len(codes), len(text), name)
            unchecked += _CHUNK
    names = ordered_labels(codes) if label_names is None else [str(label) for label in label_names]
    place = {label: k for k, label in enumerate(names)}
    check_table(len(lines), len(names), len(text), name)
    for label, code in codes.items():
        if label not in place:
            number = lines[bisect_right(ends, labels.index(code)) - 1]
            known = f"known are {len(names)}: {', '.join(names[:5])}, ..."
            raise DataError(f"{name}:{number}: unknown label {quoted(label)}; {known}")
    columns = np.fromiter(map(place.__getitem__, codes), np.int32, len(codes))
    Y = _label_table(columns, np.asarray(labels), np.asarray(ends), len(names))
    d = max(rows.indices, default=-1) + 1 if n_features is None else n_features
    X = csr(rows.indptr, rows.indices, rows.values, d)
    return MultiLabelData(X, Y, names, NumberedNames(rows.first, d), None, name)


def ordered_labels(labels: Iterable[str]) -> list[str]:
    """Names of labels as LIBSVM data have them: by number if they are numbers, else by the alphabet."""
    try:
        return sorted(labels, key=lambda label: (int(label), label))
    except ValueError:
        return sorted(labels)


def _label_table(columns: npt.NDArray[np.int32], codes: npt.NDArray[np.int32], ends: npt.NDArray[np.int32], n: int) -> Any:
    """The table of n labels. columns: of each code. codes: of all examples, which `ends` separates."""
    Y = np.zeros((len(ends) - 1, n), np.uint8)
    for start in range(0, len(Y), _CHUNK):
        bounds = ends[start : start + _CHUNK + 1]
        rows = np.repeat(np.arange(start, start + len(bounds) - 1), np.diff(bounds))
        Y[rows, columns[codes[bounds[0] : bounds[-1]]]] = 1
    return Y


class LibsvmRows:
    """Collects the rows of the file; says what is wrong with a line."""

    def __init__(self, name: str, zero_based: bool, n_features: int | None) -> None:
        self.name, self.first, self.n_features = name, 0 if zero_based else 1, n_features
        self.indptr, self.indices, self.values = array("q", [0]), array("q"), array("d")

    def read(self, text: str) -> Iterator[tuple[int, list[str]]]:
        """Take in all examples; of each the line and the labels. Raises DataError where there are none."""
        for number, line in enumerate(split_lines(text), 1):
            if example := line.split("#", 1)[0].rstrip():
                yield number, self._add(number, example)
        if len(self.indptr) == 1:
            raise DataError(f"{self.name}: expected at least one example, got none")

    def _add(self, number: int, text: str) -> list[str]:
        head, _, tail = text.partition(" ") if "\t" not in text else text.replace("\t", " ").partition(" ")
        labels = head.split(",") if head else []
        if ":" in head:  # no labels, and no space in front either
            labels, tail = [], text.replace("\t", " ")
        if "" in labels or len(set(labels)) < len(labels):
            self._refuse(number, "expected labels separated by single commas, none twice", head)
        before = -1
        for item in tail.split():
            index, colon, value = item.partition(":")
            if not colon:
                self._refuse(number, "expected index:value", item)
            before = self._pair(number, item, index, value, before)
        self.indptr.append(len(self.indices))
        return labels

    def _pair(self, number: int, item: str, index: str, value: str, before: int) -> int:
        try:
            column, x = int(index) - self.first, float(value)
        except ValueError:
            column, x = -1, np.nan
        if np.isnan(x) or "_" in item:
            self._refuse(number, "expected index:value, a whole number and a number", item)
        if column < 0:
            self._refuse(number, f"expected an index of at least {self.first} (give zero_based=True if they begin at 0)", item)
        if column <= before:
            self._refuse(number, "expected indices in ascending order", item)
        if column >= (most := MOST_FEATURES if self.n_features is None else self.n_features):
            hint = " (n_features=N allows larger ones)" if self.n_features is None else ""
            self._refuse(number, f"expected an index of at most {most - 1 + self.first}{hint}", item)
        if not np.isfinite(x):
            self._refuse(number, "expected a finite value", item)
        self.indices.append(column)
        self.values.append(x)
        return column

    def _refuse(self, number: int, expected: str, came: str) -> NoReturn:
        raise DataError(f"{self.name}:{number}: {expected}, got {quoted(came)}")


def csr(indptr: npt.ArrayLike, ids: npt.ArrayLike, values: npt.ArrayLike, n_columns: int) -> Any:
    """Rows as a matrix of SciPy."""
    from scipy import sparse

    parts = (np.asarray(values), np.asarray(ids), np.asarray(indptr))
    return sparse.csr_array(parts, shape=(len(parts[2]) - 1, n_columns))


def read_npz_multilabel(path: str | os.PathLike[str]) -> MultiLabelData:
    """Read an npz file: X, or X_data, X_indices, X_indptr and X_shape of a CSR matrix; Y (n, n_labels) of 0 and 1, -1
    where the label is missing.

    Also read where they are there: label_names, feature_names (arrays of text), and hierarchy, edges (parent, child) of labels.
    Nothing is unpickled. Raises DataError, naming the file, for anything else.
    """
    name = source_name(path)
    arrays = _load_arrays(path, name)
    if "Y" not in arrays or ("X" not in arrays and "X_data" not in arrays):
        raise DataError(
            f"{name}: expected the arrays X (or X_data, X_indices, X_indptr, X_shape) and Y, got {', '.join(arrays) or 'none'}"
        )
    X, Y = _features(arrays, name), arrays["Y"]
    if Y.ndim != 2 or Y.dtype.kind not in "biuf" or not ((Y == 0) | (Y == 1) | (Y == -1)).all():
        raise DataError(f"{name}: expected Y as a 2-d array of 0 and 1, or -1 (missing), got {Y.dtype} of shape {Y.shape}")
    if not np.isfinite(X.data).all():
        raise DataError(f"{name}: X has values that are not finite")
    labels = _names(arrays, "label_names", name) if "label_names" in arrays else list(NumberedNames(0, Y.shape[1]))
    features = _names(arrays, "feature_names", name) if "feature_names" in arrays else NumberedNames(0, X.shape[1])
    try:
        hierarchy = LabelHierarchy(Y.shape[1], arrays["hierarchy"], labels) if "hierarchy" in arrays else None
    except DataError as error:
        raise DataError(f"{name}: {error}") from None
    Y = label_table(Y) if hierarchy is None else hierarchy.closed(Y)
    return MultiLabelData(X, Y, labels, features, hierarchy, name)


def _load_arrays(path: str | os.PathLike[str], name: str) -> dict[str, npt.NDArray[Any]]:
    import tokenize
    import zipfile
    import zlib

    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
            check_unpacked(size, os.path.getsize(path), name, limit_of_unpacking())
            check_fits(2 * size, f"the arrays of {name}")
            for entry in archive.infolist():
                with archive.open(entry) as stream:
                    _check_header(stream, entry.file_size, f"{name}: {entry.filename}")
        with np.load(path, allow_pickle=False) as loaded:
            return {key: loaded[key] for key in loaded.files}
    except DataError:
        raise
    except FileNotFoundError:
        raise DataError(f"{name}: there is no such file") from None
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile, zlib.error, MemoryError, NotImplementedError,
            RuntimeError, SyntaxError, TypeError, tokenize.TokenError) as error:  # fmt: skip
        raise DataError(f"{name}: expected an npz file without pickled objects: {error}") from None


def _check_header(stream: Any, size: int, name: str) -> None:
    """An array must not claim to be larger than its entry is."""
    read = {1: np.lib.format.read_array_header_1_0, 2: np.lib.format.read_array_header_2_0}
    version = np.lib.format.read_magic(stream)
    if version[0] not in read:
        raise DataError(f"{name}: expected a NumPy array of format version 1 or 2, got {version}")
    shape, _, dtype = read[version[0]](stream)
    if dtype.hasobject:
        raise DataError(f"{name}: expected numbers or text, got pickled objects")
    # an axis of no length, or entries of no bytes, would let the others claim anything
    if prod(shape) * dtype.itemsize > size or prod(k or 1 for k in shape) > max(size, _SMALL_AXES):
        raise DataError(f"{name}: the array claims the shape {shape}, which is more than the file holds")


def _names(arrays: dict[str, npt.NDArray[Any]], key: str, name: str) -> list[str]:
    """An array of text or of whole numbers as a list of strings."""
    names = arrays[key].ravel()
    if names.dtype.kind not in "Uiu":
        raise DataError(f"{name}: expected {key} as an array of text, got {names.dtype}")
    if names.dtype.kind == "U":
        codes = np.ascontiguousarray(names).view(names.dtype.str.replace(f"U{names.dtype.itemsize // 4}", "u4"))
        if ((codes > sys.maxunicode) | ((codes >= 0xD800) & (codes < 0xE000))).any():
            raise DataError(f"{name}: expected {key} as an array of text, got characters that Unicode does not have")
    return [str(one) for one in names]


def _features(arrays: dict[str, npt.NDArray[Any]], name: str) -> Any:
    from scipy import sparse

    if "X" in arrays:
        X: Any = arrays["X"]
        if X.ndim != 2 or X.dtype.kind not in "biuf":
            raise DataError(f"{name}: expected X as a 2-d array of numbers, got {X.dtype} of shape {X.shape}")
        return sparse.csr_array(X.astype(np.float64))
    try:
        parts = [arrays[key] for key in ("X_data", "X_indices", "X_indptr")]
        if parts[0].dtype.kind not in "biuf" or any(part.dtype.kind not in "iu" for part in parts[1:]):
            raise TypeError(f"expected numbers with whole indices, got {', '.join(str(part.dtype) for part in parts)}")
        indptr, n = parts[2], parts[1].size
        # SciPy does not look at the order of row pointers that end at 0, and sorting by such rows writes out of bounds
        if indptr.ndim != 1 or not len(indptr) or indptr[0] != 0 or indptr[-1] != n or (indptr[1:] < indptr[:-1]).any():
            raise ValueError(f"X_indptr must rise from 0 to {n}, the number of entries")
        X = sparse.csr_array((parts[0].astype(np.float64), *parts[1:]), shape=tuple(arrays["X_shape"].tolist()))
        X.check_format(full_check=True)
    except (KeyError, ValueError, TypeError, IndexError, OverflowError) as error:
        raise DataError(f"{name}: X_data, X_indices, X_indptr and X_shape are not a valid CSR matrix: {error}") from None
    X.sum_duplicates()
    return X
