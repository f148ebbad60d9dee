"""Objects of a user's own classes, named on the command line as MODULE:CLASS; and `structpred check-oracle`, which checks one."""

import importlib
import inspect
import os
import sys
from typing import Any

import click

from structpred.cli.options import general_options
from structpred.cli.session import EXIT_DATA


def made(name: str, parent: type, example: str) -> Any:
    """An instance, made without arguments, of the class that the name stands for; or the object itself that it stands for.

    Usage errors say what is wrong with the name. The module is looked for in the working folder, too, after all other places: no
    file there takes the place of an installed module. parent: what the class must be a subclass of. example: of such a name.
    """
    module_name, colon, class_name = name.partition(":")
    if not (module_name and colon and class_name):
        raise click.UsageError(f"expected MODULE:CLASS, such as {example}, got {name!r}")
    module = _module(module_name)
    found: Any = module
    for part in class_name.split("."):
        if not hasattr(found, part):
            raise click.UsageError(f"{module_name} ({getattr(module, '__file__', 'built in')}) has no {class_name!r}")
        found = getattr(found, part)
    if not (issubclass(found, parent) if isinstance(found, type) else isinstance(found, parent)):
        got = found.__name__ if isinstance(found, type) else type(found).__name__
        needed = "a class with the methods of" if getattr(parent, "_is_protocol", False) else "a subclass of"
        raise click.UsageError(f"{name}: expected {needed} {parent.__module__}.{parent.__name__}, got {got}")
    return _instance(found, name) if isinstance(found, type) else found


def _module(name: str) -> Any:
    """The installed module of this name, else that of the working folder."""
    lacking = ""
    for place in ([], [os.getcwd()]):
        sys.path += [folder for folder in place if folder not in sys.path]
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            lacking = error.name or ""
            if not (lacking and f"{name}.".startswith(f"{lacking}.")):
                raise  # the module is there, and imports something that is not
    raise click.UsageError(f"there is no module {lacking!r} here or among the installed ones")


def _instance(kind: type, name: str) -> Any:
    if lacking := sorted(getattr(kind, "__abstractmethods__", ())):
        raise click.UsageError(f"{name}: the class lacks {', '.join(lacking)}")
    try:
        inspect.signature(kind).bind()
    except TypeError as error:
        raise click.UsageError(f"{name}: {error}; name an object of the module that has its settings, MODULE:OBJECT") from None
    return kind()


@click.command("check-oracle", short_help="Check your oracle against its contract.")
@click.argument("name", metavar="MODULE:CLASS")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(min=0), help="Seed of the random scores to try.")
@general_options
def check_oracle(name: str, seed: int) -> None:
    """Import CLASS from MODULE (also from the working folder), create one without arguments, and check it.

    The report lists what was checked and what could not be. If a rule is broken, it is explained, and the exit code is 1.
    This runs the code of MODULE.
    """
    import structpred
    from structpred.errors import OracleError

    oracle = made(name, structpred.Oracle, "my_package.matching:MatchingOracle")
    try:
        report = structpred.check_oracle(oracle, seed=seed)
    except OracleError as error:
        click.echo(str(error))
        raise click.exceptions.Exit(EXIT_DATA) from None
    click.echo(str(report))
