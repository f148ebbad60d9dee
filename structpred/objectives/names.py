"""The losses of this package by their names."""

from functools import cache

from structpred.core.costs import Cost
from structpred.runtime.discovery import public_subclasses


@cache
def losses() -> dict[str, type[Cost]]:
    """Every loss that has a name: a file in this package is all that a new one needs."""
    found = public_subclasses("structpred.objectives", Cost)  # type: ignore[type-abstract]
    return {name: kind for kind in found if (name := getattr(kind, "name", ""))}
