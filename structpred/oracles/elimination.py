"""Pairwise MRFs on graphs of small width: exact by bucket elimination, dynamic programming over tables of several nodes."""

from typing import NamedTuple

import numpy as np

from structpred.core.oracle import Labels, Scores, Shape
from structpred.core.types import Floats, Integers
from structpred.oracles.fields._elimination_plan import Plan, plan_of
from structpred.oracles.mrf import NOTHING_LEFT, PairwiseOracle, given, links_of, refuse
from structpred.projections.active_set import nearest_mixture
from structpred.runtime.lazy_names import later
from structpred.runtime.settings import checked_whole

_kernels = later("structpred.oracles.fields._elimination_kernels")


class _Tables(NamedTuple):
    """A problem laid out for elimination: all tables, the usable states and how many each node has, and scratch."""

    plan: Plan
    pool: Floats
    kept: Integers
    counts: Integers
    edges: Integers
    base: Floats
    row: Floats
    scratch: tuple[Integers, Integers, Integers, Integers]

    @property
    def buckets(self) -> tuple[Integers, Integers, Integers, Integers]:
        """The plan's part that all kernels take."""
        return self.plan.buckets, self.plan.axes, self.plan.factors, self.plan.strides


class EliminationMRF(PairwiseOracle):
    """Pairwise MRFs on graphs of small width, exactly, whatever the scores: trees, cycles, narrow grids, sparse networks.

    Nodes are taken away one after the other; each leaves a table over its neighbours (bucket elimination). Time and memory go
    with the largest table: a 10 x 10 grid of two states takes 0.2 ms, a 20 x 20 grid (2^21 entries, 600 MB in all) 0.3 s and
    two seconds for log Z. States that a forbidden part leaves without an output at a neighbour are dropped first: the states
    that a node lacks cost nothing. Of two orders (least weighted fill; across the graph) the cheaper is taken; the plan is kept
    for each graph and numbers of usable states.

    max_table: the most entries that one step looks at. Raises DataError where both orders need more, with the size and the
    width, before anything is allocated, and for scores that are not finite; InfeasibleError where every output is forbidden.
    Ties always go to the same output.
    Dechter, Bucket elimination: a unifying framework for reasoning, Artificial Intelligence 113, 1999.

    >>> import numpy as np
    >>> from structpred.oracles.mrf import graph_shape
    >>> square = graph_shape(4, 2, [(0, 1), (1, 2), (2, 3), (0, 3)])
    >>> scores = np.concatenate((np.zeros(8), np.tile([0.0, 1.0, 1.0, 0.0], 4)))  # neighbours want to differ
    >>> scores[1] = 0.5
    >>> EliminationMRF().argmax(scores, square).tolist()
    [1, 0, 1, 0]
    >>> round(EliminationMRF().log_partition(np.zeros(24), square), 6)  # log(2 ** 4)
    2.772589
    """

    def __init__(self, max_table: int = 1 << 24) -> None:
        self.max_table = checked_whole(max_table, "max_table")

    def argmax(self, scores: Scores, shape: Shape) -> Labels:
        """The best output."""
        tables = self._tables(scores, shape)
        _eliminated(tables, shape, summed=False)
        labels = np.zeros(shape[0], np.int64)
        _kernels().read_best(tables.pool, tables.kept, tables.counts, *tables.buckets, tables.plan.nodes, labels)
        return labels

    def log_partition(self, scores: Scores, shape: Shape) -> float:
        """The log of the sum of exp(score) over all outputs, stable for scores of any size."""
        return _eliminated(self._tables(scores, shape), shape, summed=True)

    def marginals(self, scores: Scores, shape: Shape) -> tuple[float, Floats]:
        """(log of the sum of exp(score), expected part counts), stable for scores of any size; about twice `log_partition`."""
        tables = self._tables(scores, shape)
        log_z = _eliminated(tables, shape, summed=True)
        work = tables.base, tables.row, *tables.scratch, np.empty_like(tables.row), np.empty(tables.plan.scratch[4])
        _kernels().share_out(tables.pool, tables.counts, *tables.buckets, *work)
        mu = np.zeros(self.n_parts(shape))
        _kernels().exchange_tables(mu, shape[1], tables.edges, tables.kept, tables.counts, tables.plan.tables, tables.pool, True)
        return log_z, mu

    project = nearest_mixture

    def _tables(self, scores: Scores, shape: Shape) -> _Tables:
        flat, (edges, *links, _), (n, k) = given(scores, shape), links_of(shape), shape[:2]
        kept, counts = np.zeros((n, k), np.int64), np.zeros(n, np.int64)
        if status := _kernels().usable_states(flat, n, k, *links, kept, counts):
            refuse(status, shape)
        plan = plan_of(shape, tuple(counts.tolist()), self.max_table)
        pool = np.empty(plan.size)
        _kernels().exchange_tables(flat, k, edges, kept, counts, plan.tables, pool, False)
        most, n_factors, low, n_axes, _ = plan.scratch.tolist()
        places = np.empty((n_factors, low), np.int64), *np.empty((2, n_factors), np.int64), np.empty(n_axes, np.int64)
        return _Tables(plan, pool, kept, counts, edges, np.empty(most), np.empty(most), places)


def _eliminated(tables: _Tables, shape: Shape, *, summed: bool) -> float:
    """The best score or log Z; the messages are in the tables then. Raises InfeasibleError."""
    work = summed, tables.base, tables.row, *tables.scratch
    total = float(_kernels().eliminate(tables.pool, tables.counts, *tables.buckets, *work))
    if total == -np.inf:
        refuse(NOTHING_LEFT, shape)
    return total
