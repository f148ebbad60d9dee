"""What `structpred predict`, `evaluate` and `explain` do for structures of a user's own."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from structpred.cli.files import json_lines, write_output
from structpred.cli.kinds.kind import Asked, Explained, Explaining, Predicting, Scored
from structpred.cli.structures.reading import asked_reader, read, read_labelled
from structpred.core.oracle import Labels
from structpred.io.text import label_rows
from structpred.models import DecisionModel, StructuredPredictor

if TYPE_CHECKING:
    from structpred.distributed import Shards


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
    write_output(asked.output, json_lines(entries))


def scored(figures: dict[str, Any], main: list[tuple[str, str]]) -> Scored:
    """The figures of n instances; main: those for people."""
    return Scored(figures, "\n".join([f"{figures['n']} instances", *(f"{name:<22} {value}" for name, value in main)]), main)


def judged(model: StructuredPredictor, asked: Asked) -> Scored:
    """The number of instances, the score of the model, and the share of outputs with all labels right."""
    X, y = read_labelled(*asked_reader(asked), asked.data)
    return judged_outputs(model, X, y, model.predict(X))


def judged_outputs(model: StructuredPredictor, X: list[Any], y: Any, predicted: Sequence[Labels]) -> Scored:
    """The same of instances that were read, and of what is predicted for them."""
    exact = float(np.mean([np.array_equal(one, other) for one, other in zip(predicted, y, strict=True)]))
    score, scoring = model.score(X, y), model.scoring
    shown = f"{score:.4f}" if scoring == "loss" else f"{100 * score:.2f} %"
    main = [(f"score ({scoring or '1 - loss'})", shown), ("wholly right", f"{100 * exact:.2f} %")]
    return scored({"n": len(X), "score": score, "scoring": scoring, "exact": exact}, main)


def explain(model: StructuredPredictor, asked: Explaining) -> Explained:
    """Why one instance gets its labels."""
    X, _ = read(*asked_reader(asked), asked.data)
    i = asked.chosen(len(X))
    return Explained(f"instance {i}", model.explain(X[i], against=asked.runner_up("for structures of your own")))


def shards(model: StructuredPredictor, asked: Predicting, n: int) -> "Shards":
    """Parts of what the reader gives."""
    from structpred.cli.structures.shards import shards_of

    return shards_of(asked.data, n, asked_reader(asked)[1], labelled=False)
