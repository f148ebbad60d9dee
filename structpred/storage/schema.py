"""What a file must hold, declared field by field: a reader gets what was declared and checked, and nothing else.

Each declaration has `read(value, where)`, which returns the checked value or raises ValueError that names the place.
`Record.read` leaves out fields that were not declared, so no number that nobody has bounded
reaches an allocation or a kernel.
"""

import reprlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from structpred.errors import FileFormatError

#: the largest size of a weight or a constant feature: that of float32, so that scores in float64 stay finite
LARGEST = float(np.finfo(np.float32).max)
#: in place of a value: there is none to write, or to fall back on
UNSET: Any = object()


class Spec(Protocol):
    """The declaration of one value."""

    def read(self, value: Any, where: str) -> Any:
        """The value as the reader may use it; ValueError, naming `where`, for any other."""
        ...


@dataclass(frozen=True)
class Whole:
    """A whole number in low..high; not a bool."""

    low: int = 0
    high: int = 2**31 - 1

    def read(self, value: Any, where: str) -> int:
        """The number."""
        if type(value) is not int or not self.low <= value <= self.high:
            raise _unexpected(where, f"a whole number in {self.low}..{self.high}", value)
        return value


@dataclass(frozen=True)
class Number:
    """A number in low..high, whole or not; by default any that a float can hold."""

    low: float = -float(np.finfo(np.float64).max)
    high: float = float(np.finfo(np.float64).max)

    def read(self, value: Any, where: str) -> float:
        """The number."""
        if type(value) not in (int, float) or not self.low <= value <= self.high:
            raise _unexpected(where, f"a number in {self.low:g}..{self.high:g}", value)
        return value


@dataclass(frozen=True)
class Flag:
    """True or False."""

    def read(self, value: Any, where: str) -> bool:
        """The flag."""
        if type(value) is not bool:
            raise _unexpected(where, "true or false", value)
        return value


@dataclass(frozen=True)
class Text:
    """A string."""

    def read(self, value: Any, where: str) -> str:
        """The string."""
        if type(value) is not str:
            raise _unexpected(where, "a string", value)
        return value


@dataclass(frozen=True)
class Plain:
    """None, True, False, a string or a number: facts for people, and settings that only a second fit would use."""

    def read(self, value: Any, where: str) -> Any:
        """The value."""
        if not (value is None or type(value) in (str, bool)):
            return Number().read(value, where)
        return value


@dataclass(frozen=True)
class OneOf:
    """One of some values, None or a string each."""

    values: tuple[str | None, ...]

    def read(self, value: Any, where: str) -> Any:
        """The value."""
        if not (value is None or type(value) is str) or value not in self.values:
            raise _unexpected(where, f"one of {', '.join(map(repr, self.values))}", value)
        return value


@dataclass(frozen=True)
class AnyOf:
    """What one of several declarations accepts."""

    specs: tuple[Spec, ...]

    def read(self, value: Any, where: str) -> Any:
        """What the first that accepts it returns."""
        problems = []
        for spec in self.specs:
            try:
                return spec.read(value, where)
            except ValueError as error:
                problems.append(str(error))
        raise ValueError("; or ".join(problems))


def maybe(spec: Spec) -> AnyOf:
    """None, or what `spec` accepts."""
    return AnyOf((OneOf((None,)), spec))


@dataclass(frozen=True)
class ListOf:
    """A list of at least `least` entries, and at most `most` if that is given."""

    spec: Spec
    least: int = 0
    most: int | None = None

    def read(self, value: Any, where: str) -> list[Any]:
        """The checked entries."""
        if type(value) is not list or len(value) < self.least or (self.most is not None and len(value) > self.most):
            raise _unexpected(where, f"a list of {self.least} or more entries", value)
        return [self.spec.read(entry, f"{where}[{k}]") for k, entry in enumerate(value)]


@dataclass(frozen=True)
class TableOf:
    """A table: any names, with values of one kind."""

    spec: Spec

    def read(self, value: Any, where: str) -> dict[str, Any]:
        """The checked table."""
        if type(value) is not dict:
            raise _unexpected(where, "a table", value)
        return {name: self.spec.read(entry, f"{where}.{name}") for name, entry in value.items()}


@dataclass(frozen=True)
class Field:
    """A field of a Record with more to say than what it may be. default: what it is in files without it.

    of: the attribute that it is of the object that is written and read. write, back: from the attribute's value to that in the
    file, and back; None: as it is, and so is the value None. sparse: not written where it is None.
    """

    spec: Spec
    of: str = ""
    write: Callable[[Any], Any] | None = None
    back: Callable[[Any], Any] | None = None
    default: Any = UNSET
    sparse: bool = False

    def read(self, value: Any, where: str) -> Any:
        """The checked value."""
        return self.spec.read(value, where)


