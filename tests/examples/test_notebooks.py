"""The notebooks run as a newcomer runs them, in a kernel; what they show of hostile data is text in the rendered page."""

import copy
import re
from collections.abc import Callable
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
import pytest
from nbconvert import HTMLExporter
from notebooks import NOTEBOOKS, ROOT, executed, kept, timeless
from snippets import agrees

from structpred.core.result import Certificate
from structpred.io import Tree
from structpred.models import ChainLabeler
from structpred.report import draw_spans, draw_tree

#: notebooks that need PyTorch
WITH_TORCH = ("layers.ipynb", "network_tagger.ipynb")
#: the largest notebook, in bytes
LARGEST = 150_000
#: what outputs have no business to know: times, paths, addresses of objects
MACHINE = re.compile(r"\d s(?:\b|<)|seconds</th>|\bCPU\b|/(?:home|tmp|root|usr|work|Users)/|\b[A-Z]:\\\\|\b0x[0-9a-f]{6,}")
EVIL = "<script>alert(1)</script>\"><img src=x onerror='alert(2)'></table>\u202e"


Run = Callable[[str], Any]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A notebook as it runs without data sets, once for all tests."""
    return cache(lambda name: executed(name, tmp_path_factory.mktemp("run")))


def outputs(notebook: Any) -> list[Any]:
    """All that the cells show, in order."""
    return [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]


def pictures(notebook: Any) -> list[str]:
    """The HTML of the outputs that have some."""
    return [output["data"]["text/html"] for output in outputs(notebook) if "text/html" in output.get("data", {})]


def printed(notebook: Any) -> str:
    """What was printed; nothing may be on standard error, for progress is an output of its own."""
    streams = [output for output in outputs(notebook) if output["output_type"] == "stream"]
    errors = [output["text"] for output in streams if output["name"] == "stderr" and output["text"].strip()]
    assert not [text for text in errors if "compiling kernels" not in text]
    return "".join(output["text"] for output in streams if output["name"] == "stdout")


def forms(notebook: Any) -> list[tuple[str, str, str]]:
    """(the cell, the kind, the text) of each output."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    found = [(cell.id, one.get("data", {"printed": one.get("text")})) for cell in cells for one in cell.outputs]
    return [(cell, kind, text) for cell, data in found for kind, text in data.items()]


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_notebooks_are_kept_with_outputs(name: str) -> None:
    """A notebook in the repository is valid, small and begins with a title; its outputs are small texts, tables and drawings, and
    know nothing of the machine that made them."""
    file = ROOT / "examples" / name
    notebook = nbformat.read(file, as_version=4)
    nbformat.validate(notebook)
    assert notebook.cells[0].source.startswith("# ")
    assert file.stat().st_size <= LARGEST
    assert len(found := forms(notebook)) > 5
    assert {kind for _, kind, _ in found} <= {"printed", "text/html", "image/svg+xml", "text/plain"}
    assert [(cell, hit[0]) for cell, _, text in found if (hit := MACHINE.search(text))] == []
    assert notebook == kept(copy.deepcopy(notebook))


@pytest.mark.slow
@pytest.mark.parametrize("name", NOTEBOOKS)
def test_outputs_are_those_of_a_run(name: str, run: Run) -> None:
    """What is kept is what the notebook shows where there are no data sets (`make notebooks` brings it up to date)."""
    if name in WITH_TORCH:
        pytest.importorskip("torch", reason="PyTorch is not installed")
    ours = forms(nbformat.read(ROOT / "examples" / name, as_version=4))
    theirs = forms(kept(copy.deepcopy(run(name))))
    assert [one[:2] for one in ours] == [one[:2] for one in theirs]
    assert [cell for (cell, _, shown), (_, _, found) in zip(ours, theirs, strict=True) if not agrees(shown, found)] == []


