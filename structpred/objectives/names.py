"""The losses and regularisers of this package by their names: a file in it is all that a new one needs."""

from functools import cache

from structpred.core.costs import Cost
from structpred.core.regulariser import Regulariser
from structpred.rows.multiclass_loss import MulticlassLoss
from structpred.rows.scalar_loss import ScalarLoss
from structpred.runtime.discovery import public_subclasses


@cache
def losses() -> dict[str, type[Cost]]:
    """Every loss that has a name."""
    found = public_subclasses("structpred.objectives", Cost)  # type: ignore[type-abstract]
    return {name: kind for kind in found if (name := getattr(kind, "name", ""))}


@cache
def regularisers() -> dict[str, type[Regulariser]]:
    """Every regulariser that has a name, in the order of the names: a file holds a family."""
    found = {kind.name: kind for kind in public_subclasses("structpred.objectives.regularisers", Regulariser) if kind.name}
    return dict(sorted(found.items()))


@cache
def scalar_losses() -> dict[str, type[ScalarLoss]]:
    """Every loss of one score that has a name."""
    return {kind.name: kind for kind in public_subclasses("structpred.objectives.scalar", ScalarLoss) if kind.name}


@cache
def multiclass_losses() -> dict[str, type[MulticlassLoss]]:
    """The same of losses of one label out of many."""
    return {kind.name: kind for kind in public_subclasses("structpred.objectives.scalar", MulticlassLoss) if kind.name}
