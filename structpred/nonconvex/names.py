"""The solvers that go by a name; a class in a file of this package is all that a new one needs."""

from functools import cache
from typing import Any

from structpred.errors import ParameterError
from structpred.nonconvex.search import Solver
from structpred.runtime.discovery import public_subclasses
from structpred.text.suggestions import named


@cache
def solvers(parent: Any = Solver) -> dict[str, type[Any]]:
    """The solvers with this parent by name."""
    return {kind.name: kind for kind in public_subclasses("structpred.nonconvex", parent)}


def resolve_solver(solver: Any, parent: Any = Solver) -> Any:
    """The solver with this parent for a name, or the object itself; ParameterError for anything else.

    >>> resolve_solver("pdm").degree
    0.2
    """
    if isinstance(solver, str):
        return named("solver", solver, solvers(parent), " or a solver object")()
    if not isinstance(solver, parent):
        raise ParameterError(f"solver: expected a name or an instance of a solver such as PDM(degree=0.1), got {solver!r}")
    return solver
