"""What a loss of decisions costs and gives: regret against the seconds of training."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

from structpred.report import figures

_MARKS = "osv^D<>p"


def regret_against_seconds(rows: Sequence[Mapping[str, Any]], path: str | os.PathLike[str]) -> None:
    """Draw a panel for each problem with a mark for each method: its regret (per cent) against its CPU seconds (logarithmic).

    rows: mappings with `problem`, `method`, `regret` (normalised) and `cpu_seconds`; a method has the same mark in all panels.
    Raises ParameterError for a path that ends neither in .png nor in .svg.
    """
    problems, methods = (list(dict.fromkeys(row[key] for row in rows)) for key in ("problem", "method"))
    figure = figures.new_figure(4.4 * max(len(problems), 1) + 2.8, 3.8, path)
    axes = figure.subplots(1, max(len(problems), 1), squeeze=False)[0]
    for ax, problem in zip(axes, problems, strict=False):
        for row in (row for row in rows if row["problem"] == problem):
            k = methods.index(row["method"])
            style = {"color": figures.COLOURS[k % len(figures.COLOURS)], "marker": _MARKS[k % len(_MARKS)], "markersize": 8}
            ax.plot([max(row["cpu_seconds"], 1e-4)], [100 * row["regret"]], linestyle="none", label=row["method"], **style)
        ax.set_xscale("log")
        ax.margins(0.1)
        ax.set_ylim(bottom=0.0)
        ax.set_title(problem, fontsize=10, loc="left")
        figures.name_axes(ax, "CPU time of training (s)")
    axes[0].set_ylabel("normalised regret (%)")
    handles = {name: handle for ax in axes for handle, name in zip(*ax.get_legend_handles_labels(), strict=True)}
    figure.legend(handles.values(), handles.keys(), loc="outside right upper", frameon=False, fontsize=9)
    figures.save(figure, path)
