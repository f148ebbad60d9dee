"""Sets of arc templates: the default one, a small one for pruning, one for relations, and the family of 507 conjunctions."""

from structpred.data.arc_templates import ArcTemplate
from structpred.errors import DataError, ParameterError
from structpred.io.templates.arc_featurizer import ATTRIBUTES
from structpred.io.templates.templates import template_lines
from structpred.io.text import source_name

_DEFAULT = """
h.form | direction distance
h.form h.upos | direction distance
h.upos | direction distance
h.xpos | distance
h.lemma | distance
m.form | direction distance
m.form m.upos | direction distance
m.upos | direction distance
m.xpos | distance
m.lemma | distance
h.form h.upos m.form m.upos | direction
h.upos m.form m.upos | direction distance
h.form m.form m.upos | direction
h.form h.upos m.upos | direction distance
h.form h.upos m.form | direction
h.lemma m.lemma | direction
h.lemma m.upos | distance
h.upos m.lemma | distance
h.xpos m.xpos | direction distance
h.upos m.upos | direction distance
h.xpos m.lemma | distance
h.lemma m.xpos | distance
h.upos h.upos+1 m.upos-1 m.upos | direction distance
h.upos-1 h.upos m.upos-1 m.upos | direction distance
h.upos h.upos+1 m.upos m.upos+1 | direction distance
h.upos-1 h.upos m.upos m.upos+1 | direction distance
h.upos h.upos+1 m.upos | distance
h.upos-1 h.upos m.upos | distance
h.upos m.upos-1 m.upos | distance
h.upos m.upos m.upos+1 | distance
h.xpos h.xpos+1 m.xpos-1 m.xpos | direction
h.xpos-1 h.xpos m.xpos m.xpos+1 | direction
h.xpos m.xpos m.xpos+1 | distance
h.xpos m.xpos-1 m.xpos | distance
h.upos m.upos | verbs punctuation between
h.xpos m.xpos | between
h.upos h.feats m.upos m.feats | direction
h.upos m.feats m.upos | distance
h.feats m.upos | distance
"""

_PRUNING = """
h.upos m.upos | distance between
h.xpos m.xpos | distance
h.upos m.lemma | direction
h.lemma m.upos | direction
h.upos h.upos+1 m.upos-1 m.upos | direction
h.upos-1 h.upos m.upos m.upos+1 | direction
"""

_RELATIONS = """
m.form |
m.lemma |
m.upos |
m.xpos |
m.feats |
m.suffix |
h.form |
h.lemma |
h.upos |
h.xpos |
h.feats |
h.upos m.upos | direction distance between
h.xpos m.xpos | direction
h.lemma m.lemma | direction
h.lemma m.upos | direction
h.lemma m.xpos | direction
h.upos m.lemma | direction
h.xpos m.lemma | direction
h.upos m.form |  direction
h.lemma m.upos m.feats | direction
h.upos m.upos m.feats | direction
h.upos h.feats m.upos m.feats | direction
m.upos-1 m.upos | direction
m.upos m.upos+1 | direction
m.upos-1 m.upos m.upos+1 | direction
m.lemma-1 m.upos | direction
m.upos m.lemma+1 | direction
h.upos m.upos m.upos-1 | direction
h.upos m.upos m.upos+1 | direction
h.upos-1 h.upos m.upos | direction
h.upos h.upos+1 m.upos | direction
"""


def parse_templates(text: str) -> list[ArcTemplate]:
    """One template per line and property; several properties behind the bar make several templates."""
    found = []
    for line in filter(None, map(str.strip, text.splitlines())):
        atoms, _, arcs = line.partition("|")
        found += [ArcTemplate.parse(f"{atoms} | {arc}" if arc else atoms) for arc in arcs.split() or [""]]
    return found


def default_templates() -> list[ArcTemplate]:
    """About fifty templates: forms, lemmas, tags, neighbours, direction, distance, what is between, morphology."""
    return parse_templates(_DEFAULT)


def pruning_templates() -> list[ArcTemplate]:
    """The few templates of the cheap first model that prunes arcs."""
    return parse_templates(_PRUNING)


def relation_templates() -> list[ArcTemplate]:
    """Templates that predict the relation of an arc."""
    return parse_templates(_RELATIONS)


#: thirteen ways to look at one end of an arc: nothing, its word, lemma and tags, and those with the tags around it
_ENDS = (
    "", "form", "lemma", "upos", "form upos", "lemma upos", "upos upos-1", "upos upos+1", "upos-1 upos upos+1",
    "form upos-1", "form upos+1", "lemma upos-1", "lemma upos+1",
)  # fmt: skip


def conjunction_family() -> list[ArcTemplate]:
    """507 = 13 x 13 x 3 conjunctions of a view of the head, one of the modifier, and nothing, direction or distance.

    The family that Martins et al. (2011, section 4) describe, one kernel per template; the paper does not list its members.
    The one without any attribute or property stands for the bias of an arc and looks at the direction with the distance.

    >>> len(conjunction_family())
    507
    """
    family = []
    for head in _ENDS:
        for modifier in _ENDS:
            for arc in ("", "direction", "distance"):
                atoms = [f"h.{a}" for a in head.split()] + [f"m.{a}" for a in modifier.split()]
                text = " ".join(atoms) + (f" | {arc}" if arc else "")
                family.append(ArcTemplate.parse(text if text.strip() else "| between"))
    return family


def read_arc_templates(path: str) -> list[ArcTemplate]:
    """The templates of a file: one per line, comments behind #. Several properties behind the bar make several templates.

    Raises DataError, naming the line, for a malformed template, an attribute that words do not have, and a duplicate; and for
    a file without templates.
    """
    found: dict[ArcTemplate, str] = {}
    for where, line in template_lines(path):
        try:
            templates = parse_templates(line.partition("#")[0])
        except ParameterError as error:
            raise DataError(f"{where}: {error}") from None
        for template in templates:
            if unknown := sorted(template.attributes - set(ATTRIBUTES)):
                known = ", ".join(ATTRIBUTES)
                raise DataError(f"{where}: expected attributes of words ({known}), got {unknown[0]!r}")
            if template in found:
                first = found[template].rpartition(":")[2]
                raise DataError(f"{where}: duplicate template {str(template)!r}, first given on line {first}")
            found[template] = where
    if not found:
        raise DataError(f"{source_name(path)}: expected at least one template, such as h.upos m.upos | distance, got none")
    return list(found)
