"""What `structpred inspect` says of a sequence labeller."""

import json
from typing import Any

from structpred.cli.facts import Pairs, described, model_facts, shown
from structpred.cli.files import check_output
from structpred.cli.kinds.kind import Inspecting
from structpred.models import ChainLabeler
from structpred.models.chain.inspection import inspect_weights


def inspected(model: ChainLabeler, asked: Inspecting) -> str:
    """Settings, certificate and weights as text or as a JSON object; draws the transitions if that is wanted."""
    from structpred.report import figures, transitions

    picture = asked.own["picture"]
    if picture is not None:
        figures.check_path(picture)
        check_output(picture, "--picture", inputs=(asked.model,))
    facts = model_facts(asked.model)
    weights = inspect_weights(model, asked.top, asked.label)
    if picture is not None:
        transitions(model.transitions_, model.classes_.tolist(), picture)
    learnt = {"labels": model.classes_.tolist(), "transitions": model.transitions_.tolist(), "weights": weights.to_dict()}
    used = f"{weights.n_features}, {weights.n_features_used} of them with a weight"
    pairs = [*chain_facts(facts), ("features", used)]
    return shown(model, asked, pairs, learnt, weights.table(), left_out=())


def chain_facts(facts: dict[str, Any]) -> Pairs:
    """Settings and training of a labeller, as pairs of a name and a line for people."""
    own = [
        ("data", _data(facts)),
        ("constraints", json.dumps(facts["constraints"]) if facts["constraints"] else "none"),
    ]
    return described(facts, own)


def _data(facts: dict[str, Any]) -> str:
    reader = facts["reader"] or {}
    if not reader:
        return f"{facts['input']}, fitted in Python"
    template = f", template {reader['template']}" if reader.get("template") else ""
    column = reader.get("label_column")
    return f"{reader.get('format')}{template}" + ("" if column is None else f", labels in column {column}")
