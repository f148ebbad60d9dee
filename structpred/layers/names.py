"""The losses and layers of this package by their names: a new file is all that a new one needs."""

from functools import cache

from structpred.layers.loss import Layer, Loss
from structpred.runtime.discovery import public_subclasses


@cache
def losses() -> dict[str, type[Loss]]:
    """Every loss with a name.

    >>> losses()["spo+"].__name__
    'SPOPlus'
    """
    return {kind.name: kind for kind in public_subclasses(__package__, Loss) if kind.name}  # type: ignore[type-abstract]


@cache
def layers() -> dict[str, type[Layer]]:
    """Every layer with a name."""
    return {kind.name: kind for kind in public_subclasses(__package__, Layer) if kind.name}  # type: ignore[type-abstract]
