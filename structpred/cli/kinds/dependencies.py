"""Dependency parsers (DependencyParser) in the shell."""

from dataclasses import dataclass
from typing import ClassVar

import click

from structpred.cli.options import TREEBANK_FORMATS, Choice, InputFile, auto_or
from structpred.cli.rooms import Room
from structpred.cli.training_options import TrainingOptions, option

_RULES = click.Option(
    ["--rules"], type=Choice(("ud", "conllx", "conll07", "conll07-p")), default="ud", show_default=True,
    help="Parsers: which words are scored and when a relation is right; conll07-p leaves punctuation out.",
)  # fmt: skip
_PREDICT = [
    click.Option(
        ["--projective/--non-projective", "projective"], default=None,
        help="Parsers: the trees to search. Default: as in training.",
    ),
    click.Option(["--multi-root"], is_flag=True, help="Parsers: any number of words may depend on the root."),
]  # fmt: skip
_EVALUATE = [
    click.Option(
        ["--gold"], type=InputFile(), metavar="GOLD",
        help="Instead of MODEL and DATA: this treebank, and one with predictions (or a model).",
    ),
    _RULES,
    click.Option(["--intervals"], is_flag=True, help="Parsers: 95 % intervals, by a bootstrap over sentences."),
    click.Option(
        ["--against"], type=InputFile(), metavar="OTHER",
        help="Parsers: a paired test against another model, or a treebank with predictions.",
    ),
]  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Options(TrainingOptions):
    """The options of `train parser`, under their own names."""

    format: str | None = option("--format", **auto_or(TREEBANK_FORMATS), help="Format of the data; auto: what the lines show.")
    label_C: float = option(
        "--label-C", "label_C", metavar="X", default=0.02, show_default=True, type=click.FloatRange(0, min_open=True),
        help="The same as -C, for relations.",
    )  # fmt: skip
    projective: bool | None = option(
        "--projective/--non-projective", "projective", default=None,
        help="Only trees without crossing arcs, or any. Default: projective if less than one arc in a hundred crosses another.",
    )  # fmt: skip
    multi_root: bool = option(
        "--multi-root", is_flag=True, help="Any number of words may depend on the root; without this exactly one does."
    )
    order: int = option(
        "--order", type=click.IntRange(1, 2), default=1, show_default=True, metavar="N",
        help="2: trees are scored by siblings and grandparents, too: better, and some ten times slower.",
    )  # fmt: skip
    prune: int | None = option(
        "--prune", type=click.IntRange(1), metavar="K",
        help="Keep the K heads of each word that a first model scores highest. Default: all; 10 with --order 2.",
    )  # fmt: skip
    unlabelled: bool = option("--unlabelled", is_flag=True, help="Heads only, no relations.")
    max_bits: int = option(
        "--max-bits", default=18, show_default=True, type=click.IntRange(6, 28), metavar="N",
        help="A template has at most 2**N weights; features that share one are added up.",
    )  # fmt: skip
    templates: str | None = option(
        "--templates", metavar="FILE", help="Your own arc templates, one per line (h.upos m.upos | distance), # comments."
    )
    attributes: str | None = option(
        "--attributes", metavar="NAMES",
        help="What templates may look at, and parsed data must have: some of form,lemma,upos,xpos,feats. Default: all of TRAIN.",
    )  # fmt: skip
    conjunctions: bool = option(
        "--conjunctions", is_flag=True, help="The family of 507 conjunctions in place of the default templates."
    )


class Dependencies(Room):
    """Train a dependency parser on the treebank TRAIN: first the heads, all of a sentence together, then the relations.

    \b
    structpred train parser train.conllu --dev dev.conllu -o en.spz
    structpred train parser train.conllu --trainer bcfw --tol 0.02 --max-iter 100 -o certified.spz
    structpred train parser train.conllx --non-projective --multi-root -o cs.spz
    structpred train parser train.conllu --trainer lbfgs --shards 8 -o en.spz

    --max-iter counts passes for arcs, and as many for relations. Ctrl-C, SIGTERM or SIGHUP finishes the current step, writes the
    checkpoint and prints the command that continues the run.
    """

    name = "parser"
    summary = "Train a dependency parser."
    plural = "parsers"
    estimators = ("DependencyParser",)
    options: ClassVar = {
        "train": Options.own(), "predict": _PREDICT, "evaluate": _EVALUATE, "report": [_RULES],
        "explain": [
            click.Option(
                ["--word"], type=click.IntRange(1), metavar="N",
                help="Parsers: why has this word, counted from 1, its head and not another, or not that of --against?",
            )
        ],
    }  # fmt: skip
    refuses: ClassVar = {"train": ("strict",), "inspect": ("label",), "report": ("top",)}
    defaults: ClassVar = {"trainer": "mira", "trainer_shown": "mira", "C": 0.01, "score": "UAS"}
    one_value = ("format", "label_C")
    in_tuning: ClassVar = {"unlabelled": True}  # UAS decides, in which relations have no part
    sample = ("data.conllu", "1\tcats\t_\tNOUN\t_\t_\t2\tnsubj\t_\t_\n2\tsleep\t_\tVERB\t_\t_\t0\troot\t_\t_\n\n", ())
    place = "--word N, counted from 1"
    instead = "gold"
