"""Curves: of training, of scores against the amount of data, of a search for settings; which groups of features matter."""

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from structpred.core.types import Floats
from structpred.errors import DataError
from structpred.report import figures

if TYPE_CHECKING:
    from structpred.evaluation.curves import LearningCurve
    from structpred.tuning.halving import Tuned

_AXES = (("seconds", "time (s)"), ("passes", "passes over the data"), ("oracle_calls", "oracle calls"))
_SCORES = {"token_accuracy": "Tokens right", "sequence_accuracy": "Sequences wholly right", "f1": "F1 of phrases"}
_NAMED = 5
#: how many curves have a colour and a name of their own; the others are grey
NAMED = 8
_COLOURS = (figures.BLUE, figures.ORANGE, figures.GREEN, figures.WRONG, "#CC79A7", "#56B4E9", "#8B6B00", "#000000")


def gap_curve(history: Sequence[Mapping[str, Any]], path: str | os.PathLike[str]) -> None:
    """Draw primal and dual objective (above) and the duality gap (below, logarithmic) and save the picture.

    history: one mapping a check with the keys seconds, passes, oracle_calls, primal, dual, gap; a figure that was not
    measured is None or missing. The dotted line is 1 % of the last primal. Raises DataError if nothing was measured,
    ParameterError for a path that ends neither in .png nor in .svg.
    """
    keys = ("primal", "dual", "gap", *(name for name, _ in _AXES))
    values = {key: np.array([np.nan if row.get(key) is None else float(row[key]) for row in history]) for key in keys}
    shown = [(name, text) for name, text in _AXES if np.isfinite(values[name]).any()]
    if not shown or not any(np.isfinite(values[key]).any() for key in ("primal", "dual", "gap")):
        raise DataError("the history holds no objective to draw: this trainer measured neither primal, dual nor gap")
    figure = figures.new_figure(3.6 * len(shown) + 0.6, 6.0, path)
    axes = figure.subplots(2, len(shown), sharex="col", sharey="row", squeeze=False)
    from matplotlib.ticker import EngFormatter

    for column, (name, text) in enumerate(shown):
        _objectives(axes[0, column], values[name], values)
        _gap(axes[1, column], values[name], values)
        axes[1, column].set_xlabel(text)
        axes[1, column].set_xlim(left=0)
        axes[1, column].xaxis.set_major_formatter(EngFormatter(sep=" "))  # large counts as 200 k or 3 M
    axes[0, 0].set_ylabel("objective")
    axes[1, 0].set_ylabel("duality gap (primal \N{MINUS SIGN} dual)")
    axes[0, 0].legend(loc="best", frameon=False)
    last = {key: column[np.isfinite(column)][-1:] for key, column in values.items()}
    parts = [f"{key} {last[key][0]:.6g}" for key in ("primal", "dual", "gap") if len(last[key])]
    if len(last["gap"]) and len(last["primal"]) and last["primal"][0] > 0:
        parts[-1] += f" ({100 * last['gap'][0] / last['primal'][0]:.2g} % of the primal)"
    figure.suptitle("At the end: " + ", ".join(parts))
    figures.save(figure, path)


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


def data_curve(curve: "LearningCurve", path: str | os.PathLike[str]) -> None:
    """Draw each metric against the number of training tokens (logarithmic), the mean over the seeds with their range as a band.

    Raises ParameterError for a path that ends neither in .png nor in .svg.
    """
    figure = figures.new_figure(3.6 * len(curve.metrics) + 0.4, 3.6, path)
    from matplotlib.ticker import EngFormatter

    axes = figure.subplots(1, len(curve.metrics), squeeze=False)[0]
    groups = curve.fractions()
    tokens = np.array([np.mean([run.n_tokens for run in runs]) for runs in groups])
    for ax, metric in zip(axes, curve.metrics, strict=True):
        values = [[100 * getattr(run, metric) for run in runs] for runs in groups]
        means = np.array([np.mean(runs) for runs in values])
        ax.fill_between(tokens, [min(v) for v in values], [max(v) for v in values], color=figures.BLUE, alpha=0.18, linewidth=0)
        ax.plot(tokens, means, "-o", color=figures.BLUE, markersize=4)
        for k, below in ((0, -13), (-1, 7)):  # where the curve, which rises, does not run through the number
            ax.annotate(
                f"{means[k]:.1f}", (tokens[k], means[k]), textcoords="offset points", xytext=(0, below), ha="center", fontsize=8
            )
        ax.margins(x=0.1, y=0.15)
        _log_axis(ax, tokens, EngFormatter(sep=" ", places=None if tokens.max() < 1000 else 0))
        ax.set_title(f"{_SCORES[metric]} (%)", fontsize=10)
        figures.name_axes(ax, "training tokens")
    figures.save(figure, path)


def halving_curves(tuned: "Tuned", path: str | os.PathLike[str], score: str = "score") -> None:
    """Draw the best score so far of each setting over its passes (logarithmic); a cross where it was dropped.

    The best setting is orange, the next ones are named, too. Raises ParameterError for a path that ends in neither .png nor .svg.
    """
    figure = figures.new_figure(7.2, 4.2, path)
    from matplotlib.ticker import ScalarFormatter

    ax = figure.subplots()
    for place, trial in reversed(list(enumerate(tuned.ranked))):
        if not trial.scores:
            continue
        best = [100 * max(trial.scores[: p + 1]) for p in range(len(trial.scores))]
        colour = figures.ORANGE if place == 0 else figures.BLUE if not trial.dropped else figures.GREY
        label = f"{trial.name}: {best[-1]:.2f}" if place < _NAMED else None
        passes = range(1, len(best) + 1)
        ax.plot(passes, best, color=colour, linewidth=2 if place == 0 else 1, alpha=1 if place < _NAMED else 0.5, label=label)
        ax.plot(passes[-1], best[-1], "x" if trial.dropped else "o", color=colour, markersize=5)
    _log_axis(ax, [rung.passes for rung in tuned.rungs], ScalarFormatter())
    figures.name_axes(ax, "passes over the data", f"best {score} so far on held-out data (%)")
    handles, labels = ax.get_legend_handles_labels()
    ax.legend(handles[::-1], labels[::-1], loc="lower right", frameon=False, fontsize=8)
    figures.save(figure, path)


def _log_axis(ax: figures.Axes, places: Any, formatter: Any) -> None:
    """A logarithmic axis with marks at these places alone."""
    from matplotlib.ticker import NullFormatter

    ax.set_xscale("log")
    ax.set_xticks(places)
    ax.xaxis.set_major_formatter(formatter)
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.minorticks_off()


def group_curves(group_weights: Floats, names: Sequence[str], path: str | os.PathLike[str]) -> None:
    """Draw |w_k| / sum_k |w_k| of each group after each pass, the largest at the end by name; above, how many are zero.

    group_weights: (passes, groups). Raises DataError where no pass was finished, or names and columns do not fit, and
    ParameterError for a path that ends neither in .png nor in .svg.
    """
    figure = figures.new_figure(8.0, 5.0, path)
    _draw_groups(figure, group_weights, names)
    figures.save(figure, path)


def selection_curves(
    group_weights: Floats, names: Sequence[str], scores: Mapping[str, Sequence[tuple[int, float]]], path: str | os.PathLike[str]
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
