"""A solver of your own as an oracle: a function of costs, or of values, that gives a vector."""

from collections.abc import Callable
from typing import Any

import numpy as np

from structpred.core.oracle import Scores
from structpred.core.types import Floats
from structpred.errors import OracleError, ParameterError
from structpred.oracles.solvers._vectors import VectorOracle


class SolverOracle(VectorOracle):
    """The best vector of n numbers by a function of yours: Gurobi, OR-Tools, a heuristic, a service.

    The only shape is (n,), and may be left out where this oracle is used. Labels are x, part j is on x_j times. `check_oracle`
    judges the function. For processes in place of threads: ``ProcessOracle(SolverOracle(...), n_jobs=4)``.

    Parameters
    ----------
    solve : callable
        (n,) numbers -> n numbers, the same ones each time. gives_bound=True: -> (n numbers, bound).
    n : int
        How many numbers a vector has.
    minimises : bool
        True: `solve` takes costs and minimises costs . x. False: it takes values and maximises. Must be given.
    exact : bool
        Whether x is the best vector. False, a heuristic: nothing is called proven, unless there is a bound.
    tolerance : float
        For an exact method that stops at a relative gap: that gap (Gurobi's MIPGap is 1e-4 unless set). It takes the place of
        `exact`, and widens certificates. See `Oracle.tolerance`.
    gives_bound : bool
        Whether `solve` gives its bound (Gurobi: ObjBound), too: the cost that no vector is below, the value that none is above.
    whole : bool
        True: numbers are whole, from 0 to `upper`. False: amounts, and outputs are points.
    upper : int
        The largest whole number.
    threads : bool
        Whether `solve` may be called by several threads at once; then n_jobs of models and losses says how many do.

    Raises
    ------
    ParameterError
        For settings that say too little. OracleError where `solve` gives no such vector.

    Examples
    --------
    >>> def cheapest_two(costs):
    ...     return np.isin(np.arange(4), np.argsort(costs)[:2])
    >>> oracle = SolverOracle(cheapest_two, 4, minimises=True, exact=True)
    >>> oracle.argmax(-np.array([5.0, 1.0, 2.0, 9.0]), (4,)).tolist()  # scores are minus costs
    [0, 1, 1, 0]
    """

    def __init__(
        self, solve: Callable[[Floats], Any], n: int, *, minimises: bool | None = None, exact: bool = False,
        tolerance: float = 0.0, gives_bound: bool = False, whole: bool = True, upper: int = 1, threads: bool = False,
    ) -> None:  # fmt: skip
        if not callable(solve) or isinstance(n, bool) or n != int(n) or n < 1:
            raise ParameterError(f"expected a function of n numbers, and n >= 1, got {solve!r} and {n!r}")
        if not isinstance(minimises, bool):
            raise ParameterError("say minimises=True for a function of costs, minimises=False for a function of values")
        if not 0.0 <= tolerance < np.inf or upper < 1:
            raise ParameterError(f"expected a tolerance >= 0 and upper >= 1, got {tolerance!r} and {upper!r}")
        self.solve, self.minimises, self.upper, self.gives_bound = solve, minimises, upper, gives_bound
        self.exact, self.tolerance = bool(exact or tolerance > 0.0), float(tolerance)
        bounds, batches = ["argmax_bound"] * gives_bound, ["argmax_batch"] * threads
        super().__init__(int(n), whole, [*bounds, *batches, *(f"{name}_batch" for name in bounds if threads)])

    def solved(self, scores: Scores) -> tuple[Floats, float]:
        """What the function gives; the bound in scores."""
        sign = -1.0 if self.minimises else 1.0
        answer = self.solve(sign * scores)
        try:
            x, bound = answer if self.gives_bound else (answer, sign * np.inf)
            found, most = np.array(x, dtype=np.float64), sign * float(bound)
            self._checked(found, 1.0)
        except (TypeError, ValueError) as error:
            what = f"{self.n} numbers{' and a bound, (x, bound)' * self.gives_bound}"
            raise OracleError(f"solve must give {what}: {error}") from error
        return found, most

    def check(self, x: Floats) -> None:
        """ValueError for whole numbers out of range, and for what is not finite."""
        if not np.isfinite(x).all() or (self.whole and not (x.min() > -0.5 and x.max() < self.upper + 0.5)):
            box = f"whole numbers from 0 to {self.upper}" if self.whole else "finite numbers"
            raise ValueError(f"expected {box}, got {np.array2string(x, threshold=8)}")
