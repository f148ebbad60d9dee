"""Faults at every step of the checkpoint writer: a run that dies or fails there goes on from what is on the disk."""

import errno
import json
import multiprocessing
import os
import re
import shutil
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from interrupted_run import write_result
from training_cases import BULK, SMOOTH, TRAINERS, chain_task, problem

from structpred.core.result import Result
from structpred.errors import CheckpointWarning
from structpred.objectives.log_loss import LogLoss
from structpred.storage import atomic
from structpred.storage.bundles import read_bundle
from structpred.trainers.loop import RunSettings, train
from structpred.trainers.problem import Problem
from structpred.trainers.running.checkpoints import previous

FORK = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs fork")
ALL = [*TRAINERS, *SMOOTH, *BULK]
SAVE = 13  # events of one checkpoint, but for the first, which has no file to move aside


def run(folder: Path, *, trainer: str = "corrective", max_iter: int = 5, resume: bool = False, seconds: float = 0.0) -> Result:
    """A run that writes a checkpoint after each pass."""
    file = folder / "run.ckpt"
    settings = RunSettings(max_iter, check_every=2, seed=2, checkpoint=file, checkpoint_seconds=seconds, resume=resume)
    task = chain_task(3, weighted=True)
    if trainer in SMOOTH:
        return train(Problem(task, LogLoss(), 0.05), SMOOTH[trainer](), settings)
    return train(problem(task), {**TRAINERS, **BULK}[trainer](), settings)


def ending(result: Result, folder: Path) -> Any:
    """All that must not depend on faults."""
    write_result(result, folder / "result.json")
    return json.loads((folder / "result.json").read_text())


@contextmanager
def at_each_event(act: Callable[[int, str], None]) -> Iterator[list[str]]:
    """Call act(number, name) at the writer's steps and before and after each fsync and rename; gives the names."""
    names: list[str] = []
    real = {"step": atomic.step, "fsync": os.fsync, "replace": os.replace}

    def event(name: str) -> None:
        names.append(name)
        act(len(names) - 1, name)

    def around(name: str) -> Callable[..., None]:
        def call(*args: Any) -> None:
            event(f"before {name}")
            real[name](*args)  # type: ignore[operator]
            event(f"after {name}")

        return call

    try:
        atomic.step = event  # type: ignore[assignment]
        os.fsync, os.replace = around("fsync"), around("replace")  # type: ignore[assignment]
        yield names
    finally:
        atomic.step, os.fsync, os.replace = real["step"], real["fsync"], real["replace"]  # type: ignore[assignment]


def dying_run(folder: Path, number: int) -> None:
    """Kills itself at an event."""

    def die(k: int, name: str) -> None:
        if k == number:
            os.kill(os.getpid(), signal.SIGKILL)

    with at_each_event(die):
        run(folder)


def test_the_writer_has_the_steps_that_are_tested(tmp_path: Path) -> None:
    """One checkpoint is: file created, written, synced, the old one moved, the new one renamed, folder synced."""
    (tmp_path / "warm").mkdir()
    run(tmp_path / "warm", max_iter=2, seconds=1e9)  # kernels that are compiled now write files, too
    with at_each_event(lambda k, name: None) as names:
        run(tmp_path, max_iter=2, seconds=1e9)
        first = len(names)
        run(tmp_path, max_iter=4, resume=True, seconds=1e9)
    assert (first, len(names)) == (SAVE - 2, 2 * SAVE - 2)
    assert [name for name in names[first:] if name in atomic.STEPS] == list(atomic.STEPS)
    assert names[-8:-4] == ["before replace", "after replace"] * 2


@pytest.mark.slow
@FORK
@pytest.mark.parametrize("number", range(3 * SAVE - 2))
def test_death_at_every_step(number: int, tmp_path: Path) -> None:
    """Killed at any step of the first three checkpoints: what is there is whole, and resuming ends like the unbroken run."""
    broken, straight = tmp_path / "broken", tmp_path / "straight"
    broken.mkdir()
    straight.mkdir()
    expected = ending(run(straight), straight)
    process = multiprocessing.get_context("fork").Process(target=dying_run, args=(broken, number))
    process.start()
    process.join(1800)
    assert process.exitcode == -signal.SIGKILL
    there = [path for path in (broken / "run.ckpt", previous(broken / "run.ckpt")) if path.exists()]
    assert there or number < SAVE - 2, "nothing is left of a run that had written a checkpoint"
    for path in there:
        read_bundle(path, kind="checkpoint")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CheckpointWarning)
        assert ending(run(broken, resume=bool(there)), broken) == expected
    assert (
        sorted(path.name for path in broken.iterdir() if "result" not in path.name) == ["run.ckpt", "run.ckpt.previous"]
        or not there
    )


@pytest.mark.mostly_slow
@pytest.mark.parametrize("number", range(SAVE - 2, 2 * SAVE - 2))
def test_failure_at_every_step(number: int, tmp_path: Path) -> None:
    """Where a step of the second checkpoint fails, a warning says so, the run ends as ever, and the next checkpoint is good."""
    broken, straight = tmp_path / "broken", tmp_path / "straight"
    broken.mkdir()
    straight.mkdir()
    expected = ending(run(straight), straight)

    def fail(k: int, name: str) -> None:
        if k == number:
            raise OSError(errno.ENOSPC, "no space left")

    with at_each_event(fail), pytest.warns(CheckpointWarning, match="could not be .*training continues"):
        assert ending(run(broken), broken) == expected
    assert ending(run(broken, resume=True), broken) == expected


