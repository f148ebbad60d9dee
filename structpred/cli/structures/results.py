"""What `structpred predict`, `evaluate`, `inspect` and `report` do for structures of a user's own."""

import json
from collections.abc import Callable
from typing import Any

import click
import numpy as np

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
from structpred.cli.files import write_output
from structpred.cli.kinds.kind import Asked, Evaluating, Inspecting, Predicting, Reporting
from structpred.cli.own_code import made
from structpred.errors import DataError
from structpred.models import StructuredPredictor

Reader = Callable[[str], tuple[Any, Any]]


def reader_of(name: str) -> Reader:
    """The user's reader."""
    found: Reader = made(name, Callable, "my_module:read")  # type: ignore[arg-type]
    return found


def read(reader: Reader, name: str, path: str) -> tuple[list[Any], Any]:
    """What the reader gives for a file; DataError where that is no pair (X, y)."""
    found = reader(path)
    if not isinstance(found, tuple) or len(found) != 2:
        raise DataError(f"--reader {name}: expected a pair (X, y), y None where labels are not known, got {type(found).__name__}")
    return found


def read_labelled(reader: Reader, name: str, path: str) -> tuple[list[Any], Any]:
    """The same; DataError where there are no labels."""
    X, y = read(reader, name, path)
    if y is None:
        raise DataError(f"{path}: --reader {name} gives no labels (y is None), which are needed here")
    return X, y


def predict(model: StructuredPredictor, asked: Predicting) -> None:
    """The labels of an instance on a line, separated by spaces; or one JSON object per instance."""
    X, _ = read(*_reader(asked), asked.data)
    found = [labels.tolist() for labels in model.predict(X)]
    if not asked.as_json:
        write_output(asked.output, "".join(f"{' '.join(map(str, labels))}\n" for labels in found))
        return
    entries: list[dict[str, Any]] = [{"labels": labels} for labels in found]
    if asked.marginals:
        for entry, row in zip(entries, model.predict_marginals(X), strict=True):
            entry["marginals"] = row.tolist()
    if asked.kbest is not None:
        for entry, best in zip(entries, model.predict_kbest(X, asked.kbest), strict=True):
            entry["kbest"] = [{"labels": labels.tolist(), "score": score} for labels, score in best]
    write_output(asked.output, "".join(f"{json.dumps(entry)}\n" for entry in entries))


def _reader(asked: Asked) -> tuple[Reader, str]:
    name = asked.own["reader"]
    if name is None:
        known = model_facts(asked.model)["reader"] or {}
        raise click.UsageError(f"name what reads DATA with --reader {known.get('reader', 'MODULE:FUNCTION')}: its code is run")
    return reader_of(name), name


def judged(model: StructuredPredictor, asked: Asked) -> dict[str, Any]:
    """The figures by name: n, the score of the model, and the share of outputs with all labels right."""
    X, y = read_labelled(*_reader(asked), asked.data)
    exact = float(np.mean([np.array_equal(one, other) for one, other in zip(model.predict(X), y, strict=True)]))
    return {"n": len(X), "score": model.score(X, y), "scoring": model.scoring, "exact": exact}


def scored(model: StructuredPredictor, asked: Evaluating) -> str:
    """The figures as lines, or as one JSON object."""
    found = judged(model, asked)
    if asked.as_json:
        return json.dumps(found)
    return "\n".join([f"{found['n']} instances", *(f"{name:<22} {value}" for name, value in _shown(found))])


def _shown(found: dict[str, Any]) -> Pairs:
    score = f"{found['score']:.4f}" if found["scoring"] == "loss" else f"{100 * found['score']:.2f} %"
    return [(f"score ({found['scoring'] or '1 - loss'})", score), ("wholly right", f"{100 * found['exact']:.2f} %")]


def structure_facts(model: StructuredPredictor, path: str) -> Pairs:
    """Settings and training, as pairs of a name and a line for people."""
    facts = model_facts(path)
    known = facts["reader"] or {}
    data = f"read by {known['reader']}" if "reader" in known else "fitted in Python"
    named = "named" if model.feature_names_ is not None else "numbered"
    own = [("data", data), ("oracle", type(model.oracle).__name__), ("features", f"{model.n_features_in_}, {named}")]
    return [*described(facts, "a conditional random field" if model.probabilistic_ else "max-margin", own), *versions(facts)]


def inspected(model: StructuredPredictor, asked: Inspecting) -> str:
    """Settings, certificate and weights, as text or as one JSON object."""
    weights, path = model.top_features(asked.top), asked.model
    if asked.as_json:
        facts = {name: value for name, value in model_facts(path).items() if name not in ("input", "constraints")}
        return json.dumps({**facts, "weights": weights.to_dict(), **sign_facts(model, asked.top)})
    lines = [*facts_lines(structure_facts(model, path)), *sign_lines(model, asked.top), "", weights.table()]
    return "\n".join([f"{path}: StructuredPredictor", "", *lines])


def page(model: StructuredPredictor, asked: Reporting) -> str:
    """A page: certificate, training, scores with DATA, and the strongest features."""
    from structpred.core.markup import join, table, tag
    from structpred.report import sections
    from structpred.report.page import Weights, html_page

    weights = model.top_features(asked.top)
    facts = without_certificate(structure_facts(model, asked.model))
    parts = [
        ("Model", sections.facts(facts, str(model.certificate_), proven(model))),
        ("Training", sections.training(model.history_)),
    ]
    if asked.data:
        found = judged(model, asked)
        note = tag("p", f"{asked.data}: {found['n']} instances", class_="note")
        parts.append(("Scores", join(note, table(("", ""), _shown(found), numbers=[False, True]))))
    parts.append(("Strongest features", sections.weights([Weights("all parts", weights.positive, weights.negative)])))
    return html_page(asked.title or asked.model, parts)
