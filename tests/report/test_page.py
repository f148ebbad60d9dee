"""The report page: one file, nothing active whatever the data are, everything in it that it promises."""

from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from structpred.core.markup import tag, text, visible
from structpred.evaluation import confusion_matrix, evaluate_sequences
from structpred.report import Contents, Example, Weights, write_page
from structpred.report.page import page

NASTY = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "</style><script>x</script>",
    "</title></svg><iframe src=//evil>",
    "<!--",
    "]]>",
    "&lt;b&gt;",
    "\u202eabc\u202c",
    "\u2066x",
    "a\x00b\x1b[2J",
    "\ud800",
    "javascript:alert(1)",
    "<a href='data:text/html,x'>",
    "{{7*7}}",
    "字",
]  # fmt: skip
ACTIVE = {"script", "img", "iframe", "object", "embed", "link", "base", "form", "foreignobject", "animate", "set", "use", "image"}
HISTORY = [
    {"passes": k, "seconds": 0.5 * k, "oracle_calls": k, "primal": 10 + 90 / k**2, "dual": 10 - 5 / k, "gap": 90 / k**2 + 5 / k,
     "dev_score": 0.9 - 0.1 / k}
    for k in range(1, 9)
]  # fmt: skip
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


def contents(names: list[str]) -> Contents:
    """A page in which every text is one of the names."""
    n = len(names)
    gold = [names]
    found = [[names[(i + i % 2) % n] for i in range(n)]]
    example = Example(names[0], names, gold[0], found[0], [0.5] * n)
    images = np.ones((n, 16, 8), np.uint8)
    candidates = [[(name, 0.7), (names[0], 0.2)] for name in names]
    return Contents(
        title=names[0],
        facts=[(name, name) for name in names],
        certificate=names[1],
        proven=True,
        history=HISTORY,
        labels=names,
        transitions=np.arange(n * n, dtype=float).reshape(n, n) - n,
        start=np.ones(n),
        stop=np.zeros(n),
        weights=[Weights(name, [(name, 1.0)], [(name, -1.0)]) for name in names],
        data=names[0],
        evaluation=evaluate_sequences([[f"B-{name}" for name in names]], [[f"B-{name}" for name in found[0]]]),
        confusion=confusion_matrix(gold, found),
        examples=[example, replace(example, images=images, candidates=candidates)],
        sureness="probability",
    )


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
    made = contents(NASTY)
    made = made if images else replace(made, examples=made.examples[:1], sureness="score gap")
    write_page(made, tmp_path / "a.html")
    source = (tmp_path / "a.html").read_text(encoding="utf-8")
    walk = check_inert(source)
    assert sum(name == "style" for name, _ in walk.elements) == 1
    words = "".join(walk.words)
    for name in NASTY:
        assert visible(name) in words
    assert not [c for c in source if c in "\u202e\u202c\u2066\x00\x1b"]


def test_plain_and_nasty_pages_have_the_same_elements() -> None:
    """What the texts are changes nothing in the tree of elements."""
    plain = Walk(page(contents([f"name{k}" for k in range(len(NASTY))])))
    nasty = Walk(page(contents(NASTY)))
    assert sorted(name for name, _ in plain.elements) == sorted(name for name, _ in nasty.elements)


def test_nothing_may_be_loaded_or_run() -> None:
    """The page forbids the browser to load or run anything, and names no address at all."""
    source = page(contents(["a", "b"]))
    metas = [attributes for name, attributes in Walk(source).elements if name == "meta"]
    assert {"http-equiv": "Content-Security-Policy", "content": "default-src 'none'; style-src 'unsafe-inline'"} in metas
    assert "//" not in source.replace("</", "")


def small() -> Contents:
    """A chunker with one error."""
    found = [Example("line 1", ["the", "cat", "."], GOLD[0], FOUND[0], [2.0, 0.1, 1.0])]
    edges = np.array([[1.0, -np.inf], [0.5, -2.0]])
    made = contents(["a", "b"])
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


def test_errors_are_marked() -> None:
    """Exactly the wrong token is marked, and carries the gold label."""
    walk = Walk(page(small()))
    classes = [attributes.get("class") for name, attributes in walk.elements if name == "span"]
    assert (classes.count("token wrong"), classes.count("token"), classes.count("gold")) == (1, 2, 1)


def test_what_is_missing_is_left_out() -> None:
    """Without data, history or labels there are no empty sections."""
    made = replace(small(), evaluation=None, confusion=None, examples=(), history=[], labels=[], weights=[])
    walk = Walk(page(made))
    assert [w for w in walk.words if w in ("Training", "Scores", "Confusions", "Examples", "Transitions")] == []
    assert "no curve" in page(replace(small(), history=HISTORY[:1]))


def test_drawings_are_xml() -> None:
    """Every drawing is well-formed XML by itself, so that it can be cut out and kept."""
    source = page(contents(NASTY))
    drawings = source.split("<svg")[1:]
    assert len(drawings) > 5
    for drawing in drawings:
        ElementTree.fromstring("<svg" + drawing.split("</svg>")[0] + "</svg>")


def test_many_labels_are_cut_down() -> None:
    """With two hundred labels the maps show the sixty that matter most, and say so; the page stays small."""
    names = [f"L{k}" for k in range(200)]
    source = page(contents(names))
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
