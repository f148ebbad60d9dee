"""`structpred train multilabel`: its options; the work is in multilabel_training.py."""

from typing import Any

import click

from structpred.cli.options import LABEL_FORMATS, encoding_option, general_options
from structpred.cli.session import Session
from structpred.cli.trainer_options import trainer_options


class Edges(click.ParamType[str | int]):
    """``complete``, ``tree``, ``none`` or a number of pairs."""

    name = "edges"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str | int:
        """Parse the text; a usage error says what is expected."""
        text = str(value)
        if text in ("complete", "tree", "none"):
            return text
        if not (text.isascii() and text.isdecimal() and len(text) < 10):
            self.fail(f"expected complete, tree, none or a number of pairs, got {text!r}", param, ctx)
        return int(text)


@click.command(short_help="Train a multi-label classifier.")
@click.argument("data", metavar="TRAIN")
@click.option("-o", "--output", required=True, metavar="MODEL", help="The model file to write.")
@click.option("--format", type=click.Choice(LABEL_FORMATS), help="Format of the data; default: told from name and contents.")
@click.option(
    "--labels",
    metavar="XML|N",
    help="ARFF: the file that names the labels, or the last N attributes (-N: the first). Default: the XML beside TRAIN.",
)
@click.option("--zero-based", is_flag=True, help="LIBSVM: feature numbers begin at 0.")
@click.option(
    "--hierarchy",
    metavar="FILE",
    help="A line an edge, parent and child: labels are on only with their parents. CLUS data bring their own.",
)
@click.option(
    "--label-weights",
    type=click.Choice(("uniform", "depth", "sibling")),
    default="uniform",
    show_default=True,
    help="With a hierarchy: what a wrong label costs; depth: 0.75 to the power of its depth; sibling: shared out among children.",
)
@trainer_options("bcfw")
@click.option(
    "--C",
    "-C",
    "C",
    metavar="X",
    default=0.1,
    show_default=True,
    type=click.FloatRange(0, min_open=True),
    help="Weight of the training loss against the regulariser; perceptron ignores it.",
)
@click.option("--max-iter", default=50, show_default=True, type=click.IntRange(1), metavar="N", help="Passes over the data.")
@click.option(
    "--tol",
    metavar="X",
    default=0.01,
    show_default=True,
    type=click.FloatRange(0),
    help="Stop when gap <= tol * primal; 0: after max-iter passes.",
)
@click.option(
    "--check-every", default=10, show_default=True, type=click.IntRange(1), metavar="N", help="Passes between certificates."
)
@click.option(
    "--edges",
    type=Edges(),
    metavar="WHICH",
    help="Pairs of labels with weights of their own: complete, tree (the strongest correlations without a cycle), none, or the N "
    "most strongly correlated. Default: complete up to 16 labels, tree above.",
)
@click.option(
    "--bias", metavar="X", default=1.0, show_default=True, type=click.FloatRange(0), help="A constant feature; 0: none."
)
@click.option(
    "--scale",
    type=click.Choice(("standard", "maxabs")),
    help="Bring features to one size: mean 0 and variance 1, or the largest absolute value 1 (zeros stay zeros).",
)
@click.option("--dev", metavar="FILE", help="Held-out data: the weights with the best accuracy on it are kept.")
@click.option("--patience", type=click.IntRange(1), metavar="N", help="Stop after N passes without a better score on --dev.")
@click.option("--seed", metavar="N", default=0, show_default=True, type=click.IntRange(min=0), help="Seeds the order of visits.")
@click.option("--checkpoint", metavar="FILE", help="Default: MODEL.ckpt, removed once MODEL is written; a named one stays.")
@click.option("--resume", is_flag=True, help="Go on from the checkpoint of an interrupted run.")
@click.option("--strict", is_flag=True, help="Exit code 3 if the gap is not proven to be within --tol.")
@click.option("--json", "as_json", is_flag=True, help="Events of training as JSON lines on standard output.")
@encoding_option
@general_options
@click.pass_obj
def multilabel(session: Session, /, **values: Any) -> None:
    """Train a classifier that gives each example a set of labels, all labels together.

    \b
    structpred train multilabel yeast-train.arff --labels yeast.xml --surrogate slack -C 0.01 -o yeast.spz
    structpred train multilabel train.svm --edges 20 --dev dev.svm -o topics.spz
    structpred train multilabel enron_corr.arff -o enron.spz

    The last one is of a hierarchical file (CLUS): a label is on only if its parents are. Ctrl-C or SIGTERM finishes the step,
    writes the checkpoint and says how to go on.
    """
    from structpred.cli.multilabel_training import MultiLabelOptions, train_multilabel

    train_multilabel(MultiLabelOptions(**values), session)
