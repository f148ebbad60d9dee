"""The picture of a search for settings: the score of each over the passes."""

import os
from typing import TYPE_CHECKING

from structpred.report import figures

if TYPE_CHECKING:
    from structpred.tuning.tuned import Tuned

_NAMED = 5


def halving_curves(tuned: "Tuned", path: str | os.PathLike[str], score: str = "score") -> None:
    """Draw the best score so far of each setting over its passes (logarithmic); a cross where it was dropped.

    The best setting is orange, the next ones are named, too. Raises ParameterError for a path that ends in neither .png nor .svg.
    """
    figures.check_path(path)
    from matplotlib.ticker import NullFormatter, ScalarFormatter

    figure = figures.new_figure(7.2, 4.2)
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
    ax.set_xscale("log")
    ax.set_xticks([rung.passes for rung in tuned.rungs])
    ax.xaxis.set_major_formatter(ScalarFormatter())
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.minorticks_off()
    ax.set_xlabel("passes over the data")
    ax.set_ylabel(f"best {score} so far on held-out data (%)")
    ax.grid(alpha=0.3)
    handles, labels = ax.get_legend_handles_labels()
    ax.legend(handles[::-1], labels[::-1], loc="lower right", frameon=False, fontsize=8)
    figures.save(figure, path)
