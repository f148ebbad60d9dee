"""Chains whose positions are scored by functions of kernels: the features of a position are the positions of the training set."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from structpred.core.feature_map import FeatureMap
from structpred.core.group_scales import GroupScales
from structpred.core.sparse import SparseVector, coalesced
from structpred.core.types import AnyArray, DTypeLike, Floats, Integers
from structpred.core.weights import Vector, check_length
from structpred.data.ragged import Ragged
from structpred.data.sequences import PackedSequences
from structpred.features.fixed_scores import FixedScores
from structpred.features.sequences import SequenceFeatures
from structpred.runtime.lazy_names import later
from structpred.runtime.ranges import picked
from structpred.task.function_space import FunctionSpace, Gram

_kernels = later("structpred.features._position_kernels")


@dataclass(frozen=True, eq=False)
class PositionSequences(Ragged):
    """Sequences of which kernel values alone are known: a Gram matrix for each kernel, over all positions of all sequences.

    Whoever makes them answers for the matrices, which are symmetric and positive semidefinite; for prediction they may have
    other positions in rows than in columns.

    offsets: sequence i has the positions from offsets[i] on. names: those of the kernels. explicit: features of the positions
    beside them, in blocks, or None. rows: of a part, which rows and columns of the matrices its positions are; None: all.

    >>> x = PositionSequences([np.eye(3, dtype=np.float32)], np.array([0, 1, 3]), ["kernel"])
    >>> x.gather(np.array([1])).rows.tolist()
    [1, 2]
    """

    grams: Sequence[Gram]
    offsets: Integers
    names: Sequence[str]
    explicit: PackedSequences | None = None
    rows: Integers | None = None

    @property
    def n_features(self) -> int:
        """A coefficient for each position and kernel."""
        return len(self.grams) * self.n_tokens

    def features(self, n_labels: int, fixed: FixedScores | None) -> "PositionFeatures":
        """The feature map of these sequences."""
        grams = self.grams if self.rows is None else [_part(gram, self.rows) for gram in self.grams]
        if self.explicit is not None:
            return MixedFeatures(grams, self.explicit, n_labels, self.names, fixed=fixed)
        return PositionFeatures(grams, self.offsets, n_labels, self.names, fixed=fixed)

    def gather(self, sequences: Integers) -> "PositionSequences":
        """The sequences with these numbers, in this order, over the same matrices."""
        places, offsets = picked(self.offsets, sequences)
        explicit = None if self.explicit is None else self.explicit.gather(sequences)
        return replace(self, offsets=offsets, explicit=explicit, rows=places if self.rows is None else self.rows[places])


def _part(gram: Gram, rows: Integers) -> Gram:
    """Some rows, and the same columns."""
    part = gram[np.ix_(rows, rows)]
    if not isinstance(part, np.ndarray):
        part.sort_indices()
    return part


class PositionFeatures(FeatureMap):
    """Label sequences over a training set of which the Gram matrices of one or more kernels are known.

    Position t has the score sum_k f_k,label(t) for a label; start, stop and transition scores are ordinary weights. The weights
    are those of `space`; their groups are the kernels, start and stop, and transitions. Joint features are values of functions;
    so a step along them is one of coefficients, and adds rows of the Gram matrices to the values (`FunctionSpace`).

    grams: one for each kernel, over all positions of all sequences. offsets: sequence i has the positions from offsets[i] on.
    """

    def __init__(
        self, grams: Sequence[Gram], offsets: Integers, n_labels: int, names: Sequence[str], *,
        dtype: DTypeLike = np.float32, fixed: FixedScores | None = None,
    ) -> None:  # fmt: skip
        self.space = FunctionSpace(grams, n_labels, [2 * n_labels, n_labels**2])
        self.offsets, self.n_labels, self.fixed = np.ascontiguousarray(offsets, np.int64), n_labels, fixed
        self.dim, self.dtype, self.groups = self.space.dim, np.dtype(dtype), self.space.groups
        self.group_names = [*names, "start and stop", "transitions"]
        self._sizes = (self.space.n, n_labels, len(grams))
        self._ones = GroupScales(self.groups, np.ones(len(self.groups) - 1))

    def with_kernel(self, gram: Gram) -> "PositionFeatures":
        """The same sequences with one kernel."""
        return PositionFeatures([gram], self.offsets, self.n_labels, ["kernel"], dtype=self.dtype, fixed=self.fixed)

    def __len__(self) -> int:
        """The number of sequences."""
        return len(self.offsets) - 1

    def n_parts(self, i: int) -> int:
        """T * n_labels emissions and n_labels^2 transitions."""
        return int(self.offsets[i + 1] - self.offsets[i] + self.n_labels) * self.n_labels

    def scores(self, w: Vector, i: int) -> Floats:
        """Emission scores (T * n_labels), then transition scores (n_labels^2), flat."""
        return self.group_scores(w, self._ones, i)

    def group_scores(self, w: Vector, scales: GroupScales, i: int) -> Floats:
        """What `scores` gives for the weights scales * w."""
        check_length(w, self.dim)
        out = np.empty(self.n_parts(i))
        _kernels().score_positions(w, self.groups, scales.factors, self._sizes, self.offsets[i], self.offsets[i + 1], out)
        return out

    def fixed_scores(self, i: int) -> Floats | None:
        """What is added to the scores of instance i whatever the weights are; None if there is nothing."""
        return None if self.fixed is None else self.fixed.of(self.offsets[i], self.offsets[i + 1])

    def adjoint(self, i: int, parts: Integers, counts: Floats) -> SparseVector:
        """The joint features of sparse part counts."""
        size = (self._sizes[2] + 2) * len(parts)
        idx, val = np.empty((2, size), np.int64), np.empty((2, size))
        where = self.groups, self._sizes, self.offsets[i], self.offsets[i + 1]
        n = _kernels().emit_positions(parts, counts, *where, idx[0], val[0], idx[1], val[1])
        return SparseVector(idx[0, :n], val[0, :n])

    def arrays(self) -> Sequence[AnyArray]:
        """The Gram matrices, and where sequences begin."""
        return [*self.space.arrays(), self.offsets, *(() if self.fixed is None else self.fixed.arrays())]


class MixedFeatures(PositionFeatures):
    """The same with explicit features beside the kernels: each block of `explicit` is a group of ordinary weights.

    Behind the functions of the kernels the weights are the table of `SequenceFeatures`: features, start and stop, transitions.
    """

    def __init__(
        self, grams: Sequence[Gram], explicit: PackedSequences, n_labels: int, names: Sequence[str], *,
        dtype: DTypeLike = np.float32, fixed: FixedScores | None = None,
    ) -> None:  # fmt: skip
        super().__init__(grams, explicit.offsets, n_labels, names, dtype=dtype, fixed=fixed)
        self.explicit = SequenceFeatures(explicit, n_labels, dtype=dtype)
        self.space = FunctionSpace(grams, n_labels, np.diff(self.explicit.groups).tolist())
        self.dim, self.groups, self.group_names = self.space.dim, self.space.groups, [*names, *self.explicit.group_names]
        self._ones = GroupScales(self.groups, np.ones(len(self.groups) - 1))

    def with_kernel(self, gram: Gram) -> "MixedFeatures":
        """The same sequences and explicit features with one kernel."""
        return MixedFeatures([gram], self.explicit.data, self.n_labels, ["kernel"], dtype=self.dtype, fixed=self.fixed)

    def group_scores(self, w: Vector, scales: GroupScales, i: int) -> Floats:
        """What `scores` gives for the weights scales * w."""
        check_length(w, self.dim)
        K, (first, last) = len(self.space.grams), self.offsets[i : i + 2].tolist()
        own = GroupScales(self.explicit.groups, scales.factors[K:])
        out = self.explicit.group_scores(w[self.groups[K] :], own, i)
        emissions = out[: (last - first) * self.n_labels].reshape(-1, self.n_labels)
        for k in range(K):
            emissions += scales.factors[k] * self.space.values(w, k)[:, first:last].T
        return out

    def adjoint(self, i: int, parts: Integers, counts: Floats) -> SparseVector:
        """The joint features of sparse part counts."""
        K, (first, last), (n, n_labels, _) = len(self.space.grams), self.offsets[i : i + 2].tolist(), self._sizes
        some, rest = parts < (last - first) * n_labels, self.explicit.adjoint(i, parts, counts)
        t, label = np.divmod(parts[some], n_labels)
        places, values = coalesced((n_labels + label) * n + first + t, counts[some])
        indices = [*(start + places for start in self.groups[:K]), self.groups[K] + rest.indices]
        return SparseVector(np.concatenate(indices), np.concatenate((*[values] * K, rest.values)))

    def arrays(self) -> Sequence[AnyArray]:
        """The Gram matrices, where sequences begin, and the explicit features."""
        return [*super().arrays(), *self.explicit.arrays()]
