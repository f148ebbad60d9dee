"""Synthetic data of predict-then-optimise problems, from the published formulas, with a seed.

Features x_i are standard normal, and costs or values are polynomials of random linear functions of them, times noise. A linear
model is right for degree 1 alone: the higher the degree, the more it matters which errors a model makes.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from structpred.errors import ParameterError

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


class Decisions(NamedTuple):
    """A data set: features (n, p), and the true costs (n, parts), which are minimised, or values, which are maximised.

    shape: what the oracle takes, the same for all instances. The one of costs and values that there is not is None.
    """

    features: Floats
    costs: Floats | None
    values: Floats | None
    shape: Any

    def rows(self, rows: Any) -> "Decisions":
        """Some instances, by a slice or an array of numbers: one call of a generator makes training and test set alike."""
        costs, values = (None if given is None else given[rows] for given in (self.costs, self.values))
        return Decisions(self.features[rows], costs, values, self.shape)


def shortest_path_data(
    n: int, *, n_features: int = 5, grid: tuple[int, int] = (5, 5), degree: int = 1, noise: float = 0.0, seed: int = 0
) -> Decisions:
    """Costs of the edges of a grid, for ShortestPathOracle with the shape `grid`.

        c_ij = ((b_j . x_i / sqrt(p) + 3)^degree + 1) / 3.5^degree * e_ij,   b_jk Bernoulli(1/2),  e_ij uniform in 1 -+ noise

    noise: the half-width, 0 <= noise < 1. The scale 1 / 3.5^degree keeps costs of all degrees of about the same size.
    Elmachtoub and Grigas (2022), section 6.1. Raises ParameterError for numbers out of range.

    >>> shortest_path_data(2, degree=4, noise=0.5, seed=1).costs.shape
    (2, 40)
    """
    rows, columns = grid
    rng = _checked(n, n_features, degree, noise, seed)
    n_edges = rows * (columns - 1) + (rows - 1) * columns
    features, kernel = _polynomials(rng, n, n_features, n_edges, degree)
    costs = (kernel + 1.0) / 3.5**degree * _noise(rng, kernel.shape, noise)
    return Decisions(features, costs, None, (rows, columns))


def knapsack_data(
    n: int, *, n_features: int = 5, n_items: int = 32, n_rows: int = 2, capacity: float = 20.0, degree: int = 1,
    noise: float = 0.0, seed: int = 0,
) -> Decisions:  # fmt: skip
    """Values of the items of one knapsack of several rows, for KnapsackOracle.

        v_ij = ceil(5 ((b_j . x_i / sqrt(p) + 3)^degree + 1) / 3.5^degree * e_ij),   weights uniform in 3, 3.01, ..., 7.99

    b and e as for `shortest_path_data`; each row has the same capacity. After Mandi, Demirovic, Stuckey & Guns (2020), in the
    form of Tang & Khalil (PyEPO, 2022). Raises ParameterError for numbers out of range.

    >>> data = knapsack_data(3, n_items=4, seed=2)
    >>> data.values.shape, len(data.shape[1]), data.shape[0]
    ((3, 4), 2, (20.0, 20.0))
    """
    rng = _checked(n, n_features, degree, noise, seed)
    weights = rng.integers(300, 800, (n_rows, n_items)) / 100.0
    features, kernel = _polynomials(rng, n, n_features, n_items, degree)
    values = np.ceil(5.0 * (kernel + 1.0) / 3.5**degree * _noise(rng, kernel.shape, noise))
    return Decisions(features, None, values, ((float(capacity),) * n_rows, tuple(map(tuple, weights.tolist()))))


def travelling_salesman_data(
    n: int, *, n_features: int = 5, n_nodes: int = 8, degree: int = 1, noise: float = 0.0, seed: int = 0
) -> Decisions:
    """Costs of the edges between nodes, for oracles of tours with the shape (n_nodes,).

    TravellingSalesmanOracle takes up to 20 nodes, CpSatTravellingSalesman more.

        c_ie = |z_j - z_k| + (b_e . x_i / sqrt(p) + 3)^degree / 3^(degree - 1) * e_ie,   e = the edge of the nodes j < k

    Half of the nodes z are standard normal in the plane, half uniform in [-2, 2]^2; b_ek is Bernoulli(1/2) times uniform in
    [-2, 2]; edges are sorted by j, then by k. Tang & Khalil (PyEPO, 2022). Raises ParameterError for numbers out of range.

    >>> travelling_salesman_data(2, n_nodes=5).costs.shape
    (2, 10)
    """
    rng = _checked(n, n_features, degree, noise, seed)
    nodes = np.concatenate((rng.normal(size=(n_nodes // 2, 2)), rng.uniform(-2.0, 2.0, (n_nodes - n_nodes // 2, 2))))
    first, second = np.triu_indices(n_nodes, 1)
    distances = np.linalg.norm(nodes[first] - nodes[second], axis=1)
    features = rng.normal(size=(n, n_features))
    b = rng.integers(0, 2, (len(first), n_features)) * rng.uniform(-2.0, 2.0, (len(first), n_features))
    kernel = (features @ b.T / np.sqrt(n_features) + 3.0) ** degree / 3.0 ** (degree - 1)
    return Decisions(features, distances + kernel * _noise(rng, kernel.shape, noise), None, (n_nodes,))


def portfolio_data(
    n: int, *, n_features: int = 5, n_assets: int = 50, degree: int = 1, noise: float = 1.0, seed: int = 0
) -> Decisions:
    """Returns of assets, the values of their shares, for PortfolioOracle with the shape (risk, covariance).

        r_ij = (0.05 b_j . x_i / sqrt(p) + 0.1^(1/degree))^degree + l_j . f_i + 0.01 noise g_ij,   f_i, g_i standard normal

    with l_jk uniform in -+ 0.0025 noise (four factors), the covariance L L' + (0.01 noise)^2 I, and the risk 2.25 times that of
    equal shares. Elmachtoub and Grigas (2022), section 6.2. noise >= 0. Raises ParameterError for numbers out of range.

    >>> data = portfolio_data(2, n_assets=3)
    >>> data.values.shape, np.shape(data.shape[1])
    ((2, 3), (3, 3))
    """
    rng = _checked(n, n_features, degree, 0.0, seed)
    if not noise >= 0.0:
        raise ParameterError(f"noise must be >= 0, got {noise!r}")
    b = rng.integers(0, 2, (n_assets, n_features))
    loadings = rng.uniform(-0.0025 * noise, 0.0025 * noise, (n_assets, 4))
    features = rng.normal(size=(n, n_features))
    mean = (0.05 * features @ b.T / np.sqrt(n_features) + 0.1 ** (1.0 / degree)) ** degree
    values = mean + rng.normal(size=(n, 4)) @ loadings.T + 0.01 * noise * rng.normal(size=mean.shape)
    covariance = loadings @ loadings.T + (0.01 * noise) ** 2 * np.eye(n_assets)
    return Decisions(features, None, values, (float(2.25 * covariance.mean()), tuple(map(tuple, covariance.tolist()))))


def _polynomials(rng: np.random.Generator, n: int, n_features: int, n_parts: int, degree: int) -> tuple[Floats, Floats]:
    """(features, (b_j . x_i / sqrt(p) + 3)^degree)."""
    b = rng.integers(0, 2, (n_parts, n_features))
    features = rng.normal(size=(n, n_features))
    return features, (features @ b.T / np.sqrt(n_features) + 3.0) ** degree


def _noise(rng: np.random.Generator, shape: tuple[int, ...], noise: float) -> Floats:
    return rng.uniform(1.0 - noise, 1.0 + noise, shape)


def _checked(n: int, n_features: int, degree: int, noise: float, seed: int) -> np.random.Generator:
    if n < 1 or n_features < 1 or degree < 1 or int(degree) != degree:
        raise ParameterError(f"n, n_features and degree must be whole numbers >= 1, got {n!r}, {n_features!r} and {degree!r}")
    if not 0.0 <= noise < 1.0:
        raise ParameterError(f"noise must be at least 0 and below 1, got {noise!r}")
    return np.random.default_rng(seed)
