"""Commands about a model file of any kind: each kind adds its options, and refuses those that are not for it; running text.

--text: DATA of a command are running text, of which a tokenizer makes words and the kind of model data.
"""

import copy
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from structpred.cli.kinds.kind import Asked, Kind, found_kinds
from structpred.cli.options import Command, given, refuse
from structpred.cli.own_code import made
from structpred.cli.session import Session
from structpred.errors import DataError, ModelFileError, ParameterError


class ModelCommand(click.Command):
    """A command with the options of all kinds of models: those that it shares, and those that a kind brings."""

    def of_kinds(self, kinds: Sequence[Kind]) -> "ModelCommand":
        """The same command with the options that these kinds bring."""
        command = copy.copy(self)
        own = {option.name: option for kind in kinds for option in kind.options.get(str(self.name), ())}
        command.params = [*self.params, *own.values()]
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """Run it. ModelFileError says so where the files of MODEL and DATA are swapped."""
        from structpred.storage.bundles import looks_like_bundle

        try:
            return super().invoke(ctx)
        except ModelFileError as error:
            other = ctx.params.get("data")
            if other in (None, "-") or looks_like_bundle(ctx.params["model"]) or not looks_like_bundle(other):
                raise
            raise ModelFileError(f"{error}; {other} looks like a model: the order is MODEL DATA") from None


def kinds_of(session: Session) -> tuple[Kind, ...]:
    """The kinds of this package, and the one that --kind named."""
    return (*found_kinds(), *([] if session.kind is None else [session.kind]))


def open_model(ctx: click.Context, path: str, values: Mapping[str, Any]) -> tuple[Any, Kind]:
    """The model of a file, and its kind. Raises ModelFileError if the file is not a model, or one without a kind.

    values: of the options; the oracle that --oracle names is given to a model whose file only names its oracle. Raises UsageError
    for options given that are not for models of this kind.
    """
    from structpred.cli.facts import model_facts
    from structpred.core.oracle import Oracle
    from structpred.models.files import load_estimator

    session: Session = ctx.obj
    if session.kind is not None:
        model, kind = session.kind.load(path), session.kind
    else:
        by_estimator = {estimator: kind for kind in found_kinds() for estimator in kind.estimators}
        name = values.get("oracle")
        oracle = None if name is None else made(name, Oracle, "my_module:Matching")
        try:
            model = load_estimator(path, *by_estimator, oracle=oracle)
        except ParameterError as error:  # another oracle than that of the training, or none
            known = (model_facts(path)["reader"] or {}).get("oracle", "MODULE:CLASS")
            raise click.UsageError(f"{str(error).partition(';')[0]}; name it with --oracle {known}: its code is run") from None
        kind = by_estimator[type(model).__name__]
    refuse_foreign(ctx, kind)
    return model, kind


def refuse_foreign(ctx: click.Context, kind: Kind) -> None:
    """Raise UsageError for options given that are not for models of this kind."""
    command = str(ctx.command.name)
    own = {option.name for option in kind.options.get(command, ())}
    foreign = {str(option.name) for other in kinds_of(ctx.obj) for option in other.options.get(command, ())} - own
    if command == "explain" and kind.place is not None:
        others = [other.place.split()[0].removeprefix("--") for other in kinds_of(ctx.obj) if other.place is not None]
        refuse(ctx, foreign.intersection(others), f"is not for {kind.plural}, which have {kind.place}")
    refuse(ctx, (*sorted(foreign), *kind.refuses.get(command, ())), f"is not for {kind.plural}")


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
    from tempfile import TemporaryDirectory

    from structpred.bridges.spacy import tokenized
    from structpred.io.text import read_text, source_name

    sentences = tokenized(read_text(asked.data, asked.reading.encoding), asked.own["language"])
    if not sentences:
        raise DataError(f"{source_name(asked.data)}: expected text with at least one word, got none")
    with TemporaryDirectory() as folder:
        path = Path(folder) / "words"
        path.write_text(kind.words_as_data(model, asked, sentences), encoding="utf-8")
        yield replace(asked, data=str(path), reading=asked.reading._replace(encoding="utf-8"))
