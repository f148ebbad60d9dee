"""Options that several commands have, the kinds of values they take, the file that can hold all, and names that are mistyped."""

import os
import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

import click
from click.core import ParameterSource

from structpred.cli.session import Session
from structpred.errors import DataError, ParameterError
from structpred.text.suggestions import did_you_mean, synonym

#: those of structpred.io, which takes long to load
FORMATS = ("conll2003", "conll2000", "columns", "jsonl", "crfsuite", "ocr")
TREEBANK_FORMATS = ("conllu", "conllx", "conll2008", "conll2009")
LABEL_FORMATS = ("arff", "libsvm", "npz", "clus", "clus-dag")
Command = TypeVar("Command", bound=Callable[..., Any])
Makers = Callable[[click.Context], Mapping[str, Callable[[], click.Command]]]


class SuggestingGroup(click.Group):
    """A group that makes its commands when they are used, and answers an unknown one with the nearest known one, or with all.

    makers: (a context) -> the commands by name, each as what makes it.
    """

    def __init__(self, *args: Any, makers: Makers, **attrs: Any) -> None:
        super().__init__(*args, **attrs)
        self.makers = makers

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Their names."""
        return list(self.makers(ctx))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name."""
        maker = self.makers(ctx).get(cmd_name)
        return None if maker is None else maker()

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        """The command of the first argument. Raises UsageError for an unknown one."""
        name, known = args[0], self.list_commands(ctx)
        if not name.startswith("-") and name not in known:
            hint = did_you_mean(name, known) or f"; say which: {', '.join(known)}"
            raise click.UsageError(f"there is no command {name!r} of {ctx.command_path!r}{hint}", ctx)
        return super().resolve_command(ctx, args)


class Choice(click.Choice[str]):
    """One of some names; the error for another name suggests the nearest."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The name. Raises BadParameter for an unknown one."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            hint = synonym(str(getattr(param, "name", "")), value) or did_you_mean(str(value), self.choices)
            raise click.BadParameter(error.message.rstrip(".") + hint, ctx, param) from None


class InputFile(click.ParamType[str]):
    """A file that is read, or - for standard input: looked for with the command line, before anything expensive is imported.

    Raises DataError where there is none, or where it cannot be read.
    """

    name = "file"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The name, if the file can be read."""
        path = str(value)
        if path == "-":
            return path
        option = isinstance(param, click.Option)
        name = "" if param is None else param.opts[0] if option else param.metavar or str(param.name).upper()
        if not os.path.exists(path):
            raise DataError(f"{name} {path}: there is no such file")
        if os.path.isdir(path):
            raise DataError(f"{name} {path}: expected a file, got a folder")
        if not os.access(path, os.R_OK):  # not opened: a pipe would notice
            raise DataError(f"{name} {path}: cannot be read: permission denied")
        return path


def folds(value: str | tuple[int, ...]) -> tuple[int, ...]:
    """The type of folds as in ``0``, ``1-9`` or ``0,3,5-7``; BadParameter says what is expected."""
    if isinstance(value, tuple):
        return value
    found: set[int] = set()
    for piece in value.split(","):
        first, dash, last = piece.strip().partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()) or int(first) > int(last or first) or len(piece) > 9:
            raise click.BadParameter(f"expected folds such as 0, 1-9 or 0,3,5-7, got {value!r}")
        found.update(range(int(first), int(last or first) + 1))
    return tuple(sorted(found))


def general_options(command: Command) -> Command:
    """--config, --quiet and -v, which every command has."""
    config = click.option(
        "--config", metavar="FILE", is_eager=True, expose_value=False, callback=_apply_config,
        help="A TOML file with any of these options: max-iter = 20. The command line wins.",
    )  # fmt: skip
    quiet = click.option(
        "--quiet", "-q", is_flag=True, expose_value=False, callback=_set_loudness,
        help="Only warnings and errors on standard error.",
    )  # fmt: skip
    verbose = click.option(
        "--verbose", "-v", count=True, expose_value=False, callback=_set_loudness, help="More on standard error; -vv: tracebacks."
    )
    return config(quiet(verbose(command)))


class Reading(NamedTuple):
    """How data are read: what `reading_options` gives to a command, under the same names."""

    format: str | None = None
    encoding: str = "utf-8"
    on_error: Literal["raise", "skip"] = "raise"


def auto_or(names: Iterable[str]) -> dict[str, Any]:
    """What an option --format takes besides its help: one of these names, or "auto", the default, which gives None."""
    return {
        "type": Choice(("auto", *names)), "default": "auto", "show_default": True,
        "callback": lambda ctx, param, value: None if value == "auto" else value,
    }  # fmt: skip


