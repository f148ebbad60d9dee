"""Promises of `bench bmrm-lower-bound` and `bench linear-solvers`: what they print, and what they need."""

import json
from collections.abc import Callable
from pathlib import Path

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
