"""The solvers that go by a name; a class in a file of this package is all that a new one needs."""

from functools import cache
from typing import Any

from structpred.core.discovery import public_subclasses
from structpred.core.suggestions import did_you_mean
from structpred.errors import ParameterError
from structpred.nonconvex.search import Solver


@cache
def solvers() -> dict[str, type[Solver]]:
    """The solvers by name."""
    found = public_subclasses("structpred.nonconvex", Solver)  # type: ignore[type-abstract]
    return {kind.name: kind for kind in found}


def resolve_solver(solver: Any) -> Solver:
    """The solver for a name, or the object itself; ParameterError for anything else.

    >>> resolve_solver("pdm").degree
    0.2
    """
    if isinstance(solver, str):
        if (kind := solvers().get(solver)) is None:
            known, hint = ", ".join(solvers()), did_you_mean(solver, solvers())
            raise ParameterError(f"solver: expected one of {known} or a solver object, got {solver!r}{hint}")
        return kind()
    if not isinstance(solver, Solver):
        raise ParameterError(f"solver: expected a name or an instance of a solver such as PDM(degree=0.1), got {solver!r}")
    return solver
