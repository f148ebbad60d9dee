"""Model files of GraphLabeler."""

import os
from typing import Any

from structpred.core.oracle import Oracle
from structpred.core.storage import Bundle, write_bundle
from structpred.models.field_files import oracle_header
from structpred.models.files import FORMAT_VERSION, common_header, pack_weights, plain_settings, restore_run
from structpred.models.graph import GraphLabeler, graph_oracle
from structpred.models.targets import LabelEncoder
from structpred.oracles.mrf import graph_shape


def save_graph_labeler(model: GraphLabeler, path: str | os.PathLike[str]) -> None:
    """Write a fitted GraphLabeler."""
    head: dict[str, Any] = {
        **common_header(model),
        "oracle": oracle_header(model),
        "classes": model.classes_.tolist(),
        "n_features": model.n_features_in_,
        "n_edge_features": model.n_edge_features_in_,
        "bias": model._bias,
        "directed": model.directed_,
        "node_features": model.node_features,
        "edge_features": model.edge_features,
    }
    write_bundle(path, Bundle(head, pack_weights(model.coef_)), kind="model", format_version=FORMAT_VERSION)


def read_graph_labeler(bundle: Bundle, oracle: Oracle | None) -> GraphLabeler:
    """The estimator. Raises KeyError, TypeError or ValueError where the contents do not fit together."""
    head = bundle.header
    directed, bias = bool(head["directed"]), float(head["bias"])
    names = {"node_features": str(head["node_features"]), "edge_features": head["edge_features"]}
    model = GraphLabeler(**plain_settings(head), bias=bias, directed=directed, oracle=oracle, **names)
    model.n_features_in_ = int(head["n_features"])
    model.n_edge_features_in_ = None if head["n_edge_features"] is None else int(head["n_edge_features"])
    model._encoder = LabelEncoder(head["classes"])
    model.classes_, model.directed_, model._bias = model._encoder.classes, directed, bias
    k, constant = len(model.classes_), bias != 0
    model.oracle_ = graph_oracle([graph_shape(1, k, [])]) if oracle is None else oracle
    restore_run(model, head, bundle.arrays)
    width = k * k if directed else k * (k + 1) // 2
    rows = 1 if model.n_edge_features_in_ is None else model.n_edge_features_in_ + constant
    if len(model.coef_) != (model.n_features_in_ + constant) * k + rows * width:
        raise ValueError(f"{len(model.coef_)} weights do not fit {model.n_features_in_} features and {k} labels")
    return model
