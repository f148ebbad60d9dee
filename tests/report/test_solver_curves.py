"""Pictures of many solvers: no two of them look the same."""

from pathlib import Path
from typing import Any

import pytest

from structpred.report import figures
from structpred.report.solvers import regret_against_seconds, solver_curves


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The figures that were saved."""
    kept: list[Any] = []
    monkeypatch.setattr(figures, "save", lambda figure, path: kept.append(figure))
    return kept


def test_more_curves_than_colours_differ_in_their_lines(drawn: list[Any], tmp_path: Path) -> None:
    """Those of one colour are not of one kind of line, which is seen where marks are small."""
    n = 2 * len(figures.COLOURS) + 1
    points = [{"passes": k, "seconds": k, "error": 1.0 / k, "accuracy": 0.9} for k in (1, 2)]
    courses = [{"solver": f"solver {k}", "points": points} for k in range(n)]
    solver_curves([{"data": "a9a", "lam": 0.1, "courses": courses}], tmp_path / "out.svg")
    for ax in drawn[0].axes:
        assert len({(line.get_color(), line.get_linestyle()) for line in ax.lines}) == n


def test_more_methods_than_colours_differ_in_their_marks(drawn: list[Any], tmp_path: Path) -> None:
    """A ninth method has a mark of its own."""
    rows = [{"problem": "paths", "method": f"method {k}", "regret": 0.1, "cpu_seconds": 1.0} for k in range(20)]
    regret_against_seconds(rows, tmp_path / "out.svg")
    lines = drawn[0].axes[0].lines
    assert len(lines) == len({(line.get_color(), line.get_marker()) for line in lines}) == 20
