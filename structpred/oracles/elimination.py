"""Pairwise MRFs on graphs of small width: exact by bucket elimination, dynamic programming over tables of several nodes."""

from functools import lru_cache
from heapq import heapify, heappop, heappush
from math import log2, prod
from typing import NamedTuple

import numpy as np

from structpred.core.oracle import Labels, Scores, Shape
from structpred.core.types import Floats, Integers
from structpred.errors import DataError
from structpred.oracles.mrf import NOTHING_LEFT, PairwiseOracle, given, graph_of, links_of, refuse
from structpred.projections.lockstep import nearest_mixture
from structpred.runtime.lazy_names import later
from structpred.runtime.memory import check_fits
from structpred.runtime.settings import checked_whole

#: the neighbours of each node that is left
Near = dict[int, set[int]]
#: each node with the neighbours that it has when its turn comes
Steps = list[tuple[int, set[int]]]

#: axes are tabulated together until they have as many entries as this
TABULATED = 256
#: the log2 of a table size where an order is abandoned: no memory would hold the table
STOP = 64


class Plan(NamedTuple):
    """What the kernels need, all int64; tables lie one after the other in one array of `size` numbers.

    tables: where the table of each node and then of each edge begins. buckets (n, 7): node, its first axis, how many axes, how
    many of them are tabulated together, first factor, how many factors, where its message begins; in the order of elimination.
    axes, nodes: the number of states of each axis of the messages, the fastest first, and its node. factors (f, 4): where the
    table begins, how far apart two states of the bucket's node are in it, its first stride, its number of entries. strides: for
    each factor, how far apart two states of each axis are. scratch: the most of any bucket: entries of a row, factors, places
    in a row, axes, entries of all its factors.
    """

    size: int
    tables: Integers
    buckets: Integers
    axes: Integers
    nodes: Integers
    factors: Integers
    strides: Integers
    scratch: Integers


@lru_cache(maxsize=256)
def plan_of(shape: Shape, counts: tuple[int, ...], max_table: int) -> Plan:
    """The plan for nodes of which counts[i] states are usable; kept for the 256 used last.

    Raises DataError where every order tried needs a table of more than max_table entries, or all tables more than the memory.
    """
    # the cheaper of two orders: by least weighted fill, good on irregular graphs, and across the graph, good on grids
    near: Near = {i: set() for i in range(shape[0])}
    for i, j in graph_of(shape).edges.tolist():
        if counts[i] > 1 and counts[j] > 1:  # a node in its only state ties nothing together
            near[i].add(j)
            near[j].add(i)
    weights = [log2(count) for count in counts]
    if (least := _least_table(near, weights)) > log2(max_table) + 1e-9:
        raise DataError(_too_wide(shape, f"at least 2^{least:.1f}", "", max_table))
    tried = [(_entries(counts, steps), steps) for steps in (_by_fill(near, weights), _across(near, weights))]
    fitting = [(sum(entries), steps) for entries, steps in tried if max(entries) <= max_table]
    if not fitting:
        raise DataError(_too_wide(shape, *_needed(*min(tried, key=lambda pair: max(pair[0]))), max_table))
    steps = min(fitting, key=lambda pair: pair[0])[1]
    size = sum(prod(counts[j] for j in around) for _, around in steps)
    check_fits(8 * size, f"the tables of bucket elimination, {size:,} entries,")
    return _laid_out(shape, counts, steps)


def _needed(entries: list[int], steps: Steps) -> tuple[str, str]:
    """The size of the largest table and the width, in words."""
    most, width = max(entries), max(len(around) for _, around in steps)
    if most > 1 << STOP:
        return f"more than 2^{STOP}", f" (width {width} or more)"
    return f"{most:,}" if most < 10**15 else f"about 10^{len(str(most)) - 1}", f" (width {width})"


def _too_wide(shape: Shape, needed: str, width: str, max_table: int) -> str:
    return (
        f"{shape[0]} nodes with {shape[1]} states and {len(shape) // 2 - 1} edges: the best order found for elimination needs a "
        f"table of {needed} entries{width}, and max_table is {max_table:,}; raise max_table, or use BranchAndBoundMRF or "
        "CpSatMRF (exact) or DualMRF (a bound)"
    )


def _entries(counts: tuple[int, ...], steps: Steps) -> list[int]:
    """How many entries each step looks at."""
    return [counts[node] * prod(counts[j] for j in around) for node, around in steps]


def _least_table(near: Near, weights: list[float]) -> float:
    """The log2 of a table size that no order can stay below.

    Of any set of nodes, the first to be eliminated still has all its neighbours within the set. The sets tried are those that
    are left after always taking away the node with the smallest neighbourhood.
    """
    size = {i: weights[i] + sum(weights[j] for j in around) for i, around in near.items()}
    heap = [(s, i) for i, s in size.items()]
    heapify(heap)
    gone: set[int] = set()
    most = 0.0
    while heap:
        s, i = heappop(heap)
        if i in gone or s > size[i]:
            continue
        most = max(most, s)
        gone.add(i)
        for j in near[i] - gone:
            size[j] -= weights[i]
            heappush(heap, (size[j], j))
    return most


