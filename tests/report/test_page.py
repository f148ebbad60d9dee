"""The report page: one file, nothing active whatever the data are, everything in it that it promises."""

from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from page_contents import BOUNDS, HISTORY, LONG, NASTY, PAGES, chain_contents

from structpred.core.result import Certificate
from structpred.evaluation import Calibration, confusion_matrix, evaluate_multilabel, evaluate_sequences
from structpred.evaluation.multilabel import cooccurrence
from structpred.report import Contents, Example, Stage, write_page
from structpred.report.contents import About
from structpred.report.page import page
from structpred.report.parsing_sections import OnLabels, label_report
from structpred.text.markup import tag, text, visible

ACTIVE = {"script", "img", "iframe", "object", "embed", "link", "base", "form", "foreignobject", "animate", "set", "use", "image"}
GOLD, FOUND = [["B-NP", "I-NP", "O"], ["B-VP", "O"]], [["B-NP", "O", "O"], ["B-VP", "O"]]


class Walk(HTMLParser):
    """Collects elements, attributes and text, and checks that every element is closed in order."""

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.open: list[str] = []
        self.comments = 0
        self.feed(source)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    def handle_comment(self, data: str) -> None:
        self.comments += 1


def check_inert(source: str) -> Walk:
    """Parse; no element or attribute that could run, load or send anything."""
    walk = Walk(source)
    assert walk.open == []
    assert walk.comments == 0
    names = {name for name, _ in walk.elements}
    assert not names & ACTIVE
    for name, attributes in walk.elements:
        assert not [key for key in attributes if key.startswith("on") or key in ("src", "srcset", "srcdoc", "formaction")]
        for key in ("href", "xlink:href"):
            assert (attributes.get(key) or "#").startswith("#"), (name, attributes)
        assert "url(" not in (attributes.get("style") or "")
    return walk


@pytest.mark.parametrize("images", [True, False])
def test_nasty_data_stay_text(images: bool, tmp_path: Path) -> None:
    """Markup, quotes, template signs, direction marks and broken characters in every text make no active node."""
    made = chain_contents(NASTY)
    made = made if images else replace(made, examples=made.examples[:1], sureness="score gap")
    write_page(made, tmp_path / "a.html")
    source = (tmp_path / "a.html").read_text(encoding="utf-8")
    walk = check_inert(source)
    assert sum(name == "style" for name, _ in walk.elements) == 1
    words = "".join(walk.words)
    for name in NASTY:
        assert visible(name) in words
    assert not [c for c in source if c in "\u202e\u202c\u2066\x00\x1b"]


@pytest.mark.parametrize("kind", PAGES)
def test_plain_and_nasty_pages_have_the_same_elements(kind: str) -> None:
    """What the texts are changes nothing in the tree of elements, but how often a long arc of a tree bears its label."""
    pages = Walk(PAGES[kind]([f"name{k}" for k in range(len(NASTY))])), check_inert(PAGES[kind](NASTY))
    plain, nasty = (sorted(name for name, _ in walk.elements if name not in ("rect", "text")) for walk in pages)
    assert plain == nasty


def test_nothing_may_be_loaded_or_run() -> None:
    """The page forbids the browser to load or run anything, and names no address at all."""
    source = page(chain_contents(["a", "b"]))
    metas = [attributes for name, attributes in Walk(source).elements if name == "meta"]
    assert {"http-equiv": "Content-Security-Policy", "content": "default-src 'none'; style-src 'unsafe-inline'"} in metas
    assert "//" not in source.replace("</", "")


def small() -> Contents:
    """A chunker with one error."""
    found = [Example("line 1", ["the", "cat", "."], GOLD[0], FOUND[0], [2.0, 0.1, 1.0])]
    edges = np.array([[1.0, -np.inf], [0.5, -2.0]])
    made = chain_contents(["a", "b"])
    return replace(
        made, labels=["O", "I-NP"], transitions=edges, start=np.array([0.1, -np.inf]), stop=np.zeros(2),
        evaluation=evaluate_sequences(GOLD, FOUND), confusion=confusion_matrix(GOLD, FOUND), examples=found, sureness="score gap",
    )  # fmt: skip


def test_the_parts_are_there() -> None:
    """Certificate, curves, scores by type, confusions, examples, transitions and features each have their section."""
    walk = Walk(page(small()))
    words = " ".join(walk.words)
    for heading in ("Model", "Training", "Scores", "Confusions", "Examples", "Transitions", "Strongest features"):
        assert heading in walk.words
    for word in ("80.00 %", "NP", "primal", "dual", "gap, % of the primal", "held-out score, %", "It is not a probability"):
        assert word in words
    titles = [word for word in walk.words if "taken for" in word]
    assert "I-NP taken for O: 1 (100.00 %)" in titles
    assert "O \N{RIGHTWARDS ARROW} I-NP: forbidden" in walk.words
    assert "(start) \N{RIGHTWARDS ARROW} I-NP: forbidden" in walk.words


def test_reliability_of_probabilities_is_drawn() -> None:
    """The error, a point for each bin and the line where probabilities hold; without phrases there is no such section."""
    found = Calibration(np.array([0.95, 0.92, 0.6]), np.array([True, True, False]), 4)
    words = Walk(page(replace(small(), calibration=found))).words
    assert "Probabilities of phrases" in words
    assert f"Expected calibration error: {found.error:.4f}." in words
    assert {"ideal", "share that is right", "93.50 %", "recall from here"} <= set(words)
    for none in (None, Calibration(np.empty(0), np.empty(0, bool), 4)):
        assert "Probabilities of phrases" not in Walk(page(replace(small(), calibration=none))).words


