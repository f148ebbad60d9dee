"""Decision models (predict, then optimise) in the shell: an oracle and a reader, both named as MODULE:NAME."""

from typing import ClassVar

import click

from structpred.cli.kinds.structures import ORACLE, READER, REQUIRED
from structpred.cli.rooms import Room

_TRAIN = [
    *REQUIRED,
    click.Option(
        ["--loss", "criterion"], default="spo+", show_default=True, metavar="NAME",
        help="What predicted costs are trained for: spo+, perturbed, pg, hinge, ..., a loss over part scores.",
    ),
    click.Option(
        ["--trainer", "minimiser"], default="adam", show_default=True, metavar="NAME|MODULE:CLASS",
        help="adam: any loss. bcfw, one_slack, ...: spo+ and hinge, with a certificate. lbfgs, sgd, ...: smooth losses.",
    ),
    click.Option(["--maximise"], is_flag=True, help="The reader gives values, which are maximised, in place of costs."),
]  # fmt: skip


class DecisionModels(Room):
    """Train a DecisionModel on TRAIN: features, predicted costs, decision, trained for the decision's true cost.

    \b
    structpred train decision train.npz --oracle structpred.oracles.shortest_path:ShortestPathOracle --reader mine:read -o m.spz
    structpred evaluate m.spz test.npz --oracle structpred.oracles.shortest_path:ShortestPathOracle --reader mine:read

    The oracle finds the best decision (docs/howto/predict_then_optimise.md). The reader gets the name of a file and returns
    (X, costs): a list of Instance(features, shape), and an array with the true cost of each part for each of them.
    """

    name = "decision"
    summary = "Train a model of costs for the sake of decisions."
    plural = "decision models"
    estimators = ("DecisionModel",)
    options: ClassVar = {
        "train": _TRAIN,
        **{command: [ORACLE, READER] for command in ("predict", "evaluate", "explain", "report")},
        "inspect": [ORACLE],
    }
    refuses: ClassVar = {
        "train": (
            "trainer", "surrogate", "loss", "regulariser", "signs", "dev", "patience", "checkpoint", "resume", "n_jobs",
            "on_error",
        ),
        "predict": ("n_jobs", "kbest", "marginals", "format", "on_error", "encoding"),
        "evaluate": ("confusion", "per_type", "format", "on_error", "encoding"),
        "inspect": ("label", "top"),
        "report": ("examples", "top", "format", "on_error", "encoding"),
    }  # fmt: skip
    one_value = ("oracle", "reader", "criterion", "minimiser", "maximise")
