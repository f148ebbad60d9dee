"""Code of a user's own: which has a part in an object, and what it raised, in a line that names the place in it."""

import os
import sys
import traceback
from functools import partial
from itertools import islice
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

#: packages whose classes and functions are tools, not components that somebody wrote for a problem; classes that `type` or
#: dataclasses made say that they are of the two modules that are left out
_TOOLS = {*sys.stdlib_module_names, "structpred", "numpy", "scipy", "pandas", "sklearn", "torch", "cvxpy", "ortools"}
_LIBRARIES = frozenset(_TOOLS - {"abc", "types"})
#: how deep settings are searched, and how many members of a list are: compositions are small, data are long
_DEPTH, _MEMBERS = 4, 100
_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def raised(error: BaseException) -> str:
    """The exception in one line, with file and line of the code where it came up; for whoever called that code.

    The place is the deepest line in the folder of the code that was called, not one in a library that it uses.

    >>> try:
    ...     [].index(7)
    ... except ValueError as error:
    ...     raised(error)
    'ValueError: 7 is not in list'
    """
    told = " ".join(f"{type(error).__name__}: {error}".split())
    places = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__)][1:]
    called = [place for place in places if not place[0].startswith(_OURS)] or places
    if not called:
        return told  # the call itself failed: its arguments do not fit, say
    folder = os.path.dirname(called[0][0])
    file, line = next(place for place in reversed(called) if place[0].startswith(folder))
    return f"{told} ({file}, line {line})"


def own_code(thing: object, depth: int = _DEPTH) -> frozenset[Any]:
    """The classes and functions from outside the package that have a part in a component; empty where it is ours alone.

    That is its class, or where the class is ours, what its settings hold: a function, another component, a list of such.

    >>> own_code(own_code)
    frozenset()
    """
    if isinstance(thing, partial):
        thing = [thing.func, *thing.args, *thing.keywords.values()]
    if isinstance(thing, list | tuple):
        found = (own_code(one, depth - 1) for one in islice(thing, _MEMBERS) if depth)
        return frozenset().union(*found)
    if isinstance(thing, MethodType):
        return own_code(thing.__self__, depth) | own_code(thing.__func__, depth)
    code: Any = thing if isinstance(thing, type | FunctionType | BuiltinFunctionType) else type(thing)
    top = (code.__module__ or "builtins").partition(".")[0]
    if top not in _LIBRARIES:
        return frozenset({code})
    return own_code(list(vars(thing).values()), depth) if top == "structpred" and hasattr(thing, "__dict__") else frozenset()
