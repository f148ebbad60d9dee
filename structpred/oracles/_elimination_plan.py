"""The order in which bucket elimination takes the nodes of a graph, and where each table lies and how its entries are reached."""

from functools import lru_cache
from heapq import heapify, heappop, heappush
from math import log2, prod
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from structpred.core.memory import check_fits
from structpred.core.oracle import Shape
from structpred.errors import DataError
from structpred.oracles.mrf import graph_of

Integers = npt.NDArray[np.int64]
#: the neighbours of each node that is left
Near = dict[int, set[int]]
#: each node with the neighbours that it has when its turn comes
Steps = list[tuple[int, set[int]]]

#: axes are tabulated together until they have as many entries as this
TABULATED = 256


class Plan(NamedTuple):
    """What the kernels need, all int64; tables lie one after the other in one array of `size` numbers.

    tables: where the table of each node and then of each edge begins. buckets (n, 7): node, its first axis, how many axes, how
    many of them are tabulated together, first factor, how many factors, where its message begins; in the order of elimination.
    axes, nodes: the number of states of each axis of the messages, the fastest first, and its node. factors (f, 4): where the table begins, how far
    apart two states of the bucket's node are in it, its first stride, its number of entries. strides: for each factor, how far
    apart two states of each axis are. scratch: room for (states times tabulated entries, most factors, most tabulated entries,
    most axes, most entries of all factors of a bucket).
    """

    size: int
    tables: Integers
    buckets: Integers
    axes: Integers
    nodes: Integers
    factors: Integers
    strides: Integers
    scratch: tuple[int, int, int, int, int]


@lru_cache(maxsize=256)
def plan_of(shape: Shape, counts: tuple[int, ...], max_table: int) -> Plan:
    """The plan for nodes of which counts[i] states are usable; kept for the 256 used last.

    Raises DataError where every order tried needs a table of more than max_table entries, or all tables more than the memory.
    """
    steps = _order(shape, counts, max_table)
    size = sum(prod(counts[j] for j in around) for _, around in steps)
    check_fits(8 * size, f"the tables of bucket elimination, {size:,} entries,")
    return _laid_out(shape, counts, steps)


def _order(shape: Shape, counts: tuple[int, ...], max_table: int) -> Steps:
    """The cheaper of two orders: by least weighted fill, good on irregular graphs, and across the graph, good on grids."""
    near: Near = {i: set() for i in range(shape[0])}
    for i, j in graph_of(shape).edges.tolist():
        if counts[i] > 1 and counts[j] > 1:  # a node in its only state ties nothing together
            near[i].add(j)
            near[j].add(i)
    weights = [log2(count) for count in counts]
    if (least := _least_table(near, weights)) > log2(max_table) + 1e-9:
        raise DataError(_too_wide(shape, f"at least 2^{least:.1f}", max_table))
    orders = [_by_fill(near, weights), _across(near)]
    tried = [(_entries(counts, steps), steps) for steps in orders]
    fitting = [(sum(entries), steps) for entries, steps in tried if max(entries) <= max_table]
    if not fitting:
        entries, steps = min(tried, key=lambda pair: max(pair[0]))
        width = max(len(around) for _, around in steps)
        needed = f"{max(entries):,}" if max(entries) < 10**15 else f"about 10^{len(str(max(entries))) - 1}"
        raise DataError(_too_wide(shape, f"{needed}", max_table, f" (width {width})"))
    return min(fitting, key=lambda pair: pair[0])[1]


