"""What `structpred inspect` and `structpred report` say of a multi-label model."""

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from structpred.cli.facts import (
    Pairs,
    described,
    facts_lines,
    model_facts,
    proven,
    sign_facts,
    sign_lines,
    versions,
    without_certificate,
)
from structpred.cli.kinds.kind import Inspecting, Reporting
from structpred.cli.label_sets.results import figures, judge
from structpred.errors import ParameterError
from structpred.models.fields.inspection import inspect_labels

if TYPE_CHECKING:
    from structpred.models import HierarchicalMultiLabel, MultiLabelMRF

    Model = MultiLabelMRF | HierarchicalMultiLabel


def inspected(model: "Model", asked: Inspecting) -> str:
    """Settings, certificate and weights, as text or as one JSON object."""
    return (label_json if asked.as_json else label_text)(model, asked.model, asked.top, asked.label)


def label_facts(model: "Model", path: str) -> Pairs:
    """Settings and training of a model, as pairs of a name and a line for people."""
    facts = model_facts(path)
    hierarchy = getattr(model, "hierarchy_", None)
    joined = f"{len(model.edges_)} pairs of labels" if hierarchy is None else f"a hierarchy of {len(hierarchy.edges)} edges"
    depth = "" if hierarchy is None else f", depth {int(hierarchy.depths.max())}{'' if hierarchy.is_tree else ', not a tree'}"
    own = [
        ("data", str((facts["reader"] or {}).get("format") or "fitted in Python")),
        ("labels", f"{model.n_labels_}, over {model.n_features_in_} features"),
        ("joined by", f"{joined}{depth}; inference by {type(model.oracle_).__name__}"),
    ]
    return [*described(facts, _surrogate(model), own), *versions(facts)]


def _surrogate(model: "Model") -> str:
    words = {"SlackRescaling": "slack rescaling", "MarginRescaling": "margin rescaling", "LogLoss": "a conditional random field"}
    try:
        name = type(model._trainer_and_surrogate()[1]).__name__
    except ParameterError:  # a trainer of the user's own, which the file does not hold
        return "a conditional random field" if model.probabilistic_ else "max-margin"
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
    weights = asdict(inspect_labels(model, top, label))
    return json.dumps({**facts, "reader": reader, **own, "weights": weights, **sign_facts(model, top)})


def label_text(model: "Model", path: str, top: int, label: str | None) -> str:
    """The same as tables; `top` features and pairs of either sign."""
    found = inspect_labels(model, top, label)
    lines = [f"{path}: {type(model).__name__}", "", *facts_lines(label_facts(model, path)), *sign_lines(model, top)]
    lines += ["", found.table(top)]
    return "\n".join(lines)


def page(model: "Model", asked: Reporting) -> str:
    """A page: certificate, training, scores and a row per label with DATA, pairs and strongest features."""
    from structpred.core.markup import Html, join, tag
    from structpred.report import sections
    from structpred.report.page import Weights, html_page

    facts, top = without_certificate(label_facts(model, asked.model)), asked.top
    parts = [
        ("Model", sections.facts(facts, str(model.certificate_), proven(model))),
        ("Training", sections.training(model.history_)),
    ]
    if asked.data:
        scores, along = judge(model, asked)
        more = [] if along is None else [("F1 along the hierarchy", along.f1)]
        rows = [[name, _percent(value)] for name, value in (*figures(scores), *more)]
        parts.append(("Scores", join(tag("p", f"{asked.data}: {scores.n} examples", class_="note"), _table(["", ""], rows))))
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
    return html_page(asked.title or asked.model, parts)


def _table(head: list[str], rows: list[list[Any]]) -> Any:
    """Texts on the left, figures on the right."""
    from structpred.core.markup import table

    figures_of = [all(not isinstance(row[k], str) or row[k][:1] in "+-0123456789" for row in rows) for k in range(len(head))]
    return table(head, rows, numbers=[bool(k and number) for k, number in enumerate(figures_of)])


def _percent(share: float) -> str:
    return f"{100 * share:.2f} %"
