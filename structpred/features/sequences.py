"""Features of label sequences: emission weights for every (feature, label), and transition weights."""

from collections.abc import Sequence
from copy import copy
from functools import cached_property
from types import ModuleType
from typing import Any

import numpy as np

from structpred.core.group_scales import GroupScales
from structpred.core.sparse import SparseVector
from structpred.core.types import AnyArray, DTypeLike, Floats, Integers, Integers32
from structpred.core.weights import Vector, check_length, padded
from structpred.data.sequences import PackedSequences
from structpred.errors import ParameterError
from structpred.features.fixed_scores import FixedScores
from structpred.runtime.lazy_names import later
from structpred.runtime.ranges import picked

_kernels = later("structpred.features._feature_kernels")


def n_chain_weights(n_features: int, n_labels: int) -> int:
    """The number of weights of a chain: rows for features, start, stop and transitions, each as wide as the padded labels."""
    return (n_features + 2 + n_labels) * padded(n_labels)


def weight_table(w: Vector, n_labels: int) -> AnyArray:
    """The flat weights of a chain as their table, without the columns that pad it; a view."""
    return w.reshape(-1, padded(n_labels))[:, :n_labels]


def chain_groups(data: PackedSequences, n_labels: int, *, transitions: bool = True) -> tuple[Integers, list[str]]:
    """The groups of the flat weights of a chain, and their names: the corpus' blocks, start and stop, transitions."""
    starts, names = data.blocks
    ends = {"start and stop": data.n_features + 2, "transitions": data.n_features + 2 + n_labels} if transitions else {}
    return np.array([*starts, *ends.values()], dtype=np.int64) * padded(n_labels), [*names, *ends]


