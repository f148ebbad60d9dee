"""`structpred bench`: experiments that a paper reports, run again on this machine, with the paper's figures beside."""

import os
from pathlib import Path

import click

from structpred.cli.options import general_options


@click.group(short_help="Run the experiments of a paper again.")
def bench() -> None:
    """Experiments of papers on public data, with the paper's figures beside."""


@bench.command(short_help="Slack rescaling: searches, scores, hierarchies.")
@click.option("--data", metavar="FOLDER", help="The data sets. Default: STRUCTPRED_DATA, else ../shared/data beside the project.")
@click.option("--quick", is_flag=True, help="Small parts of the data, in seconds: shows that it runs, the figures say little.")
@click.option("--relaxed", is_flag=True, help="The searches over the linear programming relaxation, too (needs OR-Tools).")
@click.option("--only", type=click.Choice(("searches", "scores", "hierarchy")), help="One of the tables.")
@click.option("--json", "as_json", is_flag=True, help="All figures as one JSON object.")
@general_options
def slack(data: str | None, quick: bool, relaxed: bool, only: str | None, as_json: bool) -> None:
    """Compare slack rescaling with margin rescaling, and the ways to search for what it needs (Choi, Meshi & Srebro 2016).

    \b
    searches   how often, and with how many queries, each search finds a violated label: yeast, enron
    scores     multi-label classification on yeast, C chosen by cross-validation on the training set
    hierarchy  the same along a tree of topics: Enron-corr

    Takes some minutes of one processor; --quick some seconds.
    """
    from structpred.cli.bench_slack import Plan, as_text, run, to_json

    tables = run(data_folder(data), Plan.quick() if quick else Plan.full(), relaxed=relaxed, only=only)
    click.echo(to_json(tables) if as_json else as_text(tables))


def data_folder(given: str | None) -> Path:
    """The folder of data sets: as given, else STRUCTPRED_DATA, else ../shared/data beside the project.

    Raises DataError, saying where it looked, if that is no folder.
    """
    from structpred.errors import DataError

    root = Path(__file__).resolve().parents[2]
    if given is not None:
        folder, why = Path(given), "--data"
    elif named := os.environ.get("STRUCTPRED_DATA"):
        folder, why = Path(named), "STRUCTPRED_DATA"
    else:
        folder, why = root.parent / "shared" / "data", "neither --data nor STRUCTPRED_DATA is given; looked"
    if not folder.is_dir():
        raise DataError(f"no data sets: {why} {folder}: there is no such folder; expected the one with multilabel_yeast in it")
    return folder
