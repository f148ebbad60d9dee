"""States as named arrays, and back: what comes from a file is compared with a new state before any step sees it.

A state is a NamedTuple of arrays, nested ones and tuples of either allowed; a single number is an array of no dimension. An
array of a saved state must have the type and the shape that it has in a new state, and be finite; an annotation next to the
field says where it may be otherwise (`Values`, `FIXED`). What must hold between the arrays of one NamedTuple is in its method
`fault(dim)`, if it has one, which names the first thing that does not. One that keeps spare room in its arrays has a method
`without_room()`: the same state in arrays that have none, which is what is saved. A field that is no array belongs to the
problem: no file holds it.
"""

from dataclasses import dataclass
from typing import Any, get_args, get_type_hints

import numpy as np
import numpy.typing as npt

from structpred.errors import CheckpointError

Arrays = dict[str, npt.NDArray[Any]]
_LARGEST = float(np.finfo(np.float64).max)


@dataclass(frozen=True)
class Values:
    """What a saved array may hold. low, high: the range. nan: NaN, too. grows: as long as it needs, in every dimension.

    fixed: the data decide what it holds, so that it must equal that of a new state.
    """

    low: float = -_LARGEST
    high: float = _LARGEST
    nan: bool = False
    grows: bool = False
    fixed: bool = False

    def fault(self, array: npt.NDArray[Any], new: npt.NDArray[Any]) -> str | None:
        """What is wrong with an array, compared with that of a new state; None where nothing is."""
        if array.dtype != new.dtype:
            return f"expected {new.dtype}, got {array.dtype}"
        if array.ndim != new.ndim or (not self.grows and array.shape != new.shape):
            return f"expected the shape {new.shape}, got {array.shape}"
        if not array.size:
            return None
        smallest, largest = (np.fmin, np.fmax) if self.nan else (np.minimum, np.maximum)
        low, high = smallest.reduce(array, axis=None).item(), largest.reduce(array, axis=None).item()
        if not ((self.low <= low and high <= self.high) or (self.nan and np.isnan(low))):
            return f"expected values from {self.low:.4g} to {self.high:.4g}, got {low} to {high}"
        return "it does not fit the data" if self.fixed and not np.array_equal(array, new) else None


FIXED = Values(fixed=True)
#: of a size or a place in arrays that grow: sums of two cannot overflow
COUNT = Values(0, 2**60)
_FINITE = Values()


def flatten(state: Any, prefix: str = "") -> Arrays:
    """A NamedTuple of arrays, nested ones included, as {"outer.inner": array}; item k of a tuple has the name k."""
    out: Arrays = {}
    if (without_room := getattr(state, "without_room", None)) is not None:
        state = without_room()
    for name, value in _items(state):
        if isinstance(value, tuple):
            out |= flatten(value, f"{prefix}{name}.")
        elif isinstance(value, np.ndarray):
            out[prefix + name] = value
    return out


def _items(state: Any) -> list[tuple[str, Any]]:
    if hasattr(state, "_asdict"):
        return list(state._asdict().items())
    return [(str(k), value) for k, value in enumerate(state)]


def rebuild(new: Any, arrays: Arrays, dim: int) -> Any:
    """The inverse of flatten. Arrays are copied, so that they can be changed.

    new: a new state of the same kind, for problems with `dim` weights. Raises CheckpointError, naming the array, where anything
    differs from what such a state can hold.
    """
    if extra := arrays.keys() - flatten(new).keys():
        raise CheckpointError(f"{min(extra)}: the state has no array of this name")
    return _rebuild(new, arrays, dim, "")


def _rebuild(new: Any, arrays: Arrays, dim: int, prefix: str) -> Any:
    values = []
    for name, value in _items(new):
        if isinstance(value, tuple):
            values.append(_rebuild(value, arrays, dim, f"{prefix}{name}."))
            continue
        if not isinstance(value, np.ndarray):
            values.append(value)
            continue
        if prefix + name not in arrays:
            raise CheckpointError(f"{prefix}{name}: the array is missing")
        # the rule is in the annotation of the field; finite values in the shape of a new state where there is none
        declared = get_args(get_type_hints(type(new), include_extras=True).get(name))
        rule = next((one for one in declared if isinstance(one, Values)), _FINITE)
        if fault := rule.fault(arrays[prefix + name], value):
            raise CheckpointError(f"{prefix}{name}: {fault}")
        values.append(np.array(arrays[prefix + name]))
    state = type(new)(*values) if hasattr(new, "_asdict") else tuple(values)
    if (check := getattr(state, "fault", None)) is not None and (fault := check(dim)):
        raise CheckpointError(f"{prefix}{fault}")
    return state