def _too_wide(shape: Shape, needed: str, max_table: int, width: str = "") -> str:
    return (
        f"{shape[0]} nodes with {shape[1]} states and {len(shape) // 2 - 1} edges: the best order found for elimination needs a "
        f"table of {needed} entries{width}, and max_table is {max_table:,}; raise max_table, or use BranchAndBoundMRF or CpSatMRF "
        "(exact) or DualMRF (a bound)"
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


def _eliminate(near: Near, node: int) -> set[int]:
    """Take a node away and join its neighbours, which are returned."""
    around = near.pop(node)
    for j in around:
        near[j] |= around
        near[j] -= {j, node}
    return around


def _by_fill(near: Near, weights: list[float]) -> Steps:
    """Always the node whose neighbours lack the least weight of edges; then the one with the smallest table."""
    near = {i: set(around) for i, around in near.items()}
    costs = {i: _fill(near, weights, i) for i in near}
    heap = [(*cost, i) for i, cost in costs.items()]
    heapify(heap)
    steps: Steps = []
    while heap:
        fill, table, node = heappop(heap)
        if node not in near or costs[node] != (fill, table):
            continue
        around = _eliminate(near, node)
        steps.append((node, around))
        # without new edges only the neighbours' own tables change
        for j in around if fill == 0.0 else around.union(*(near[j] for j in around)):
            cost = _fill(near, weights, j)
            if cost != costs[j]:
                costs[j] = cost
                heappush(heap, (*cost, j))
    return steps


def _fill(near: Near, weights: list[float], node: int) -> tuple[float, float]:
    around, fill = near[node], 0.0
    for j in around:
        missing = around - near[j]
        if len(missing) > 1:  # j itself is always among them
            fill += weights[j] * (sum(map(weights.__getitem__, missing)) - weights[j])
    return round(fill, 6), round(weights[node] + sum(map(weights.__getitem__, around)), 6)


def _across(near: Near) -> Steps:
    """From one end of the graph to the other (reverse Cuthill-McKee)."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    rows = [sorted(around) for around in near.values()]
    ends = np.cumsum([0, *map(len, rows)])
    flat = np.array([j for row in rows for j in row], dtype=np.int32)
    links = csr_array((np.ones(len(flat)), flat, ends.astype(np.int32)), shape=(len(rows), len(rows)))
    near = {i: set(around) for i, around in near.items()}
    return [(i, _eliminate(near, i)) for i in reverse_cuthill_mckee(links, symmetric_mode=True).tolist()]


def _laid_out(shape: Shape, counts: tuple[int, ...], steps: Steps) -> Plan:
    graph = graph_of(shape)
    edges, turn = graph.edges.tolist(), {node: t for t, (node, _) in enumerate(steps)}
    sizes = [*counts, *(counts[i] * counts[j] for i, j in edges)]
    starts = np.concatenate(([0], np.cumsum(sizes, dtype=np.int64))).astype(np.int64)
    # a factor: where its table begins, its entries, and the nodes of its axes, the fastest first, with their strides
    waiting: list[list[tuple[int, int, dict[int, int]]]] = [[(int(starts[i]), counts[i], {i: 1})] for i, _ in steps]
    for (i, j), start, size in zip(edges, starts[graph.n : -1].tolist(), sizes[graph.n :], strict=True):
        scope = {v: stride for v, stride in ((i, counts[j]), (j, 1)) if counts[v] > 1} or {i: 1}
        waiting[min(turn[v] for v in scope)].append((start, size, scope))
    at = int(starts[-1])
    buckets, nodes, factors, strides = [], [], [], []
    scratch = [1, 1, 1, 1, 1]
    for t, (node, around) in enumerate(steps):
        scope = sorted(around, key=turn.__getitem__)
        n_low, low = 0, 1
        while n_low < len(scope) and low < TABULATED:
            low *= counts[scope[n_low]]
            n_low += 1
        mine = waiting[t]
        buckets.append((node, len(nodes), len(scope), n_low, len(factors), len(mine), at))
        nodes += scope
        for start, size, own in mine:
            factors.append((start, own.get(node, 0), len(strides), size))
            strides += [own.get(v, 0) for v in scope]
        needs = (counts[node] * low, len(mine), low, len(scope), sum(size for _, size, _ in mine))
        scratch = [max(pair) for pair in zip(scratch, needs, strict=True)]
        message = dict(zip(scope, np.cumprod([1, *(counts[v] for v in scope)]).tolist(), strict=False))
        size = prod(counts[v] for v in scope)
        if scope:
            waiting[turn[scope[0]]].append((at, size, message))
        at += size
        waiting[t] = []
    most, n_factors, low, n_axes, total = scratch
    return Plan(
        at, starts[:-1].copy(), np.array(buckets, dtype=np.int64), np.array([counts[v] for v in nodes], dtype=np.int64),
        np.array(nodes, dtype=np.int64), np.array(factors, dtype=np.int64), np.array(strides, dtype=np.int64), (most, n_factors, low, n_axes, total),
    )  # fmt: skip
