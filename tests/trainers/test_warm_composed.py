"""Warm starts of compositions between passes: fewer calls, true certificates, and the same bits after any interruption."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_resume import StopAt, same

from structpred.core.result import Result
from structpred.errors import CheckpointError
from structpred.features.parts import PartFeatures
from structpred.models import StructuredPredictor
from structpred.objectives.margin import MarginRescaling
from structpred.objectives.part_losses import Hamming
from structpred.oracles.agreement import Agreement
from structpred.oracles.chain import ChainOracle
from structpred.oracles.composed import Composed
from structpred.oracles.composition.layout import Member
from structpred.storage.bundles import read_bundle, write_bundle
from structpred.task import inference
from structpred.task.task import Task
from structpred.trainers import loop
from structpred.trainers.bcfw import BCFW
from structpred.trainers.loop import RunSettings, train
from structpred.trainers.mira import MIRA
from structpred.trainers.n_slack import NSlackCuttingPlane
from structpred.trainers.one_slack import OneSlackCuttingPlane
from structpred.trainers.problem import Problem
from structpred.trainers.running.starts import Starts
from structpred.trainers.sgd import SGD

TRAINERS: dict[str, Any] = {
    "n_slack": NSlackCuttingPlane, "mira": MIRA, "sgd": SGD, "bcfw": BCFW, "one_slack": OneSlackCuttingPlane
}  # fmt: skip
SHAPES = [(5, 3, ((0, 2), (2, 4))), (4, 3, ((0, 3), (1, 3))), (6, 3, ((0, 2), (1, 3), (2, 5)))] * 2


class Counting(ChainOracle):
    """Counts the instances that it answers."""

    calls = 0

    def argmax_batch(self, scores: Any, offsets: Any, shapes: Any) -> Any:
        Counting.calls += len(shapes)
        return super().argmax_batch(scores, offsets, shapes)


class SkipChain(Composed):
    """shape = (T, L, links): a chain, and what it brings that linked positions have one label."""

    def __init__(self, warm: bool = False, max_nodes: int | None = 1000) -> None:
        super().__init__([], warm=warm, max_nodes=max_nodes, label_grid=lambda shape: shape[:2], example_shapes=SHAPES[:3])
        self.chain, self.link = Counting(), Agreement()

    def members(self, shape: Any) -> list[Member]:
        t, k, links = shape
        unary = np.arange(t * k).reshape(t, k)
        both = [Member(self.link, (k,), np.concatenate((unary[i], unary[j], t * k + k * k + e * k + np.arange(k))))
                for e, (i, j) in enumerate(links)]  # fmt: skip
        return [Member(self.chain, (t, k), np.arange(t * k + k * k)), *both]


def rows(seed: int = 0) -> tuple[list[Any], list[Any]]:
    """Features of parts, and the outputs that a linear model with noise finds best."""
    rng, oracle = np.random.default_rng(seed), SkipChain()
    X = [rng.normal(size=(oracle.n_parts(shape), 6)) for shape in SHAPES]
    w = rng.normal(size=6)
    return X, [oracle.argmax(x @ w + rng.normal(size=len(x)), shape) for x, shape in zip(X, SHAPES, strict=True)]


def problem(warm: bool, max_nodes: int | None = 1000, n_jobs: int = 1) -> Problem:
    """The margin-rescaled problem of that data."""
    X, y = rows()
    task = Task(PartFeatures(X), SkipChain(warm, max_nodes), y, SHAPES, Hamming(), n_jobs=n_jobs)
    return Problem(task, MarginRescaling(), 2.0)


def run(trainer: str, warm: bool = True, max_nodes: int | None = 1000, n_jobs: int = 1, **settings: Any) -> Result:
    """A run of at most five passes."""
    chosen = RunSettings(**{"max_iter": 5, "seed": 3, **settings})
    return train(problem(warm, max_nodes, n_jobs), TRAINERS[trainer](), chosen)


@pytest.mark.mostly_slow
@pytest.mark.parametrize("trainer", TRAINERS)
@pytest.mark.parametrize("max_nodes", [None, 1000])
def test_stopped_at_any_step_and_resumed(trainer: str, max_nodes: int | None, tmp_path: Path, monkeypatch: Any) -> None:
    """Broken off in the first pass, between passes and later: weights, history and certificate of one run, bit by bit."""
    settings, file = {"max_nodes": max_nodes, "check_every": 2}, tmp_path / "run.ckpt"
    unbroken = run(trainer, **settings)
    for k, stop in enumerate((3, 11, 8)):
        monkeypatch.setattr(loop, "Interrupts", lambda stop=stop: StopAt(stop))
        assert run(trainer, **settings, checkpoint=file, resume=k > 0).stop_reason == "interrupted"
    monkeypatch.setattr(loop, "Interrupts", lambda: StopAt(10**9))
    same(run(trainer, **settings, checkpoint=file, resume=True), unbroken)


@pytest.mark.mostly_slow
@pytest.mark.parametrize("trainer", TRAINERS)
def test_a_longer_run_has_the_bits_of_one(trainer: str, tmp_path: Path) -> None:
    """Three passes with an objective at their end, then on to five: objectives leave no trace; also with few bytes."""
    for max_bytes in (1 << 30, 1000):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(loop, "Starts", partial(Starts, max_bytes=max_bytes))
            straight = run(trainer, max_nodes=None)
            file = tmp_path / f"{max_bytes}.ckpt"
            run(trainer, max_nodes=None, max_iter=3, checkpoint=file)
            states = read_bundle(file, kind="checkpoint").arrays["state.starts of inference.states"]
            assert states.dtype == np.float32
            assert 0 < states.nbytes <= max_bytes
            resumed = run(trainer, max_nodes=None, checkpoint=file, resume=True, check_every=1)
            assert resumed.weights.tobytes() == straight.weights.tobytes()


@pytest.mark.parametrize("trainer", ["one_slack", "n_slack"])
def test_threads_change_nothing(trainer: str, monkeypatch: Any) -> None:
    """One thread, two threads with many blocks, and few bytes: the same bits."""
    monkeypatch.setattr(inference, "TINY", 40)
    for max_bytes in (1 << 30, 3000):
        monkeypatch.setattr(loop, "Starts", partial(Starts, max_bytes=max_bytes))
        same(*(run(trainer, max_nodes=None, n_jobs=n_jobs) for n_jobs in (1, 2)))


@pytest.mark.mostly_slow
@pytest.mark.parametrize("trainer", TRAINERS)
def test_certificates_are_true(trainer: str) -> None:
    """Every row has a gap >= 0, with and without a search; n_slack and bcfw end at one certified optimum, warm and cold."""
    best = run("n_slack", False, max_iter=40, tol=1e-6).certificate
    for max_nodes in (1000, None):
        for row in run(trainer, True, max_nodes, check_every=1).history:
            assert row["primal"] >= best.dual
            assert row["dual"] is None or row["dual"] <= min(row["primal"], best.primal)
    if trainer in ("n_slack", "bcfw"):
        tol = 1e-6 if trainer == "n_slack" else 0.01
        found = run(trainer, max_iter=60, tol=tol)
        assert (found.stop_reason, found.certificate.proven) == ("tol", True)
        assert found.certificate.primal == pytest.approx(best.primal, rel=tol)


@pytest.mark.parametrize("trainer", ["bcfw", "n_slack"])
def test_passes_take_fewer_calls(trainer: str) -> None:
    """Calls of the chain in all steps: a fifth fewer, of which the first passes save none."""
    spent = []
    for warm in (False, True):
        given = problem(warm, None)
        Counting.calls = 0
        train(given, TRAINERS[trainer](), RunSettings(max_iter=30, check_every=100))
        spent.append(Counting.calls)
    assert spent[1] < 0.8 * spent[0], spent


def test_predictions_know_nothing_of_training() -> None:
    """A warm model predicts what a cold composition does at its weights; tasks are cold before and after a run."""
    X, y = rows()
    model = StructuredPredictor(SkipChain(True, None), trainer="mira", max_iter=3, random_state=0, check_components=False)
    model.fit(X, y, SHAPES)
    others, _ = rows(1)
    cold = SkipChain(False, None)
    wanted = [cold.argmax(x @ model.coef_, shape).tolist() for x, shape in zip(others, SHAPES, strict=True)]
    assert [found.tolist() for found in model.predict(others, SHAPES)] == wanted
    given, w = problem(True, None), model.coef_.astype(np.float64)
    before = given.task.violations(w, 1.0)
    train(given, MIRA(), RunSettings(max_iter=2))
    assert given.task.violations(w, 1.0).tobytes() == before.tobytes()
    assert given.task.take(range(4)).violations(w, 1.0).tobytes() == before[:4].tobytes()


def test_bent_states_are_refused(tmp_path: Path) -> None:
    """Checkpoints whose states are of another type, not finite or missing; and those of cold runs."""
    file = tmp_path / "run.ckpt"
    run("mira", max_iter=2, checkpoint=file)
    whole = read_bundle(file, kind="checkpoint")
    name = "state.starts of inference."
    for key, bent in (("rows", -1), ("states", np.nan), ("ends", 0.5), ("states", None)):
        arrays = dict(whole.arrays)
        own = arrays.pop(name + key)
        if bent is not None:
            arrays[name + key] = np.where(np.arange(len(own)) == 0, bent, own).astype(type(bent) if bent == 0.5 else own.dtype)
        whole.arrays = {**arrays}
        write_bundle(file, whole, kind="checkpoint")
        with pytest.raises(CheckpointError, match=f"{key}: "):
            run("mira", checkpoint=file, resume=True)
        whole.arrays = {**arrays, name + key: own}
    with pytest.raises(CheckpointError, match="another run"):
        run("mira", warm=False, checkpoint=file, resume=True)
