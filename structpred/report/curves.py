"""The course of training: primal, dual and gap against time, passes and oracle calls."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from structpred.errors import DataError
from structpred.report import figures

_AXES = (("seconds", "time (s)"), ("passes", "passes over the data"), ("oracle_calls", "oracle calls"))


def gap_curve(history: Sequence[Mapping[str, Any]], path: str | os.PathLike[str]) -> None:
    """Draw primal and dual objective (above) and the duality gap (below, logarithmic) and save the picture.

    history: one mapping a check with the keys seconds, passes, oracle_calls, primal, dual, gap; a figure that was not
    measured is None or missing. The dotted line is 1 % of the last primal. Raises DataError if nothing was measured,
    ParameterError for a path that ends neither in .png nor in .svg.
    """
    figures.check_path(path)
    values = {key: _column(history, key) for key in ("primal", "dual", "gap", *(name for name, _ in _AXES))}
    shown = [(name, text) for name, text in _AXES if np.isfinite(values[name]).any()]
    if not shown or not any(np.isfinite(values[key]).any() for key in ("primal", "dual", "gap")):
        raise DataError("the history holds no objective to draw: this trainer measured neither primal, dual nor gap")
    figure = figures.new_figure(3.6 * len(shown) + 0.6, 6.0)
    axes = figure.subplots(2, len(shown), sharex="col", sharey="row", squeeze=False)
    for column, (name, text) in enumerate(shown):
        _objectives(axes[0, column], values[name], values)
        _gap(axes[1, column], values[name], values)
        axes[1, column].set_xlabel(text)
        axes[1, column].set_xlim(left=0)
        axes[1, column].xaxis.set_major_formatter(_short())
    axes[0, 0].set_ylabel("objective")
    axes[1, 0].set_ylabel("duality gap (primal \N{MINUS SIGN} dual)")
    axes[0, 0].legend(loc="best", frameon=False)
    figure.suptitle(_title(values))
    figures.save(figure, path)


def _column(history: Sequence[Mapping[str, Any]], key: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.array([np.nan if row.get(key) is None else float(row[key]) for row in history], dtype=np.float64)


def _objectives(ax: figures.Axes, x: np.ndarray[Any, Any], values: Mapping[str, np.ndarray[Any, Any]]) -> None:
    for key, colour, style, marker in (("primal", figures.ORANGE, "-", "o"), ("dual", figures.BLUE, "--", "s")):
        seen = np.isfinite(x) & np.isfinite(values[key])
        if seen.any():
            ax.plot(x[seen], values[key][seen], style, color=colour, marker=marker, markersize=3, label=key)
    both = np.concatenate((values["primal"], values["dual"]))
    both = both[np.isfinite(both)]
    # The first primal values can be many times the last ones and would press everything else flat.
    if len(both) and both.min() > 0 and both.max() > 5 * both.min():
        ax.set_yscale("log")
    ax.grid(alpha=0.3)


def _gap(ax: figures.Axes, x: np.ndarray[Any, Any], values: Mapping[str, np.ndarray[Any, Any]]) -> None:
    gap = values["gap"]
    seen = np.isfinite(x) & (gap > 0)  # a gap of zero, up to rounding, has no place on a logarithmic axis
    if seen.any():
        ax.plot(x[seen], gap[seen], "-", color=figures.GREEN, marker="o", markersize=3)
        ax.set_yscale("log")
    primal = values["primal"][np.isfinite(values["primal"])]
    if len(primal) and primal[-1] > 0:
        ax.axhline(primal[-1] / 100, color=figures.GREY, linestyle=":", linewidth=1)
        place = ax.get_yaxis_transform()
        ax.text(
            0.02, primal[-1] / 100, "1 % of the primal", transform=place, ha="left", va="bottom", color=figures.GREY, fontsize=8
        )
    ax.grid(alpha=0.3)


def _title(values: Mapping[str, np.ndarray[Any, Any]]) -> str:
    last = {key: column[np.isfinite(column)][-1:] for key, column in values.items()}
    parts = [f"{key} {last[key][0]:.6g}" for key in ("primal", "dual", "gap") if len(last[key])]
    if len(last["gap"]) and len(last["primal"]) and last["primal"][0] > 0:
        parts[-1] += f" ({100 * last['gap'][0] / last['primal'][0]:.2g} % of the primal)"
    return "At the end: " + ", ".join(parts)


def _short() -> Any:
    """Large counts as 200 k or 3 M."""
    from matplotlib.ticker import EngFormatter

    return EngFormatter(sep=" ")
