"""Modules that have moved, names that have changed: the old ones lead to the new, with a DeprecationWarning, for one release."""

import importlib
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

#: the release without the old paths
GONE_IN = "0.3"


class _Moved(ModuleType):
    """What is found under the old path."""

    def __init__(self, old: str, new: str) -> None:
        super().__init__(old, f"Moved to {new}.")
        self._new = new

    def __getattr__(self, name: str) -> Any:
        """The name as the new module has it; AttributeError where that has none."""
        if name.startswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        found = getattr(importlib.import_module(self._new), name)
        warnings.warn(
            f"{self.__name__} has moved: import {name} from {self._new}; the old path goes in {GONE_IN}",
            DeprecationWarning,
            stacklevel=2,
        )
        return found


def renamed(module: str, names: Mapping[str, str]) -> Callable[[str], Any]:
    """The `__getattr__` of a module in which `names`, old -> new, have changed. Any other name raises AttributeError."""

    def load(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        warnings.warn(f"{name} is called {names[name]} now; the old name goes in {GONE_IN}", DeprecationWarning, stacklevel=2)
        return getattr(sys.modules[module], names[name])

    return load


def present_name(thing: object, new: str, old: str) -> str:
    """The name by which an optional method is looked up: `new`, or `old` with a warning where only that is there."""
    if hasattr(thing, new) or not hasattr(thing, old):
        return new
    kind = type(thing).__name__
    warnings.warn(f"{kind}.{old} is called {new} now; the old name goes in {GONE_IN}", DeprecationWarning, stacklevel=3)
    return old


def leave_behind(package: str, rooms: Mapping[str, Sequence[str]]) -> None:
    """Let modules of `package` be imported by their old names; rooms: the package where they are now -> their names.

    "old:new" is one that has another name there.
    """
    for room, names in rooms.items():
        for name in names:
            old, _, new = name.partition(":")
            sys.modules.setdefault(f"{package}.{old}", _Moved(f"{package}.{old}", f"{room}.{new or old}"))
