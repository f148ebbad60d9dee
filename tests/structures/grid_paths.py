"""Paths through a grid from the top left to the bottom right cell: right, down or diagonal, of any length. With the k best."""

from collections.abc import Iterator
from heapq import nlargest
from typing import Any

import numpy as np

import structpred
from structpred.core.costs import PartCosts

MOVES = ((0, 1), (1, 0), (1, 1))


class GridPaths(structpred.Oracle):
    """shape = (rows, columns). Part (i * columns + j) * 3 + m: move m is made from cell (i, j). Labels: the moves, in order."""

    def n_parts(self, shape: Any) -> int:
        return shape[0] * shape[1] * len(MOVES)

    def argmax(self, scores: Any, shape: Any) -> Any:
        return self.kbest(scores, shape, 1)[0]

    def kbest(self, scores: Any, shape: Any, k: int) -> list[Any]:
        table = scores.reshape(*shape, len(MOVES))
        best: dict[tuple[int, int], list[tuple[float, tuple[int, ...]]]] = {}
        for i in reversed(range(shape[0])):
            for j in reversed(range(shape[1])):
                last = (i, j) == (shape[0] - 1, shape[1] - 1)
                ways = [
                    (float(table[i, j, m]) + value, (m, *rest))
                    for m, (down, right) in enumerate(MOVES)
                    for value, rest in best.get((i + down, j + right), [])
                ]
                best[i, j] = [(0.0, ())] if last else nlargest(k, ways, key=lambda way: way[0])
        return [np.array(moves, dtype=np.int64) for _, moves in best[0, 0]]

    def parts(self, labels: Any, shape: Any) -> Any:
        cell, on = (0, 0), []
        for m in labels.tolist():
            on.append((cell[0] * shape[1] + cell[1]) * len(MOVES) + m)
            cell = (cell[0] + MOVES[m][0], cell[1] + MOVES[m][1])
            if m < 0 or cell[0] >= shape[0] or cell[1] >= shape[1]:
                raise ValueError("the path leaves the grid")
        if cell != (shape[0] - 1, shape[1] - 1):
            raise ValueError(f"the path ends in {cell}")
        return np.array(on, dtype=np.int64)

    def enumerate(self, shape: Any) -> Iterator[Any]:
        return (np.array(moves, dtype=np.int64) for moves in self._paths(0, 0, shape))

    def _paths(self, i: int, j: int, shape: Any) -> Iterator[tuple[int, ...]]:
        if (i, j) == (shape[0] - 1, shape[1] - 1):
            yield ()
        for m, (down, right) in enumerate(MOVES):
            if i + down < shape[0] and j + right < shape[1]:
                yield from ((m, *rest) for rest in self._paths(i + down, j + right, shape))

    @staticmethod
    def example_shapes() -> list[Any]:
        return [(1, 1), (1, 3), (2, 2), (3, 4)]


class Detours:
    """Each straight move that is not on the true path costs 1, each diagonal one 1.5."""

    def costs(self, labels: Any, shape: Any, oracle: Any) -> PartCosts:
        costs = np.tile([1.0, 1.0, 1.5], shape[0] * shape[1])
        costs[oracle.parts(labels, shape)] = 0.0
        return PartCosts(0.0, costs)
