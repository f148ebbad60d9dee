"""Decision models (predict, then optimise) in the shell: an oracle and a reader, both named as MODULE:NAME."""

from dataclasses import dataclass
from typing import ClassVar

from structpred.cli.kinds.structures import ORACLE, READER, Structures, required
from structpred.cli.rooms import Room
from structpred.cli.training_options import TrainingOptions, option


@dataclass(frozen=True, kw_only=True)
class Options(TrainingOptions):
    """The options of `train decision`, under their own names."""

    oracle: str = required(ORACLE)
    reader: str = required(READER)
    criterion: str = option(
        "--loss", "criterion", default="spo+", show_default=True, metavar="NAME",
        help="What predicted costs are trained for: spo+, perturbed, pg, hinge, ..., a loss over part scores.",
    )  # fmt: skip
    minimiser: str = option(
        "--trainer", "minimiser", default="adam", show_default=True, metavar="NAME|MODULE:CLASS",
        help="adam: any loss. bcfw, one_slack, ...: spo+ and hinge, with a certificate. lbfgs, sgd, ...: smooth losses.",
    )  # fmt: skip
    maximise: bool = option("--maximise", is_flag=True, help="The reader gives values, which are maximised, in place of costs.")


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
    options: ClassVar = {**Structures.options, "train": Options.own()}
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
