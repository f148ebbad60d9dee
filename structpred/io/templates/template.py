"""Feature templates, and the derived columns that they may look at.

A transform is a function of a column's string, worked out once for each distinct string, never for each token. It gives the
derived string, or None where the feature does not exist (a word shorter than the suffix).
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

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


class Atom(NamedTuple):
    """One part of a template: a column (counted from 0) of the token at an offset, perhaps through a transform."""

    column: int
    offset: int
    transform: str = ""


@dataclass(frozen=True)
class Template:
    """One kind of feature: the values of its atoms, joined to one string.

    name: leads the feature's string, ``name=value|value``. atoms: of columns and offsets; a plain tuple
    ``(column, offset)`` will do. Without atoms the feature is the name alone, at every token. at: "any" token of the
    sentence, or only the "first" or the "last". pad: where an offset lies outside the sentence, False leaves the
    feature out, True puts ``_B-1``, ``_B+1`` ... there (as CRF++ does). literals: the strings before, between and after
    the atoms, where they are not those that the name gives.

    Raises ParameterError for an unknown transform, a negative column, or literals that do not fit the atoms.

    >>> Template("w[-1]|w[0]", ((0, -1), (0, 0))).render(["of", "the"])
    'w[-1]|w[0]=of|the'
    """

    name: str
    atoms: tuple[Atom, ...]
    at: str = "any"
    pad: bool = False
    literals: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "atoms", tuple(_atom(self.name, atom) for atom in self.atoms))
        if not isinstance(self.name, str) or not isinstance(self.pad, bool):
            raise ParameterError(f"expected a name that is a string and pad True or False, got {self.name!r}, {self.pad!r}")
        if self.at not in ("any", "first", "last"):
            raise ParameterError(f"template {self.name!r}: at must be any, first or last, got {self.at!r}")
        if self.literals is not None:
            object.__setattr__(self, "literals", tuple(self.literals))
            expected = len(self.atoms) + 1
            if len(self.literals) != expected or not all(isinstance(piece, str) for piece in self.literals):
                raise ParameterError(f"template {self.name!r}: its atoms need {expected} literal strings, got {self.literals!r}")

    @property
    def pieces(self) -> tuple[str, ...]:
        """The strings before, between and after the atoms."""
        if self.literals is not None:
            return self.literals
        if not self.atoms:
            return (self.name,)
        return (f"{self.name}=", *("|" for _ in self.atoms[1:]), "")

    def render(self, values: Sequence[str]) -> str:
        """The feature's string, given the value of each atom."""
        first, *rest = self.pieces
        return first + "".join(value + piece for value, piece in zip(values, rest, strict=True))

    def to_dict(self) -> dict[str, Any]:
        """The template as plain data for JSON; `from_dict` takes it back."""
        atoms = [list(atom) for atom in self.atoms]
        literals = None if self.literals is None else list(self.literals)
        return {"name": self.name, "atoms": atoms, "at": self.at, "pad": self.pad, "literals": literals}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "Template":
        """A template from what `to_dict` gave."""
        literals = None if data["literals"] is None else tuple(data["literals"])
        return cls(data["name"], tuple(Atom(*atom) for atom in data["atoms"]), data["at"], data["pad"], literals)


def _atom(name: str, atom: Sequence[Any]) -> Atom:
    try:
        made = Atom(*atom)
    except TypeError:
        raise ParameterError(f"template {name!r}: expected atoms (column, offset[, transform]), got {atom!r}") from None
    if type(made.column) is not int or type(made.offset) is not int or made.column < 0 or abs(made.offset) > 9999:
        raise ParameterError(f"template {name!r}: columns count from 0 and offsets are whole numbers, got {atom!r}")
    transform(made.transform)
    return made
