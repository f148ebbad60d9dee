"""What `structpred inspect` and `structpred report` say of a multi-label model."""

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from structpred.cli.inspect import columns, cut, facts_lines, held_out, model_facts, training_text
from structpred.cli.label_results import figures, judge
from structpred.cli.options import ReadingOptions
from structpred.errors import ParameterError

if TYPE_CHECKING:
    from structpred.core.weights import Vector
    from structpred.models import HierarchicalMultiLabel, MultiLabelMRF

    Model = MultiLabelMRF | HierarchicalMultiLabel

_NEAR = 0.1  # of the primal: a larger gap is a proof, too, but of little
_HIDDEN = ("random_state", "n_jobs")


@dataclass(frozen=True)
class LabelWeights:
    """One label. bias: what the constant feature adds. positive, negative: (feature, weight), the strongest first."""

    label: str
    bias: float
    norm: float
    positive: list[tuple[str, float]]
    negative: list[tuple[str, float]]


@dataclass(frozen=True)
class LabelInspection:
    """labels: as wanted. pairs: (label, other label, weight), the largest first: what it counts that both are on, or both off,
    rather than one of them: t[1, 1] + t[0, 0] - t[0, 1] - t[1, 0]. Empty for a hierarchy, where a child needs its parent.
    """

    labels: list[LabelWeights]
    pairs: list[tuple[str, str, float]]


def inspect_labels(model: "Model", top: int, label: str | None) -> LabelInspection:
    """The `top` strongest features of each label, on less off, and all pairs. Raises ParameterError for an unknown label."""
    names = model.label_names_
    if label is not None and label not in names:
        raise ParameterError(f"there is no label {label!r}; the model has {len(names)}: {', '.join(names[:10])}")
    width = model.n_features_in_ + (model.bias != 0)
    start = 2 * len(names) * width
    nodes = model.coef_[:start].astype(np.float64).reshape(len(names), width, 2)
    weights = nodes[:, :, 1] - nodes[:, :, 0]
    known = (getattr(model, "reader_", None) or {}).get("feature_names") or [str(k) for k in range(model.n_features_in_)]
    chosen = [k for k, name in enumerate(names) if label in (None, name)]
    labels = [_label(names[k], weights[k], known, float(model.bias), top) for k in chosen]
    if hasattr(model, "hierarchy_") or not len(model.edges_):
        return LabelInspection(labels, [])
    tables = model.coef_[start:].astype(np.float64).reshape(-1, 2, 2)
    strength = (tables[:, 1, 1] + tables[:, 0, 0] - tables[:, 0, 1] - tables[:, 1, 0]).tolist()
    pairs = [(names[i], names[j], s) for (i, j), s in zip(model.edges_.tolist(), strength, strict=True)]
    pairs = [pair for pair in pairs if label in (None, *pair[:2])]
    return LabelInspection(labels, sorted(pairs, key=lambda pair: -pair[2]))


def _label(name: str, row: "Vector", known: list[str], bias: float, top: int) -> LabelWeights:
    features = row[: len(known)]
    order = np.argsort(-features, kind="stable")
    best = [(known[k], float(features[k])) for k in order[:top].tolist() if features[k] > 0]
    worst = [(known[k], float(features[k])) for k in order[::-1][:top].tolist() if features[k] < 0]
    return LabelWeights(name, bias * float(row[-1]) if bias else 0.0, float(np.linalg.norm(features)), best, worst)


def label_facts(model: "Model", path: str) -> list[tuple[str, str]]:
    """Settings and training of a model, as pairs of a name and a line for people."""
    facts = model_facts(path)
    trainer = facts["trainer"] if isinstance(facts["trainer"], str) else facts["trainer"]["class"]
    shown = {name: value for name, value in facts["settings"].items() if value is not None and name not in _HIDDEN}
    reader = facts["reader"] or {}
    hierarchy = getattr(model, "hierarchy_", None)
    joined = f"{len(model.edges_)} pairs of labels" if hierarchy is None else f"a hierarchy of {len(hierarchy.edges)} edges"
    depth = "" if hierarchy is None else f", depth {int(hierarchy.depths.max())}{'' if hierarchy.is_tree else ', no tree'}"
    return [
        ("trainer", f"{trainer}, {_surrogate(model)}"),
        ("settings", ", ".join(f"{name} {value:g}" for name, value in shown.items())),
        ("seed", str(facts["settings"].get("random_state") or 0)),
        ("data", str(reader.get("format") or "fitted in Python")),
        ("labels", f"{model.n_labels_}, over {model.n_features_in_} features"),
        ("joined by", f"{joined}{depth}; inference by {type(model.oracle_).__name__}"),
        ("certificate", str(model.certificate_)),
        ("training", training_text(facts["run"], model.history_)),
        *held_out(model.history_),
        ("versions", ", ".join(f"{name} {number}" for name, number in (facts["versions"] or {}).items())),
    ]


