"""The documentation stays true: embedded code is the code, outputs are what is printed, links lead somewhere.

Run as a script it writes present code, outputs and public names into the pages: `python tests/test_docs.py [PAGE ...]`.
"""

import ast
import doctest
import importlib
import re
import runpy
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml
from snippets import agrees, blocks, differences, needing, refreshed, running
from test_layers import MAY_IMPORT

import structpred
from structpred.trainers.names import trainers

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
EMBEDDED = re.compile(r"(<!-- source: (?P<file>\S+) (?P<name>\w+) -->\n```python\n)(?P<code>.*?)(```)", re.DOTALL)
LINK = re.compile(r"\]\((?!https?:|#)([^)#\s]+)")
FRAGMENT = re.compile(r"\]\((?!https?:)([^)#\s]*)#([^)\s]+)\)")
NAMED_FILE = re.compile(r"`((?:structpred|tests|examples|benchmarks|docs)/[\w./-]+)`")


def embedded(page: Path) -> Iterator[re.Match[str]]:
    """Each block of a page that claims to be code of the package."""
    yield from EMBEDDED.finditer(page.read_text(encoding="utf-8"))


def source_of(file: str, name: str) -> str:
    """The text of a class or function at the top level of a file, below the imports that it needs: it runs as it stands."""
    text = (ROOT / file).read_text(encoding="utf-8")
    body = ast.parse(text).body
    node = next((node for node in body if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name), None)
    if node is None:
        raise LookupError(f"{file} has no class or function {name}")
    used = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
    groups, last = [""], 0
    for one in (one for one in body if isinstance(one, ast.Import | ast.ImportFrom)):
        names = [alias for alias in one.names if (alias.asname or alias.name.partition(".")[0]) in used]
        if names:
            gap = "\n" if groups[-1] and not all(line.strip() for line in text.splitlines()[last : one.lineno - 1]) else ""
            kept = ast.Import(names) if isinstance(one, ast.Import) else ast.ImportFrom(one.module, names, one.level)
            groups.append(f"{gap}{ast.unparse(kept)}\n")
            last = one.end_lineno or 0
    imports = "".join(groups)
    return f"{imports}{imports and 2 * chr(10)}{ast.get_source_segment(text, node)}\n"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_embedded_code_is_the_code(page: Path) -> None:
    """A block marked with a source equals it, letter by letter (`python tests/test_docs.py` brings it up to date)."""
    for block in embedded(page):
        assert block["code"] == source_of(block["file"], block["name"]), f"{block['file']} {block['name']}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_and_named_files_exist(page: Path) -> None:
    """Every relative link and every file of the project that a page names is there."""
    text = page.read_text(encoding="utf-8")
    made = [] if page.name != "gallery.md" else ["gallery/"]  # what `make docs` draws, see below
    missing = [link for link in LINK.findall(text) if not (page.parent / link).exists() and not link.startswith(tuple(made))]
    missing += [name for name in NAMED_FILE.findall(text) if not (ROOT / name).exists()]
    assert missing == []


