"""What the commands do with a model of a structure of a user's own."""

from collections.abc import Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import numpy as np

from structpred.cli.facts import Learnt, Pairs, described
from structpred.cli.files import json_lines, write_output
from structpred.cli.kinds.kind import Asked, Explained, Scored
from structpred.cli.structures.data import read_asked, reader_asked
from structpred.core.oracle import Labels
from structpred.io.text import label_rows
from structpred.models import DecisionModel, StructuredPredictor
from structpred.text.markup import Html

if TYPE_CHECKING:
    from structpred.distributed import Shards
    from structpred.report.contents import About

_MOST_REASONS = 20


def predict(model: StructuredPredictor | DecisionModel, asked: Asked) -> None:
    """The labels of an instance on a line, separated by spaces; or one JSON object per instance."""
    X, _ = read_asked(asked, labelled=False)
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


def shards(model: StructuredPredictor, asked: Asked, n: int) -> "Shards":
    """Parts of what the reader gives."""
    from structpred.cli.structures.shards import shards_of

    return shards_of(asked.data, n, reader_asked(asked), labelled=False)


def scored(figures: dict[str, Any], main: list[tuple[str, str]]) -> Scored:
    """The figures of n instances; main: those for people."""
    return Scored(figures, "\n".join([f"{figures['n']} instances", *(f"{name:<22} {value}" for name, value in main)]), main)


def judged(model: StructuredPredictor, asked: Asked) -> Scored:
    """The number of instances, the score of the model, and the share of outputs with all labels right."""
    X, y = read_asked(asked)
    return _judged_outputs(model, X, y, model.predict(X))


def _judged_outputs(model: StructuredPredictor, X: list[Any], y: Any, predicted: Sequence[Labels]) -> Scored:
    exact = float(np.mean([np.array_equal(one, other) for one, other in zip(predicted, y, strict=True)]))
    score, scoring = model.score(X, y), model.scoring
    shown = f"{score:.4f}" if scoring == "loss" else f"{100 * score:.2f} %"
    main = [(f"score ({scoring or '1 - loss'})", shown), ("wholly right", f"{100 * exact:.2f} %")]
    return scored({"n": len(X), "score": score, "scoring": scoring, "exact": exact}, main)


def explain(model: StructuredPredictor, asked: Asked) -> Explained:
    """Why one instance gets its labels."""
    X, _ = read_asked(asked, labelled=False)
    i = asked.chosen(len(X))
    return Explained(f"instance {i}", model.explain(X[i], against=asked.runner_up("for structures of your own")))


def facts(model: StructuredPredictor, header: dict[str, Any]) -> Pairs:
    """Settings and training, as pairs of a name and a line for people."""
    features = f"{model.n_features_in_}, {'named' if model.feature_names_ is not None else 'numbered'}"
    return described(header, [("oracle", type(model.oracle).__name__), ("features", features)])


def learnt(model: StructuredPredictor, asked: Asked) -> Learnt:
    """The strongest weights."""
    weights = model.top_features(asked.top)
    return Learnt({"weights": weights.to_dict()}, weights.table())


def page(model: StructuredPredictor, asked: Asked, about: "About") -> str:
    """Scores with DATA, certificate and training, the worst outputs and why, the strongest features."""
    from structpred.report.example_views import Output, worst_outputs
    from structpred.report.layout import headline, two_lists
    from structpred.report.page import model_page

    weights, scores = model.top_features(asked.top), Html("")
    worst: list[Output] = []
    if asked.data:
        X, y = read_asked(asked)
        predicted = model.predict(X)
        found = _judged_outputs(model, X, y, predicted)
        scores = headline(f"{asked.data}: {found.figures['n']} instances.", found.main)
        # the outputs with most wrong labels, with what makes their score higher than that of the truth
        pairs = [(np.asarray(truth).tolist(), labels.tolist()) for truth, labels in zip(y, predicted, strict=True)]
        wrong = [sum(a != b for a, b in zip_longest(truth, labels)) for truth, labels in pairs]
        for i in [i for i in np.argsort(-np.array(wrong), kind="stable").tolist() if wrong[i]][: asked.examples]:
            why = model.explain(X[i], against=y[i])
            gold, given = ([str(label) for label in labels] for labels in pairs[i])
            reasons = [(f"{c.feature}, {c.label}", c.score) for c in why.strongest(_MOST_REASONS)]
            worst.append(Output(f"instance {i}", gold, given, wrong[i], why.score, reasons))
    strongest = two_lists(("raise the score", weights.positive), ("lower it", weights.negative))
    return model_page(about, ("Scores", scores), ("Worst outputs", worst_outputs(worst)), ("Strongest features", strongest))
