"""Edit scripts between two strings, empty ones included: match or replace, insert, delete; features shared by all positions."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

import structpred

STEPS = ((1, 1), (0, 1), (1, 0))  # replace, insert, delete


class EditScripts(structpred.Oracle):
    """shape = (n, m), the lengths. Part (i * (m + 1) + j) * 3 + s: step s is made at (i, j). Labels are the parts, in order."""

    def n_parts(self, shape: Any) -> int:
        return (shape[0] + 1) * (shape[1] + 1) * len(STEPS)

    def _steps(self, i: int, j: int, shape: Any) -> list[tuple[int, int, int]]:
        """(part, next i, next j) of each step that can be made."""
        ends = [(s, i + a, j + b) for s, (a, b) in enumerate(STEPS)]
        return [((i * (shape[1] + 1) + j) * 3 + s, a, b) for s, a, b in ends if a <= shape[0] and b <= shape[1]]

    def _cells(self, shape: Any) -> list[tuple[int, int]]:
        return [(i, j) for i in range(shape[0] + 1) for j in range(shape[1] + 1)]

    def argmax(self, scores: Any, shape: Any) -> Any:
        best = {tuple(shape): (0.0, ())}
        for i, j in reversed(self._cells(shape)[:-1]):
            ways = [(float(scores[p]) + best[a, b][0], (p, *best[a, b][1])) for p, a, b in self._steps(i, j, shape)]
            best[i, j] = max(ways, key=lambda way: way[0])
        return np.array(best[0, 0][1], dtype=np.int64)

    def parts(self, labels: Any, shape: Any) -> Any:
        cell = (0, 0)
        for p in labels.tolist():
            ends = {part: (a, b) for part, a, b in self._steps(*cell, shape)}
            if p not in ends:
                raise ValueError(f"step {p} cannot be made at {cell}")
            cell = ends[p]
        if cell != tuple(shape):
            raise ValueError(f"the script ends at {cell}")
        return labels

    def enumerate(self, shape: Any) -> Iterator[Any]:
        return (np.array(script, dtype=np.int64) for script in self._scripts(0, 0, shape))

    def _scripts(self, i: int, j: int, shape: Any) -> Iterator[tuple[int, ...]]:
        if (i, j) == tuple(shape):
            yield ()
        for p, a, b in self._steps(i, j, shape):
            yield from ((p, *rest) for rest in self._scripts(a, b, shape))

    def marginals(self, scores: Any, shape: Any) -> tuple[float, Any]:
        cells = self._cells(shape)
        after, before = dict.fromkeys(cells, -np.inf), dict.fromkeys(cells, -np.inf)
        after[cells[-1]] = before[0, 0] = 0.0
        for i, j in reversed(cells):
            for p, a, b in self._steps(i, j, shape):
                after[i, j] = np.logaddexp(after[i, j], scores[p] + after[a, b])
        mu = np.zeros(len(scores))
        for i, j in cells:
            for p, a, b in self._steps(i, j, shape):
                before[a, b] = np.logaddexp(before[a, b], before[i, j] + scores[p])
                mu[p] = np.exp(before[i, j] + scores[p] + after[a, b] - after[0, 0])
        return float(after[0, 0]), mu

    @staticmethod
    def example_shapes() -> list[Any]:
        return [(0, 0), (0, 2), (1, 1), (2, 3)]


def edit_features(one: str, two: str) -> Any:
    """Rows for the parts: equal letters, different letters, insertion, deletion, insertion of a vowel."""
    rows = sparse.lil_array(((len(one) + 1) * (len(two) + 1) * 3, 5))
    for i in range(len(one) + 1):
        for j in range(len(two) + 1):
            at = (i * (len(two) + 1) + j) * 3
            if i < len(one) and j < len(two):
                rows[at, int(one[i] != two[j])] = 1.0
            if j < len(two):
                rows[at + 1, 2], rows[at + 1, 4] = 1.0, float(two[j] in "aeiou")
            rows[at + 2, 3] = 1.0
    return rows.tocsr()
