"""Labelled phrases in a sentence, as coloured boxes with their names; wrong ones are marked where the gold labels are given."""

import unicodedata
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from structpred.errors import DataError
from structpred.evaluation.chunks import Spans, has_phrases, matched
from structpred.evaluation.coding import encode
from structpred.text.markup import Html, join, tag

# Borders that stand out from white and from the black of dark notebooks alike; letters keep the notebook's own colour.
COLOURS = (
    "#2F7ED8", "#D1600A", "#0B9468", "#C2559B", "#A37B00", "#8465D6",
    "#D6453D", "#0E8FA8", "#6B8E23", "#B0683C", "#5C7CB0", "#7F7F7F",
)  # fmt: skip
_TINT = "26"  # how much of the colour is seen behind the words, of FF
_NO_LABEL = ("O", "_", "")


@dataclass(frozen=True)
class _Box:
    """A phrase: the tokens start to end - 1. right: None where there is nothing to compare with."""

    start: int
    end: int
    label: str
    right: bool | None


def draw_spans(
    tokens: Sequence[Any], labels: Sequence[Any], *, gold: Sequence[Any] | None = None, scheme: str = "conlleval"
) -> Html:
    """Draw a sentence with its labelled phrases in boxes, as HTML that needs nothing from outside.

    tokens, labels: one of each per token. Labels that mark phrases (B-NP, I-NP, O and the like) give a box per phrase, read by
    `scheme`: "conlleval" (IOB1, IOB2 and IOBES), or strictly "iob2" or "iobes". Other labels, such as parts of speech, give a box
    per token; "O" and "_" give none. Each box says its label, so colours are a help only: a label has the same one in every
    sentence, as far as there are enough.

    Against `gold`, a box that is not in the gold labels has a dashed border and a cross; the gold phrases then stand in a line of
    their own, where those that were missed are dashed.

    Raises DataError for no tokens and for lengths that differ, ParameterError for an unknown scheme.

    >>> shown = draw_spans(["old", "cats", "sleep"], ["B-NP", "I-NP", "B-VP"])
    >>> shown.count("<mark"), "NP" in shown
    (2, True)
    """
    words, own = list(tokens), list(labels)
    if not words or len(own) != len(words):
        raise DataError(f"expected at least one token and a label for each, got {len(words)} tokens and {len(own)} labels")
    truth = own if gold is None else list(gold)
    boxes, expected = _boxes(truth, own, scheme, compared=gold is not None)
    # of each label the colour of its checksum, or the next that no other label here has
    colours: dict[str, str] = {}
    for label in sorted({box.label for box in (*boxes, *expected)}):
        first = zlib.crc32(label.encode("utf-8", "surrogatepass"))
        order = [COLOURS[(first + k) % len(COLOURS)] for k in range(len(COLOURS))]
        colours[label] = next((colour for colour in order if colour not in colours.values()), order[0])
    lines = [_line("predicted" if gold is not None else None, words, boxes, colours)]
    if gold is not None and not all(box.right for box in (*boxes, *expected)):
        lines.append(_line("gold", words, expected, colours))
    return tag("div", *lines, style="max-width:60em;padding-right:.8em;line-height:2.3;overflow-wrap:anywhere")


def _boxes(gold: list[Any], labels: list[Any], scheme: str, *, compared: bool) -> tuple[list[_Box], list[_Box]]:
    """The boxes of the labels, and those of the gold labels."""
    coded = encode([gold], [labels])
    names, truth, found, correct = matched(coded, scheme)
    if not has_phrases(coded):
        right = [a == b for a, b in zip(gold, labels, strict=True)]
        sides = [[(k, k + 1, str(label)) for k, label in enumerate(side)] for side in (labels, gold)]
        ours, theirs = ([_Box(*place, right[place[0]]) for place in side if place[2] not in _NO_LABEL] for side in sides)
    else:
        hits = set(truth.starts[correct].tolist())
        ours, theirs = ([_Box(*place, place[0] in hits) for place in _places(side, names)] for side in (found, truth))
    return (ours, theirs) if compared else ([_Box(box.start, box.end, box.label, None) for box in ours], [])


def _places(spans: Spans, names: Sequence[str]) -> Iterator[tuple[int, int, str]]:
    for start, end, kind in zip(spans.starts.tolist(), spans.ends.tolist(), spans.types.tolist(), strict=True):
        yield start, end, names[kind] or "phrase"


def _line(name: str | None, words: Sequence[Any], boxes: Sequence[_Box], colours: dict[str, str]) -> Html:
    """A sentence with its boxes; words and labels are isolated, so that none changes the order of the others."""
    parts: list[Any] = []
    at = 0
    for box in boxes:
        parts += _plain(words[at : box.start])
        parts += [_drawn(words[box.start : box.end], box, colours[box.label]), " "]
        at = box.end
    # the direction of the first letter that has one
    kinds = (unicodedata.bidirectional(letter) for word in words for letter in str(word))
    direction = "rtl" if next((kind for kind in kinds if kind in ("L", "R", "AL")), "L") != "L" else "ltr"
    sentence = tag("div", *parts, *_plain(words[at:]), dir=direction)
    return sentence if name is None else join(tag("div", name, style="font-size:.75em;line-height:1;margin-top:.6em"), sentence)


def _plain(words: Sequence[Any]) -> list[Any]:
    return [part for word in words for part in (tag("bdi", word), " ")]


def _drawn(words: Sequence[Any], box: _Box, colour: str) -> Html:
    line = "dashed" if box.right is False else "solid"
    mark = "\N{NO-BREAK SPACE}\N{BALLOT X}" if box.right is False else ""
    style = (
        f"color:inherit;background:{colour}{_TINT};border:1.5px {line} {colour};border-radius:.35em;padding:.15em .35em;"
        "-webkit-box-decoration-break:clone;box-decoration-break:clone"
    )
    label = tag("b", tag("bdi", box.label), mark, style="font-size:.7em;letter-spacing:.02em")
    return tag("mark", *_plain(words)[:-1], "\N{NO-BREAK SPACE}", label, style=style)