class SequenceFeatures:
    """Emission weights for every (feature, label), and start, stop and transition weights.

    The weights are one table of (n_features + 2 + n_labels) rows and `width` columns: a row per feature, then the start and
    the stop row, then n_labels rows of transitions (row: label before, column: label after). `width` is n_labels rounded
    up to a multiple of 8, the columns that fill it stay zero. Parts of a sequence of T tokens: T * n_labels
    position-label parts, then n_labels^2 label-label parts.

    `fixed` scores are added to what the weights give: -1e30 forbids a label at a token, or a transition.
    With ``transitions=False`` there are emission rows and emission parts only (independent labels).

    `groups` are the corpus' blocks of features (one for each template), the start and the stop row, and the transitions.
    """

    def __init__(
        self, data: PackedSequences, n_labels: int, *, transitions: bool = True, dtype: DTypeLike = np.float32,
        fixed: FixedScores | None = None,
    ) -> None:  # fmt: skip
        if n_labels < 1:
            raise ParameterError(f"n_labels must be at least 1, got {n_labels}")
        self.data, self.n_labels, self.transitions = data, n_labels, transitions
        self.dtype: np.dtype[Any] = np.dtype(dtype)
        self.fixed = fixed or FixedScores.none(data.n_tokens, n_labels)
        self._has_fixed = fixed is not None
        self.width = padded(n_labels)
        self.start_row = data.n_features if transitions else -1
        self.n_rows = data.n_features + (2 + n_labels if transitions else 0)
        self.dim = self.n_rows * self.width
        self.groups, self.group_names = chain_groups(data, n_labels, transitions=transitions)

    def __len__(self) -> int:
        """The number of sequences."""
        return len(self.data)

    def n_parts(self, i: int) -> int:
        """T * n_labels emissions and n_labels^2 transitions."""
        n = int(self.data.offsets[i + 1] - self.data.offsets[i]) * self.n_labels
        return n + (self.n_labels**2 if self.transitions else 0)

    def __getstate__(self) -> dict[str, Any]:
        """Without what is counted again when it is needed."""
        return {name: value for name, value in self.__dict__.items() if name not in ("_local", "_group_of_feature")}

    def table(self, w: Vector) -> AnyArray:
        """The flat weights as their table (n_rows, width), a view; DataError for another number of weights."""
        check_length(w, self.dim)
        return w.reshape(self.n_rows, self.width)

    def scores(self, w: Vector, i: int) -> Floats:
        """Emission scores (T * n_labels), then transition scores (n_labels^2), flat."""
        d, n_labels, table = self.data, self.n_labels, self.table(w)
        first, last = int(d.offsets[i]), int(d.offsets[i + 1])
        out = np.empty((last - first + (n_labels if self.transitions else 0)) * n_labels)
        room = np.empty((1, self.width))
        _kernels().score_chain(table, d.indices, d.values, d.indptr, first, last, self.start_row, n_labels, room, out)
        return out

    def group_scores(self, w: Vector, scales: GroupScales, i: int) -> Floats:
        """What `scores` gives for the weights scales * w: the values of features are scaled, not the weights."""
        d, n_labels, table = self.data, self.n_labels, self.table(w)
        first, last = int(d.offsets[i]), int(d.offsets[i + 1])
        own = slice(d.indptr[first], d.indptr[last])
        values = d.values[own] * scales.factors[self._group_of_feature[d.indices[own]]]
        out = np.empty(self.n_parts(i))
        emissions = out[: (last - first) * n_labels].reshape(-1, n_labels)
        starts = d.indptr[first : last + 1] - d.indptr[first]
        _kernels().score_chain(
            table, d.indices[own], values, starts, 0, last - first, -1, n_labels, np.empty((1, self.width)), emissions.ravel()
        )
        if self.transitions:
            bounds, steps = scales.factors[-2:].tolist()
            ends = table[self.start_row : self.start_row + 2, :n_labels]
            emissions[0] += bounds * ends[0]
            emissions[-1] += bounds * ends[1]
            out[(last - first) * n_labels :] = steps * table[self.start_row + 2 :, :n_labels].ravel()
        return out

    @cached_property
    def _group_of_feature(self) -> Integers32:
        """The group of each feature."""
        rows = np.diff(self.groups) // self.width
        return np.repeat(np.arange(len(rows), dtype=np.int32), rows)

    def fixed_scores(self, i: int) -> Floats | None:
        """What is added to the scores of instance i whatever the weights are; None if there is nothing."""
        first, last = self.data.offsets[i], self.data.offsets[i + 1]
        return self.fixed.of(first, last, edges=self.transitions) if self._has_fixed else None

    def adjoint(self, i: int, parts: Integers, counts: Floats) -> SparseVector:
        """The joint features of sparse part counts."""
        d = self.data
        where = d.indices, d.values, d.indptr, int(d.offsets[i]), int(d.offsets[i + 1])
        made = _kernels().combine_sequence(parts, counts, *where, self.start_row, self.width, self.n_labels, self.dim)
        return SparseVector(*made)

    def corner_calls(self) -> tuple[ModuleType, tuple[Any, ...]]:
        """Compiled visits of blocks of corners, and the arguments that they take: see trainers/blocks/corner_spaces.py."""
        from structpred.features import _sequence_corner_kernels

        d = self.data
        return _sequence_corner_kernels, (d.indices, d.values, d.indptr, d.offsets, self.start_row, self.width, self.n_labels)

    def scratch(self) -> Floats:
        """Zeros for `spread`: room for the features of the sequence that has the most, whatever `dim` is."""
        return np.zeros(self.scratch_size)

    @property
    def scratch_size(self) -> int:
        """How much room that is."""
        return (self._local[1] + (2 + self.n_labels if self.transitions else 0)) * self.width

    @cached_property
    def _local(self) -> tuple[Integers32, int]:
        """The features of each sequence numbered from zero, so that `spread` works in a few cached rows; the most of any."""
        d, local = self.data, np.empty(len(self.data.indices), np.int32)
        seen_in, rank = np.full(d.n_features, -1), np.empty(d.n_features, np.int32)
        return local, int(_kernels().number_locally(d.indices, d.indptr, d.offsets, seen_in, rank, local))

    def spread(self, i: int, mu: Floats, scratch: Floats) -> float:
        """scratch = Psi_i^T mu for dense mu, where scratch was zero; returns its squared norm."""
        d, (local, most) = self.data, self._local
        where = (d.offsets[i], d.offsets[i + 1], most if self.transitions else -1, self.n_labels)
        square = _kernels().spread_sequence(
            mu, 1.0, local, d.values, d.indptr, *where, np.zeros(self.width), scratch.reshape(-1, self.width)
        )
        return float(square)

    def add_dense(self, i: int, mu: Floats, coef: float, out: Floats) -> None:
        """out += coef * Psi_i^T mu for dense mu."""
        d = self.data
        where = d.indices, d.values, d.indptr, d.offsets[i], d.offsets[i + 1], self.start_row, self.n_labels
        _kernels().spread_sequence(mu, coef, *where, np.zeros(self.width), self.table(out))

    def flush(self, i: int, scratch: Floats, coef: float, w: Vector) -> None:
        """w += coef * scratch; scratch, which `spread` filled for instance i, becomes zero again."""
        d, (local, most) = self.data, self._local
        where = (d.offsets[i], d.offsets[i + 1], most, self.start_row, self.n_labels)
        _kernels().flush_sequence(scratch.reshape(-1, self.width), local, d.indices, d.indptr, *where, coef, self.table(w))

    def total(self, mu: Floats, places: Integers, coefs: Floats) -> Floats:
        """sum_i coefs[i] Psi_i^T mu_i, float64, for the dense mu_i = mu[places[i]:places[i+1]] of all instances."""
        d, out = self.data, np.zeros((self.n_rows, self.width))
        where = (d.indices, d.values, d.indptr, d.offsets, self.start_row, self.n_labels)
        _kernels().add_sequences(mu, places, coefs, *where, np.zeros(self.width), out)
        return out.ravel()

    def take(self, rows: Integers) -> "SequenceFeatures":
        """The sequences with these numbers, in this order."""
        new, fixed = copy(self), self.fixed
        tokens, _ = picked(self.data.offsets, rows)
        new.data, new.fixed = self.data.gather(rows), FixedScores(fixed.rows, fixed.row_of[tokens], fixed.edges)
        return new

    def with_scores(self, added: Sequence[Floats]) -> "SequenceFeatures | None":
        """The same with more fixed scores, those of each sequence; None where they are of transitions as well."""
        tokens = [own[: n * self.n_labels] for own, n in zip(added, self.data.lengths.tolist(), strict=True)]
        if any(own[len(some) :].any() for own, some in zip(added, tokens, strict=True)):
            return None
        every = np.concatenate(tokens).reshape(-1, self.n_labels) + self.fixed.rows[self.fixed.row_of]
        # equal rows have equal sums; rows that differ nearly never do, and each then stands for itself
        sums = every @ np.random.default_rng(0).random(self.n_labels)
        _, first, row_of = np.unique(sums, return_index=True, return_inverse=True)
        rows = every[first]
        if not np.array_equal(rows[row_of], every):
            rows, row_of = every, np.arange(len(every))
        new = copy(self)
        new.fixed, new._has_fixed = FixedScores(rows, row_of.astype(np.int32), self.fixed.edges), True
        return new

    def arrays(self) -> Sequence[AnyArray]:
        """The packed corpus."""
        d = self.data
        return (d.indptr, d.indices, d.values, d.offsets, *self.fixed.arrays())
