"""Promises of `bench ocr-mkl`: the table, the paper's figures, and how much is run."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

Here = Callable[..., tuple[int, str, str]]


@pytest.mark.slow
def test_kernels_are_compared(here: Here, data_dir: Path, tmp_path: Path) -> None:
    """A line for each model with the paper's figures, weights of groups that sum to one, and the batch optimum with its gap."""
    common = ("bench", "ocr-mkl", "--quick", "--only", "second", "--data", str(data_dir))
    code, out, err = here(*common, "--batch", cwd=tmp_path)
    assert code == 0, err
    assert [line[:12].strip() for line in out.splitlines()[2:6]] == ["B1-spline", "average L+B1", "MKL L+B1", "MKL L+B1, ba"]
    assert "85.2 +- 0.3 %" in out
    table = json.loads(here(*common, "--json", cwd=tmp_path)[1])
    assert [row["model"] for row in table["rows"]] == ["B1-spline", "average L+B1", "MKL L+B1"]
    for row in table["rows"]:
        assert sum(row["weights"]) == pytest.approx(1.0)
        assert row["mean"] > 50.0
    assert here(*common, "--folds", "0", cwd=tmp_path)[0] != 0


def test_what_is_run(here: Here, tmp_path: Path) -> None:
    """The help page says how many runs there are; missing data are named."""
    assert "--folds" in here("bench", "ocr-mkl", "--help", cwd=tmp_path)[1]
    code, _, err = here("bench", "ocr-mkl", "--data", str(tmp_path), cwd=tmp_path)
    assert code != 0
    assert "letter.data" in err
