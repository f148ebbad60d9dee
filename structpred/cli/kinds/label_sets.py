"""Multi-label models (MultiLabelMRF, HierarchicalMultiLabel) in the shell."""

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar

import click
from click.core import ParameterSource

from structpred.cli.options import LABEL_FORMATS, Choice, auto_or
from structpred.cli.rooms import Room
from structpred.cli.training_options import TrainingOptions, option


def edges_of(value: str | int) -> str | int:
    """The type of --edges, ``complete``, ``tree``, ``none`` or a number of pairs; BadParameter says what is expected."""
    text = str(value)
    if text in ("complete", "tree", "none"):
        return text
    if not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise click.BadParameter(f"expected complete, tree, none or a number of pairs, got {text!r}")
    return int(text)


def gamma_of(value: str | float) -> str | float:
    """The type of --gamma, ``scale`` or a number above 0; BadParameter says what is expected."""
    with suppress(ValueError):
        if value == "scale" or 0.0 < float(value) < math.inf:
            return value if value == "scale" else float(value)
    raise click.BadParameter(f"expected scale or a number above 0, got {value!r}")


@dataclass(frozen=True, kw_only=True)
class Options(TrainingOptions):
    """The options of `train multilabel`, under their own names."""

    format: str | None = option(
        "--format", **auto_or(LABEL_FORMATS), help="Format of the data; auto: what name and contents show."
    )
    labels: str | None = option(
        "--labels", metavar="XML|N",
        help="ARFF: the file that names the labels, or the last N attributes (-N: the first). Default: the XML next to TRAIN.",
    )  # fmt: skip
    zero_based: bool = option("--zero-based", is_flag=True, help="LIBSVM: feature numbers begin at 0.")
    hierarchy: str | None = option(
        "--hierarchy", metavar="FILE",
        help="One edge per line, parent and child: a label is on only if its parents are. CLUS data bring their own.",
    )  # fmt: skip
    label_weights: str = option(
        "--label-weights", type=Choice(("uniform", "depth", "sibling")), default="uniform", show_default=True,
        help="With a hierarchy: the loss of a wrong label; depth: 0.75 to the power of its depth; sibling: split among children.",
    )  # fmt: skip
    require: str = option(
        "--require", type=Choice(("auto", "path", "node", "trees", "leaf", "none")), default="auto", show_default=True,
        help="With a hierarchy: what sets are, besides closed. path: one path from a root to a leaf; node: to any label; trees: "
        "in each tree to any label, or none; leaf: some leaf is on, in prediction; auto: the first that all of TRAIN is.",
    )  # fmt: skip
    edges: str | int | None = option(
        "--edges", type=edges_of, metavar="WHICH",
        help="Pairs of labels with weights of their own: complete, tree (the strongest correlations without a cycle), none, or "
        "the N most strongly correlated. Default: complete up to 16 labels, tree above.",
    )  # fmt: skip
    bias: float = option(
        "--bias", metavar="X", default=1.0, show_default=True, type=click.FloatRange(0), help="A constant feature; 0: none."
    )
    scale: str = option(
        "--scale", type=Choice(("auto", "standard", "maxabs", "none")), default="auto", show_default=True,
        help="Scale each feature: to mean 0 and variance 1, or to the largest absolute value 1 (zeros stay zeros). auto: where "
        "most entries of TRAIN are not zero maxabs, with --kernel standard; else none.",
    )  # fmt: skip
    kernel: str | None = option(
        "--kernel", type=Choice(("rbf", "polynomial")), help="Functions of a kernel between examples; C is 1 by default then."
    )
    gamma: str | float = option(
        "--gamma", type=gamma_of, metavar="scale|X", default="scale", show_default=True,
        help="Of the kernel; scale: 1 / (number of features times their variance).",
    )  # fmt: skip
    n_components: float = option(
        "--n-components", metavar="X", default=0.99, show_default=True, type=click.FloatRange(0, min_open=True),
        help="Of the kernel: as many columns as have this share of its trace; from 1 on: at most so many.",
    )  # fmt: skip
    threshold: str | None = option("--threshold", type=Choice(("f1",)), help="Of labels: the best for micro F1 on three folds.")


class LabelSets(Room):
    """Train a classifier that gives each example a set of labels, all labels together.

    \b
    structpred train multilabel yeast-train.arff --labels yeast.xml --surrogate slack -C 0.01 -o yeast.spz
    structpred train multilabel train.svm --edges 20 --dev dev.svm -o topics.spz
    structpred train multilabel enron_corr.arff -o enron.spz

    The last example has a hierarchical file (CLUS): a label is on only if its parents are. Ctrl-C, SIGTERM or SIGHUP finishes the
    current step, writes the checkpoint and prints the command that continues the run.
    """

    name = "multilabel"
    summary = "Train a multi-label classifier."
    plural = "multi-label models"
    estimators = ("MultiLabelMRF", "HierarchicalMultiLabel")
    options: ClassVar = {
        "train": Options.own(),
        "explain": [click.Option(["--label"], metavar="LABEL", help="Multi-label models: why is this label on, or off?")],
    }
    refuses: ClassVar = {
        "train": ("n_jobs", "on_error"),
        "predict": ("on_error", "kbest", "n_jobs"),
        "evaluate": ("confusion", "on_error"),
        "explain": ("on_error",),
        "report": ("on_error", "examples"),
    }
    lacks = ("rows", "signed_rows", "label_rows")
    place = "--label LABEL"
    one_value = ("format", "labels", "zero_based", "hierarchy")
    sample = (
        "data.arff",
        "@relation r\n@attribute x numeric\n@attribute a {0,1}\n@attribute b {0,1}\n@data\n1,0,1\n2,1,0\n",
        ("--labels", "2"),
    )
    defaults: ClassVar = {
        "trainer": None, "trainer_shown": "marginal_bcfw where it applies; log: oeg; slack, f1, subset: corrective; else bcfw",
        "C": 0.1, "max_iter": 50, "tol": 0.01, "score": "accuracy",
    }  # fmt: skip

    def completed(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """With a kernel C is another one where none is given: at 0.1 an RBF kernel is behind plain weights."""
        given = click.get_current_context().get_parameter_source("C") is not ParameterSource.DEFAULT
        return values if given or values["kernel"] is None else {**values, "C": 1.0}
