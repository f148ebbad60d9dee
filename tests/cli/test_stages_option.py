"""`structpred train chain --stages 2`: what it prints and keeps, and how it goes on after Ctrl-C in either stage."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from cli_helpers import Shell

from structpred.cli.training import Events
from structpred.models import load

NAMES = ["Ada", "Bo", "Cy", "Di", "Ed", "Flo"]


@pytest.fixture
def names(tmp_path: Path) -> Path:
    """Documents in which a name stands behind its title, and alone."""
    lines = []
    for k in range(12):
        name, kind, title = NAMES[k % 6], ("PER", "LOC")[k % 4 // 2], ("Mr", "at")[k % 4 // 2]
        lines += ["-DOCSTART- O", "", f"{title} O", f"{name} B-{kind}", "", f"{name} B-{kind}", "is O", ""]
    path = tmp_path / "names.txt"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def options(*more: str) -> list[str]:
    """Of training on the file."""
    return ["train", "chain", "names.txt", "--template", "pos", "--stages", "2", *more]


def test_events_lines_and_files_speak_of_both_stages(names: Path, shell: Shell) -> None:
    """Events and progress name the stage; the model file has two, with a certificate each; predictions go round."""
    run = shell(*options("-o", "m.spz", "--coding", "iobes", "--json"))
    assert run.returncode == 0, run.stderr
    events = [json.loads(line) for line in run.stdout.splitlines()]
    stages = [event["stage"] for event in events if event["event"] == "pass"]
    assert stages == ["first"] * 10 + ["first, of a part"] * 4 + ["second"] * 5
    assert events[-1]["first"]["passes"] == 10 == 2 * events[-1]["passes"]
    for line in ("first stage: pass  10", "first stage, part 2 of 2: pass   2", "second stage: pass   5"):
        assert line in run.stderr
    facts = shell("inspect", "m.spz").stdout
    assert "stages       2; of the first: primal" in facts
    told = json.loads(shell("inspect", "m.spz", "--json").stdout)
    assert (told["stages"], told["coding"], told["input"]) == (2, ["iobes", "iob2"], "staged")
    assert shell("evaluate", "m.spz", "names.txt").returncode == 0
    assert shell("predict", "m.spz", "names.txt").stdout.startswith("-DOCSTART- O O\n\nMr O O\nAda B-PER B-PER\n")
    assert sorted(os.listdir(names.parent)) == ["m.spz", "names.txt"]


@pytest.mark.skipif(os.name != "posix", reason="signals are sent as POSIX systems do")
@pytest.mark.usefixtures("hears_interrupts")
@pytest.mark.parametrize("stop", [(2, 4), (3, 3), (1, 2)], ids=["first stage", "its second part", "second stage"])
def test_ctrl_c_in_either_stage_goes_on_to_the_same_model(
    stop: tuple[int, int], names: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Interrupted, it says how to go on; that ends in the unbroken run's weights, and no checkpoint is left."""
    seen: list[int] = []

    def passed(self: Events, row: dict[str, Any]) -> None:
        seen.append(row.get("stage") or 1)
        if (seen[-1], seen.count(seen[-1])) == stop:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Events, "passed", passed)
    broken = shell(*options("-o", "m.spz"))
    assert broken.returncode == 130, broken.stderr
    assert broken.stderr.rstrip().endswith("--resume")
    resumed = shell(*options("-o", "m.spz", "--resume", "-q"))
    assert (resumed.returncode, resumed.stderr) == (0, "")
    assert len(seen) == 10 + 4 + 5
    assert shell(*options("-o", "whole.spz", "-q")).returncode == 0
    assert sorted(os.listdir(names.parent)) == ["m.spz", "names.txt", "whole.spz"]
    own, whole = (load(names.parent / name) for name in ("m.spz", "whole.spz"))
    assert own.coef_.tobytes() == whole.coef_.tobytes()
    assert own.first_stage_.coef_.tobytes() == whole.first_stage_.coef_.tobytes()


@pytest.mark.parametrize("more", [["--n-bits", "8"], ["--shards", "2"]])
def test_what_has_one_stage_is_refused_as_usage(more: list[str], names: Path, shell: Shell) -> None:
    """One line; nothing is read or written."""
    run = shell(*options("-o", "m.spz", "--format", "columns", "--dev-metric", "f1", *more))
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr.splitlines()[-1] == "error: --stages 2 is for column files, without --n-bits and --shards"
    assert os.listdir(names.parent) == ["names.txt"]


def test_a_model_of_two_is_tuned_as_one_and_predicts_whole_files(names: Path, shell: Shell) -> None:
    """The command that `tune` prints trains two; pieces of a file would cut documents."""
    found = shell("tune", "chain", "--train", "names.txt", "--template", "pos", "--stages", "2", "--C", "0.1", "1", "--cv", "2")
    assert found.returncode == 0, found.stderr
    assert "--stages 2" in found.stdout.splitlines()[-1]
    assert shell(*options("-o", "m.spz", "-q")).returncode == 0
    run = shell("predict", "m.spz", "names.txt", "--shards", "2", "-o", "{shard}.txt")
    assert run.returncode != 0
    assert "two stages sees whole documents" in run.stderr
