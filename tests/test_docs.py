"""The documentation stays true: embedded code is the code, named files exist, links lead somewhere.

Run as a script it writes the present code into the pages: `python tests/test_docs.py`.
"""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import structpred

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
EMBEDDED = re.compile(r"(<!-- source: (?P<file>\S+) (?P<name>\w+) -->\n```python\n)(?P<code>.*?)(```)", re.DOTALL)
LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)")
NAMED_FILE = re.compile(r"`((?:structpred|tests|examples|benchmarks|docs)/[\w./-]+)`")


def embedded(page: Path) -> Iterator[re.Match[str]]:
    """Each block of a page that claims to be code of the package."""
    yield from EMBEDDED.finditer(page.read_text(encoding="utf-8"))


def source_of(file: str, name: str) -> str:
    """The text of a class or function at the top level of a file."""
    text = (ROOT / file).read_text(encoding="utf-8")
    for node in ast.parse(text).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name:
            return f"{ast.get_source_segment(text, node)}\n"
    raise LookupError(f"{file} has no class or function {name}")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_embedded_code_is_the_code(page: Path) -> None:
    """A block marked with a source equals it, letter by letter (`python tests/test_docs.py` brings it up to date)."""
    for block in embedded(page):
        assert block["code"] == source_of(block["file"], block["name"]), f"{block['file']} {block['name']}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_and_named_files_exist(page: Path) -> None:
    """Every relative link and every file of the project that a page names is there."""
    text = page.read_text(encoding="utf-8")
    missing = [link for link in LINK.findall(text) if not (page.parent / link).exists()]
    missing += [name for name in NAMED_FILE.findall(text) if not (ROOT / name).exists()]
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_python_examples_are_python(page: Path) -> None:
    """Every Python block of a page parses."""
    for code in re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
        ast.parse(code)


def test_the_how_tos_embed_code() -> None:
    """Each how-to shows at least one piece of the package itself, so that the checks above have something to hold."""
    for page in (ROOT / "docs" / "howto").glob("add_*.md"):
        assert list(embedded(page)), page.name


def test_the_readme_examples_run(tmp_path: Path) -> None:
    """The README's Python examples run as they stand, one after the other, in a fresh process."""
    if not hasattr(structpred, "check_oracle"):
        pytest.skip("the models that the README shows are in work")
    code = "\n".join(re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL))
    command = [sys.executable, "-P", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    assert "['DET', 'NOUN', 'VERB']" in done.stdout.replace("array(", "")


def refresh() -> None:
    """Write the present code into every marked block."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        new = EMBEDDED.sub(lambda block: block[1] + source_of(block["file"], block["name"]) + block[5], text)
        if new != text:
            page.write_text(new, encoding="utf-8")


if __name__ == "__main__":
    refresh()
