"""Real signals to real processes: the step is finished, a checkpoint written, and a resumed run ends the same, bit for bit."""

import itertools
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from training_cases import chain_task

from structpred.core.result import Record
from structpred.runtime import interrupts, threads
from structpred.runtime.interrupts import Interrupts
from structpred.storage import atomic
from structpred.trainers import loop
from structpred.trainers.bcfw import BCFW
from structpred.trainers.bmrm import BMRM
from structpred.trainers.lbfgs import LBFGS
from structpred.trainers.loop import RunSettings, train
from structpred.trainers.n_slack import NSlackCuttingPlane
from structpred.trainers.one_slack import OneSlackCuttingPlane
from structpred.trainers.owlqn import OWLQN
from structpred.trainers.planes import master_qp
from structpred.trainers.problem import Problem, Trainer

HERE = Path(__file__).resolve().parent
WORKER = str(HERE / "interrupted_run.py")
NAMES = ["perceptron", "sgd", "bcfw", "corrective"]
FAST = {("bcfw", signal.SIGINT), ("sgd", signal.SIGTERM)}
LONG_STEPS = [NSlackCuttingPlane(), OneSlackCuttingPlane(), BMRM(), LBFGS(), OWLQN(l1=0.01)]
CASES = [
    pytest.param(name, number, marks=() if (name, number) in FAST else pytest.mark.slow)
    for name in NAMES
    for number in (signal.SIGINT, signal.SIGTERM)
]


def start(trainer: str, folder: Path, *options: str) -> subprocess.Popen[str]:
    """A run whose result goes to result.json of the folder."""
    paths = [str(HERE), str(HERE.parent.parent)]
    command = [sys.executable, WORKER, trainer, str(folder / "run.ckpt"), str(folder / "result.json"), *options]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def wait_for(process: subprocess.Popen[str], line: str) -> None:
    """Read until the line comes."""
    assert process.stdout is not None
    for got in process.stdout:
        if got.strip() == line:
            return
    raise AssertionError(f"the run ended before {line!r}: {process.communicate()[1]}")


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Exit code and standard error."""
    _, error = process.communicate(timeout=1800)  # against hanging, not for speed
    return process.returncode, error


def result(folder: Path) -> dict[str, Any]:
    """What the run wrote."""
    found: dict[str, Any] = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    return found


@pytest.mark.slow
@pytest.mark.parametrize(("trainer", "number"), CASES)
def test_a_signal_stops_in_order_and_resuming_ends_the_same(trainer: str, number: signal.Signals, tmp_path: Path) -> None:
    """Weights, history (but for times) and certificate after interruption and resume equal those of an unbroken run."""
    unbroken, broken = tmp_path / "unbroken", tmp_path / "broken"
    unbroken.mkdir()
    broken.mkdir()
    code, error = ended(start(trainer, unbroken))
    assert code == 0, error
    process = start(trainer, broken, "--hold", "4")
    wait_for(process, "pass 4")
    process.send_signal(number)
    code, error = ended(process)
    assert code == 3, error
    halfway = result(broken)
    assert halfway["stop_reason"] == "interrupted"
    assert halfway["passes"] == 4
    code, error = ended(start(trainer, broken, "--resume"))
    assert code == 0, error
    assert result(broken) == result(unbroken)


@pytest.mark.slow
def test_a_second_signal_breaks_in_at_once(tmp_path: Path) -> None:
    """Where a step does not end, the first Ctrl-C waits for it, the second raises KeyboardInterrupt right there."""
    process = start("bcfw", tmp_path, "--hold", "3", "--stuck")
    wait_for(process, "pass 3")
    process.send_signal(signal.SIGINT)
    wait_for(process, "heard")
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    code, error = ended(process)
    assert code not in (0, 3)
    assert "KeyboardInterrupt" in error
    assert not (tmp_path / "result.json").exists()


def test_handlers_are_put_back() -> None:
    """After training the program's own handlers are in place again, also when training failed."""
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with Interrupts() as interrupts:
        assert signal.getsignal(signal.SIGTERM) == interrupts._handle
    with pytest.raises(RuntimeError), Interrupts():
        raise RuntimeError
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


