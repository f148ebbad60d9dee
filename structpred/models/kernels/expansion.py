"""A position as its similarities to positions of the training set, kernel by kernel: what is left of training with kernels.

Training is in kernel form, where every position has a coefficient in each kernel (`features/positions.py`), or by landmarks
(Nystroem's method, Williams and Seeger 2001), where kernel k gives the coordinates phi_k(x) = L^-1 k(landmarks, x) with L L' =
k(landmarks, landmarks), so that <phi_k(x), phi_k(x')> = k(x, x') for landmarks, and almost so for what they resemble.
Both give functions f_k(x) = sum_s k(x, s) d_s of few positions s: those with a coefficient, in kernels whose group is not zero.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from structpred.core.regulariser import group_norms
from structpred.core.types import AnyArray, Floats, Floats32, Integers
from structpred.core.weights import Vector, check_length, padded
from structpred.data.sequences import PackedSequences
from structpred.errors import DataError
from structpred.features.positions import PositionSequences
from structpred.features.sequences import n_chain_weights, weight_table
from structpred.models.bundles import OBJECT
from structpred.models.chain.inputs import INPUT, Input, NumericInput
from structpred.models.kernels import inputs
from structpred.models.kernels.functions import Kernel, Mean, Precomputed, names_of, restored_complete, saved
from structpred.models.kernels.gram import EXACT, check_room, checked_gram, distinct_rows, factorise, gram_of, solved, stacked
from structpred.runtime.memory import check_fits
from structpred.runtime.ranges import ends_of
from structpred.storage.bundles import Bundle, under
from structpred.storage.schema import Array, ListOf, Record, array_of, as_file_error
from structpred.task.function_space import FunctionSpace

#: kernel values that are held at once when positions are scored
_BLOCK = 1 << 22
#: the input that reads X, and the kernels, each the mean of a list
HEADER = Record({"inner": INPUT, "means": ListOf(ListOf(OBJECT, 1), 1)})
#: explicit features are of sample -1
_AT = Array(("int64",), (None, 2))
_ENDS = Array(("int64",), ("n_ends",), below=2**40)
_MEMBERS = Array(("int64",), (None,), below="n_rows")


class KernelExpansion(inputs.SupportInput):
    """An input whose features are k(x, s) for the support positions s of each kernel.

    n_components: the number of landmarks; None: kernel form. seed: of the choice of landmarks.
    """

    def __init__(self, inner: Input, kernels: Sequence[Kernel], n_components: int | None = None, seed: int = 0) -> None:
        super().__init__(inner, kernels)
        self.n_components, self.seed = n_components, seed
        self._n_columns: int | None = None

    @property
    def names(self) -> list[str]:
        """Of the kernels."""
        return names_of(self.kernels)

    def fit_transform(self, sequences: Any) -> Any:
        """What training sees: Gram matrices, or coordinates. DataError for a matrix that is no kernel, or does not fit."""
        if self.given:
            return self._read_grams(sequences)
        data = self.inner.fit_transform(sequences)
        rows = inputs.canonical(data)
        self.kernels = [kernel.fitted(rows) for kernel in self.kernels]
        if self.n_components is not None:
            return self._land(rows, data.offsets)
        implicit = [kernel for kernel in self.kernels if not kernel.explicit]
        check_room(implicit, data.n_tokens)
        self._keep_all(data.offsets, rows)
        grams = [gram_of(kernel, rows) for kernel in implicit]
        explicit = _packed(rows, self.kernels[-1].normalised, data.offsets) if self.mixed else None  # type: ignore[attr-defined]
        return PositionSequences(grams, data.offsets, self.names[: len(grams)], explicit)

    @property
    def mixed(self) -> bool:
        """Whether the last kernel is explicit features: its support are the unit vectors, as k(x, e_j) is feature j of x."""
        return self.kernels[-1].explicit

    def _keep_all(self, offsets: Integers, rows: Any) -> None:
        from scipy import sparse

        n = int(offsets[-1])
        at, members = inputs.where(offsets, np.arange(n)), [np.arange(n)] * len(self.kernels)
        if self.mixed:
            d = rows.shape[1]
            at = np.vstack((at, np.column_stack((np.full(d, -1), np.arange(d)))))
            rows, members[-1] = sparse.vstack((rows, sparse.eye_array(d)), format="csr"), n + np.arange(d)
        self.kept = inputs.Support(at, rows, np.concatenate(members), ends_of(np.array([len(own) for own in members])))

    def _read_grams(self, sequences: Any) -> PositionSequences:
        found = self._packed(sequences, None)
        rows = np.arange(found.n_tokens) if found.rows is None else found.rows
        n = found.n_tokens if found.rows is None else found.grams[0].shape[0]
        shapes, K = [gram.shape for gram in found.grams], len(self.kernels)
        if shapes != [(n, n)] * K or found.explicit is not None:
            wanted = f"matrices of {K} kernels alone, with a column for each of the {n} positions"
            raise DataError(f"X: expected {wanted}, got the shapes {shapes}")
        if found is not sequences:
            called = [f"the matrix of kernel {name}" for name in self.names]
            found = replace(found, grams=[*map(checked_gram, found.grams, called, self.kernels)])
        self._n_columns, self.inner = n, NumericInput(n)
        self._keep_all(found.offsets, rows)
        return found

    def _packed(self, sequences: Any, n_columns: int | None) -> PositionSequences:
        """Kernel values that are packed, or sequences of which each has an array for each kernel."""
        if isinstance(sequences, PositionSequences):
            return sequences
        listed = self._listed(sequences)
        found = [stacked(listed, k, n_columns) for k in range(len(self.kernels))]
        return PositionSequences([values for values, _ in found], ends_of(found[0][1]), self.names)

    def _listed(self, sequences: Any) -> list[Any]:
        """Sequences of which each has an array for each kernel."""
        listed, K = list(sequences), len(self.kernels)
        if not listed:
            raise DataError("X: no sequences at all; expected at least one")
        for i, one in enumerate(listed):
            if not isinstance(one, list | tuple) or len(one) != K:
                came = f"{len(one)} of them" if isinstance(one, list | tuple) else type(one).__name__
                raise DataError(f"sample {i}: expected a list of {K} arrays of kernel values, one for each kernel, got {came}")
            if len({np.shape(values)[:1] for values in one}) > 1:
                raise DataError(f"sample {i}: the kernels have different numbers of positions")
        return listed

    def _land(self, rows: Any, offsets: Integers) -> PackedSequences:
        """Coordinates by landmarks: distinct positions, drawn without replacement."""
        first, _ = distinct_rows(rows)
        assert self.n_components is not None
        chosen = np.random.default_rng(self.seed).permutation(first)[: self.n_components]
        chosen.sort()
        n, size = rows.shape[0], len(self.kernels) * len(chosen)
        check_fits(16 * n * size, f"{size:,} coordinates of {n:,} positions (n_components={self.n_components})")
        self._triangles: list[Floats] = []
        members, blocks = [], []
        for k, kernel in enumerate(self.kernels):
            factor = factorise(
                kernel(rows[chosen], rows[chosen]), f"the matrix of kernel {self.names[k]} over the landmarks", EXACT
            )
            pivots = factor.pivots
            self._triangles.append(np.tril(factor.triangle[factor.places[pivots]][:, : factor.rank]))
            members.append(pivots)
            blocks.append(_coordinates(kernel, rows, rows[chosen[pivots]], self._triangles[-1]))
        ends = ends_of(np.array([len(own) for own in members]))
        self.kept = inputs.Support(inputs.where(offsets, chosen), rows[chosen], np.concatenate(members), ends)
        found = inputs.dense_sequences(np.hstack(blocks), offsets)
        return PackedSequences(found.indptr, found.indices, found.values, offsets, found.n_features, ends, tuple(self.names))

    def settled(self, w: Vector, n_labels: int) -> tuple["KernelExpansion", Vector]:
        """The input with the support that the weights of training use, and the weights of its features."""
        if self.n_components is not None:
            duals, others = self._duals_of_landmarks(w, n_labels), weight_table(w, n_labels)[self.n_features :]
        else:
            space = self._space(n_labels)
            check_length(w, space.dim)
            duals, rest = [space.coefficients(w, k).T for k in range(len(space.grams))], w[space.groups[len(space.grams)] :]
            rest = weight_table(rest, n_labels) if self.mixed else rest.reshape(-1, n_labels)
            duals, others = [*duals, *[rest[: -2 - n_labels]] * self.mixed], rest[-2 - n_labels :]  # start, stop, transitions
        used = [np.flatnonzero(own.any(axis=1)) for own in duals]
        members = [self.kept.of(k)[some] for k, some in enumerate(used)]
        kept, numbers = np.unique(np.concatenate(members), return_inverse=True)
        new = KernelExpansion(self.inner, self.kernels, self.n_components, self.seed)
        ends = ends_of(np.array([len(own) for own in members]))
        new.kept, new._n_columns = inputs.Support(self.kept.at[kept], self.kept.rows[kept], numbers, ends), self._n_columns
        table = np.zeros((int(ends[-1]) + 2 + n_labels, padded(n_labels)), np.float64 if self.n_components else w.dtype)
        table[: ends[-1], :n_labels] = np.concatenate([own[some] for own, some in zip(duals, used, strict=True)])
        table[ends[-1] :, :n_labels] = others
        return new, table.ravel()

    def norms(self, w: Vector, n_labels: int) -> Floats:
        """|w_k| of each kernel's function in the weights of training, of start and stop, and of transitions."""
        return self._space(n_labels).norms(w) if self.n_components is None else group_norms(w, self.groups(n_labels))

    def _duals_of_landmarks(self, w: Vector, n_labels: int) -> list[AnyArray]:
        """A = L^-T W."""
        check_length(w, n_chain_weights(self.n_features, n_labels))
        table, ends = weight_table(w, n_labels).astype(np.float64), self.kept.ends
        parts = (table[ends[k] : ends[k + 1]] for k in range(len(self.kernels)))
        return [solved(triangle, own, transposed=True) for triangle, own in zip(self._triangles, parts, strict=True)]

    def _space(self, n_labels: int) -> FunctionSpace:
        sizes, width = np.diff(self.kept.ends).tolist(), padded(n_labels) if self.mixed else n_labels
        K = len(sizes) - self.mixed
        return FunctionSpace([np.empty((sizes[0], 0))] * K, n_labels, [size * width for size in (*sizes[K:], 2, n_labels)])

    def groups(self, n_labels: int) -> Integers:
        """Where the kernels, start and stop, and transitions begin in the weights of a settled input, or of landmarks."""
        n = self.n_features
        return np.array([*self.kept.ends.tolist(), n + 2, n + 2 + n_labels], np.int64) * padded(n_labels)

    def transform(self, sequences: Any) -> PackedSequences:
        """k(x, s) of all positions x."""
        rows, offsets = self._rows(sequences)
        n = int(offsets[-1])
        check_fits(16 * n * self.n_features, f"{self.n_features:,} kernel values of {n:,} positions")
        values = np.empty((n, self.n_features), np.float32)
        for own, support, similar in self._similarities(rows, offsets):
            values[own, support] = similar
        return inputs.dense_sequences(values, offsets)

    def positions(self, sequences: Any) -> PackedSequences:
        """The sequences without any features."""
        _, offsets = self._rows(sequences)
        return inputs.dense_sequences(np.empty((int(offsets[-1]), 0), np.float32), offsets)

    def dual_coefficients(self, w: Vector, n_labels: int) -> Floats:
        """(n_features, labels): position x adds k(x, s) times row s to the scores of its labels."""
        return np.asarray(weight_table(w, n_labels)[: self.n_features], dtype=np.float64)

    def _rows(self, sequences: Any) -> tuple[list[Any], Integers]:
        if not self.given:
            return super()._rows(sequences)
        found, expected = self._packed(sequences, self._n_columns), [self._n_columns] * len(self.kernels)
        if (widths := [gram.shape[1] for gram in found.grams]) != expected:
            raise DataError(f"X: expected matrices of kernel values with {expected} columns, got {widths}")
        return [gram if found.rows is None else gram[found.rows] for gram in found.grams], found.offsets

    def _called(self, k: int) -> str:
        return f"kernel {self.names[k]}"

    def feature_names(self) -> list[str]:
        """The kernel and the support position."""
        at, known = self.support.tolist(), self.inner.feature_names() if self.mixed else []
        kernels = np.repeat(self.names, np.diff(self.kept.ends)).tolist()
        places = [f"sample {i}, position {t}" if i >= 0 else known[t] for i, t in at]
        return [f"{name} ({place})" for name, place in zip(kernels, places, strict=True)]

    def to_bundle(self) -> Bundle:
        """The inner input, the kernels, and the support."""
        means = [[saved(one) for one in (k.kernels if isinstance(k, Mean) else [k])] for k in self.kernels]
        s = self.kept
        own: dict[str, AnyArray] = {"at": s.at, "members": s.members.astype(np.int64), "ends": s.ends}
        if self.given:
            own["columns"] = s.rows.astype(np.int64)
        else:
            own |= inputs.saved_rows(s.rows)
        return inputs.beside_inner(self.inner, {"means": means}, own)

    @classmethod
    def from_bundle(cls, part: Bundle) -> "KernelExpansion":
        """The inverse of to_bundle."""
        with as_file_error("the kernels of this file cannot be used"):
            head = HEADER.read(part.header, "input.header")
            kernels = [[restored_complete(one) for one in mean] for mean in head["means"]]
            if len({isinstance(one, Precomputed) for mean in kernels for one in mean}) > 1:
                raise ValueError("kernels that are given beside others")
            listed = [mean[0] if len(mean) == 1 else Mean(mean) for mean in kernels]
            self = cls(inputs.read_inner(head["inner"], part), listed)
            arrays, d = under("support.", part.arrays), self.inner.n_features or 0
            at = array_of(arrays, "at", _AT)
            features = at[at[:, 0] < 0]
            if (at < (-1 if self.mixed else 0, 0)).any() or (features[:, 1] >= d).any():
                raise ValueError("support.at: expected a sample and a position, or -1 and the number of an explicit feature")
            ends = array_of(arrays, "ends", _ENDS, n_ends=len(self.kernels) + 1)
            members = array_of(arrays, "members", _MEMBERS, n_rows=len(at))
            if ends[0] != 0 or ends[-1] != len(members) or (np.diff(ends) < 0).any():
                raise ValueError(f"support.ends: expected ascending numbers from 0 to {len(members)}")
            if self.given:
                rows: Any = array_of(arrays, "columns", Array(("int64",), (len(at),), below=d))
                self._n_columns = d
            else:
                rows = inputs.read_rows(arrays, len(at), d)
            self.kept = inputs.Support(at, rows, members, ends)
            return self


def _packed(rows: Any, normalised: bool, offsets: Integers) -> PackedSequences:
    """The features of positions, each row of length 1 if normalised."""
    roots = np.repeat(np.sqrt(rows.multiply(rows).sum(axis=1)), np.diff(rows.indptr)) if normalised else 1.0
    return PackedSequences(rows.indptr, rows.indices, rows.data / roots, offsets, rows.shape[1])


def _coordinates(kernel: Kernel, rows: Any, landmarks: Any, triangle: Floats) -> Floats32:
    """L^-1 k(landmarks, x) of all positions x."""
    out = np.empty((rows.shape[0], len(triangle)), np.float32)
    step = max(1, _BLOCK // max(len(triangle), 1))
    for a in range(0, len(out) if len(triangle) else 0, step):
        similar = kernel(rows[a : a + step], landmarks)
        out[a : a + step] = solved(triangle, similar.T).T
    return out
