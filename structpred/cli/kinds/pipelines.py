"""Pipelines from words to trees (ParsingPipeline) in the shell."""

from dataclasses import dataclass
from typing import ClassVar

import click

from structpred.cli.kinds import dependencies
from structpred.cli.kinds.dependencies import Dependencies
from structpred.cli.rooms import Room
from structpred.cli.training_options import option


@dataclass(frozen=True, kw_only=True)
class Options(dependencies.Options):
    """The options of `train pipeline`, under their own names. attributes: what running text has, after the tagger."""

    attributes: str | None = "form,upos"
    jackknife: int = option(
        "--jackknife", default=10, show_default=True, type=click.IntRange(2), metavar="K",
        help="Parts of TRAIN: the parser learns from the tags that a tagger of the other parts gives to each.",
    )  # fmt: skip


class Pipelines(Room):
    """Train a tagger and a parser on the treebank TRAIN, which has tags (UPOS): MODEL takes running text.

    \b
    structpred train pipeline train.conllu -o en.spz
    structpred predict en.spz news.txt --text
    structpred evaluate en.spz test.conllu

    The parser looks at forms and tags alone; options of training are its own. Ctrl-C, SIGTERM or SIGHUP finishes the current
    step, writes the checkpoint and prints the command that continues the run, in a tagger or in the parser.
    """

    name = "pipeline"
    summary = "Train a tagger and a parser, for running text."
    plural = "pipelines"
    estimators = ("ParsingPipeline",)
    options: ClassVar = {**Dependencies.options, "train": Options.own()}
    refuses: ClassVar = {**Dependencies.refuses, "train": ("strict", "scheduler", "store", "store_every")}
    defaults = Dependencies.defaults
    one_value = (*Dependencies.one_value, "jackknife")
    in_tuning = Dependencies.in_tuning
    place = Dependencies.place