@pytest.mark.usefixtures("hears_interrupts")
def test_the_first_signal_raises_a_flag_the_second_an_exception() -> None:
    """Inside the context a first SIGTERM is only noted; the next signal, of either kind, is a KeyboardInterrupt."""
    with Interrupts() as interrupts:
        assert interrupts.raised is None
        signal.raise_signal(signal.SIGTERM)
        assert interrupts.raised is signal.SIGTERM
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="a system without SIGHUP")
@pytest.mark.usefixtures("hears_interrupts")
def test_a_terminal_that_closes_ends_a_run_as_sigterm_does() -> None:
    """SIGHUP is noted as the first signal, and beside another one it does not break in."""
    with Interrupts() as interrupts:
        signal.raise_signal(signal.SIGHUP)
        assert interrupts.raised is signal.SIGHUP
        signal.raise_signal(signal.SIGHUP)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)


@pytest.mark.usefixtures("hears_interrupts")
@pytest.mark.parametrize("moment", ["interrupted", *atomic.STEPS])
def test_a_second_signal_waits_for_the_checkpoint(moment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the end of the step on a second signal breaks in when the checkpoint is whole: the run ends, unlocked, and goes on."""
    problem, trainer = Problem(chain_task(), BCFW.surrogates[0](), 0.1), BCFW()
    whole = train(problem, trainer, RunSettings(max_iter=6))
    first = itertools.count()

    def press(now: str) -> None:
        if now == moment:
            signal.raise_signal(signal.SIGTERM)

    def after_pass(row: Record) -> None:
        if row["passes"] == 3 and not next(first):
            monkeypatch.setattr(atomic, "step", press)
            monkeypatch.setattr(loop.log, "warning", lambda text, *rest: press(text.split()[0]))
            signal.raise_signal(signal.SIGTERM)

    settings = RunSettings(max_iter=6, checkpoint=tmp_path / "run.ckpt", callbacks=(after_pass,))
    with pytest.raises(KeyboardInterrupt):
        train(problem, trainer, settings)
    monkeypatch.undo()
    assert os.listdir(tmp_path) == ["run.ckpt"]
    resumed = train(problem, trainer, replace(settings, resume=True))
    np.testing.assert_array_equal(resumed.weights, whole.weights)


def test_workers_leave_to_their_parent_what_a_terminal_sends(in_child: Callable[[Callable[[], None]], None]) -> None:
    """A process of ours is deaf to Ctrl-C and to a terminal that closes, but can be ended by its parent."""

    def check() -> None:
        for number in interrupts.SIGNALS:
            signal.signal(number, signal.default_int_handler)
        interrupts.leave_to_parent()
        heard = [number for number in interrupts.SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
        assert heard == [signal.SIGTERM]

    in_child(check)


def test_ignored_signals_stay_ignored() -> None:
    """A program that ignores a signal (as under nohup) goes on ignoring it while it trains."""
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        with Interrupts() as interrupts:
            signal.raise_signal(signal.SIGTERM)
            assert interrupts.raised is None
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGTERM, before)


def test_other_threads_can_train() -> None:
    """Outside the main thread no handler is set, and nothing fails."""
    seen: list[Any] = []

    def work() -> None:
        with Interrupts() as interrupts:
            seen.append((interrupts.raised, signal.getsignal(signal.SIGTERM)))

    before = signal.getsignal(signal.SIGTERM)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [(None, before)]


@pytest.mark.usefixtures("hears_interrupts")
@pytest.mark.parametrize("trainer", LONG_STEPS, ids=lambda t: t.name)
def test_a_long_step_is_given_up_and_done_again(trainer: Trainer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A signal in the middle of a step that may take long ends it; after resuming the run ends in the same bits."""
    monkeypatch.setattr(master_qp, "SWEEP_NUMBERS", 1)  # a look at the flag after every sweep of the master problem
    task = chain_task()
    problem = Problem(task, trainer.surrogates[0](), 0.1)
    whole = train(problem, trainer, RunSettings(max_iter=6, tol=0.0))
    asked = itertools.count()

    def signalled() -> None:
        if interrupts._running[-1].listening and next(asked) == 3:
            signal.raise_signal(signal.SIGTERM)
        interrupts.abandon_if_asked()

    for module in (master_qp, threads):
        monkeypatch.setattr(module, "abandon_if_asked", signalled)
    settings = RunSettings(max_iter=6, tol=0.0, checkpoint=tmp_path / "run.ckpt")
    broken = train(problem, trainer, settings)
    assert broken.stop_reason == "interrupted"
    assert next(asked) == 4  # it was given up there and then
    resumed = train(problem, trainer, replace(settings, resume=True))
    np.testing.assert_array_equal(resumed.weights, whole.weights)
    assert resumed.certificate == whole.certificate
    kept = ("passes", "primal", "dual", "oracle_calls")
    assert [[row[key] for key in kept] for row in resumed.history] == [[row[key] for key in kept] for row in whole.history]
