"""Pictures of dependency trees: every arc is there, nested and told apart; no text becomes markup; displaCy's JSON."""

import itertools
import random
import re
from typing import NamedTuple
from xml.etree import ElementTree

import pytest

from structpred.errors import DataError
from structpred.report import draw_tree
from structpred.report.arc_layout import SMALL, Arc, Side, columns, text_width
from structpred.text.markup import visible

SVG = "{http://www.w3.org/2000/svg}"


class Tree(NamedTuple):
    """A parse."""

    heads: list[int]
    labels: list[str] | None


FORMS = ["A", "hearing", "is", "scheduled", "on", "the", "issue", "today"]
# Two arcs cross: hearing -> issue and scheduled -> today.
CROSSING = Tree([2, 4, 4, 0, 7, 7, 2, 4], ["det", "nsubj", "aux", "root", "case", "det", "nmod", "advmod"])


def arcs(svg: str) -> list[ElementTree.Element]:
    """The arcs of a picture, which must be well-formed XML."""
    return [g for g in ElementTree.fromstring(svg).iter(f"{SVG}g") if (g.get("class") or "").startswith("arc")]


def kinds(svg: str) -> dict[str, int]:
    """How many arcs of each kind a picture has."""
    found = [g.get("class") or "" for g in arcs(svg)]
    return {kind: found.count(kind) for kind in set(found)}


def texts(svg: str) -> list[str]:
    """The words, tags and labels that are seen."""
    return ["".join(t.itertext()) for t in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def random_tree(n: int, seed: int) -> Tree:
    """A tree of n words with many crossing arcs."""
    rng = random.Random(seed)
    order = rng.sample(range(1, n + 1), n)
    heads = [0] * n
    for k, m in enumerate(order[1:], 1):
        heads[m - 1] = rng.choice(order[:k])
    return Tree(heads, [f"rel{m % 7}" for m in range(n)])


def test_every_arc_is_there() -> None:
    """Each word has one arc with its relation, roots included; words and tags are below, in order."""
    svg = draw_tree(FORMS, CROSSING, tags=["X"] * 8)
    assert kinds(svg) == {"arc": 8}
    titles = {g.findtext(f"{SVG}title") for g in arcs(svg)}
    expected = {f"{FORMS[h - 1] if h else 'root'} → {form}: {label}" for form, h, label in zip(FORMS, *CROSSING, strict=True)}
    assert titles == expected
    seen = texts(svg)
    assert [t for t in seen if t in FORMS] == FORMS
    assert seen.count("X") == 8
    assert sorted(t for t in seen if t not in [*FORMS, "X"]) == sorted(CROSSING.labels or ())


def test_gold_equal_to_predicted_has_no_wrong_mark() -> None:
    """Where all is right, no arc is marked, none is below, and no colour of an error occurs."""
    svg = draw_tree(FORMS, CROSSING, gold=CROSSING)
    assert kinds(svg) == {"arc right": 8}
    assert "stroke-dasharray" not in svg
    assert "wrong" not in svg.replace("0 of 8 heads wrong", "")


def test_errors_are_marked() -> None:
    """A wrong head is dashed with the right arc below; a wrong relation keeps its arc and names the right one."""
    wrong = Tree([2, 4, 4, 0, 7, 7, 4, 4], ["det", "obj", "aux", "root", "case", "det", "nmod", "advmod"])
    svg = draw_tree(FORMS, wrong, gold=CROSSING)
    assert kinds(svg) == {"arc right": 6, "arc wrong-head": 1, "arc wrong-label": 1, "arc gold": 1}
    assert svg.count("stroke-dasharray") == 1
    assert "obj (nsubj)" in texts(svg)
    title = {g.get("class"): g.findtext(f"{SVG}title") for g in arcs(svg)}
    assert title["arc wrong-head"] == "scheduled → issue: nmod (wrong head)"
    assert title["arc gold"] == "hearing → issue: nmod"
    root = ElementTree.fromstring(svg)
    assert "1 of 8 heads wrong, 1 more relations" in (root.findtext(f"{SVG}title") or "")
    assert "Right would be: hearing → issue: nmod" in (root.findtext(f"{SVG}desc") or "")


def test_a_wrong_root_is_marked() -> None:
    """A wrong root has a dashed arrow from above, the right one a green arrow from below."""
    svg = draw_tree(["a", "b"], Tree([0, 1], None), gold=Tree([2, 0], None))
    assert kinds(svg) == {"arc wrong-head": 2, "arc gold": 2}
    assert {g.findtext(f"{SVG}title") for g in arcs(svg) if g.get("class") == "arc gold"} == {"b → a", "root → b"}


def test_relations_are_compared_only_where_both_sides_have_them() -> None:
    """A tree without relations against one with them is judged on its heads alone."""
    assert kinds(draw_tree(FORMS, Tree(CROSSING.heads, None), gold=CROSSING)) == {"arc right": 8}


NASTY = [
    "<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "</text></svg><script>", "]]>", "&amp;", "a\x00b",
    "\u202eabc", "\ud800", "' onload='x",
]  # fmt: skip


