"""`structpred train chain`: its options; the work is in training.py. `train parser` is in train_parser.py."""

from typing import Any

import click

from structpred.cli.options import FORMATS, Folds, encoding_option, general_options, on_error_option
from structpred.cli.session import Session
from structpred.cli.suggestions import SuggestingGroup
from structpred.cli.train_multilabel import multilabel
from structpred.cli.train_parser import parser
from structpred.cli.trainer_options import trainer_options


@click.group(cls=SuggestingGroup, short_help="Train a model.")
def train() -> None:
    """Train a model: chain labels sequences, parser finds dependency trees, multilabel gives sets of labels."""


train.add_command(parser)
train.add_command(multilabel)


@train.command(short_help="Train a sequence labeller.")
@click.argument("data", metavar="TRAIN")
@click.option("-o", "--output", required=True, metavar="MODEL", help="The model file to write.")
@click.option("--format", type=click.Choice(FORMATS), required=True, help="Format of the data.")
@click.option("--template", metavar="NAME|FILE", help="Features of column files: chunking, ner, pos, or a CRF++ template file.")
@click.option(
    "--label-column", type=int, default=-1, show_default=True, metavar="N", help="Column of the labels, from 0; -1 is the last."
)
@click.option("--folds", "--fold", "folds", type=Folds(), help="Train on these folds of OCR data only: 0, 1-9 or 0,3,5-7.")
@trainer_options("bcfw")
@click.option(
    "--constraints",
    type=click.Choice(("iob2", "iobes")),
    help="Only tag sequences that are valid under this scheme, kept in MODEL.",
)
@click.option(
    "--C",
    "-C",
    "C",
    metavar="X",
    default=1.0,
    show_default=True,
    type=click.FloatRange(0, min_open=True),
    help="Weight of the training loss against the regulariser; perceptron, pa and arow ignore it.",
)
@click.option(
    "--max-iter",
    default=10,
    show_default=True,
    type=click.IntRange(1),
    metavar="N",
    help="Passes over the data; lbfgs: iterations.",
)
@click.option(
    "--tol",
    metavar="X",
    default=0.0,
    show_default=True,
    type=click.FloatRange(0),
    help="Stop when gap <= tol * primal; 0: after max-iter passes.",
)
@click.option(
    "--check-every", default=10, show_default=True, type=click.IntRange(1), metavar="N", help="Passes between certificates."
)
@click.option("--min-count", default=1, show_default=True, type=click.IntRange(1), metavar="N", help="Leave rarer features out.")
@click.option("--n-bits", type=click.IntRange(1, 30), metavar="N", help="Hash features into 2**N ids; no names are kept.")
@click.option("--dev", metavar="FILE", help="Held-out data: the weights that do best on it are kept.")
@click.option(
    "--dev-fraction",
    metavar="X",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    help="Hold out this share of the sequences in TRAIN, drawn by --seed, in place of --dev.",
)
@click.option("--dev-folds", "--dev-fold", "dev_folds", type=Folds(), help="Only these folds of OCR data in --dev.")
@click.option(
    "--dev-metric", type=click.Choice(("token_accuracy", "f1")), default="token_accuracy", show_default=True, help="Best in what."
)
@click.option(
    "--patience", type=click.IntRange(1), metavar="N", help="Stop after N passes without a better score on held-out data."
)
@click.option(
    "--n-jobs", type=int, metavar="N", help="Threads for passes over all data; -1: all processors. Same result for any."
)
@click.option("--seed", metavar="N", default=0, show_default=True, type=click.IntRange(min=0), help="Seeds the order of visits.")
@click.option("--checkpoint", metavar="FILE", help="Default: MODEL.ckpt, removed once MODEL is written; a named one stays.")
@click.option("--resume", is_flag=True, help="Go on from the checkpoint of an interrupted run.")
@click.option("--strict", is_flag=True, help="Exit code 3 if the gap is not proven to be within --tol.")
@click.option("--json", "as_json", is_flag=True, help="Events of training as JSON lines on standard output.")
@on_error_option
@encoding_option
@general_options
@click.pass_obj
def chain(session: Session, /, **values: Any) -> None:
    """Train a first-order chain on the labelled sequences in TRAIN.

    \b
    structpred train chain train.txt --format conll2000 --template chunking -o chunk.spz --dev-fraction 0.1
    structpred train chain train.crfsuite --format crfsuite --trainer sgd -C 0.3 -o chunk.spz
    structpred train chain letter.data.gz --format ocr --folds 1-9 -o letters.spz

    Ctrl-C or SIGTERM finishes the step, writes the checkpoint and says how to go on.
    """
    from structpred.cli.training import TrainOptions, train_chain

    train_chain(TrainOptions(**values), session)
