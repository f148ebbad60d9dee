"""`structpred bench`: experiments that a paper reports, run again on this machine, with the paper's figures next to them."""

import inspect
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from structpred.cli.options import Choice, SuggestingGroup, general_options
from structpred.errors import ParameterError

if TYPE_CHECKING:
    from structpred.experiments.experiment import Experiment


def _experiments(ctx: click.Context) -> dict[str, Callable[[], click.Command]]:
    """A command for each experiment of structpred/experiments."""
    from structpred.experiments.experiment import experiments

    return {name: partial(bench_command, experiment) for name, experiment in sorted(experiments().items())}


@click.group(cls=SuggestingGroup, makers=_experiments, short_help="Run the experiments of a paper again.")
def bench() -> None:
    """Run the experiments of papers on public data and show the paper's figures next to the new ones."""


def bench_command(experiment: "Experiment") -> click.Command:
    """`structpred bench NAME`: the options that all experiments share, and the switches of this one."""

    def run(data: str | None, quick: bool, only: str | None, as_json: bool, output: str | None,
            picture: str | None = None, **others: int) -> None:  # fmt: skip
        from structpred.cli.files import check_picture
        from structpred.experiments.experiment import Wanted, data_folder

        numbers = {name: others[name.replace("-", "_")] for name in experiment.numbers}
        switches = frozenset(name for name in experiment.switches if others[name])
        wanted = Wanted(quick, only, switches, numbers, None if output is None else Path(output))
        check_picture(picture, "--picture", ())
        figures = experiment.ran(data_folder(data), wanted)
        click.echo(experiment.shown(figures, as_json=as_json, quick=quick))
        if picture is not None:
            _draw(figures, picture)

    params: list[Any] = [
        click.Option(
            ["--data"], metavar="FOLDER", help="The data sets. Default: STRUCTPRED_DATA, else ../shared/data next to the project."
        ),
        click.Option(
            ["--quick"], is_flag=True,
            help="A quick run on small parts of the data, to see that everything works; the figures mean nothing.",
        ),
        click.Option(["--only"], type=Choice(experiment.tables), help="One of the tables."),
        click.Option(["--json", "as_json"], is_flag=True, help="All figures as one JSON object."),
        click.Option(
            ["--output", "-o"], metavar="FOLDER",
            help="Keep what is done in this folder, and the figures; started again after a stop, the run continues from there.",
        ),
        *(click.Option([f"--{name}"], is_flag=True, help=text) for name, text in experiment.switches.items()),
        *(
            click.Option([f"--{name}"], type=click.IntRange(min=1), default=default, show_default=True, help=text)
            for name, (default, text) in experiment.numbers.items()
        ),
    ]  # fmt: skip
    if experiment.draws:
        params.append(click.Option(["--picture"], metavar="FILE", help="Draw the figures, too: a .png or .svg file."))
    page = inspect.getdoc(experiment)
    return general_options(click.Command(experiment.name, callback=run, params=params, help=page, short_help=experiment.summary))


def _draw(figures: Any, path: str) -> None:
    """Group weights and scores of selections, differences that signs make, regret against seconds, or curves of trainers."""
    import numpy as np

    from structpred.experiments.arc_templates import Curves
    from structpred.experiments.decisions import DecisionRow
    from structpred.experiments.experiment import plain
    from structpred.experiments.signs import SignFigures
    from structpred.experiments.slack import Tables
    from structpred.report.curves import selection_curves
    from structpred.report.solvers import regret_against_seconds, sign_figures, solver_curves

    if isinstance(figures, Curves):
        selection_curves(np.array(figures.group_weights), figures.groups, figures.scores, path)
    elif isinstance(figures, SignFigures):
        tables = plain(figures)
        sign_figures(tables["few_samples"] or [], tables["convergence"] or [], path)
    elif isinstance(figures, Tables):
        if figures.convergence is None:
            raise ParameterError("--picture draws the table 'convergence', which was not asked for")
        solver_curves([plain(figures.convergence)], path)
    elif isinstance(figures, list) and figures and isinstance(figures[0], DecisionRow):
        regret_against_seconds(plain(figures), path)
    else:
        solver_curves(plain(figures), path)