@pytest.mark.parametrize(
    ("certificate", "said", "proven"),
    [
        (BOUNDS, "is at most 2.66 % below what was reached. Scores usually settle long before this gap closes.", True),
        (Certificate(10.0, 9.95, proven=True), "objective is optimal to 0.5 %. More passes can hardly lower it.", True),
        (
            Certificate(10.0, 1.0, proven=True),
            "The bounds hold: the optimum of the training objective is at most 90 % below what was reached. That says little",
            False,
        ),
        (Certificate(2.0, -0.5, proven=True), "lies between -0.5 and 2. That says little", False),
        (Certificate(14.28, proven=True), "Nothing is certified: no lower bound on the optimum was computed", False),
        (Certificate(14.28, 13.0), "Nothing is certified: inference is inexact", False),
        (Certificate(1.0, 1.5, proven=True), "Nothing is certified: the lower bound lies above what was reached", False),
        (Certificate(10.0, 9.95, proven=True, checked=False), "Own classes were not checked.", True),
        (Certificate(14.28, local=True), "Nothing is certified: the problem is not convex", False),
        (Certificate(), "Nothing is certified: no objective was computed", False),
    ],
)
def test_the_certificate_stands_below_the_scores(certificate: Certificate, said: str, proven: bool) -> None:
    """After the scores a sentence says what is certified, for every kind of certificate; green is only what is proven closely."""
    source = page(replace(small(), stages=[Stage(certificate, HISTORY)]))
    assert source.index("tokens right") < source.index(said)
    assert ('class="callout proven"' in source) == proven
    assert (str(certificate) in source) == (certificate.gap is not None)


def test_long_names_are_cut_in_drawings_only() -> None:
    """A label of 120 letters is cut beside a heat map; the tool tips and the tables have it whole."""
    walk = Walk(page(chain_contents(LONG)))
    assert f"{LONG[0][:23]}\N{HORIZONTAL ELLIPSIS}" in walk.words
    assert any(word.startswith(f"{LONG[0]} taken for") for word in walk.words)


def test_errors_are_marked() -> None:
    """Exactly the wrong token is marked, and carries the gold label."""
    walk = Walk(page(small()))
    classes = [attributes.get("class") for name, attributes in walk.elements if name == "span"]
    assert (classes.count("token wrong"), classes.count("token"), classes.count("gold")) == (1, 2, 1)


def test_what_is_missing_is_left_out() -> None:
    """Without data, history or labels there are no empty sections."""
    made = replace(small(), evaluation=None, confusion=None, examples=(), stages=[], labels=[], weights=[])
    walk = Walk(page(made))
    assert [w for w in walk.words if w in ("Training", "Scores", "Confusions", "Examples", "Transitions")] == []
    assert "no curve" in page(replace(small(), stages=[Stage(BOUNDS, HISTORY[:1])]))


def test_drawings_are_xml() -> None:
    """Every drawing is well-formed XML by itself, so that it can be cut out and kept."""
    source = page(chain_contents(NASTY))
    drawings = source.split("<svg")[1:]
    assert len(drawings) > 5
    for drawing in drawings:
        ElementTree.fromstring("<svg" + drawing.split("</svg>")[0] + "</svg>")


def test_many_labels_are_cut_down() -> None:
    """With two hundred labels the maps show the sixty that matter most, and say so; the page stays small."""
    names = [f"L{k}" for k in range(200)]
    source = page(chain_contents(names))
    assert source.count("Shown are the 60 of 200 labels") == 2
    assert len(source) < 3_000_000


def test_pixel_weights_replace_feature_lists() -> None:
    """For pixels there is one picture a label in place of lists of numbers."""
    made = replace(small(), templates=[("a", np.eye(4)), ("b", -np.eye(4))])
    walk = Walk(page(made))
    assert "Weights of the pixels" in walk.words
    assert "Strongest features" not in walk.words


def test_the_same_contents_give_the_same_bytes(tmp_path: Path) -> None:
    """No time stamp and no chance: the page depends on its contents alone."""
    assert page(small()) == page(small())
    write_page(small(), tmp_path / "a.html")
    assert [p.name for p in tmp_path.iterdir()] == ["a.html"]


def test_visible_keeps_what_is_seen() -> None:
    """Ordinary text of any script stays as it is; joiners, which some scripts need, too; the rest becomes a number."""
    for kept in ("abc", "naïve", "字", "क्\u200dष", "a b"):
        assert visible(kept) == kept
    assert visible("a\u200eb\ufeff\u2028") == "a⟨U+200E⟩b⟨U+FEFF⟩⟨U+2028⟩"
    assert text(tag("b", "<")) == "<b>&lt;</b>"


def test_labels_together() -> None:
    """The page of label sets names the pairs predicted too often and too seldom, and says when labels are left out."""
    gold, found = np.array([[1, 1, 0], [1, 1, 0], [0, 1, 1]]), np.array([[1, 0, 0], [1, 0, 1], [0, 1, 1]])
    scores = evaluate_multilabel(gold, found, ["a", "b", "c"])
    made = OnLabels("d", scores, [], cooccurrence(gold, found, ["a", "b", "c"]))
    words = Walk(label_report(About("t", [], []), [], [], made)).words
    often, seldom = words.index("Predicted together too often"), words.index("Predicted together too seldom")
    assert words[often:seldom][-5:] == ["a", "c", "0", "1", "+1"]
    assert words[seldom:][-6:-1] == ["a", "b", "2", "0", "\N{MINUS SIGN}2"]
    assert "a and b: 2 (100.00 % of a)" in words
    few = made._replace(together=cooccurrence(gold, found, ["a", "b", "c"], most=2))
    assert "Shown are the 2 most frequent of 3 labels." in label_report(About("t", [], []), [], [], few)
