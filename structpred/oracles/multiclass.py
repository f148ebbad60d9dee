"""One label out of n_labels: the smallest structure, and independent classification where it is used per position."""

from collections.abc import Iterator, Sequence

import numpy as np

from structpred.core.oracle import Labels, Oracle, Scores, Shape
from structpred.core.scores import checked_batch, checked_scores, checked_sizes, checked_table
from structpred.core.types import Floats, Integers
from structpred.projections.simplex import project_onto_simplex
from structpred.projections.tree_marginals import chain_forest, project_forests


class MulticlassOracle(Oracle):
    """shape = (n_labels,); part l is on when the label is l. Ties go to the first label."""

    def n_parts(self, shape: tuple[int, ...]) -> int:
        """n_labels."""
        return checked_sizes(shape, "labels")[0]

    def argmax(self, scores: Scores, shape: Shape) -> Labels:
        """The label with the largest score."""
        return np.array([checked_scores(scores, self.n_parts(shape), shape).argmax()], dtype=np.int64)

    def argmax_batch(self, scores: Scores, offsets: Integers, shapes: Sequence[Shape]) -> tuple[Labels, Integers]:
        """The best label of each instance; all at once where all have the same number of labels."""
        scores, offsets = checked_batch(scores, offsets, checked_table(shapes, "labels")[:, 0])
        label_offsets = np.arange(len(shapes) + 1, dtype=np.int64)
        if len(set(shapes)) == 1:
            return scores.reshape(len(shapes), -1).argmax(axis=1).astype(np.int64), label_offsets
        best = [int(scores[offsets[i] : offsets[i + 1]].argmax()) for i in range(len(shapes))]
        return np.array(best, dtype=np.int64), label_offsets

    def parts(self, labels: Labels, shape: Shape) -> Integers:
        """The label itself."""
        if labels.shape != (1,):
            raise ValueError(f"expected one label, got an array of shape {labels.shape}")
        return labels

    def parts_batch(self, labels: Labels, ends: Integers, shapes: Sequence[Shape]) -> tuple[Integers, Integers]:
        """The parts of each output: the labels themselves."""
        return labels, ends

    def marginals(self, scores: Scores, shape: Shape) -> tuple[float, Floats]:
        """(log sum exp scores, softmax of the scores), stable for scores of any size."""
        log_z, mu = MulticlassOracle.marginals_batch(self, scores, np.array([0, self.n_parts(shape)]), [shape])
        return float(log_z[0]), mu

    def marginals_batch(self, scores: Scores, offsets: Integers, shapes: Sequence[Shape]) -> tuple[Floats, Floats]:
        """The same of each instance, all at once."""
        scores, offsets = checked_batch(scores, offsets, sizes := np.array([self.n_parts(shape) for shape in shapes], np.int64))
        top = np.maximum.reduceat(scores, offsets[:-1])
        weights = np.exp(scores - np.repeat(top, sizes))
        total = np.add.reduceat(weights, offsets[:-1])
        return top + np.log(total), weights / np.repeat(total, sizes)

    def kbest(self, scores: Scores, shape: Shape, k: int) -> list[Labels]:
        """The k labels with the largest scores, best first."""
        scores = checked_scores(scores, self.n_parts(shape), shape)
        return [np.array([label], dtype=np.int64) for label in np.argsort(-scores, kind="stable")[:k]]

    def project(self, point: Scores, shape: Shape) -> Floats:
        """The nearest point of the probability simplex, by sorting."""
        return project_onto_simplex(checked_scores(point, self.n_parts(shape), shape))

    def clique_parts(self, shape: Shape) -> tuple[Integers, Integers]:
        """The clique marginals are the part counts themselves."""
        n_labels = self.n_parts(shape)
        return np.arange(n_labels + 1), np.arange(n_labels)

    def project_cliques(
        self, points: Scores, offsets: Integers, shapes: Sequence[Shape], start: Floats | None = None, n_jobs: int = 1
    ) -> tuple[Floats, Floats]:
        """The nearest points of the simplices, in compiled calls; there are no multipliers."""
        sizes = checked_table(shapes, "labels")[:, 0]
        points, offsets = checked_batch(points, offsets, sizes)
        return project_forests(points, offsets, [chain_forest(1, n_labels) for n_labels in sizes.tolist()], start, n_jobs=n_jobs)

    def enumerate(self, shape: Shape) -> Iterator[Labels]:
        """Every label."""
        return (np.array([label], dtype=np.int64) for label in range(self.n_parts(shape)))

    def label_grid(self, shape: Shape) -> tuple[int, int]:
        """One position, n_labels labels."""
        return 1, shape[0]

    @staticmethod
    def example_shapes() -> list[Shape]:
        """One label, two, and a few."""
        return [(1,), (2,), (7,)]
