"""`structpred train parser`: its options; the work is in parser_training.py."""

from typing import Any

import click

from structpred.cli.options import TREEBANK_FORMATS, encoding_option, general_options, on_error_option
from structpred.cli.session import Session
from structpred.cli.trainer_options import trainer_options


@click.command(short_help="Train a dependency parser.")
@click.argument("data", metavar="TRAIN")
@click.option("-o", "--output", required=True, metavar="MODEL", help="The model file to write.")
@click.option("--format", type=click.Choice(TREEBANK_FORMATS), help="Format of the data; default: told from the lines.")
@trainer_options("mira")
@click.option(
    "--C",
    "-C",
    "C",
    metavar="X",
    default=0.01,
    show_default=True,
    type=click.FloatRange(0, min_open=True),
    help="Weight of the training loss of arcs against the regulariser; perceptron, pa and arow ignore it.",
)
@click.option(
    "--label-C",
    "label_C",
    metavar="X",
    default=0.02,
    show_default=True,
    type=click.FloatRange(0, min_open=True),
    help="The same for relations.",
)
@click.option(
    "--max-iter",
    default=10,
    show_default=True,
    type=click.IntRange(1),
    metavar="N",
    help="Passes over the data for arcs, and as many for relations; lbfgs: iterations.",
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
@click.option(
    "--projective/--non-projective",
    "projective",
    default=None,
    help="Only trees without crossing arcs, or any. Default: projective where less than one arc in a hundred crosses another.",
)
@click.option("--multi-root", is_flag=True, help="Any number of words may hang on the root; without this exactly one does.")
@click.option(
    "--prune", type=click.IntRange(1), metavar="K", help="Keep the K heads of each word that a cheap first model likes best."
)
@click.option("--unlabelled", is_flag=True, help="Heads only, no relations.")
@click.option(
    "--max-bits",
    default=18,
    show_default=True,
    type=click.IntRange(6, 28),
    metavar="N",
    help="A template has at most 2**N weights; those that share one are added up.",
)
@click.option("--templates", metavar="FILE", help="Arc templates of your own, one a line (h.upos m.upos | distance), # comments.")
@click.option("--conjunctions", is_flag=True, help="The family of 507 conjunctions in place of the default templates.")
@click.option("--dev", metavar="FILE", help="A held-out treebank: the arc weights with the best UAS on it are kept.")
@click.option("--patience", type=click.IntRange(1), metavar="N", help="Stop after N passes without a better UAS on --dev.")
@on_error_option
@click.option(
    "--n-jobs", type=int, metavar="N", help="Threads for passes over all data; -1: all processors. Same result for any."
)
@click.option("--seed", metavar="N", default=0, show_default=True, type=click.IntRange(min=0), help="Seeds the order of visits.")
@click.option("--checkpoint", metavar="FILE", help="Default: MODEL.ckpt, removed once MODEL is written; a named one stays.")
@click.option("--resume", is_flag=True, help="Go on from the checkpoint of an interrupted run.")
@click.option("--json", "as_json", is_flag=True, help="Events of training as JSON lines on standard output.")
@encoding_option
@general_options
@click.pass_obj
def parser(session: Session, /, **values: Any) -> None:
    """Train a dependency parser on the treebank TRAIN: first the heads, all of a sentence together, then the relations.

    \b
    structpred train parser train.conllu --dev dev.conllu -o en.spz
    structpred train parser train.conllu --trainer bcfw --tol 0.02 --max-iter 100 -o certified.spz
    structpred train parser train.conllx --non-projective --multi-root -o cs.spz

    Ctrl-C or SIGTERM finishes the step, writes the checkpoint and says how to go on.
    """
    from structpred.cli.parser_training import ParserOptions, train_parser

    train_parser(ParserOptions(**values), session)
