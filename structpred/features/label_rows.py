"""Multiclass features: one row per instance, and weights of its own for each label."""

from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np

from structpred.core.feature_map import FeatureMap
from structpred.core.oracle import Shape
from structpred.core.sparse import SparseVector, coalesced
from structpred.core.types import AnyArray, DTypeLike, Floats, Integers
from structpred.core.weights import Vector, check_length
from structpred.errors import DataError
from structpred.features.rows import stack_rows
from structpred.runtime.lazy_names import later
from structpred.runtime.memory import check_fits
from structpred.runtime.settings import checked_whole

_kernels = later("structpred.features._label_rows_kernels")


class LabelRows(FeatureMap):
    """A linear classifier of many classes: the score of label l is <x_i, W[:, l]>. For MulticlassOracle.

    The flat weights are the table (n_features, n_labels): a step reads whole rows of it. The difference of two labels has
    2 nnz(x_i) entries, however many labels there are.

    Parameters
    ----------
    X : array or SciPy sparse matrix (n, n_features)
        A row per instance.
    n_labels : int
        How many labels there are, at least 1; y[i] = [l] with 0 <= l < n_labels.
    dtype : dtype
        Of the weights. With float32, 1,000 labels and 20,000 features take 80 MB instead of 160 MB.

    Raises
    ------
    DataError
        For values that are not finite, naming the sample.
    ParameterError
        For n_labels < 1.

    Examples
    --------
    >>> rows = LabelRows(np.array([[1.0, 2.0]]), 3)
    >>> rows.scores(np.arange(6.0), 0).tolist()
    [6.0, 9.0, 12.0]
    """

    #: what trainers may ask for besides the calls of all feature maps: `rows`, `table` and `squared_norms`
    capabilities = frozenset({"label_rows"})

    def __init__(self, X: Any, n_labels: int, *, dtype: DTypeLike = np.float32) -> None:
        self.n_labels = checked_whole(n_labels, "n_labels")
        self.rows = stack_rows(X, "X")
        if (self.rows.counts != 1).any():
            i = int(np.flatnonzero(self.rows.counts != 1)[0])
            raise DataError(f"sample {i}: expected one row, got {self.rows.counts[i]}; X is one matrix with a row per sample")
        self.dim = self.rows.n_columns * self.n_labels
        self.dtype: np.dtype[Any] = np.dtype(dtype)
        check_fits(self.dim * (self.dtype.itemsize + 8), f"{self.dim:,} weights")
        self.groups, self.group_names = np.array([0, self.dim], dtype=np.int64), ["features"]
        at = np.repeat(np.arange(len(self)), np.diff(self.rows.indptr))
        self._squares: Floats = np.bincount(at, self.rows.values**2, len(self)).astype(np.float64, copy=False)

    @property
    def shapes(self) -> list[Shape]:
        """The shape of each instance, as MulticlassOracle has it."""
        return [(self.n_labels,)] * len(self)

    def __len__(self) -> int:
        """The number of instances."""
        return len(self.rows.indptr) - 1

    def n_parts(self, i: int) -> int:
        """n_labels."""
        return self.n_labels

    def table(self, w: Vector) -> AnyArray:
        """The flat weights as their table (n_features, n_labels), a view; DataError for another number of weights."""
        check_length(w, self.dim)
        return w.reshape(-1, self.n_labels)

    def squared_norms(self) -> Floats:
        """|x_i|^2 of every instance."""
        return self._squares

    def _row(self, i: int) -> tuple[Integers, Floats, int, int]:
        return self.rows.indices, self.rows.values, self.rows.indptr[i], self.rows.indptr[i + 1]

    def scores(self, w: Vector, i: int) -> Floats:
        """x_i W."""
        out: Floats = np.empty((1, self.n_labels))
        _kernels().score_rows(self.table(w), self.rows.indices, self.rows.values, self.rows.indptr, i, 1, out)
        return out.ravel()

    def score_block(self, w: Vector, scale: float, start: int, stop: int, places: Integers, out: Floats) -> None:
        """out[places[i - start]:]: scale times the scores of instance i; several threads may call it at once."""
        rows, table = self.rows, out.reshape(stop - start, self.n_labels)
        _kernels().score_rows(self.table(w), rows.indices, rows.values, rows.indptr, start, stop - start, table)
        if scale != 1.0:
            out *= scale

    def adjoint(self, i: int, parts: Integers, counts: Floats) -> SparseVector:
        """The outer product of x_i and the counts, as sparse entries of the table."""
        if not _kernels().ascending(parts):
            parts, counts = coalesced(parts, counts)
        size = int(self.rows.indptr[i + 1] - self.rows.indptr[i]) * len(parts)
        idx, val = np.empty(size, np.int64), np.empty(size)
        n = _kernels().emit_outer(*self._row(i), self.n_labels, parts, np.asarray(counts, dtype=np.float64), idx, val)
        return SparseVector(idx[:n], val[:n])

    def adjoint_block(self, start: int, parts: Integers, counts: Floats, ends: Integers) -> tuple[Integers, Floats, Integers]:
        """What `adjoint` gives for the instances from `start` on: (indices, values, offsets), flat; for many threads at once."""
        rows, out = self.rows, np.empty(len(ends), np.int64)
        return *_kernels().emit_each(rows.indices, rows.values, rows.indptr, start, self.n_labels, parts, counts, ends, out), out

    def scratch(self) -> Floats:
        """Zeros for `spread`, of length n_labels: the outer product x_i mu is never written out."""
        return np.zeros(self.n_labels)

    def spread(self, i: int, mu: Floats, scratch: Floats) -> float:
        """scratch = mu, which stands for the outer product of x_i and mu; returns its squared norm."""
        scratch[:] = mu
        return float(self._squares[i] * (mu @ mu))

    def flush(self, i: int, scratch: Floats, coef: float, w: Vector) -> None:
        """w += coef * (the outer product of x_i and scratch); scratch becomes zero again."""
        self.add_spread(i, scratch, coef, w)
        scratch[:] = 0.0

    def add_spread(self, i: int, mu: Floats, coef: float, out: Vector) -> None:
        """out += coef * (the outer product of x_i and mu)."""
        _kernels().add_outer(*self._row(i), mu, coef, self.table(out))

    def take(self, rows: Integers) -> "LabelRows":
        """The instances with these numbers, in this order."""
        new = copy(self)
        new.rows, new._squares = self.rows.take(rows), self._squares[rows]
        return new

    def arrays(self) -> Sequence[AnyArray]:
        """The packed matrix."""
        return (self.rows.indptr, self.rows.indices, self.rows.values)