def test_times_are_left_out() -> None:
    """Seconds go from sentences and, with their column, from tables; what else there is stays."""
    row = "<tr><td>1</td><td class='number'>0.7</td><td>0.3</td><td>6</td></tr>"
    table = f"<table><tr><th>passes</th><th>seconds</th><th>cpu_seconds</th><th>gap</th></tr>{row}{row}</table>"
    short = "<tr><td>1</td><td>6</td></tr>"
    assert timeless(table) == f"<table><tr><th>passes</th><th>gap</th></tr>{short}{short}</table>"
    assert timeless("<div>BCFW: 10 passes in 0.8 s </div><table><tr><td>a</td></tr></table>") == (
        "<div>BCFW: 10 passes </div><table><tr><td>a</td></tr></table>"
    )
    assert timeless("right\n  argmax takes 2 CPU microseconds on these shapes (median)</pre>") == "right</pre>"
    assert MACHINE.search("in 0.8 s") is not None
    assert MACHINE.search("<title>File /home/a/b.py</title>") is not None


@pytest.mark.slow
def test_own_structure_runs(run: Run) -> None:
    """An oracle of one's own is checked, trained to its tolerance, explained and saved; training is one output in the cell."""
    found = run("own_structure.ipynb")
    shown, text = pictures(found), printed(found)
    assert sum("BCFW" in html for html in shown) == 1
    share = re.search(r"(\d+)% of the couriers", text)
    assert share is not None
    assert int(share[1]) > 50
    assert any("knows the street" in html for html in shown)
    assert text.splitlines()[-1] == "True"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["chunker.ipynb", "parser.ipynb", "tagger.ipynb"])
def test_notebooks_run_on_real_sentences(name: str, tmp_path: Path, data_dir: Path) -> None:
    """The notebook runs on real sentences, reaches a sensible score, and becomes a page in which its drawings stand."""
    found = executed(name, tmp_path, data_dir)
    shown, text = pictures(found), printed(found)
    assert re.match(r"\d{3,} sentences to learn from", text)
    scores = "\n".join(shown)
    if name == "parser.ipynb":
        match = re.search(r"UAS (\d+\.\d)%, LAS (\d+\.\d)%", text)
        assert match is not None
        assert float(match[1]) > 65
        assert sum("<svg" in html for html in shown) == 3
    else:
        match = re.search(r"tokens .* accuracy +(\d+\.\d+) %", scores)
        assert match is not None
        assert float(match[1]) > 85
        assert sum("<mark" in html for html in shown) >= 2
    assert HTMLExporter().from_notebook_node(found)[0].count("jp-Cell ") >= len(found.cells)


@pytest.mark.slow
def test_layers_leave_the_right_reading_open(run: Run) -> None:
    """Behind a network each loss learns the trees; SparseMAP mixes two readings of the doubtful sentence, and draws few arcs."""
    pytest.importorskip("torch", reason="PyTorch is not installed")
    found = run("layers.ipynb")
    drawn, text = [html for html in pictures(found) if "<svg" in html], printed(found)
    assert [int(share) > 90 for share in re.findall(r"(\d+)% of the heads", text)] == [True] * 3
    assert len(drawn) == 3
    doubtful, clear, soft = (sorted(map(float, re.findall(r">(\d\.\d\d)</text>", html))) for html in drawn)
    assert 0.2 < doubtful[0] < 0.5
    assert len(clear) <= len(doubtful) < len(soft)
    assert text.splitlines()[-1] == "True"


def scores_of_twins(notebook: Any) -> list[float]:
    """F1 of softmax, of softmax under the rules, of the CRF, in per cent; and of the transformer."""
    return [float(score) for score in re.findall(r"F1 (\d+\.\d) %", printed(notebook))]


def test_the_kept_crf_is_ahead_of_softmax() -> None:
    """What the notebook shows without a run: the CRF has the best F1, and each word its tag."""
    kept_one = nbformat.read(ROOT / "examples" / "network_tagger.ipynb", as_version=4)
    softmax, ruled, crf, transformer = scores_of_twins(kept_one)
    assert crf > max(softmax, ruled)
    assert transformer > 60
    assert "a tag for each word: True" in printed(kept_one)


