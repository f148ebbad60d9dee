"""--text: DATA of a command are running text, of which a tokenizer makes words and the kind of model data."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click

from structpred.cli.kinds.kind import Asked, Kind
from structpred.cli.options import Command, given, refuse


def text_options(command: Command) -> Command:
    """--text and --language."""
    flag = click.option(
        "--text", is_flag=True, help="DATA is running text: spaCy, if it is installed, finds words and sentences."
    )  # fmt: skip
    language = click.option(
        "--language", default="en", show_default=True, metavar="CODE",
        help="With --text: whose tokenizer; xx for that of no language in particular.",
    )  # fmt: skip
    return flag(language(command))


def check_text(ctx: click.Context, asked: Asked) -> None:
    """UsageError for options that go only with --text, or not with it."""
    if asked.own["text"]:
        refuse(ctx, ("label_column", "folds", "on_error"), "is not for --text")
    elif given(ctx, "language"):
        raise click.UsageError("--language needs --text")


@contextmanager
def words_of(kind: Kind, model: Any, asked: Asked) -> Iterator[Asked]:
    """What was asked, of the words of the text where that is what DATA are; DataError for a text without words."""
    if not asked.own["text"]:
        yield asked
        return
    from structpred.bridges.spacy import tokenized
    from structpred.errors import DataError
    from structpred.io.text import read_text, source_name

    sentences = tokenized(read_text(asked.data, asked.reading.encoding), asked.own["language"])
    if not sentences:
        raise DataError(f"{source_name(asked.data)}: expected text with at least one word, got none")
    with TemporaryDirectory() as folder:
        path = Path(folder) / "words"
        path.write_text(kind.words_as_data(model, asked, sentences), encoding="utf-8")
        yield replace(asked, data=str(path), reading=asked.reading._replace(encoding="utf-8"))
