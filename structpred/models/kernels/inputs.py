"""Sequences as a kernel sees them: positions become coordinates in the space that the training positions span."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from structpred.core.types import AnyArray, Floats, Floats32, Integers
from structpred.core.weights import Vector, check_length, padded
from structpred.data.sequences import PackedSequences
from structpred.errors import DataError, ParameterError
from structpred.features.sequences import n_chain_weights, weight_table
from structpred.models.bundles import OBJECT
from structpred.models.chain.inputs import INPUT, INPUTS, Input
from structpred.models.kernels.functions import Kernel, Precomputed, name_of, restored_complete, saved
from structpred.models.kernels.gram import EXACT, ROUNDED, check_factor_fits, distinct_rows, factorise, solved
from structpred.runtime.memory import check_fits
from structpred.runtime.ranges import ends_of
from structpred.storage.bundles import Bundle, under
from structpred.storage.schema import Array, Record, array_of, as_file_error

#: kernel values that are held at once when positions are scored
_BLOCK = 1 << 22

#: the input that reads X, and the kernel
_HEADER = Record({"inner": INPUT, "kernel": OBJECT})
AT = Array(("int64",), (None, 2), below=2**62)
_PIVOTS = Array(("int64",), ("n_support",), below="n_columns")
_GRAM = Array(("float32",), ("n_support", "n_support"))


class Support(NamedTuple):
    """The positions that a model keeps. at: sample and position of each. rows: their features, a CSR matrix; of given kernels the
    number of each in the training set. members: for each kernel, which of them it uses, all kernels in a row; kernel k from
    ends[k] on.
    """

    at: Integers
    rows: Any
    members: Integers
    ends: Integers

    def of(self, k: int) -> Integers:
        """Those that kernel k uses."""
        return self.members[self.ends[k] : self.ends[k + 1]]


class SupportInput(ABC):
    """An input around another one, `inner`: a position x is seen by its kernel values k(x, s) with support positions s."""

    kept: Support

    def __init__(self, inner: Input, kernels: Sequence[Kernel]) -> None:
        self.inner, self.kernels = inner, list(kernels)
        self.given = isinstance(kernels[0], Precomputed)

    @property
    def kind(self) -> str:
        """That of the input that reads X."""
        return self.inner.kind

    @property
    def n_features(self) -> int:
        """The number of support positions, of all kernels together."""
        return len(self.kept.members)

    @property
    def support(self) -> Integers:
        """(n_features, 2): sample and position of each support position in the training set, kernel by kernel."""
        return self.kept.at[self.kept.members]

    @abstractmethod
    def dual_coefficients(self, w: Vector, n_labels: int) -> Floats:
        """(n_features, labels): position x adds k(x, s) times row s to the scores of its labels."""

    def scored(self, sequences: Any, w: Vector, n_labels: int) -> tuple[PackedSequences, Vector]:
        """Sequences and weights that give the scores of `w`, with a feature for each label: the score that x adds to it."""
        check_length(w, n_chain_weights(self.n_features, n_labels))
        rows, offsets = self._rows(sequences)
        duals, values = self.dual_coefficients(w, n_labels), np.zeros((int(offsets[-1]), n_labels))
        for own, support, similar in self._similarities(rows, offsets):
            values[own] += similar @ duals[support]
        table = np.zeros((n_labels + 2 + n_labels, padded(n_labels)), w.dtype)
        table[:n_labels, :n_labels] = np.eye(n_labels)
        table[n_labels:, :n_labels] = weight_table(w, n_labels)[self.n_features :]
        return dense_sequences(values.astype(np.float32), offsets), table.ravel()

    def _rows(self, sequences: Any) -> tuple[list[Any], Integers]:
        """(for each kernel what its values are made of, where sequences begin)."""
        data = self.inner.transform(sequences)
        return [canonical(data)] * len(self.kernels), data.offsets

    def _similarities(self, rows: list[Any], offsets: Integers) -> Iterator[tuple[slice, slice, Floats]]:
        """(positions, features, their kernel values) in blocks; DataError, naming the sample, where a value is not finite."""
        n, ends = int(offsets[-1]), self.kept.ends.tolist()
        for k, kernel in enumerate(self.kernels):
            members = self.kept.of(k)
            support, step = self.kept.rows[members], max(1, _BLOCK // max(len(members), 1))
            for a in range(0, n if len(members) else 0, step):
                block = rows[k][a : a + step]
                similar = _columns(block, support) if self.given else kernel(block, support)
                if not np.isfinite(similar).all():
                    sample, t = where(offsets, a + np.flatnonzero(~np.isfinite(similar).all(axis=1))[:1])[0]
                    wrong = f"sample {sample}, position {t}: {self._called(k)} gives values that are not finite"
                    raise DataError(f"{wrong}; are features scaled?")
                yield slice(a, a + step), slice(ends[k], ends[k + 1]), similar

    def _called(self, k: int) -> str:
        """What messages call a kernel."""
        return "the kernel"


class KernelInput(SupportInput):
    """Another input whose rows go through a kernel. Feature j of a position x is coordinate j of phi(x) = L^-1 k(support, x).

    <phi(x), phi(x')> = k(x, x') for x, x' of the training set. `gram.py` says how the support and L are found.
    n_components: how many features to keep, or which share of the trace; None: all.
    """

    #: of a precomputed kernel, the values of the support among each other
    _gram: Any = None

    def __init__(self, inner: Input, kernel: Kernel, n_components: float | None = None) -> None:
        super().__init__(inner, [kernel])
        self.n_components = n_components
        self._triangle: Floats | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Without what is computed again when it is needed."""
        return {**self.__dict__, "_triangle": None}

    def fit_transform(self, sequences: Any) -> PackedSequences:
        """Find the support, and give the coordinates of all positions. DataError for a matrix that is no kernel."""
        data = self.inner.fit_transform(sequences)
        rows = canonical(data)
        kernel, given = self.kernels[0].fitted(rows), self.given
        self.kernels = [kernel]
        if given and data.n_tokens != data.n_features:
            raise DataError(
                f"precomputed kernel: expected a column for each of the {data.n_tokens} positions, got {data.n_features} columns"
            )
        first, number = (np.arange(data.n_tokens),) * 2 if given else distinct_rows(rows)
        check_factor_fits(len(first), data.n_tokens)
        gram = rows.toarray() if given else kernel(rows[first], rows[first])
        what = f"the matrix of kernel {name_of(kernel)} over the training positions"
        factor = factorise(gram, what, ROUNDED if given else EXACT)
        factor = factor if self.n_components is None else factor.cut(self.n_components)
        pivots = first[factor.pivots]
        self._gram = rows[pivots][:, pivots].toarray() if given else None
        self._keep(where(data.offsets, pivots), pivots if given else rows[pivots])
        # position t is number[t] of the factor; half of a full matrix is not stored
        sizes = np.minimum(factor.places + 1, factor.rank)[number]
        indptr = ends_of(sizes)
        indices, values = np.empty(int(indptr[-1]), np.int32), np.empty(int(indptr[-1]), np.float32)
        counting = np.arange(factor.rank, dtype=np.int32)
        for t, i in enumerate(number.tolist()):
            indices[indptr[t] : indptr[t + 1]] = counting[: sizes[t]]
            values[indptr[t] : indptr[t + 1]] = factor.row(i)
        return PackedSequences(indptr, indices, values, data.offsets, factor.rank)

    def _keep(self, at: Integers, rows: Any) -> None:
        self.kept, self._triangle = Support(at, rows, np.arange(len(at)), np.array([0, len(at)])), None

    @property
    def triangle(self) -> Floats:
        """L, lower triangular, with L L' = k(support, support)."""
        from scipy.linalg import cholesky

        if self._triangle is None:
            own = not self.given  # then the matrix is made for this, and its memory becomes that of L
            gram = self.kernels[0](self.kept.rows, self.kept.rows) if own else self._gram
            try:
                self._triangle = cholesky(gram.T, lower=True, overwrite_a=own, check_finite=False)
            except np.linalg.LinAlgError:
                raise DataError("the support of this model is no support of its kernel; was its file altered?") from None
        return self._triangle

    def transform(self, sequences: Any) -> PackedSequences:
        """The coordinates of all positions: what training sees. `scored` needs far less time and memory for a fitted model."""
        rows, offsets = self._rows(sequences)
        n, r = int(offsets[-1]), self.n_features
        check_fits(8 * n * r, f"{r:,} coordinates of {n:,} positions")
        values = np.empty((n, r), np.float32)
        for own, _, similar in self._similarities(rows, offsets):
            values[own] = solved(self.triangle, similar.T).T
        return dense_sequences(values, offsets)

    def dual_coefficients(self, w: Vector, n_labels: int) -> Floats:
        """A, (support, labels), float64: position x adds k(x, support) A to the scores of its labels. A = L^-T W."""
        own = weight_table(w, n_labels)[: self.n_features].astype(np.float64)
        return solved(self.triangle, own, transposed=True)

    def feature_names(self) -> list[str]:
        """Coordinate j is what k(., support position j) adds to the space that the ones before it span."""
        return [f"coordinate {j} (sample {i}, position {t})" for j, (i, t) in enumerate(self.support.tolist())]

    def to_bundle(self) -> Bundle:
        """The inner input, the kernel, and the support."""
        at, rows = self.kept.at, self.kept.rows
        own = {"pivots": rows, "gram": self._gram.astype(np.float32)} if self.given else saved_rows(rows)
        return beside_inner(self.inner, {"kernel": saved(self.kernels[0])}, {"at": at, **own})

    @classmethod
    def from_bundle(cls, part: Bundle) -> "KernelInput":
        """The inverse of to_bundle."""
        with as_file_error("the kernel of this file cannot be used"):
            head = _HEADER.read(part.header, "input.header")
            self = cls(read_inner(head["inner"], part), restored_complete(head["kernel"]))
            arrays, d = under("support.", part.arrays), self.inner.n_features or 0
            at = array_of(arrays, "at", AT)
            if self.given:
                self._keep(at, array_of(arrays, "pivots", _PIVOTS, n_support=len(at), n_columns=d))
                self._gram = array_of(arrays, "gram", _GRAM, n_support=len(at)).astype(np.float64)
            else:
                self._keep(at, read_rows(arrays, len(at), d))
            return self


