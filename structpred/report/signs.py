"""What sign constraints change: histograms of the differences of scores, and how soon solvers converge."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from structpred.report import figures

_COLOURS = (figures.BLUE, figures.ORANGE, figures.GREEN)


def sign_figures(
    few_samples: Sequence[Mapping[str, Any]], convergence: Sequence[Mapping[str, Any]], path: str | os.PathLike[str]
) -> None:
    """Draw, in a row for each data set, histograms of the differences (with signs minus without) and curves of convergence.

    few_samples: mappings with `data`, and with `roc` and `break_even`, whose `differences` are drawn. convergence: mappings
    with `data` and `curves`, each of these with `solver` and `points` of epochs, seconds and distance. Raises ParameterError for
    a path that ends neither in .png nor in .svg.
    """
    figures.check_path(path)
    n_rows = len(few_samples) + len(convergence)
    figure = figures.new_figure(9.6, 3.1 * max(n_rows, 1))
    axes = figure.subplots(max(n_rows, 1), 2, squeeze=False)
    for row, one in zip(axes, few_samples, strict=False):
        for ax, (field, title) in zip(row, (("roc", "ROC area"), ("break_even", "break-even point")), strict=True):
            _histogram(ax, np.array(one[field]["differences"]), f"{one['data']}: {title}")
    for row, one in zip(axes[len(few_samples) :], convergence, strict=True):
        for ax, x in zip(row, ("epochs", "seconds"), strict=True):
            _curves(ax, one["curves"], x)
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


def _curves(ax: figures.Axes, curves: Sequence[Mapping[str, Any]], x: str) -> None:
    """One line a solver; distances of zero have no place on a logarithmic axis."""
    for colour, curve in zip(_COLOURS, curves, strict=False):
        shown = [point for point in curve["points"] if point["distance"] > 0.0]
        ax.plot([point[x] for point in shown], [point["distance"] for point in shown], color=colour, label=curve["solver"])
    ax.set_yscale("log")
    if x == "seconds":
        ax.set_xscale("log")
    ax.set_xlabel("epochs" if x == "epochs" else "CPU time of training (s)")
    ax.set_ylabel("P(w) - P(w*)")
    ax.grid(alpha=0.3)
