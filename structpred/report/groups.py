"""The weights of groups of features along the passes of training, as a picture: which of them matter, and when that was clear."""

import os
from collections.abc import Mapping, Sequence

import numpy as np

from structpred.core.types import Floats
from structpred.errors import DataError
from structpred.report import figures

#: how many curves have a colour and a name of their own; the others are grey
NAMED = 8
_COLOURS = (figures.BLUE, figures.ORANGE, figures.GREEN, figures.WRONG, "#CC79A7", "#56B4E9", "#8B6B00", "#000000")


def group_curves(group_weights: Floats, names: Sequence[str], path: str | os.PathLike[str]) -> None:
    """Draw |w_k| / sum_k |w_k| of each group after each pass, the largest at the end by name; above, how many are zero.

    group_weights: (passes, groups). Raises DataError where no pass was finished, or names and columns do not fit, and
    ParameterError for a path that ends neither in .png nor in .svg.
    """
    figure = figures.new_figure(8.0, 5.0, path)
    _draw_groups(figure, group_weights, names)
    figures.save(figure, path)


def selection_curves(
    group_weights: Floats,
    names: Sequence[str],
    scores: Mapping[str, Sequence[tuple[int, float]]],
    path: str | os.PathLike[str],
) -> None:
    """The same on the left; on the right the scores of models that were trained with some groups alone.

    scores: who chose the groups -> how many groups, and the score, of each model.
    """
    figure = figures.new_figure(13.0, 5.0, path)
    left, right = figure.subfigures(1, 2, width_ratios=(8, 5))
    _draw_groups(left, group_weights, names)
    ax = right.subplots()
    for (name, points), colour, mark in zip(scores.items(), _COLOURS, "os^v", strict=False):
        ax.plot(*zip(*points, strict=True), f"-{mark}", color=colour, label=name)
    figures.name_axes(ax, "groups", "score of a model of these groups")
    ax.legend(loc="lower right", frameon=False)
    figures.save(figure, path)


def _draw_groups(figure: figures.Figure, group_weights: Floats, names: Sequence[str]) -> None:
    passes, n = group_weights.shape
    if passes == 0 or n != len(names):
        raise DataError(f"expected a row of {len(names)} group weights for at least one pass, got shape {group_weights.shape}")
    above, ax = figure.subplots(2, 1, sharex=True, height_ratios=(1, 3))
    x = np.arange(1, passes + 1)
    order = np.argsort(-group_weights[-1], kind="stable")
    for k in order[NAMED:]:
        ax.plot(x, group_weights[:, k], color="#CCCCCC", linewidth=0.7)
    for k, colour in zip(order[:NAMED].tolist(), _COLOURS, strict=False):
        ax.plot(x, group_weights[:, k], "-o", color=colour, markersize=3, label=f"{names[k]}  {group_weights[-1, k]:.3f}")
    figures.name_axes(ax, "passes over the data", "share of the group norms")
    ax.set_ylim(bottom=0)
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=8)
    above.plot(x, (group_weights == 0.0).sum(axis=1), "-", color=figures.GREY, drawstyle="steps-mid")
    above.set_ylabel(f"zero, of {n}")
    above.set_ylim(bottom=0, top=max(1, n))
    above.xaxis.get_major_locator().set_params(integer=True)
    above.grid(alpha=0.3)
