"""Dependency trees as pictures: arcs over the words as SVG, next to the gold tree or with marginals."""

from collections.abc import Sequence

import numpy as np

from structpred.core.types import ArrayLike, Floats
from structpred.errors import DataError
from structpred.evaluation.trees import Parse, forest
from structpred.report.arc_layout import SMALL, WORD, Arc, Side, columns, label_places, path
from structpred.report.drawings import label, svg
from structpred.report.figures import BLUE, GREEN, WRONG
from structpred.text.markup import Html, join, tag, visible

_LEVEL = 17.0
_FIRST = 9.0  # from the words to the line of level 0
_MARGIN = 10.0
_NEAR = 1e-3  # how far from 1 the weights of a word's heads may sum: they may have been through float32
_ORANGE = "#9A5B00"  # darker than the other pictures' orange: letters have to be read in it


def draw_tree(forms: Sequence[str], tree: Parse, *, gold: Parse | None = None, tags: Sequence[str] | None = None) -> Html:
    """Draw a tree over its words, as one SVG element that needs nothing from outside; every text in it is escaped.

    forms, tags: a string per word. Arcs go from heads to words; a root has an arrow from above. Against `gold`, an arc with
    a wrong head is red and dashed, and the right one is drawn green below the words; an arc with the right head and a wrong
    relation is orange, with the right relation in brackets. The picture is as wide as the sentence needs: let it scroll.

    Raises DataError for no words, lengths that differ, and heads that are outside the sentence or the word itself.

    >>> from typing import NamedTuple
    >>> class Tree(NamedTuple):
    ...     heads: list[int]
    ...     labels: list[str]
    >>> draw_tree(["Cats", "sleep"], Tree([2, 0], ["nsubj", "root"]))[:4]
    '<svg'
    """
    words, names = _shown_words(forms, tags)
    above = _arcs(forms, tree, "predicted" if gold is not None else "given")
    below: list[Arc] = []
    if gold is not None:
        labelled = tree.labels is not None and gold.labels is not None
        for arc, truth in zip(above, _arcs(forms, gold, "gold"), strict=True):
            if (arc.low, arc.high) != (truth.low, truth.high):
                arc.right = False
                below.append(truth)
            elif labelled and arc.label != truth.label:
                arc.gold_label = truth.label
    sides = Side(above, len(words)), Side(below, len(words))
    described = _described(words, above, below, compared=gold is not None)
    return _picture(words, names, sides, described, compared=gold is not None)


def _shown_words(forms: Sequence[str], tags: Sequence[str] | None) -> tuple[list[str], list[str] | None]:
    """Words and tags as they are drawn; DataError where they do not fit."""
    words = [visible(form) for form in forms]
    names = None if tags is None else [visible(t) for t in tags]
    if not words or (names is not None and len(names) != len(words)):
        raise DataError(f"expected at least one word and a tag for each, got {len(words)} words and {len(names or ())} tags")
    return words, names


def _picture(
    words: Sequence[str], tags: Sequence[str] | None, sides: tuple[Side, Side], described: Html, *, compared: bool
) -> Html:
    """The SVG element of arcs above and below visible words and tags; compared: whether arcs below are the gold ones."""
    names = [""] * len(words) if tags is None else tags
    x = [_MARGIN + place for place in columns(list(zip(words, names, strict=True)), sides)]
    base = _MARGIN + _FIRST + _LEVEL * sides[0].levels
    foot = base + WORD + 7 + (SMALL + 5 if tags is not None else 0)
    height = foot + _MARGIN + (_FIRST + _LEVEL * sides[1].levels if sides[1].arcs else 0)
    lines, labels = _side(sides[0], x, base, -1.0, words, compared)
    lines_below, labels_below = _side(sides[1], x, foot, 1.0, words, True)
    parts = [described, *lines, *lines_below]
    for k, (word, name) in enumerate(zip(words, names, strict=True)):
        parts.append(label(x[k], base + WORD, word, "middle", size=WORD, colour="#1d2430"))
        if tags is not None:
            parts.append(label(x[k], base + WORD + SMALL + 4, name, "middle", size=SMALL, colour="#5b6472"))
    parts += labels + labels_below
    # notebooks would show it on a dark ground, or make it as narrow as the page and its letters tiny
    look = {"xmlns": "http://www.w3.org/2000/svg", "style": "background:#ffffff;max-width:none"}
    return svg(x[-1] + _MARGIN, height, parts, **look)