def test_nasty_text_stays_text() -> None:
    """Markup, quotes, controls and direction marks in words, tags and relations make no element and no attribute."""
    n = len(NASTY)
    tree, gold = Tree([0, *range(1, n)], NASTY), Tree([0, 1, *[1] * (n - 2)], NASTY[::-1])
    plain = Tree(tree.heads, [f"l{k}" for k in range(n)]), Tree(gold.heads, [f"l{k}" for k in range(n)][::-1])
    svg = draw_tree(NASTY, tree, gold=gold, tags=NASTY)
    root = ElementTree.fromstring(svg)
    assert {e.tag.removeprefix(SVG) for e in root.iter()} <= {"svg", "title", "desc", "g", "path", "rect", "text", "tspan"}
    assert not [name for e in root.iter() for name in e.attrib if name.startswith("on") or "href" in name]
    assert not [c for c in svg if c in "\u202e\x00\ud800"]
    seen = texts(svg)
    for name in NASTY:
        assert seen.count(visible(name)) >= 2
    other = ElementTree.fromstring(draw_tree([f"w{k}" for k in range(n)], plain[0], gold=plain[1], tags=["t"] * n))
    assert [e.tag for e in other.iter()].count(f"{SVG}g") == [e.tag for e in root.iter()].count(f"{SVG}g")


def test_scripts_survive() -> None:
    """Right-to-left words, combining marks, joiners, wide characters and emoji are in the picture as they are."""
    forms = ["שָׁלוֹם", "العربية", "e\u0301", "ἄνθρωπος", "क्\u200dष", "字", "😀"]
    svg = draw_tree(forms, Tree([0, 1, 2, 3, 4, 5, 6], None))
    assert texts(svg) == forms


def test_one_word() -> None:
    """A sentence of one word has a root arrow and nothing else."""
    svg = draw_tree(["Yes"], Tree([0], ["root"]), gold=Tree([0], ["root"]))
    assert kinds(svg) == {"arc right": 1}
    assert texts(svg) == ["Yes", "root"]


def test_levels_are_nesting_not_distance() -> None:
    """A long arc over nothing is low; one over others is above them; arcs that only touch share a level."""
    flat = Side([Arc(0, 50, 50, "x"), Arc(50, 51, 51, "y")], 60)
    assert [arc.level for arc in flat.arcs] == [1, 1]
    nested = Side([Arc(0, 9, 9, ""), Arc(1, 2, 2, ""), Arc(2, 3, 3, ""), Arc(1, 3, 1, ""), Arc(4, 4, 4, "root")], 10)
    assert {(arc.low, arc.high): arc.level for arc in nested.arcs} == {(1, 2): 1, (2, 3): 1, (1, 3): 2, (0, 9): 3, (4, 4): 4}


@pytest.mark.parametrize("seed", range(5))
def test_arcs_do_not_lie_on_each_other(seed: int) -> None:
    """In random trees no two arcs share a line: not across, where their stretches overlap, and not up at a word."""
    tree = random_tree(40, seed)
    made = [Arc(min(m, h - 1), max(m, h - 1), m, "rel") if h else Arc(m, m, m, "root") for m, h in enumerate(tree.heads)]
    side = Side(made, 40)
    lines = [(a.level, a.low, a.high) for a in side.arcs if not a.is_root]
    for level, low, high in lines:
        assert sum(other == level and a < high and low < b for other, a, b in lines) == 1
    x = columns([("word", "TAG")] * 40, [side])
    ends = sorted(x[k] + shift for arc in side.arcs for k, shift in arc.shift.items())
    assert min(b - a for a, b in itertools.pairwise(ends)) > 5


