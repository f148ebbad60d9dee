"""Code of a user's own: which has a part in an object, and what it raised, in a line that names the place in it."""

import os
import re
import sys
import traceback
from functools import partial
from itertools import islice
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

import numpy as np

from structpred.core.oracle import Labels, Oracle, Shape
from structpred.core.types import Integers
from structpred.errors import ConvergenceError, DataError, InfeasibleError, OracleError, StructpredError

#: packages whose classes and functions are tools, not components that somebody wrote for a problem; classes that `type` or
#: dataclasses made say that they are of the two modules that are left out
_TOOLS = {*sys.stdlib_module_names, "structpred", "numpy", "scipy", "pandas", "sklearn", "torch", "cvxpy", "ortools"}
_LIBRARIES = frozenset(_TOOLS - {"abc", "types"})
#: how deep settings are searched, and how many members of a list are: compositions are small, data are long
_DEPTH, _MEMBERS = 4, 100
_INTEGER = np.dtype(np.int64)
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
    message = " ".join(f"{type(error).__name__}: {error}".split())
    places = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__)][1:]
    called = [place for place in places if not place[0].startswith(_OURS)] or places
    if not called:
        return message  # the call itself failed: its arguments do not fit, say
    folder = os.path.dirname(called[0][0])
    file, line = next(place for place in reversed(called) if place[0].startswith(folder))
    return f"{message} ({file}, line {line})"


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


def blamed(error: Exception, i: int, thing: object, method: str) -> Exception:
    """What to raise where a method of a user's object raised `error` at sample i: it says where; errors of ours stay."""
    if isinstance(error, StructpredError | MemoryError):
        return error
    return OracleError(f"sample {i}: {type(thing).__name__}.{method} raised {raised(error)}")


def asked(i: int, thing: object, method: str, *args: Any) -> Any:
    """What a method of a user's object gives for sample i; what it raises names the sample."""
    try:
        return getattr(thing, method)(*args)
    except Exception as error:
        raise of_sample(error, i, thing, method) from error


def of_sample(error: Exception, i: int, thing: object, method: str) -> Exception:
    """As `blamed`; errors of ours name sample i, too, whatever number it has in the batch that was asked."""
    if isinstance(error, OracleError | InfeasibleError | DataError | ConvergenceError):
        text = re.sub(r"^sample \d+: ", "", str(error))
        return type(error)(f"sample {i}: {text}")
    return blamed(error, i, thing, method)


def renumbered(error: Exception, first: int) -> Exception:
    """The same error where sample 0 has the number `first`; one that names no sample is of sample 0."""
    found = re.match(r"sample (\d+): ", str(error))
    k, text = (int(found[1]), str(error)[found.end() :]) if found else (0, str(error))
    return type(error)(f"sample {first + k}: {text}")


def asked_parts(oracle: Oracle, i: int, labels: Labels, shape: Shape) -> Integers:
    """The parts of an output that the oracle itself returned, whatever their numbers are: faults are the oracle's."""
    try:
        parts = oracle.parts(labels, shape)
        if type(parts) is np.ndarray and parts.dtype == _INTEGER and parts.ndim == 1 and parts.flags.c_contiguous:
            return parts
        found = np.asarray(parts)
        if found.ndim != 1 or (found.dtype.kind not in "iu" and found.size):
            raise ValueError(f"parts() must give a flat array of whole numbers, got {found.dtype} of shape {found.shape}")
        return np.ascontiguousarray(found, dtype=np.int64)
    except (IndexError, ValueError, TypeError) as error:
        raise OracleError(
            f"sample {i}: {type(oracle).__name__}.argmax returned an output that its own parts() refuses: {error}; "
            "run check_oracle on it"
        ) from error
    except Exception as error:
        raise blamed(error, i, oracle, "parts") from error
