"""`structpred doctor` and `structpred check-oracle`: is the installation sound, is my oracle right."""

import json

import click

from structpred.cli.options import general_options
from structpred.cli.own_code import made
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

    oracle = made(name, structpred.Oracle, "my_package.matching:MatchingOracle")
    try:
        report = structpred.check_oracle(oracle, seed=seed)
    except OracleError as error:
        click.echo(str(error))
        raise click.exceptions.Exit(EXIT_DATA) from None
    click.echo(str(report))
