"""Checkpoints: written by time, whole after every kill, refused for other runs, and left tidy."""

import errno
import itertools
import json
import multiprocessing
import shutil
import signal
import sys
import time
import types
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from interrupted_run import write_result
from training_cases import TRAINERS, chain_task, problem

from structpred.errors import CheckpointError, CheckpointWarning, ConvergenceError, DataError, StorageError
from structpred.storage import atomic
from structpred.storage.bundles import Bundle, read_bundle, write_bundle
from structpred.trainers import loop
from structpred.trainers.loop import RunSettings, train
from structpred.trainers.running.checkpoints import load_checkpoint, previous, save_checkpoint


class Clock:
    """Time that passes by one second at each look."""

    def __init__(self) -> None:
        self.now = 0.0

    def perf_counter(self) -> float:
        self.now += 1.0
        return self.now

    process_time = perf_counter


def test_checkpoints_are_written_by_time_and_each_can_be_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkpoint is written every `checkpoint_seconds`, in the middle of passes too; each leads to the same end."""
    clock, saved = Clock(), []
    monkeypatch.setattr(loop, "time", types.SimpleNamespace(perf_counter=clock.perf_counter, process_time=clock.process_time))

    def save(path: Path, progress: Any) -> None:
        save_checkpoint(path, progress)
        saved.append((clock.now, progress.passes, progress.position))
        shutil.copy(path, tmp_path / f"{len(saved)}.ckpt")

    monkeypatch.setattr(loop, "save_checkpoint", save)
    file, made = tmp_path / "run.ckpt", problem(chain_task(n=200))
    unbroken = train(made, TRAINERS["bcfw"](), RunSettings(max_iter=12, checkpoint=file, checkpoint_seconds=15.0))
    kept = list(saved)
    assert len(kept) > 4
    assert all(after[0] - before[0] >= 15 for before, after in itertools.pairwise(kept[:-1]))
    assert any(0 < position < 200 for _, _, position in kept)
    assert kept[-1][1:] == (12, 0)
    for k in range(1, len(kept) + 1):
        shutil.copy(tmp_path / f"{k}.ckpt", file)
        again = train(made, TRAINERS["bcfw"](), RunSettings(max_iter=12, checkpoint=file, resume=True))
        assert again.weights.tobytes() == unbroken.weights.tobytes()
        assert again.certificate == unbroken.certificate
        assert [row["primal"] for row in again.history] == [row["primal"] for row in unbroken.history]


def test_no_checkpoint_is_written_unasked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a file nothing is written; with one, short runs write it once, at the end."""
    calls: list[Any] = []
    monkeypatch.setattr(loop, "save_checkpoint", lambda path, progress: calls.append(progress.passes))
    train(problem(chain_task()), TRAINERS["sgd"](), RunSettings(max_iter=3))
    assert calls == []
    train(problem(chain_task()), TRAINERS["sgd"](), RunSettings(max_iter=3, checkpoint=tmp_path / "run.ckpt"))
    assert calls == [3]


def test_resuming_a_finished_run_changes_nothing(tmp_path: Path) -> None:
    """A run that ended, by passes, tolerance or held-out data, and is started again to resume, trains no further."""
    for ending in ({"max_iter": 4}, {"max_iter": 500, "tol": 0.2}, {"max_iter": 50, "patience": 2, "dev": lambda w: 1.0}):
        settings: dict[str, Any] = {"checkpoint": tmp_path / "run.ckpt", "check_every": 1, **ending}
        first = train(problem(chain_task()), TRAINERS["bcfw"](), RunSettings(**settings))
        second = train(problem(chain_task()), TRAINERS["bcfw"](), RunSettings(resume=True, **settings))
        assert second.weights.tobytes() == first.weights.tobytes()
        assert (second.certificate, second.stop_reason, second.passes) == (first.certificate, first.stop_reason, first.passes)
        assert list(second.history) == list(first.history)


def run_to(path: Path, max_iter: int, *, resume: bool = False, seed: int = 0) -> Any:
    """A run on the usual problem."""
    return train(
        problem(chain_task()), TRAINERS["bcfw"](), RunSettings(max_iter=max_iter, checkpoint=path, resume=resume, seed=seed)
    )


