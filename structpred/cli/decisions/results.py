"""What `structpred predict` and `evaluate` do for decision models."""

from structpred.cli.files import json_lines, write_output
from structpred.cli.kinds.kind import Asked, Predicting, Scored
from structpred.cli.structures import results as structures
from structpred.cli.structures.reading import asked_reader, read, read_labelled
from structpred.cli.structures.results import scored
from structpred.core.packing import has_points
from structpred.models import DecisionModel


def predict(model: DecisionModel, asked: Predicting) -> None:
    """The labels of each decision on a line, or as one JSON object; the amounts, where decisions are points."""
    if not has_points(model.oracle):
        return structures.predict(model, asked)
    X, _ = read(*asked_reader(asked), asked.data)
    found = [amounts.tolist() for amounts in model.predict_points(X)]
    lines = "".join(" ".join(f"{x:.12g}" for x in own) + "\n" for own in found)
    write_output(asked.output, json_lines({"amounts": own} for own in found) if asked.as_json else lines)


def judged(model: DecisionModel, asked: Asked) -> Scored:
    """The number of instances, the mean regret, the normalised one, and the score."""
    X, numbers = read_labelled(*asked_reader(asked), asked.data)
    found = model.regrets(X, **{"values" if model.maximises_ else "costs": numbers})
    figures = {"n": len(X), "mean_regret": found.mean, "normalised_regret": found.normalised, "score": 1.0 - found.normalised}
    return scored(figures, [("mean regret", f"{found.mean:.6g}"), ("normalised regret", f"{100 * found.normalised:.2f} %")])
