"""The documentation stays true: embedded code is the code, named files exist, links lead somewhere.

Run as a script it writes the present code into the pages: `python tests/test_docs.py`.
"""

import ast
import doctest
import importlib
import os
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


@pytest.mark.slow
def test_the_readme_examples_run(tmp_path: Path) -> None:
    """The README's Python examples run as they stand, one after the other, in a fresh process."""
    if not hasattr(structpred, "check_oracle"):
        pytest.skip("the models that the README shows are in work")
    code = "\n".join(re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL))
    command = [sys.executable, "-P", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stderr
    assert "['DET', 'NOUN', 'VERB']" in done.stdout.replace("array(", "")


def run_page(page: str, folder: Path) -> list[str]:
    """What the Python blocks of a page print, run one after the other in a fresh process, where warnings are errors."""
    code = "\n".join(re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL))
    command, environment = [sys.executable, "-P", "-W", "error", "-c", code], {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800, cwd=folder, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.slow
def test_the_tutorial_runs(tmp_path: Path) -> None:
    """Every block runs, and what the page says of it is so: labels, tolerances, probabilities, rules, resuming to the bit."""
    lines = run_page("docs/tutorial.md", tmp_path)
    assert "['B-NP', 'I-NP', 'B-VP']" in lines[0]
    assert lines[1].startswith("primal ")
    assert lines[2] == "50 max_iter False"
    reason, gap = lines[3].split()
    assert (reason, 0 <= float(gap) <= 0.05) == ("tol", True)
    assert lines[4] == "True (4, 6) True"
    assert lines[5].startswith("['B-NP' 'B-VP' 'B-NP' 'I-NP']")
    assert "['O', 'B-VP', 'B-NP', 'I-NP']" in lines[8]
    assert "60 True" in lines
    assert lines[-2].startswith("{'C': ")
    assert float(lines[-1].split()[0]) > 0.9
    assert {"tagger.spz", "run.ckpt", "matching.spz"} <= {path.name for path in tmp_path.iterdir()}


@pytest.mark.slow
def test_the_parsing_page_runs(tmp_path: Path) -> None:
    """Every block runs, and what the page says of it is so: trees, a certificate, constraints, marginals, files."""
    lines = run_page("docs/howto/parsing.md", tmp_path)
    assert lines[0] == "[2, 3, 0, 3] ['det', 'nsubj', 'root', 'obj']"
    assert all(line.startswith("primal ") and "gap" in line for line in lines[1:3])
    assert lines[3] == "True 0"
    assert lines[4].startswith("Universal Dependencies 1.0 1.0")
    fixed, forbidden, several = (ast.literal_eval(line) for line in lines[8:11])
    assert fixed[3] == 2
    assert forbidden[1] != 3
    assert forbidden[2] != 0
    assert several[:2] == [0, 0]
    assert lines[11] == "(4, 5) True"
    scores = [float(line.split()[0]) for line in lines[12:15]]
    assert scores == sorted(scores, reverse=True)
    assert {"parser.spz", "report.html", "tree.svg"} <= {path.name for path in tmp_path.iterdir()}


@pytest.mark.slow
@pytest.mark.parametrize("page", ["docs/howto/train_on_more_than_fits.md", "docs/howto/choose_C.md", "docs/compat.md"])
def test_other_pages_run(page: str, tmp_path: Path) -> None:
    """Every Python block of these pages runs as it stands."""
    run_page(page, tmp_path)


@pytest.mark.slow
def test_labels_are_missing_runs(tmp_path: Path) -> None:
    """Every block runs, and prints what its comments say: scores, falling objectives, a proven end, a tree, latent clusters."""
    lines = run_page("docs/howto/labels_are_missing.md", tmp_path)
    assert lines == ["True True", "True", "True", "tol", "(6, 3)", "True", "[2, 3, 0]", "True", "True", "True"]


@pytest.mark.slow
def test_which_of_my_features_matter_runs(tmp_path: Path) -> None:
    """The template that decides weighs most, the others can be left out, and the one that is left is enough."""
    lines = run_page("docs/howto/which_of_my_features_matter.md", tmp_path)
    name, sizes, score = lines
    assert (name, score) == ("word", "1.0")
    assert int(sizes.split()[0]) > int(sizes.split()[1])


@pytest.mark.slow
def test_what_i_know_about_the_signs_runs(tmp_path: Path) -> None:
    """The weights obey exactly, and a constraint that the data contradict is named."""
    least, *bound = run_page("docs/howto/what_i_know_about_the_signs.md", tmp_path)
    assert least == "0.0"
    assert "w:the -> NOUN 1 0.0 True" in bound


@pytest.mark.slow
def test_how_far_from_the_optimum_runs(tmp_path: Path) -> None:
    """Every block runs, and what the page says of it is so: proven gaps, overlapping intervals, bounds of single planes."""
    lines = run_page("docs/howto/how_far_from_the_optimum.md", tmp_path)
    assert lines == ["True True True", "tol", "True", "tol True 4"]


@pytest.mark.slow
def test_slack_rescaling_runs_on_ones_own_oracle(tmp_path: Path) -> None:
    """Every block of the page runs, and prints what its comments say."""
    lines = run_page("docs/howto/slack_rescaling.md", tmp_path)
    assert lines[0] == "True True"
    assert lines[1].startswith("hull: phi ")
    assert lines[2:] == ["hull True True", "search_bound False", "tol True", "True", "True True", "True"]


@pytest.mark.slow
def test_the_multilabel_page_runs(tmp_path: Path) -> None:
    """Every block runs, and what the page says of it is so: certificates, scores, marginals, closed sets, files."""
    lines = run_page("docs/howto/multilabel.md", tmp_path)
    assert lines[0].startswith("primal ")
    assert lines[1] == "True True"
    assert lines[2].startswith("300 examples, 4 labels")
    assert lines[-6:-1] == ["True", "True", "True", "path True", "True"]
    assert lines[-1].startswith("the hierarchy of labels has a cycle: ")
    assert {"labels.spz", "data.npz"} <= {path.name for path in tmp_path.iterdir()}


PACKAGES = ("models", "compat", "testing", "evaluation", "tuning", "io", "report", "errors")


@pytest.mark.parametrize("module", ["structpred", *(f"structpred.{name}" for name in PACKAGES)])
def test_the_reference_has_every_public_name(module: str) -> None:
    """Every public name of these packages has a row in the reference under its package, with a file that mentions it."""
    text = (ROOT / "docs" / "reference" / "index.md").read_text(encoding="utf-8")
    heading = f"\n## {module}\n"
    assert heading in text
    lines = [line for line in text.split(heading, 1)[1].split("\n## ", 1)[0].splitlines() if line.startswith("| `")]
    rows = {line.split("`")[1]: line for line in lines}
    loaded = importlib.import_module(module)
    names = getattr(loaded, "__all__", None) or [name for name in vars(loaded) if name[0] != "_"]
    assert sorted(set(names) - set(rows)) == []
    for name in names:
        files = NAMED_FILE.findall(rows[name])
        assert any(name in (ROOT / file).read_text(encoding="utf-8") for file in files), name


def modules_with_examples() -> list[str]:
    """The modules whose docstrings hold examples."""
    files = sorted((ROOT / "structpred").rglob("*.py"))
    found = [file.relative_to(ROOT).with_suffix("") for file in files if ">>> " in file.read_text(encoding="utf-8")]
    return [".".join(path.parts).removesuffix(".__init__") for path in found]


@pytest.mark.slow
@pytest.mark.parametrize("module", modules_with_examples())
def test_examples_in_docstrings_run(module: str) -> None:
    """Every example in a docstring prints what it shows."""
    assert doctest.testmod(importlib.import_module(module)).failed == 0


def refresh() -> None:
    """Write the present code into every marked block."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        new = EMBEDDED.sub(lambda block: block[1] + source_of(block["file"], block["name"]) + block[5], text)
        if new != text:
            page.write_text(new, encoding="utf-8")


if __name__ == "__main__":
    refresh()
