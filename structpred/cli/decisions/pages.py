"""What `structpred inspect` and `report` say of a decision model."""

from typing import TYPE_CHECKING, Any

from structpred.cli.decisions.results import judged
from structpred.cli.facts import Learnt, Pairs, described
from structpred.cli.kinds.kind import Inspecting, Reporting
from structpred.models import DecisionModel
from structpred.text.markup import Html

if TYPE_CHECKING:
    from structpred.report.contents import About


def facts(model: DecisionModel, header: dict[str, Any]) -> Pairs:
    """Settings and training, as pairs of a name and a line for people."""
    own = [
        ("oracle", type(model.oracle).__name__), ("given", "values" if model.maximises_ else "costs"),
        ("features", f"{model.n_features_in_} {'a part' if model.per_part_ else 'an instance'}"),
    ]  # fmt: skip
    return described(header, own, goal="for the sake of decisions")


def learnt(model: DecisionModel, asked: Inspecting) -> Learnt:
    """Nothing beside the header and the facts."""
    return Learnt({})


def page(model: DecisionModel, asked: Reporting, about: "About") -> str:
    """Certificate, training, and the regret with DATA."""
    from structpred.report.layout import headline
    from structpred.report.page import model_page

    found = judged(model, asked) if asked.data else None
    regret = Html("") if found is None else headline(f"{asked.data}: {found.figures['n']} instances", found.main)
    return model_page(about, ("Regret", regret))
