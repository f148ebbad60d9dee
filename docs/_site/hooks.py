"""What mkdocs does beside its plugins: pages from outside docs/, links between them, formulas, and the gallery."""

import html
import posixpath
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[2]
GALLERY = Path(__file__).with_name("gallery.py")
#: files of the top level that are pages of the site, and their names there
PAGES = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changes.md"}
_LINK = re.compile(r"(\]\()(?!https?:|mailto:|#)([^)#\s]+)")
_FORMULA = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL)

_made: list[tempfile.TemporaryDirectory[str]] = []


def on_startup(command: str, dirty: bool) -> None:
    """Make the pictures and report pages of the gallery once, however often the site is built."""
    _made.append(tempfile.TemporaryDirectory(prefix="gallery"))
    subprocess.run([sys.executable, GALLERY, _made[-1].name], check=True, cwd=ROOT)


def on_files(files: Files, config: Any) -> Files:
    """Add the pages of the top level, the gallery, and the examples that pages link to."""
    for name, page in PAGES.items():
        files.append(File.generated(config, page, content=(ROOT / name).read_text(encoding="utf-8")))
    files.append(File.generated(config, "CITATION.cff", abs_src_path=str(ROOT / "CITATION.cff")))
    for folder, place in ((Path(_made[-1].name), "gallery"), (ROOT / "examples", "examples")):
        for path in sorted(folder.iterdir()):
            if path.is_file():
                files.append(File.generated(config, f"{place}/{path.name}", abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Lead links to where their files are on the site, which need not be where they are in the repository."""
    sources = {place: name for name, place in PAGES.items()}
    place = page.file.src_uri
    source = sources.get(place, f"docs/{place}")

    def moved(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), link[2]))
        if not (ROOT / target).is_file():
            return link[0]
        new = PAGES.get(target, target.removeprefix("docs/"))
        return link[1] + posixpath.relpath(new, posixpath.dirname(place) or ".")

    return _LINK.sub(moved, markdown)


def on_page_content(html: str, **_: Any) -> str:
    """Formulas as MathML, which browsers draw without a script."""
    return _FORMULA.sub(lambda formula: _mathml(formula[2], formula[1] == "div"), html)


def _mathml(formula: str, display: bool) -> str:
    drawn = convert(html.unescape(formula).strip(), display="block" if display else "inline")
    return f'<div class="formula">{drawn}</div>' if display else drawn