def draw_marginals(
    forms: Sequence[str], marginals: ArrayLike, *, tags: Sequence[str] | None = None, least: float = 0.005
) -> Html:
    """Draw how much each arc of a sentence counts: marginals over trees, as one SVG element that needs nothing from outside.

    A layer over trees returns such weights: `SparseMAP` gives most arcs none at all, so that only the readings in doubt are seen;
    `SoftLayer` gives each arc a probability. Arcs go from heads to words, those of a root from above. An arc's number is its
    weight; heavier arcs are wider and darker.

    Parameters
    ----------
    forms : the words, n of them.
    marginals : (n, n + 1) or flat; row i, column h is the weight of the arc from head h to word i + 1; column 0 is the root.
        These are the parts of `ArborescenceOracle` and `ProjectiveTreeOracle`.
    tags : a string per word, shown below it.
    least : arcs with a smaller weight are left out; the title says how many.

    Raises
    ------
    DataError
        For lengths that differ, weights that are no numbers from 0 to 1, and a word whose heads do not sum to 1.

    Examples
    --------
    >>> picture = draw_marginals(["Cats", "sleep"], [[0.25, 0.0, 0.75], [0.75, 0.25, 0.0]])
    >>> picture[:4], picture.count("0.75</text>")
    ('<svg', 2)
    """
    words, names = _shown_words(forms, tags)
    weights = _checked_marginals(marginals, words)
    shown = weights >= max(least, np.finfo(float).tiny)
    arcs = [Arc.of(k, head, f"{(x := weights[k, head]):.2f}", x) for k, head in np.argwhere(shown).tolist()]
    hidden = int(((weights > 0) & ~shown).sum())
    rest = f"; {hidden} arcs below {least:g} are left out" if hidden else ""
    title = tag("title", f"Weights of the arcs of: {' '.join(words)}{rest}")
    description = tag("desc", "; ".join(_arc_in_words(words, arc) for arc in arcs))
    return _picture(words, names, (Side(arcs, len(words)), Side([], len(words))), join(title, description), compared=False)


def _checked_marginals(marginals: ArrayLike, words: Sequence[str]) -> Floats:
    """The weights, (n, n + 1), rounding errors outside of [0, 1] removed."""
    n, found = len(words), np.asarray(marginals, dtype=np.float64)
    if found.shape not in ((n, n + 1), (n * (n + 1),)):
        raise DataError(
            f"expected the weights of {n} words as ({n}, {n + 1}), a row a word and a column a head, the root first, or flat; "
            f"got shape {found.shape}"
        )
    found = found.reshape(n, n + 1)
    for k, row in enumerate(found):
        if not ((row >= -_NEAR) & (row <= 1 + _NEAR)).all() or abs(row.sum() - 1) > _NEAR or row[k + 1] > _NEAR:
            raise DataError(
                f"word {k + 1} ({words[k]!r}): expected weights of its heads from 0 to 1 that sum to 1, none on itself; got "
                f"{row.round(3).tolist()}"
            )
    weights: Floats = np.clip(found, 0.0, 1.0)
    weights[np.arange(n), np.arange(1, n + 1)] = 0.0
    return weights


def _arcs(forms: Sequence[str], tree: Parse, name: str) -> list[Arc]:
    """The arc of each word, in order."""
    heads = forest([tree], [forms], name).heads.tolist()
    labels = [""] * len(heads) if tree.labels is None else tree.labels
    arcs = []
    for k, (head, relation) in enumerate(zip(heads, labels, strict=True)):
        if head == k + 1:
            raise DataError(f"word {k + 1} ({forms[k]!r}) is its own head in the {name} tree: expected another one, or 0")
        arcs.append(Arc.of(k, head, visible(relation)))
    return arcs


