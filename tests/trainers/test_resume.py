"""A run that was stopped and resumed ends where the unbroken one ends, to the last bit."""

import signal
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import pytest
from training_cases import BULK, SMOOTH, TRAINERS, chain_task, log_problem, problem

from structpred.core.result import Result
from structpred.errors import CheckpointError, CheckpointWarning
from structpred.trainers import loop
from structpred.trainers.bcfw import BCFW
from structpred.trainers.cocoa import CoCoA
from structpred.trainers.loop import RunSettings, train
from structpred.trainers.mixing import ParameterMixing
from structpred.trainers.oeg import OnlineEG
from structpred.trainers.running.checkpoints import previous
from structpred.trainers.sgd import SGD

TIMES = ("seconds", "cpu_seconds")
SHARDED = {
    "cocoa": lambda: CoCoA(BCFW(), shards=4, passes=0.7),
    "cocoa-search": lambda: CoCoA(BCFW(averaged=False, gap_sampling=True), shards=4, sigma=1.5),
    "mixing": lambda: ParameterMixing(SGD(), shards=3),
}
SHARDED_SMOOTH = {"cocoa-oeg": lambda: CoCoA(OnlineEG(), shards=3)}
ALL = {**TRAINERS, **SMOOTH, **BULK, **SHARDED, **SHARDED_SMOOTH}


class StopAt:
    """Stands in for the handler of signals: the flag goes up after `after` looks at it, that is, after so many steps."""

    def __init__(self, after: int) -> None:
        self.left = after

    @property
    def raised(self) -> signal.Signals | None:
        self.left -= 1
        return signal.SIGINT if self.left < 0 else None

    def asked(self) -> bool:
        """A look."""
        return self.raised is not None

    def held(self) -> AbstractContextManager[None]:
        """There is no second signal."""
        return nullcontext()

    def __enter__(self) -> "StopAt":
        return self

    def __exit__(self, *args: object) -> None:
        pass


def same(a: Result, b: Result) -> None:
    """Weights, certificate and history (but for the times) are equal to the last bit."""
    assert a.weights.tobytes() == b.weights.tobytes()
    assert (a.certificate, a.stop_reason, a.passes) == (b.certificate, b.stop_reason, b.passes)
    strip = [[{k: v for k, v in row.items() if k not in TIMES} for row in r.history] for r in (a, b)]
    assert strip[0] == strip[1]


def run(trainer: str, settings: dict[str, Any], dtype: Any = np.float32) -> Result:
    """One run on a random chain problem with sample weights."""
    make = log_problem if trainer in SMOOTH or trainer in SHARDED_SMOOTH else problem
    return train(make(chain_task(4, dtype=dtype, weighted=True)), ALL[trainer](), RunSettings(seed=5, **settings))


@pytest.mark.slow
@pytest.mark.parametrize("trainer", ALL)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_interrupted_at_random_steps(trainer, dtype, tmp_path, monkeypatch) -> None:
    """Broken off three times, at steps drawn at random (at the first and at the end of a pass too), and resumed each time."""
    settings = {"max_iter": 7, "check_every": 2}
    unbroken = run(trainer, settings, dtype)
    file, rng = tmp_path / "run.ckpt", np.random.default_rng(0)
    # whose passes have one step each, or one compiled call
    few = trainer == "lbfgs" or trainer in {**BULK, **SHARDED, **SHARDED_SMOOTH} or hasattr(ALL[trainer](), "update_rule")
    for stops in [(0, 1, 2) if few else (1, 15, 30), *(rng.integers(0 if few else 1, 2 if few else 40, 3) for _ in range(3))]:
        for k, stop in enumerate(stops):
            monkeypatch.setattr(loop, "Interrupts", lambda stop=stop: StopAt(int(stop)))
            broken = run(trainer, {**settings, "checkpoint": file, "resume": k > 0}, dtype)
            assert broken.stop_reason == "interrupted"
        monkeypatch.setattr(loop, "Interrupts", lambda: StopAt(10**9))
        same(run(trainer, {**settings, "checkpoint": file, "resume": True}, dtype), unbroken)
        file.unlink()