@dataclass(frozen=True)
class Record:
    """A table of named fields, each with its own declaration. Other fields of the file are left out."""

    fields: Mapping[str, Spec]

    def read(self, value: Any, where: str) -> dict[str, Any]:
        """The declared fields, checked."""
        if type(value) is not dict:
            raise _unexpected(where, "a table", value)
        found = {}
        for name, spec in self.fields.items():
            if name in value:
                found[name] = spec.read(value[name], f"{where}.{name}")
            elif isinstance(spec, Field) and spec.default is not UNSET:
                found[name] = spec.default
            else:
                raise ValueError(f"{where}.{name} is missing")
        return found

    def written(self, owner: Any, **computed: Any) -> dict[str, Any]:
        """The inverse of `read`, in the declared order: attributes that the owner has, and fields that are none, computed."""
        found = {}
        for name, spec in self.fields.items():
            if name in computed:
                found[name] = computed[name]
            elif isinstance(spec, Record):
                found[name] = spec.written(owner)
            elif isinstance(spec, Field):
                value = getattr(owner, spec.of, UNSET)
                if value is not UNSET and not (value is None and spec.sparse):
                    found[name] = value if value is None or spec.write is None else spec.write(value)
        return found

    def attributes(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The attributes of the owner that checked fields are; those of fields that are not among the values stay out."""
        found: dict[str, Any] = {}
        for name, spec in self.fields.items():
            if isinstance(spec, Record) and name in values:
                found |= spec.attributes(values[name])
            elif isinstance(spec, Field) and spec.of and name in values:
                value = values[name]
                found[spec.of] = value if value is None or spec.back is None else spec.back(value)
        return found


@dataclass(frozen=True)
class Raw:
    """Anything: a part that another declaration checks, as soon as it is known which one."""

    def read(self, value: Any, where: str) -> Any:
        """The value as it is."""
        return value


FLOATS = ("float32", "float64")


@dataclass(frozen=True)
class Array:
    """An array of one of some types. Floats must be finite and at most LARGEST in size.

    shape: a number, None (any) or the name of a size, for each dimension. below: whole numbers must lie in 0..below - 1; a number
    or the name of a size. ascending: they must ascend, none of them twice.
    """

    dtypes: tuple[str, ...]
    shape: tuple[int | str | None, ...]
    below: int | str | None = None
    ascending: bool = False

    def read(self, array: npt.NDArray[Any], where: str, sizes: Mapping[str, int] | None = None) -> npt.NDArray[Any]:
        """The array. sizes: what the names in the declaration stand for."""
        known = sizes or {}
        shape = tuple(known[n] if isinstance(n, str) else n for n in self.shape)
        same = len(shape) == array.ndim and all(n is None or n == m for n, m in zip(shape, array.shape, strict=True))
        if array.dtype.name not in self.dtypes or not same:
            expected = f"{' or '.join(self.dtypes)} of shape ({', '.join('any' if n is None else str(n) for n in shape)})"
            raise ValueError(f"{where}: expected {expected}, got {array.dtype} of shape {array.shape}")
        if array.dtype.kind == "f" and array.size and not max(abs(float(array.min())), abs(float(array.max()))) <= LARGEST:
            raise ValueError(f"{where}: expected finite numbers of at most {LARGEST:.3g}")
        below = known[self.below] if isinstance(self.below, str) else self.below
        if below is not None and array.size and not (array.min() >= 0 and array.max() < below):
            raise ValueError(f"{where}: expected whole numbers in 0..{below - 1}, got {array.min()}..{array.max()}")
        if self.ascending and (array[1:] <= array[:-1]).any():
            raise ValueError(f"{where}: expected ascending numbers, none of them twice")
        return array


def array_of(arrays: Mapping[str, npt.NDArray[Any]], name: str, spec: Array, **sizes: int) -> npt.NDArray[Any]:
    """The array of that name, checked; ValueError where it is missing or another one."""
    if name not in arrays:
        raise ValueError(f"the array {name!r} is missing")
    return spec.read(arrays[name], f"array {name!r}", sizes)


@contextmanager
def as_file_error(message: str, failure: type[FileFormatError] = FileFormatError) -> Iterator[None]:
    """Whatever fails inside, because parts of a file do not fit each other, becomes a `failure` with this message."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, MemoryError) as error:
        reason = f"{error} is missing" if isinstance(error, KeyError) else str(error) or type(error).__name__
        raise failure(f"{message}: {reason}") from error


def _unexpected(where: str, expected: str, value: Any) -> ValueError:
    return ValueError(f"{where}: expected {expected}, got {reprlib.repr(value)}")
