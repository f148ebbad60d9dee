"""Tables over labels as heat maps: confusions, and weights of transitions."""

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from structpred.core.types import ArrayLike, Flags, Floats
from structpred.errors import DataError
from structpred.report import figures

_MOST_NUMBERS = 32  # with more labels than this, the numbers in the cells would be too small to read
_MOST_NAMES = 100


def confusion(labels: Sequence[Any], counts: ArrayLike, path: str | os.PathLike[str]) -> None:
    """Draw a confusion matrix (rows gold, columns predicted) and save the picture.

    labels: n names. counts: integers (n, n), as `evaluation.confusion_matrix` returns them. Colour is the share of the
    row, spread so that rare errors show; the numbers are counts; the share of each row that is right is at its end.
    Raises DataError if the shapes do not fit, ParameterError for a path that ends neither in .png nor in .svg.
    """
    table = _square(labels, counts)
    total, right = table.sum(), np.trace(table)
    rows = table.sum(axis=1, keepdims=True)
    share = np.divide(table, rows, out=np.zeros_like(table), where=rows > 0)
    figure = figures.new_figure(*_size(len(labels)), path)
    from matplotlib.colors import PowerNorm

    ax = figure.subplots()
    picture = ax.imshow(share, cmap="Blues", norm=PowerNorm(0.4, 0, 1), aspect="equal")
    bar = figure.colorbar(picture, ax=ax, shrink=0.8, ticks=[0, 0.01, 0.05, 0.2, 0.5, 1])
    bar.set_ticklabels(["0", "1 %", "5 %", "20 %", "50 %", "100 %"])
    bar.set_label("share of the gold label's tokens")
    _names(ax, labels, "predicted label", "gold label")
    if len(labels) <= _MOST_NUMBERS:
        _numbers(ax, [list(map(figures.brief, row)) for row in table], share > 0.3, len(labels))
        for i, n in enumerate(rows[:, 0]):
            recall = f"{100 * share[i, i]:.1f} %" if n else "\N{EN DASH}"
            ax.text(len(labels) - 0.3, i, recall, ha="left", va="center", fontsize=_font(len(labels)), color=figures.GREY)
    accuracy = f"{int(right):,} of {int(total):,} tokens right ({100 * right / max(total, 1):.2f} %)"
    ax.set_title(f"Confusion of labels: {accuracy}")
    figures.save(figure, path)


def transitions(matrix: ArrayLike, labels: Sequence[Any], path: str | os.PathLike[str]) -> None:
    """Draw transition weights (rows: label before, columns: label after) and save the picture.

    matrix: floats (n, n); -inf marks a forbidden transition and is drawn hatched. labels: n names. Blue raises the score
    of a sequence, red lowers it; the scale is symmetric. Raises DataError if the shapes do not fit or a weight is NaN or
    +inf, ParameterError for a path that ends neither in .png nor in .svg.
    """
    table = _square(labels, matrix)
    if np.isnan(table).any() or np.isposinf(table).any():
        raise DataError("transition weights: expected finite numbers or -inf, got NaN or +inf")
    forbidden = np.isneginf(table)
    scale = float(np.abs(table[~forbidden]).max(initial=0)) or 1.0
    figure = figures.new_figure(*_size(len(labels)), path)
    from matplotlib.patches import Rectangle

    ax = figure.subplots()
    picture = ax.imshow(np.where(forbidden, np.nan, table), cmap="RdBu", vmin=-scale, vmax=scale, aspect="equal")
    figure.colorbar(picture, ax=ax, shrink=0.8).set_label("transition weight")
    _names(ax, labels, "label after", "label before")
    hatched: dict[str, Any] = {"facecolor": "#EEEEEE", "edgecolor": figures.GREY, "hatch": "////", "linewidth": 0}
    for i, j in np.argwhere(forbidden).tolist():
        ax.add_patch(Rectangle((j - 0.5, i - 0.5), 1, 1, **hatched))
    if len(labels) <= _MOST_NUMBERS:
        dark = np.abs(np.where(forbidden, 0, table)) > 0.6 * scale
        _numbers(ax, [list(map(figures.signed, row)) for row in table], dark, len(labels))
    ax.set_title("Transition weights" + (" (hatched: forbidden)" if forbidden.any() else ""))
    figures.save(figure, path)


def _square(labels: Sequence[Any], values: ArrayLike) -> Floats:
    table = np.asarray(values, dtype=np.float64)
    n = len(labels)
    if not n or table.shape != (n, n):
        raise DataError(f"expected a table of {n} by {n} for {n} labels, got shape {table.shape}")
    return table


def _size(n: int) -> tuple[float, float]:
    side = min(max(0.36 * n, 3.0), 24.0)
    return side + 2.6, side + 1.4


def _font(n: int) -> float:
    return 7.5 if n <= _MOST_NUMBERS else max(4.0, 20 * 7.5 / n)


def _names(ax: figures.Axes, labels: Sequence[Any], below: str, beside: str) -> None:
    step = -(-len(labels) // _MOST_NAMES)
    places = range(0, len(labels), step)
    names = [str(labels[i]) for i in places]
    upright = 90 if max(map(len, names)) > 2 else 0
    # Names are data: a dollar sign in one must not start a formula.
    size = _font(len(labels)) + 1
    ax.set_xticks(places, names, rotation=upright, fontsize=size, parse_math=False)
    ax.set_yticks(places, names, fontsize=size, parse_math=False)
    ax.set_xlabel(below)
    ax.set_ylabel(beside)
    ax.set_xticks(np.arange(len(labels) + 1) - 0.5, minor=True)
    ax.set_yticks(np.arange(len(labels) + 1) - 0.5, minor=True)
    ax.grid(which="minor", color="white", linewidth=0.5)
    ax.tick_params(which="minor", length=0)


def _numbers(ax: figures.Axes, texts: Sequence[Sequence[str]], dark: Flags, n: int) -> None:
    for i, row in enumerate(texts):
        for j, text in enumerate(row):
            if text:
                colour = "white" if dark[i, j] else "black"
                ax.text(j, i, text, ha="center", va="center", fontsize=_font(n) - 0.5, color=colour)
