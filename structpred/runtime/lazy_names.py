"""Public names of a package that are loaded when they are used."""

import importlib
from collections.abc import Callable, Mapping
from typing import Any


def lazy_names(package: str, places: Mapping[str, str]) -> Callable[[str], Any]:
    """The `__getattr__` of a package whose names stand in these modules. It raises AttributeError for any other name.

    >>> lazy_names("package", {"sqrt": "math"})("sqrt")(9.0)
    3.0
    """

    def load(name: str) -> Any:
        if name in places:
            return getattr(importlib.import_module(places[name]), name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return load
