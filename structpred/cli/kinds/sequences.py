"""Sequence labellers (ChainLabeler) in the shell."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import click

from structpred.cli.options import FORMATS, Choice, InputFile
from structpred.cli.options import folds as folds_of
from structpred.cli.rooms import Room
from structpred.cli.training_options import TrainingOptions, option

_LABEL_COLUMN = click.Option(
    ["--label-column"], type=int, metavar="N",
    help="Sequences: column of the labels, from 0; negative: from the end. Default: as in training.",
)  # fmt: skip
_FOLDS = click.Option(["--folds", "--fold", "folds"], type=folds_of, help="Only these folds of OCR data: 0, 1-9 or 0,3,5-7.")
_PHRASES = click.Option(
    ["--phrases"], is_flag=True,
    help="Sequences: phrases more probable than 0.5 in place of labels: sequence, first token, token after the last, label, "
    "probability, words. With --json beside the labels. Only for models trained with the log loss.",
)  # fmt: skip
_EVALUATE = [
    click.Option(
        ["--pred"], type=InputFile(), metavar="FILE",
        help="Instead of MODEL and DATA: a column file ending in gold and predicted label.",
    ),
    click.Option(
        ["--scheme"], type=Choice(("conlleval", "iob2", "iobes")), default="conlleval", show_default=True,
        help="Sequences: what counts as a phrase.",
    ),
    click.Option(["--per-label"], is_flag=True, help="Sequences: also print precision and recall of each label."),
    click.Option(
        ["--precision"], type=click.FloatRange(0, 1), metavar="P",
        help="Sequences: also print how reliable probabilities of phrases are, and from which one on this share is right.",
    ),
    click.Option(["--most-confused"], is_flag=True, help="Sequences: also print the most frequent confusions, with examples."),
]  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Options(TrainingOptions):
    """The options of `train chain`, under their own names."""

    format: str = option(
        "--format", type=Choice(("auto", *FORMATS)), default="auto", show_default=True,
        help="Format of the data; auto: what the first lines show.",
    )  # fmt: skip
    template: str | None = option(
        "--template", metavar="NAME|FILE", default="auto", show_default=True,
        help="Features of columns: chunking, crfsuite, ner, pos, or a CRF++ template file; auto: what fits columns and labels.",
    )  # fmt: skip
    label_column: int = option(
        "--label-column", type=int, default=-1, show_default=True, metavar="N",
        help="Column of the labels, from 0; -1 is the last.",
    )  # fmt: skip
    folds: tuple[int, ...] | None = option(
        "--folds", "--fold", "folds", type=folds_of, help="Train on these folds of OCR data only: 0, 1-9 or 0,3,5-7."
    )
    constraints: str | None = option(
        "--constraints", type=Choice(("iob1", "iob2", "iobes")),
        help="Only tag sequences that are valid under this scheme, kept in MODEL.",
    )  # fmt: skip
    coding: str | None = option(
        "--coding", type=Choice(("none", "iob1", "iob2", "iobes", "auto")),
        help="The scheme of phrases inside MODEL, which answers in that of TRAIN; none: the same; auto: by folds of TRAIN. "
        "Default: iobes for IOB2 where phrases cover most tokens, without --signs.",
    )  # fmt: skip
    stages: int = option(
        "--stages", type=click.IntRange(1, 2), default=1, show_default=True, metavar="N",
        help="2: a second labeler sees what a first one says of the token, its neighbours and its word in the document.",
    )  # fmt: skip
    missing: str = option(
        "--missing", default="_", show_default=True, metavar="TEXT",
        help="The label of tokens whose label is not known; '' for none.",
    )  # fmt: skip
    min_count: int = option(
        "--min-count", default=1, show_default=True, type=click.IntRange(1), metavar="N", help="Leave out rarer features."
    )
    n_bits: int | None = option(
        "--n-bits", type=click.IntRange(1, 30), metavar="N", help="Hash features into 2**N ids; no names are kept."
    )
    fit_intercept: bool = option(
        "--fit-intercept/--no-intercept", default=True, show_default=True,
        help="Pixels: a constant feature beside them; named features never have one.",
    )  # fmt: skip
    dev_fraction: float | None = option(
        "--dev-fraction", metavar="X", type=click.FloatRange(0, 1, min_open=True, max_open=True),
        help="Hold out this share of the sequences in TRAIN, drawn by --seed, in place of --dev.",
    )  # fmt: skip
    dev_folds: tuple[int, ...] | None = option(
        "--dev-folds", "--dev-fold", "dev_folds", type=folds_of, help="Only these folds of OCR data in --dev."
    )
    dev_metric: str = option(
        "--dev-metric", type=Choice(("auto", "token_accuracy", "f1")), default="auto", show_default=True,
        help="Score that selects the weights to keep; auto: f1, of phrases, where labels follow a scheme (B-X, I-X).",
    )  # fmt: skip


class Sequences(Room):
    """Train a first-order chain on the labelled sequences in TRAIN.

    \b
    structpred train chain train.txt -o names.spz
    structpred train chain train.txt --format conll2000 --template chunking -o chunk.spz --dev-fraction 0.1
    structpred train chain train.crfsuite --trainer sgd -C 0.3 -o chunk.spz
    structpred train chain letter.data.gz --format ocr --folds 1-9 -o letters.spz

    Ctrl-C, SIGTERM or SIGHUP finishes the current step, writes the checkpoint and prints the command that continues the run.
    """

    name = "chain"
    summary = "Train a sequence labeller."
    plural = "sequence labellers"
    estimators = ("ChainLabeler", "KernelChainLabeler", "GaussianProcessLabeler")
    defaults: ClassVar = {"C": 0.3}
    options: ClassVar = {
        "train": Options.own(),
        "predict": [_PHRASES, _LABEL_COLUMN, _FOLDS],
        "evaluate": [*_EVALUATE, _LABEL_COLUMN, _FOLDS],
        "inspect": [click.Option(["--picture"], metavar="FILE", help="Sequences: draw the transitions, too: a .png or .svg.")],
        "explain": [
            click.Option(
                ["--position"], type=click.IntRange(0), metavar="N",
                help="Sequences: why has this token, counted from 0, its label and not another, or not the one of --against?",
            ),
            _LABEL_COLUMN,
            _FOLDS,
        ],
        "report": [_LABEL_COLUMN, _FOLDS],
    }  # fmt: skip
    one_value = ("format", "label_column", "folds", "dev_fraction", "dev_folds", "dev_metric", "stages")
    in_tuning: ClassVar = {"stages": 1}  # what is best for one is taken for two
    sample = (
        "data.txt",
        "a DT B-NP\ncat NN I-NP\n\ncats NNS B-NP\nsleep VB B-VP\n",
        ("--format", "conll2000", "--template", "chunking"),
    )
    place = "--position N, counted from 0"
    instead = "pred"

    def completed(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Format, templates and score where they are auto."""
        return self._work("training").completed(values)
