"""How pictures are made and saved: figures without global state, written atomically as PNG or SVG."""

import math
import os
from pathlib import Path
from typing import Any

from structpred.errors import DependencyError, ParameterError
from structpred.storage.atomic import write_atomic

# matplotlib's own types; it is loaded only when a picture is drawn, so they cannot be named here.
Figure = Any
Axes = Any

# Okabe and Ito's colours: distinguishable with every common kind of colour vision, and in grey.
BLUE, ORANGE, GREEN, GREY, WRONG = "#0072B2", "#E69F00", "#009E73", "#777777", "#C8102E"
#: of up to eight curves or marks
COLOURS = (BLUE, ORANGE, GREEN, WRONG, "#CC79A7", "#56B4E9", "#000000", GREY)
_FORMATS = (".png", ".svg")


def new_figure(width: float, height: float, path: str | os.PathLike[str] | None = None) -> Figure:
    """Return an empty figure of this size in inches; raises DependencyError if matplotlib is not installed.

    path: where it will be saved, checked before anything is drawn.
    matplotlib.pyplot is never used: it keeps figures alive and needs a display chosen for the whole process.
    """
    if path is not None:
        check_path(path)
    try:
        from matplotlib import figure
    except ImportError as error:
        raise DependencyError("pictures need matplotlib; install it with: pip install 'structpred[plot]'") from error
    return figure.Figure(figsize=(width, height), layout="constrained", facecolor="white")


def check_path(path: str | os.PathLike[str]) -> str:
    """Return the format that the ending asks for, png or svg; raises ParameterError for any other ending."""
    ending = Path(path).suffix.lower()
    if ending not in _FORMATS:
        raise ParameterError(f"{os.fspath(path)}: expected a name that ends in {' or '.join(_FORMATS)}")
    return ending[1:]


def name_axes(ax: Axes, below: str, beside: str | None = None) -> None:
    """Say what the axes are, and draw a grid."""
    ax.set_xlabel(below)
    if beside is not None:
        ax.set_ylabel(beside)
    ax.grid(alpha=0.3)


def signed(weight: float) -> str:
    """A weight in a cell of a table, at most a few characters; nothing for one that is infinite or not a number."""
    text = f"{weight:.1f}" if math.isfinite(weight) else ""
    return "0.0" if text == "-0.0" else text.replace("-", "\N{MINUS SIGN}")


def written(weight: float) -> str:
    """A weight with its sign; a forbidden one in words."""
    return "forbidden" if weight == -math.inf else "" if math.isnan(weight) else f"{weight:+.4f}".replace("-", "\N{MINUS SIGN}")


def brief(n: float) -> str:
    """A count in a cell, at most four characters, 1,234 as 1.2k; nothing for zero."""
    if n < 1000:
        return f"{n:.0f}" if n else ""
    return f"{n / 1000:.1f}k" if n < 9950 else f"{n / 1000:.0f}k"


def save(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Save a figure as PNG (150 dots an inch) or SVG, by the ending of `path`; an old file stays if anything fails."""
    kind = check_path(path)
    metadata = {"Date": None} if kind == "svg" else None  # no time stamp: the picture depends on the data alone
    write_atomic(path, lambda file: figure.savefig(file, format=kind, dpi=150, metadata=metadata))
