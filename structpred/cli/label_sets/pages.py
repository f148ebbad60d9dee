"""What `structpred inspect` and `structpred report` say of a multi-label model."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from structpred.cli.facts import Pairs, described, model_facts, shown, without_certificate
from structpred.cli.kinds.kind import Inspecting, Reporting
from structpred.cli.label_sets.results import figures, judge
from structpred.models.fields.inspection import inspect_labels

if TYPE_CHECKING:
    from structpred.models import HierarchicalMultiLabel, MultiLabelMRF

    Model = MultiLabelMRF | HierarchicalMultiLabel


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
    return described(facts, own)


def inspected(model: "Model", asked: Inspecting) -> str:
    """Settings, certificate, and the `top` features and pairs of either sign, as text or as one JSON object."""
    reader = {name: value for name, value in (model_facts(asked.model)["reader"] or {}).items() if name != "feature_names"}
    hierarchy = getattr(model, "hierarchy_", None)
    found = inspect_labels(model, asked.top, asked.label)
    learnt = {
        "reader": reader,
        "labels": model.label_names_,
        "n_features": model.n_features_in_,
        "edges": model.edges_.tolist(),
        "hierarchy": None if hierarchy is None else hierarchy.edges.tolist(),
        "oracle": type(model.oracle_).__name__,
        "weights": asdict(found),
    }
    left_out = ("input", "constraints", "probabilistic")
    return shown(model, asked, label_facts(model, asked.model), learnt, found.table(asked.top), left_out)


def page(model: "Model", asked: Reporting) -> str:
    """A page: certificate, training, scores and a row per label with DATA, pairs and strongest features."""
    from structpred.evaluation.multilabel import cooccurrence
    from structpred.report.contents import Stage, Weights
    from structpred.report.label_sections import LabelContents, label_report

    found = inspect_labels(model, asked.top, None)
    about_data: dict[str, Any] = {}
    if asked.data:
        examples, predicted, scores, along = judge(model, asked)
        more = [] if along is None else [("F1 along the hierarchy", along.f1)]
        about_data = {"data": asked.data, "scores": scores, "figures": [*figures(scores), *more]}
        about_data["together"] = cooccurrence(examples, predicted)
    contents = LabelContents(
        title=asked.title or asked.model,
        facts=without_certificate(label_facts(model, asked.model)),
        stages=[Stage(model.certificate_, model.history_)],
        weights=[Weights(o.label, o.positive, o.negative) for o in found.labels],
        pairs=found.pairs,
        **about_data,
    )
    return label_report(contents, asked.top)
