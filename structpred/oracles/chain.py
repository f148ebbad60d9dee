"""First-order label chains: Viterbi decoding (Viterbi 1967; Rabiner 1989, section III.B)."""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from structpred.core.features import FeatureMap, SequenceFeatures
from structpred.core.oracle import Labels, Oracle, Scores, Shape
from structpred.core.task import Fused
from structpred.core.weights import Vector
from structpred.errors import DataError


class ChainOracle(Oracle):
    """shape = (T, L): T positions, L labels. O(T L^2).

    Parts: t * L + l is on when position t has label l; T * L + k * L + l counts how often label l follows label k.
    Start and stop scores belong to the first and the last position's parts. Ties go to the first label.

    >>> import numpy as np
    >>> scores = np.array([0.0, 1.0, 1.0, 0.0, 5.0, 0.0, 0.0, 0.0])  # two positions, two labels, then 2 x 2 transitions
    >>> ChainOracle().argmax(scores, (2, 2)).tolist()
    [0, 0]
    """

    def n_parts(self, shape: Shape) -> int:
        """T * L + L^2."""
        length, n_labels = shape
        return length * n_labels + n_labels**2

    def argmax(self, scores: Scores, shape: Shape) -> Labels:
        """The best label sequence."""
        return self.argmax_batch(scores, np.array([0, len(scores)]), [shape])[0]

    def argmax_batch(
        self, scores: Scores, offsets: npt.NDArray[np.int64], shapes: Sequence[Shape]
    ) -> tuple[Labels, npt.NDArray[np.int64]]:
        """The best label sequence of each instance; all must have the same number of labels."""
        from structpred.oracles._chain_kernels import decode_flat

        lengths = np.array([shape[0] for shape in shapes], dtype=np.int64)
        label_counts = {shape[1] for shape in shapes}
        if len(label_counts) > 1:  # mixed shapes: one compiled call for each number of labels would not keep the order
            parts = [self.argmax(scores[offsets[i] : offsets[i + 1]], s) for i, s in enumerate(shapes)]
            return np.concatenate(parts), np.concatenate(([0], np.cumsum(lengths)))
        n_labels = label_counts.pop() if label_counts else 1
        if lengths.min(initial=1) < 1:
            raise DataError(f"sample {int(lengths.argmin())}: a chain needs at least one position, got length 0")
        scratch = Scratch(n_labels, int(lengths.max(initial=1)))
        out = np.empty(int(lengths.sum()), np.int64)
        decode_flat(scores, offsets, lengths, n_labels, scratch.trans, scratch.work, scratch.back, scratch.pointers, out)
        return out, np.concatenate(([0], np.cumsum(lengths)))

    def parts(self, labels: Labels, shape: Shape) -> npt.NDArray[np.int64]:
        """T position-label parts, then T - 1 label-label parts."""
        length, n_labels = shape
        if labels.shape != (length,):
            raise ValueError(f"expected {length} labels, got {labels.size}")
        if length and not (labels.min() >= 0 and labels.max() < n_labels):
            raise ValueError(f"labels must lie in [0, {n_labels}), got {labels.min()}..{labels.max()}")
        return np.concatenate((np.arange(length) * n_labels + labels, (length + labels[:-1]) * n_labels + labels[1:]))

    def enumerate(self, shape: Shape) -> Iterator[Labels]:
        """All L^T label sequences."""
        length, n_labels = shape
        return (np.array(y, dtype=np.int64) for y in product(range(n_labels), repeat=length))

    def label_grid(self, shape: Shape) -> tuple[int, int]:
        """T positions, L labels."""
        return shape[0], shape[1]

    def fuse(
        self,
        features: FeatureMap,
        labels: Sequence[Labels],
        costs: npt.NDArray[np.float64],
        token_weights: Sequence[npt.NDArray[np.float64]] | None,
    ) -> Fused | None:
        """Compiled steps over sequence features with transitions; None for any other feature map."""
        if not isinstance(features, SequenceFeatures) or not features.transitions:
            return None
        return ChainSteps(features, labels, costs, token_weights)

    @staticmethod
    def example_shapes() -> list[Shape]:
        """Up to 729 label sequences; one label and one position among them."""
        return [(1, 1), (1, 3), (2, 2), (4, 1), (5, 2), (4, 4), (6, 3)]


