"""Projection onto the marginals of cliques of any size and overlap that agree where they meet, and linear functions of them.

The set is the local polytope: on a junction tree that of all distributions over the nodes, on graphs with cycles a larger one, so
that the largest value of a linear function is an outer bound. (Saha, Zhang and Vishwanathan 2009, appendix E.3, with the metric
d_c; the multipliers of the tables are eliminated.)
"""

from collections import defaultdict
from collections.abc import Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from structpred.core.types import Floats, Integers
from structpred.errors import ConvergenceError, DataError, InfeasibleError, ParameterError
from structpred.runtime.lazy_names import later
from structpred.runtime.ranges import ends_of

_kernels = later("structpred.projections._clique_kernels")

#: how far the margins of two tables may differ
TOLERANCE = 1e-11
#: how far they may where the point only leads to a further one
_ROUGH = 1e-3
#: by how much far points, and the steps of the proximal point method, grow; and where these begin in units of 1 / max |scores|
_GROWTH, _FIRST = 4.0, 1.0


class Cliques(NamedTuple):
    """Tables of cliques, flat one after the other, the last node's state changing fastest.

    offsets: of the tables. weights: d_c^2 of each entry. equations: sparse B, a row of B x = 0 for each state of the nodes that
    two tables share.
    """

    offsets: Integers
    weights: Floats
    equations: Any

    @property
    def arrays(self) -> tuple[Any, ...]:
        """What kernels take."""
        B = self.equations
        rows = (one.astype(np.int64, copy=False) for one in (B.indptr, B.indices))
        return self.weights, self.offsets, *rows, B.data


class OuterBound(NamedTuple):
    """What maximising a linear function over clique marginals gave.

    x: a point, to rounding one of the set. value: its value. bound: no point, and so no output, has a larger one, whatever the
    accuracy of x: the value of the dual at `multipliers`. n_steps: projections.
    """

    x: Floats
    value: float
    bound: float
    multipliers: Floats
    n_steps: int


def cliques_of(cliques: Sequence[Sequence[int]], n_states: Sequence[int], metric: Sequence[float] | None = None) -> Cliques:
    """Cliques of these nodes. n_states: of each node. metric: d_c > 0 of each clique, 1 unless given.

    Raises DataError for a clique without nodes, with one twice or with one that is missing, and for other metrics.
    """
    scales = np.ones(len(cliques)) if metric is None else np.asarray(metric, dtype=np.float64)
    if scales.shape != (len(cliques),) or not (np.isfinite(scales) & (scales > 0.0)).all():
        raise DataError(f"expected a metric of {len(cliques)} numbers > 0, one a clique, got {metric!r}")
    for k, nodes in enumerate(cliques):
        if not nodes or len(set(nodes)) < len(nodes) or min(nodes) < 0 or max(nodes) >= len(n_states):
            raise DataError(f"clique {k}, {tuple(nodes)}: expected different nodes out of 0..{len(n_states) - 1}, at least one")
    shapes = [tuple(int(n_states[v]) for v in nodes) for nodes in cliques]
    lengths = np.array([int(np.prod(shape)) for shape in shapes], dtype=np.int64)
    offsets = ends_of(lengths)
    rows, columns, values, n_rows = [np.empty(0, np.int64)], [np.empty(0, np.int64)], [np.empty(0)], 0
    for shared, one, other in _meetings([frozenset(nodes) for nodes in cliques]):
        for k, sign in ((one, 1.0), (other, -1.0)):
            states = np.unravel_index(np.arange(lengths[k]), shapes[k])
            at = np.zeros(lengths[k], np.int64)
            for v in sorted(shared):
                at = at * int(n_states[v]) + states[list(cliques[k]).index(v)]
            rows.append(n_rows + at)
            columns.append(offsets[k] + np.arange(lengths[k]))
            values.append(np.full(lengths[k], sign))
        n_rows += int(np.prod([n_states[v] for v in shared]))
    from scipy import sparse

    entries = np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))
    return Cliques(offsets, np.repeat(scales**2, lengths), sparse.csr_array(entries, shape=(n_rows, int(offsets[-1]))))


def _meetings(cliques: list[frozenset[int]]) -> list[tuple[frozenset[int], int, int]]:
    """Pairs of cliques that have to agree, and on which nodes; the others then agree, too.

    Of all cliques around an intersection the smallest is compared with each; who shares more nodes with it agrees already.
    """
    near: defaultdict[int, list[int]] = defaultdict(list)
    for k, nodes in enumerate(cliques):
        for v in nodes:
            near[v].append(k)
    meets = {cliques[a] & cliques[b] for own in near.values() for a, b in combinations(own, 2)}
    found = []
    for shared in sorted(meets, key=sorted):
        around = [k for k in near[min(shared)] if shared <= cliques[k]]
        hub = min(around, key=lambda k: (len(cliques[k]), k))
        found += [(shared, hub, k) for k in around if k != hub and cliques[k] & cliques[hub] == shared]
    return found


