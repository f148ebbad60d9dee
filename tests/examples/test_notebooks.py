"""The notebooks run as a newcomer runs them, in a kernel; what they show of hostile data is text in the rendered page."""

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
import pytest
from nbclient import NotebookClient
from nbconvert import HTMLExporter

from structpred.core.result import Certificate
from structpred.io import Tree
from structpred.models import ChainLabeler
from structpred.report import draw_spans, draw_tree

ROOT = Path(__file__).resolve().parent.parent.parent
NOTEBOOKS = sorted(path.name for path in (ROOT / "examples").glob("*.ipynb"))
EVIL = "<script>alert(1)</script>\"><img src=x onerror='alert(2)'></table>\u202e"


def executed(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch, data: Path | None) -> Any:
    """The notebook after a run in a kernel of its own, which leaves nothing outside of `folder`; an error in a cell is raised."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("STRUCTPRED_DATA", str(data or folder))
    for variable in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR"):
        monkeypatch.setenv(variable, str(folder / variable))
    notebook = nbformat.read(ROOT / "examples" / name, as_version=4)
    client = NotebookClient(notebook, timeout=1800, kernel_name="python3", resources={"metadata": {"path": str(folder)}})
    return client.execute()


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


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_notebooks_are_kept_without_outputs(name: str) -> None:
    """A notebook in the repository is valid, has no outputs and no numbers of runs, and begins with a title."""
    notebook = nbformat.read(ROOT / "examples" / name, as_version=4)
    nbformat.validate(notebook)
    assert notebook.cells[0].source.startswith("# ")
    assert not [cell.id for cell in notebook.cells if cell.cell_type == "code" and (cell.outputs or cell.execution_count)]


@pytest.mark.slow
def test_own_structure_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An oracle of one's own is checked, trained to its tolerance, explained and saved; training is one output in the cell."""
    found = executed("own_structure.ipynb", tmp_path, monkeypatch, None)
    shown, text = pictures(found), printed(found)
    assert sum("BCFW" in html for html in shown) == 1
    share = re.search(r"(\d+)% of the couriers", text)
    assert share is not None
    assert int(share[1]) > 50
    assert any("knows the street" in html for html in shown)
    assert text.splitlines()[-1] == "True"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["chunker.ipynb", "parser.ipynb", "tagger.ipynb"])
def test_notebooks_run_on_real_sentences(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data_dir: Path) -> None:
    """The notebook runs on real sentences, reaches a sensible score, and becomes a page in which its drawings stand."""
    found = executed(name, tmp_path, monkeypatch, data_dir)
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
@pytest.mark.parametrize("name", ["chunker.ipynb", "parser.ipynb", "tagger.ipynb"])
def test_notebooks_run_without_data(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the data sets are not there, every cell runs on the few sentences that the notebook brings."""
    found = executed(name, tmp_path, monkeypatch, None)
    assert re.match(r"[5-9] sentences to learn from", printed(found))


@pytest.mark.slow
def test_layers_leave_the_right_reading_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind a network each loss learns the trees; SparseMAP mixes two readings of the doubtful sentence, and draws few arcs."""
    pytest.importorskip("torch", reason="PyTorch is not installed")
    found = executed("layers.ipynb", tmp_path, monkeypatch, None)
    drawn, text = [html for html in pictures(found) if "<svg" in html], printed(found)
    assert [int(share) > 90 for share in re.findall(r"(\d+)% of the heads", text)] == [True] * 3
    assert len(drawn) == 3
    doubtful, clear, soft = (sorted(map(float, re.findall(r">(\d\.\d\d)</text>", html))) for html in drawn)
    assert 0.2 < doubtful[0] < 0.5
    assert len(clear) <= len(doubtful) < len(soft)
    assert text.splitlines()[-1] == "True"


@pytest.mark.slow
def test_decisions_are_learnt_for_their_cost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every loss loses less than two stages do; paths and regret are drawn, and the certificate is shown."""
    found = executed("decisions.ipynb", tmp_path, monkeypatch, None)
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
