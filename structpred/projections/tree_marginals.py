"""Projection onto the marginals of trees and forests, and onto the clique marginals of chains, many at a time."""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from structpred.core.types import Floats, Integers
from structpred.errors import ConvergenceError, DataError, InfeasibleError, ParameterError
from structpred.runtime.memory import check_fits
from structpred.runtime.ranges import ends_of
from structpred.runtime.threads import run_ranges, split_evenly

#: how far the margins of neighbouring tables may differ before they are made equal
TOLERANCE = 1e-12
#: steps of L-BFGS; some hundreds are many
MAX_ITER = 10_000
#: entries above this are refused: squares of what is built from them have to stay numbers
MOST = 1e100
#: pieces a thread, so that none waits long for the others; entries a piece, so that Ctrl-C is heard soon
_PIECES, _PIECE = 8, 200_000


class Forest(NamedTuple):
    """A forest whose marginals are projected onto.

    n_nodes, n_states: its size, n and m. node_terms: whether the nodes' marginals are variables, too. plan: int64 (n_tables, 4),
    a row an edge, parents before their children: the parent, the child, the number of the edge's table, and 1 where the table's
    columns, not its rows, are the parent's states.
    """

    n_nodes: int
    n_states: int
    node_terms: bool
    plan: Integers

    @property
    def n_variables(self) -> int:
        """n * m for the nodes where they count, and m^2 for each table."""
        return self.n_nodes * self.n_states * self.node_terms + len(self.plan) * self.n_states**2


def project_onto_tree_marginals(point: Floats, n_nodes: int, n_states: int, edges: Sequence[tuple[int, int]]) -> Floats:
    """min_mu |point - mu|^2  subject to  mu the node and edge marginals of a distribution over the outputs of a forest.

    point: n * m node entries, then an m by m table an edge (i, j), rows for the states of i, flat in that order: (n * m +
    E * m^2,). On a forest these mu are the mu >= 0 with sum 1 at each node and tables whose margins are their nodes' (Wainwright
    and Jordan 2008, section 4.1.1). Method, accuracy and errors are those of `project_forests`; DataError also for edges that
    close a cycle.

    >>> point = np.zeros(8)
    >>> point[4:] = [0.5, 0.0, 0.0, 0.5]
    >>> project_onto_tree_marginals(point, 2, 2, [(0, 1)]).round(6).tolist()
    [0.5, 0.5, 0.5, 0.5, 0.5, 0.0, 0.0, 0.5]
    """
    forest = Forest(n_nodes, n_states, True, plan_of(n_nodes, edges))
    flat = np.ascontiguousarray(point, dtype=np.float64)
    return project_forests(flat, ends_of(np.array([len(flat)])), [forest])[0]


