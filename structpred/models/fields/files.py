"""Model files of the estimators over Markov fields. An oracle that was chosen for the user is chosen again; others are named."""

import os
from dataclasses import replace
from typing import Any

import numpy.typing as npt

from structpred.core.oracle import Oracle
from structpred.data.hierarchy import LabelHierarchy
from structpred.models.fields.feature_scale import SCALES, FeatureScale
from structpred.models.fields.hierarchical import HierarchicalMultiLabel, hierarchy_field, label_costs
from structpred.models.fields.label_graphs import LabelField, label_oracle
from structpred.models.fields.multilabel import MultiLabelMRF
from structpred.models.files import COMMON, ModelKind, common_header, pack_weights, plain_settings, restore_run, write_model
from structpred.storage.bundles import Bundle
from structpred.storage.schema import (
    LARGEST,
    AnyOf,
    Array,
    Flag,
    ListOf,
    Number,
    OneOf,
    Optional,
    Record,
    Spec,
    Text,
    Whole,
    array_of,
    maybe,
)

Path = str | os.PathLike[str]

#: the class of the oracle, and whether the user gave it
ORACLE = Record({"class": Text(), "given": Flag()})
BIAS = Number(0.0, LARGEST)
_FIELD: dict[str, Spec] = {
    **COMMON,
    "oracle": ORACLE,
    "n_features": Whole(1),
    "n_labels": Whole(1),
    "bias": BIAS,
    "scale": Optional(OneOf((None, *SCALES))),
    "label_names": ListOf(Text(), 1),
}
MULTILABEL = Record({**_FIELD, "edges": maybe(AnyOf((Text(), Whole())))})
HIERARCHICAL = Record({**_FIELD, "label_weights": maybe(Text())})
_PAIRS = Array(("int64",), (None, 2), below="n_labels")
_COSTS = Array(("float64",), ("n_labels",))


def oracle_header(model: Any) -> dict[str, Any]:
    """The class of the oracle, and whether the user gave it."""
    return {"class": type(model.oracle_).__qualname__, "given": model.oracle is not None}


def _label_header(model: Any) -> dict[str, Any]:
    return {
        **common_header(model),
        "oracle": oracle_header(model),
        "n_features": model.n_features_in_,
        "n_labels": model.n_labels_,
        "bias": float(model.bias),
        "scale": model.scale,
        "label_names": list(model.label_names_),
    }


def _scale_arrays(model: Any) -> dict[str, npt.NDArray[Any]]:
    return {} if model._field.scale is None else model._field.scale.arrays()


def save_multilabel(model: MultiLabelMRF, path: Path) -> None:
    """Write a fitted MultiLabelMRF."""
    plain = model.edges if isinstance(model.edges, str | int) else None
    head = {**_label_header(model), "edges": plain}
    write_model(path, MULTILABEL, Bundle(head, {"edges": model.edges_, **_scale_arrays(model), **pack_weights(model.coef_)}))


def save_hierarchical(model: HierarchicalMultiLabel, path: Path) -> None:
    """Write a fitted HierarchicalMultiLabel."""
    plain = model.label_weights if isinstance(model.label_weights, str) else None
    head = {**_label_header(model), "label_weights": plain}
    arrays = {"hierarchy": model.hierarchy_.edges, "label_weights": model.label_weights_, **_scale_arrays(model)}
    write_model(path, HIERARCHICAL, Bundle(head, {**arrays, **pack_weights(model.coef_)}))


def _read_multilabel(head: dict[str, Any], bundle: Bundle, oracle: Oracle | None) -> MultiLabelMRF:
    n_labels = _n_labels(head)
    edges = array_of(bundle.arrays, "edges", _PAIRS, n_labels=n_labels).copy()
    setting = edges if head["edges"] is None else head["edges"]
    settings = plain_settings(head, MultiLabelMRF)
    model = MultiLabelMRF(**settings, bias=float(head["bias"]), edges=setting, oracle=oracle)
    chosen = label_oracle(n_labels, edges) if oracle is None else oracle
    _restore(model, head, bundle, LabelField(n_labels, edges, float(head["bias"]), chosen))
    return model


def _read_hierarchical(head: dict[str, Any], bundle: Bundle, oracle: Oracle | None) -> HierarchicalMultiLabel:
    n_labels = _n_labels(head)
    pairs = array_of(bundle.arrays, "hierarchy", _PAIRS, n_labels=n_labels).copy()
    hierarchy = LabelHierarchy(n_labels, pairs, head["label_names"])
    costs = label_costs(array_of(bundle.arrays, "label_weights", _COSTS, n_labels=n_labels).copy(), hierarchy)
    setting = costs if head["label_weights"] is None else head["label_weights"]
    settings = plain_settings(head, HierarchicalMultiLabel)
    model = HierarchicalMultiLabel(
        **settings, bias=float(head["bias"]), hierarchy=hierarchy, label_weights=setting, oracle=oracle
    )
    model.hierarchy_, model.label_weights_ = hierarchy, costs
    _restore(model, head, bundle, hierarchy_field(hierarchy, float(head["bias"]), oracle))
    return model


def _n_labels(head: dict[str, Any]) -> int:
    """The number of labels, which must be that of their names: nothing is made before."""
    if head["n_labels"] != len(head["label_names"]):
        raise ValueError(f"{head['n_labels']} labels, but {len(head['label_names'])} names")
    return int(head["n_labels"])


def _restore(model: Any, head: dict[str, Any], bundle: Bundle, field: LabelField) -> None:
    model.scale = head["scale"]
    field = replace(field, scale=FeatureScale.from_arrays(model.scale, bundle.arrays, head["n_features"]))
    model.n_features_in_, model.n_labels_ = head["n_features"], field.n_labels
    model.edges_, model.oracle_, model._field = field.edges, field.oracle, field
    model.label_names_ = head["label_names"]
    _ = field.shape  # checks the edges
    restore_run(model, head, bundle.arrays, field.n_weights(model.n_features_in_))


KINDS = {
    "MultiLabelMRF": ModelKind(MULTILABEL, _read_multilabel),
    "HierarchicalMultiLabel": ModelKind(HIERARCHICAL, _read_hierarchical),
}
