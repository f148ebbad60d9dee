"""What a user may have meant by a name that is not known."""

import difflib
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from structpred.errors import ParameterError

Entry = TypeVar("Entry")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A closing part for a message about an unknown name: the nearest known names; nothing where none is near.

    >>> did_you_mean("trian", ["train", "predict"]), did_you_mean("x", ["train"])
    ("; did you mean 'train'?", '')
    >>> did_you_mean("conll200", ["conll2000", "columns", "conll2009"])
    "; did you mean 'conll2000' or 'conll2009'?"
    """
    close = difflib.get_close_matches(name[:100], list(known), n=4)
    nearness = [difflib.SequenceMatcher(None, one, name[:100]).ratio() for one in close]
    nearest = sorted(repr(one) for one, near in zip(close, nearness, strict=True) if near == nearness[0])
    return f"; did you mean {' or '.join(nearest)}?" if nearest else ""


def named(setting: str, name: Any, known: Mapping[str, Entry], others: str) -> Entry:
    """The entry of that name; ParameterError, with the nearest names, where there is none. others: what else the setting takes.

    >>> named("loss", "haming", {"hamming": 1}, " or an object")
    Traceback (most recent call last):
    ...
    structpred.errors.ParameterError: loss: expected one of hamming or an object, got 'haming'; did you mean 'hamming'?
    """
    if not isinstance(name, str) or name not in known:
        hint = did_you_mean(str(name), known)
        raise ParameterError(f"{setting}: expected one of {', '.join(known)}{others}, got {name!r}{hint}")
    return known[name]