def places(page: Path) -> set[str]:
    """What a link can point at on a page: its headings as the site writes them, and the names it documents."""
    text = page.read_text(encoding="utf-8")
    headings = re.findall(r"^#+ (.*)", text, re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings} | set(
        re.findall(r"^::: (\S+)", text, re.M)
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_into_pages_lead_to_a_heading(page: Path) -> None:
    """Every link to a place on a page of ours names a heading, or a documented name, that is there."""
    links = [(page.parent / link if link else page, place) for link, place in FRAGMENT.findall(page.read_text(encoding="utf-8"))]
    assert [f"{target.name}#{place}" for target, place in links if target.suffix == ".md" and place not in places(target)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_python_examples_are_python(page: Path) -> None:
    """Every Python block of a page parses."""
    for code in re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
        ast.parse(code)


def test_the_how_tos_have_one_form() -> None:
    """Each how-to about adding something says, in this order, how to write it, check it, use it, and where it goes."""
    parts = ["Write it", "Check it", "Use it from Python", "Use it from the shell", "Into the package"]
    for page in (ROOT / "docs" / "howto").glob("add_*.md"):
        assert [part for part in re.findall(r"^## (.*)", page.read_text(encoding="utf-8"), re.M) if part in parts] == parts, (
            page.name
        )


def test_the_how_tos_embed_code() -> None:
    """Each how-to shows at least one piece of the package itself, so that the checks above have something to hold."""
    for page in (ROOT / "docs" / "howto").glob("add_*.md"):
        assert list(embedded(page)), page.name


#: libraries that the tests do without where they are not installed
OPTIONAL = ("pandas", "datasets", "spacy", "nltk", "torch", "distributed")
#: pages whose blocks run one after the other
RUNNING = [page for page in PAGES if "```python" in page.read_text(encoding="utf-8") and page.name not in ("CONTRIBUTING.md",)]


def is_missing(name: str) -> bool:
    """Whether a library is not installed; a folder of tests that has its name is no library."""
    found = find_spec(name)
    return found is None or found.origin is None


@pytest.mark.slow
@pytest.mark.parametrize("page", RUNNING, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_pages_show_what_their_code_prints(page: Path, tmp_path: Path) -> None:
    """Every Python block runs in its turn, and prints what the page shows below it: nothing where nothing is shown."""
    assert not differences(page, tmp_path, {name for name in OPTIONAL if is_missing(name)})


def needs() -> list[tuple[Path, str, int]]:
    """(a page, a library that the tests do without, how many blocks of the page need it)."""
    found = [
        (page, name, len(needing({name}, blocks(page.read_text(encoding="utf-8"))))) for page in RUNNING for name in OPTIONAL
    ]
    return [one for one in found if one[2]]


@pytest.mark.parametrize(("page", "library", "count"), needs(), ids=lambda own: own.name if isinstance(own, Path) else str(own))
def test_blocks_that_need_a_library_are_counted(page: Path, library: str, count: int) -> None:
    """Where an optional library is not installed, only the blocks that need it are left out, and a skip counts them."""
    if is_missing(library):
        pytest.skip(f"{count} blocks of {page.name} need {library}, which is not installed")
    assert len(running(page, {library})) == len(blocks(page.read_text(encoding="utf-8"))) - count


def test_blocks_that_use_what_was_left_out_are_left_out() -> None:
    """A block needs a library that it imports in any way, or by names from blocks that do, until they are bound again."""
    text = [
        "import torch as t\nx = 1",
        "print(x)",
        "y = 2",
        "x = 3",
        "print(x, y)",
        "from structpred.torch import SparseMAP",
        "t",
    ]
    found = blocks("".join(f"```python\n{code}\n```\n" for code in text))
    assert [found.index(block) for block in needing({"torch"}, found)] == [0, 1, 5, 6]
    assert needing({"pandas"}, found) == []
    page = ROOT / "docs" / "howto" / "structured_layers.md"
    assert len(blocks(page.read_text(encoding="utf-8"))) - len(running(page, {"torch"})) == 1


@pytest.mark.parametrize(
    ("shown", "found", "same"),
    [
        ("gap 0.0312 after 12 passes", "gap  0.0313 after 12 passes\n", True),
        ("gap 0.0312", "gap 0.0412", False),
        ("12 passes", "13 passes", False),
        ("139 right", "140 right", True),
        ("[0.5 1. ]", "[0.49 1. ]", True),
        ("took ... s: B-NP", "took 3.2 s: B-NP", True),
        ("B-NP 1", "B-VP 1", False),
        ("True", "", False),
        ("", "True", False),
    ],
)
def test_outputs_agree_up_to_rounding(shown: str, found: str, same: bool) -> None:
    """Texts and small whole numbers must be equal, other numbers nearly, and `...` stands for anything."""
    assert agrees(shown, found) is same


def test_what_others_use_has_its_counterpart_here() -> None:
    """Each class and function that the page on moving over names for those of other libraries is a public name."""
    text = (ROOT / "docs" / "howto" / "moving_over.md").read_text(encoding="utf-8")
    ours = " ".join(row.split("|")[2] for row in re.findall(r"^\|.*", text, re.MULTILINE))
    names = {name for code in re.findall(r"`([^`]+)`", ours) for name in re.findall(r"\b(?:[A-Z]+[a-z]\w+|NCE|QPBO)\b", code)}
    packages = [importlib.import_module(f"structpred.{name}") for name in ("models", "layers", "oracles")]
    assert len(names) > 20
    theirs = {"GraphCRF", "False"}
    assert {name for name in names if not any(hasattr(package, name) for package in packages)} == theirs


def test_the_command_line_page_names_every_trainer() -> None:
    """The page of the command line names each trainer that `--trainer` takes."""
    text = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    assert [name for name in trainers() if f"`{name}`" not in text] == []


def test_the_readme_fits_on_a_screen_or_two() -> None:
    """The README has at most 100 lines and 650 words, and a picture near its top."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    lines = text.splitlines()
    assert len(lines) <= 100
    assert len(text.split()) <= 650
    assert any(line.startswith("![") for line in lines[:6])


def test_the_readme_speaks_the_words_of_the_field() -> None:
    """What people search for stands in the README; a command installs, tasks have a table, and badges, limits and comparisons
    of like with like are there."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    words = "NER|named entities|Named entities|tagging|parsing|segmentation|Conditional random fields (CRF)|machines (SVM)"
    shown = "python -m pip install structpred\n|## I want to ...|## When not to use this|[![|averaged perceptron|`lbfgs`"
    assert [word for word in f"{words}|{shown}".split("|") if word not in text] == []


def test_the_pages_are_not_too_many_words() -> None:
    """All pages of docs/ together have at most 30,000 words."""
    assert sum(len(page.read_text(encoding="utf-8").split()) for page in ROOT.glob("docs/**/*.md")) <= 30_000


def test_what_the_readme_says_of_its_picture_was_measured() -> None:
    """Every share below the picture, and the scores of the parser from words, are among the figures that its program wrote."""
    measured = (ROOT / "benchmarks" / "results" / "claim.txt").read_text(encoding="utf-8")
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (below,) = re.findall(r"^\*Heads chosen.*?\*$", text, re.MULTILINE | re.DOTALL)
    (parser,) = re.findall(r"^English EWT:.*; (UAS .*)$", text, re.MULTILINE)
    shares = re.findall(r"\d+\.\d", below + parser)
    assert len(shares) == 8
    assert [share for share in shares if f"{share}%" not in measured] == []


def test_the_architecture_is_short_and_names_what_is_there() -> None:
    """The page has at most 1,500 words, each file of the package that it names exists, and the picture is that of the layers."""
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    assert len(text.split()) <= 1500
    named = re.findall(r"`((?:\w+/)+(?:\w+\.py)?)`", text)
    assert len(named) > 50
    assert [name for name in named if not any((at / name).exists() for at in (ROOT, ROOT / "structpred"))] == []
    assert re.search(r"^!\[.+\]\(images/rooms\.svg\)", text, re.MULTILINE)
    rooms = runpy.run_path(str(ROOT / "docs" / "_site" / "rooms.py"))
    assert rooms["PICTURE"].read_text(encoding="utf-8") == rooms["draw"](MAY_IMPORT), "python docs/_site/rooms.py draws it anew"


def test_the_citation_is_complete() -> None:
    """CITATION.cff is YAML with what its format asks for, the present version, and authors and a year for each reference."""
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert {"cff-version", "message", "title", "authors"} <= set(cited)
    assert cited["version"] == structpred.__version__
    assert cited["license"] == "BSD-3-Clause"
    for work in cited["references"]:
        assert work["type"]
        assert work["title"]
        assert isinstance(work["year"], int)
        assert all({"given-names", "family-names"} <= set(author) for author in work["authors"])


def test_the_gallery_shows_all_that_is_made() -> None:
    """The generated files that the gallery names are those that docs/_site/gallery.py makes."""
    made = runpy.run_path(str(ROOT / "docs" / "_site" / "gallery.py"))["FILES"]
    shown = re.findall(r"\]\(gallery/([^)]+)\)", (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8"))
    assert sorted(shown) == sorted(made)


FOLDERS = sorted(path.parent.name for path in ROOT.glob("structpred/*/__init__.py"))
#: packages that people import nothing from: what is public of them has a name in another package
INTERNAL = ("cli", "contracts", "experiments", "fused", "runtime", "storage", "text")
#: packages that are shown whole, module by module
WHOLE = (
    "errors",
    "oracles",
    "trainers",
    "objectives",
    "projections",
    "features",
    "slack",
    "nonconvex",
    "core",
    "task",
    "rows",
    "data",
)
#: all others, whose public names are listed one by one
LISTED = ("structpred", *(f"structpred.{name}" for name in FOLDERS if name not in {*INTERNAL, *WHOLE}))


def reference(package: str) -> Path:
    """The page of the reference about a package."""
    return ROOT / "docs" / "reference" / f"{package.rpartition('.')[2]}.md"


def missing_names(package: str) -> list[str]:
    """The public names of a package that its page does not have."""
    shown = re.findall(r"^::: (\S+)", reference(package).read_text(encoding="utf-8"), re.M)
    names = set(importlib.import_module(package).__all__) - {"__version__", "errors"}
    return sorted(name for name in names if f"{package}.{name}" not in shown)


@pytest.mark.parametrize("package", LISTED)
def test_the_reference_has_every_public_name(package: str) -> None:
    """Each public name of these packages is in the reference (`python tests/test_docs.py` adds what is missing)."""
    if package == "structpred.torch":
        pytest.importorskip("torch", reason="PyTorch is not installed")
    assert missing_names(package) == []


@pytest.mark.parametrize("package", WHOLE)
def test_the_reference_has_whole_packages(package: str) -> None:
    """Of these packages every module is in the reference."""
    assert f"::: structpred.{package}\n" in reference(package).read_text(encoding="utf-8")


def modules_with_examples() -> list[str]:
    """The modules whose docstrings hold examples."""
    files = sorted((ROOT / "structpred").rglob("*.py"))
    found = [file.relative_to(ROOT).with_suffix("") for file in files if ">>> " in file.read_text(encoding="utf-8")]
    return [".".join(path.parts).removesuffix(".__init__") for path in found]


@pytest.mark.slow
@pytest.mark.parametrize("module", modules_with_examples())
def test_examples_in_docstrings_run(module: str) -> None:
    """Every example in a docstring prints what it shows."""
    if (name := module.removeprefix("structpred.bridges.")) in ("pandas", "nltk"):
        pytest.importorskip(name, reason=f"{name} is not installed: pip install 'structpred[{name}]'")
    if module.startswith("structpred.torch"):
        pytest.importorskip("torch", reason="PyTorch is not installed")
    if module.startswith("structpred.distributed"):
        pytest.importorskip("dask", reason="dask is not installed: pip install 'structpred[distributed]'")
    assert doctest.testmod(importlib.import_module(module)).failed == 0


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_building_the_site_is_not_silent() -> None:
    """`make docs` says what it does and how long that takes before it begins, and lets MkDocs speak."""
    done = subprocess.run(["make", "-n", "docs"], cwd=ROOT, capture_output=True, text=True, check=True)
    said, built = (line for line in done.stdout.splitlines() if "about a minute" in line or "mkdocs build" in line)
    assert said.startswith("echo")
    assert "--quiet" not in built


def test_every_page_is_in_the_navigation() -> None:
    """mkdocs.yml leads to each page of docs/, and to those that come from elsewhere."""
    listed = re.findall(r"(\S+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.M)
    pages = [page.relative_to(ROOT / "docs").as_posix() for page in ROOT.glob("docs/**/*.md")]
    pages += [f"notebooks/{notebook.stem}.md" for notebook in ROOT.glob("examples/*.ipynb")]
    assert sorted(listed) == sorted([*pages, "contributing.md", "changes.md"])


def refresh(pages: list[Path]) -> None:
    """Write the present code into every marked block, outputs below the snippets, and missing names into the reference."""
    for page in pages:
        text = page.read_text(encoding="utf-8")
        new = EMBEDDED.sub(lambda block: block[1] + source_of(block["file"], block["name"]) + block[5], text)
        if new != text:
            page.write_text(new, encoding="utf-8")
        if page in RUNNING and blocks(new):
            with tempfile.TemporaryDirectory() as folder:
                page.write_text(refreshed(page, Path(folder)), encoding="utf-8")
    for package in LISTED:
        if not reference(package).exists():
            reference(package).write_text(f"# {package}\n", encoding="utf-8")
        lines = "".join(f"\n::: {package}.{name}\n" for name in missing_names(package))
        reference(package).write_text(reference(package).read_text(encoding="utf-8") + lines, encoding="utf-8")


if __name__ == "__main__":
    refresh([Path(name).resolve() for name in sys.argv[1:]] or PAGES)
