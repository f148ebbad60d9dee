"""Right oracles of several structures, written plainly: the planted faults are subclasses of them."""

from dataclasses import dataclass
from itertools import combinations, permutations

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.special import logsumexp

from structpred.core.oracle import Oracle


def ints(values):
    """An int64 array of whole numbers."""
    return np.array(list(values), dtype=np.int64)


def member(oracle, labels, shape):
    """The labels, if they are an output."""
    if not any(np.array_equal(labels, y) for y in oracle.enumerate(shape)):
        raise ValueError(f"no output: {labels}")
    return labels


class Brackets(Oracle):
    """Binary trees over n words: labels are the spans i * (n + 1) + j of two words and more, outer ones first; by CKY."""

    def n_parts(self, shape):
        return (shape[0] + 1) ** 2

    def splits(self, i, j):
        return range(i + 1, j)

    def argmax(self, scores, shape):
        s = scores.reshape(shape[0] + 1, -1)

        def best(i, j):
            if j - i < 2:
                return 0.0, []
            pairs = [(best(i, k), best(k, j)) for k in self.splits(i, j)]
            left, right = max(pairs, key=lambda pair: pair[0][0] + pair[1][0])
            return s[i, j] + left[0] + right[0], [i * len(s) + j, *left[1], *right[1]]

        return ints(best(0, shape[0])[1])

    def enumerate(self, shape):
        def trees(i, j):
            if j - i < 2:
                return [[]]
            code = i * (shape[0] + 1) + j
            return [[code, *a, *b] for k in range(i + 1, j) for a in trees(i, k) for b in trees(k, j)]

        return map(ints, trees(0, shape[0]))

    def parts(self, labels, shape):
        return member(self, labels, shape)

    def above(self, s, outside, i, j):
        """What the spans around [i, j) bring into its outside sum."""
        return outside[i, j] + s[i, j]

    def marginals(self, scores, shape):
        n, s = shape[0], scores.reshape(shape[0] + 1, -1)
        inside, outside, mu = np.zeros_like(s), np.full_like(s, -np.inf), np.zeros_like(s)
        for width in range(2, n + 1):
            for i in range(n - width + 1):
                j = i + width
                inside[i, j] = s[i, j] + logsumexp([inside[i, k] + inside[k, j] for k in range(i + 1, j)])
        outside[0, n] = 0.0
        for width in range(n, 1, -1):
            for i in range(n - width + 1):
                j = i + width
                ways = [self.above(s, outside, i, m) + inside[j, m] for m in range(j + 1, n + 1)]
                ways += [self.above(s, outside, m, j) + inside[m, i] for m in range(i)]
                outside[i, j] = logsumexp(ways) if ways else 0.0
                mu[i, j] = np.exp(min(inside[i, j] + outside[i, j] - inside[0, n], 0.0))
        return float(inside[0, n]), mu.ravel()

    @staticmethod
    def example_shapes():
        return [(2,), (3,), (5,)]


