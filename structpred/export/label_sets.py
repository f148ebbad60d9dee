"""What a light program needs of a model of label sets."""

from typing import Any

import numpy as np
import numpy.typing as npt

from structpred.errors import ParameterError
from structpred.export.parts import Parts
from structpred.models import HierarchicalMultiLabel, MultiLabelMRF
from structpred.oracles.fields._label_forest import forest_of
from structpred.oracles.label_paths import LabelPaths
from structpred.oracles.mrf_enumeration import EnumerationMRF
from structpred.oracles.tree_mrf import TreeMRF, tree_plan

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
