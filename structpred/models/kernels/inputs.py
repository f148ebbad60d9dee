"""Sequences as a kernel sees them: positions become coordinates in the space that the training positions span."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from structpred.core.types import Floats, Integers
from structpred.core.weights import Vector, check_length, padded
from structpred.data.sequences import PackedSequences
from structpred.errors import DataError
from structpred.features.sequences import n_chain_weights, weight_table
from structpred.models.chain.inputs import INPUT, INPUTS, Input
from structpred.models.kernels.functions import Kernel, Precomputed, name_of, restored_complete, saved
from structpred.models.kernels.gram import EXACT, ROUNDED, Factor, check_room, distinct_rows, factorise
from structpred.runtime.memory import check_fits
from structpred.runtime.ranges import ends_of
from structpred.storage.bundles import Bundle, under
from structpred.storage.schema import AnyOf, Array, Plain, Record, TableOf, Text, array_of, as_file_error

#: kernel values that are held at once when positions are scored
_BLOCK = 1 << 22

KERNEL = AnyOf((Text(), Record({"class": Text(), "settings": TableOf(Plain())})))
#: the input that reads X, and the kernel
_HEADER = Record({"inner": INPUT, "kernel": KERNEL})
_SUPPORT = Array(("int64",), (None, 2), below=2**62)
_PIVOTS = Array(("int64",), ("n_support",), below="n_columns")
_GRAM = Array(("float32",), ("n_support", "n_support"))


class KernelInput:
    """Another input whose rows go through a kernel. Feature j of a position x is coordinate j of phi(x) = L^-1 k(support, x).

    <phi(x), phi(x')> = k(x, x') for x, x' of the training set. `gram.py` says how the support and L are found.
    """

    #: (r, 2): sample and position in it of each support position in the training set
    support: Integers
    #: the support: its rows; of a precomputed kernel instead its columns, and their values among each other
    _rows: Any
    _pivots: Any
    _gram: Any

    def __init__(self, inner: Input, kernel: Kernel) -> None:
        self.inner, self.kernel = inner, kernel
        self._triangle: Floats | None = None

    @property
    def kind(self) -> str:
        """That of the input that reads X."""
        return self.inner.kind

    @property
    def n_features(self) -> int:
        """How many support positions there are: the rank of the Gram matrix."""
        return len(self.support)

    def __getstate__(self) -> dict[str, Any]:
        """Without what is computed again when it is needed."""
        return {**self.__dict__, "_triangle": None}

    def fit_transform(self, sequences: Any) -> PackedSequences:
        """Find the support, and give the coordinates of all positions. DataError for a matrix that is no kernel."""
        data = self.inner.fit_transform(sequences)
        rows = canonical(data)
        self.kernel = self.kernel.fitted(rows)
        given = isinstance(self.kernel, Precomputed)
        if given and data.n_tokens != data.n_features:
            raise DataError(
                f"precomputed kernel: expected a column for each of the {data.n_tokens} positions, got {data.n_features} columns"
            )
        first, number = (np.arange(data.n_tokens),) * 2 if given else distinct_rows(rows)
        check_room(len(first), data.n_tokens)
        gram = rows.toarray() if given else self.kernel(rows[first], rows[first])
        what = f"the matrix of kernel {name_of(self.kernel)} over the training positions"
        factor = factorise(gram, what, ROUNDED if given else EXACT)
        pivots = first[factor.pivots]
        self.support, self._triangle = where(data.offsets, pivots), None
        self._pivots, self._rows, self._gram = pivots, rows[pivots], None
        if given:
            self._rows, self._gram = None, self._rows[:, pivots].toarray()
        return _coordinates(factor, number, data.offsets)

    @property
    def triangle(self) -> Floats:
        """L, lower triangular, with L L' = k(support, support)."""
        from scipy.linalg import cholesky

        if self._triangle is None:
            own = self._rows is not None  # then the matrix is made for this, and its memory becomes that of L
            gram = self.kernel(self._rows, self._rows) if own else self._gram
            try:
                self._triangle = cholesky(gram.T, lower=True, overwrite_a=own, check_finite=False)
            except np.linalg.LinAlgError:
                raise DataError(
                    "the support positions of this model are no support of its kernel; was its file altered?"
                ) from None
        return self._triangle

    def transform(self, sequences: Any) -> PackedSequences:
        """The coordinates of all positions: what training sees. `scored` needs far less time and memory for a fitted model."""
        from scipy.linalg import solve_triangular

        data, r = self.inner.transform(sequences), self.n_features
        check_fits(8 * data.n_tokens * r, f"{r:,} coordinates of {data.n_tokens:,} positions")
        values = np.empty((data.n_tokens, r), np.float32)
        for own, similar in self._similarities(data):
            values[own] = solve_triangular(self.triangle, similar.T, lower=True, check_finite=False).T
        return dense_sequences(values, data.offsets)

    def scored(self, sequences: Any, w: Vector, n_labels: int) -> tuple[PackedSequences, Vector]:
        """Sequences and weights that give the scores of `w`, with a feature for each label: the score that x adds to it."""
        check_length(w, n_chain_weights(self.n_features, n_labels))
        data = self.inner.transform(sequences)
        duals = self.dual_coefficients(w, n_labels)
        values = np.empty((data.n_tokens, n_labels), np.float32)
        for own, similar in self._similarities(data):
            values[own] = similar @ duals
        table = np.zeros((n_labels + 2 + n_labels, padded(n_labels)), w.dtype)
        table[:n_labels, :n_labels] = np.eye(n_labels)
        table[n_labels:, :n_labels] = weight_table(w, n_labels)[self.n_features :]
        return dense_sequences(values, data.offsets), table.ravel()

    def dual_coefficients(self, w: Vector, n_labels: int) -> Floats:
        """A, (support, labels), float64: position x adds k(x, support) A to the scores of its labels. A = L^-T W."""
        from scipy.linalg import solve_triangular

        own = weight_table(w, n_labels)[: self.n_features].astype(np.float64)
        return np.asarray(solve_triangular(self.triangle, own, lower=True, trans="T", check_finite=False)) if len(own) else own

    def _similarities(self, data: PackedSequences) -> Iterator[tuple[slice, Floats]]:
        """k(positions, support) in blocks of positions; DataError, naming the sample, where it is not finite."""
        rows, step = canonical(data), max(1, _BLOCK // max(self.n_features, 1))
        for a in range(0, data.n_tokens, step):
            block = rows[a : a + step]
            similar = block[:, self._pivots].toarray() if self._rows is None else self.kernel(block, self._rows)
            if not np.isfinite(similar).all():
                sample, t = where(data.offsets, a + np.flatnonzero(~np.isfinite(similar).all(axis=1))[:1])[0]
                raise DataError(
                    f"sample {sample}, position {t}: the kernel gives values that are not finite; are features scaled?"
                )
            yield slice(a, a + step), similar

    def feature_names(self) -> list[str]:
        """Coordinate j is what k(., support position j) adds to the space that the ones before it span."""
        return [f"coordinate {j} (sample {i}, position {t})" for j, (i, t) in enumerate(self.support.tolist())]

    def to_bundle(self) -> Bundle:
        """The inner input, the kernel, and the support."""
        if self._rows is None:
            own = {"at": self.support, "pivots": self._pivots, "gram": self._gram.astype(np.float32)}
        else:
            own = {
                "at": self.support,
                "indptr": self._rows.indptr.astype(np.int64),
                "indices": self._rows.indices.astype(np.int32),
                "values": self._rows.data.astype(np.float32),
            }
        return beside_inner(self.inner, {"kernel": saved(self.kernel)}, own)

    @classmethod
    def from_bundle(cls, part: Bundle) -> "KernelInput":
        """The inverse of to_bundle."""
        with as_file_error("the kernel of this file cannot be used"):
            head = _HEADER.read(part.header, "input.header")
            self = cls(read_inner(head["inner"], part), restored_complete(head["kernel"]))
            self._read_support(under("support.", part.arrays))
            return self

    def _read_support(self, arrays: dict[str, npt.NDArray[Any]]) -> None:
        self.support = array_of(arrays, "at", _SUPPORT)
        n, d = len(self.support), self.inner.n_features or 0
        self._rows = self._pivots = self._gram = None
        if isinstance(self.kernel, Precomputed):
            self._pivots = array_of(arrays, "pivots", _PIVOTS, n_support=n, n_columns=d)
            self._gram = array_of(arrays, "gram", _GRAM, n_support=n).astype(np.float64)
            return
        rows = PackedSequences(
            array_of(arrays, "indptr", Array(("int64",), (n + 1,))),
            array_of(arrays, "indices", Array(("int32",), (None,), below=d)),
            array_of(arrays, "values", Array(("float32",), (None,))),
            np.array([0, n]),
            d,
        )
        self._rows = canonical(rows)


def beside_inner(inner: Input, head: dict[str, Any], support: dict[str, npt.NDArray[Any]]) -> Bundle:
    """What a file holds of an input with another one in it, and of its support."""
    part = inner.to_bundle()
    whole = Bundle({"inner": {"kind": inner.kind, "header": part.header}, **head}, texts=part.texts)
    whole.add("inner", Bundle({}, part.arrays))
    whole.add("support", Bundle({}, support))
    return whole


def read_inner(saved: dict[str, Any], part: Bundle) -> Input:
    """The inner input, as `beside_inner` wrote it."""
    return INPUTS[saved["kind"]].from_bundle(Bundle(saved["header"], under("inner.", part.arrays), part.texts))


def canonical(data: PackedSequences) -> Any:
    """The positions as a CSR matrix of float64 whose rows are sorted, without duplicates and zeros."""
    from scipy import sparse

    rows = sparse.csr_array((data.values.astype(np.float64), data.indices, data.indptr), shape=(data.n_tokens, data.n_features))
    rows.sum_duplicates()
    rows.eliminate_zeros()
    return rows


def _coordinates(factor: Factor, number: Integers, offsets: Integers) -> PackedSequences:
    """The features of all positions, of which position t is number[t] of the factor; half of a full matrix is not stored."""
    sizes = np.minimum(factor.places + 1, factor.rank)[number]
    indptr = ends_of(sizes)
    indices, values = np.empty(int(indptr[-1]), np.int32), np.empty(int(indptr[-1]), np.float32)
    counting = np.arange(factor.rank, dtype=np.int32)
    for t, i in enumerate(number.tolist()):
        indices[indptr[t] : indptr[t + 1]] = counting[: sizes[t]]
        values[indptr[t] : indptr[t + 1]] = factor.row(i)
    return PackedSequences(indptr, indices, values, offsets, factor.rank)


def dense_sequences(values: npt.NDArray[np.float32], offsets: Integers) -> PackedSequences:
    """Packed sequences of dense rows."""
    n, d = values.shape
    indices = np.tile(np.arange(d, dtype=np.int32), n)
    return PackedSequences(d * np.arange(n + 1), indices, values.ravel(), offsets, d)


def where(offsets: Integers, positions: Integers) -> Integers:
    """(n, 2): sample and position in it, of positions of all sequences together."""
    samples = np.searchsorted(offsets, positions, side="right") - 1
    return np.stack((samples, positions - offsets[samples]), axis=1).astype(np.int64)
