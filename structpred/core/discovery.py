"""Classes found by walking a package: a new file there is all that a new one of them needs."""

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from typing import TypeVar

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
