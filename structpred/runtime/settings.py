"""Numbers that users set, looked at once: a ParameterError names the setting and what came."""

from typing import TypeGuard

import numpy as np

from structpred.errors import ParameterError


def checked_whole(number: int, name: str, least: int = 1) -> int:
    """A whole number >= least, else ParameterError.

    >>> checked_whole(3, "k")
    3
    """
    if not is_whole(number) or number < least:
        raise ParameterError(f"{name} must be a whole number >= {least}, got {number!r}")
    return int(number)


def checked_positive(number: float, name: str) -> float:
    """A finite number > 0, else ParameterError.

    >>> checked_positive(2, "the radius")
    2.0
    """
    if not (is_number(number) and number > 0.0):
        raise ParameterError(f"{name} must be a positive number, got {number!r}")
    return float(number)


def checked_nonnegative(number: float, name: str) -> float:
    """A finite number >= 0, else ParameterError.

    >>> checked_nonnegative(0, "the step")
    0.0
    """
    if not (is_number(number) and number >= 0.0):
        raise ParameterError(f"{name} must be finite and >= 0, got {number!r}")
    return float(number)


def is_whole(value: object) -> TypeGuard[int]:
    """Whether it is a whole number, Python's or NumPy's; True and False are none."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def is_number(value: object) -> TypeGuard[float]:
    """Whether it is a finite number, Python's or NumPy's; True and False are none."""
    found = np.asarray(value)
    return found.ndim == 0 and found.dtype.kind in "iuf" and bool(np.isfinite(found))
