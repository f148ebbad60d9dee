"""The regularisers of this package by their names."""

from functools import cache

from structpred.core.regulariser import Regulariser
from structpred.runtime.discovery import public_subclasses


@cache
def regularisers() -> dict[str, type[Regulariser]]:
    """Every regulariser that has a name: a file in this package is all that a new one needs."""
    return {kind.name: kind for kind in public_subclasses("structpred.objectives.regularisers", Regulariser) if kind.name}
