"""How solvers compare: gap and test accuracy against passes and time."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

from structpred.report import figures

_COLOURS = (figures.BLUE, figures.ORANGE, figures.GREEN, figures.WRONG, "#CC79A7", "#56B4E9", "#000000", figures.GREY)
_MARKS = "osv^D<>."


def solver_curves(tables: Sequence[Mapping[str, Any]], path: str | os.PathLike[str]) -> None:
    """Draw, for each table, the gap (logarithmic) and the test accuracy against passes and seconds, a line for each solver.

    tables: mappings with `data`, `lam` and `courses`, each of these with `solver` and `points` of passes, seconds, gap and
    accuracy. Raises ParameterError for a path that ends neither in .png nor in .svg.
    """
    figures.check_path(path)
    figure = figures.new_figure(14.4, 3.4 * len(tables))
    axes = figure.subplots(len(tables), 4, squeeze=False)
    panels = [(x, y) for y in ("gap", "accuracy") for x in ("passes", "seconds")]
    for row, table in zip(axes, tables, strict=True):
        for ax, (x, y) in zip(row, panels, strict=True):
            _panel(ax, table["courses"], x, y)
        row[0].set_title(f"{table['data']}, lambda {table['lam']:.3g}", fontsize=10, loc="left")
    handles, names = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper center", ncols=len(names), frameon=False)
    figures.save(figure, path)


def _panel(ax: figures.Axes, courses: Sequence[Mapping[str, Any]], x: str, y: str) -> None:
    """One line a solver; gaps of zero have no place on a logarithmic axis."""
    for k, course in enumerate(courses):
        shown = [point for point in course["points"] if y != "gap" or point["gap"] > 0.0]
        values = [point[y] * (100 if y == "accuracy" else 1) for point in shown]
        style = {"color": _COLOURS[k % len(_COLOURS)], "marker": _MARKS[k % len(_MARKS)], "markersize": 3, "markevery": 0.1}
        ax.plot([point[x] for point in shown], values, linewidth=1.2, label=course["solver"], **style)
    ax.set_xscale("log")
    ax.set_xlabel("passes over the data" if x == "passes" else "CPU time (s)")
    ax.set_ylabel("gap" if y == "gap" else "test rows right (%)")
    if y == "gap":
        ax.set_yscale("log")
    else:
        best = max((100 * point[y] for course in courses for point in course["points"]), default=100.0)
        ax.set_ylim(best - 6.0, best + 0.5)
    ax.grid(alpha=0.3)
