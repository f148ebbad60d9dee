"""Kill -9 at random moments, over all trainers: at least two hundred kills, and every run ends as the unbroken one."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from kill_server import CASES

KILLS = -(-200 // len(CASES))  # in each case


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs fork")
@pytest.mark.parametrize("case", CASES)
def test_killed_runs_end_like_unbroken_ones(case: str, tmp_path: Path) -> None:
    """Killed again and again, between and inside writes: weights, history and certificate equal, no unreadable checkpoint."""
    server = Path(__file__).with_name("kill_server.py")
    command = [sys.executable, str(server), case, str(tmp_path), str(KILLS), str(sorted(CASES).index(case))]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    print(case, seen)
    assert seen["kills"] >= KILLS
    assert (seen["failures"], seen["other_ends"], seen["unreadable"]) == (0, 0, 0), seen
