"""What a dependency parser has learnt: how its weights are spread over templates, and what its relations look like."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from structpred.data.arc_templates import TAGS_BETWEEN
from structpred.models.chain.inspection import inspect_weights, transition_lines
from structpred.models.inspections import Shown, WeightGroup, group_lines, weight_group
from structpred.text.tables import cut


@dataclass(frozen=True)
class TemplateWeights(WeightGroup):
    """The block of one template. share: its part of the squared norm of all arc weights, in [0, 1]."""

    share: float


@dataclass(frozen=True)
class RelationWeights:
    """What is learnt of one relation. n_nonzero, norm: of its weights of features; start, stop: for the first and last word."""

    relation: str
    n_nonzero: int
    norm: float
    start: float
    stop: float


@dataclass(frozen=True)
class ParserInspection(Shown):
    """The weights of a parser, made readable.

    templates: one entry per template, the largest norm first: which templates matter. relations: one entry per relation, by
    name. groups: the relations' weights by part. positive_transitions, negative_transitions: (relation of a word, that of the
    next, weight), the strongest first. The last four are empty for a parser without relations.
    """

    templates: list[TemplateWeights]
    relations: list[RelationWeights]
    groups: list[WeightGroup]
    positive_transitions: list[tuple[str, str, float]]
    negative_transitions: list[tuple[str, str, float]]

    def table(self, top: int = 20) -> str:
        """The norms of the `top` largest templates, then those of the relations, and the transitions."""
        lines = [f"{'templates of arcs, by norm':<44} {'weights':>9} {'not zero':>9} {'norm':>9} {'share':>7}"]
        for t in self.templates[:top]:
            lines.append(f"{cut(t.name, 44):<44} {t.n_weights:>9} {t.n_nonzero:>9} {t.norm:>9.4g} {100 * t.share:>5.1f} %")
        if rest := self.templates[top:]:
            sums = (sum(t.n_weights for t in rest), sum(t.n_nonzero for t in rest), sum(t.norm**2 for t in rest) ** 0.5)
            share = 100 * sum(t.share for t in rest)
            lines.append(f"{f'the {len(rest)} others':<44} {sums[0]:>9} {sums[1]:>9} {sums[2]:>9.4g} {share:>5.1f} %")
        return "\n".join([*lines, *(["", *self._of_relations()] if self.relations else [])])

    def _of_relations(self) -> list[str]:
        lines = group_lines("weights of relations", self.groups)
        for r in self.relations:
            lines.append(f"{cut('  ' + r.relation, 32):<32} {'':>10} {r.n_nonzero:>10} {r.norm:>10.4g}")
        transitions = transition_lines(self.positive_transitions, self.negative_transitions)
        return [*lines, "", "relations of neighbouring words", *transitions]


def inspect_parser(model: Any, top: int = 20) -> ParserInspection:
    """How large the weights of each template and of each relation are, and the `top` strongest transitions of either sign.

    Features are hashed: a weight belongs to a template, but the words it stands for are not kept. Raises ParameterError for
    top < 1.

    >>> from structpred.models import DependencyParser
    >>> parser = DependencyParser(templates=["h.upos m.upos | direction", "m.upos | distance"], labelled=False)
    >>> _ = parser.fit([[{"form": "cats", "upos": "NOUN"}, {"form": "sleep", "upos": "VERB"}]], [[2, 0]])
    >>> sorted(t.name for t in inspect_parser(parser).templates)
    ['h.tag m.tag | each tag between', 'h.upos m.upos | direction', 'm.upos | distance']
    """
    model._check_fitted()
    ends = np.cumsum([1 << b for b in model.bits_]).tolist()
    names = [*map(str, model.templates_), TAGS_BETWEEN]
    blocks = [weight_group(name, part) for name, part in zip(names, np.split(model.coef_, ends), strict=True)]
    whole = sum(block.norm**2 for block in blocks) or 1.0
    templates = [TemplateWeights(b.name, b.n_weights, b.n_nonzero, b.norm, b.norm**2 / whole) for b in blocks]
    templates.sort(key=lambda block: -block.norm)
    if model.relations_ is None:
        return ParserInspection(templates, [], [], [], [])
    labeler = model.relations_
    found = inspect_weights(labeler, top)
    norms = np.linalg.norm(labeler.emissions_.astype(np.float64), axis=0).tolist()
    relations = [
        RelationWeights(str(entry.label), entry.n_nonzero, norm, entry.start, entry.stop)
        for entry, norm in zip(found.labels, norms, strict=True)
    ]
    return ParserInspection(templates, relations, found.groups, found.positive_transitions, found.negative_transitions)