def test_a_truncated_checkpoint_gives_way_to_the_one_before(tmp_path: Path) -> None:
    """A newest file cut anywhere is passed over with a CheckpointWarning that names it, and the run ends the same."""
    file = tmp_path / "run.ckpt"
    straight = run_to(tmp_path / "other.ckpt", 6)
    run_to(file, 2)
    run_to(file, 4, resume=True)
    whole, before = file.read_bytes(), previous(file).read_bytes()
    for length in (0, 10, len(whole) // 2, len(whole) - 1):
        file.write_bytes(whole[:length])
        previous(file).write_bytes(before)
        with pytest.warns(CheckpointWarning, match=r"run\.ckpt could not be read .*the checkpoint before it"):
            resumed = run_to(file, 6, resume=True)
        assert resumed.weights.tobytes() == straight.weights.tobytes()


def test_a_missing_newest_checkpoint_gives_way_too(tmp_path: Path) -> None:
    """A crash between the two renames leaves only the previous file: it is used, with a warning."""
    file = tmp_path / "run.ckpt"
    straight = run_to(tmp_path / "other.ckpt", 6)
    run_to(file, 2)
    file.rename(previous(file))
    with pytest.warns(CheckpointWarning):
        assert run_to(file, 6, resume=True).weights.tobytes() == straight.weights.tobytes()


def test_nothing_to_resume_is_an_error(tmp_path: Path) -> None:
    """Without any checkpoint, resuming is a CheckpointError that names the file: no run starts anew unasked."""
    with pytest.raises(CheckpointError, match=r"none\.ckpt: cannot resume"):
        run_to(tmp_path / "none.ckpt", 3, resume=True)


def test_other_settings_are_refused(tmp_path: Path) -> None:
    """A checkpoint of another seed is not taken up, and stays as it is."""
    file = tmp_path / "run.ckpt"
    run_to(file, 2)
    before = file.read_bytes()
    with pytest.raises(CheckpointError, match=r"run\.ckpt belongs to another run: the data, the settings or the version"):
        run_to(file, 4, resume=True, seed=1)
    assert file.read_bytes() == before


def test_a_model_file_is_no_checkpoint(tmp_path: Path) -> None:
    """A file of another kind is a CheckpointError that says what it is."""
    write_bundle(tmp_path / "m.spz", Bundle({}), kind="model")
    with pytest.raises(CheckpointError, match="'model' file, expected a 'checkpoint' file"):
        run_to(tmp_path / "m.spz", 3, resume=True)


@pytest.mark.parametrize("resume", [False, True])
def test_leftovers_of_killed_writers_are_removed(resume: bool, tmp_path: Path) -> None:
    """A start, with or without resume, clears away what killed writers left next to the checkpoint, and nothing else."""
    file = tmp_path / "run.ckpt"
    run_to(file, 2)
    for name in (".run.ckpt.0123abcd.tmp", ".run.ckpt.lock", ".other.0123abcd.tmp"):
        (tmp_path / name).write_bytes(b"half")
    run_to(file, 3, resume=resume)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".other.0123abcd.tmp", "run.ckpt", "run.ckpt.previous"]