def _side(
    side: Side, x: Sequence[float], base: float, up: float, words: Sequence[str], compared: bool
) -> tuple[list[Html], list[Html]]:
    """The lines and the labels of the arcs on one side; up: -1 above the words, 1 below them (the gold arcs)."""
    lines, labels = [], []
    all_ends = [(arc.level, x[k] + shift) for arc in side.arcs for k, shift in arc.shift.items()]
    ends = np.array([level for level, _ in all_ends], dtype=np.int64), np.array([place for _, place in all_ends])
    # Wrong and outer arcs last, so that they lie over the others.
    for arc in sorted(side.arcs, key=lambda a: (not a.right, a.level)):
        kind, colour, dash = _look(arc, up, compared)
        top = base + up * (_FIRST + _LEVEL * arc.level)
        if arc.is_root:
            end = x[arc.low] + arc.shift[arc.low]
            line, places = f"M{end:.1f} {top:.1f}V{base:.1f}", [end]
        else:
            head = arc.high if arc.word == arc.low else arc.low
            start, end = x[head] + arc.shift[head], x[arc.word] + arc.shift[arc.word]
            line, places = path(start, end, base, top), label_places(arc, start, end, ends)
        tip = f"M{end:.1f} {base - up:.1f}l-3.2 {up * 6.5:.1f}h6.4z"
        faint = None if arc.weight == 1.0 else 0.4 + 0.6 * arc.weight
        drawn = join(
            tag("title", _arc_in_words(words, arc)),
            tag("path", d=line, fill="none", stroke=colour, stroke_width=0.7 + 0.7 * arc.weight, stroke_dasharray=dash),
            tag("path", d=tip, fill=colour),
        )
        lines.append(tag("g", drawn, class_=kind, opacity=faint))
        if arc.label:
            labels += [_label(place, top + 0.35 * SMALL, arc, colour) for place in places]
    return lines, labels


def _look(arc: Arc, up: float, compared: bool) -> tuple[str, str, str | None]:
    """The class of an arc, its colour and its dashes; where nothing is compared, no arc is wrong."""
    if up > 0:
        return "arc gold", GREEN, None
    if not arc.right:
        return "arc wrong-head", WRONG, "5 3"
    if arc.gold_label is not None:
        return "arc wrong-label", _ORANGE, None
    return "arc right" if compared else "arc", BLUE, None


def _label(x: float, y: float, arc: Arc, colour: str) -> Html:
    words: Html | str = arc.label
    if arc.gold_label is not None:
        words = join(arc.label, " ", tag("tspan", f"({arc.gold_label})", fill=GREEN))
    box = tag("rect", x=x - arc.width / 2, y=y - 0.9 * SMALL, width=arc.width, height=1.2 * SMALL, fill="#ffffff")
    weight = "600" if not arc.right or arc.gold_label is not None else None
    return join(box, tag("text", words, x=x, y=y, text_anchor="middle", font_size=SMALL, fill=colour, font_weight=weight))


def _described(words: Sequence[str], above: Sequence[Arc], below: Sequence[Arc], *, compared: bool) -> Html:
    """The title, and the arcs in words, for those who do not see the picture."""
    wrong = sum(not a.right for a in above)
    relations = sum(a.gold_label is not None for a in above)
    errors = f" ({wrong} of {len(above)} heads wrong, {relations} more relations)" if compared else ""
    parts = [_arc_in_words(words, arc) for arc in above]
    if below:
        parts.append("Right would be: " + "; ".join(_arc_in_words(words, arc) for arc in below))
    return join(tag("title", f"Dependency tree of: {' '.join(words)}{errors}"), tag("desc", "; ".join(parts)))


def _arc_in_words(words: Sequence[str], arc: Arc) -> str:
    """Head, word and relation, and what is wrong."""
    head = "root" if arc.is_root else words[arc.high if arc.word == arc.low else arc.low]
    wrong = " (wrong head)" if not arc.right else f" (wrong, {arc.gold_label})" if arc.gold_label is not None else ""
    return f"{head} \N{RIGHTWARDS ARROW} {words[arc.word]}{': ' if arc.label else ''}{arc.label}{wrong}"