def known_encoding(ctx: click.Context, param: click.Parameter, value: str) -> str:
    """The name, if it is that of a text encoding; else BadParameter."""
    from structpred.io.opening import checked_encoding

    try:
        checked_encoding(value)
    except ParameterError as error:
        raise click.BadParameter(str(error).removeprefix("encoding: "), ctx, param) from None
    return value


encoding_option = click.option(
    "--encoding", default="utf-8", show_default=True, metavar="NAME", callback=known_encoding,
    help="Encoding of the data files, such as latin-1. What is written is UTF-8.",
)  # fmt: skip
on_error_option = click.option(
    "--on-error", type=Choice(("raise", "skip")), default="raise", show_default=True,
    help="Sequences that cannot be read: stop at the first, or leave them out and say how many.",
)  # fmt: skip


def reading_options(command: Command) -> Command:
    """How data are read: by default as the model says; see Reading."""
    kind = click.option(
        "--format", **auto_or(FORMATS + TREEBANK_FORMATS + LABEL_FORMATS),
        help="Format of DATA; auto: that of the training data, or for treebanks and multi-label data what the file shows.",
    )  # fmt: skip
    return kind(on_error_option(encoding_option(command)))


def shard_options(data: str, what: str) -> Callable[[Command], Command]:
    """--shards and --scheduler. data: the argument that is cut. what: is done with the pieces."""
    shards = click.option(
        "--shards", type=click.IntRange(1), metavar="N",
        help=f"Cut {data}, a plain file, into N pieces, which processes here, or of --scheduler, {what}.",
    )  # fmt: skip
    scheduler = click.option(
        "--scheduler", metavar="ADDRESS",
        help="With --shards: the dask scheduler of a cluster that sees these files, tcp://HOST:PORT or tls://HOST:PORT.",
    )  # fmt: skip
    return lambda command: shards(scheduler(command))


def given(ctx: click.Context, name: str) -> bool:
    """Whether this option, by the name of its value, was given on the command line."""
    return ctx.get_parameter_source(name) == ParameterSource.COMMANDLINE


def refuse(ctx: click.Context, names: Iterable[str], reason: str) -> None:
    """Raise UsageError if one of these options, by the names of their values, was given on the command line."""
    options = {option.name: option for option in ctx.command.params}
    for name in names:
        if given(ctx, name):
            raise click.UsageError(f"{options[name].opts[0]} {reason}", ctx)


def _set_loudness(ctx: click.Context, param: click.Parameter, value: bool | int) -> None:
    session = ctx.ensure_object(Session)
    setattr(session, str(param.name), value)  # quiet or verbose
    session.start_logging()


def _apply_config(ctx: click.Context, param: click.Parameter, path: str | None) -> None:
    """Make the file's values the defaults of this command, after checking every one of them."""
    if path is None:
        return
    options = {
        name.removeprefix("--"): option
        for option in ctx.command.params
        if isinstance(option, click.Option) and option.name != "config"
        for name in option.opts
        if name.startswith("--")
    }
    try:
        given = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise click.UsageError(f"{path}: cannot be read: {error.strerror}", ctx) from None
    except ValueError as error:  # not TOML, or not UTF-8
        raise click.UsageError(f"{path}: not a TOML file: {error}", ctx) from None
    values: dict[str, Any] = {}
    for key, value in given.items():
        name = key.replace("_", "-")
        if name not in options:
            hint = did_you_mean(name, options) or f"; known keys: {', '.join(sorted(options))}"
            raise click.UsageError(f"{path}: unknown key {key!r}{hint}", ctx)
        option = options[name]
        assert option.name is not None
        if option.name in values:
            raise click.UsageError(f"{path}: {key!r} is given twice, in two spellings", ctx)
        values[option.name] = _checked(path, key, value, option, ctx)
    ctx.default_map = {**(ctx.default_map or {}), **values}


def _checked(path: str, key: str, value: Any, option: click.Option, ctx: click.Context) -> Any:
    """The value as the command line would have it. Flags take true and false only; nothing is rounded or guessed."""
    if option.is_flag:
        if not isinstance(value, bool):
            raise click.UsageError(f"{path}: {key}: expected true or false, got {value!r}", ctx)
        return value
    if isinstance(value, list) and isinstance(option.type, click.types.FuncParamType):  # numbers separated by commas
        value = ",".join(map(str, value))
    several = value if isinstance(value, list) and option.multiple else [value]
    for one in several:
        if isinstance(one, bool) or not isinstance(one, str | int | float):
            raise click.UsageError(f"{path}: {key}: expected one value, a number or a string, got {one!r}", ctx)
    try:
        found = [option.type.convert(str(one), option, ctx) for one in several]
        return found if option.multiple else found[0]
    except click.BadParameter as error:
        raise click.UsageError(f"{path}: {key}: {error.message}", ctx) from None