class Scratch:
    """The working memory of one decoder: O(L^2), and back-pointers for the longest sequence (one byte each up to 256 labels)."""

    def __init__(self, n_labels: int, longest: int) -> None:
        width = -(-n_labels // 8) * 8
        self.trans = np.zeros((n_labels, width))
        self.work = np.zeros((3, width))
        self.back = np.zeros(width, np.int64)
        self.pointers = np.empty((longest, width), np.uint8 if n_labels <= 256 else np.uint16)


class ChainSteps:
    """Scoring, decoding and differences of chains over sequence features, one compiled call each (the Fused protocol)."""

    def __init__(
        self,
        features: SequenceFeatures,
        labels: Sequence[Labels],
        costs: npt.NDArray[np.float64],
        token_weights: Sequence[npt.NDArray[np.float64]] | None,
    ) -> None:
        self.features, data = features, features.data
        self.costs = np.zeros((features.n_labels, features.width))
        self.costs[:, : features.n_labels] = costs
        self.gold = np.concatenate([*labels, np.empty(0, np.int64)])
        self.token_weights = np.ones(data.n_tokens) if token_weights is None else np.concatenate([*token_weights, np.empty(0)])
        if not len(self.gold) == len(self.token_weights) == data.n_tokens:
            raise DataError(
                f"{data.n_tokens} tokens but {len(self.gold)} labels and {len(self.token_weights)} token weights: "
                "give one of each for every position"
            )
        longest = int(data.lengths.max(initial=1))
        self.scratch, self.out = Scratch(features.n_labels, longest), np.empty(longest, np.int64)
        self.idx2, self.val2 = np.empty(self.buffer_size(), np.int64), np.empty(self.buffer_size())

    def buffer_size(self) -> int:
        """Every token wrong: its features twice, a transition, and start and stop."""
        data = self.features.data
        pairs = data.indptr[data.offsets[1:]] - data.indptr[data.offsets[:-1]]
        return int((2 * (pairs + data.lengths)).max(initial=0)) + 4

    def _data(self) -> tuple[Any, ...]:
        data = self.features.data
        return data.indices, data.values, data.indptr

    def step_into(
        self, w: Vector, scale: float, i: int, loss_weight: float, idx: npt.NDArray[np.int64], val: npt.NDArray[np.float64]
    ) -> tuple[int, float, float]:
        """Decode sequence i and write its difference, sorted and unique."""
        from structpred.oracles._chain_kernels import step_sequence

        f, s, offsets = self.features, self.scratch, self.features.data.offsets
        n, loss, product_ = step_sequence(
            w, f.table(w), scale, *self._data(), offsets[i], offsets[i + 1], f.start_row, f.n_labels, s.trans,
            self.gold, self.token_weights, self.costs, loss_weight, s.work, s.back, s.pointers, self.out,
            idx, val, self.idx2, self.val2,
        )  # fmt: skip
        return n, loss, product_

    def sweep(
        self, w: Vector, scale: float, start: int, stop: int, loss_weight: float
    ) -> tuple[Labels, npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Decode sequences start..stop-1 in one compiled call: (flat labels, losses, violations)."""
        from structpred.oracles._chain_kernels import sweep_sequences

        f, s, offsets = self.features, self.scratch, self.features.data.offsets
        labels = np.empty(int(offsets[stop] - offsets[start]), np.int64)
        losses, violations = np.empty(stop - start), np.empty(stop - start)
        sweep_sequences(
            f.table(w), scale, *self._data(), offsets, start, stop, f.start_row, f.n_labels, s.trans,
            self.gold, self.token_weights, self.costs, loss_weight, s.work, s.back, s.pointers, labels, losses, violations,
        )  # fmt: skip
        return labels, losses, violations
