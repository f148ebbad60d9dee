"""What `structpred inspect` and `structpred report` say of a multi-label model."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from structpred.cli.facts import Learnt, Pairs, described
from structpred.cli.kinds.kind import Inspecting, Reporting
from structpred.cli.label_sets.results import Model, figures, predicted_and_scored
from structpred.models.fields.explain import inspect_labels

if TYPE_CHECKING:
    from structpred.report.contents import About


def facts(model: Model, header: dict[str, Any]) -> Pairs:
    """Settings and training of a model, as pairs of a name and a line for people."""
    hierarchy = getattr(model, "hierarchy_", None)
    joined = f"{len(model.edges_)} pairs of labels" if hierarchy is None else f"a hierarchy of {len(hierarchy.edges)} edges"
    depth = "" if hierarchy is None else f", depth {int(hierarchy.depths.max())}{'' if hierarchy.is_tree else ', not a tree'}"
    own = [
        ("labels", f"{model.n_labels_}, over {model.n_features_in_} features"),
        ("joined by", f"{joined}{depth}; inference by {type(model.oracle_).__name__}"),
    ]
    return described(header, own)


def learnt(model: Model, asked: Inspecting) -> Learnt:
    """Labels and edges, and the `top` features and pairs of either sign."""
    hierarchy = getattr(model, "hierarchy_", None)
    found = inspect_labels(model, asked.top, asked.label)
    data = {
        "reader": {name: value for name, value in (model.reader_ or {}).items() if name != "feature_names"},
        "labels": model.label_names_,
        "n_features": model.n_features_in_,
        "edges": model.edges_.tolist(),
        "hierarchy": None if hierarchy is None else hierarchy.edges.tolist(),
        "oracle": type(model.oracle_).__name__,
        "weights": asdict(found),
    }
    return Learnt(data, found.table(asked.top), left_out=("input", "constraints", "probabilistic"))


def page(model: Model, asked: Reporting, about: "About") -> str:
    """A page: certificate, training, scores and a row per label with DATA, pairs and strongest features."""
    from structpred.evaluation.multilabel import cooccurrence
    from structpred.report.contents import Weights
    from structpred.report.label_sections import LabelContents, label_report

    found = inspect_labels(model, asked.top, None)
    about_data: dict[str, Any] = {}
    if asked.data:
        examples, predicted, scores, along = predicted_and_scored(model, asked)
        more = [] if along is None else [("F1 along the hierarchy", along.f1)]
        about_data = {"data": asked.data, "scores": scores, "figures": [*figures(scores), *more]}
        about_data["together"] = cooccurrence(examples, predicted)
    weights = [Weights(o.label, o.positive, o.negative) for o in found.labels]
    return label_report(LabelContents(**vars(about), weights=weights, pairs=found.pairs, **about_data), asked.top)
