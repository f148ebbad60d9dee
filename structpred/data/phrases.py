"""Phrases in label sequences under the conlleval rule or a strict scheme.

A label is a tag, and a type after the first hyphen: "B-NP" is tag B, type NP; "O" has no type.

- "conlleval" is lenient, as the script of the CoNLL-2000 shared task: `structpred.data.tag_schemes` has the rules.
- "iob2" is strict: a phrase is B-X and the I-X that follow it; any other I is outside every phrase.
- "iobes" is strict: a phrase is S-X, or B-X, any number of I-X, and E-X; anything unfinished is outside every phrase.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from structpred.data.tag_schemes import FIRST, INNER, LAST, OTHER, OUT, SINGLE, TAGS, Flags, lenient
from structpred.errors import ParameterError

Integers = npt.NDArray[np.int64]
SCHEMES = ("conlleval", "iob2", "iobes")
#: the tags of phrases, and those that end one
MARKS, CLOSING = (FIRST, INNER, LAST, SINGLE), (LAST, SINGLE)


@dataclass(frozen=True)
class Spans:
    """The phrases of one labelling, in order: tokens ``starts[j]`` to ``ends[j] - 1``, of the type ``types[j]`` (a code)."""

    starts: Integers
    ends: Integers
    types: Integers


@dataclass(frozen=True)
class PhraseLabels:
    """Labels as tags of phrases. names: of types, sorted, the empty one first. tags, types: the codes of each label."""

    names: tuple[str, ...]
    tags: Integers
    types: Integers

    @classmethod
    def of(cls, labels: Iterable[Any]) -> Self:
        """Read labels by their numbers."""
        parts = [str(label).split("-", 1) for label in labels]
        kinds = [part[1] if len(part) > 1 else "" for part in parts]
        names = tuple(sorted({"", *kinds}))
        tags = np.array([TAGS.get(part[0], OTHER) for part in parts], dtype=np.int64)
        return cls(names, tags, np.array([names.index(kind) for kind in kinds], dtype=np.int64))

    @property
    def marked(self) -> bool:
        """Whether the labels mark phrases: one is B-X, I-X, E-X or S-X, or all are B, I, E, S and O."""
        marks, typed = np.isin(self.tags, MARKS), self.types > 0
        return bool((marks & typed).any() or (marks.any() and not typed.any() and (self.tags != OTHER).all()))

    def spans(self, codes: Integers, offsets: Integers, scheme: str) -> Spans:
        """The phrases of label sequences, flat; sequence i is codes[offsets[i] : offsets[i + 1]]."""
        if scheme not in _RULES:
            raise ParameterError(f"scheme: expected one of {', '.join(SCHEMES)}, got {scheme!r}")
        tag, kind = self.tags[codes], self.types[codes]
        before, kind_before = np.roll(tag, 1), np.roll(kind, 1)
        first = offsets[:-1]
        before[first], kind_before[first] = OUT, 0  # the empty type sorts first: code 0
        starts, breaks = _RULES[scheme](before, tag, kind_before == kind)
        breaks[first] = True
        begin = np.flatnonzero(starts)
        limits = np.append(np.flatnonzero(breaks), len(codes))
        end = limits[np.searchsorted(limits, begin, side="right")]
        if scheme == "iobes":
            whole = (tag[begin] == SINGLE) | (tag[end - 1] == LAST)
            begin, end = begin[whole], end[whole]
        return Spans(begin, end, kind[begin])

    def steps(self) -> tuple[Flags, Flags, Integers]:
        """For conlleval whether a phrase starts at, and whether an open one ends before, a label that follows another: (n + 1, n)
        each for n labels, row n for nothing before; and (., 2), labels that continue a phrase.
        """
        tags, types = np.append(self.tags, OUT)[:, None], np.append(self.types, 0)[:, None]
        starts, breaks = lenient(tags, self.tags, types == self.types)
        return starts, breaks, np.argwhere(~breaks[:-1] & (tags[:-1] != OUT))


def as_iobes(tag: str) -> str:
    """A tag of BILOU or BMES as conlleval knows it."""
    return {"L-": "E-", "U-": "S-", "M-": "I-"}.get(tag[:2], tag[:2]) + tag[2:]


# Each rule sees, for every token, the tag before it, its own tag, and whether the two types agree. It returns where a
# phrase starts, and where a phrase that is open before the token ends.


def _iob2(before: Integers, tag: Integers, same: Flags) -> tuple[Flags, Flags]:
    return tag == FIRST, (tag != INNER) | ~same


def _iobes(before: Integers, tag: Integers, same: Flags) -> tuple[Flags, Flags]:
    goes_on = np.isin(before, (FIRST, INNER)) & np.isin(tag, (INNER, LAST)) & same
    return np.isin(tag, (FIRST, SINGLE)), ~goes_on


_RULES = {"conlleval": lenient, "iob2": _iob2, "iobes": _iobes}