def _surrogate(model: "Model") -> str:
    words = {"SlackRescaling": "slack rescaling", "MarginRescaling": "margin rescaling", "LogLoss": "a conditional random field"}
    name = type(model._trainer_and_surrogate()[1]).__name__
    return words.get(name, name)


def label_json(model: "Model", path: str, top: int, label: str | None) -> str:
    """The header of the file and what the weights show, as one JSON object."""
    facts = {name: value for name, value in model_facts(path).items() if name not in ("input", "constraints", "probabilistic")}
    reader = {name: value for name, value in (facts["reader"] or {}).items() if name != "feature_names"}
    hierarchy = getattr(model, "hierarchy_", None)
    own = {
        "labels": model.label_names_,
        "n_features": model.n_features_in_,
        "edges": model.edges_.tolist(),
        "hierarchy": None if hierarchy is None else hierarchy.edges.tolist(),
        "oracle": type(model.oracle_).__name__,
    }
    return json.dumps({**facts, "reader": reader, **own, "weights": asdict(inspect_labels(model, top, label))})


def label_text(model: "Model", path: str, top: int, label: str | None) -> str:
    """The same as tables; `top` features and pairs of either sign."""
    found = inspect_labels(model, top, label)
    lines = [f"{path}: {type(model).__name__}", "", *facts_lines(label_facts(model, path))]
    if found.pairs:
        together = [(f"{a} {b}", s) for a, b, s in found.pairs if s > 0][:top]
        apart = [(f"{a} {b}", s) for a, b, s in reversed(found.pairs) if s < 0][:top]
        lines += ["", "pairs of labels that go together, and that exclude each other", *columns(together, apart)]
    for one in found.labels:
        head = f"label {cut(one.label, 60)}: bias {one.bias:+.4f}, norm {one.norm:.4g}"
        lines += ["", head, *columns(one.positive, one.negative)]
    return "\n".join(lines)


def label_page(model: "Model", path: str, data: str | None, reading: ReadingOptions, title: str | None, top: int) -> str:
    """A page: certificate, training, scores and a row a label with DATA, pairs and strongest features."""
    from structpred.report import sections
    from structpred.report.markup import Html, join, tag
    from structpred.report.page import Weights, html_page

    gap = model.certificate_.relative_gap
    proven = model.certificate_.proven and gap is not None and gap <= _NEAR
    facts = [pair for pair in label_facts(model, path) if pair[0] != "certificate"]
    parts = [
        ("Model", sections.facts(facts, str(model.certificate_), proven)),
        ("Training", sections.training(model.history_)),
    ]
    if data is not None:
        scores, along = judge(model, data, reading)
        more = [] if along is None else [("F1 along the hierarchy", along.f1)]
        rows = [[name, _percent(value)] for name, value in (*figures(scores), *more)]
        parts.append(("Scores", join(tag("p", f"{data}: {scores.n} examples", class_="note"), _table(["", ""], rows))))
        counts = [
            [o.name, o.support, o.predicted, o.correct, *map(_percent, (o.precision, o.recall, o.f1))] for o in scores.labels
        ]
        head = ["label", "on", "predicted", "correct", "precision", "recall", "F1"]
        parts.append(("Labels", tag("div", _table(head, counts), class_="wide")))
    found = inspect_labels(model, top, None)
    ends = [*found.pairs[:top], *found.pairs[max(top, len(found.pairs) - top) :]]
    pairs: list[list[Any]] = [[a, b, f"{weight:+.4f}"] for a, b, weight in ends]
    parts.append(("Pairs of labels", _table(["label", "and label", "weight"], pairs) if pairs else Html("")))
    parts.append(("Strongest features", sections.weights([Weights(o.label, o.positive, o.negative) for o in found.labels])))
    return html_page(title or path, parts)


def _table(head: list[str], rows: list[list[Any]]) -> Any:
    """Texts on the left, figures on the right."""
    from structpred.report.markup import tag

    figures_of = [all(not isinstance(row[k], str) or row[k][:1] in "+-0123456789" for row in rows) for k in range(len(head))]
    kinds = ["number" if k and number else "name" for k, number in enumerate(figures_of)]
    lines = [tag("tr", *(tag("td", cell, class_=kind) for cell, kind in zip(row, kinds, strict=True))) for row in rows]
    return tag("table", tag("tr", *(tag("th", h, class_=k) for h, k in zip(head, kinds, strict=True))), *lines)


def _percent(share: float) -> str:
    return f"{100 * share:.2f} %"