@pytest.mark.mostly_slow
@pytest.mark.parametrize("number", range(SAVE - 2, 2 * SAVE - 2))
def test_what_a_failed_checkpoint_leaves(number: int, tmp_path: Path) -> None:
    """Where every write fails from some step of the second checkpoint on, what is there resumes to the same end."""
    broken, straight = tmp_path / "broken", tmp_path / "straight"
    broken.mkdir()
    straight.mkdir()
    expected = ending(run(straight), straight)

    def fail(k: int, name: str) -> None:
        if k >= number:
            raise OSError(errno.ENOSPC, "no space left")

    with at_each_event(fail), pytest.warns(CheckpointWarning, match="could not be .*training continues"):
        assert ending(run(broken), broken) == expected
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CheckpointWarning)
        assert ending(run(broken, resume=True), broken) == expected


@pytest.mark.mostly_slow
@pytest.mark.parametrize("trainer", ALL)
def test_half_of_the_newest_checkpoint(trainer: str, tmp_path: Path) -> None:
    """A newest checkpoint cut in half gives way to the one before with a warning, for every trainer; the end is the same."""
    expected = ending(run(tmp_path, trainer=trainer), tmp_path)
    run(tmp_path, trainer=trainer, max_iter=3)
    newest = tmp_path / "run.ckpt"
    newest.write_bytes(newest.read_bytes()[: newest.stat().st_size // 2])
    with pytest.warns(CheckpointWarning, match="the checkpoint before it"):
        assert ending(run(tmp_path, trainer=trainer, resume=True), tmp_path) == expected


@pytest.mark.slow
@pytest.mark.parametrize("trainer", ALL)
def test_other_training_between_save_and_resume(trainer: str, tmp_path: Path) -> None:
    """A second model trained between save and resume, with every kind of trainer, changes nothing."""
    expected = ending(run(tmp_path, trainer=trainer), tmp_path)
    run(tmp_path, trainer=trainer, max_iter=2)
    train(problem(chain_task(9)), TRAINERS["corrective"](), RunSettings(max_iter=3, seed=8))
    train(Problem(chain_task(9), LogLoss(), 0.1), SMOOTH["oeg"](), RunSettings(max_iter=2, seed=8))
    assert ending(run(tmp_path, trainer=trainer, resume=True), tmp_path) == expected


def run_out_of_space(folder: Path, limit: int | None, expected: Any) -> None:
    """In a process of its own: go on training; exit status 7 if it ended as expected, with warnings that say why."""
    if limit is not None:
        import resource

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        result = run(folder, resume=True)
    if limit is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    same = ending(result, folder.parent) == expected
    told = [re.search("disk is full|larger than the system allows", str(warning.message)) for warning in said]
    os._exit(7 if same and told and all(told) else 8)


def in_child(folder: Path, limit: int | None, expected: Any) -> int | None:
    """The exit status of run_out_of_space."""
    process = multiprocessing.get_context("fork").Process(target=run_out_of_space, args=(folder, limit, expected))
    process.start()
    process.join(1800)
    return process.exitcode


@FORK
def test_a_limit_on_file_size_loses_nothing(tmp_path: Path) -> None:
    """Where no file may grow beyond a limit, training warns and ends as ever; the earlier checkpoint is kept and resumes."""
    straight, small = tmp_path / "straight", tmp_path / "small"
    straight.mkdir()
    small.mkdir()
    expected = ending(run(straight), straight)
    run(small, max_iter=2)
    before = (small / "run.ckpt").read_bytes()
    assert in_child(small, len(before) // 2, expected) == 7
    assert (small / "run.ckpt").read_bytes() == before
    assert sorted(path.name for path in small.iterdir()) == ["run.ckpt", "run.ckpt.previous"]
    assert ending(run(small, resume=True), straight) == expected


def fill(path: Path) -> None:
    """Write until the disk is full."""
    with path.open("wb", buffering=0) as file:
        try:
            while file.write(b"x" * 1024):
                pass
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise


@FORK
def test_a_small_full_disk_loses_nothing(tmp_path: Path) -> None:
    """On a file system that fills up, training warns and ends as ever; with room again it goes on from where it was."""
    straight, small = tmp_path / "straight", tmp_path / "small"
    straight.mkdir()
    small.mkdir()
    mount = shutil.which("mount")
    options = ["-t", "tmpfs", "-o", "size=2m", "tmpfs", str(small)]
    if mount is None or subprocess.run([mount, *options], capture_output=True, check=False).returncode != 0:
        pytest.skip("a small file system cannot be mounted here; the limit on file size is tested instead")
    try:
        expected = ending(run(straight), straight)
        run(small, max_iter=2)
        before = (small / "run.ckpt").read_bytes()
        filler = small / "filler"
        fill(filler)
        assert in_child(small, None, expected) == 7
        assert (small / "run.ckpt").read_bytes() == before
        assert not list(small.glob(".*.tmp"))
        filler.unlink()
        assert ending(run(small, resume=True), straight) == expected
    finally:
        subprocess.run(["umount", str(small)], check=False)
