"""What a light program knows of a model."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from structpred.data.vocabulary import FeatureDictionary
from structpred.errors import ParameterError
from structpred.features.sequences import weight_table
from structpred.io.templates.featurizer import TemplateFeaturizer
from structpred.io.templates.hashed_templates import HashedTemplateFeaturizer
from structpred.io.templates.templates import Template
from structpred.models import ChainLabeler, HierarchicalMultiLabel, MultiLabelMRF
from structpred.models.chain.constraints import resolve_constraints
from structpred.models.chain.inputs import NumericInput, RowInput, TokenInput
from structpred.oracles.fields._label_forest import forest_of
from structpred.oracles.label_paths import LabelPaths
from structpred.oracles.mrf_enumeration import EnumerationMRF
from structpred.oracles.tree_mrf import TreeMRF, tree_plan


class Parts(NamedTuple):
    """settings: plain data. arrays, texts (lists of strings): by name, as `structpred.export.light` reads them."""

    settings: dict[str, Any]
    arrays: dict[str, npt.NDArray[Any]]
    texts: dict[str, list[str]]


#: the format of files, unless the model says another one, and where it does those that fit
_FORMATS = {"rows": "columns", "tokens": "crfsuite", "numeric": "ocr"}


def chain_parts(model: ChainLabeler) -> Parts:
    """Weights, labels, features and constraints."""
    labels = model.classes_.tolist()
    arrays = {"table": weight_table(model.coef_, len(labels))}
    if (rules := resolve_constraints(model.constraints)) is not None:
        arrays |= dict(zip(("follow", "first", "last"), rules.tables(labels), strict=True))
    parts = _input_parts(model.input_)
    settings = {"labels": labels, "input": model.input_.kind, **_file_settings(model), **parts.settings}
    return Parts(settings, arrays | parts.arrays, parts.texts)


def _input_parts(input_: Any) -> Parts:
    """How tokens become features."""
    if isinstance(input_, NumericInput):
        return Parts({"n_features": input_.n_columns, "intercept": bool(input_.intercept)}, {}, {})
    if isinstance(input_, TokenInput):
        known = input_.features
        if isinstance(known, FeatureDictionary):
            return Parts({"n_bits": None}, {}, {"names": known.names})
        return Parts({"n_bits": known.n_bits}, {}, {})
    assert isinstance(input_, RowInput)
    return _template_parts(input_.features)


def _template_parts(featurizer: TemplateFeaturizer | HashedTemplateFeaturizer) -> Parts:
    settings = {
        "templates": [template.to_dict() for template in featurizer.templates], "n_columns": _n_columns(featurizer.templates),
    }  # fmt: skip
    if isinstance(featurizer, HashedTemplateFeaturizer):
        return Parts({**settings, "n_bits": featurizer.hasher.n_bits, "padding": None}, {}, {})
    part = featurizer.to_bundle()
    return Parts({**settings, "n_bits": None, "padding": featurizer._padding}, part.arrays, part.texts)


def _n_columns(templates: Sequence[Template]) -> int:
    """How many columns the templates look at."""
    return 1 + max((atom.column for template in templates for atom in template.atoms), default=0)


def _file_settings(model: ChainLabeler) -> dict[str, Any]:
    """The format of data files, and how many columns they may have: the labels may be missing where they are last."""
    known = getattr(model, "reader_", None) or {}
    format = known.get("format") or _FORMATS[model.input_.kind]
    column, width = known.get("label_column"), known.get("n_columns")
    if width is None:
        return {"format": format, "widths": [3] if format == "conll2000" else [], "label_column": -1}
    widths = [width, width - 1] if column == width - 1 else [width]
    return {"format": format, "widths": widths, "label_column": column}


Model = MultiLabelMRF | HierarchicalMultiLabel
Arrays = dict[str, npt.NDArray[Any]]


def label_set_parts(model: Model) -> Parts:
    """Weights, names, the scale of features, and what inference needs."""
    field, n = model._field, model.n_labels_
    nodes = np.asarray(model.coef_)[: n * (field.n_features + (field.bias != 0)) * 2]
    arrays: Arrays = {"table": nodes.reshape(n, -1, 2).transpose(1, 0, 2).reshape(-1, 2 * n)}
    if field.scale is not None:
        arrays |= {name.removeprefix("scale."): array for name, array in field.scale.arrays().items()}
    inference, own = _inference(model)
    facts = getattr(model, "reader_", None) or {}
    names = facts.get("feature_names")
    settings = {
        "labels": list(field.names), "n_features": field.n_features, "bias": float(field.bias), "inference": inference,
        "zero_based": bool(facts.get("zero_based")), "feature_names": names if isinstance(names, list) else None,
    }  # fmt: skip
    return Parts(settings, arrays | own, {})


def _inference(model: Model) -> tuple[str, Arrays]:
    """How the best set is found, and the arrays for it; ParameterError for an oracle that light programs do not have."""
    field, oracle = model._field, model._field.oracle
    if field.require == "leaf" or type(oracle) is LabelPaths:
        forest = forest_of(field._forest)
        if field.require == "leaf":
            above = np.where(forest.parents < 0, len(forest.parents), forest.parents)
            return "leaf", {"parents": above, "order": np.array(forest.order, np.int64), "leaves": forest.leaves}
        return "path", {"paths": forest.paths, "ladders": forest.ladders}
    if type(oracle) not in (EnumerationMRF, TreeMRF):
        raise ParameterError(
            f"this {type(model).__name__} cannot be exported: its inference is {type(oracle).__name__}; light programs have that "
            "of up to 16 labels (EnumerationMRF), of pairs without a cycle (TreeMRF), and of paths and leaves in a hierarchy"
        )
    pairs = _pairs(model)
    if type(oracle) is TreeMRF:
        plan = tree_plan(field.shape).copy()
        plan[:, 2] -= np.where(plan[:, 2] >= 0, 2 * model.n_labels_, 0)
        return "tree", {"plan": plan, "pairs": pairs}
    edge_of = np.full((model.n_labels_, model.n_labels_), -1, np.int64)
    edge_of[field.edges[:, 0], field.edges[:, 1]] = np.arange(len(field.edges))
    return "enumeration", {"edge_of": edge_of, "pairs": pairs}


def _pairs(model: Model) -> npt.NDArray[np.float64]:
    """(E, 2, 2): the scores of pairs of states, which are those of every example, with what is forbidden."""
    field, size = model._field, 4 * len(model._field.edges)
    found = np.zeros(size)
    if field.tables and size:
        found += np.asarray(model.coef_, dtype=np.float64)[-size:]
    if field.fixed is not None:
        found += field.fixed[-size:]
    return found.reshape(-1, 2, 2)
