"""What mkdocs does beside its plugins: pages from outside docs/, notebooks, short pages for long ones, links, formulas."""

import html
import posixpath
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import notebooks
import pages
from latex2mathml.converter import convert
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[2]
GALLERY = Path(__file__).with_name("gallery.py")
#: files outside of docs/ that are pages of the site, and their names there
PAGES = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changes.md", "benchmarks/results/audit.md": "audit.txt"}
#: where links to notebooks lead
SHOWN = {f"examples/{path.name}": page for page, path in notebooks.PAGES.items()}
CHANGES = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
#: what the search leaves out: records, which mention everything
UNSEARCHED = ("changes", "benchmarks.md")
#: how much pages weigh in the search, 1 unless named: those that say how to do something come before those that list names
BOOSTS = {
    "howto/tagging.md": 12.0, "howto/": 4.0, "index.md": 2.0, "tutorial.md": 2.0, "compat.md": 2.0, "notebooks/": 0.5,
    "reference/": 0.5,
}  # fmt: skip
_LINK = re.compile(r"(\]\()(?!https?:|mailto:|#)([^)#\s]+)")
_FORMULA = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL)

_made: list[tempfile.TemporaryDirectory[str]] = []


def on_startup(command: str, dirty: bool) -> None:
    """Make the pictures and report pages of the gallery once, however often the site is built."""
    _made.append(tempfile.TemporaryDirectory(prefix="gallery"))
    subprocess.run([sys.executable, GALLERY, _made[-1].name], check=True, cwd=ROOT)


def on_config(config: Any) -> Any:
    """Put the pages of classes and modules into the navigation, below their package, and those of topics below the changes."""
    (reference,) = (entry["Reference"] for entry in config.nav if "Reference" in entry)
    for at, entry in enumerate(reference):
        name, place = next(iter(entry.items())) if isinstance(entry, dict) else ("", "")
        if (package := name.removeprefix("structpred.")) in (*pages.NAMES, *pages.MODULES):
            own = [{one.removeprefix(f"{name}."): pages.place_of(package, one)} for one in pages.split(package)]
            reference[at] = {name: [place, *own]}
    (background,) = (entry["Background"] for entry in config.nav if "Background" in entry)
    (at,) = (at for at, entry in enumerate(background) if "Changes" in entry)
    background[at] = {"Changes": ["changes.md", *({topic: place} for place, (topic, _) in pages.topics(CHANGES).items())]}
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add the pages of the top level, the gallery, and the examples that pages link to."""
    for name, page in PAGES.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=pages.history(text) if page == "changes.md" else text))
    for page, (_, text) in pages.topics(CHANGES).items():
        files.append(File.generated(config, page, content=text))
    for page, notebook in notebooks.PAGES.items():
        files.append(File.generated(config, page, content=notebooks.as_page(notebook)))
    for package in (*pages.NAMES, *pages.MODULES):
        for name, (content, _) in pages.split(package).items():
            files.append(File.generated(config, pages.place_of(package, name), content=content))
    files.append(File.generated(config, "CITATION.cff", abs_src_path=str(ROOT / "CITATION.cff")))
    for folder, place in ((Path(_made[-1].name), "gallery"), (ROOT / "examples", "examples")):
        for path in sorted(folder.iterdir()):
            if path.is_file():
                files.append(File.generated(config, f"{place}/{path.name}", abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Lead links to where their files are on the site, which need not be where they are in the repository; weigh the page."""
    boosts = [boost for start, boost in BOOSTS.items() if page.file.src_uri.startswith(start)]
    page.meta["search"] = (
        {"exclude": True} if page.file.src_uri.startswith(UNSEARCHED) else {"boost": boosts[0]} if boosts else {}
    )
    sources = {place: name for name, place in PAGES.items()}
    place = page.file.src_uri
    source = "CHANGELOG.md" if place.startswith("changes/") else sources.get(place, f"docs/{place}")

    def moved(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), link[2]))
        if not (ROOT / target).is_file():
            return link[0]
        new = PAGES.get(target) or SHOWN.get(target) or target.removeprefix("docs/")
        return link[1] + posixpath.relpath(new, posixpath.dirname(place) or ".")

    markdown = _LINK.sub(moved, markdown)
    package = place.removeprefix("reference/").removesuffix(".md")
    return pages.listed(package, markdown) if package in (*pages.NAMES, *pages.MODULES) else markdown


def on_page_content(html: str, **_: Any) -> str:
    """Formulas as MathML, which browsers draw without a script."""
    return _FORMULA.sub(lambda formula: _mathml(formula[2], formula[1] == "div"), html)


def _mathml(formula: str, display: bool) -> str:
    drawn = convert(html.unescape(formula).strip(), display="block" if display else "inline")
    return f'<div class="formula">{drawn}</div>' if display else drawn
