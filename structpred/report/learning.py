"""The learning curve as a picture: scores against the number of training tokens."""

import os
from typing import TYPE_CHECKING

import numpy as np

from structpred.report import figures

if TYPE_CHECKING:
    from structpred.evaluation.curves import LearningCurve


def data_curve(curve: "LearningCurve", path: str | os.PathLike[str]) -> None:
    """Draw each metric against the number of training tokens (logarithmic), the mean over the seeds with their range as a band.

    Raises ParameterError for a path that ends neither in .png nor in .svg.
    """
    figures.check_path(path)
    from matplotlib.ticker import EngFormatter, NullFormatter

    figure = figures.new_figure(3.6 * len(curve.metrics) + 0.4, 3.6)
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
        ax.set_xscale("log")
        ax.set_xticks(tokens)
        ax.xaxis.set_major_formatter(EngFormatter(sep=" ", places=None if tokens.max() < 1000 else 0))
        ax.xaxis.set_minor_formatter(NullFormatter())
        ax.minorticks_off()
        ax.set_xlabel("training tokens")
        ax.set_title(f"{_NAMES[metric]} (%)", fontsize=10)
        ax.grid(alpha=0.3)
    figures.save(figure, path)


_NAMES = {"token_accuracy": "Tokens right", "sequence_accuracy": "Sequences wholly right", "f1": "F1 of phrases"}
