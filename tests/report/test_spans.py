"""Labelled phrases as boxes: which there are, what is marked as wrong, and that tokens stay text in both reading directions."""

import re
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

from structpred.errors import DataError, ParameterError
from structpred.report import draw_spans
from structpred.report.spans import COLOURS

WORDS = ["the", "old", "dog", "barks", "loudly", "."]
GOLD = ["B-NP", "I-NP", "I-NP", "B-VP", "B-ADVP", "O"]


class Boxes(HTMLParser):
    """The lines of a drawing: for each its direction, its boxes as (text, style), and all text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.lines: list[tuple[str, list[tuple[str, str]]]] = []
        self.elements: set[str] = set()
        self.text, self.box = "", False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.elements |= {tag, *(name for name, _ in attrs)}
        if "dir" in given:
            self.lines.append((str(given["dir"]), []))
        if tag == "mark":
            self.lines[-1][1].append(("", str(given["style"])))
            self.box = True

    def handle_endtag(self, tag: str) -> None:
        self.box = self.box and tag != "mark"

    def handle_data(self, data: str) -> None:
        data = data.replace("\N{NO-BREAK SPACE}", " ")  # before a label, which stays with its word
        self.text += data
        if self.box:
            text, style = self.lines[-1][1][-1]
            self.lines[-1][1][-1] = (text + data, style)


def boxes(*arguments: Any, **options: Any) -> list[list[str]]:
    """The texts of the boxes in each line."""
    return [[text for text, _ in line] for _, line in Boxes(draw_spans(*arguments, **options)).lines]


def test_each_phrase_is_a_box_with_its_label() -> None:
    """A phrase stands in one box with its type; words outside stand between them, in order."""
    assert boxes(WORDS, GOLD) == [["the old dog NP", "barks VP", "loudly ADVP"]]
    assert re.sub(" +", " ", Boxes(draw_spans(WORDS, GOLD)).text).strip() == "the old dog NP barks VP loudly ADVP ."


def test_iobes_iob1_and_plain_labels() -> None:
    """IOBES and IOB1 give phrases, other labels a box a token; O and _ give none, numbers are labels."""
    assert boxes(WORDS[:3], ["B-NP", "I-NP", "E-NP"]) == boxes(WORDS[:3], ["I-NP"] * 3) == [["the old dog NP"]]
    assert boxes(WORDS[:3], ["DET", "ADJ", "_"]) == [["the DET", "old ADJ"]]
    assert boxes(WORDS[:2], np.array([3, 0])) == [["the 3", "old 0"]]
    assert boxes(["a", "b"], ["B", "I"]) == [["a b phrase"]]


def test_wrong_boxes_are_marked_beside_the_gold_ones() -> None:
    """A wrong phrase is dashed and has a cross, the gold line shows what was missed; without errors there is one line."""
    found = Boxes(draw_spans(WORDS, ["O", "B-NP", "I-NP", "B-VP", "O", "B-VP"], gold=GOLD))
    marked = [[(text, "dashed" in style) for text, style in line] for _, line in found.lines]
    assert marked == [
        [("old dog NP \u2717", True), ("barks VP", False), (". VP \u2717", True)],
        [("the old dog NP \u2717", True), ("barks VP", False), ("loudly ADVP \u2717", True)],
    ]
    assert len(boxes(WORDS, GOLD, gold=GOLD)) == 1
    assert boxes(["a", "b"], ["X", "Y"], gold=["X", "X"]) == [["a X", "b Y \u2717"], ["a X", "b X \u2717"]]


def test_hostile_tokens_and_labels_stay_text() -> None:
    """Markup in tokens and labels is text, overrides of the direction are shown by their numbers, and no attribute appears."""
    evil = "<script>alert(1)</script>\"><img/src=x/onerror='x'></table>\u202e"
    found = Boxes(draw_spans([evil, "b", evil], [f"B-{evil}", "O", "B-X"], gold=["O", "O", "O"]))
    assert found.elements == {"div", "mark", "bdi", "b", "style", "dir"}
    assert found.text.count("<script>alert(1)</script>") == 5  # two lines of two tokens, and a label
    assert "\u202e" not in found.text


def test_right_to_left_and_very_long_tokens() -> None:
    """A sentence runs in the direction of its first letter; a long token may be broken anywhere, and no letter is lost."""
    assert Boxes(draw_spans(["12", "שלום", "abc"], ["O", "B-X", "O"])).lines[0][0] == "rtl"
    assert Boxes(draw_spans(["12", "abc", "שלום"], ["O", "B-X", "O"])).lines[0][0] == "ltr"
    shown = draw_spans(["x" * 5000], ["B-" + "L" * 300])
    assert "overflow-wrap:anywhere" in shown
    assert "x" * 5000 in shown


def test_colours_are_seen_on_white_and_on_black() -> None:
    """Every border has a contrast of at least 3 with white and with a dark notebook, and letters keep the notebook's colour."""

    def luminance(colour: str) -> float:
        parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
        linear = [v / 12.92 if v <= 0.03928 else ((v + 0.055) / 1.055) ** 2.4 for v in parts]
        return float(np.dot([0.2126, 0.7152, 0.0722], linear))

    for colour in COLOURS:
        assert 1.05 / (luminance(colour) + 0.05) > 3, colour
        assert (luminance(colour) + 0.05) / (luminance("#111111") + 0.05) > 3, colour
    assert "color:inherit" in draw_spans(["a"], ["B-X"])


def test_a_label_keeps_its_colour() -> None:
    """A label has the same colour in another sentence, and labels of one sentence have different ones as far as there are."""
    one, two = (Boxes(draw_spans(words, labels)).lines[0][1] for words, labels in (([1, 2], ["NP", "VP"]), ([3], ["VP"])))
    assert one[1][1] == two[0][1]
    labels = [f"L{k}" for k in range(len(COLOURS) + 1)]
    styles = {style for _, style in Boxes(draw_spans(labels, labels)).lines[0][1]}
    assert len(styles) == len(COLOURS)


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        (([], []), {}, DataError, "at least one token"),
        ((["a"], []), {}, DataError, "1 tokens and 0 labels"),
        ((["a"], ["O"]), {"gold": ["O", "O"]}, DataError, "2 gold labels but 1 predicted"),
        ((["a"], ["B-X"]), {"scheme": "bio"}, ParameterError, "scheme: expected one of"),
    ],
)
def test_wrong_arguments(arguments: Any, options: Any, error: type[Exception], message: str) -> None:
    """No tokens, other lengths and unknown schemes are refused, in words that name them."""
    with pytest.raises(error, match=message):
        draw_spans(*arguments, **options)