class Paths(Oracle):
    """Paths from corner to corner by right (0), down (1), diagonal (2); part cell * 3 + move."""

    moves = ((0, 1), (1, 0), (1, 1))

    def size(self, shape):
        return shape

    def n_parts(self, shape):
        rows, columns = self.size(shape)
        return 3 * rows * columns

    def best(self, s, shape):
        rows, columns = self.size(shape)
        table = {(rows - 1, columns - 1): (0.0, [])}
        for r in range(rows - 1, -1, -1):
            for c in range(columns - 1, -1, -1):
                at = [(m, table.get((r + dr, c + dc))) for m, (dr, dc) in enumerate(self.moves)]
                ways = [(s[r * columns + c, m] + t[0], [m, *t[1]]) for m, t in at if t]
                if ways:
                    table[r, c] = max(ways, key=lambda way: way[0])
        return table[0, 0][1]

    def argmax(self, scores, shape):
        return ints(self.best(scores.reshape(-1, 3), shape))

    def parts(self, labels, shape):
        rows, columns = self.size(shape)
        r = c = 0
        out = []
        for m in labels:
            if not 0 <= m < 3:
                raise ValueError("no such move")
            out.append((r * columns + c) * 3 + m)
            r, c = r + Paths.moves[m][0], c + Paths.moves[m][1]
            if r >= rows or c >= columns:
                raise ValueError("the path leaves the grid")
        if (r, c) != (rows - 1, columns - 1):
            raise ValueError("the path stops early")
        return ints(out)

    def enumerate(self, shape):
        rows, columns = self.size(shape)

        def rest(r, c):
            if (r, c) == (rows - 1, columns - 1):
                yield []
            for m, (dr, dc) in enumerate(Paths.moves):
                if r + dr < rows and c + dc < columns:
                    yield from ([m, *more] for more in rest(r + dr, c + dc))

        return map(ints, rest(0, 0))

    @staticmethod
    def example_shapes():
        return [(1, 3), (2, 2), (3, 3)]


class Alignments(Paths):
    """Edits of a string of n into one of m letters: insert (0), delete (1), replace (2). Both may be empty."""

    def size(self, shape):
        return shape[0] + 1, shape[1] + 1

    def marginals(self, scores, shape):
        counts = np.array([np.bincount(self.parts(y, shape), minlength=len(scores)) for y in self.enumerate(shape)])
        values = counts @ scores
        log_z = logsumexp(values)
        return float(log_z), np.exp(values - log_z) @ counts

    @staticmethod
    def example_shapes():
        return [(0, 0), (1, 0), (2, 2)]


class Ranking(Oracle):
    """labels[r] is the item at rank r; part item * n + rank."""

    def n_parts(self, shape):
        return shape[0] ** 2

    def argmax(self, scores, shape):
        return np.argsort(linear_sum_assignment(scores.reshape(shape[0], -1), maximize=True)[1]).astype(np.int64)

    def parts(self, labels, shape):
        if not np.array_equal(np.sort(labels), np.arange(shape[0])):
            raise ValueError("no ranking")
        return labels * shape[0] + np.arange(shape[0])

    def enumerate(self, shape):
        return map(ints, permutations(range(shape[0])))

    @staticmethod
    def example_shapes():
        return [(1,), (3,), (4,)]


class AtMost(Oracle):
    """shape = (n, k): at most k of n items; labels are the chosen ones in order."""

    def n_parts(self, shape):
        return shape[0]

    def argmax(self, scores, shape):
        best = np.argsort(-scores, kind="stable")[: shape[1]]
        return np.sort(best[scores[best] > 0]).astype(np.int64)

    def parts(self, labels, shape):
        return member(self, labels, shape)

    def enumerate(self, shape):
        return (ints(y) for k in range(shape[1] + 1) for y in combinations(range(shape[0]), k))

    @staticmethod
    def example_shapes():
        return [(2, 1), (4, 2), (5, 3)]


@dataclass(frozen=True)
class Bag:
    """The shape of a knapsack holds its data."""

    weights: tuple[float, ...]
    capacity: float


class Knapsack(Oracle):
    """Items that together are not too heavy."""

    def n_parts(self, shape):
        return len(shape.weights)

    def enumerate(self, shape):
        n = len(shape.weights)
        sets = (y for k in range(n + 1) for y in combinations(range(n), k))
        return (ints(y) for y in sets if sum(shape.weights[i] for i in y) <= shape.capacity)

    def argmax(self, scores, shape):
        return max(self.enumerate(shape), key=lambda y: scores[y].sum())

    def parts(self, labels, shape):
        return member(self, labels, shape)

    @staticmethod
    def example_shapes():
        return [Bag((1.0, 2.5), 2.5), Bag((0.5, 1.5, 2.0, 3.0, 1.0), 4.0)]


STRUCTURES = [Brackets, Paths, Alignments, Ranking, AtMost, Knapsack]
