"""Crafted checkpoints with right checksums: every array and every number bent in turn, over all trainers; no memory but ours."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from bent_checkpoints import CASES

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs limits on memory")
FAST = "bcfw"
#: a run of these takes so long that only the random bends go through them here; the script bends their fields one by one, too
LONG = ("parser bcfw", "parser mira", "parser oeg", "labels n_slack", "graph lbfgs")
SLOW = [case for case in CASES if case not in (FAST, *LONG)]


def bent(folder: Path, *arguments: str) -> dict[str, Any]:
    """What the process of its own saw."""
    script = Path(__file__).with_name("bent_checkpoints.py")
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, str(script), *arguments], env=environment, capture_output=True, text=True, check=False)
    at = (folder / "at").read_text() if (folder / "at").exists() else "the start"
    assert done.returncode == 0, f"ended with {done.returncode} at {at}: {done.stderr[-2000:]}"
    seen: dict[str, Any] = json.loads(done.stdout)
    print(*arguments, seen)
    return seen


@pytest.mark.parametrize("case", [pytest.param(case, marks=pytest.mark.slow) for case in (FAST, *SLOW)])
def test_every_field_bent_in_turn(case: str, tmp_path: Path) -> None:
    """Each array and each number of a checkpoint bent in turn: CheckpointError, or a run that ends, in 200 MB."""
    seen = bent(tmp_path, "each", case, str(tmp_path))
    assert "foreign" not in seen, seen
    counts = {name: count for name, count in seen.items() if name not in ("examples", "slowest")}
    # weights of 1e300 are numbers, too: scores then overflow, which has errors of its own
    # and a bent dual point gives bounds that cross, which is an OracleError
    others = sum(counts.values()) - counts["CheckpointError"] - counts["finished"] - counts.get("OracleError", 0)
    assert others <= 12, seen
    assert 2 * seen["CheckpointError"] > seen["finished"] > 0


@pytest.mark.slow
def test_bent_at_random(tmp_path: Path) -> None:
    """One to three bends at random places, over all trainers and tasks: errors of ours, or a run that ends, in 200 MB."""
    seen = bent(tmp_path, "random", str(tmp_path), "500", "0")
    assert "foreign" not in seen, seen