def project_onto_clique_marginals(
    point: Floats, cliques: Cliques, start: Floats | None = None, *, tol: float = TOLERANCE, max_iter: int = 500
) -> tuple[Floats, Floats]:
    """min_x 1/2 sum_c d_c^2 |x_c - point_c|^2 over tables x_c >= 0 with sum 1 that agree where cliques meet; and its multipliers.

    The dual keeps a multiplier an equation; given these, each table is a projection on its simplex. It is concave, with
    the mismatch B x as its gradient, piecewise quadratic, and climbed by damped Newton steps until no margins differ by more than
    tol + 1e-15 |multipliers|. start: the multipliers of a point nearby. Entries of -1e30 forbid.

    Raises DataError for a point of another size or that is not finite, InfeasibleError for a table without an allowed entry,
    ConvergenceError where max_iter steps do not suffice, as where forbidden entries leave nothing.

    >>> pairs = cliques_of([(0, 1), (1, 2), (0, 2)], [2, 2, 2])  # a cycle
    >>> project_onto_clique_marginals(np.tile([0.0, 9.0, 9.0, 0.0], 3), pairs)[0].round(6)[:4].tolist()
    [0.0, 0.5, 0.5, 0.0]
    """
    if point.shape != cliques.weights.shape or not np.isfinite(point).all():
        n = len(cliques.weights)
        raise DataError(f"expected a point of {n} finite entries, those of the tables, got shape {point.shape}")
    if not (tol > 0.0 and max_iter >= 1):
        raise ParameterError(f"expected tol > 0 and max_iter >= 1, got {tol!r} and {max_iter!r}")
    if np.maximum.reduceat(point, cliques.offsets[:-1]).min(initial=0.0) <= -5e29:
        raise InfeasibleError("every entry of a clique's table is forbidden (-1e30)")
    allowed = point > -5e29
    far = max(1.0, 0.01 * float(np.abs(point[allowed]).max(initial=0.0)))  # then multipliers are large, too
    if start is None and far > 1.0:  # far from all tables: multipliers grow as points do, so those of a nearer one lead here
        nearer = np.where(allowed, point / _GROWTH, point)
        start = _GROWTH * project_onto_clique_marginals(nearer, cliques, tol=max(tol, _ROUGH), max_iter=max_iter)[1]
    nu = np.zeros(cliques.equations.shape[0]) if start is None else start.astype(np.float64)
    x, slope, arrays = np.empty(len(point)), np.empty(len(nu)), cliques.arrays
    value = _kernels().tables_of(nu, point, arrays, x, slope)
    for step in range(max_iter + 1):
        worst = float(np.abs(slope).max(initial=0.0))
        if worst <= tol + 1e-15 * float(np.abs(nu).max(initial=0.0)):
            return x, nu
        if step < max_iter:
            value = _kernels().newton_step(nu, x, slope, value, far, point, arrays)
    raise ConvergenceError(
        f"margins of cliques that meet still differ by {worst:.3g} after {max_iter} steps, expected at most {tol:.3g}: raise tol "
        "or max_iter; or do forbidden entries leave no distribution?"
    )


def largest_over_cliques(scores: Floats, cliques: Cliques, *, tol: float = 1e-8, max_iter: int = 100) -> OuterBound:
    """max_x scores . x over the clique marginals, from inside and from outside: by the proximal point method.

    A step projects x + scores / mu for an ever smaller mu; its multipliers, times mu, are messages between tables, and the sum of
    the tables' best entries under them bounds all points. The difference is at most 2 mu a clique, and zero for some mu > 0.
    It ends where it is tol (1 + |value|) or after max_iter steps, for which the bound holds as well. Projections are rough until
    it is near.

    >>> pairs = cliques_of([(0, 1), (1, 2), (0, 2)], [2, 2, 2])
    >>> found = largest_over_cliques(np.tile([0.0, 1.0, 1.0, 0.0], 3), pairs)  # all want to differ, and two have to be equal
    >>> round(found.value, 6), round(found.bound, 6)
    (3.0, 3.0)
    """
    allowed = scores > -5e29
    inverse = _FIRST / max(float(np.abs(scores[allowed]).max(initial=0.0)), 1e-300)
    x, nu, least = np.zeros(len(scores)), np.zeros(cliques.equations.shape[0]), np.inf
    messages, value, accuracy = nu, -np.inf, _ROUGH
    for steps in range(1, max_iter + 1):
        accuracy = TOLERANCE if least - value <= _ROUGH * (1.0 + abs(value)) or steps == max_iter else accuracy
        point = np.where(allowed, x + inverse * np.where(allowed, scores, 0.0) / cliques.weights, -1e30)
        x, nu = project_onto_clique_marginals(point, cliques, nu, tol=accuracy)
        value = float(scores[allowed] @ x[allowed])
        shifted = np.where(allowed, scores - (cliques.equations.T @ nu) / inverse, -np.inf)
        bound = float(np.maximum.reduceat(shifted, cliques.offsets[:-1]).sum())
        if bound < least:
            least, messages = bound, nu / inverse
        if accuracy == TOLERANCE and least - value <= tol * (1.0 + abs(value)):
            break
        inverse, nu = inverse * _GROWTH, nu * _GROWTH
    return OuterBound(x, value, least, messages, steps)
