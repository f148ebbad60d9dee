"""Promises of `bench bmrm-lower-bound` and `bench linear-solvers`: what they print, and what they need."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

Here = Callable[..., tuple[int, str, str]]


def test_the_lower_bound_needs_no_data(here: Here, tmp_path: Path) -> None:
    """A table for people, one line an iteration; as JSON, gaps equal to 1/(2 lambda t), the printed construction's last one 0."""
    code, out, err = here("bench", "bmrm-lower-bound", "--quick", cwd=tmp_path)
    assert code == 0, err
    assert len([line for line in out.splitlines() if line.split()[0].isdigit()]) == 7
    table = json.loads(here("bench", "bmrm-lower-bound", "--quick", "--json", cwd=tmp_path)[1])
    assert table["error"] < 1e-12
    assert [round(row["gap"], 4) for row in table["rows"]] == [5.0, 2.5, 1.6667, 1.25, 1.0, 0.8333, 0.7143]
    assert abs(table["rows"][-1]["printed"]) < 1e-12


@pytest.mark.slow
def test_solvers_of_linear_machines_are_compared(here: Here, data_dir: Path, tmp_path: Path) -> None:
    """A line for each solver with its certified gap next to liblinear's distance, all figures as JSON, and the picture."""
    common = ("bench", "linear-solvers", "--quick", "--only", "w8a", "--data", str(data_dir))
    code, out, err = here(*common, "--picture", "gaps.svg", cwd=tmp_path)
    assert code == 0, err
    assert {"bmrm", "ls_bmrm", "bcfw", "liblinear"} <= {line.split()[0] for line in out.splitlines() if line}
    assert "</svg>" in (tmp_path / "gaps.svg").read_text()
    (table,) = json.loads(here(*common, "--json", cwd=tmp_path)[1])["tables"]
    for course in table["courses"]:
        gaps = [point["gap"] for point in course["points"]]
        assert min(gaps) >= -1e-9
        assert gaps[-1] < 0.2 * gaps[0] or course["solver"] in ("bcfw", "liblinear")
    assert here(*common, "--picture", "gaps.txt", cwd=tmp_path)[0] != 0
