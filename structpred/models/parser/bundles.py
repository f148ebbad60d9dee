"""What the file of a parser holds besides the parser's own weights: the header, its templates, and its relations."""

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from structpred.data.arc_templates import ArcTemplate, compile_templates
from structpred.errors import ParameterError
from structpred.io.templates.arc_featurizer import COLUMNS, ArcFeaturizer
from structpred.models.bundles import COMMON, common, pack_run
from structpred.models.chain.inputs import NumericInput
from structpred.models.chain.labeler import ChainLabeler
from structpred.models.groups import keep_groups
from structpred.models.parser.relations import RelationFeatures
from structpred.storage.bundles import Bundle
from structpred.storage.schema import Field, Flag, ListOf, Number, OneOf, Record, Spec, Text, Whole, maybe

#: the settings as they were, None for what was decided by the data
_GIVEN = Record({
    "projective": Field(maybe(Flag()), "projective", bool),
    "templates": Field(maybe(ListOf(Text(), 1)), "templates", lambda templates: list(map(str, templates))),
    "attributes": Field(maybe(ListOf(OneOf(COLUMNS), 1)), "attributes", list, default=None, sparse=True),
})  # fmt: skip
_OWN: dict[str, Spec] = {
    **COMMON,
    "featurizer": Field(ArcFeaturizer.HEADER, "featurizer_", ArcFeaturizer.to_bundle, ArcFeaturizer.from_bundle),
    "templates": ListOf(Text(), 1),
    "seeds": Field(ListOf(Whole(0, 2**20)), default=[]),
    "given": _GIVEN,
    "bits": Field(ListOf(Whole(1, 28), 1), "bits_"),
    "single_root": Field(Flag(), "single_root", bool),
    "projective": Field(Flag(), "projective_"),
    "left_out": Field(Whole(), "left_out_"),
    "kept": Field(maybe(Number(0.0, 1.0)), "kept_"),
}
_NOTHING = OneOf((None,))
_PRUNER = Record({**_OWN, "pruner": _NOTHING, "relations": _NOTHING})
_RELATIONS = Record({
    **COMMON, "features": RelationFeatures.HEADER, "classes": Field(ListOf(Text(), 1), "classes_", np.ndarray.tolist),
})  # fmt: skip
PARSER = Record({**_OWN, "pruner": maybe(_PRUNER), "relations": maybe(_RELATIONS)})


def relations_to_bundle(labeler: ChainLabeler, features: RelationFeatures) -> Bundle:
    """The second stage."""
    header, slots = features.to_bundle()
    return Bundle(_RELATIONS.written(labeler, **common(labeler), features=header), pack_run(labeler) | slots)


def relations_from_bundle(part: Bundle, featurizer: ArcFeaturizer) -> tuple[ChainLabeler, RelationFeatures]:
    """The inverse of relations_to_bundle, for the word attributes of a parser."""
    features = RelationFeatures.from_bundle(part.header["features"], part.arrays)
    labeler = ChainLabeler._with_input(NumericInput(max(len(features.slots), 1)), part.header, part.arrays)
    usable_templates([str(template) for template in features.templates], featurizer)
    return labeler, features


def usable_templates(texts: list[str], featurizer: ArcFeaturizer, seeds: Sequence[int] = ()) -> list[ArcTemplate]:
    """The templates of a file, with the seeds of those that others were dropped beside; ValueError for one that its own word
    attributes do not serve.
    """
    found = [ArcTemplate.parse(text) for text in texts]
    if seeds:
        found = [template._replace(seed=seed) for template, seed in zip(found, seeds, strict=True)]
    if len(featurizer.usable(found)) != len(found):
        raise ValueError(f"the templates look at more than the word attributes {featurizer.present}")
    return found


def template_header(parser: Any) -> dict[str, Any]:
    """What a header holds of templates; of their seeds nothing, where they are those of their places.

    given: the settings of which it else holds only what they came to.
    """
    seeds = [template.seed for template in parser.templates_ if template.seed is not None]
    shown = {"templates": [str(template) for template in parser.templates_], "given": _GIVEN.written(parser)}
    return shown | ({"seeds": seeds} if seeds else {})


def drop_templates(parser: Any, names: Collection[str]) -> None:
    """Take the templates of these groups, whose weights are zero, out of a parser; ParameterError where none would be left.

    The tags between the ends, siblings and grandparents are none: their weights stay, as zeros, as do those of pruning and of
    relations.
    """
    left = [k for k, template in enumerate(parser.templates_) if str(template) not in names]
    if not left:
        raise ParameterError("no template would be left; keep at least one")
    order = compile_templates(parser.templates_, parser.featurizer_.present).order
    place = dict(zip(order.tolist(), range(len(order)), strict=True))
    n_others = len(parser.groups_) - 1 - len(parser.templates_)
    kept = np.array([*(str(template) not in names for template in parser.templates_), *[True] * n_others])
    parser.coef_ = parser.coef_[np.repeat(kept, np.diff(parser.groups_))]
    seeds = [place[k] if parser.templates_[k].seed is None else parser.templates_[k].seed for k in left]
    parser.templates_ = [parser.templates_[k]._replace(seed=seed) for k, seed in zip(left, seeds, strict=True)]
    parser.bits_ = [parser.bits_[k] for k in left]
    parser.templates = [template._replace(seed=None) for template in parser.templates_]
    keep_groups(parser, kept)
