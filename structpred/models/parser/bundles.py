"""What the file of a parser holds besides the parser's own weights: the header, its templates, and its relations."""

from typing import Any

import numpy.typing as npt

from structpred.data.arc_templates import ArcTemplate
from structpred.io.templates.arc_featurizer import ArcFeaturizer
from structpred.models.bundles import COMMON, common_header, pack_run
from structpred.models.chain.inputs import NumericInput
from structpred.models.chain.labeler import ChainLabeler
from structpred.models.parser.relations import RelationFeatures
from structpred.storage.schema import Flag, ListOf, Number, OneOf, Record, Spec, Text, Whole, maybe

Arrays = dict[str, npt.NDArray[Any]]

_OWN: dict[str, Spec] = {
    **COMMON,
    "featurizer": ArcFeaturizer.HEADER,
    "templates": ListOf(Text(), 1),
    "bits": ListOf(Whole(1, 28), 1),
    "single_root": Flag(),
    "projective": Flag(),
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


def usable_templates(texts: list[str], featurizer: ArcFeaturizer) -> list[ArcTemplate]:
    """The templates of a file; ValueError for one that its own word attributes do not serve."""
    found = [ArcTemplate.parse(text) for text in texts]
    if len(featurizer.usable(found)) != len(found):
        raise ValueError(f"the templates look at more than the word attributes {featurizer.present}")
    return found
