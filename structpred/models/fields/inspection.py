"""What the weights of a multi-label model say: the strongest features of each label, and which labels go together."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from structpred.core.weights import Vector
from structpred.errors import ParameterError
from structpred.models.fields.estimator import FieldEstimator
from structpred.models.fields.label_field import LabelField
from structpred.models.inspections import Shown, checked_top
from structpred.text.tables import columns, cut


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
    checked_top(top)
    model._check_fitted()
    field = model._field
    assert isinstance(field, LabelField)
    names = field.names
    if label is not None and label not in names:
        raise ParameterError(f"there is no label {label!r}; the model has {len(names)}: {', '.join(names[:10])}")
    width = field.n_features + (field.bias != 0)
    start = 2 * len(names) * width
    nodes = model.coef_[:start].astype(np.float64).reshape(len(names), width, 2)
    weights = nodes[:, :, 1] - nodes[:, :, 0]
    known = field.names_of_features()
    chosen = [k for k, name in enumerate(names) if label in (None, name)]
    labels = [_label(names[k], weights[k], known, field.bias, top) for k in chosen]
    if field.hierarchy is not None or not len(field.edges):
        return LabelInspection(labels, [])
    tables = model.coef_[start:].astype(np.float64).reshape(-1, 2, 2)
    strength = (tables[:, 1, 1] + tables[:, 0, 0] - tables[:, 0, 1] - tables[:, 1, 0]).tolist()
    pairs = [(names[i], names[j], s) for (i, j), s in zip(field.edges.tolist(), strength, strict=True)]
    pairs = [pair for pair in pairs if label in (None, *pair[:2])]
    return LabelInspection(labels, sorted(pairs, key=lambda pair: -pair[2]))


def _label(name: str, row: Vector, known: Sequence[str], bias: float, top: int) -> LabelWeights:
    features = row[: len(known)]
    order = np.argsort(-features, kind="stable")
    best = [(known[k], float(features[k])) for k in order[:top].tolist() if features[k] > 0]
    worst = [(known[k], float(features[k])) for k in order[::-1][:top].tolist() if features[k] < 0]
    return LabelWeights(name, bias * float(row[-1]) if bias else 0.0, float(np.linalg.norm(features)), best, worst)
