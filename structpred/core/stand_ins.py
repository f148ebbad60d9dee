"""Faster methods that stand in for plain ones: only where they do the same, so not for what a subclass changed."""

from collections.abc import Callable, Sequence
from typing import Any


def redefined(thing: object, written: type, names: Sequence[str]) -> str | None:
    """The first of the methods `names` that a subclass of `written`, or the object itself, has changed; None if none is."""
    lineage = type(thing).__mro__
    changed = (name for kind in lineage[: lineage.index(written)] for name in names if name in vars(kind))
    return next((name for name in names if name in getattr(thing, "__dict__", {})), None) or next(changed, None)


def stand_in(thing: object, fast: str, slow: Sequence[str]) -> Callable[..., Any] | None:
    """thing.fast, which does the work of the methods `slow`; None if it is missing, or if one of those was changed since."""
    method = getattr(thing, fast, None)
    if not callable(method):
        return None
    written = next((kind for kind in type(thing).__mro__ if fast in vars(kind)), None)
    return method if written is None or redefined(thing, written, slow) is None else None
