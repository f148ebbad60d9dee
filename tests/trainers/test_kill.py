"""Kill -9 at random moments, over all trainers: at least two hundred kills, and every run ends as the unbroken one."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from kill_server import CASES, HAZARDS

KILLS = -(-200 // len(CASES))  # in each case


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs fork")
@pytest.mark.parametrize("case", CASES)
def test_killed_runs_end_like_unbroken_ones(case: str, tmp_path: Path) -> None:
    """Killed again and again, between and inside writes: weights, history and certificate equal, no unreadable checkpoint."""
    seen = killed(case, tmp_path, KILLS)
    assert (seen["failures"], seen["other_ends"], seen["unreadable"]) == (0, 0, 0), seen


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs fork")
@pytest.mark.parametrize("hazard", HAZARDS)
def test_kills_and_other_hazards(hazard: str, tmp_path: Path) -> None:
    """Killed while the disk is full, the folder goes away, or a second run is started: no run lost, none that ends otherwise."""
    seen = killed(HAZARDS[hazard], tmp_path, 20, hazard)
    assert (seen["failures"], seen["other_ends"], seen["unreadable"]) == (0, 0, 0), seen


def killed(case: str, folder: Path, kills: int, *hazard: str) -> dict[str, Any]:
    """What the process that kills saw."""
    server = Path(__file__).with_name("kill_server.py")
    command = [sys.executable, str(server), case, str(folder), str(kills), str(sorted(CASES).index(case)), *hazard]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=1800, check=False)
    assert done.returncode == 0, done.stderr
    seen: dict[str, Any] = json.loads(done.stdout)
    print(case, *hazard, seen)
    assert seen["kills"] >= kills
    return seen
