"""Gradient descent on a smooth objective: squared hinge at labelled points, a Gaussian in place of the hat at the others."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from structpred.core.types import Floats
from structpred.errors import ParameterError
from structpred.nonconvex.search import Search, Solution, Solver

#: the Gaussian exp(-SHARP h^2) that stands for max(0, 1 - |h|)
SHARP = 3.0


@dataclass(frozen=True)
class GradientDescent(Solver):
    """1/2 |w|^2 + C sum V(y, h)^2 + C2 sum exp(-3 h^2), by L-BFGS in kernel coordinates; C2 rises to its value in `stages` steps.

    With a balance b is what gives the unlabelled points the mean 2 positives / u - 1, as published; else 0 is the start of b and
    it is free. The labels are those that suit its classifier; the objective returned is the original one. Chapelle & Zien 2005.
    """

    name: ClassVar[str] = "gradient"
    unlabelled_only: ClassVar[bool] = True
    stages: int = 10
    max_iter: int = 200

    def _run(self, search: Search, rng: np.random.Generator, start: Floats | None) -> Solution:
        from scipy.optimize import minimize

        if self.stages < 1 or self.max_iter < 1:
            raise ParameterError(f"GradientDescent: expected stages and max_iter >= 1, got {self.stages!r}, {self.max_iter!r}")
        smooth, steps = _Smooth(search, start), 0
        z = smooth.start
        for k in range(self.stages):
            C2 = search.problem.C2 * 10.0 ** (-3.0 * (1.0 - (k + 1) / self.stages))
            found = minimize(smooth.value, z, args=(C2,), jac=True, method="L-BFGS-B", options={"maxiter": self.max_iter})
            z, steps = found.x, steps + int(found.nit)
        h = smooth.decision(z)[search.problem.unlabelled]
        search.offer(search.problem.best_vertex(h), None, "descended")
        return search.solution(steps=steps)


class _Smooth:
    """The smooth objective of z = (v, b), with h = L v + b and K = L L'."""

    def __init__(self, search: Search, start: Floats | None) -> None:
        self.problem = problem = search.problem
        values, vectors = np.linalg.eigh(problem.gram)
        kept = values > 1e-10 * values[-1]
        self.root = vectors[:, kept] * np.sqrt(values[kept])
        self.mean = self.root[problem.unlabelled].mean(axis=0)
        self.target = 2.0 * problem.positives / problem.u - 1.0 if problem.positives is not None else None
        inner = search.root() if start is None else search.solve(start)
        self.start = np.append((self.root / values[kept]).T @ inner.f, 0.0 if self.target is not None else inner.b)

    def decision(self, z: Floats) -> Floats:
        """h at all points."""
        v, b = z[:-1], z[-1]
        return np.asarray(self.root @ v + (b if self.target is None else self.target - self.mean @ v))

    def value(self, z: Floats, C2: float) -> tuple[float, Floats]:
        """The objective and its gradient."""
        problem, h, u = self.problem, self.decision(z), self.problem.unlabelled
        short = np.where(problem.y != 0, np.maximum(0.0, 1.0 - problem.y * h), 0.0)
        bumps = C2 * np.exp(-SHARP * h[u] ** 2)
        slope = -2.0 * problem.C * problem.y * short
        slope[u] = -2.0 * SHARP * h[u] * bumps
        gradient = np.append(z[:-1] + self.root.T @ slope, slope.sum())
        if self.target is not None:
            gradient[:-1] -= self.mean * slope.sum()
            gradient[-1] = 0.0
        return float(0.5 * z[:-1] @ z[:-1] + problem.C * short @ short + bumps.sum()), gradient
