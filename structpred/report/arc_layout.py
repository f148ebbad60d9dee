"""Where the arcs of a dependency tree go: levels by nesting, room at the words for every arc end, room for the labels."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from structpred.core.types import Flags, Floats, Integers

WORD, SMALL = 15.0, 10.5  # font sizes of words, and of tags and relations
_END = 7.0  # between two arc ends at a word
_GAP = 14.0  # between two words
_CORNER = 6.0
_VIEW = 700.0  # the part of a long arc that has a label of its own
_MOST_LABELS = 20
_WIDE = ("W", "F")
_UNSEEN = ("Mn", "Me", "Cf")


@dataclass
class Arc:
    """An arc between the words low < high (from 0), or the arrow of a root (low == high), with its relation.

    right: whether its head is the gold one; gold_label: the gold relation where only that differs. weight: above 0,
    at most 1; lighter arcs are thinner and fainter. Filled in by `Side`: level, from 1; the places of the ends as shifts from
    the middles of the words low and high.
    """

    low: int
    high: int
    word: int
    label: str
    right: bool = True
    gold_label: str | None = None
    weight: float = 1.0
    level: int = 0
    shift: dict[int, float] = field(default_factory=dict)

    @classmethod
    def of(cls, word: int, head: int, label: str, weight: float = 1.0) -> "Arc":
        """The arc from a head, counted from 1 with 0 for the root, to a word, counted from 0."""
        other = word if head == 0 else head - 1
        return cls(min(word, other), max(word, other), word, label, weight=weight)

    @property
    def is_root(self) -> bool:
        """Whether this is the arrow of a root."""
        return self.low == self.high

    @property
    def width(self) -> float:
        """What the label takes, estimated."""
        if not self.label:
            return 0.0
        both = self.label if self.gold_label is None else f"{self.label} ({self.gold_label})"
        bold = 1.0 if self.right and self.gold_label is None else 1.12
        return bold * text_width(both, SMALL) + 4


class Side:
    """The arcs on one side of the words: gives each its level and its places at the words.

    An arc lies one level above all arcs that it shares a stretch of the sentence with and that are not longer: so the
    height is the depth of nesting, not the distance.
    """

    def __init__(self, arcs: Sequence[Arc], n_words: int) -> None:
        self.arcs = sorted(arcs, key=lambda arc: (arc.high - arc.low, arc.low))
        self.ends = [0] * n_words
        height = [0] * (n_words + 1)  # the highest arc over the stretch before each word
        for arc in (a for a in self.arcs if not a.is_root):
            arc.level = 1 + max(height[arc.low + 1 : arc.high + 1])
            height[arc.low + 1 : arc.high + 1] = [arc.level] * (arc.high - arc.low)
        for arc in (a for a in self.arcs if a.is_root):
            arc.level = 1 + max(height[arc.low : arc.low + 2])
        self.levels = max((arc.level for arc in self.arcs), default=0)
        # ends that go left are left of those that go right, outer arcs nearest to the middle: so nested arcs never cross
        at: list[list[Arc]] = [[] for _ in range(n_words)]
        for arc in self.arcs:
            for k in {arc.low, arc.high}:
                at[k].append(arc)
        for k, own in enumerate(at):
            left = sorted((a for a in own if a.low < k), key=lambda a: a.level)
            right = sorted((a for a in own if a.high > k), key=lambda a: -a.level)
            order = [*left, *(a for a in own if a.is_root), *right]
            self.ends[k] = len(order)
            for j, arc in enumerate(order):
                arc.shift[k] = (j - (len(order) - 1) / 2) * _END


def columns(texts: Sequence[tuple[str, str]], sides: Sequence[Side]) -> list[float]:
    """The middles of the words, from 0, and the whole width as the last number; texts: (form, tag) of each word.

    Words are moved apart until every label fits on its arc.
    """
    half = []
    for k, (form, tag) in enumerate(texts):
        ends = max(side.ends[k] for side in sides)
        roots = max((a.width for side in sides for a in side.arcs if a.is_root and a.low == k), default=0.0)
        half.append(max(text_width(form, WORD), text_width(tag, SMALL), ends * _END, roots) / 2 + _GAP / 2)
    steps = [a + b for a, b in pairwise(half)]  # from the middle of each word to the next
    for side in sides:
        for arc in (a for a in side.arcs if not a.is_root):
            span = arc.high - arc.low
            room = sum(steps[arc.low : arc.high]) + arc.shift[arc.high] - arc.shift[arc.low]
            if (missing := arc.width + 2 * _CORNER - room) > 0:
                for k in range(arc.low, arc.high):
                    steps[k] += missing / span
    middles = [half[0]]
    for step in steps:
        middles.append(middles[-1] + step)
    return [*middles, middles[-1] + half[-1]]


def path(x1: float, x2: float, base: float, top: float) -> str:
    """An arc as an SVG path: from (x1, base) straight up (or down) to `top`, across, and to (x2, base), with round corners."""
    turn = min(_CORNER, abs(x2 - x1) / 2, abs(base - top))
    side, up = (turn if x2 > x1 else -turn), (turn if base > top else -turn)
    return (
        f"M{x1:.1f} {base:.1f}V{top + up:.1f}Q{x1:.1f} {top:.1f} {x1 + side:.1f} {top:.1f}"
        f"H{x2 - side:.1f}Q{x2:.1f} {top:.1f} {x2:.1f} {top + up:.1f}V{base:.1f}"
    )


def label_places(arc: Arc, x1: float, x2: float, ends: tuple[Integers, Floats]) -> list[float]:
    """Where the label of an arc from x1 to x2 goes: its middle, and on a long arc several times, so that one is in view.

    A place is moved along the line if another arc's end would be behind the label. ends: the levels and the x of all arc
    ends on this side; those of higher arcs pass this arc's line.
    """
    half = arc.width / 2
    low, high = min(x1, x2) + _CORNER + half, max(x1, x2) - _CORNER - half
    fitting = int(abs(x2 - x1) / (arc.width + 2 * _CORNER))  # a label may be wider than the view
    n = max(1, min(round(abs(x2 - x1) / _VIEW), _MOST_LABELS, fitting))
    wanted = [min(x1, x2) + abs(x2 - x1) * (k + 0.5) / n for k in range(n)]
    levels, places = ends
    passing = np.sort(places[(levels > arc.level) & (places > low - half) & (places < high + half)])
    if not len(passing):
        return wanted
    free = np.concatenate((passing - half - 1, passing + half + 1))
    free = free[(free >= low) & (free <= high) & _clear(free, passing, half)]
    clear = _clear(np.array(wanted), passing, half)
    return [p if fine or not len(free) else float(free[np.abs(free - p).argmin()]) for p, fine in zip(wanted, clear, strict=True)]


def _clear(places: Floats, passing: Floats, half: float) -> Flags:
    """Which places have none of the (sorted) ends within half a label."""
    return np.searchsorted(passing, places - half) == np.searchsorted(passing, places + half, "right")


def text_width(text: str, size: float) -> float:
    """About how wide a text is, at a font size; on the safe side.

    >>> text_width("cat", 10.0) < text_width("MAT", 10.0) < text_width("\u5b57\u5b57\u5b57", 10.0)
    True
    """
    return size * sum(_letter(c) for c in text)


def _letter(c: str) -> float:
    if unicodedata.category(c) in _UNSEEN:
        return 0.0
    if unicodedata.east_asian_width(c) in _WIDE:
        return 1.05
    if c in "iljtfr.,:;'|!()[] ":
        return 0.38
    return 0.95 if c in "mwMW@%\N{EM DASH}" else 0.72 if c.isupper() else 0.6
