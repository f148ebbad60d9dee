"""Faster methods that replace plain ones: only where they do the same, so not for what a subclass changed."""

from collections.abc import Callable, Sequence
from typing import Any


def redefined(thing: object, written: type, names: Sequence[str]) -> str | None:
    """The first of the methods `names` that a subclass of `written`, or the object itself, has changed; None if none is."""
    lineage = type(thing).__mro__
    for place in (getattr(thing, "__dict__", {}), *map(vars, lineage[: lineage.index(written)])):
        for name in names:  # plain loops: this is asked in every batch
            if name in place:
                return name
    return None


def stand_in(thing: object, fast: str, slow: Sequence[str]) -> Callable[..., Any] | None:
    """thing.fast, which does the work of the methods `slow`; None if it is missing, or if one of those was changed since."""
    method: Callable[..., Any] | None = getattr(thing, fast, None)
    if not callable(method):
        return None
    for kind in type(thing).__mro__:
        if fast in vars(kind):
            return method if redefined(thing, kind, slow) is None else None
    return method
