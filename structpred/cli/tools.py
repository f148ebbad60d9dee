"""`structpred doctor` and `structpred check-oracle`: is the installation sound, is my oracle right."""

import importlib
import json
import os
import sys
from typing import Any

import click

from structpred.cli.options import general_options
from structpred.cli.session import EXIT_DATA


@click.command(short_help="Say whether the installation is sound.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@general_options
def doctor(as_json: bool) -> None:
    """Look at Python, the libraries, the solvers in both import orders, the kernel cache and the data folder.

    Takes some seconds, because solvers are tried in processes of their own. Exit code 1 if structpred cannot work here.
    """
    from structpred.cli.doctor import diagnose, render, to_json

    diagnosis = diagnose()
    click.echo(json.dumps(to_json(diagnosis)) if as_json else render(diagnosis))
    if diagnosis.exit_code:
        raise click.exceptions.Exit(diagnosis.exit_code)


@click.command("check-oracle", short_help="Try your oracle against its contract.")
@click.argument("name", metavar="MODULE:CLASS")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(min=0), help="Seeds the scores that are tried.")
@general_options
def check_oracle(name: str, seed: int) -> None:
    """Import CLASS from MODULE (looked for in the working folder, too), make one without arguments, and try it.

    The report says what was checked and what could not be. Exit code 1, and every broken rule in words, if it is not right.
    This runs the code of MODULE.
    """
    import structpred
    from structpred.errors import OracleError

    oracle = _made(name)
    try:
        report = structpred.check_oracle(oracle, seed=seed)
    except OracleError as error:
        click.echo(str(error))
        raise click.exceptions.Exit(EXIT_DATA) from None
    click.echo(str(report))


def _made(name: str) -> Any:
    """An instance of the class that the name stands for; usage errors say what is wrong with the name."""
    import structpred

    module_name, colon, class_name = name.partition(":")
    if not (module_name and colon and class_name):
        raise click.UsageError(f"expected MODULE:CLASS, such as my_package.matching:MatchingOracle, got {name!r}")
    sys.path.insert(0, os.getcwd())
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise  # the module is there, and imports something that is not
        raise click.UsageError(f"there is no module {error.name!r} here or among the installed ones") from None
    made: Any = module
    for part in class_name.split("."):
        if not hasattr(made, part):
            raise click.UsageError(f"{module_name} has no {class_name!r}")
        made = getattr(made, part)
    made = made() if isinstance(made, type) else made
    if not isinstance(made, structpred.Oracle):
        raise click.UsageError(f"{name}: expected a subclass of structpred.Oracle, got {type(made).__name__}")
    return made
