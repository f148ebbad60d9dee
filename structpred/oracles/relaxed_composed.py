"""Compositions relaxed to the local polytope: the points on which all members agree, each a mixture of its own outputs.

The bundle method's answers, in the linear program of Dantzig & Wolfe (1960), to which members add answers until it is solved.
"""

from copy import copy
from typing import Any

import numpy as np

from structpred.core.oracle import Labels, Oracle, Scores, Shape
from structpred.core.scores import checked_scores
from structpred.core.types import Floats, Integers
from structpred.errors import ConvergenceError
from structpred.oracles.composed import Composed
from structpred.oracles.composition.bundle import Bundle
from structpred.oracles.composition.layout import Layout
from structpred.oracles.composition.rounds import Rounds
from structpred.oracles.composition.search import ROUNDS
from structpred.runtime.ranges import ends_of
from structpred.runtime.settings import checked_whole

#: the linear program is solved to this share of the sum of |theta|
_NEAR = 1e-9


class RelaxedComposed(Oracle):
    """The best point of the local polytope of a composition; outputs without a search, with a bound: inexact.

    whole: the composition. max_rounds: the most times that members are asked after the bundle method, else ConvergenceError.
    `argmax_relaxed` is exact to 1e-9 of the sum of all |scores|: train on the relaxation with SlackRescaling(relaxed=True).

    >>> from structpred.oracles.multiclass import MulticlassOracle
    >>> pair = lambda i, j: (MulticlassOracle(), lambda shape: ((3,), np.array([i, j, 3 + i + j - 1])))
    >>> odd = Composed([pair(0, 1), pair(1, 2), pair(0, 2)])  # one of each two: no output can, halves do
    >>> RelaxedComposed(odd).argmax_relaxed(np.array([1.0, 1.0, 1.0, 0.0, 0.0, 0.0]), ()).tolist()
    [0.5, 0.5, 0.5, 0.0, 0.0, 0.0]
    """

    exact = False

    def __init__(self, whole: Composed, *, max_rounds: int = 1000) -> None:
        self.whole, self.max_rounds = copy(whole), checked_whole(max_rounds, "max_rounds")
        self.whole.max_nodes, self.expensive, self.output = None, whole.expensive, whole.output
        for name in ("argmax_batch", "argmax_bound", "argmax_bound_batch", "parts_batch", "enumerate", "label_grid"):
            if callable(own := getattr(self.whole, name, None)):
                setattr(self, name, own)

    def n_parts(self, shape: Shape) -> int:
        """As the composition."""
        return self.whole.n_parts(shape)

    def argmax(self, scores: Scores, shape: Shape) -> Labels:
        """The best output that rounds find; perhaps not the best of all."""
        return self.whole.argmax(scores, shape)

    def parts(self, labels: Labels, shape: Shape) -> Integers:
        """As the composition."""
        return self.whole.parts(labels, shape)

    def example_shapes(self) -> list[Shape]:  # type: ignore[override]  # each instance has its own
        """Those of the composition."""
        return list(self.whole.example_shapes())

    def argmax_relaxed(self, scores: Scores, shape: Shape) -> Floats:
        """The best point of the local polytope; an output where one is as good. Among several the same one each time."""
        given, layout = checked_scores(scores, self.n_parts(shape), shape), self.whole._layout(shape)
        search = self.whole._search(given, np.array([0, len(given)]), [shape])
        one = np.arange(1)
        rounds = search._rounds(one, np.zeros(len(given), np.int64), np.zeros(len(layout.part_of)), search.batch)
        bundle = Bundle(rounds)
        bundle.run(one, ROUNDS)
        labels = rounds.labels[0]
        if labels is not None and not rounds.unsolved(one)[0]:
            return np.bincount(self.parts(labels, shape), minlength=len(given)).astype(np.float64)
        members = np.arange(len(layout.members))
        # an output makes the program feasible
        rounds.counts[:] = np.bincount(self.parts(self.argmax(given, shape), shape), minlength=len(given))[layout.part_of]
        rounds.answer_sizes[:] = np.add.reduceat(rounds.counts, layout.copy_ends[:-1])
        for _ in range(self.max_rounds):
            bundle._keep(members)
            mu, value = _mixture(bundle, rounds, layout)
            if rounds.low[0] - value <= _NEAR * search.sizes[0]:
                return mu
            rounds.changed[:], rounds.answer_sizes[:] = 1, -1
            rounds.ask()
            rounds.settle(one, offer=False)
        raise ConvergenceError(
            f"the relaxation is not solved after {self.max_rounds:,} rounds: {rounds.low[0] - value:.3g} is missing"
        )


def _mixture(bundle: Bundle, rounds: Rounds, layout: Layout) -> tuple[Floats, float]:
    """The best mixture of kept answers in which copies are equal, and its value; its duals are the new multipliers."""
    from scipy import sparse
    from scipy.optimize import linprog

    n, holders = bundle.n_kept, layout.holders[layout.shared]
    ends = bundle.starts[: n + 1]
    answers: Any = sparse.csc_array(
        sparse.csr_array((np.ones(ends[-1]), bundle.entries[: ends[-1]], ends), shape=(n, len(layout.part_of)))
    )
    begins = ends_of(holders)[:-1]
    first, other = np.repeat(layout.copies[begins], holders - 1), np.delete(layout.copies, begins)
    owned = sparse.csr_array((np.ones(n), (bundle.owners[:n], np.arange(n))), shape=(len(layout.members), n))
    rows = sparse.vstack(((answers[:, other] - answers[:, first]).T, owned), format="csr")
    values, sides = answers @ rounds.plain, np.append(np.zeros(len(other)), np.ones(len(layout.members)))
    size, exact = max(1e-300, float(np.abs(values).max())), 1e-10
    options: Any = {"primal_feasibility_tolerance": exact, "dual_feasibility_tolerance": exact}
    found: Any = linprog(-values / size, A_eq=rows, b_eq=sides, method="highs", options=options)
    if found.x is None:
        raise ConvergenceError(f"the linear program over {n:,} answers failed: {found.message}")
    prices = size * found.eqlin.marginals[: len(other)]
    rounds.multipliers[:] = 0.0
    rounds.multipliers[other] = prices
    np.subtract.at(rounds.multipliers, first, prices)
    return np.bincount(layout.part_of, answers.T @ found.x) / layout.holders, float(values @ found.x)
