"""Parser models as files: the parser's own weights, and its pruning model and its relations as parts with a prefix."""

import os
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from structpred.core.arc_templates import ArcTemplate
from structpred.core.storage import Bundle, write_bundle
from structpred.errors import FileFormatError, ParameterError
from structpred.io.arc_featurizer import ArcFeaturizer
from structpred.models.chain import ChainLabeler
from structpred.models.files import FORMAT_VERSION, common_header, pack_weights, plain_settings, restore_run
from structpred.models.inputs import NumericInput
from structpred.models.relations import RelationFeatures
from structpred.models.targets import LabelEncoder

if TYPE_CHECKING:
    from structpred.models.parser import DependencyParser

Arrays = dict[str, npt.NDArray[Any]]


def save_parser(model: "DependencyParser", path: str | os.PathLike[str]) -> None:
    """Write a fitted DependencyParser."""
    head, arrays = _parts(model)
    write_bundle(path, Bundle(head, arrays), kind="model", format_version=FORMAT_VERSION)


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


def read_parser(model: "DependencyParser", head: dict[str, Any], arrays: Arrays) -> "DependencyParser":
    """Fill in a parser that has the settings of `head`. Raises KeyError, TypeError or ValueError where they do not fit."""
    model.featurizer_ = ArcFeaturizer.from_bundle(head["featurizer"])
    model.templates_ = _templates(head["templates"], model.featurizer_)
    model.templates = list(model.templates_)
    model.bits_ = [int(b) for b in head["bits"]]
    model.single_root, model.projective_ = bool(head["single_root"]), bool(head["projective"])
    model.projective, model.left_out_ = model.projective_, int(head["left_out"])
    model.kept_ = None if head["kept"] is None else float(head["kept"])
    model.probabilistic_ = bool(head["probabilistic"])
    restore_run(model, head, _under(arrays, ""))
    expected = sum(1 << b for b in model.bits_) + 2 * model.featurizer_.n_tags**3
    if len(model.bits_) != len(model.templates_) or len(model.coef_) != expected:
        raise ValueError(f"{len(model.coef_)} weights do not fit {len(model.templates_)} templates with bits {model.bits_}")
    model.pruner_, model.relations_, model.relation_features_ = None, None, None
    if head["pruner"] is not None:
        own = head["pruner"]
        if not isinstance(model.prune, int):
            raise ValueError(f"a model for pruning, but prune={model.prune!r}")
        model.pruner_ = read_parser(type(model)(**plain_settings(own)), own, _under(arrays, "pruner."))
    if head["relations"] is not None:
        model.relations_, model.relation_features_ = _read_relations(head["relations"], _under(arrays, "relations."))
        _templates([str(template) for template in model.relation_features_.templates], model.featurizer_)
    return model


def _templates(texts: list[str], featurizer: ArcFeaturizer) -> list[ArcTemplate]:
    """The templates of a file; ValueError for one that its own word attributes do not serve."""
    try:
        found = [ArcTemplate.parse(str(text)) for text in texts]
    except ParameterError as error:  # no setting of the user's is at fault
        raise FileFormatError(str(error)) from None
    if len(featurizer.usable(found)) != len(found):
        raise ValueError(f"the templates look at more than the word attributes {featurizer.present}")
    return found


def _read_relations(head: dict[str, Any], arrays: Arrays) -> tuple[ChainLabeler, RelationFeatures]:
    features = RelationFeatures.from_bundle(head["features"], arrays)
    labeler = ChainLabeler(**plain_settings(head))
    labeler.n_features_in_ = max(len(features.slots), 1)
    labeler.input_ = NumericInput(labeler.n_features_in_)
    if not all(isinstance(label, str) for label in head["classes"]):
        raise TypeError("the names of relations must be strings")
    labeler._encoder = LabelEncoder(head["classes"])
    labeler.classes_ = labeler._encoder.classes
    labeler.probabilistic_ = bool(head["probabilistic"])
    restore_run(labeler, head, arrays)
    n_labels = len(labeler.classes_)
    if len(labeler.coef_) != (labeler.n_features_in_ + 2 + n_labels) * (-(-n_labels // 8) * 8):
        raise ValueError(f"{len(labeler.coef_)} weights do not fit {labeler.n_features_in_} features and {n_labels} relations")
    return labeler, features


def _under(arrays: Arrays, prefix: str) -> Arrays:
    """The arrays whose names begin with `prefix`, without it."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