def project_forests(
    points: Floats, offsets: Integers, forests: Sequence[Forest], start: Floats | None = None, *, tol: float = TOLERANCE,
    max_iter: int = MAX_ITER, n_jobs: int = 1,
) -> tuple[Floats, Floats]:  # fmt: skip
    """The nearest marginals of each point, points[offsets[i]:offsets[i + 1]] on forests[i], and the multipliers that prove it.

    The dual keeps one multiplier an entry of a separator, that is, of a node's margin in a table; given these, a table is its
    own projection on the simplex (Saha, Zhang and Vishwanathan 2009, appendix E.3, with the table's own multipliers eliminated).
    The dual is concave with a Lipschitz gradient, the mismatch of the margins; L-BFGS climbs it from the reparametrisation by
    max-product, or from `start`, the multipliers of a call with the same forests. Each step costs O(E m^2).

    It ends where no mismatch is above tol + 1e-15 |multipliers|; then the tables are scaled, from the roots on, until they
    agree: the marginals are those of a distribution to rounding, and <point - mu, v - mu> for an output v is at most about
    tol * |multipliers|_1. Entries of -1e30 forbid. The points are copied; instances are shared out over n_jobs threads, and the
    answers do not depend on their number.

    Raises DataError for points that are not finite, above 1e100 or of another size, ParameterError for tol <= 0 and max_iter < 1,
    InfeasibleError where every output is forbidden, ConvergenceError, with the mismatch that is left, where max_iter steps do
    not suffice.

    >>> chain = Forest(3, 2, False, plan_of(3, [(0, 1), (1, 2)]))
    >>> mu, multipliers = project_forests(np.array([2.0, 0, 0, 0, 0, 0, 0, 2]), np.array([0, 8]), [chain])
    >>> mu.round(6).tolist(), len(multipliers)
    ([0.5, 0.25, 0.0, 0.25, 0.25, 0.25, 0.0, 0.5], 8)
    """
    if not (tol > 0 and max_iter >= 1):
        raise ParameterError(f"expected tol > 0 and max_iter >= 1, got {tol!r} and {max_iter!r}")
    _check_points(points, offsets, forests)
    sizes, plans = _tables_of(forests)
    places = ends_of(2 * (sizes[:, 4] - sizes[:, 3]) * sizes[:, 1])
    if start is not None and (start.shape != (places[-1],) or not np.isfinite(start).all()):
        raise DataError(f"expected {places[-1]} finite multipliers, those of a call with the same forests, got {start.shape}")
    multipliers = np.zeros(places[-1]) if start is None else start.astype(np.float64)
    out, reached = np.empty(len(points)), np.zeros(len(forests))

    def call(a: int, b: int) -> None:
        from structpred.projections._tree_marginals_kernels import project_trees

        project_trees(
            points, offsets[a : b + 1], sizes[a:b], plans, places[a : b + 1], start is not None, tol, max_iter, multipliers,
            out, reached[a:b],
        )  # fmt: skip

    pieces = max(_PIECES * n_jobs if n_jobs > 1 else 1, len(points) // _PIECE)
    run_ranges(call, split_evenly(np.diff(offsets), pieces), n_jobs)
    for i in np.flatnonzero(reached):
        where = f"instance {i} of the batch: " if len(forests) > 1 else ""
        if reached[i] < 0:
            raise InfeasibleError(f"{where}every output uses a forbidden part (a score of -1e30)")
        raise ConvergenceError(
            f"{where}margins of neighbouring tables still differ by {reached[i]:.3g} after {max_iter} steps, expected at most "
            f"{tol:.3g}: raise max_iter or tol"
        )
    return out, multipliers


def plan_of(n_nodes: int, edges: Sequence[tuple[int, int]] | Integers) -> Integers:
    """The plan of a forest: a breadth-first walk from the smallest node of each tree. DataError for edges that close a cycle.

    >>> plan_of(3, [(0, 2), (1, 2)]).tolist()
    [[0, 2, 0, 0], [2, 1, 1, 1]]
    """
    near: list[list[tuple[int, int, int]]] = [[] for _ in range(n_nodes)]
    tree_of = list(range(n_nodes))
    for e, (i, j) in enumerate(np.asarray(edges, dtype=np.int64).reshape(-1, 2).tolist()):
        if not (0 <= i < n_nodes and 0 <= j < n_nodes):
            raise DataError(f"edge {e}, ({i}, {j}), names a node that is missing: nodes are 0..{n_nodes - 1}")
        one, two = sorted((_tree(tree_of, i), _tree(tree_of, j)))
        if one == two:
            raise DataError(
                f"edge {e}, ({i}, {j}), closes a cycle: only trees and forests will do; else use an oracle that searches"
            )
        tree_of[two] = one
        near[i].append((j, e, 0))
        near[j].append((i, e, 1))
    rows: list[tuple[int, int, int, int]] = []
    for root in range(n_nodes):
        queue = [(root, -1)] if tree_of[root] == root else []
        for node, above in queue:
            own = [(other, e, transposed) for other, e, transposed in near[node] if e != above]
            rows += [(node, *row) for row in own]
            queue += [(other, e) for other, e, _ in own]
    return np.array(rows, dtype=np.int64).reshape(-1, 4)


def _tree(tree_of: list[int], node: int) -> int:
    """The smallest node of a node's tree so far (union-find, with the paths halved)."""
    while tree_of[node] != node:
        tree_of[node] = tree_of[tree_of[node]]
        node = tree_of[node]
    return node


def project_onto_chain_marginals(point: Floats) -> Floats:
    """min_a sum_t |point[t] - a[t]|^2  subject to  a[t] the marginals of neighbouring labels (y_t, y_t+1) in a chain.

    point: (T - 1, m, m) for T positions and m labels, T >= 2; so is the answer. The a that are allowed: a >= 0, each table
    sums to 1, and the column sums of a table are the row sums of the next. Accuracy and errors: `project_forests`. A label's own
    score, put on the table before it or on that after it, leads to different points, but to the same marginals.

    >>> project_onto_chain_marginals(np.array([[[2.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 2.0]]])).round(6).tolist()
    [[[0.5, 0.25], [0.0, 0.25]], [[0.25, 0.25], [0.0, 0.5]]]
    """
    point = np.ascontiguousarray(point, dtype=np.float64)
    if point.ndim != 3 or point.shape[1] != point.shape[2] or not point.size:
        raise DataError(f"expected tables (T - 1, m, m) with T >= 2 positions and m >= 1 labels, got shape {point.shape}")
    chain = chain_forest(len(point) + 1, point.shape[1])
    return project_forests(point.ravel(), np.array([0, point.size]), [chain])[0].reshape(point.shape)


@lru_cache(maxsize=4096)
def chain_forest(length: int, n_labels: int) -> Forest:
    """The chain as a forest: tables between neighbours and no node terms; one position: the node's term alone."""
    plan = np.zeros((length - 1, 4), np.int64)
    plan[:, 0], plan[:, 1], plan[:, 2] = np.arange(length - 1), np.arange(1, length), np.arange(length - 1)
    return Forest(length, n_labels, length == 1, plan)


def chain_parts(length: int, n_labels: int) -> tuple[Integers, Integers]:
    """Variable k of the flat clique marginals counts for the chain's parts in parts[ends[k]:ends[k + 1]].

    Variable (t, i, j) for the transition part (i, j) and the label part (t + 1, j); for t = 0 for the label part (0, i), too.
    One position: the labels themselves. The parts are those of `structpred.oracles.chain`.

    >>> ends, parts = chain_parts(2, 2)
    >>> ends.tolist(), parts[ends[1] : ends[2]].tolist()  # (0, 0, 1)
    ([0, 3, 6, 9, 12], [5, 3, 0])
    """
    if length == 1:
        return np.arange(n_labels + 1), np.arange(n_labels)
    t, i, j = (grid.ravel() for grid in np.meshgrid(np.arange(length - 1), *[np.arange(n_labels)] * 2, indexing="ij"))
    ends = ends_of(np.where(t == 0, 3, 2))
    parts = np.empty(ends[-1], np.int64)
    parts[ends[:-1]] = (length + i) * n_labels + j
    parts[ends[:-1] + 1] = (t + 1) * n_labels + j
    parts[ends[:-1][t == 0] + 2] = i[t == 0]
    return ends, parts


def _tables_of(forests: Sequence[Forest]) -> tuple[Integers, Integers]:
    """A row (n, m, node_terms, start, stop) an instance, and all plans below one another, each once."""
    places: dict[int, int] = {}
    plans: list[Integers] = [np.empty((0, 4), np.int64)]
    filled, rows = 0, []
    for forest in forests:
        if id(forest.plan) not in places:
            places[id(forest.plan)] = filled
            plans.append(forest.plan)
            filled += len(forest.plan)
        first = places[id(forest.plan)]
        rows.append((forest.n_nodes, forest.n_states, int(forest.node_terms), first, first + len(forest.plan)))
    return np.array(rows, dtype=np.int64).reshape(-1, 5), np.concatenate(plans)


def _check_points(points: Floats, offsets: Integers, forests: Sequence[Forest]) -> None:
    wanted = np.array([forest.n_variables for forest in forests], dtype=np.int64)
    if points.ndim != 1 or not np.array_equal(offsets, ends_of(wanted)) or len(points) != wanted.sum():
        sizes = ", ".join(map(str, wanted[:4].tolist())) + (", ..." if len(wanted) > 4 else "")
        raise DataError(f"expected points of {sizes} entries, flat, got shape {points.shape} with offsets {offsets[:5]}")
    if not np.isfinite(points).all():
        at = int(np.isfinite(points).argmin())
        raise DataError(f"expected finite points (-1e30 forbids an entry), got {points[at]} for entry {at}")
    if np.abs(points).max(initial=0.0) > MOST:
        at = int(np.abs(points).argmax())
        raise DataError(f"expected entries of at most {MOST:g} in absolute value, got {points[at]} for entry {at}")
    check_fits(8 * int(wanted.max(initial=0)), "the tables of the largest instance")
