"""Twenty-five faults in oracles of six structures, each with the rule that it breaks and what its cause must say."""
# ruff: noqa: D101 - the name of a broken oracle says what is wrong with it

import numpy as np
from scipy.optimize import linear_sum_assignment
from structures import Alignments, AtMost, Brackets, Knapsack, Paths, Ranking, ints

from structpred.core.oracle import Oracle


class BracketsOfAnyKind(Brackets):
    def parts(self, labels, shape):
        return labels


class TransposedSpans(Brackets):
    def argmax(self, scores, shape):
        return super().argmax(scores.reshape(shape[0] + 1, -1).T.ravel(), shape)


class OutsideWithoutParents(Brackets):
    def above(self, s, outside, i, j):
        return outside[i, j]


class OneSplitTooFew(Brackets):
    def splits(self, i, j):
        return range(i + 1, max(i + 2, j - 1))


class MinimalBrackets(Brackets):
    marginals = None

    def argmax(self, scores, shape):
        return super().argmax(-scores, shape)


class ShortestPath(Paths):
    def argmax(self, scores, shape):
        return super().argmax(-scores, shape)


class NoDiagonals(Paths):
    moves = ((0, 1), (1, 0))


class LabelSetting(Paths):
    """Dijkstra: a cell is settled when it is taken from the queue, which is right for costs >= 0 only."""

    def best(self, s, shape):
        rows, columns = shape
        queue, settled = [(0.0, (0, 0), [])], {}
        while queue:
            queue.sort()
            cost, (r, c), path = queue.pop(0)
            if (r, c) in settled:
                continue
            settled[r, c] = path
            for m, (dr, dc) in enumerate(self.moves):
                if r + dr < rows and c + dc < columns:
                    queue.append((cost - s[r * columns + c, m], (r + dr, c + dc), [*path, m]))
        return settled[rows - 1, columns - 1]


class InPlace(Paths):
    def argmax(self, scores, shape):
        scores *= 1.0 + 1e-15
        scores[0] += 0.0
        scores[-1] = 0.0
        return super().argmax(scores, shape)


class CachedByShape(Paths):
    """Keeps an answer for each shape, whatever the scores."""

    def __init__(self):
        self.known = {}

    def argmax(self, scores, shape):
        return self.known.setdefault(shape, super().argmax(scores, shape)).copy()


class GreedyBlind(Paths):
    enumerate = None

    def best(self, s, shape):
        r, c, path = 0, 0, []
        while (r, c) != (shape[0] - 1, shape[1] - 1):
            ways = [m for m, (dr, dc) in enumerate(self.moves) if r + dr < shape[0] and c + dc < shape[1]]
            path.append(max(ways, key=lambda m: s[r * shape[1] + c, m]))
            r, c = r + self.moves[path[-1]][0], c + self.moves[path[-1]][1]
        return path


class WithoutTheLastStep(Paths):
    def parts(self, labels, shape):
        return super().parts(labels, shape)[:-1]


class SharedBuffer(Alignments):
    def __init__(self):
        self.buffer = np.zeros(100, np.int64)

    def argmax(self, scores, shape):
        labels = super().argmax(scores, shape)
        self.buffer[: len(labels)] = labels
        return self.buffer[: len(labels)]


class NeedsLetters(Alignments):
    def argmax(self, scores, shape):
        first = [1.0 / n for n in shape]  # an average over letters
        return super().argmax(scores, shape) if first else None


class BatchOffByOne(Alignments):
    def argmax_batch(self, scores, offsets, shapes):
        found = [self.argmax(scores[a:b], s) for a, b, s in zip(offsets[:-1], offsets[1:], shapes, strict=True)]
        found = found[1:] + found[:1]
        return np.concatenate([*found, ints([])]), np.cumsum([0, *map(len, found)])


class CountsTwice(Alignments):
    """Each alignment is summed forwards, and again backwards."""

    def marginals(self, scores, shape):
        log_z, mu = super().marginals(scores, shape)
        return log_z + np.log(2.0), mu