def test_nested_arcs_do_not_cross() -> None:
    """Of the arcs of one word, inner ones stand outside: an upright line meets no line of an arc that nests in its own."""
    side = Side([Arc(0, 3, 0, ""), Arc(1, 3, 1, ""), Arc(2, 3, 2, ""), Arc(3, 4, 4, ""), Arc(3, 5, 5, "")], 6)
    at = sorted((arc.shift[3], arc.low, arc.high) for arc in side.arcs)
    assert [(low, high) for _, low, high in at] == [(2, 3), (1, 3), (0, 3), (3, 5), (3, 4)]


def test_labels_have_room() -> None:
    """Words are moved apart until a long relation fits between them."""
    side = Side([Arc(0, 1, 1, "a-very-long-relation:with-subtype")], 2)
    x = columns([("a", ""), ("b", "")], [side])
    assert x[1] - x[0] > text_width("a-very-long-relation:with-subtype", 10)


def test_wide_labels_stay_over_their_arcs() -> None:
    """A long arc bears its label as often as it fits there, once at least: no label reaches beyond the picture."""
    n = 60
    picture = str(draw_tree(["word"] * n, Tree([n, *[1] * (n - 2), 0], ["w" * 120, *["x"] * (n - 1)])))
    width = float(re.search(r'viewBox="0 0 (\d+)', picture)[1])  # type: ignore[index]
    half = text_width("w" * 120, SMALL) / 2
    places = [float(x) for x in re.findall(r'<text x="([\d.]+)"[^>]*>w{120}</text>', picture)]
    assert places
    assert half <= min(places) <= max(places) <= width - half


def test_two_hundred_words() -> None:
    """A sentence of 200 words is as wide as it needs, in reasonable height, with every arc; long arcs have several labels."""
    n = 200
    chain = Tree([0, *range(1, n)], ["root"] + ["dep"] * (n - 1))
    svg = draw_tree(["word"] * n, chain)
    width, height = map(int, re.findall(r'(?:width|height)="(\d+)"', svg)[:2])
    assert width > 200 * 30
    assert height < 100  # nothing nests
    assert kinds(draw_tree(["word"] * n, random_tree(n, 0), gold=random_tree(n, 1)))["arc gold"] > 150
    heads = [*range(2, n), 0, 1]
    assert texts(draw_tree(["w"] * n, Tree(heads, [f"r{k}" for k in range(n)]))).count(f"r{n - 1}") > 3


def test_the_same_tree_gives_the_same_picture() -> None:
    """No chance and no counter: the picture depends on the tree alone."""
    assert draw_tree(FORMS, CROSSING, gold=random_tree(8, 1)) == draw_tree(FORMS, CROSSING, gold=random_tree(8, 1))


@pytest.mark.parametrize(
    ("forms", "heads", "gold", "tags", "message"),
    [
        ([], [], None, None, "at least one word"),
        (["a", "b"], [0], None, None, "expected 2 given heads"),
        (["a", "b"], [0, 3], None, None, "expected a given head from 0 to 2, got 3"),
        (["a", "b"], [0, 2], None, None, "is its own head in the given tree"),
        (["a", "b"], [0, 2], [0, 1], None, "is its own head in the predicted tree"),
        (["a", "b"], [0, 1], [0], None, "expected 2 gold heads"),
        (["a", "b"], [0, 1], None, ["X"], "2 words and 1 tags"),
    ],
)
def test_what_cannot_be_drawn(
    forms: list[str], heads: list[int], gold: list[int] | None, tags: list[str] | None, message: str
) -> None:
    """Lengths that differ, heads outside the sentence and words that are their own head are refused in words."""
    with pytest.raises(DataError, match=message):
        draw_tree(forms, Tree(heads, None), gold=None if gold is None else Tree(gold, None), tags=tags)
