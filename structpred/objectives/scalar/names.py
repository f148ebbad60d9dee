"""The scalar losses of this package by their names."""

from functools import cache

from structpred.core.discovery import public_subclasses
from structpred.core.scalar_loss import ScalarLoss


@cache
def scalar_losses() -> dict[str, type[ScalarLoss]]:
    """Every scalar loss that has a name: a file in this package is all that a new one needs."""
    found = public_subclasses("structpred.objectives.scalar", ScalarLoss)
    return {kind.name: kind for kind in found if kind.name}
