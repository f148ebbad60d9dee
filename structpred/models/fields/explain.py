"""What random fields say: why they give these labels, and what the weights of each label are."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from structpred.core.fixed_scores import FORBIDDEN
from structpred.core.weights import Vector
from structpred.errors import DataError, ParameterError
from structpred.features.graphs import GraphFeatures
from structpred.models.explanations import Contribution, Explanation, contrast, given_as, part_features, wants_runner_up
from structpred.models.fields.estimator import Field, FieldEstimator
from structpred.models.fields.label_field import LabelField
from structpred.models.fields.label_graphs import FieldNames
from structpred.models.fields.label_scores import best_without
from structpred.oracles.mrf import graph_of
from structpred.runtime.settings import checked_whole, is_whole
from structpred.task.inference import Inference
from structpred.text.markup import Shown
from structpred.text.tables import columns, cut

Codes = npt.NDArray[np.int64]


def explain_field(model: FieldEstimator[Any, Any], x: Any, labels: Any, node: int | None, against: Any) -> Explanation:
    """Take the score of one output apart, or the difference between two. node: whose label the runner-up must change."""
    model._check_fitted()
    field = model._field
    data = field.one(x)
    inference = field.decoding(data)
    chosen = inference.decode(model.coef_)[0] if labels is None else _as_given(field, labels, data, "labels")
    n = len(chosen)
    if node is not None and (not is_whole(node) or not 0 <= node < n):
        raise ParameterError(f"node: expected a number from 0 to {n - 1}, got {node!r}")
    other = None
    if (node is not None and against is None) or wants_runner_up(against, "another output"):
        other = _runner_up(inference, model.coef_, chosen, range(n) if node is None else [int(node)])
    elif node is not None:
        raise ParameterError("a node or label is compared with the best output in which it differs: leave against out")
    elif against is not None:
        other = _as_given(field, against, data, "against")
    spread, w = field.expanded(model.coef_)
    names, addends = spread.part_names(), spread.inference(data)
    sides = [list(_contributions(addends, w, side, names)) for side in (chosen, other) if side is not None]
    shown, instead = field.shown(chosen), None if other is None else field.shown(other)
    return Explanation.of(shown, instead, contrast(*sides), names.unit)


def _as_given(field: Field, labels: Any, data: Any, name: str) -> Codes:
    with given_as(name):
        return field.given(labels, data)


def _runner_up(inference: Inference, w: Vector, chosen: Codes, nodes: Iterable[int]) -> Codes:
    """The best output in which one of the nodes has another label: one argmax for each of them."""
    theta, k = inference.scores(w, 0), inference.features.n_states  # type: ignore[attr-defined]
    best, found = FORBIDDEN / 2, None
    for v in nodes:
        labels, value = best_without(inference, 0, theta, k * v + int(chosen[v]))
        if labels is not None and labels[v] != chosen[v] and value > best:
            best, found = value, labels
    if found is None:
        raise DataError("there is no other output to compare with this one")
    return found


def _contributions(inference: Inference, w: Vector, labels: Codes, names: FieldNames) -> Iterator[Contribution]:
    features: Any = inference.features
    tables: GraphFeatures = features
    n, k = len(labels), tables.n_states
    for part, place, value, weight in part_features(inference, w, labels):
        if part < n * k:
            v, state = divmod(part, k)
            name = names.features[place // k % tables.nodes.n_columns]
            yield Contribution("node", v, names.state(v, state), name, value, weight)
            continue
        edge, pair = divmod(part - n * k, k * k)
        i, j = graph_of(inference.shapes[0]).edges[edge].tolist()
        name = names.edge_features[(place - tables.start) // tables.width % tables.edges.n_columns]
        ends = f"{names.node(i)} - {names.node(j)}"
        label = f"{names.state(i, pair // k)}, {names.state(j, pair % k)}"
        yield Contribution("edge", j, label, f"{ends}: {name}" if name else ends, value, weight)


@dataclass(frozen=True)
class LabelWeights:
    """One label. bias: what the constant feature adds. positive, negative: (feature, weight), the strongest first."""

    label: str
    bias: float
    norm: float
    positive: list[tuple[str, float]]
    negative: list[tuple[str, float]]


@dataclass(frozen=True)
class LabelInspection(Shown):
    """What the weights of a multi-label model show.

    labels: as wanted. pairs: (label, other label, weight), the largest first: what it counts that both are on, or both off,
    rather than one of them: t[1, 1] + t[0, 0] - t[0, 1] - t[1, 0]. Empty for a hierarchy, where a child needs its parent.
    """

    labels: list[LabelWeights]
    pairs: list[tuple[str, str, float]]

    def table(self, top: int = 20) -> str:
        """The `top` pairs of either sign, then the strongest features of each label."""
        together = [(f"{a} {b}", s) for a, b, s in self.pairs if s > 0][:top]
        apart = [(f"{a} {b}", s) for a, b, s in reversed(self.pairs) if s < 0][:top]
        lines = ["pairs of labels that go together, and that exclude each other", *columns(together, apart)] if self.pairs else []
        for one in self.labels:
            head = f"label {cut(one.label, 60)}: bias {one.bias:+.4f}, norm {one.norm:.4g}"
            lines += [*([""] if lines else []), head, *columns(one.positive, one.negative)]
        return "\n".join(lines)


def inspect_labels(model: FieldEstimator[Any, Any], top: int = 20, label: str | None = None) -> LabelInspection:
    """The `top` strongest features of each label, on less off, and all pairs. Raises ParameterError for an unknown label."""
    checked_whole(top, "top")
    model._check_fitted()
    field = model._field
    assert isinstance(field, LabelField)
    names = field.names
    if label is not None and label not in names:
        raise ParameterError(f"there is no label {label!r}; the model has {len(names)}: {', '.join(names[:10])}")
    width = field.n_columns + (field.bias != 0)
    start = 2 * len(names) * width
    nodes = [w[:start].astype(np.float64).reshape(len(names), width, 2) for w in (field.expanded(model.coef_)[1], model.coef_)]
    weights, plain = (table[:, :, 1] - table[:, :, 0] for table in nodes)
    known = field.names_of_features()
    labels = []
    for name, row, own in zip(names, weights, plain, strict=True):
        if label in (None, name):
            features, bias = row[: len(known)], field.bias * float(row[-1]) if field.bias else 0.0
            order = np.argsort(-features, kind="stable")
            best = [(known[k], float(features[k])) for k in order[:top].tolist() if features[k] > 0]
            worst = [(known[k], float(features[k])) for k in order[::-1][:top].tolist() if features[k] < 0]
            labels.append(LabelWeights(name, bias, float(np.linalg.norm(own[: len(known)])), best, worst))
    if field.hierarchy is not None or not len(field.edges):
        return LabelInspection(labels, [])
    tables = model.coef_[start:].astype(np.float64).reshape(-1, 2, 2)
    strength = (tables[:, 1, 1] + tables[:, 0, 0] - tables[:, 0, 1] - tables[:, 1, 0]).tolist()
    pairs = [(names[i], names[j], s) for (i, j), s in zip(field.edges.tolist(), strength, strict=True)]
    pairs = [pair for pair in pairs if label in (None, *pair[:2])]
    return LabelInspection(labels, sorted(pairs, key=lambda pair: -pair[2]))
