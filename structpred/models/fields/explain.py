"""Why a random field gives its labels: the scores of nodes and edges taken apart into what each feature adds."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from structpred.core.fixed_scores import FORBIDDEN
from structpred.core.weights import Vector
from structpred.errors import DataError, InfeasibleError, ParameterError
from structpred.features.graphs import GraphFeatures
from structpred.models.explained_parts import part_features
from structpred.models.explanations import Contribution, Explanation, contrast, wants_runner_up
from structpred.models.fields.estimator import Field, FieldEstimator, FieldNames
from structpred.oracles.mrf import graph_of
from structpred.task.inference import Inference

Codes = npt.NDArray[np.int64]


def explain_field(model: FieldEstimator[Any, Any], x: Any, labels: Any, node: int | None, against: Any) -> Explanation:
    """Take the score of one output apart, or the difference between two. node: whose label the runner-up must change."""
    model._check_fitted()
    field = model._field
    data = field.one(x)
    inference = field.inference(data)
    chosen = inference.decode(model.coef_)[0] if labels is None else _as_given(field, labels, data, "labels")
    n = len(chosen)
    if node is not None and (isinstance(node, bool) or not isinstance(node, int | np.integer) or not 0 <= node < n):
        raise ParameterError(f"node: expected a number from 0 to {n - 1}, got {node!r}")
    other = None
    if (node is not None and against is None) or wants_runner_up(against, "another output"):
        other = _runner_up(inference, model.coef_, chosen, range(n) if node is None else [int(node)])
    elif node is not None:
        raise ParameterError("a node or label is compared with the best output in which it differs: leave against out")
    elif against is not None:
        other = _as_given(field, against, data, "against")
    names = field.part_names()
    found = list(_contributions(inference, model.coef_, chosen, names))
    if other is not None:
        found = contrast(found, list(_contributions(inference, model.coef_, other, names)))
    shown, instead = field.shown(chosen), None if other is None else field.shown(other)
    return Explanation.of(shown, instead, found, n, names.unit)


def _as_given(field: Field[Any, Any], labels: Any, data: Any, name: str) -> Codes:
    try:
        return field.given(labels, data)
    except DataError as error:
        raise DataError(f"{name}: {str(error).removeprefix('sample 0: ')}") from None


def _runner_up(inference: Inference, w: Vector, chosen: Codes, nodes: Iterable[int]) -> Codes:
    """The best output in which one of the nodes has another label: one argmax for each of them."""
    theta, shape = inference.scores(w, 0), inference.shapes[0]
    best, found = FORBIDDEN / 2, None
    for v in nodes:
        ruled = np.array(theta, dtype=np.float64)
        ruled[shape[1] * v + int(chosen[v])] = FORBIDDEN
        try:
            labels, _ = inference.best(ruled, 0)
        except InfeasibleError:
            continue
        value = float(theta[inference.oracle.parts(labels, shape)].sum())
        if labels[v] != chosen[v] and value > best:
            best, found = value, labels
    if found is None:
        raise DataError("there is no other output to compare with this one")
    return found


def _contributions(inference: Inference, w: Vector, labels: Codes, names: FieldNames) -> Iterator[Contribution]:
    features: Any = inference.features
    tables: GraphFeatures = features
    graph, k = graph_of(inference.shapes[0]), tables.n_states
    for f in part_features(inference, w, labels):
        if f.part < graph.n * k:
            v, state = divmod(f.part, k)
            name = names.features[f.place // k % tables.nodes.n_columns]
            yield Contribution("node", v, names.state(v, state), name, f.value, f.weight)
            continue
        edge, pair = divmod(f.part - graph.n * k, k * k)
        i, j = graph.edges[edge].tolist()
        name = names.edge_features[(f.place - tables.start) // tables.width % tables.edges.n_columns]
        ends = f"{names.node(i)} - {names.node(j)}"
        label = f"{names.state(i, pair // k)}, {names.state(j, pair % k)}"
        yield Contribution("edge", j, label, f"{ends}: {name}" if name else ends, f.value, f.weight)
