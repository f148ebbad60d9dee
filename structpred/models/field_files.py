"""Model files of the estimators over Markov fields. An oracle that was chosen for the user is chosen again; others are named."""

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from structpred.core.hierarchy import LabelHierarchy
from structpred.core.oracle import Oracle
from structpred.core.storage import Bundle, write_bundle
from structpred.errors import ParameterError
from structpred.models.feature_scale import FeatureScale
from structpred.models.files import FORMAT_VERSION, common_header, pack_weights, plain_settings, restore_run
from structpred.models.hierarchical import HierarchicalMultiLabel, hierarchy_field
from structpred.models.label_graphs import LabelField, label_oracle
from structpred.models.multilabel import MultiLabelMRF

if TYPE_CHECKING:
    pass

Path = str | os.PathLike[str]


def oracle_header(model: Any) -> dict[str, Any]:
    """The class of the oracle, and whether the user gave it."""
    return {"class": type(model.oracle_).__qualname__, "given": model.oracle is not None}


def oracle_restored(saved: dict[str, Any], given: Oracle | None, path: Path) -> Oracle | None:
    """The oracle to use: None to choose one again; raises ParameterError where one is needed and not the right one is given."""
    if given is None and not saved["given"]:
        return None
    if type(given).__qualname__ != saved["class"]:
        raise ParameterError(
            f"{os.fspath(path)}: this model was trained with the oracle {saved['class']}; "
            f"give load(path, oracle={saved['class']}())"
        )
    return given


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
    write_bundle(
        path,
        Bundle(head, {"edges": model.edges_, **_scale_arrays(model), **pack_weights(model.coef_)}),
        kind="model",
        format_version=FORMAT_VERSION,
    )


def save_hierarchical(model: HierarchicalMultiLabel, path: Path) -> None:
    """Write a fitted HierarchicalMultiLabel."""
    plain = model.label_weights if isinstance(model.label_weights, str) else None
    head = {**_label_header(model), "label_weights": plain}
    arrays = {
        "hierarchy": model.hierarchy_.edges,
        "label_weights": model.label_weights_,
        **_scale_arrays(model),
        **pack_weights(model.coef_),
    }
    write_bundle(path, Bundle(head, arrays), kind="model", format_version=FORMAT_VERSION)


def read_field_model(name: str, bundle: Bundle, given: Oracle | None, path: Path) -> Any:
    """The estimator of that name. Raises KeyError, TypeError or ValueError where the contents do not fit together."""
    oracle = oracle_restored(bundle.header["oracle"], given, path)
    if name == "GraphLabeler":
        from structpred.models.graph_files import read_graph_labeler

        return read_graph_labeler(bundle, oracle)
    return (_read_multilabel if name == "MultiLabelMRF" else _read_hierarchical)(bundle, oracle)


def _read_multilabel(bundle: Bundle, oracle: Oracle | None) -> MultiLabelMRF:
    head, edges = bundle.header, _pairs(bundle.arrays["edges"])
    setting = edges if head["edges"] is None else head["edges"]
    model = MultiLabelMRF(**plain_settings(head), bias=float(head["bias"]), edges=setting, oracle=oracle)
    n_labels = int(head["n_labels"])
    chosen = label_oracle(n_labels, edges) if oracle is None else oracle
    _restore(model, bundle, LabelField(n_labels, edges, float(head["bias"]), chosen))
    return model


def _read_hierarchical(bundle: Bundle, oracle: Oracle | None) -> HierarchicalMultiLabel:
    head = bundle.header
    names = [str(label) for label in head["label_names"]]
    hierarchy = LabelHierarchy(int(head["n_labels"]), _pairs(bundle.arrays["hierarchy"]), names)
    costs = np.array(bundle.arrays["label_weights"], dtype=np.float64)
    setting = costs if head["label_weights"] is None else head["label_weights"]
    model = HierarchicalMultiLabel(
        **plain_settings(head), bias=float(head["bias"]), hierarchy=hierarchy, label_weights=setting, oracle=oracle
    )
    model.hierarchy_, model.label_weights_ = hierarchy, costs
    _restore(model, bundle, hierarchy_field(hierarchy, float(head["bias"]), oracle))
    return model


def _restore(model: Any, bundle: Bundle, field: LabelField) -> None:
    head = bundle.header
    model.scale = head.get("scale")
    field = replace(field, scale=FeatureScale.from_arrays(model.scale, bundle.arrays, int(head["n_features"])))
    model.n_features_in_, model.n_labels_ = int(head["n_features"]), field.n_labels
    model.edges_, model.oracle_, model._field = field.edges, field.oracle, field
    model.label_names_ = [str(label) for label in head["label_names"]]
    _ = field.shape  # checks the edges
    restore_run(model, head, bundle.arrays)
    if len(model.coef_) != field.n_weights(model.n_features_in_) or len(model.label_names_) != field.n_labels:
        raise ValueError(f"{len(model.coef_)} weights do not fit {model.n_features_in_} features and {field.n_labels} labels")


def _pairs(array: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    if array.ndim != 2 or array.shape[1] != 2 or array.dtype != np.int64:
        raise ValueError(f"edges must be an int64 array (E, 2), got {array.dtype} {array.shape}")
    return array.copy()
