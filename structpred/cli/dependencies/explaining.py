"""What `structpred explain` does for parsers."""

from typing import TYPE_CHECKING

import click

from structpred.cli.dependencies.parsing import treebank_format
from structpred.cli.kinds.kind import RUNNER_UP, Explained, Explaining
from structpred.io.treebanks.reader import read_treebank

if TYPE_CHECKING:
    from structpred.models import DependencyParser


def explained(parser: "DependencyParser", asked: Explaining) -> Explained:
    """Why one sentence gets its tree; with --word against the best tree in which that word has another head."""
    reading, word, against = asked.reading, asked.own["word"], asked.against
    treebank = read_treebank(
        asked.data, treebank_format(reading.format), on_error=reading.on_error, check_trees=False, encoding=reading.encoding
    )
    sentence = treebank.take([asked.chosen(len(treebank))])
    other: int | str | None = against
    if against is not None and against != RUNNER_UP:
        if word is None or not (against.isascii() and against.isdecimal()):
            raise click.UsageError(f"--against {against}: expected {RUNNER_UP}, or with --word N the number of a head")
        other = int(against)
    return Explained(" ".join(sentence.forms), parser.explain(sentence, word, against=other))