def _by_fill(near: Near, weights: list[float]) -> Steps:
    """Always the node whose neighbours lack the least weight of edges; then the one with the smallest table.

    Like `_across`, the steps up to a table that is out of reach, if there is one.
    """
    near = {i: set(around) for i, around in near.items()}
    whole = [round(1000 * weight) for weight in weights]  # sums of whole numbers are the same in any order
    fill = {i: _missing(near, whole, i) for i in near}
    table = {i: whole[i] + sum(whole[j] for j in around) for i, around in near.items()}
    heap = [(fill[i], table[i], i) for i in near]
    heapify(heap)
    steps: Steps = []
    while heap:
        *cost, node = heappop(heap)
        if node not in near or cost != [fill[node], table[node]]:
            continue
        steps.append((node, near[node]))
        if table[node] > 1000 * STOP:
            break
        for i in _fill_in(near, whole, fill, table, node):
            heappush(heap, (fill[i], table[i], i))
    return steps


def _missing(near: Near, whole: list[int], node: int) -> int:
    """The weight of the edges that a node's neighbours lack: that of an edge is the product of its nodes'."""
    around = near[node]
    return sum(whole[j] * sum(whole[k] for k in around - near[j] if k > j) for j in around)


def _fill_in(near: Near, whole: list[int], fill: dict[int, int], table: dict[int, int], node: int) -> set[int]:
    """Take a node away and join its neighbours, keeping the costs of the others up to date; those that changed."""
    around = near.pop(node)
    changed = set(around)
    for j in around:
        near[j].discard(node)
        fill[j] -= whole[node] * sum(whole[k] for k in near[j] - around)
        table[j] -= whole[node]
    for j in around:
        for k in around - near[j]:
            if k <= j:
                continue
            both = near[j] & near[k]
            for i in both:
                fill[i] -= whole[j] * whole[k]
            fill[j] += whole[k] * sum(whole[i] for i in near[j] - both)
            fill[k] += whole[j] * sum(whole[i] for i in near[k] - both)
            table[j] += whole[k]
            table[k] += whole[j]
            near[j].add(k)
            near[k].add(j)
            changed |= both
    return changed


def _across(near: Near, weights: list[float]) -> Steps:
    """From one end of the graph to the other (reverse Cuthill-McKee)."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    rows = [sorted(around) for around in near.values()]
    ends = np.cumsum([0, *map(len, rows)])
    flat = np.array([j for row in rows for j in row], dtype=np.int32)
    links = csr_array((np.ones(len(flat)), flat, ends.astype(np.int32)), shape=(len(rows), len(rows)))
    near = {i: set(around) for i, around in near.items()}
    steps: Steps = []
    for node in reverse_cuthill_mckee(links, symmetric_mode=True).tolist():
        around = near.pop(node)
        for j in around:  # its neighbours are joined
            near[j] |= around
            near[j] -= {j, node}
        steps.append((node, around))
        if weights[node] + sum(map(weights.__getitem__, around)) > STOP:
            break
    return steps


#: a factor on its way to a bucket: where its table begins, its entries, and how far apart two states of each of its nodes are
Factor = tuple[int, int, dict[int, int]]


def _laid_out(shape: Shape, counts: tuple[int, ...], steps: Steps) -> Plan:
    turn = np.argsort([node for node, _ in steps]).tolist()
    n, edges = shape[0], graph_of(shape).edges.tolist()
    *starts, at = np.cumsum([0, *counts, *(counts[i] * counts[j] for i, j in edges)]).tolist()
    # the tables of nodes and edges, each at the bucket of that of its nodes which is eliminated first
    waiting: list[list[Factor]] = [[] for _ in range(n)]
    for i in range(n):
        waiting[turn[i]].append((starts[i], counts[i], {i: 1}))
    for (i, j), start in zip(edges, starts[n:], strict=True):
        scope = {v: stride for v, stride in ((i, counts[j]), (j, 1)) if counts[v] > 1} or {i: 1}
        waiting[min(turn[v] for v in scope)].append((start, counts[i] * counts[j], scope))
    buckets: list[tuple[int, ...]] = []
    nodes: list[int] = []
    factors: list[tuple[int, ...]] = []
    strides: list[int] = []
    scratch: tuple[int, ...] = (1, 1, 1, 1, 1)
    for t, (node, around) in enumerate(steps):
        axes = sorted(around, key=turn.__getitem__)
        n_low, low = 0, 1
        while n_low < len(axes) and low < TABULATED:
            low *= counts[axes[n_low]]
            n_low += 1
        mine, waiting[t] = waiting[t], []
        buckets.append((node, len(nodes), len(axes), n_low, len(factors), len(mine), at))
        nodes += axes
        for start, size, own in mine:
            factors.append((start, own.get(node, 0), len(strides), size))
            strides += [own.get(v, 0) for v in axes]
        needs = (counts[node] * low, len(mine), low, len(axes), sum(size for _, size, _ in mine))
        scratch = tuple(map(max, zip(scratch, needs, strict=True)))
        message, size = {}, 1
        for v in axes:
            message[v] = size
            size *= counts[v]
        if axes:
            waiting[turn[axes[0]]].append((at, size, message))
        at += size
    rows = (starts, buckets, [counts[v] for v in nodes], nodes, factors, strides)
    return Plan(at, *(np.array(row, dtype=np.int64) for row in (*rows, scratch)))


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
