"""The picture of regret against seconds: a panel a problem, a mark a method."""

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

pytest.importorskip("matplotlib")

from structpred.errors import ParameterError
from structpred.report import figures
from structpred.report.solvers import regret_against_seconds

ROWS: list[dict[str, Any]] = [
    {"problem": "paths", "method": "spo+", "regret": 0.08, "cpu_seconds": 0.03, "gap": None},
    {"problem": "paths", "method": "least squares", "regret": 0.13, "cpu_seconds": 0.0, "gap": None},
    {"problem": "knapsacks", "method": "least squares", "regret": 0.2, "cpu_seconds": 0.002, "gap": None},
]


def test_each_method_has_its_mark(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Marks lie at seconds and per cent, zero seconds too; a method looks the same in all panels and is named once."""
    seen: list[Any] = []
    monkeypatch.setattr(figures, "save", lambda figure, path: seen.append(figure))
    regret_against_seconds(ROWS, tmp_path / "regret.svg")
    paths, knapsacks = seen[0].axes
    spo, squares = paths.lines
    assert [spo.get_xdata()[0], spo.get_ydata()[0]] == pytest.approx([0.03, 8.0])
    assert squares.get_xdata()[0] > 0.0
    assert squares.get_marker() == knapsacks.lines[0].get_marker() != spo.get_marker()
    assert [text.get_text() for text in seen[0].legends[0].get_texts()] == ["spo+", "least squares"]
    assert all(
        ax.get_ylim()[0] == 0.0 and ax.get_ylim()[1] > 100 * row["regret"] for ax, row in zip(seen[0].axes, ROWS[1:], strict=True)
    )


def test_the_file_is_svg_or_refused(tmp_path: Path) -> None:
    """The file is well-formed; another ending is refused before anything is drawn."""
    regret_against_seconds(ROWS, tmp_path / "regret.svg")
    assert ElementTree.parse(tmp_path / "regret.svg").getroot().tag.endswith("svg")
    with pytest.raises(ParameterError, match=r"regret\.pdf"):
        regret_against_seconds(ROWS, tmp_path / "regret.pdf")