@pytest.mark.slow
def test_a_crf_on_a_network_is_ahead_of_softmax(tmp_path: Path, data_dir: Path) -> None:
    """On CoNLL-2000: the same network gains more than a point by the CRF, less by the rules alone, as the text says; tags of word
    pieces with holes are found, are those of the words, and those that are exported."""
    pytest.importorskip("torch", reason="PyTorch is not installed")
    if not (data_dir / "conll2000").is_dir():
        pytest.skip(f"CoNLL-2000 is not here (looked in {data_dir})")
    found = executed("network_tagger.ipynb", tmp_path, data_dir)
    text = printed(found)
    assert text.startswith("2000 sentences")
    *twins, transformer = scores_of_twins(found)
    softmax, ruled, crf = twins
    assert crf > max(softmax + 1.0, ruled)
    assert transformer > 70
    (said,) = [cell.source for cell in found.cells if cell.source.startswith("On these sentences of CoNLL-2000")]
    assert [float(score) for score in re.findall(r"(\d+\.\d) %", said)] == pytest.approx(twins, abs=0.5)
    assert [line for line in text.splitlines() if line in ("True", "a tag for each word: True")] == [
        "a tag for each word: True", "True", "True",
    ]  # fmt: skip


@pytest.mark.slow
def test_decisions_are_learnt_for_their_cost(run: Run) -> None:
    """Every loss loses less than two stages do; paths and regret are drawn, and the certificate is shown."""
    found = run("decisions.ipynb")
    text = printed(found)
    lost = [float(share) for share in re.findall(r"regret (\d+\.\d)%", text)]
    assert len(lost) == 7
    assert max(lost[1:]) < 0.75 * lost[0]
    drawn = [output["data"]["image/svg+xml"] for output in outputs(found) if "image/svg+xml" in output.get("data", {})]
    assert [picture.count("<line ") > 40 for picture in drawn] == [True, False]
    assert any("primal" in html for html in pictures(found))
    assert text.splitlines()[-1] == "True"


class Page(HTMLParser):
    """A page: the text of each element, and the elements and attributes below the outputs."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.scripts: list[str] = []
        self.text = ""
        self.attributes: set[str] = set()
        self.images = 0
        self.inside = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.inside = tag
        self.images += tag == "img"
        self.attributes |= {name for name, _ in attrs}
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self.inside = ""

    def handle_data(self, data: str) -> None:
        if self.inside == "script":
            self.scripts[-1] += data
        else:
            self.text += data


def test_hostile_tokens_stay_text_in_a_page() -> None:
    """In a notebook rendered as HTML no token, label or relation is an element: no script runs, no picture is loaded."""
    X, y = [[{"w": EVIL}, {"w": "b"}]] * 2, [[EVIL, "B"]] * 2
    model = ChainLabeler(max_iter=2).fit(X, y)
    tree = Tree(np.array([2, 0]), [EVIL, "root"])
    shown = [
        draw_spans([EVIL, "b"], [EVIL, "B"], gold=["B", "B"]), draw_tree([EVIL, "b"], tree, tags=[EVIL, "B"]), tree,
        model.explain(X[0], against="runner-up"), model.top_features(3), model.history_, Certificate(2.0, 1.5),
    ]  # fmt: skip
    cells = [nbformat.v4.new_code_cell("x")]
    cells[0].outputs = [
        nbformat.v4.new_output("display_data", {"text/html": one._repr_html_(), "text/plain": repr(one)}) for one in shown
    ]
    page = Page(HTMLExporter().from_notebook_node(nbformat.v4.new_notebook(cells=cells))[0])
    assert not [script for script in page.scripts if "alert(" in script]
    assert "onerror" not in page.attributes
    assert page.images == 0
    assert page.text.count("<script>alert(1)</script>") >= 5
    assert "\u202e" not in page.text
