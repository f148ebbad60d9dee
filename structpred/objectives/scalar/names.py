"""The losses of one score, and of the scores of all classes, by their names."""

from functools import cache

from structpred.rows.multiclass_loss import MulticlassLoss
from structpred.rows.scalar_loss import ScalarLoss
from structpred.runtime.discovery import public_subclasses


@cache
def scalar_losses() -> dict[str, type[ScalarLoss]]:
    """Every scalar loss that has a name: a file in this package is all that a new one needs."""
    found = public_subclasses("structpred.objectives.scalar", ScalarLoss)
    return {kind.name: kind for kind in found if kind.name}


@cache
def multiclass_losses() -> dict[str, type[MulticlassLoss]]:
    """The same of losses of one label out of many."""
    found = public_subclasses("structpred.objectives.scalar", MulticlassLoss)
    return {kind.name: kind for kind in found if kind.name}
