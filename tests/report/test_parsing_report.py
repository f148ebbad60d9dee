"""The page of a parser: every part is there, named rules, inert whatever the data are."""

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import pytest

from structpred.core.result import Certificate
from structpred.errors import DataError
from structpred.evaluation import CONLLX, UD
from structpred.io.treebanks.reader import read_treebank
from structpred.report import ParsingContents, Stage, parsing_report

NAMESPACE = "http://www.w3.org/2000/svg"
NASTY = ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "</title></svg><iframe src=//evil>", "\u202eabc"]


class Tree(NamedTuple):
    """A parse."""

    heads: list[int]
    labels: list[str] | None


class Walk(HTMLParser):
    """Collects elements and text, and checks that every element is closed in order."""

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.open: list[str] = []
        self.feed(source)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def contents(n: int = 20) -> ParsingContents:
    """A parser that gets every second sentence wrong: one head, and one relation by its subtype only."""
    gold = [Tree([2, 0, 4, 2, 2], ["det", "root", "amod", "obj", "punct"])] * n
    wrong = Tree([2, 0, 2, 2, 2], ["det", "root", "amod", "obj:x", "punct"])
    return ParsingContents(
        title="parser.spz",
        gold=gold,
        predicted=[wrong if i % 2 else tree for i, tree in enumerate(gold)],
        forms=[["The", "sleeps", "good", "cat", "."]] * n,
        upos=[["DET", "VERB", "ADJ", "NOUN", "PUNCT"]] * n,
        rules=UD,
        data="test.conllu",
        facts=[("trainer", "bcfw")],
        stages=[Stage(Certificate(10.0, 9.9, proven=True), name="Heads")],
    )


def test_the_parts_are_there() -> None:
    """Scores with the rules' name and intervals, relations, confusions, distances and drawn sentences have their sections."""
    walk = Walk(parsing_report(contents()))
    for heading in ("Model", "Scores", "Relations", "Confusions", "Distances", "Worst sentences"):
        assert heading in walk.words
    words = " ".join(walk.words)
    for part in ("Rules of Universal Dependencies. test.conllu: 20 sentences, 100 words, 100 of them scored", "90.00 %",
                 "UAS (", "LAS (", "Heads", "optimal to 1 %",
                 "sentence 1: 1 of 5 heads wrong", "distance between head and word"):  # fmt: skip
        assert part in words
    assert sum(attributes.get("class") == "arc wrong-head" for _, attributes in walk.elements) == 8
    # UD ignores subtypes: such a relation is no error in the scores, and none in the pictures.
    assert not [a for _, a in walk.elements if a.get("class") == "arc wrong-label"]


def test_rules_are_named_and_used() -> None:
    """Under CoNLL-X punctuation is not scored and subtypes count, in the scores and in the pictures."""
    source = parsing_report(replace(contents(), rules=CONLLX, places=[f"line {7 * i}" for i in range(20)]))
    assert "Rules of CoNLL-X. test.conllu: 20 sentences, 100 words, 80 of them scored" in source
    assert source.count('class="arc wrong-label"') == 8
    assert "line 7: 1 of 5 heads wrong" in source
    assert "obj taken for obj:x: 10" in source


def test_what_is_missing_is_left_out() -> None:
    """A perfect parser has no worst sentences; without relations, labelled parts are not there; without facts no model."""
    good = replace(contents(), predicted=contents().gold, facts=(), stages=())
    walk = Walk(parsing_report(good))
    assert not [w for w in walk.words if w in ("Worst sentences", "Model", "Training")]
    bare = replace(contents(), predicted=[Tree(t.heads, None) for t in contents().predicted])
    walk = Walk(parsing_report(bare))
    assert not [w for w in walk.words if w in ("Relations", "Confusions") or w.startswith("LAS (")]
    assert sum(attributes.get("class") == "arc wrong-head" for _, attributes in walk.elements) == 8


def test_nasty_data_stay_text() -> None:
    """Markup in words, tags, relations, names and places is text, and nothing on the page can run or load."""
    n = len(NASTY)
    gold, predicted = Tree([0, 1, 1, 1], NASTY), Tree([0, 1, 2, 1], NASTY[::-1])
    words = [NASTY]
    facts = [(NASTY[2], NASTY[3])]
    source = parsing_report(
        ParsingContents(NASTY[0], [gold], [predicted], words, words, UD, NASTY[1], facts=facts, places=NASTY[:1])
    )
    walk = Walk(source)
    assert not {name for name, _ in walk.elements} & {"script", "img", "iframe", "link", "object", "use", "image"}
    assert not [key for _, a in walk.elements for key in a if key.startswith("on") or key == "src"]
    assert "\u202e" not in source
    assert sum("<script>alert(1)</script>" in words for words in walk.words) > n
    plain = source.replace(NAMESPACE, "")
    assert "//" not in plain.replace("</", "").replace("//evil", "")


def test_drawings_are_xml_and_scroll() -> None:
    """Every drawing is well-formed by itself, and all but the curves, which shrink, stand in a box that scrolls."""
    source = parsing_report(contents())
    pictures = source.split("<svg")[1:]
    assert len(pictures) == 1 + 1 + 8
    for picture in pictures:
        ElementTree.fromstring("<svg" + picture.split("</svg>")[0] + "</svg>")
    boxes = re.findall(r'<div class="wide" tabindex="0" role="region" aria-label="[^"]+"><svg', source)
    assert len(boxes) == len(pictures) - source.count('<svg class="chart"')
    assert ".wide { overflow-x: auto;" in source


def test_places_belong_to_sentences() -> None:
    """Another number of places than of sentences is refused."""
    with pytest.raises(DataError, match="a place for each of 20 sentences, got 1"):
        parsing_report(replace(contents(), places=["line 1"]))


@pytest.mark.slow
def test_real_data(data_dir: Path) -> None:
    """The page of a real non-projective treebank is written, with its non-projective arcs, and is not large."""
    bank = read_treebank(data_dir / "ud_ancient_greek_perseus" / "grc_perseus-ud-test.conllu.gz").take(range(200))
    gold = bank.trees()
    predicted = [Tree([0, *range(1, len(t.heads))], t.labels) for t in gold]
    forms, upos = [s.forms for s in bank.sentences()], [s.upos for s in bank.sentences()]
    source = parsing_report(ParsingContents("grc", gold, predicted, forms, upos, UD, "grc"))
    assert "non-projective arcs found" in source
    assert Walk(source).words.count("Worst sentences") == 2
    assert len(source) < 3_000_000
