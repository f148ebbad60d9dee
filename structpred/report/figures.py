"""How pictures are made and saved: figures without global state, written atomically as PNG or SVG."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

from structpred.errors import DependencyError, ParameterError
from structpred.storage.atomic import write_atomic

# matplotlib's own types; it is loaded only when a picture is drawn, so they cannot be named here.
Figure = Any
Axes = Any

# Okabe and Ito's colours: distinguishable with every common kind of colour vision, and in grey.
BLUE, ORANGE, GREEN, GREY, WRONG = "#0072B2", "#E69F00", "#009E73", "#777777", "#C8102E"
_FORMATS = (".png", ".svg")


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure of this size in inches; raises DependencyError if matplotlib is not installed.

    matplotlib.pyplot is never used: it keeps figures alive and needs a display chosen for the whole process.
    """
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


def save(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Save a figure as PNG (150 dots an inch) or SVG, by the ending of `path`; an old file stays if anything fails."""
    kind = check_path(path)
    options: dict[str, Any] = {"format": kind, "dpi": 150}
    if kind == "svg":
        options["metadata"] = {"Date": None}  # no time stamp: the picture depends on the data alone
    write: Callable[[BinaryIO], None] = lambda file: figure.savefig(file, **options)  # noqa: E731
    write_atomic(path, write)
