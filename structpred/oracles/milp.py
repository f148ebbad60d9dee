"""Mixed-integer linear programmes: the best vector of whole numbers and amounts under linear constraints, by HiGHS."""

from collections.abc import Iterator
from hashlib import blake2b
from typing import Any

import numpy as np

from structpred.core.fixed_scores import FORBIDDEN
from structpred.core.oracle import Labels, Scores, Shape
from structpred.core.types import ArrayLike, Flags, Floats
from structpred.errors import ConvergenceError, InfeasibleError, ParameterError
from structpred.oracles.solvers._vectors import VectorOracle

#: HiGHS keeps rows and whole numbers to this; labels may break a row by this share of its numbers
_NEAR = 1e-6
#: boxes of so many vectors can be listed
_LISTED = 1 << 14
#: the largest score that HiGHS sees lies between half of this and this: its absolute gap of 1e-6 is then 2e-9 of it at most
_SIZE = 1024.0


class MilpOracle(VectorOracle):
    """max scores . x over {x : A x <= b, A_eq x = b_eq, lower <= x <= upper, x_j whole where integrality_j = 1}, by HiGHS.

    The only shape is (n,), and may be left out where this oracle is used. Labels are x, part j is on x_j times. Where some x_j
    are amounts, or may be negative, outputs are points: labels are amounts in units of 1e-12.

    `argmax_bound` gives HiGHS's own bound, which certificates rest on: they stay true where the search is cut short. With
    mip_rel_gap = 0 and no node_limit the oracle is exact, to 2e-9 of the largest score. Calls may be made on threads.

    Parameters
    ----------
    A, b : (rows, n) array or sparse matrix, and (rows,) array
        None where there are equations alone.
    integrality : 0, 1 or an array (n,) of these
        1: a whole number.
    lower, upper : float or array (n,)
        From 0 to 1 if not given.
    A_eq, b_eq : optional
        Equations.
    mip_rel_gap : float
        The search ends where the best vector is at most this share below the bound. SciPy's own is 1e-4; 0 is exact.
    node_limit : int, optional
        The most nodes of the search tree: work, not seconds, so that answers depend on no clock.

    Raises
    ------
    ParameterError
        For numbers that do not fit together. InfeasibleError where no x satisfies the constraints, ConvergenceError where
        HiGHS ends without a vector, with its reason, both when it is asked.

    Examples
    --------
    >>> oracle = MilpOracle([[3.0, 2.0, 2.0]], [4.0])
    >>> oracle.argmax(np.array([5.0, 3.0, 3.0]), (3,)).tolist()
    [0, 1, 1]
    """

    def __init__(
        self, A: Any, b: ArrayLike | None, integrality: ArrayLike = 1, *, lower: ArrayLike = 0.0,
        upper: ArrayLike = 1.0, A_eq: Any = None, b_eq: ArrayLike | None = None, mip_rel_gap: float = 0.0,
        node_limit: int | None = None,
    ) -> None:  # fmt: skip
        from scipy.sparse import vstack

        given = [(_table(rows, limits), equal) for rows, limits, equal in ((A, b, False), (A_eq, b_eq, True)) if rows is not None]
        if len({rows.shape[1] for (rows, _), _ in given}) != 1:
            raise ParameterError("expected A or A_eq, or both with a column for each of the same n numbers")
        self._rows = vstack([rows for (rows, _), _ in given]).tocsr()
        self._high = np.concatenate([limits for (_, limits), _ in given])
        self._low = np.concatenate([limits if equal else np.full(len(limits), -np.inf) for (_, limits), equal in given])
        n = self._rows.shape[1]
        try:
            of_each = [np.broadcast_to(np.asarray(own, np.float64), n).copy() for own in (integrality, lower, upper)]
        except ValueError as error:
            raise ParameterError(f"integrality, lower and upper: expected a number, or {n} of them: {error}") from None
        self._integrality, self._lower, self._upper = of_each
        if not (np.isin(self._integrality, (0, 1)).all() and (self._lower <= self._upper).all()):
            raise ParameterError("expected integrality of 0 or 1, and lower <= upper")
        if not 0.0 <= mip_rel_gap < 1.0 or (node_limit is not None and node_limit < 1):
            raise ParameterError(f"expected 0 <= mip_rel_gap < 1 and node_limit >= 1, got {mip_rel_gap!r} and {node_limit!r}")
        self.mip_rel_gap, self.node_limit = float(mip_rel_gap), node_limit
        self.exact = mip_rel_gap == 0.0 and node_limit is None
        numbers = (self._rows.data, self._rows.indices, self._rows.indptr, self._low, self._high, *of_each)
        self.problem = blake2b(b"".join(own.tobytes() for own in numbers), digest_size=16).hexdigest()  # tells checkpoints apart
        whole = bool(self._integrality.all() and (self._lower >= 0.0).all())
        few = whole and float(np.prod(self._upper - self._lower + 1.0)) <= _LISTED
        super().__init__(n, whole, ["argmax_bound", "argmax_batch", "argmax_bound_batch", *(["enumerate"] if few else [])])

    def solved(self, scores: Scores) -> tuple[Floats, float]:
        """HiGHS's best vector and bound. Parts that score -1e30 are left out."""
        closed = scores <= 0.5 * FORBIDDEN
        theta = np.where(closed, 0.0, scores)
        size = float(np.abs(theta).max())
        scale = _SIZE / 2.0 ** np.ceil(np.log2(size)) if size > 0.0 else 1.0
        found = self._asked(-scale * theta, closed)
        if found.x is None and found.status == 4 and "infeasible" in found.message.lower():
            known = self._asked(np.zeros(self.n), closed)  # infeasible or unbounded
            found = known if known.x is None else found
        if found.x is None and found.status == 2:
            which = f" without the {int(closed.sum())} parts that are forbidden" if closed.any() else ""
            raise InfeasibleError(f"no x satisfies the rows, the bounds and the integrality{which}")
        if found.x is None:
            advice = "are lower and upper finite, is node_limit too small, or are the numbers of A very large?"
            raise ConvergenceError(f"HiGHS ended without a vector: {found.message} ({advice})")
        x = np.clip(np.where(self._integrality == 1.0, np.rint(found.x), found.x), self._lower, self._upper)
        dual = found.get("mip_dual_bound")  # None of a linear programme
        return x, max(float(theta @ x), -np.inf if dual is None else -dual / scale) + 1e-9 * size

    def _asked(self, costs: Floats, closed: Flags) -> Any:
        from scipy import optimize

        solver: Any = optimize  # its types know no options and no float64 integrality
        lower, upper = self._lower, np.where(closed, np.minimum(self._upper, 0.0), self._upper)
        options: dict[str, Any] = {"mip_rel_gap": self.mip_rel_gap}
        if self.node_limit is not None:
            options["node_limit"] = self.node_limit
        rows = solver.LinearConstraint(self._rows, self._low, self._high)
        upper = np.maximum(upper, lower)  # what must be on is so: whoever forbade it sees its score
        bounds = solver.Bounds(lower, upper)
        return solver.milp(costs, integrality=self._integrality, bounds=bounds, constraints=rows, options=options)

    def check(self, x: Floats) -> None:
        """ValueError for a vector that breaks the constraints."""
        if not self._keep(x[None])[0]:
            raise ValueError(f"{np.array2string(x, threshold=8)} breaks a row, a bound or the integrality")

    def _keep(self, X: Floats) -> Flags:
        """Whether each of these vectors is an output."""
        sums, sizes = (self._rows @ X.T).T, (abs(self._rows) @ np.abs(X).T).T
        room, whole = _NEAR * (1.0 + sizes), self._integrality == 1.0
        in_rows = ((sums <= self._high + room) & (sums >= self._low - room)).all(axis=1)
        in_box = (np.abs(X - np.clip(X, self._lower, self._upper)) <= _NEAR).all(axis=1)
        return in_rows & in_box & (np.abs(X - np.rint(X))[:, whole] <= _NEAR).all(axis=1)

    def _enumerate(self, shape: Shape) -> Iterator[Labels]:
        sides = [np.arange(low, high + 1.0) for low, high in zip(np.ceil(self._lower), self._upper, strict=True)]
        box = np.stack(np.meshgrid(*sides, indexing="ij"), axis=-1).reshape(-1, self.n)
        return iter(box[self._keep(box)].astype(np.int64))


def _table(rows: Any, limits: ArrayLike | None) -> tuple[Any, Floats]:
    """(a sparse matrix, a limit for each row), else ParameterError."""
    from scipy.sparse import csr_array

    try:
        A, b = csr_array(rows, dtype=np.float64), np.atleast_1d(np.asarray(limits, dtype=np.float64))
    except (TypeError, ValueError) as error:
        raise ParameterError(f"expected a matrix of numbers and its limits, A and b: {error}") from None
    if A.ndim != 2 or not A.shape[1] or b.shape != A.shape[:1] or not np.isfinite(A.data).all() or np.isnan(b).any():
        raise ParameterError(f"expected finite rows A (rows, n) and a limit for each in b, got shapes {A.shape} and {b.shape}")
    return A, b
