"""Portfolios: the shares with the largest return whose risk is bounded."""

from typing import Any, NamedTuple

import numpy as np

from structpred.core.oracle import Shape
from structpred.core.scores import kept_for_shapes
from structpred.core.types import ArrayLike, Floats
from structpred.errors import DataError
from structpred.oracles.convex_points import ConvexPoints


class _Risk(NamedTuple):
    """|factor' w| <= 1 says that the risk is kept."""

    n_parts: int
    factor: Floats


def portfolio_shape(covariance: ArrayLike, risk: float) -> Shape:
    """The shape of a portfolio: (risk, covariance), the covariance as a tuple of rows.

    >>> portfolio_shape(np.eye(2), 0.5)
    (0.5, ((1.0, 0.0), (0.0, 1.0)))
    """
    return float(risk), tuple(map(tuple, np.asarray(covariance, dtype=np.float64).tolist()))


@kept_for_shapes
def risk_of(shape: Shape) -> _Risk:
    """The factor of a shape. Raises DataError for what is no covariance and no risk > 0."""
    try:
        risk, table = float(shape[0]), np.array(shape[1], dtype=np.float64)
        if len(shape) != 2 or table.ndim != 2 or table.shape[0] != table.shape[1] or not table.size:
            raise ValueError(f"rows of shape {table.shape}")
    except (TypeError, ValueError, IndexError) as error:
        raise DataError(f"expected a shape of portfolio_shape(covariance, risk), got {str(shape)[:80]}: {error}") from None
    if not (np.isfinite(table).all() and 0.0 < risk < np.inf):
        raise DataError(f"a covariance must be finite and the risk finite and > 0, got the risk {risk!r}")
    values, vectors = np.linalg.eigh(0.5 * (table + table.T))
    size = float(np.abs(table).max())
    if np.abs(table - table.T).max() > 1e-9 * size or values[0] < -1e-9 * size:
        raise DataError(f"a covariance is symmetric without negative eigenvalues; the smallest one is {values[0]:.3g}")
    return _Risk(len(table), vectors * np.sqrt(np.maximum(values, 0.0) / risk))


class PortfolioOracle(ConvexPoints):
    """shape = portfolio_shape(covariance, risk): shares w >= 0 with sum w <= 1 and w' covariance w <= risk; scores are returns.

    Outputs are points: labels are the shares in units of 1e-12, `point(labels, shape)` gives the shares. Solved by Clarabel, some
    milliseconds for 50 assets. Needs cvxpy (the extra `solvers`; DependencyError says so). Raises DataError for shapes that are
    no covariance with a risk > 0. Elmachtoub and Grigas (2022), section 6.2.

    >>> oracle, shape = PortfolioOracle(), portfolio_shape([[1.0, 0.0], [0.0, 4.0]], 0.25)
    >>> labels = oracle.argmax(np.array([1.0, 1.0]), shape)  # the second asset has four times the variance
    >>> (oracle.point(labels, shape) * 5**0.5).round(3).tolist()
    [1.0, 0.25]
    """

    output = "portfolio"

    def __init__(self) -> None:
        super().__init__(_shares, example_shapes=[portfolio_shape([[1.0, 0.3, 0.0], [0.3, 0.5, 0.2], [0.0, 0.2, 2.0]], 0.2)])

    def n_parts(self, shape: Shape) -> int:
        """The number of assets."""
        return risk_of(shape).n_parts

    def _outside(self, mu: Floats, shape: Shape) -> float:
        return float(max(-mu.min(), mu.sum() - 1.0, np.linalg.norm(risk_of(shape).factor.T @ mu) - 1.0, 0.0))


def _shares(shape: Shape) -> tuple[Any, list[Any]]:
    import cvxpy

    cp: Any = cvxpy  # its functions are not all known to type checkers
    n_parts, factor = risk_of(shape)
    w = cp.Variable(n_parts)
    return w, [w >= 0, cp.sum(w) <= 1, cp.norm(factor.T @ w) <= 1]
