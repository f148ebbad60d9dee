"""What `structpred inspect` and `report` say of a model of a structure of a user's own."""

from collections.abc import Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import numpy as np

from structpred.cli.facts import Learnt, Pairs, described
from structpred.cli.kinds.kind import Inspecting, Reporting
from structpred.cli.structures.reading import asked_reader, read_labelled
from structpred.cli.structures.results import judged_outputs
from structpred.core.oracle import Labels
from structpred.models import StructuredPredictor
from structpred.text.markup import Html

if TYPE_CHECKING:
    from structpred.report.contents import About
    from structpred.report.output_sections import Output

_MOST_REASONS = 20


def facts(model: StructuredPredictor, header: dict[str, Any]) -> Pairs:
    """Settings and training, as pairs of a name and a line for people."""
    features = f"{model.n_features_in_}, {'named' if model.feature_names_ is not None else 'numbered'}"
    return described(header, [("oracle", type(model.oracle).__name__), ("features", features)])


def learnt(model: StructuredPredictor, asked: Inspecting) -> Learnt:
    """The strongest weights."""
    weights = model.top_features(asked.top)
    return Learnt({"weights": weights.to_dict()}, weights.table())


def page(model: StructuredPredictor, asked: Reporting, about: "About") -> str:
    """Scores with DATA, certificate and training, the worst outputs and why, the strongest features."""
    from structpred.report.layout import headline
    from structpred.report.output_sections import worst_outputs
    from structpred.report.page import model_page
    from structpred.report.sections import two_lists

    weights, scores = model.top_features(asked.top), Html("")
    worst: list[Output] = []
    if asked.data:
        X, y = read_labelled(*asked_reader(asked), asked.data)
        predicted = model.predict(X)
        found = judged_outputs(model, X, y, predicted)
        scores = headline(f"{asked.data}: {found.figures['n']} instances.", found.main)
        worst = _worst(model, X, y, predicted, asked.examples)
    strongest = two_lists(("raise the score", weights.positive), ("lower it", weights.negative))
    return model_page(about, ("Scores", scores), ("Worst outputs", worst_outputs(worst)), ("Strongest features", strongest))


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
