"""Two moons with one labelled tip each: the problems that the tests of semi-supervised solvers share."""

from itertools import combinations, product
from typing import Any

import numpy as np

from structpred.nonconvex.problem import SemiSupervisedProblem


def moons(n: int, seed: int, noise: float = 0.08) -> tuple[Any, Any, Any]:
    """(X, true labels +1 and -1, labels with 0 for all but the left tip of the upper moon and the right one of the lower)."""
    rng, half = np.random.default_rng(seed), n // 2
    t = rng.random(n) * np.pi
    upper, lower = t[:half], t[half:]
    X = np.vstack([np.c_[np.cos(upper), np.sin(upper)], np.c_[1.0 - np.cos(lower), 0.5 - np.sin(lower)]])
    X += noise * rng.normal(size=(n, 2))
    truth = np.repeat([1, -1], [half, n - half])
    y = np.zeros(n, int)
    y[X[:half, 0].argmin()], y[half + X[half:, 0].argmax()] = 1, -1
    return X, truth, y


def problem(
    n: int, C2: float, s2: float, seed: int = 0, balance: bool = True, noise: float = 0.08, inner: bool = False
) -> tuple[Any, Any]:
    """(the problem with C = 100 and k = exp(-|x - x'|^2 / (2 s2)), the true labels of the unlabelled points).

    inner: the labelled points are the other tips, which lie inside the other moon.
    """
    X, truth, y = moons(n, seed, noise)
    if inner:
        half, y = n // 2, np.zeros(n, int)
        y[X[:half, 0].argmax()], y[half + X[half:, 0].argmin()] = 1, -1
    gram = np.exp(-((X[:, None] - X[None]) ** 2).sum(-1) / (2.0 * s2))
    positives = (n - 2) // 2 if balance else None
    return SemiSupervisedProblem(gram, y, 100.0, C2, positives), truth[y == 0]


def best_of_all(p: SemiSupervisedProblem, tol: float = 1e-7) -> float:
    """The least objective over all labels within the balance, one inner problem for each."""
    if p.positives is None:
        every = (np.array(labels, float) for labels in product((0, 1), repeat=p.u))
    else:
        every = (np.isin(np.arange(p.u), chosen).astype(float) for chosen in combinations(range(p.u), int(p.positives)))
    return min(p.solve(labels, tol=tol).objective for labels in every)
