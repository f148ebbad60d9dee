"""Tours through more nodes than a dynamic programme takes, by OR-Tools' CP-SAT and its circuit constraint."""

from typing import Any

import numpy as np

from structpred.core.fixed_scores import FORBIDDEN
from structpred.core.oracle import Labels, Scores, Shape
from structpred.core.scores import checked_scores
from structpred.core.types import Integers
from structpred.errors import ConvergenceError, InfeasibleError
from structpred.oracles.decisions._tours import TourOracle, pairs_of
from structpred.oracles.solvers._ortools import Answer, checked_limit, load_cp_model, power_of_two, solve


def _few_shapes() -> list[Shape]:
    """Few, as each question takes milliseconds."""
    return [(3,), (5,)]


class CpSatTravellingSalesman(TourOracle):
    """The best tour of 3 to 500 nodes, proven; milliseconds at least: `TravellingSalesmanOracle` is faster up to 15 nodes.

    Shapes, labels and parts are those of that oracle: shape = (n,), scores are maximised. Edges that score -1e30 are left out.

    limit: CP-SAT's deterministic time (about seconds of work, the same on every machine); where that is not enough to prove the
    maximum, ConvergenceError says what was reached. CP-SAT counts in whole numbers: scores are rounded to multiples of r, the
    power of two below 2^-49 n times the largest |score|; tours whose scores differ by less than n r count as equal. One thread,
    a fixed seed: the same answer each time. Needs OR-Tools (the extra `solvers`; DependencyError says so). Raises DataError for
    scores that are not finite, InfeasibleError where every tour has a forbidden edge.

    >>> nodes = np.random.default_rng(0).normal(size=(25, 2))
    >>> first, second = np.triu_indices(25, 1)
    >>> tour = CpSatTravellingSalesman().argmax(-np.linalg.norm(nodes[first] - nodes[second], axis=1), (25,))
    >>> sorted(tour.tolist()) == list(range(25))
    True
    """

    expensive = True

    def __init__(self, limit: float = 60.0) -> None:
        self.limit = checked_limit(limit)

    def argmax(self, scores: Scores, shape: Shape) -> Labels:
        """The tour with the largest sum of scores."""
        answer = _search(scores, shape, self.limit, type(self).__name__)
        if not answer.proven:
            raise ConvergenceError(
                f"CP-SAT did not prove the maximum within limit={self.limit:g}: no tour of {shape[0]} nodes scores above "
                f"{answer.bound:.9g}; raise the limit, or use CpSatBoundTravellingSalesman"
            )
        assert answer.labels is not None
        return answer.labels

    example_shapes = staticmethod(_few_shapes)


class CpSatBoundTravellingSalesman(TourOracle):
    """As CpSatTravellingSalesman, but where the limit is reached the best tour so far is the answer, with a bound: inexact.

    >>> labels, bound = CpSatBoundTravellingSalesman().argmax_bound(-np.ones(3), (3,))
    >>> labels.tolist(), bound >= -3.0
    ([0, 1, 2], True)
    """

    exact = False
    expensive = True

    def __init__(self, limit: float = 1.0) -> None:
        self.limit = checked_limit(limit)

    def argmax(self, scores: Scores, shape: Shape) -> Labels:
        """The best tour that was found."""
        return self.argmax_bound(scores, shape)[0]

    def argmax_bound(self, scores: Scores, shape: Shape) -> tuple[Labels, float]:
        """The best tour that was found, and what no tour scores above."""
        answer = _search(scores, shape, self.limit, type(self).__name__)
        if answer.labels is None:
            raise ConvergenceError(f"CP-SAT found no tour without forbidden edges within limit={self.limit:g}: raise the limit")
        return answer.labels, answer.bound

    example_shapes = staticmethod(_few_shapes)


def _search(scores: Scores, shape: Shape, limit: float, who: str) -> Answer:
    """Raises InfeasibleError where it is proven that there is no tour."""
    cp: Any = load_cp_model(who)
    n_parts, n, edge_of = pairs_of(shape)
    given = checked_scores(scores, n_parts, shape)
    allowed = given > 0.5 * FORBIDDEN
    scale = power_of_two(n * float(np.abs(given[allowed]).max(initial=0.0)))
    first, second = (ends[allowed] for ends in np.triu_indices(n, 1))
    arcs = np.stack((np.append(first, second), np.append(second, first)), axis=1)  # each edge in both directions
    # from node 0 always on to the best node that is left
    rest = np.where(allowed, given, FORBIDDEN)[edge_of]
    np.fill_diagonal(rest, -np.inf)
    tour = [0]
    for _ in range(len(rest) - 1):
        rest[:, tour[-1]] = -np.inf
        tour.append(int(rest[tour[-1]].argmax()))
    greedy = np.array(tour, dtype=np.int64)
    whole = np.rint(given[allowed] * scale).astype(np.int64)
    found = solve(cp, _program(cp, arcs, np.tile(whole, 2), greedy), len(arcs), limit)
    if found.proven and found.values is None:
        raise InfeasibleError(f"shape {shape}: every tour has a forbidden edge")
    if found.values is not None:
        follower, tour = dict(arcs[found.values == 1].tolist()), [0]
        while (after := follower[tour[-1]]) != 0:
            tour.append(after)
        labels: Labels | None = _turned(np.array(tour, dtype=np.int64))
    else:
        labels = _turned(greedy) if allowed[edge_of[greedy, np.roll(greedy, -1)]].all() else None
    # no tour scores above CP-SAT's bound, or half the two best edges of each node
    table = given[edge_of]
    np.fill_diagonal(table, -np.inf)
    best = 0.5 * float(np.sort(table, axis=1)[:, -2:].sum())
    bound = best if found.bound is None else min(best, (found.bound + 0.5 * n) / scale)
    return Answer(labels, bound, found.proven)


def _program(cp: Any, arcs: Integers, scores: Integers, hint: Labels) -> Any:
    """The model: a Boolean for each arc, those that are on form a circuit through all nodes."""
    model = cp.CpModel()
    on = [model.new_bool_var("") for _ in arcs]
    hinted = set(zip(hint.tolist(), np.roll(hint, -1).tolist(), strict=True))
    model.add_circuit([(i, j, literal) for (i, j), literal in zip(arcs.tolist(), on, strict=True)])
    model.maximize(cp.LinearExpr.weighted_sum(on, scores.tolist()))
    for (i, j), literal in zip(arcs.tolist(), on, strict=True):
        model.add_hint(literal, (i, j) in hinted)
    return model


def _turned(tour: Labels) -> Labels:
    """The tour in the direction whose second node is smaller than the last."""
    return tour if tour[1] < tour[-1] else np.append(tour[:1], tour[:0:-1])
