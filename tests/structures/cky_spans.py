"""Bracketings: binary trees over n words, scored by their spans (CKY); probabilities of spans by inside-outside."""

from collections.abc import Iterator
from typing import Any

import numpy as np

import structpred


class Bracketings(structpred.Oracle):
    """shape = (n,). A part is a span (i, j), 0 <= i < j <= n; labels are the numbers of a tree's 2 n - 1 spans, ascending."""

    def n_parts(self, shape: Any) -> int:
        return shape[0] * (shape[0] + 1) // 2

    def spans(self, n: int) -> list[tuple[int, int]]:
        return [(i, j) for i in range(n) for j in range(i + 1, n + 1)]

    def argmax(self, scores: Any, shape: Any) -> Any:
        n, best, cut = shape[0], {}, {}
        table = dict(zip(self.spans(n), scores.tolist(), strict=True))
        for i, j in sorted(table, key=lambda span: span[1] - span[0]):
            if j - i > 1:
                cut[i, j] = max(range(i + 1, j), key=lambda k: best[i, k] + best[k, j])
            best[i, j] = table[i, j] + (best[i, cut[i, j]] + best[cut[i, j], j] if j - i > 1 else 0.0)
        return self._numbers(n, list(self._within(0, n, cut)))

    def _within(self, i: int, j: int, cut: dict[tuple[int, int], int]) -> Iterator[tuple[int, int]]:
        yield i, j
        if j - i > 1:
            yield from self._within(i, cut[i, j], cut)
            yield from self._within(cut[i, j], j, cut)

    def _numbers(self, n: int, spans: list[tuple[int, int]]) -> Any:
        number = {span: p for p, span in enumerate(self.spans(n))}
        return np.array(sorted(number[span] for span in spans), dtype=np.int64)

    def parts(self, labels: Any, shape: Any) -> Any:
        n = shape[0]
        if (
            labels.size != 2 * n - 1
            or (np.diff(labels) <= 0).any()
            or not 0 <= labels.min() <= labels.max() < self.n_parts(shape)
        ):
            raise ValueError(f"a tree over {n} words has {2 * n - 1} different spans")
        chosen = [self.spans(n)[p] for p in labels]
        if (0, n) not in chosen or any(a < c < b < d for a, b in chosen for c, d in chosen):
            raise ValueError("spans of a tree do not cross, and one covers all words")
        return labels

    def enumerate(self, shape: Any) -> Iterator[Any]:
        return (self._numbers(shape[0], tree) for tree in self._trees(0, shape[0]))

    def _trees(self, i: int, j: int) -> list[list[tuple[int, int]]]:
        if j - i == 1:
            return [[(i, j)]]
        halves = [(left, right) for k in range(i + 1, j) for left in self._trees(i, k) for right in self._trees(k, j)]
        return [[(i, j), *left, *right] for left, right in halves]

    def marginals(self, scores: Any, shape: Any) -> tuple[float, Any]:
        n = shape[0]
        table = dict(zip(self.spans(n), scores.tolist(), strict=True))
        inside: dict[tuple[int, int], float] = {}
        outside = dict.fromkeys(table, -np.inf)
        outside[0, n] = 0.0
        short_first = sorted(table, key=lambda span: span[1] - span[0])
        for i, j in short_first:
            splits = [inside[i, k] + inside[k, j] for k in range(i + 1, j)]
            inside[i, j] = table[i, j] + (float(np.logaddexp.reduce(splits)) if splits else 0.0)
        for i, j in reversed(short_first):
            for k in range(i + 1, j):
                above = outside[i, j] + table[i, j]
                outside[i, k] = float(np.logaddexp(outside[i, k], above + inside[k, j]))
                outside[k, j] = float(np.logaddexp(outside[k, j], above + inside[i, k]))
        log_z = inside[0, n]
        return log_z, np.exp([inside[span] + outside[span] - log_z for span in table])

    @staticmethod
    def example_shapes() -> list[Any]:
        return [(1,), (2,), (3,), (5,)]
