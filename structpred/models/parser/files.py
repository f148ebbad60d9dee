"""Parser models as files: the parser's own weights, and its pruning model and its relations as parts with a prefix."""

import os
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from structpred.data.arc_templates import ArcTemplate
from structpred.io.templates.arc_featurizer import ArcFeaturizer
from structpred.models.chain.inputs import NumericInput
from structpred.models.chain.labeler import ChainLabeler
from structpred.models.chain.targets import LabelEncoder
from structpred.models.files import (
    COMMON,
    ModelKind,
    chain_size,
    common_header,
    pack_weights,
    plain_settings,
    restore_run,
    write_model,
)
from structpred.models.parser.relations import RelationFeatures
from structpred.storage.bundles import Bundle
from structpred.storage.schema import Flag, ListOf, Number, OneOf, Record, Spec, Text, Whole, maybe

if TYPE_CHECKING:
    from structpred.models.parser.parser import DependencyParser

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


def save_parser(model: "DependencyParser", path: str | os.PathLike[str]) -> None:
    """Write a fitted DependencyParser."""
    head, arrays = _parts(model)
    write_model(path, PARSER, Bundle(head, arrays))


def _parts(model: "DependencyParser") -> tuple[dict[str, Any], Arrays]:
    head: dict[str, Any] = {
        **common_header(model),
        "featurizer": model.featurizer_.to_bundle(),
        "templates": [str(template) for template in model.templates_],
        "bits": model.bits_,
        "single_root": bool(model.single_root),
        "projective": model.projective_,
        "left_out": model.left_out_,
        "kept": model.kept_,
        "pruner": None,
        "relations": None,
    }
    arrays: Arrays = pack_weights(model.coef_)
    if model.pruner_ is not None:
        head["pruner"], own = _parts(model.pruner_)
        arrays |= {f"pruner.{name}": array for name, array in own.items()}
    if model.relations_ is not None and model.relation_features_ is not None:
        labeler, (features, slots) = model.relations_, model.relation_features_.to_bundle()
        head["relations"] = {**common_header(labeler), "features": features, "classes": labeler.classes_.tolist()}
        head["relations"]["settings"]["n_jobs"] = head["settings"]["n_jobs"]  # prediction sets it; the file must not tell
        arrays |= {f"relations.{name}": array for name, array in (pack_weights(labeler.coef_) | slots).items()}
    return head, arrays


def _read(head: dict[str, Any], bundle: Bundle, oracle: Any) -> "DependencyParser":
    model = _read_own(head, _under(bundle.arrays, ""))
    if head["pruner"] is not None:
        if model.prune is None:
            raise ValueError("a model for pruning, but prune is None")
        model.pruner_ = _read_own(head["pruner"], _under(bundle.arrays, "pruner."))
        # the model for pruning reads the sentences that the parser's featurizer has coded
        if (theirs := model.pruner_.featurizer_.to_bundle()) != (own := model.featurizer_.to_bundle()):
            raise ValueError(f"the model for pruning has the word attributes {theirs}, the parser has {own}")
    if head["relations"] is not None:
        model.relations_, model.relation_features_ = _read_relations(head["relations"], _under(bundle.arrays, "relations."))
        _templates([str(template) for template in model.relation_features_.templates], model.featurizer_)
    return model


def _read_own(head: dict[str, Any], arrays: Arrays) -> "DependencyParser":
    """A parser without what its pruning model and its relations add."""
    from structpred.models.parser.parser import DependencyParser

    model = DependencyParser(**plain_settings(head, DependencyParser))
    model.featurizer_ = ArcFeaturizer.from_bundle(head["featurizer"])
    model.templates_ = _templates(head["templates"], model.featurizer_)
    model.templates, model.bits_ = list(model.templates_), head["bits"]
    model.single_root, model.projective_, model.projective = head["single_root"], head["projective"], head["projective"]
    model.left_out_, model.kept_, model.probabilistic_ = head["left_out"], head["kept"], head["probabilistic"]
    if len(model.bits_) != len(model.templates_):
        raise ValueError(f"{len(model.templates_)} templates, but bits for {len(model.bits_)}")
    restore_run(model, head, arrays, sum(1 << b for b in model.bits_) + 2 * model.featurizer_.n_tags**3)
    model.pruner_, model.relations_, model.relation_features_ = None, None, None
    return model


def _templates(texts: list[str], featurizer: ArcFeaturizer) -> list[ArcTemplate]:
    """The templates of a file; ValueError for one that its own word attributes do not serve."""
    found = [ArcTemplate.parse(text) for text in texts]
    if len(featurizer.usable(found)) != len(found):
        raise ValueError(f"the templates look at more than the word attributes {featurizer.present}")
    return found


def _read_relations(head: dict[str, Any], arrays: Arrays) -> tuple[ChainLabeler, RelationFeatures]:
    features = RelationFeatures.from_bundle(head["features"], arrays)
    labeler = ChainLabeler(**plain_settings(head, ChainLabeler))
    labeler.n_features_in_ = max(len(features.slots), 1)
    labeler.input_ = NumericInput(labeler.n_features_in_)
    labeler._encoder = LabelEncoder(head["classes"])
    labeler.classes_ = labeler._encoder.classes
    labeler.probabilistic_ = head["probabilistic"]
    restore_run(labeler, head, arrays, chain_size(labeler.n_features_in_, len(labeler.classes_)))
    return labeler, features


def _under(arrays: Arrays, prefix: str) -> Arrays:
    """The arrays whose names begin with `prefix`, without it."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


KIND = ModelKind(PARSER, _read)