@pytest.mark.mostly_slow
@pytest.mark.parametrize("trainer", ALL)
def test_longer_runs_go_on(trainer, tmp_path) -> None:
    """Three passes, then on to seven: the weights of seven passes in one go."""
    file = tmp_path / "run.ckpt"
    run(trainer, {"max_iter": 3, "checkpoint": file})
    resumed = run(trainer, {"max_iter": 7, "checkpoint": file, "resume": True})
    straight = run(trainer, {"max_iter": 7})
    assert resumed.weights.tobytes() == straight.weights.tobytes()
    assert resumed.passes == 7
    assert [row["passes"] for row in resumed.history] == [1, 2, 3, 4, 5, 6, 7]
    assert resumed.history[-1]["oracle_calls"] == straight.history[-1]["oracle_calls"]


def test_held_out_scores_survive(tmp_path, monkeypatch) -> None:
    """The best weights so far and the patience left are part of the checkpoint."""
    scores = {"max_iter": 9, "patience": 4, "dev": lambda w: -float(abs(np.abs(w).sum() - 2.0))}
    unbroken = run("bcfw", scores)
    file = tmp_path / "run.ckpt"
    monkeypatch.setattr(loop, "Interrupts", lambda: StopAt(40))
    run("bcfw", {**scores, "checkpoint": file})
    monkeypatch.setattr(loop, "Interrupts", lambda: StopAt(10**9))
    same(run("bcfw", {**scores, "checkpoint": file, "resume": True}), unbroken)


@pytest.mark.parametrize("change", ["data", "dtype", "lam", "trainer", "seed", "weights"])
def test_other_runs_are_refused(change, tmp_path) -> None:
    """A checkpoint of other data, weights of another type, another lam, trainer, seed or sample weights is a CheckpointError."""
    file = tmp_path / "run.ckpt"
    train(problem(chain_task(0), 0.1), TRAINERS["bcfw"](), RunSettings(max_iter=1, checkpoint=file))
    task = {"data": chain_task(1), "dtype": chain_task(0, dtype=np.float32), "weights": chain_task(0, weighted=True)}
    trainer = TRAINERS["bcfw-last" if change == "trainer" else "bcfw"]()
    settings = RunSettings(max_iter=2, checkpoint=file, resume=True, seed=int(change == "seed"))
    with pytest.raises(CheckpointError, match="belongs to another run"):
        train(problem(task.get(change, chain_task(0)), 0.2 if change == "lam" else 0.1), trainer, settings)


def test_more_unused_features_are_another_run(tmp_path) -> None:
    """The same corpus with a longer feature dictionary needs longer weights: its checkpoint does not fit."""
    from dataclasses import replace

    from structpred.features.sequences import SequenceFeatures
    from structpred.objectives.part_losses import Hamming
    from structpred.task.task import Task

    file, tasks = tmp_path / "run.ckpt", []
    base = chain_task(0)
    for n_features in (12, 40):
        data = replace(base.features.data, n_features=n_features)
        tasks.append(Task(SequenceFeatures(data, 3, dtype=np.float64), base.oracle, base.labels, base.shapes, Hamming()))
    train(problem(tasks[0]), TRAINERS["bcfw"](), RunSettings(max_iter=1, checkpoint=file))
    with pytest.raises(CheckpointError, match="belongs to another run"):
        train(problem(tasks[1]), TRAINERS["bcfw"](), RunSettings(max_iter=2, checkpoint=file, resume=True))


def test_damaged_checkpoints_fall_back(tmp_path) -> None:
    """A truncated newest file gives way to the one before, with a warning, and the end is the same; else it is an error."""
    file, settings = tmp_path / "run.ckpt", {"max_iter": 5, "checkpoint": tmp_path / "run.ckpt"}
    straight = run("corrective", {"max_iter": 5})
    for n in (2, 4):
        run("corrective", {**settings, "max_iter": n, "resume": n == 4})
    file.write_bytes(file.read_bytes()[:-20])
    with pytest.warns(CheckpointWarning, match="could not be read"):
        resumed = run("corrective", {**settings, "resume": True})
    assert resumed.weights.tobytes() == straight.weights.tobytes()
    for path in (file, previous(file)):
        path.write_bytes(b"nothing")
    with pytest.raises(CheckpointError):
        run("corrective", {**settings, "resume": True})
