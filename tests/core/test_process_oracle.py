"""An oracle asked in several processes: the same answers and errors, and no process is left behind."""

import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from worker_oracles import Bounded, Interval, Unreadable

from structpred.contracts.checks import check_oracle
from structpred.core.packing import argmax_batch
from structpred.errors import InfeasibleError, OracleError, ParameterError, StructpredError
from structpred.features.parts import PartFeatures
from structpred.layers import PerturbedLoss, Scores, SPOPlus
from structpred.objectives.part_losses import ExtraParts
from structpred.task.process_oracle import ProcessOracle
from structpred.task.task import Task

SHAPES = [(1,), (6,), (3,), (9,), (5,)] * 4
ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture(scope="module")
def shared() -> Iterator[ProcessOracle]:
    """One oracle with two processes."""
    oracle = ProcessOracle(Interval(), n_jobs=2)
    yield oracle
    oracle.close()


def scores_of(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """(flat scores, offsets) of the shapes."""
    offsets = np.cumsum([0, *(n for (n,) in SHAPES)])
    return np.random.default_rng(seed).normal(size=int(offsets[-1])), offsets


def started(before: set[Any]) -> list[Any]:
    """The child processes that were not there before."""
    return [child for child in multiprocessing.active_children() if child not in before]


def test_answers_do_not_depend_on_the_number_of_processes(shared: ProcessOracle) -> None:
    """Labels, marginals and losses are those of the plain oracle, to the last bit; processes start with the first batch."""
    (theta, offsets), before = scores_of(), {*multiprocessing.active_children()}
    ProcessOracle(Interval(), n_jobs=3)
    assert not started(before)
    plain = argmax_batch(Interval(), theta, offsets, SHAPES)
    for oracle in (ProcessOracle(Interval(), n_jobs=1), shared):
        for found, wanted in zip(argmax_batch(oracle, theta, offsets, SHAPES), plain, strict=True):
            assert np.array_equal(found, wanted)
    assert len(started(before)) == 2
    batch, own = Scores.of(shared, SHAPES), Scores.of(Interval(), SHAPES)
    for found, wanted in zip(batch.marginals(theta), own.marginals(theta), strict=True):
        assert np.array_equal(found, wanted)
    truth = scores_of(1)[0]
    for kind in (SPOPlus, PerturbedLoss):
        found, wanted = (kind(one.oracle)(one, theta, true_scores=truth) for one in (batch, own))
        assert np.array_equal(found.values, wanted.values)
        assert np.array_equal(found.gradient, wanted.gradient)


def test_it_is_an_oracle_with_what_the_inner_one_has() -> None:
    """The contract holds; optional methods are there if the oracle has them, bounds in batches too; copies are whole."""
    report = check_oracle(ProcessOracle(Interval(), n_jobs=1), n_random=3)
    assert report.checked["marginals of a batch different from loop"]
    bounded = pickle.loads(pickle.dumps(ProcessOracle(Bounded(), n_jobs=1)))
    assert not bounded.exact
    found = Scores.of(bounded, [(2,), (3,)]).best(np.array([1.0, -1.0, 2.0, -1.0, 2.0]))
    assert found.gaps.tolist() == [0.0, 1.0]
    assert not hasattr(bounded, "kbest")
    prints = {
        Task(PartFeatures([np.eye(2)]), ProcessOracle(Interval(), n_jobs=n), [[0]], [(2,)], ExtraParts()).fingerprint()
        for n in (1, 2)
    }
    assert len(prints) == 1


def test_errors_name_the_sample(shared: ProcessOracle) -> None:
    """What the oracle raises comes back with the number of the first sample that fails, and processes work on."""
    theta, offsets = scores_of()
    broken = theta.copy()
    broken[offsets[[17, 9]]] = 1e21, 1e21
    with pytest.raises(OracleError, match=r"^sample 9: Interval\.argmax raised RuntimeError: the solver gave up"):
        argmax_batch(shared, broken, offsets, SHAPES)
    broken[offsets[9]] = 1e26
    with pytest.raises(InfeasibleError, match=r"^sample 9: nothing fits"):
        argmax_batch(shared, broken, offsets, SHAPES)
    assert len(argmax_batch(shared, theta, offsets, SHAPES)[1]) == len(SHAPES) + 1


@pytest.mark.parametrize("case", ["attribute", "reading"])
def test_an_oracle_that_cannot_be_sent_is_refused(case: str) -> None:
    """An oracle that pickle does not take, or that another process cannot read, is an error that says what is needed."""
    oracle, said = (
        (Interval(), "Interval cannot be sent.*no lambdas") if case == "attribute" else (Unreadable(), "put its class into")
    )
    if case == "attribute":
        oracle.cost = lambda x: x  # type: ignore[attr-defined]
    before = {*multiprocessing.active_children()}
    with pytest.raises(ParameterError, match=said):
        argmax_batch(ProcessOracle(oracle, n_jobs=2), *scores_of(), SHAPES)
    assert not started(before)


@pytest.mark.slow
def test_a_process_that_is_killed_is_told() -> None:
    """Where a process ends, the batch is an error, not a wait without end, and the next batch has new processes."""
    before = {*multiprocessing.active_children()}
    oracle, (theta, offsets) = ProcessOracle(Interval(), n_jobs=2), scores_of()
    argmax_batch(oracle, theta, offsets, SHAPES)
    for child in started(before):
        child.kill()
        child.join()
    with pytest.raises(StructpredError, match="a worker process ended"):
        argmax_batch(oracle, theta, offsets, SHAPES)
    assert len(argmax_batch(oracle, theta, offsets, SHAPES)[1]) == len(SHAPES) + 1
    children = started(before)
    del oracle
    assert not any(child.is_alive() for child in children)
    assert not set(children) & set(multiprocessing.active_children())


PROGRAM = """
import signal
import numpy as np
signal.signal(signal.SIGINT, signal.default_int_handler)  # it is ignored in children of background jobs
from worker_oracles import Endless, Interval
from structpred.task.process_oracle import ProcessOracle
oracle = ProcessOracle({kind}(), n_jobs=2)
oracle.argmax_batch(np.zeros(12), np.arange(0, 13, 3), [(3,)] * 4)
print("done", flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "end"), [("Interval", None), ("Endless", signal.SIGINT), ("Endless", signal.SIGKILL)])
def test_no_process_is_left_behind(kind: str, end: signal.Signals | None) -> None:
    """A program that ends, is interrupted or is killed takes its processes along: nobody holds its output open."""
    path = os.pathsep.join((str(ROOT), str(Path(__file__).parent)))
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(kind=kind)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip
    assert program.stdout is not None
    first = program.stdout.readline()
    if end is not None:
        program.send_signal(end)
    said = program.communicate(timeout=120)[1]
    assert first == ("done\n" if end is None else "begun\n")
    assert (program.returncode == 0) is (end is None)
    assert ("KeyboardInterrupt" in said) is (end is signal.SIGINT)
