"""Model files of GraphLabeler."""

import os
from typing import Any

from structpred.core.oracle import Oracle
from structpred.models.chain.targets import LabelEncoder
from structpred.models.fields.files import BIAS, ORACLE, oracle_header
from structpred.models.fields.graph import GraphLabeler, graph_oracle
from structpred.models.files import (
    CLASSES,
    COMMON,
    ModelKind,
    common_header,
    pack_weights,
    plain_settings,
    restore_run,
    write_model,
)
from structpred.oracles.mrf import graph_shape
from structpred.storage.bundles import Bundle
from structpred.storage.schema import Flag, Record, Text, Whole, maybe

GRAPH = Record(
    {
        **COMMON,
        "oracle": ORACLE,
        "classes": CLASSES,
        "n_features": Whole(1),
        "n_edge_features": maybe(Whole()),
        "bias": BIAS,
        "directed": Flag(),
        "node_features": Text(),
        "edge_features": maybe(Text()),
    }
)


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
    write_model(path, GRAPH, Bundle(head, pack_weights(model.coef_)))


def _read(head: dict[str, Any], bundle: Bundle, oracle: Oracle | None) -> GraphLabeler:
    directed, bias = head["directed"], float(head["bias"])
    names = {"node_features": head["node_features"], "edge_features": head["edge_features"]}
    model = GraphLabeler(**plain_settings(head, GraphLabeler), bias=bias, directed=directed, oracle=oracle, **names)
    model.n_features_in_, model.n_edge_features_in_ = head["n_features"], head["n_edge_features"]
    model._encoder = LabelEncoder(head["classes"])
    model.classes_, model.directed_, model._bias = model._encoder.classes, directed, bias
    k, constant = len(model.classes_), bias != 0
    width = k * k if directed else k * (k + 1) // 2
    rows = 1 if model.n_edge_features_in_ is None else model.n_edge_features_in_ + constant
    restore_run(model, head, bundle.arrays, (model.n_features_in_ + constant) * k + rows * width)
    model.oracle_ = graph_oracle([graph_shape(1, k, [])]) if oracle is None else oracle
    return model


KIND = ModelKind(GRAPH, _read)
