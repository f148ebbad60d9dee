"""Derived columns: functions of a column's string, worked out once for each distinct string, never for each token.

A function gives the derived string, or None where the feature does not exist (a word shorter than the suffix).
"""

import re
from collections.abc import Callable

from structpred.errors import ParameterError

Transform = Callable[[str], str | None]

_RUNS = re.compile(r"(.)\1+")
_AFFIX = re.compile(r"(prefix|suffix)([1-9][0-9]?)")


def shape(word: str) -> str:
    """Each character by its class: X upper case, x lower case, 0 digit, others stand for themselves.

    >>> shape("McDonald-7")
    'XxXxxxxx-0'
    """
    return "".join("X" if c.isupper() else "x" if c.isalpha() else "0" if c.isdigit() else c for c in word)


def short_shape(word: str) -> str:
    """The shape with runs of one class cut to one character.

    >>> short_shape("McDonald-1998")
    'XxXx-0'
    """
    return _RUNS.sub(r"\1", shape(word))


def _when(test: Callable[[str], bool]) -> Transform:
    return lambda word: "yes" if test(word) else None


_NAMED: dict[str, Transform] = {
    "": lambda word: word,
    "lower": str.lower,
    "shape": shape,
    "short_shape": short_shape,
    "is_digit": _when(str.isdigit),
    "has_digit": _when(lambda word: any(c.isdigit() for c in word)),
    "is_title": _when(lambda word: word[:1].isupper() and not word[1:].isupper()),
    "is_upper": _when(str.isupper),
    "has_hyphen": _when(lambda word: "-" in word),
}


def transform(name: str) -> Transform:
    """The function of a name: lower, shape, short_shape, is_digit, has_digit, is_title, is_upper, has_hyphen, prefixK, suffixK.

    The empty name is the column itself. Raises ParameterError for a name that is not known.

    >>> transform("suffix3")("walking"), transform("suffix3")("a"), transform("has_digit")("x9")
    ('ing', None, 'yes')
    """
    if isinstance(name, str) and name in _NAMED:
        return _NAMED[name]
    affix = _AFFIX.fullmatch(name) if isinstance(name, str) else None
    if affix is None:
        known = ", ".join(sorted(filter(None, _NAMED)))
        raise ParameterError(f"expected a transform ({known}, prefixK or suffixK with K from 1 to 99), got {name!r}")
    size = int(affix[2])
    if affix[1] == "prefix":
        return lambda word: word[:size] if len(word) >= size else None
    return lambda word: word[-size:] if len(word) >= size else None
