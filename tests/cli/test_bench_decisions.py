"""Promises of `bench decisions`: what it compares, and that it needs no data."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

Here = Callable[..., tuple[int, str, str]]


@pytest.mark.slow
def test_losses_of_decisions_are_compared(here: Here, tmp_path: Path) -> None:
    """A row for each method with its regret; SPO+ loses less than least squares, and only bcfw has a gap."""
    code, out, err = here("bench", "decisions", "--quick", "--only", "paths", "--json", cwd=tmp_path)
    assert code == 0, err
    rows = {row["method"]: row for row in json.loads(out)["tables"]}
    assert {row["problem"] for row in rows.values()} == {"paths"}
    regrets = {name: row["regret"] for name, row in rows.items()}
    assert 0.0 < regrets["spo+, adam"] < regrets["least squares, then the oracle"] < 0.5
    assert [name for name, row in rows.items() if row["gap"] is not None] == ["spo+, bcfw, lam = 0.01"]
