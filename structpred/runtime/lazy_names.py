"""Names and modules that are loaded when they are used."""

import ast
import importlib
import itertools
import pkgutil
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any, NamedTuple


def lazy_names(package: str, packages: Sequence[str] = ()) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The `__getattr__` and `__dir__` of a package: the names that its file imports for type checkers, and the packages in it.

    Any other name raises AttributeError.

    >>> load, names = lazy_names("structpred.bridges")
    >>> load("to_pandas").__module__, "to_pandas" in names()
    ('structpred.bridges.pandas', True)
    """

    def load(name: str) -> Any:
        if name in packages:
            return importlib.import_module(f"{package}.{name}")
        if (module := _imported_for_checkers(package).get(name)) is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(module), name)

    return load, lambda: sorted([*_imported_for_checkers(package), *packages])


@cache
def _imported_for_checkers(package: str) -> dict[str, str]:
    """The module of each name under `if TYPE_CHECKING:` in the file of a package; a star stands for all of another package."""
    tree, found = ast.parse(pkgutil.get_data(package, "__init__.py") or b""), dict[str, str]()
    blocks = [node.body for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    for one in itertools.chain.from_iterable(blocks):
        if isinstance(one, ast.ImportFrom) and one.module:
            for alias in one.names:
                found |= _imported_for_checkers(one.module) if alias.name == "*" else {alias.name: one.module}
    return found


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