class FortranOrder(Alignments):
    """log_z is right, the expected counts are those of other parts."""

    def marginals(self, scores, shape):
        log_z, mu = super().marginals(scores, shape)
        return log_z, mu.reshape(-1, 3).T.ravel().copy()


class SinglePrecision(Ranking):
    def argmax(self, scores, shape):
        return super().argmax(scores.astype(np.float32), shape)


class RankOfItem(Ranking):
    """argmax gives the rank of each item, parts reads the item of each rank."""

    def argmax(self, scores, shape):
        return linear_sum_assignment(scores.reshape(shape[0], -1), maximize=True)[1].astype(np.int64)


class RepeatsBlind(Ranking):
    """As the matchings of a README: no enumerate, and parts computes its indices from whatever it gets."""

    enumerate = None

    def parts(self, labels, shape):
        return labels * shape[0] + np.arange(shape[0])


class GreedyRankingBlind(Ranking):
    enumerate = None

    def argmax(self, scores, shape):
        left, out = scores.reshape(shape[0], -1).copy(), []
        for rank in range(shape[0]):
            out.append(int(left[:, rank].argmax()))
            left[out[-1]] = -np.inf
        return ints(out)


class NoLimit(AtMost):
    def argmax(self, scores, shape):
        return np.flatnonzero(scores > 0)


class NeverEmpty(AtMost):
    def argmax(self, scores, shape):
        found = super().argmax(scores, shape)
        return found if len(found) else ints([scores.argmax()])


class WholeNumbers(Knapsack):
    def argmax(self, scores, shape):
        return super().argmax(scores.astype(np.int64).astype(float), shape)


class ForgetsTheEmptyBag(Knapsack):
    def enumerate(self, shape):
        return (y for y in super().enumerate(shape) if len(y))

    def argmax(self, scores, shape):
        return max(super().enumerate(shape), key=lambda y: scores[y].sum())

    def parts(self, labels, shape):
        return labels if not len(labels) else super().parts(labels, shape)


FAULTS: list[tuple[type[Oracle], str, str]] = [
    (BracketsOfAnyKind, "invalid labels", "raise ValueError"),
    (TransposedSpans, "wrong argmax", "argmax and parts number the parts differently.*transposed"),
    (OutsideWithoutParents, "marginals", "log_z is right.*outside"),
    (OneSplitTooFew, "wrong argmax", "a search that misses outputs: "),
    (MinimalBrackets, "negated scores", "it minimises"),
    (ShortestPath, "negated scores", "it minimises"),
    (NoDiagonals, "wrong argmax", "a search that misses outputs: "),
    (LabelSetting, "wrong argmax", "the sign of scores: it is right for scores <= 0.*Dijkstra"),
    (InPlace, "mutated input", "work on a copy"),
    (CachedByShape, "wrong argmax", "the same answer whatever the scores.*cache"),
    (GreedyBlind, "wrong argmax", "greedy"),
    (WithoutTheLastStep, "wrong argmax", "which parts\\(\\) gives for no output"),
    (SharedBuffer, "shared buffer", "return a copy"),
    (NeedsLetters, "no exceptions", "a shape that it was not written for"),
    (BatchOffByOne, "batch different from loop", "off by one"),
    (CountsTwice, "marginals", "counted twice"),
    (FortranOrder, "marginals", "log_z is right.*wrong parts"),
    (SinglePrecision, "wrong argmax", "float32"),
    (RankOfItem, "wrong argmax", "argmax and parts number the parts differently.*transposed"),
    (RepeatsBlind, "invalid labels", "raise ValueError"),
    (GreedyRankingBlind, "wrong argmax", "greedy"),
    (NoLimit, "infeasible output", "a constraint that argmax forgets"),
    (NeverEmpty, "wrong argmax", r"a search that misses outputs: \[\[\]\]"),
    (WholeNumbers, "wrong argmax", "whole numbers"),
    (ForgetsTheEmptyBag, "infeasible output", "an enumerate that misses outputs"),
]
