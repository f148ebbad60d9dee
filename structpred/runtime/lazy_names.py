"""Names and modules that are loaded when they are used."""

import importlib
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any, NamedTuple


def lazy_names(
    package: str, files: Mapping[str, Sequence[str]], packages: Sequence[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The `__getattr__` and `__dir__` of a package: the names in each of its files, and the packages in it.

    Any other name raises AttributeError.

    >>> load, names = lazy_names("os", {"path": ("join",)})
    >>> load("join")("a", "b"), names()
    ('a/b', ['join'])
    """
    places = {name: file for file, names in files.items() for name in names}

    def load(name: str) -> Any:
        if name in places:
            return getattr(importlib.import_module(f"{package}.{places[name]}"), name)
        if name in packages:
            return importlib.import_module(f"{package}.{name}")
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return load, lambda: sorted([*places, *packages])


def later(module: str) -> Callable[[], Any]:
    """The module, by a function that imports it when it is first called: so kernels are loaded by those alone who use them.

    >>> later("math")().sqrt(9.0)
    3.0
    """
    return cache(partial(importlib.import_module, module))


class Later(NamedTuple):
    """A class attribute that is an object of a class whose module is imported when the attribute is first used."""

    module: Callable[[], Any]
    name: str

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        """A new object of the class."""
        return getattr(self.module(), self.name)()
