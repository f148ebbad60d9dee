"""`structpred check-oracle`: is my oracle right?"""

import click

from structpred.cli.options import general_options
from structpred.cli.own_code import made
from structpred.cli.session import EXIT_DATA


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
