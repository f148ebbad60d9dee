"""Small drawings as inline SVG, without a plotting library: curves, heat maps, and words as strips of letter images."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from structpred.core.types import AnyArray, Floats
from structpred.report.arc_layout import text_width
from structpred.report.figures import GREY
from structpred.text.markup import Html, join, tag, visible

_MINUS = "\N{MINUS SIGN}"
#: (row, column) of a heat map -> the colour of the cell, a short number and a tool tip
Look = Callable[[int, int], tuple[str, str, str]]
_LONGEST = 24  # letters of a name beside a heat map; the tool tips have it whole


class Curve(NamedTuple):
    """One line of a chart: points (x, y) in order of x; dashed or not."""

    name: str
    points: Sequence[tuple[float, float]]
    colour: str
    dashed: bool = False


def chart(
    curves: Sequence[Curve], below: str, beside: str, *, log: bool = False, mark: tuple[float, str] | None = None,
    from_zero: bool = True,
) -> Html:  # fmt: skip
    """Curves over common axes, 440 by 280 and as wide as there is room. log: y is logarithmic. mark: a dotted line at a height,
    with its name.
    """
    width, height, left, right, top, bottom = 440.0, 280.0, 64.0, 24.0, 26.0, 44.0
    xs, ys = np.array([point for c in curves for point in c.points], dtype=np.float64).T
    ys = np.append(ys, mark[0]) if mark else ys
    x_ticks = ticks(0.0, float(xs.max()) or 1.0)
    low = min(0.0, float(ys.min())) if from_zero or ys.min() == ys.max() else float(ys.min())
    y_ticks = log_ticks(float(ys.min()), float(ys.max())) if log else ticks(low, float(ys.max()) or 1.0)
    (x0, x1), (y0, y1) = (x_ticks[0], x_ticks[-1]), (y_ticks[0], y_ticks[-1])
    scale = math.log10 if log else float
    across = lambda x: left + (x - x0) / ((x1 - x0) or 1.0) * (width - left - right)  # noqa: E731
    up = lambda y: height - bottom - (scale(y) - scale(y0)) / ((scale(y1) - scale(y0)) or 1.0) * (height - top - bottom)  # noqa: E731
    parts = []
    for y in y_ticks:
        parts.append(tag("line", x1=left, x2=width - right, y1=up(y), y2=up(y), stroke="#dddddd"))
        parts.append(label(left - 6, up(y) + 4, tick_text(y), "end"))
    for x in x_ticks:
        parts.append(tag("line", x1=across(x), x2=across(x), y1=height - bottom, y2=height - bottom + 4, stroke="#999999"))
        parts.append(label(across(x), height - bottom + 17, tick_text(x), "middle"))
    if mark is not None:
        parts.append(tag("line", x1=left, x2=width - right, y1=up(mark[0]), y2=up(mark[0]), stroke=GREY, stroke_dasharray="2 3"))
        parts.append(label(width - right, up(mark[0]) - 4, mark[1], "end"))
    for k, curve in enumerate(curves):
        points = [(across(x), up(y)) for x, y in curve.points]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        dash = "5 3" if curve.dashed else None
        parts.append(tag("polyline", points=path, fill="none", stroke=curve.colour, stroke_width=1.8, stroke_dasharray=dash))
        if len(points) <= 40:
            parts += [tag("circle", cx=x, cy=y, r=2.4, fill=curve.colour) for x, y in points]
        if len(curves) > 1:
            place = left + 8 + 84 * k
            parts.append(
                tag("line", x1=place, x2=place + 20, y1=13, y2=13, stroke=curve.colour, stroke_width=2, stroke_dasharray=dash)
            )
            parts.append(label(place + 25, 17, curve.name, "start"))
    parts.append(label((left + width - right) / 2, height - 8, below, "middle"))
    parts.append(label(13, (top + height - bottom) / 2, beside, "middle", turned=True))
    return svg(width, height, parts, class_="chart", aria_label=f"{beside} against {below}")


def heat_map(
    rows: Sequence[str], columns: Sequence[str], look: Look, *, beside: str, above: str, ends: Sequence[str] = ()
) -> Html:
    """A table of coloured cells: names of rows and columns, and how each cell looks.

    Dark colours must come with light numbers: the colour's brightness decides. ends: a text after each row. Long names are cut.
    """
    rows, columns = [_cut(name) for name in rows], [_cut(name) for name in columns]
    cell = 30.0 if max(len(rows), len(columns)) <= 40 else 14.0
    size = 11.0 if cell > 20 else 8.0
    left, top = (26 + max((text_width(name, size) for name in names), default=size) for names in (rows, columns))
    right = 10 + (48.0 if ends else 0.0)
    parts = []
    for i, name in enumerate(rows):
        parts.append(label(left - 5, top + (i + 0.5) * cell + 0.35 * size, name, "end", size=size))
        if ends:
            parts.append(label(left + len(columns) * cell + 6, top + (i + 0.5) * cell + 0.35 * size, ends[i], "start", size=size))
        for j in range(len(columns)):
            x, y, (colour, number, title) = left + j * cell, top + i * cell, look(i, j)
            parts.append(tag("rect", tag("title", title), x=x, y=y, width=cell - 1, height=cell - 1, fill=colour))
            if number and cell > 20:
                ink = "#ffffff" if brightness(colour) < 0.55 else "#222222"
                parts.append(label(x + cell / 2 - 0.5, y + cell / 2 + 3, number, "middle", size=9.0, colour=ink))
    turned = max((len(name) for name in columns), default=1) > 2
    for j, name in enumerate(columns):
        x = left + (j + 0.5) * cell + (0.3 * size if turned else 0)
        parts.append(label(x, top - 6, name, "start" if turned else "middle", size=size, turned=turned))
    middle, centre = top + len(rows) * cell / 2, left + len(columns) * cell / 2
    width = max(left + len(columns) * cell + right, centre + text_width(above, 11.0) / 2)
    height = max(top + len(rows) * cell + 8, middle + text_width(beside, 11.0) / 2)
    parts.append(label(11, middle, beside, "middle", turned=True))
    parts.append(label(centre, 12, above, "middle"))
    return svg(width, height, parts, aria_label=f"{beside} by {above}")


def _cut(name: str) -> str:
    shown = visible(name)
    return shown if len(shown) <= _LONGEST else f"{shown[: _LONGEST - 1]}\N{HORIZONTAL ELLIPSIS}"


def letter_images(images: AnyArray, *, unit: float = 3.0) -> list[Html]:
    """One drawing a letter, dark pixels as squares. images: (n_letters, height, width), ink where larger than 0."""
    drawings = []
    for image in np.asarray(images):
        height, width = image.shape
        path = "".join(f"M{x} {y}h1v1h-1z" for y, x in zip(*np.nonzero(image > 0), strict=True))
        ink = tag("path", d=path, fill="#111111", shape_rendering="crispEdges")
        drawings.append(
            tag("svg", ink, viewBox=f"0 0 {width} {height}", width=width * unit, height=height * unit, aria_hidden="true")
        )
    return drawings


def weight_image(weights: Floats, *, unit: float = 5.0) -> Html:
    """A picture of weights (height, width) in [-1, 1], a square per weight."""
    height, width = weights.shape
    squares = [
        tag("rect", x=x, y=y, width=1.02, height=1.02, fill=diverging(float(w))) for (y, x), w in np.ndenumerate(weights) if w
    ]
    return tag("svg", join(*squares), viewBox=f"0 0 {width} {height}", width=width * unit, height=height * unit, role="img")


def sequential(share: float, power: float = 0.4) -> str:
    """White to blue for 0 to 1; a power below 1 spreads the small shares, so that they show."""
    return _mixed((255, 255, 255), (8, 72, 144), max(0.0, min(1.0, share)) ** power)


def diverging(value: float) -> str:
    """Red through white to blue for -1 to 1."""
    strength = min(1.0, abs(value)) ** 0.7
    return _mixed((255, 255, 255), (8, 72, 144) if value > 0 else (178, 24, 43), strength)


def brightness(colour: str) -> float:
    """How bright a colour #rrggbb is to the eye, in [0, 1]."""
    red, green, blue = (int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5))
    return 0.299 * red + 0.587 * green + 0.114 * blue


def ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Round numbers from below low to above high.

    >>> ticks(0, 9.3)
    [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]
    """
    span = (high - low) or 1.0
    step = 10.0 ** math.floor(math.log10(span / most))
    step *= next(k for k in (1, 2, 5, 10, 20) if span / (step * k) <= most)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(k * step, 12) for k in range(first, last + 1)]


def log_ticks(low: float, high: float) -> list[float]:
    """Powers of ten around positive numbers, with 2 and 5 between them where there are few.

    >>> log_ticks(0.3, 4)
    [0.2, 0.5, 1.0, 2.0, 5.0]
    """
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    factors = (1, 2, 5) if last - first <= 3 else (1,)
    every = max(1, (last - first) // 6)
    found = [k * 10.0**p for p in range(first, last + 1, every) for k in factors]
    start = max((i for i, t in enumerate(found) if t <= low), default=0)
    stop = next((i for i, t in enumerate(found) if t >= high), len(found) - 1)
    return [float(f"{t:.3g}") for t in found[start : max(stop, start + 1) + 1]]


def tick_text(value: float) -> str:
    """A number on an axis: 1200000 as 1.2M."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= size:
            return f"{value / (1e3 if letter == 'k' else size):g}{letter}"
    return f"{value:g}".replace("-", _MINUS)


def _mixed(first: tuple[int, int, int], second: tuple[int, int, int], share: float) -> str:
    return "#" + "".join(f"{round(a + (b - a) * share):02x}" for a, b in zip(first, second, strict=True))


def label(
    x: float, y: float, words: str, anchor: str, *, size: float = 11.0, colour: str = "#444444", turned: bool = False
) -> Html:
    """A word or a few at a place; anchor: which end of them, "start", "middle" or "end", is there. turned: they go upwards."""
    turn = f"rotate(-90 {x:.1f} {y:.1f})" if turned else None
    return tag("text", words, x=x, y=y, text_anchor=anchor, font_size=size, fill=colour, transform=turn)


def svg(width: float, height: float, parts: Sequence[Html], **attributes: str | None) -> Html:
    """A drawing of this size."""
    size = {"viewBox": f"0 0 {width:.0f} {height:.0f}", "width": round(width), "height": round(height)}
    return tag("svg", join(*parts), **attributes, **size, font_family="system-ui, sans-serif", role="img")
