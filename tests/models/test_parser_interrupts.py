"""Parser training that is interrupted or killed, in either stage, ends after a resume as if nothing had happened, bit for bit."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from parser_cases import corpus, plain
from parser_runs import CASES

from structpred.errors import CheckpointError
from structpred.models.parser.parser import DependencyParser

HERE = Path(__file__).resolve().parent
KILLS = 25  # in each case
X, Y = corpus(30, 0, 0.3)


def start(*arguments: str) -> subprocess.Popen[str]:
    """A process that trains."""
    environment = {**os.environ, "PYTHONPATH": str(HERE.parent.parent), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, str(HERE / "parser_runs.py"), *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def ended(process: subprocess.Popen[str], seconds: float = 1800) -> tuple[int, str, str]:
    """Exit code, standard output and standard error."""
    output, error = process.communicate(timeout=seconds)
    return process.returncode, output, error


def result(folder: Path) -> dict[str, Any]:
    """What the run wrote."""
    found: dict[str, Any] = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    return found


@pytest.mark.slow
@pytest.mark.parametrize(("case", "line"), [("mira", "stage 1 pass 4"), ("bcfw", "stage 2 pass 3"), ("mira", "stage 2 pass 5")])
def test_a_signal_in_either_stage_stops_in_order(case: str, line: str, tmp_path: Path) -> None:
    """After Ctrl-C the parser predicts with what it has; after the resume all is as in an unbroken run."""
    folders = unbroken, broken = tmp_path / "unbroken", tmp_path / "broken"
    for folder in folders:
        folder.mkdir()
    code, _, error = ended(start("run", case, str(unbroken)))
    assert code == 0, error
    process = start("run", case, str(broken), "--pause", "0.1")
    assert process.stdout is not None
    assert any(got.strip() == line for got in process.stdout)
    process.send_signal(signal.SIGINT)
    code, _, error = ended(process)
    assert code == 3, error
    assert "training was interrupted" in error
    assert f"resume=True from {broken / 'run.ckpt'}\n" in error
    halfway, expected = result(broken), result(unbroken)
    assert halfway["stop_reasons"][0] == "interrupted"
    assert (halfway["relations"] is None) == line.startswith("stage 1")
    part = int(line.split()[1]) - 1
    assert len(halfway["histories"][part]) < len(expected["histories"][part])
    code, _, error = ended(start("run", case, str(broken), "--resume"))
    assert code == 0, error
    assert result(broken) == expected


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs fork")
@pytest.mark.parametrize("case", CASES)
def test_killed_runs_end_like_unbroken_ones(case: str, tmp_path: Path) -> None:
    """Killed again and again in both stages: weights, relations, histories and trees equal, no unreadable checkpoint."""
    code, output, error = ended(start("kill", case, str(tmp_path), str(KILLS), str(sorted(CASES).index(case))), 300)
    assert code == 0, error
    seen = json.loads(output)
    print(case, seen)
    assert seen["kills"] >= KILLS
    assert 0 < seen["in_relations"] < seen["kills"]
    assert (seen["failures"], seen["other_ends"], seen["unreadable"]) == (0, 0, 0), seen


def stopped_after(n: int, stage: int) -> Any:
    """A callback that stops a stage after n passes."""
    return lambda row: row.get("stage", 1) == stage and row["passes"] == n


@pytest.mark.parametrize("stage", [1, 2])
def test_a_run_that_was_stopped_goes_on(stage: int, tmp_path: Path) -> None:
    """Stopped by a callback in either stage and resumed with the same settings: the unbroken run's weights."""
    settings: dict[str, Any] = {"trainer": "bcfw", "C": 0.1, "max_iter": 5, "prune": 3}
    unbroken = DependencyParser(**settings).fit(X, Y)
    file = tmp_path / "run.ckpt"
    first = DependencyParser(**settings, checkpoint=file, callbacks=stopped_after(2, stage)).fit(X, Y)
    assert (first.stop_reason_ if stage == 1 else first.relations_.stop_reason_) == "callback"  # type: ignore[union-attr]
    again = DependencyParser(**settings, checkpoint=file, resume=True).fit(X, Y)
    assert again.coef_.tobytes() == unbroken.coef_.tobytes()
    if stage == 2:  # else the second stage of the stopped run is whole: it does not depend on the arcs
        assert len(again.label_history_) == 5
    assert again.relations_.coef_.tobytes() == unbroken.relations_.coef_.tobytes()  # type: ignore[union-attr]
    assert plain(again.predict(X)) == plain(unbroken.predict(X))


def test_a_new_run_forgets_the_second_stage_of_an_earlier_one(tmp_path: Path) -> None:
    """Without resume, checkpoints of both stages are replaced, so that a later resume never meets those of other data."""
    file = tmp_path / "run.ckpt"
    DependencyParser(max_iter=2, checkpoint=file).fit(X, Y)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run.ckpt", "run.ckpt.relations"]

    def broken(row: Any) -> None:
        raise RuntimeError("as if the power went")

    with pytest.raises(RuntimeError, match="power"):
        DependencyParser(max_iter=2, checkpoint=file, callbacks=broken).fit(X[:20], Y[:20])
    assert [path.name for path in tmp_path.iterdir()] == ["run.ckpt"]


@pytest.mark.mostly_slow
@pytest.mark.parametrize(
    "other",
    [
        {"single_root": False},
        {"projective": True},
        {"C": 0.5},
        {"prune": 1},
        {"max_bits": 7},
        {"random_state": 3},
        {"trainer": "sgd"},
    ],
)
def test_another_run_s_checkpoint_is_refused(other: dict[str, Any], tmp_path: Path) -> None:
    """A resume with other settings raises CheckpointError; with other data, too."""
    file = tmp_path / "run.ckpt"
    DependencyParser(max_iter=1, labelled=False, checkpoint=file).fit(X, Y)
    with pytest.raises(CheckpointError, match="belongs to another run"):
        DependencyParser(max_iter=2, labelled=False, checkpoint=file, resume=True).set_params(**other).fit(X, Y)
    with pytest.raises(CheckpointError, match="belongs to another run"):
        DependencyParser(max_iter=2, labelled=False, checkpoint=file, resume=True).fit(X[1:], Y[1:])
    with pytest.raises(CheckpointError, match="cannot resume"):
        DependencyParser(max_iter=2, checkpoint=tmp_path / "none.ckpt", resume=True).fit(X, Y)
