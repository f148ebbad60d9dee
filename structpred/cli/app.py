"""Entry point: maps outcomes to exit codes, and errors to one line on stderr."""

import atexit
import gc
import importlib
import os
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from functools import partial
from typing import NoReturn

import click

from structpred.cli.kinds.kind import Kind
from structpred.cli.model_command import ModelCommand, kinds_of
from structpred.cli.options import SuggestingGroup
from structpred.cli.own_code import made
from structpred.cli.session import EXIT_DATA, EXIT_PIPE, EXIT_USAGE, Session, Stop, interrupted
from structpred.errors import ParameterError, StructpredError
from structpred.runtime.interrupts import hear
from structpred.runtime.standard_error import say
from structpred.text.suggestions import synonym

#: the commands, in the order of a user's work; file -> those in it that have none of their own. It is loaded when one is called
COMMANDS = (
    "train", "predict", "evaluate", "inspect", "explain", "prune", "export", "import", "report", "validate", "clusters", "curve",
    "tune", "bench", "check-oracle", "demo", "warmup", "doctor",
)  # fmt: skip
_SHARED = {"predict": ("evaluate", "report"), "prune": ("export",), "own_code": ("check-oracle",)}


def _commands(ctx: click.Context) -> dict[str, Callable[[], click.Command]]:
    """All commands; they are imported when they are used."""
    return {name: partial(_loaded, ctx.ensure_object(Session), name) for name in COMMANDS}


def _loaded(session: Session, name: str) -> click.Command:
    own = "import_model" if name == "import" else name.replace("-", "_")  # import is a word of Python's
    file = next((file for file, names in _SHARED.items() if name in names), own)
    command: click.Command = getattr(importlib.import_module(f"structpred.cli.{file}"), own)
    return command.of_kinds(kinds_of(session)) if isinstance(command, ModelCommand) else command


def _set_kind(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
    if value is not None:
        ctx.ensure_object(Session).kind = made(value, Kind, "my_package.ranking:Rankings")


@click.command(
    "structpred", cls=SuggestingGroup, makers=_commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)  # fmt: skip
@click.option(
    "--kind", metavar="MODULE:CLASS", expose_value=False, callback=_set_kind,
    help="Your own kind of model (its code is run): adds a command to train; other commands read MODEL as this kind.",
)  # fmt: skip
@click.version_option(package_name="structpred", message="structpred %(version)s")
def program() -> None:
    """Structured prediction: train, apply and evaluate models of sequences, of dependency trees and of sets of labels.

    Data files may be gzip-compressed; - is standard input or output. Results go to standard output, everything else to standard
    error. Exit codes: 0 done, 1 bad data or files, 2 wrong usage, 3 not converged (--strict), 130 interrupted.
    """


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the program and end the process with its exit code. arguments: those of the process if None."""
    session = Session(tuple(sys.argv[1:] if arguments is None else arguments))
    session.start_logging()
    gc.set_threshold(100_000)  # libraries make a million objects that stay; cycles among every 700 cost a tenth of a command
    hear(signal.default_int_handler)  # SIGTERM and SIGHUP act as Ctrl-C; while it trains, the loop has its own handler
    atexit.register(gc.freeze)  # else Python looks for cycles among all objects as it ends: half a second after training
    try:
        code = run(session)
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:  # `| head` has seen enough
        _abandon_stdout()
        code = EXIT_PIPE
    except OSError as error:  # what was printed last did not fit on the disk
        say(f"error: standard output: {error.strerror or error}")
        _abandon_stdout()
        code = EXIT_DATA
    sys.exit(code)


def run(session: Session) -> int:
    """Run one command; the exit code. Only a broken pipe is raised."""
    try:
        with program.make_context("structpred", list(session.arguments), obj=session) as context:
            program.invoke(context)
        return 0
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.ClickException as error:
        return _explain_usage(error)
    except BrokenPipeError:
        raise
    except Exception as error:
        return _explain(error, session)
    except (KeyboardInterrupt, click.Abort):
        return _explain(interrupted("nothing was written"), session)


def _explain_usage(error: click.ClickException) -> int:
    if isinstance(error, click.exceptions.NoArgsIsHelpError):  # `structpred train`: the help page is the answer
        say(error.format_message())
        return error.exit_code
    if isinstance(error, click.UsageError) and error.ctx is not None:
        say(f"{error.ctx.get_usage()}\nTry '{error.ctx.command_path} --help'.\n")
    hint = synonym("option", error.option_name) if isinstance(error, click.NoSuchOption) else ""
    say(f"error: {error.format_message().rstrip('.') if hint else error.format_message()}{hint}")
    return error.exit_code


def _explain(error: Exception, session: Session) -> int:
    """Report what went wrong, as briefly as possible."""
    if session.tracebacks:
        say("".join(traceback.format_exception(error)).rstrip())
    if isinstance(error, Stop):
        say(error.message)
        return error.code
    if isinstance(error, StructpredError):
        say(f"error: {error}")
        return EXIT_USAGE if isinstance(error, ParameterError) else EXIT_DATA
    if isinstance(error, MemoryError):
        detail = f" ({error})" if str(error) else ""
        say(f"error: out of memory{detail}; use less data, or fewer features (--min-count, --n-bits)")
        return EXIT_DATA
    if isinstance(error, OSError):
        what = error.filename or "writing or reading failed"
        say(f"error: {what}: {error.strerror or error}")
        return EXIT_DATA
    if not session.tracebacks:
        say("".join(traceback.format_exception(error)).rstrip())
    say("error: this is a bug in structpred, or in code of yours that it called; please report it with the lines above")
    return EXIT_DATA


def _abandon_stdout() -> None:
    """Nobody reads on: what is still in the buffer goes nowhere, without another error when Python ends."""
    handle = os.open(os.devnull, os.O_WRONLY)
    os.dup2(handle, 1)
