"""What the file of a parser holds besides the parser's own weights: the header, its templates, and its relations."""

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from structpred.data.arc_templates import ArcTemplate, compile_templates
from structpred.errors import ParameterError
from structpred.io.templates.arc_featurizer import ArcFeaturizer
from structpred.models.bundles import COMMON, common_header, pack_run
from structpred.models.chain.inputs import NumericInput
from structpred.models.chain.labeler import ChainLabeler
from structpred.models.groups import keep_groups
from structpred.models.parser.relations import RelationFeatures
from structpred.storage.schema import Flag, ListOf, Number, OneOf, Optional, Record, Spec, Text, Whole, maybe

Arrays = dict[str, npt.NDArray[Any]]

_OWN: dict[str, Spec] = {
    **COMMON,
    "featurizer": ArcFeaturizer.HEADER,
    "templates": ListOf(Text(), 1),
    "seeds": Optional(ListOf(Whole(0, 2**20)), []),
    "bits": ListOf(Whole(1, 28), 1),
    "single_root": Flag(),
    "projective": Flag(),
    # the settings as they were, None for what was decided by the data; older files do not say
    "given": Optional(maybe(Record({"projective": maybe(Flag()), "templates": maybe(ListOf(Text(), 1))}))),
    "left_out": Whole(),
    "kept": maybe(Number(0.0, 1.0)),
}
_NOTHING = OneOf((None,))
_PRUNER = Record({**_OWN, "pruner": _NOTHING, "relations": _NOTHING})
_RELATIONS = Record({**COMMON, "features": RelationFeatures.HEADER, "classes": ListOf(Text(), 1)})
PARSER = Record({**_OWN, "pruner": maybe(_PRUNER), "relations": maybe(_RELATIONS)})


def with_prefix(prefix: str, arrays: Arrays) -> Arrays:
    """The arrays of a part of the model, under names that begin with `prefix`; `under` takes them back."""
    return {f"{prefix}{name}": array for name, array in arrays.items()}


def relations_to_bundle(labeler: ChainLabeler, features: RelationFeatures) -> tuple[dict[str, Any], Arrays]:
    """The header and the arrays of the second stage."""
    header, slots = features.to_bundle()
    head = {**common_header(labeler), "features": header, "classes": labeler.classes_.tolist()}
    return head, pack_run(labeler) | slots


def relations_from_bundle(
    head: dict[str, Any], arrays: Arrays, featurizer: ArcFeaturizer
) -> tuple[ChainLabeler, RelationFeatures]:
    """The inverse of relations_to_bundle, for the word attributes of a parser."""
    features = RelationFeatures.from_bundle(head["features"], arrays)
    labeler = ChainLabeler._restored(head, arrays, NumericInput(max(len(features.slots), 1)))
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


def template_header(templates: Sequence[ArcTemplate]) -> dict[str, Any]:
    """What a header holds of templates; of their seeds nothing, where they are those of their places."""
    seeds = [template.seed for template in templates if template.seed is not None]
    return {"templates": [str(template) for template in templates], **({"seeds": seeds} if seeds else {})}


def given_header(projective: bool | None, templates: Sequence[ArcTemplate | str] | None) -> dict[str, Any]:
    """The settings of which a header else holds only what they came to."""
    listed = None if templates is None else [str(template) for template in templates]
    return {"given": {"projective": None if projective is None else bool(projective), "templates": listed}}


def given_settings(head: dict[str, Any], templates: Sequence[ArcTemplate]) -> tuple[bool | None, list[str] | None]:
    """projective and templates as they were set; for older files what they came to."""
    if (given := head["given"]) is None:
        return head["projective"], [str(template) for template in templates]
    return given["projective"], given["templates"]


def drop_templates(parser: Any, names: Collection[str]) -> None:
    """Take the templates of these groups, whose weights are zero, out of a parser; ParameterError where none would be left.

    The tags between the ends are no template: their weights stay, as zeros. Those of pruning and of relations stay, too.
    """
    left = [k for k, template in enumerate(parser.templates_) if str(template) not in names]
    if not left:
        raise ParameterError("no template would be left; keep at least one")
    order = compile_templates(parser.templates_, parser.featurizer_.present).order
    place = dict(zip(order.tolist(), range(len(order)), strict=True))
    kept = np.array([*(str(template) not in names for template in parser.templates_), True])
    parser.coef_ = parser.coef_[np.repeat(kept, np.diff(parser.groups_))]
    seeds = [place[k] if parser.templates_[k].seed is None else parser.templates_[k].seed for k in left]
    parser.templates_ = [parser.templates_[k]._replace(seed=seed) for k, seed in zip(left, seeds, strict=True)]
    parser.bits_ = [parser.bits_[k] for k in left]
    parser.templates = [template._replace(seed=None) for template in parser.templates_]
    keep_groups(parser, kept)
