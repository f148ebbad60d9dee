"""Classes found by walking a package: a new file there is all that a new one of them needs."""

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, TypeVar

Parent = TypeVar("Parent")


def public_subclasses(package: str, parent: type[Parent]) -> Iterator[type[Parent]]:
    """The complete subclasses of `parent` in the package's modules, in the order of their names; private modules are left out.

    Every public module of the package is imported.
    """
    for info in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
        if any(part.startswith("_") for part in info.name.split(".")):
            continue
        for _, kind in inspect.getmembers(importlib.import_module(info.name), inspect.isclass):
            if issubclass(kind, parent) and kind.__module__ == info.name and not inspect.isabstract(kind):
                yield kind


def lazy_classes(package: str, parent: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The `__getattr__` and `__dir__` of a package whose public names are the classes of one family, found at the first use.

    parent: "module:Class". Any name that is none of them raises AttributeError.
    """

    @cache
    def found() -> dict[str, Any]:
        module, _, name = parent.partition(":")
        return {kind.__name__: kind for kind in public_subclasses(package, getattr(importlib.import_module(module), name))}

    def load(name: str) -> Any:
        if name[:1].isupper() and name in found():  # what begins small is a module, and the walk itself asks for these
            return found()[name]
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return load, lambda: sorted(found())
