"""Small graphs whose nodes have labels, for tests of training on shards."""

from typing import Any

import numpy as np

RNG = np.random.default_rng(7)
GRID = np.array([(0, 1), (2, 1), (3, 4), (4, 5), (0, 3), (1, 4), (2, 5)])
PATH = np.array([(0, 1), (1, 2), (2, 3)])
NAMES = np.array(["cat", "dog", "owl"])


def graphs(edges: Any, n_labels: int, edge_features: int = 0) -> tuple[list[Any], list[Any]]:
    """Twelve graphs of these edges whose nodes show their labels, but for some noise; along the first edge labels agree."""
    X, y = [], []
    for _ in range(12):
        codes = RNG.integers(0, n_labels, edges.max() + 1)
        codes[edges[0, 1]] = codes[edges[0, 0]]
        x = [np.eye(n_labels)[codes] + RNG.normal(0, 0.6, (len(codes), n_labels)), edges]
        X.append((*x, RNG.normal(size=(len(edges), edge_features))) if edge_features else tuple(x))
        y.append(NAMES[codes].tolist())
    return X, y


PATHS, GRIDS, RICH, MORE = graphs(PATH, 3), graphs(GRID, 2), graphs(GRID, 2, edge_features=2), graphs(GRID, 3)
