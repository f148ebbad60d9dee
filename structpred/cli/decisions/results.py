"""What the commands do with a decision model."""

from typing import TYPE_CHECKING, Any

from structpred.cli.facts import Learnt, Pairs, described
from structpred.cli.files import json_lines, write_output
from structpred.cli.kinds.kind import Asked, Scored
from structpred.cli.structures import results as structures
from structpred.cli.structures.data import read_asked
from structpred.core.packing import has_points
from structpred.models import DecisionModel
from structpred.text.markup import Html

if TYPE_CHECKING:
    from structpred.report.contents import About


def predict(model: DecisionModel, asked: Asked) -> None:
    """The labels of each decision on a line, or as one JSON object; the amounts, where decisions are points."""
    if not has_points(model.oracle):
        return structures.predict(model, asked)
    X, _ = read_asked(asked, labelled=False)
    found = [amounts.tolist() for amounts in model.predict_points(X)]
    lines = "".join(" ".join(f"{x:.12g}" for x in own) + "\n" for own in found)
    write_output(asked.output, json_lines({"amounts": own} for own in found) if asked.as_json else lines)


def judged(model: DecisionModel, asked: Asked) -> Scored:
    """The number of instances, the mean regret, the normalised one, and the score."""
    X, numbers = read_asked(asked)
    found = model.regrets(X, **{"values" if model.maximises_ else "costs": numbers})
    figures = {"n": len(X), "mean_regret": found.mean, "normalised_regret": found.normalised, "score": 1.0 - found.normalised}
    main = [("mean regret", f"{found.mean:.6g}"), ("normalised regret", f"{100 * found.normalised:.2f} %")]
    return structures.scored(figures, main)


def facts(model: DecisionModel, header: dict[str, Any]) -> Pairs:
    """Settings and training, as pairs of a name and a line for people."""
    own = [
        ("oracle", type(model.oracle).__name__), ("given", "values" if model.maximises_ else "costs"),
        ("features", f"{model.n_features_in_} {'a part' if model.per_part_ else 'an instance'}"),
    ]  # fmt: skip
    return described(header, own, goal="for the sake of decisions")


def learnt(model: DecisionModel, asked: Asked) -> Learnt:
    """Nothing beside the header and the facts."""
    return Learnt({})


def page(model: DecisionModel, asked: Asked, about: "About") -> str:
    """Certificate, training, and the regret with DATA."""
    from structpred.report.layout import headline
    from structpred.report.page import model_page

    found = judged(model, asked) if asked.data else None
    regret = Html("") if found is None else headline(f"{asked.data}: {found.figures['n']} instances", found.main)
    return model_page(about, ("Regret", regret))
