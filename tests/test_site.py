"""The site that `make docs` has built: whole, without a dead link or anything from a network, and readable on a phone."""

import importlib
import json
import re
import zlib
from collections.abc import Iterator
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from browser import browser, needs_browser, overflowing
from test_docs import LISTED

SITE = Path(__file__).resolve().parent.parent / "site"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (SITE / "index.html").exists(), reason="`make docs` has not built the site"),
]
EXAMPLES = sorted((SITE.parent / "examples").glob("*.ipynb"))
PAGES = sorted(path.relative_to(SITE).as_posix() for path in SITE.rglob("*.html"))
#: what the theme moves or cuts on purpose: drawers and the search on small screens, links that show when pointed at; boxes that
#: scroll, which reach over the margins of the text; and the title in the bar, which is that of the page just below
ASIDE = ", ".join((
    ".md-header__topic *", ".md-sidebar, .md-sidebar *", ".md-search, .md-search *", ".md-skip", ".headerlink", ".highlight",
    ".md-typeset__scrollwrap",
))  # fmt: skip
#: the height in px above which a page is too long, on a phone and on a desk
LONGEST = {375: 13_000, 1280: 12_000}
#: what is searched for, and the page that comes first
SEARCHES = {
    "NER": "howto/tagging.html",
    "BIO": "howto/tagging.html",
    "CRF": "howto/tagging.html",
    "MILP": "reference/oracles/milp.html",
    "GraphCRF": "howto/graphs_and_images.html",
    "PyEPO": "howto/moving_over.html",
}
LOADED = {("script", "src"), ("link", "href"), ("img", "src"), ("iframe", "src"), ("source", "src"), ("object", "data")}


class Page(HTMLParser):
    """What a page links to and loads, and the places in it that can be linked to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.places: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note one element."""
        for name, value in attrs:
            if name == "id" or (tag, name) == ("a", "name"):
                self.places.add(value or "")
            elif (tag, name) == ("a", "href"):
                self.links.append(value or "")
            elif (tag, name) in LOADED and ("rel", "canonical") not in attrs:
                self.loads.append(value or "")


@pytest.fixture(scope="module")
def parsed() -> dict[str, Page]:
    """Every page of the site."""
    return {name: Page(SITE / name) for name in PAGES}


def dead(pages: dict[str, Page], name: str) -> Iterator[str]:
    """The links of a page, and what it loads, that lead nowhere on the site."""
    for link in {*pages[name].links, *pages[name].loads}:
        parts = urlsplit(link)
        if parts.scheme in ("http", "https", "mailto", "data"):
            continue
        target = (SITE / name).parent / unquote(parts.path) if parts.path else SITE / name
        target = target / "index.html" if target.is_dir() else target
        inside = pages.get(target.resolve().relative_to(SITE).as_posix()) if target.exists() else None
        if not target.exists() or (parts.fragment and inside and unquote(parts.fragment) not in inside.places):
            yield link


def test_no_link_is_dead(parsed: dict[str, Page]) -> None:
    """Each link between pages leads to a page, and to a place that is on it."""
    assert {name: found for name in PAGES if name != "404.html" and (found := sorted(dead(parsed, name)))} == {}


def test_nothing_is_loaded_from_a_network(parsed: dict[str, Page]) -> None:
    """No page loads a script, a style, a font or a picture from elsewhere, and neither do the styles."""
    away = {name: [load for load in page.loads if urlsplit(load).netloc] for name, page in parsed.items()}
    assert {name: loads for name, loads in away.items() if loads} == {}
    styles = [path.read_text(encoding="utf-8") for path in SITE.rglob("*.css")]
    assert not [found for text in styles for found in re.findall(r"(?:url\(|@import )['\"]?(?:https?:)?//", text)]


def test_formulas_are_drawn_without_a_script(parsed: dict[str, Page]) -> None:
    """Each formula of the pages has become MathML."""
    assert "<math" in (SITE / "glossary.html").read_text(encoding="utf-8")
    assert not [name for name in PAGES if 'class="arithmatex"' in (SITE / name).read_text(encoding="utf-8")]


@pytest.mark.parametrize("package", LISTED)
def test_every_public_name_has_a_signature_or_a_page(package: str) -> None:
    """The site's inventory, which other projects link by, has every public name of these packages."""
    lines = zlib.decompress((SITE / "objects.inv").read_bytes().split(b"\n", 4)[4]).decode().splitlines()
    known = {line.split()[0] for line in lines}
    names = set(importlib.import_module(package).__all__) - {"__version__", "errors"}
    assert sorted(name for name in names if f"{package}.{name}" not in known) == []


