"""How the parts of a page are laid out: boxes that scroll, columns where there is room, large figures, tables of counts."""

from collections.abc import Sequence
from typing import Any

from structpred.report.figures import written
from structpred.text.markup import Html, join, table, tag

_LONG = 12  # a table of more rows is set in two columns where there is room
_DASH = "\N{EN DASH}"


def scrolling(content: Html, name: str) -> Html:
    """A box that scrolls where the content is wider, by the keyboard too. name: what it holds, for screen readers."""
    return tag("div", content, class_="wide", tabindex=0, role="region", aria_label=name)


def columns(*parts: Html) -> Html:
    """Parts side by side where the page is wide enough for two, else one below the other."""
    return tag("div", *parts, class_="pair")


def beside(picture: Html, words: Html) -> Html:
    """A picture as wide as it is, and in the room that is left what explains it."""
    return tag("div", picture, words, class_="beside")


def headline(note: str, figures: Sequence[tuple[str, str]]) -> Html:
    """A sentence about the data, and large the figures that matter most: (name, figure)."""
    large = tag("div", *(tag("div", tag("b", figure), name) for name, figure in figures), class_="big")
    return join(tag("p", note, class_="note"), large)


def data_table(head: Sequence[str], rows: Sequence[Sequence[Any]], *, numbers: Sequence[bool], name: str) -> Html:
    """A table that scrolls where it does not fit; a long one in two halves. numbers: which columns hold figures."""
    if len(rows) <= _LONG:
        return scrolling(table(head, rows, numbers=numbers), name)
    half = -(-len(rows) // 2)
    return columns(*(scrolling(table(head, part, numbers=numbers), name) for part in (rows[:half], rows[half:])))


def prose(part: Html) -> Html:
    """A table whose names are words of ours, not of the data."""
    return tag("div", part, class_="prose")


def counts_table(heading: str, rows: Sequence[Sequence[Any]]) -> Html:
    """A name, the numbers of gold ones, found ones and correct ones, and precision, recall and F1, shares or None, a row."""
    head = [heading, "gold", "found", "correct", "precision", "recall", "F1"]
    cells = [[*row[:4], *map(percent, row[4:])] for row in rows]
    return data_table(head, cells, numbers=[False, *[True] * 6], name=heading)


def titled(heading: str, content: Html) -> Html:
    """A part of a section with a heading of its own."""
    return tag("div", join(tag("h3", heading), content))


def percent(share: float | None) -> str:
    """A share in [0, 1] for people; a dash where there is none."""
    return _DASH if share is None else f"{100 * share:.2f} %"


def two_lists(*lists: tuple[str, Sequence[tuple[str, float]]], figure: str = "weight") -> Html:
    """Lists of names with figures side by side: (heading, list); empty ones are left out. figure: what the numbers are."""
    shown = [
        titled(heading, table(["", figure], [[name, written(w)] for name, w in rows], numbers=[False, True]))
        for heading, rows in lists
        if rows
    ]
    return columns(*shown) if shown else Html("")
