"""How solvers compare, and losses of decisions: gaps and regret against passes and time; what sign constraints change."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from structpred.report import figures

_MARKS = "osv^D<>.x"
_METHOD_MARKS = "osv^D<>pX"
_LINES = ("-", "--", ":")


def solver_curves(tables: Sequence[Mapping[str, Any]], path: str | os.PathLike[str]) -> None:
    """Draw, for each table, err_t, the gap (both logarithmic) and the test accuracy against passes and seconds, a line a solver.

    tables: mappings with `data`, `lam` and `courses`, each of these with `solver` and `points` of passes, seconds, error and
    accuracy, and of the gap where it was looked at. Raises ParameterError for a path that ends neither in .png nor in .svg.
    """
    known = [point for table in tables for course in table["courses"] for point in course["points"]]
    drawn = [y for y in ("error", "gap", "accuracy") if all(y in point for point in known)]
    panels = [(x, y) for y in drawn for x in ("passes", "seconds")]
    figure = figures.new_figure(3.6 * len(panels), 3.4 * len(tables), path)
    axes = figure.subplots(len(tables), len(panels), squeeze=False)
    for row, table in zip(axes, tables, strict=True):
        for ax, (x, y) in zip(row, panels, strict=True):
            _panel(ax, table["courses"], x, y)
        row[0].set_title(f"{table['data']}, lambda {table['lam']:.3g}", fontsize=10, loc="left")
    handles, names = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper center", ncols=len(names) if len(names) < 9 else 5, frameon=False)
    figures.save(figure, path)


#: what is on the axes
_BELOW = {"passes": "passes over the data", "seconds": "CPU time (s)", "epochs": "epochs"}
_BESIDE = {
    "error": "err_t: least J - best lower bound", "gap": "certified gap", "accuracy": "test rows right (%)",
    "distance": "P(w) - P(w*)",
}  # fmt: skip


def _panel(ax: figures.Axes, courses: Sequence[Mapping[str, Any]], x: str, y: str) -> None:
    """One line a solver; zeros have no place on a logarithmic axis."""
    for k, course in enumerate(courses):
        shown = [point for point in course["points"] if y == "accuracy" or point[y] > 0.0]
        values = [point[y] * (100 if y == "accuracy" else 1) for point in shown]
        line, mark = _LINES[k // len(figures.COLOURS) % len(_LINES)], _MARKS[k % len(_MARKS)]
        style = {"color": figures.COLOURS[k % len(figures.COLOURS)], "linestyle": line, "marker": mark}
        ax.plot(
            [point[x] for point in shown], values, linewidth=1.2, markersize=3, markevery=0.1, label=course["solver"], **style
        )
    if x != "epochs":
        ax.set_xscale("log")
        ax.xaxis.set_minor_formatter("")  # labels between powers of ten run into each other in a narrow panel
    figures.name_axes(ax, _BELOW[x], _BESIDE[y])
    if y != "accuracy":
        ax.set_yscale("log")
    else:
        best = max((100 * point[y] for course in courses for point in course["points"]), default=100.0)
        ax.set_ylim(best - 6.0, best + 0.5)


def sign_figures(
    few_samples: Sequence[Mapping[str, Any]], convergence: Sequence[Mapping[str, Any]], path: str | os.PathLike[str]
) -> None:
    """Draw, in a row for each data set, histograms of the differences (with signs minus without) and curves of convergence.

    few_samples: mappings with `data`, and with `roc` and `break_even`, whose `differences` are drawn. convergence: mappings
    with `data` and `curves`, each of these with `solver` and `points` of epochs, seconds and distance. Raises ParameterError for
    a path that ends neither in .png nor in .svg.
    """
    n_rows = max(len(few_samples) + len(convergence), 1)
    figure = figures.new_figure(9.6, 3.1 * n_rows, path)
    axes = figure.subplots(n_rows, 2, squeeze=False)
    for row, one in zip(axes, few_samples, strict=False):
        for ax, (field, title) in zip(row, (("roc", "ROC area"), ("break_even", "break-even point")), strict=True):
            _histogram(ax, np.array(one[field]["differences"]), f"{one['data']}: {title}")
    for row, one in zip(axes[len(few_samples) :], convergence, strict=True):
        for ax, x in zip(row, ("epochs", "seconds"), strict=True):
            _panel(ax, one["curves"], x, "distance")
        row[0].set_title(one["data"], fontsize=10, loc="left")
        row[0].legend(frameon=False, fontsize=8)
    figures.save(figure, path)


def _histogram(ax: figures.Axes, differences: Any, title: str) -> None:
    """Bins of equal width, one edge at zero; improvements in blue, deteriorations in orange, no change in grey."""
    width = max(float(np.abs(differences).max(initial=0.0)) / 30, 1e-3)
    for side, colour, name in ((1, figures.BLUE, "better"), (-1, figures.ORANGE, "worse")):
        sizes = side * differences[side * differences > 0]
        counts, edges = np.histogram(sizes, bins=width * np.arange(int(np.ceil(sizes.max(initial=width) / width)) + 1))
        ax.bar(side * edges[:-1], counts, side * width, align="edge", color=colour, label=f"{name}: {len(sizes):,}")
    if equal := int((differences == 0).sum()):
        ax.plot([], [], "s", color=figures.GREY, label=f"equal: {equal:,}")
    ax.axvline(0.0, color=figures.GREY, linewidth=1)
    ax.set_title(title, fontsize=10, loc="left")
    ax.set_xlabel("with signs minus without")
    ax.set_ylabel("splits")
    ax.legend(frameon=False, fontsize=8)


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
            style = {"color": figures.COLOURS[k % len(figures.COLOURS)], "marker": _METHOD_MARKS[k % len(_METHOD_MARKS)]}
            at = [max(row["cpu_seconds"], 1e-4)], [100 * row["regret"]]
            ax.plot(*at, linestyle="none", markersize=8, label=row["method"], **style)
        ax.set_xscale("log")
        ax.margins(0.1)
        ax.set_ylim(bottom=0.0)
        ax.set_title(problem, fontsize=10, loc="left")
        figures.name_axes(ax, "CPU time of training (s)")
    axes[0].set_ylabel("normalised regret (%)")
    handles = {name: handle for ax in axes for handle, name in zip(*ax.get_legend_handles_labels(), strict=True)}
    figure.legend(handles.values(), handles.keys(), loc="outside right upper", frameon=False, fontsize=9)
    figures.save(figure, path)
