"""What `structpred predict`, `evaluate`, `inspect` and `report` do for structures of a user's own."""

import json
from collections.abc import Callable, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from structpred.cli.facts import Pairs, described, model_facts, shown, without_certificate
from structpred.cli.files import write_output
from structpred.cli.kinds.kind import Asked, Evaluating, Explained, Explaining, Inspecting, Predicting, Reporting
from structpred.cli.own_code import made
from structpred.core.oracle import Labels
from structpred.core.own_code import raised
from structpred.errors import DataError, StructpredError
from structpred.io.predictions import label_rows
from structpred.models import DecisionModel, StructuredPredictor

if TYPE_CHECKING:
    from structpred.report.output_sections import Output

Reader = Callable[[str], tuple[Any, Any]]
_MOST_REASONS = 20


def reader_of(name: str) -> Reader:
    """The user's reader."""
    found: Reader = made(name, Callable, "my_module:read")  # type: ignore[arg-type]
    return found


def read(reader: Reader, name: str, path: str) -> tuple[list[Any], Any]:
    """What the reader gives for a file; DataError where it fails, or where that is no pair (X, y)."""
    try:
        found = reader(path)
    except (StructpredError, MemoryError):
        raise
    except Exception as error:
        raise DataError(f"{path}: --reader {name} failed: {raised(error)}") from error
    if not isinstance(found, tuple) or len(found) != 2:
        raise DataError(f"--reader {name}: expected a pair (X, y), y None where labels are not known, got {type(found).__name__}")
    return found


def read_labelled(reader: Reader, name: str, path: str) -> tuple[list[Any], Any]:
    """The same; DataError where there are no labels."""
    X, y = read(reader, name, path)
    if y is None:
        raise DataError(f"{path}: --reader {name} gives no labels (y is None), which are needed here")
    return X, y


def predict(model: StructuredPredictor | DecisionModel, asked: Predicting) -> None:
    """The labels of an instance on a line, separated by spaces; or one JSON object per instance."""
    X, _ = read(*asked_reader(asked), asked.data)
    found = [labels.tolist() for labels in model.predict(X)]
    if not asked.as_json:
        write_output(asked.output, label_rows(found))
        return
    entries: list[dict[str, Any]] = [{"labels": labels} for labels in found]
    if asked.marginals and isinstance(model, StructuredPredictor):
        for entry, row in zip(entries, model.predict_marginals(X), strict=True):
            entry["marginals"] = row.tolist()
    if asked.kbest is not None and isinstance(model, StructuredPredictor):
        for entry, best in zip(entries, model.predict_kbest(X, asked.kbest), strict=True):
            entry["kbest"] = [{"labels": labels.tolist(), "score": score} for labels, score in best]
    write_output(asked.output, "".join(f"{json.dumps(entry)}\n" for entry in entries))


def asked_reader(asked: Asked) -> tuple[Reader, str]:
    """The user's reader, and its name; a usage error where it is not named."""
    name = asked.own["reader"]
    if name is None:
        known = model_facts(asked.model)["reader"] or {}
        raise click.UsageError(f"name what reads DATA with --reader {known.get('reader', 'MODULE:FUNCTION')}: its code is run")
    return reader_of(name), name


def judged(model: StructuredPredictor, asked: Asked) -> dict[str, Any]:
    """The figures by name: n, the score of the model, and the share of outputs with all labels right."""
    X, y = read_labelled(*asked_reader(asked), asked.data)
    return _figures(model, X, y, model.predict(X))


def _figures(model: StructuredPredictor, X: list[Any], y: Any, predicted: Sequence[Labels]) -> dict[str, Any]:
    exact = float(np.mean([np.array_equal(one, other) for one, other in zip(predicted, y, strict=True)]))
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


def explained(model: StructuredPredictor, asked: Explaining) -> Explained:
    """Why one instance gets its labels."""
    X, _ = read(*asked_reader(asked), asked.data)
    i = asked.chosen(len(X))
    return Explained(f"instance {i}", model.explain(X[i], against=asked.runner_up("for structures of your own")))


def structure_facts(model: StructuredPredictor, path: str) -> Pairs:
    """Settings and training, as pairs of a name and a line for people."""
    facts = model_facts(path)
    known = facts["reader"] or {}
    data = f"read by {known['reader']}" if "reader" in known else "fitted in Python"
    named = "named" if model.feature_names_ is not None else "numbered"
    own = [("data", data), ("oracle", type(model.oracle).__name__), ("features", f"{model.n_features_in_}, {named}")]
    return described(facts, own)


def inspected(model: StructuredPredictor, asked: Inspecting) -> str:
    """Settings, certificate and weights, as text or as one JSON object."""
    weights = model.top_features(asked.top)
    return shown(model, asked, structure_facts(model, asked.model), {"weights": weights.to_dict()}, weights.table())


def page(model: StructuredPredictor, asked: Reporting) -> str:
    """A page: scores with DATA, certificate and training, the worst outputs and why, the strongest features."""
    from structpred.core.markup import join, tag
    from structpred.report import sections
    from structpred.report.contents import Stage
    from structpred.report.layout import large
    from structpred.report.output_sections import worst_outputs
    from structpred.report.page import html_page
    from structpred.report.training import training

    weights = model.top_features(asked.top)
    parts = [("Model", sections.facts(without_certificate(structure_facts(model, asked.model))))]
    worst: list[Output] = []
    if asked.data:
        X, y = read_labelled(*asked_reader(asked), asked.data)
        predicted = model.predict(X)
        found = _figures(model, X, y, predicted)
        note = tag("p", f"{asked.data}: {found['n']} instances.", class_="note")
        parts.append(("Scores", join(note, large(_shown(found)))))
        worst = _worst(model, X, y, predicted, asked.examples)
    parts += [
        ("Training", training([Stage(model.certificate_, model.history_)])),
        ("Worst outputs", worst_outputs(worst)),
        ("Strongest features", sections.two_lists(("raise the score", weights.positive), ("lower it", weights.negative))),
    ]
    return html_page(asked.title or asked.model, parts)


def _worst(model: StructuredPredictor, X: list[Any], y: Any, predicted: Sequence[Labels], n: int) -> list["Output"]:
    """The n outputs with most wrong labels, with what makes their score higher than that of the truth."""
    from structpred.report.output_sections import Output

    pairs = [(np.asarray(truth).tolist(), labels.tolist()) for truth, labels in zip(y, predicted, strict=True)]
    wrong = [sum(a != b for a, b in zip_longest(truth, found)) for truth, found in pairs]
    chosen = [i for i in np.argsort(-np.array(wrong), kind="stable").tolist() if wrong[i]][:n]
    outputs = []
    for i in chosen:
        why = model.explain(X[i], against=y[i])
        gold, found = ([str(label) for label in labels] for labels in pairs[i])
        reasons = [(f"{c.feature}, {c.label}", c.score) for c in why.strongest(_MOST_REASONS)]
        outputs.append(Output(f"instance {i}", gold, found, wrong[i], why.score, reasons))
    return outputs
