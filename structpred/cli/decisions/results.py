"""What `structpred predict`, `evaluate`, `inspect` and `report` do for decision models."""

import json
from typing import Any

from structpred.cli.facts import Pairs, described, model_facts, shown, without_certificate
from structpred.cli.files import write_output
from structpred.cli.kinds.kind import Asked, Evaluating, Inspecting, Predicting, Reporting
from structpred.cli.structures import results as structures
from structpred.cli.structures.results import asked_reader, read_labelled
from structpred.core.packing import has_points
from structpred.models import DecisionModel


def predict(model: DecisionModel, asked: Predicting) -> None:
    """The labels of each decision on a line, or as one JSON object; the amounts, where decisions are points."""
    if not has_points(model.oracle):
        return structures.predict(model, asked)
    X, _ = structures.read(*asked_reader(asked), asked.data)
    found = [amounts.tolist() for amounts in model.predict_points(X)]
    lines = [json.dumps({"amounts": own}) if asked.as_json else " ".join(f"{x:.12g}" for x in own) for own in found]
    write_output(asked.output, "".join(f"{line}\n" for line in lines))


def judged(model: DecisionModel, asked: Asked) -> dict[str, Any]:
    """The figures by name: n, the mean regret, the normalised one, and the score."""
    X, numbers = read_labelled(*asked_reader(asked), asked.data)
    found = model.regrets(X, **{"values" if model.maximises_ else "costs": numbers})
    return {"n": len(X), "mean_regret": found.mean, "normalised_regret": found.normalised, "score": 1.0 - found.normalised}


def scored(model: DecisionModel, asked: Evaluating) -> str:
    """The figures as lines, or as one JSON object."""
    found = judged(model, asked)
    if asked.as_json:
        return json.dumps(found)
    return "\n".join([f"{found['n']} instances", *(f"{name:<22} {value}" for name, value in _shown(found))])


def _shown(found: dict[str, Any]) -> Pairs:
    return [("mean regret", f"{found['mean_regret']:.6g}"), ("normalised regret", f"{100 * found['normalised_regret']:.2f} %")]


def decision_facts(model: DecisionModel, path: str) -> Pairs:
    """Settings and training, as pairs of a name and a line for people."""
    facts = model_facts(path)
    known = facts["reader"] or {}
    data = f"read by {known['reader']}" if "reader" in known else "fitted in Python"
    own = [
        ("data", data), ("oracle", type(model.oracle).__name__), ("given", "values" if model.maximises_ else "costs"),
        ("features", f"{model.n_features_in_} {'a part' if model.per_part_ else 'an instance'}"),
    ]  # fmt: skip
    return described(facts, own, goal="for the sake of decisions")


def inspected(model: DecisionModel, asked: Inspecting) -> str:
    """Settings and certificate, as text or as one JSON object."""
    return shown(model, asked, decision_facts(model, asked.model), {})


def page(model: DecisionModel, asked: Reporting) -> str:
    """A page: certificate, training, and the regret with DATA."""
    from structpred.core.markup import join, tag
    from structpred.report import sections
    from structpred.report.contents import Stage
    from structpred.report.layout import large
    from structpred.report.page import html_page
    from structpred.report.training import training

    parts = [("Model", sections.facts(without_certificate(decision_facts(model, asked.model))))]
    if asked.data:
        found = judged(model, asked)
        note = tag("p", f"{asked.data}: {found['n']} instances", class_="note")
        parts.append(("Regret", join(note, large(_shown(found)))))
    parts.append(("Training", training([Stage(model.certificate_, model.history_)])))
    return html_page(asked.title or asked.model, parts)