@pytest.mark.parametrize("where", atomic.STEPS[:3])
def test_a_full_disk_keeps_the_run_and_the_last_checkpoint(where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If no checkpoint can be written, a warning says so, the run ends as ever, and the one before can still be resumed."""
    import errno

    file = tmp_path / "run.ckpt"
    straight = run_to(tmp_path / "other.ckpt", 6)
    run_to(file, 2)

    def full(name: str) -> None:
        if name == where:
            raise OSError(errno.ENOSPC, "full")

    with monkeypatch.context() as patch:
        patch.setattr(atomic, "step", full)
        with pytest.warns(CheckpointWarning, match=r"run\.ckpt: could not be written: the disk is full.*training continues"):
            assert run_to(file, 6, resume=True).weights.tobytes() == straight.weights.tobytes()
    assert run_to(file, 6, resume=True).weights.tobytes() == straight.weights.tobytes()


def test_a_folder_that_goes_away_does_not_end_the_run(tmp_path: Path) -> None:
    """A folder removed in the middle of training is told of, at every checkpoint that is due, and the result is returned."""
    folder = tmp_path / "runs"
    folder.mkdir()
    straight = run_to(tmp_path / "other.ckpt", 6)

    def remove(row: Any) -> None:
        if row["passes"] == 3:
            shutil.rmtree(folder)

    settings = RunSettings(max_iter=6, checkpoint=folder / "run.ckpt", checkpoint_seconds=0.0, callbacks=[remove])
    with pytest.warns(CheckpointWarning, match="the folder does not exist") as said:
        result = train(problem(chain_task()), TRAINERS["bcfw"](), settings)
    assert result.weights.tobytes() == straight.weights.tobytes()
    assert len([one for one in said if one.category is CheckpointWarning]) > 1


def test_a_checkpoint_that_can_never_be_written_is_an_error_at_the_start(tmp_path: Path) -> None:
    """A folder that is not there, or a folder in the place of the file, is an error before the first step."""
    steps: list[Any] = []
    (tmp_path / "folder.ckpt").mkdir()
    for file, error, match in (
        (tmp_path / "nowhere" / "run.ckpt", StorageError, r"nowhere.run\.ckpt: cannot be written: the folder does not exist"),
        (tmp_path / "folder.ckpt", DataError, "it is a folder"),
    ):
        with pytest.raises(error, match=match):
            train(problem(chain_task()), TRAINERS["bcfw"](), RunSettings(checkpoint=file, callbacks=[steps.append]))
    assert steps == []


def test_a_second_run_is_told_of_the_first(tmp_path: Path) -> None:
    """While one run writes a checkpoint, another with the same file is a CheckpointError at its start; afterwards it is not."""
    file, told = tmp_path / "run.ckpt", []
    straight = run_to(tmp_path / "other.ckpt", 4)

    def second(row: Any) -> None:
        for resume in (False, True):
            with pytest.raises(CheckpointError, match=r"run\.ckpt: another run is writing this checkpoint"):
                run_to(file, 4, resume=resume)
            told.append(row["passes"])

    settings = RunSettings(max_iter=4, checkpoint=file, checkpoint_seconds=0.0, callbacks=[second])
    first = train(problem(chain_task()), TRAINERS["bcfw"](), settings)
    assert (told, first.weights.tobytes()) == ([1, 1, 2, 2, 3, 3, 4, 4], straight.weights.tobytes())
    assert run_to(file, 4, resume=True).weights.tobytes() == straight.weights.tobytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other.ckpt", "run.ckpt", "run.ckpt.previous"]


def no_locks(handle: int, operation: int) -> None:
    """What a file system without locks answers."""
    raise OSError(errno.ENOLCK, "No locks available")


def test_without_locks_two_runs_do_not_break_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the file system has no locks, runs that write one checkpoint at the same time are warned, and leave a whole file."""
    monkeypatch.setattr("fcntl.flock", no_locks)
    file, inner = tmp_path / "run.ckpt", []
    settings = {"max_iter": 4, "checkpoint": file, "checkpoint_seconds": 0.0}

    def second(row: Any) -> None:
        inner.append(train(problem(chain_task()), TRAINERS["bcfw"](), RunSettings(**settings)))

    with pytest.warns(CheckpointWarning, match=r"run\.ckpt\.lock: this file system has no locks"):
        outer = train(problem(chain_task()), TRAINERS["bcfw"](), RunSettings(**settings, callbacks=[second]))
    monkeypatch.undo()
    assert {result.weights.tobytes() for result in (*inner, outer)} == {run_to(file, 4, resume=True).weights.tobytes()}


def test_a_python_without_locks_writes_no_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where Python has neither of the modules with locks, a run with a checkpoint is refused at its start, and leaves nothing."""
    for name in ("fcntl", "msvcrt"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(StorageError, match=r"run\.ckpt: cannot be written: .*has neither fcntl nor msvcrt"):
        run_to(tmp_path / "run.ckpt", 1)
    assert list(tmp_path.iterdir()) == []


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    """A checkpoint that is a symbolic link is written where it points to, the one before next to that."""
    (tmp_path / "there").mkdir()
    link = tmp_path / "run.ckpt"
    link.symlink_to(tmp_path / "there" / "real.ckpt")
    run_to(link, 2)
    run_to(link, 4, resume=True)
    assert link.is_symlink()
    assert sorted(path.name for path in (tmp_path / "there").iterdir()) == ["real.ckpt", "real.ckpt.previous"]


@pytest.mark.parametrize(("trainer", "lam"), [("sgd", 1e-302), ("bcfw", 1e-302), ("perceptron", 0.1)])
def test_weights_that_are_no_longer_finite_stop_training(trainer: str, lam: float, tmp_path: Path) -> None:
    """A C, or features, so large that weights overflow are an error that names C; checkpoints that are left are finite."""
    file = tmp_path / "run.ckpt"
    made = problem(chain_task(dtype=np.float32), lam)
    if trainer == "perceptron":
        made.task.features.data.values[:] *= 1e38
    settings = RunSettings(max_iter=4, checkpoint=file, checkpoint_seconds=0.0)
    with np.errstate(all="ignore"), pytest.raises(ConvergenceError, match=r"no longer finite .*C is probably too large"):
        train(made, TRAINERS[trainer](), settings)
    for path in (file, previous(file)):
        assert not path.exists() or np.isfinite(read_bundle(path, kind="checkpoint").arrays["state.weights.v"]).all()


@pytest.mark.parametrize(("trainer", "lam"), [("sgd", 1e-302), ("perceptron", 0.1)])
def test_weights_are_looked_at_without_a_checkpoint_too(trainer: str, lam: float) -> None:
    """Weights that overflow are the same error in a run that writes no checkpoint, whether or not there is an objective."""
    made = problem(chain_task(dtype=np.float32), lam)
    if trainer == "perceptron":
        made.task.features.data.values[:] *= 1e38
    with np.errstate(all="ignore"), pytest.raises(ConvergenceError, match=r"no longer finite .*C is probably too large"):
        train(made, TRAINERS[trainer](), RunSettings(max_iter=2))


@pytest.mark.mostly_slow
@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("position", value) for value in (10**9, -1, "x", None, 0.5, True)),
        *(("passes", value) for value in (-5, "x", 2**1000)),
        *(("changed", 1), ("oracle_calls", None), ("seconds", "x"), ("best_dev", 1.0), ("stale", -1)),
        *(("history", value) for value in ("x", [1], [{}], [{"passes": 1}])),
        *(("rng", value) for value in (None, {}, {"kind": "MT19937", "state": {}}, {"kind": "PCG64", "state": "x"})),
    ],
)
def test_numbers_that_no_run_wrote_are_refused(name: str, value: Any, tmp_path: Path) -> None:
    """A number of the header that no run can have written, with right checksums, is a CheckpointError that names it."""
    file = tmp_path / "run.ckpt"
    run_to(file, 2)
    bundle = read_bundle(file, kind="checkpoint")
    for header in ({**bundle.header, name: value}, {key: item for key, item in bundle.header.items() if key != name}):
        write_bundle(file, Bundle(header, bundle.arrays), kind="checkpoint")
        what = "best weights" if name == "best_dev" and name in header else name
        with pytest.raises(CheckpointError, match=rf"run\.ckpt: cannot resume: .*{what}"):
            run_to(file, 4, resume=True)


def test_random_numbers_of_others_have_no_part(tmp_path: Path) -> None:
    """Training another model between save and resume changes nothing."""
    file = tmp_path / "run.ckpt"
    straight = run_to(tmp_path / "other.ckpt", 6)
    run_to(file, 3)
    train(problem(chain_task(9)), TRAINERS["bcfw"](), RunSettings(max_iter=5, seed=8))
    np.random.seed(0)  # noqa: NPY002 - the global state is what must not matter
    assert run_to(file, 6, resume=True).weights.tobytes() == straight.weights.tobytes()


def test_the_generators_state_survives(tmp_path: Path) -> None:
    """The 128-bit state of the generator comes back as the same whole numbers."""
    file = tmp_path / "run.ckpt"
    run_to(file, 2)
    header = read_bundle(file, kind="checkpoint").header
    state = load_checkpoint(file, header["fingerprint"]).rng
    generator = np.random.Generator(np.random.PCG64(0))
    for _ in range(2):
        generator.permutation(15)
    assert state == generator.bit_generator.state


def killed_run(trainer: str, folder: Path, resume: bool) -> None:
    """What the killed process does: train with a checkpoint at every look at the clock, then write the result."""
    warnings.simplefilter("ignore", CheckpointWarning)
    settings = RunSettings(
        max_iter=150, check_every=20, seed=1, checkpoint=folder / "run.ckpt", checkpoint_seconds=0.0, resume=resume
    )
    write_result(train(problem(chain_task(n=30)), TRAINERS[trainer](), settings), folder / "result.json")


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs fork")
@pytest.mark.parametrize("trainer", ["perceptron", "sgd", "bcfw", "corrective"])
def test_killed_at_random_moments(trainer: str, tmp_path: Path) -> None:
    """Killed (SIGKILL) twenty times at random moments, between and inside writes, a run resumed each time ends the same."""
    straight, kills = tmp_path / "straight", 0
    straight.mkdir()
    start = time.perf_counter()
    killed_run(trainer, straight, resume=False)
    seconds = time.perf_counter() - start
    fork, rng = multiprocessing.get_context("fork"), np.random.default_rng(7)
    while kills < 20:  # mostly one round; another where a run came to its end before the twentieth kill
        broken = tmp_path / f"broken after {kills} kills"
        broken.mkdir(exist_ok=True)
        process = None
        while process is None or process.exitcode != 0:
            resume = any(path.exists() for path in (broken / "run.ckpt", previous(broken / "run.ckpt")))
            process = fork.Process(target=killed_run, args=(trainer, broken, resume))
            process.start()
            process.join(rng.uniform(0.0, seconds / 10) if kills < 20 else 1800)
            kills += process.is_alive()
            process.kill()
            process.join()
            assert process.exitcode in (0, -signal.SIGKILL)
        assert json.loads((broken / "result.json").read_text()) == json.loads((straight / "result.json").read_text())
        assert sorted(path.name for path in broken.iterdir()) == ["result.json", "run.ckpt", "run.ckpt.previous"]
