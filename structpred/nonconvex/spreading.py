"""Labels that follow paths: each unlabelled point takes the label of the labelled points that shorter paths lead to."""

from collections.abc import Iterator

import numpy as np

from structpred.core.types import Floats, Integers
from structpred.nonconvex.problem import SemiSupervisedProblem

#: the powers of a step's length: the larger, the more a long step costs, and the closer paths stay to dense regions
_POWERS = (4.0, 8.0, 16.0)


def spread_labels(problem: SemiSupervisedProblem) -> Iterator[Floats]:
    """Labels within the balance by the lengths of paths through all points, for each power of a step's length.

    A step between two points costs |phi(x) - phi(x')|^q, so a path of short steps through a cluster is shorter than a direct one
    across a gap, and labels cross between clusters last. These are the density-sensitive distances of Chapelle & Zien 2005, for
    which the limit of large q is the longest step alone. Memory and time O(n^2): for problems with a kernel matrix of that size.
    """
    everything = np.arange(problem.n)
    gram = problem.gram_of(everything)
    squares = np.maximum(problem.diagonal[:, None] + problem.diagonal - 2.0 * gram, 0.0)
    squares /= max(float(squares.max()), 1e-300)
    for q in _POWERS:
        steps = squares ** (0.5 * q)
        to_plus, to_minus = (path_lengths(steps, np.flatnonzero(problem.y == label)) for label in (1, -1))
        nearer_plus = (to_minus - to_plus) / np.maximum(to_minus + to_plus, 1e-300)
        yield problem.best_vertex(nearer_plus[problem.unlabelled])


def path_lengths(steps: Floats, sources: Integers) -> Floats:
    """(n,): the length of the shortest path from the nearest source, for the lengths of all steps (n, n); Dijkstra's algorithm.

    >>> path_lengths(np.array([[0.0, 1.0, 9.0], [1.0, 0.0, 1.0], [9.0, 1.0, 0.0]]), np.array([0])).tolist()
    [0.0, 1.0, 2.0]
    """
    lengths, done = np.full(len(steps), np.inf), np.zeros(len(steps), np.bool_)
    lengths[sources] = 0.0
    for _ in range(len(steps)):
        i = int(np.where(done, np.inf, lengths).argmin())
        done[i] = True
        np.minimum(lengths, lengths[i] + steps[i], out=lengths)
    return lengths
