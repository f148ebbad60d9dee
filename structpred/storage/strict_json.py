"""JSON for files that may come from anyone: measured before it is parsed, and nothing ambiguous is let through."""

import json
import math
import re
from typing import Any

import numpy as np

MAX_DEPTH = 32
MAX_TOKENS = 500_000  # brackets, commas and colons; at about 100 bytes each, parsing stays under 50 MB
_MAX_INT_BITS = 2048
_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_STRINGS = re.compile(_STRING, re.DOTALL)
_LIST = rb"\[(?:%(s)s(?:,%(s)s)*+)?\]" % {b"s": _STRING}
_LISTS = re.compile(rb"\{(?:%(s)s:%(l)s(?:,%(s)s:%(l)s)*+)?\}" % {b"s": _STRING, b"l": _LIST}, re.DOTALL)
# By how much each byte outside strings changes the depth; a table, because NumPy's set functions import modules when first used.
_NO_TOKEN = 2
_STEPS = np.full(256, _NO_TOKEN, dtype=np.int8)
for _bytes, _step in ((b"[{", 1), (b",:", 0), (b"]}", -1)):
    _STEPS[list(_bytes)] = _step
# Two halves of a surrogate pair written as separate characters would come back as one.
_SPLIT_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")


def dump(value: Any, what: str) -> bytes:
    """Return `value` as compact ASCII JSON that `load` reads back equal (tuples come back as lists).

    Allowed are dicts with string keys, lists, tuples, strings, booleans, integers, finite floats and None, nested at most
    32 deep. Raises ValueError that names the place of anything else.

    >>> dump({"a": [1, None]}, "header")
    b'{"a":[1,null]}'
    """
    _check(value, what, 0)
    data = json.dumps(value, separators=(",", ":"), allow_nan=False).encode("ascii")
    _measure(data)
    return data


def load(data: bytes) -> Any:
    """Parse JSON after measuring it: depth at most 32, at most 500,000 tokens, no key twice, finite numbers only.

    Raises ValueError.

    >>> load(b'{"a": 1, "a": 2}')
    Traceback (most recent call last):
    ...
    ValueError: the key 'a' occurs twice in one object
    """
    _measure(data)
    return json.loads(
        data.decode("ascii"), object_pairs_hook=_no_duplicates, parse_constant=_refuse_constant, parse_float=_finite
    )


def dump_lists(lists: dict[str, list[str]]) -> bytes:
    """Return lists of strings as compact ASCII JSON; raises ValueError for anything but strings."""
    for name, strings in lists.items():
        if not isinstance(name, str) or not all(type(s) is str for s in strings):
            raise ValueError(f"texts {name!r}: must be a list of plain strings under a string name")
        if _SPLIT_PAIR.search("\n".join(strings)) or _SPLIT_PAIR.search(name):
            raise ValueError(f"texts {name!r}: a string holds a surrogate pair as two characters, which JSON cannot keep")
    return json.dumps({name: list(strings) for name, strings in lists.items()}, separators=(",", ":")).encode("ascii")


def load_lists(data: bytes, memory: int) -> dict[str, list[str]]:
    """Parse what `dump_lists` wrote, in exactly that shape, if the strings will fit in `memory` bytes; raises ValueError."""
    # Each string has an object of about 64 bytes and two list slots (lists grow ahead of need); \u escapes only shrink.
    needed = 2 * len(data) + 80 * (data.count(b'"') // 2)
    if needed > memory:
        raise ValueError(f"its names would need about {needed >> 20} MB of memory, the limit leaves {max(memory, 0) >> 20} MB")
    if not _LISTS.fullmatch(data):
        raise ValueError("it is not a table of lists of strings")
    lists = json.loads(data.decode("ascii"), object_pairs_hook=_no_duplicates)
    return {str(name): strings for name, strings in lists.items()}


def _check(value: Any, where: str, depth: int) -> None:
    """Raise ValueError for whatever JSON would change silently or refuse with a text that names no place."""
    if depth > MAX_DEPTH - 4:  # the envelope around a header takes some levels
        raise ValueError(f"{where}: nested deeper than {MAX_DEPTH - 4}")
    if type(value) is dict:
        for key, item in value.items():
            if type(key) is not str or _SPLIT_PAIR.search(key):
                raise ValueError(f"{where}: the key {key!r} is not a plain string")
            _check(item, f"{where}[{key!r}]", depth + 1)
    elif type(value) in (list, tuple):
        for i, item in enumerate(value):
            _check(item, f"{where}[{i}]", depth + 1)
    elif type(value) is float:
        if not math.isfinite(value):
            raise ValueError(f"{where}: {value} is not a finite number; store None where a figure is missing")
    elif type(value) is int:
        if value.bit_length() > _MAX_INT_BITS:
            raise ValueError(f"{where}: an integer of {value.bit_length()} bits; at most {_MAX_INT_BITS} are stored")
    elif type(value) is str:
        if _SPLIT_PAIR.search(value):
            raise ValueError(f"{where}: a surrogate pair as two characters, which JSON cannot keep")
    elif value is not None and type(value) is not bool:
        raise ValueError(f"{where}: a {type(value).__name__} cannot be stored; convert it to plain Python numbers and strings")


def _measure(data: bytes) -> None:
    """Refuse JSON that is nested too deep or has too many parts, without building any of it."""
    steps = _STEPS[np.frombuffer(_STRINGS.sub(b"", data), dtype=np.uint8)]
    steps = steps[steps != _NO_TOKEN]
    if len(steps) > MAX_TOKENS:
        raise ValueError(f"it has {len(steps)} parts, at most {MAX_TOKENS} are read")
    depth = int(np.cumsum(steps, dtype=np.int64).max(initial=0))
    if depth > MAX_DEPTH:
        raise ValueError(f"it is nested {depth} deep, at most {MAX_DEPTH} are read")


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"the key {next(k for k in keys if keys.count(k) > 1)!r} occurs twice in one object")
    return result


def _refuse_constant(text: str) -> Any:
    raise ValueError(f"{text} is not a JSON number")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"the number {text} is too large")
    return value
