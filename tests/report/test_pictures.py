"""Pictures: they hold what they should, are valid files, touch no global state, and refuse what cannot be drawn."""

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

pytest.importorskip("matplotlib")

from structpred.errors import DataError, ParameterError, StructpredError
from structpred.report import confusion, figures, gap_curve, halving_curves, transitions
from structpred.tuning import Trial, Tuned
from structpred.tuning.halving import rungs

HISTORY = [
    {"passes": k, "seconds": 0.5 * k, "cpu_seconds": 0.5 * k, "oracle_calls": 1000 * k, "primal": 100 + 900 / k**2,
     "dual": 100 - 50 / k, "gap": 900 / k**2 + 50 / k, "dev_score": None}
    for k in range(1, 30)
]  # fmt: skip
NASTY = ["$x^$", "<script>alert(1)</script>", '"><img onerror=x>', "字", "_%\\frac{", "\u202eabc"]

TUNED = Tuned(
    [
        Trial({"C": 0.1}, [0.5, 0.8, 0.7], 2, 0.8, 3, 1.0, False),
        Trial({"C": 1.0}, [0.4], 1, 0.4, 1, 0.3, True),
        Trial({"C": 9.0}, [], None, None, 1, 0.1, True, "no longer finite"),
    ],
    rungs(3, 3),
)

DRAW: dict[str, Callable[[Path], None]] = {
    "gap": lambda path: gap_curve(HISTORY, path),
    "halving": lambda path: halving_curves(TUNED, path),
    "confusion": lambda path: confusion(["a", "b"], [[5, 1], [0, 9]], path),
    "transitions": lambda path: transitions([[1.0, -np.inf], [0.5, -2.0]], ["a", "b"], path),
}


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Collects the figures instead of saving them."""
    seen: list[Any] = []
    monkeypatch.setattr(figures, "save", lambda figure, path: seen.append(figure))
    return seen


def texts(ax: Any) -> list[str]:
    """All texts put into the axes."""
    return [t.get_text() for t in ax.texts]


@pytest.mark.slow
@pytest.mark.parametrize("name", DRAW)
@pytest.mark.parametrize("ending", ["png", "svg", "PNG"])
def test_files_are_valid(tmp_path: Path, name: str, ending: str) -> None:
    """Each picture is saved as a PNG or an SVG by its ending, and nothing else is left in the folder."""
    path = tmp_path / f"picture.{ending}"
    DRAW[name](path)
    data = path.read_bytes()
    if ending == "svg":
        assert ElementTree.fromstring(data).tag.endswith("}svg")
    else:
        assert data.startswith(b"\x89PNG\r\n")
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("name", DRAW)
def test_other_endings_are_refused(tmp_path: Path, name: str) -> None:
    """Any other ending is an error that names the two that are known, before anything is drawn."""
    with pytest.raises(ParameterError, match=r"ends in \.png or \.svg"):
        DRAW[name](tmp_path / "picture.pdf")


def test_old_picture_stays_when_saving_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the disk fills while a picture is written, the old one stays and nothing else is left."""
    from structpred.storage import atomic

    def step(name: str) -> None:
        if name == "written":
            raise OSError(28, "No space left on device")

    path = tmp_path / "a.png"
    path.write_bytes(b"old")
    monkeypatch.setattr(atomic, "step", step)
    with pytest.raises(StructpredError, match="disk is full"):
        DRAW["confusion"](path)
    assert (path.read_bytes(), len(list(tmp_path.iterdir()))) == (b"old", 1)


