"""Feature templates of arcs, as data: attributes of head, modifier and their neighbours, joined with a property of the arc.

A template is written as  "h.lemma h.tag+1 m.tag | distance":  attributes of the head (h) or the modifier (m), or of a word some
places to the right (+) or left (-) of it; behind the bar, once or not at all, a property of the arc.
"""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from structpred.errors import ParameterError

#: Properties of an arc: its direction; direction and distance (in classes); the number of verbs, of punctuation, or of both and
#: of conjunctions between its ends (0, 1, more), with the direction.
ARC_PROPERTIES = ("", "direction", "distance", "verbs", "punctuation", "between")
#: How many, from the first, depend on positions of the ends alone: with attributes of one end they are scored a word, not an arc.
POSITIONAL = 3

#: what the features are called that look at each tag between the ends
TAGS_BETWEEN = "h.tag m.tag | each tag between"

_ATOM = re.compile(r"([hm])\.([A-Za-z_]\w*)([+-]\d)?")


class Atom(NamedTuple):
    """An attribute of the word `offset` places to the right of the head or of the modifier."""

    attribute: str
    offset: int


class ArcTemplate(NamedTuple):
    """head, modifier: the atoms of either end. arc: one of ARC_PROPERTIES. seed: which seeds its hashes have; None: those of its
    place among the others, which is where a model for which others were dropped no longer has it.

    >>> ArcTemplate.parse("h.lemma m.tag-1 | distance").modifier
    (Atom(attribute='tag', offset=-1),)
    """

    head: tuple[Atom, ...]
    modifier: tuple[Atom, ...]
    arc: str
    seed: int | None = None

    @staticmethod
    def parse(text: str) -> "ArcTemplate":
        """The template that `text` describes; ParameterError for an invalid template."""
        atoms, _, arc = text.partition("|")
        ends: dict[str, list[Atom]] = {"h": [], "m": []}
        for word in atoms.split():
            match = _ATOM.fullmatch(word)
            if match is None:
                raise ParameterError(f"arc template {text!r}: expected atoms like h.tag or m.lemma-1, got {word!r}")
            ends[match[1]].append(Atom(match[2], int(match[3] or 0)))
        if arc.strip() not in ARC_PROPERTIES:
            raise ParameterError(
                f"arc template {text!r}: expected one of {ARC_PROPERTIES[1:]} behind the bar, got {arc.strip()!r}"
            )
        if not (ends["h"] or ends["m"] or arc.strip()):
            raise ParameterError("an arc template needs an attribute or a property of the arc, got an empty one")
        return ArcTemplate(tuple(ends["h"]), tuple(ends["m"]), arc.strip())

    def __str__(self) -> str:
        """The text that `parse` reads."""
        words = [f"h.{a.attribute}{a.offset:+d}" if a.offset else f"h.{a.attribute}" for a in self.head]
        words += [f"m.{a.attribute}{a.offset:+d}" if a.offset else f"m.{a.attribute}" for a in self.modifier]
        return " ".join(words) + (f" | {self.arc}" if self.arc else "")

    @property
    def attributes(self) -> frozenset[str]:
        """The attributes that it uses."""
        return frozenset(atom.attribute for atom in (*self.head, *self.modifier))

    @property
    def unary(self) -> bool:
        """Whether its value depends on one end, and on where the other one is, alone."""
        return not (self.head and self.modifier) and self.arc in ARC_PROPERTIES[:POSITIONAL]


class CompiledTemplates(NamedTuple):
    """Templates as arrays, pair templates first, then those of the head alone, then those of the modifier alone.

    order: the place of each template. atoms: int64 (n, 2) attribute number and offset; those of end e of template t are
    atoms[ends[2t+e]:ends[2t+e+1]]. seeds: uint32 (T, 2). kinds: int64 (T,), the number of the arc's property. n_pair, n_head: how
    many pair templates and templates of the head alone there are.
    """

    order: npt.NDArray[np.int64]
    atoms: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    seeds: npt.NDArray[np.uint32]
    kinds: npt.NDArray[np.int64]
    n_pair: int
    n_head: int

    @property
    def program(self) -> tuple[npt.NDArray[Any], ...]:
        """What kernels hash words by: (looks, look_of, ends, seeds); atom a is looks[look_of[a]], of which none comes twice."""
        looks, look_of = np.unique(self.atoms, axis=0, return_inverse=True)
        return looks, look_of.reshape(-1), self.ends, self.seeds


def compile_templates(templates: Sequence[ArcTemplate], names: Sequence[str]) -> CompiledTemplates:
    """The arrays of templates over the attributes `names`; ParameterError for an attribute that there is not."""
    for template in templates:
        if missing := sorted(template.attributes - set(names)):
            raise ParameterError(f"arc template {str(template)!r} uses {missing[0]!r}, but the attributes are {tuple(names)}")
    kind = [0 if not t.unary else 1 if not t.modifier else 2 for t in templates]
    order = np.argsort(kind, kind="stable")
    atoms, ends = [], [0]
    for t in order.tolist():
        for side in (templates[t].head, templates[t].modifier):
            atoms += [(names.index(atom.attribute), atom.offset) for atom in side]
            ends.append(len(atoms))
    # fixed seeds, two per template, one for each end: a model file needs none of them
    rows = [templates[t].seed for t in order.tolist()]
    places = np.array([place if row is None else row for place, row in enumerate(rows)], dtype=np.int64)
    table = np.random.default_rng(0x5EED).integers(1, 1 << 32, size=(int(places.max(initial=0)) + 1, 2), dtype=np.uint32)
    return CompiledTemplates(
        order.astype(np.int64),
        np.array(atoms, dtype=np.int64).reshape(-1, 2),
        np.array(ends, dtype=np.int64),
        table[places],
        np.array([ARC_PROPERTIES.index(templates[t].arc) for t in order.tolist()], dtype=np.int64),
        kind.count(0),
        kind.count(1),
    )