def saved_rows(rows: Any) -> dict[str, AnyArray]:
    """What a file holds of the rows of a CSR matrix."""
    parts = rows.indptr.astype(np.int64), rows.indices.astype(np.int32), rows.data.astype(np.float32)
    return dict(zip(("indptr", "indices", "values"), parts, strict=True))


def read_rows(arrays: dict[str, AnyArray], n: int, d: int) -> Any:
    """The inverse of saved_rows, for n rows with d columns."""
    indptr = array_of(arrays, "indptr", Array(("int64",), (n + 1,)))
    indices = array_of(arrays, "indices", Array(("int32",), (None,), below=d))
    values = array_of(arrays, "values", Array(("float32",), (None,)))
    return canonical(PackedSequences(indptr, indices, values, np.array([0, n]), d))


def beside_inner(inner: Input, head: dict[str, Any], support: dict[str, AnyArray]) -> Bundle:
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

    if data.n_transitions:
        raise ParameterError("template: transitions that look at words (B lines with macros) do not go with kernels")
    rows = sparse.csr_array((data.values.astype(np.float64), data.indices, data.indptr), shape=(data.n_tokens, data.n_features))
    rows.sum_duplicates()
    rows.eliminate_zeros()
    return rows


def dense_sequences(values: Floats32, offsets: Integers) -> PackedSequences:
    """Packed sequences of dense rows."""
    n, d = values.shape
    indices = np.tile(np.arange(d, dtype=np.int32), n)
    return PackedSequences(d * np.arange(n + 1), indices, values.ravel(), offsets, d)


def _columns(block: Any, columns: Integers) -> Floats:
    found = block[:, columns]
    return np.asarray(found if isinstance(found, np.ndarray) else found.toarray(), dtype=np.float64)


def where(offsets: Integers, positions: Integers) -> Integers:
    """(n, 2): sample and position in it, of positions of all sequences together."""
    samples = np.searchsorted(offsets, positions, side="right") - 1
    return np.stack((samples, positions - offsets[samples]), axis=1).astype(np.int64)