@pytest.mark.slow
def test_no_global_state() -> None:
    """Drawing loads no pyplot, and importing the package of pictures does not load matplotlib at all."""
    code = (
        "import sys, structpred.report as r; assert 'matplotlib' not in sys.modules\n"
        "import os, tempfile; p = os.path.join(tempfile.mkdtemp(), 'a.png'); r.confusion(['a'], [[1]], p); os.remove(p)\n"
        "assert 'matplotlib' in sys.modules and 'matplotlib.pyplot' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_gap_curve(drawn: list[Any], tmp_path: Path) -> None:
    """Primal, dual and gap stand against seconds, passes and oracle calls, the gap on a logarithmic axis."""
    gap_curve(HISTORY, tmp_path / "a.png")
    axes = np.array(drawn[0].axes).reshape(2, 3)
    assert [ax.get_xlabel() for ax in axes[1]] == ["time (s)", "passes over the data", "oracle calls"]
    assert [ax.get_yscale() for ax in axes[1]] == ["log"] * 3
    primal, dual = axes[0, 2].lines[:2]
    assert primal.get_xdata().tolist() == [row["oracle_calls"] for row in HISTORY]
    assert primal.get_ydata().tolist() == [row["primal"] for row in HISTORY]
    assert dual.get_ydata().tolist() == [row["dual"] for row in HISTORY]
    assert axes[1, 0].lines[0].get_ydata().tolist() == [row["gap"] for row in HISTORY]
    assert "(2.8 % of the primal)" in drawn[0].get_suptitle()


def test_halving_curves(drawn: list[Any], tmp_path: Path) -> None:
    """A curve per setting that has scores, of the best score so far, the best setting named first with its score."""
    halving_curves(TUNED, tmp_path / "a.png", "F1")
    (ax,) = drawn[0].axes
    curves = [list(line.get_ydata()) for line in ax.lines]
    assert curves == [[40.0], [40.0], [50.0, 80.0, 80.0], [80.0]]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["C 0.1: 80.00", "C 1: 40.00"]
    assert "F1" in ax.get_ylabel()


def test_gap_curve_with_missing_figures(drawn: list[Any], tmp_path: Path) -> None:
    """Figures that were not measured are left out, a gap of zero too, and axes without values are not drawn."""
    rows = [
        {"passes": 1, "seconds": None, "primal": 5.0, "dual": None, "gap": None},
        {"passes": 2, "seconds": None, "primal": 4.0, "dual": 3.0, "gap": 1.0},
        {"passes": 3, "seconds": None, "primal": 4.0, "dual": 4.0, "gap": 0.0},
    ]
    gap_curve(rows, tmp_path / "a.png")
    above, below = drawn[0].axes
    assert [line.get_xdata().tolist() for line in above.lines] == [[1, 2, 3], [2, 3]]
    assert below.lines[0].get_xdata().tolist() == [2]


@pytest.mark.parametrize("history", [[], [{"passes": 1, "primal": None}], [{"primal": 1.0}]])
def test_gap_curve_of_nothing(tmp_path: Path, history: list[dict[str, Any]]) -> None:
    """A history without objectives, or without anything to set them against, is refused."""
    with pytest.raises(DataError, match="no objective to draw"):
        gap_curve(history, tmp_path / "a.png")


def test_confusion(drawn: list[Any], tmp_path: Path) -> None:
    """The cells hold the counts, short from a thousand on; the rows end in their share; the title has the total."""
    confusion(["a", "b", "c"], [[1200, 34, 0], [1, 99, 0], [0, 0, 0]], tmp_path / "a.png")
    ax = drawn[0].axes[0]
    assert texts(ax) == ["1.2k", "34", "1", "99", "97.2 %", "99.0 %", "\N{EN DASH}"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("predicted label", "gold label")
    assert "1,299 of 1,334 tokens right (97.38 %)" in ax.get_title()


def test_transitions(drawn: list[Any], tmp_path: Path) -> None:
    """Weights are written in the cells, the scale is symmetric, and forbidden transitions are hatched."""
    transitions([[1.0, -np.inf], [-0.04, -2.0]], ["a", "b"], tmp_path / "a.png")
    ax = drawn[0].axes[0]
    assert texts(ax) == ["1.0", "0.0", "\N{MINUS SIGN}2.0"]
    assert ax.images[0].get_clim() == (-2.0, 2.0)
    assert [p.get_xy() for p in ax.patches if p.get_hatch()] == [(0.5, -0.5)]
    assert "forbidden" in ax.get_title()


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda p: confusion(["a"], [[1, 2], [3, 4]], p), r"1 by 1 for 1 labels, got shape \(2, 2\)"),
        (lambda p: confusion([], [], p), "0 by 0"),
        (lambda p: transitions([[np.nan]], ["a"], p), "got NaN"),
        (lambda p: transitions([[np.inf]], ["a"], p), r"\+inf"),
    ],
)
def test_what_cannot_be_drawn(tmp_path: Path, draw: Callable[[Path], None], message: str) -> None:
    """Shapes and lengths that do not fit are DataErrors that name the place."""
    with pytest.raises(DataError, match=message):
        draw(tmp_path / "a.png")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Glyph")
@pytest.mark.parametrize("n", [len(NASTY), 40, 150])
def test_names_are_only_text(tmp_path: Path, n: int) -> None:
    """Formula signs, markup and turned text in names are drawn as they stand: no formula, no element, no script."""
    names = [f"{NASTY[i % len(NASTY)]}{i}" for i in range(n)]
    path = tmp_path / "a.svg"
    confusion(names, np.eye(n), path)
    transitions(np.eye(n), names, tmp_path / "b.svg")
    for file in tmp_path.iterdir():
        root = ElementTree.fromstring(file.read_bytes())
        tags = {re.sub("{.*}", "", e.tag).lower() for e in root.iter()}
        assert not tags & {"script", "foreignobject", "img", "a", "iframe"}
        assert not [k for e in root.iter() for k in e.attrib if k.lower().startswith("on")]


def test_many_labels_have_no_numbers(drawn: list[Any], tmp_path: Path) -> None:
    """With more labels than can be read in cells, the numbers and then some of the names are left out."""
    confusion([str(i) for i in range(150)], np.eye(150), tmp_path / "a.png")
    assert texts(drawn[0].axes[0]) == []
    assert len(drawn[0].axes[0].get_xticklabels()) == 75