@pytest.mark.parametrize("notebook", EXAMPLES)
def test_each_notebook_is_a_page_with_outputs(notebook: Path) -> None:
    """A notebook's page shows each of its outputs, and leads to the notebook."""
    text = (SITE / "notebooks" / f"{notebook.stem}.html").read_text(encoding="utf-8")
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    assert text.count('<div class="output"') == sum(len(cell.get("outputs", [])) for cell in cells) > 5
    assert f'href="../examples/{notebook.name}"' in text


def test_each_topic_of_the_changes_has_a_page(parsed: dict[str, Page]) -> None:
    """The history of changes leads to a page for each topic, which together have all its entries."""
    entries = re.findall(r"^- ", (SITE.parent / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert '<li><a href="changes/' in (SITE / "changes.html").read_text(encoding="utf-8")
    topics = {link for link in parsed["changes.html"].links if link.startswith("changes/")}
    assert len(topics) > 5
    shown = [re.findall(r"<article.*</article>", (SITE / topic).read_text(encoding="utf-8"), re.DOTALL)[0] for topic in topics]
    assert sum(text.count("<li>") for text in shown) == len(entries)


@pytest.mark.parametrize("package", ["models", "layers", "io", "evaluation"])
def test_each_class_has_a_page_of_its_own(package: str) -> None:
    """Each public name of these packages has its own page, so that a page of the reference is short enough to scroll."""
    names = importlib.import_module(f"structpred.{package}").__all__
    assert [name for name in names if not (SITE / "reference" / package / f"{name}.html").exists()] == []


def test_the_search_knows_the_reference_and_the_texts() -> None:
    """The index of the search holds names of the reference and words of the tutorial."""
    index = (SITE / "search" / "search_index.json").read_text(encoding="utf-8")
    assert "predict_score_gaps" in index
    assert "A chunker" in index


def test_the_search_prefers_how_tos_and_leaves_records_out() -> None:
    """Every how-to weighs more than a page of the reference; the history and the records of benchmarks are not searched."""
    entries = json.loads((SITE / "search" / "search_index.json").read_text(encoding="utf-8"))["docs"]
    boosts = {entry["location"].partition("#")[0]: entry.get("boost", 1.0) for entry in entries}
    how_tos = [page for page in PAGES if page.startswith("howto/")]
    assert [page for page in how_tos if boosts[page] < 2.0] == []
    assert [page for page, boost in boosts.items() if page.startswith("reference/") and boost >= 1.0] == []
    assert [page for page in boosts if page.startswith(("changes", "benchmarks.html"))] == []


def as_served(name: str, folder: Path) -> Path:
    """A copy in which addresses that begin at the root of the site are found without a server.

    The page for what is missing has such addresses, since it is shown below any folder; opened as a file it has no style sheet.
    """
    text = (SITE / name).read_text(encoding="utf-8")
    assert 'href="/' in text
    root = SITE.resolve().as_uri() + "/"
    page = folder / name
    page.write_text(text.replace('href="/', f'href="{root}').replace('src="/', f'src="{root}'), encoding="utf-8")
    return page


@needs_browser
def test_nothing_sticks_out_or_is_cut_or_goes_on_for_ever(tmp_path: Path) -> None:
    """On a phone and on a desk every page fits: what is wider than the window scrolls in a box of its own. No page is so long
    that nobody scrolls to its end, with all that can be folded open.

    Report pages, of which the gallery has two, are measured in tests/report.
    """
    own = {name: SITE / name for name in PAGES if not name.startswith("gallery/")} | {"404.html": as_served("404.html", tmp_path)}
    beyond, long = {}, {}
    for name, path in own.items():
        if found := overflowing(path, *LONGEST, allowed=ASIDE):
            beyond[name] = found
        heights = {width: browser().evaluate_at(width, "document.documentElement.scrollHeight") for width in LONGEST}
        if any(heights[width] > most for width, most in LONGEST.items()):
            long[name] = heights
    assert beyond == {}
    assert long == {}


class Quiet(SimpleHTTPRequestHandler):
    """Serves the site without a word."""

    def log_message(self, *_: Any) -> None:
        """Nothing."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The site, served on this machine: its search is a worker, which browsers do not start from files."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=SITE)) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@needs_browser
@pytest.mark.parametrize(("words", "first"), SEARCHES.items())
def test_what_people_search_for_is_found_first(words: str, first: str, address: str) -> None:
    """The words of the field, and of other libraries, lead to the page that answers them."""
    code = """new Promise(done => { const begun = Date.now(); const look = () => {
        const links = [...document.querySelectorAll(".md-search-result__item > a")];
        if (links.length || Date.now() - begun > 60000) done(links.map(link => new URL(link.href).pathname));
        else setTimeout(look, 50); }; look(); })"""
    found = browser().evaluate(f"{address}/index.html?q={words}", 1280, code)
    assert found[:1] == [f"/{first}"]
