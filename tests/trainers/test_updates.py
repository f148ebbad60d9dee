"""Many updates in one compiled call: the bits of single updates, broken off anywhere, or single ones by a stated rule."""

import signal
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from training_cases import chain_task, sequences

from structpred.core.fixed_scores import FORBIDDEN
from structpred.features.fixed_scores import FixedScores
from structpred.features.sequences import SequenceFeatures
from structpred.objectives.log_loss import LogLoss
from structpred.objectives.margin import MarginRescaling
from structpred.objectives.part_losses import Hamming, LabelCosts
from structpred.objectives.regularisers.l2 import SignConstraints
from structpred.oracles.chain import ChainOracle
from structpred.slack.surrogate import SlackRescaling
from structpred.task.task import Task
from structpred.trainers.arow import AROW
from structpred.trainers.loop import RunSettings, train
from structpred.trainers.mira import MIRA
from structpred.trainers.online.updates import compiled_updates
from structpred.trainers.passive_aggressive import PassiveAggressive
from structpred.trainers.perceptron import AveragedPerceptron
from structpred.trainers.problem import Problem
from structpred.trainers.running.stream import StreamProblem, train_batch, train_stream
from structpred.trainers.sgd import SGD

COSTS = [[0.0, 1.5, 0.7], [2.0, 0.0, 1.0], [0.3, 1.1, 0.0]]
TRAINERS = {
    "sgd": SGD,
    "sgd, last": lambda: SGD(averaged=False),
    "perceptron": AveragedPerceptron,
    "mira": MIRA,
    "pa": PassiveAggressive,
    "pa-0, last": lambda: PassiveAggressive(kind=0, sqrt_loss=False, averaged=False),
    "pa-2": lambda: PassiveAggressive(kind=2, c=0.3),
    "arow": AROW,
}
SETTINGS = RunSettings(max_iter=3, check_every=2, seed=3, keep=True)


def made(problem: Problem, trainer: Any, settings: RunSettings = SETTINGS) -> list[Any]:
    """All that a run says and keeps, but for times."""
    found = train(problem, trainer, settings)
    assert found.progress is not None
    history = [{key: value for key, value in row.items() if "seconds" not in key} for row in found.history]
    return [found.weights.tobytes(), history, found.certificate, {k: a.tobytes() for k, a in found.progress.arrays.items()}]


def calls_of(task: Task, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many instances each compiled call visits, from now on."""
    seen, update_many = [], task.steps.update_many

    def counted(*arguments: Any) -> tuple[int, bool]:
        found = update_many(*arguments)
        seen.append(found[0])
        return found

    monkeypatch.setattr(task.steps, "update_many", counted)
    return seen


@pytest.mark.mostly_slow
@pytest.mark.parametrize("name", TRAINERS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_compiled_visits_are_the_plain_updates(name: str, dtype: type, monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights, history, certificate and state, with costs, token and sample weights, are those of single updates, bit for bit; by
    plain steps, whose primal may differ in the last bits, weights and state are the same.
    """
    options = {"n": 150, "weighted": True, "loss": LabelCosts(COSTS), "dtype": dtype}
    task, plain = chain_task(1, **options), chain_task(1, compiled=False, **options)
    seen = calls_of(task, monkeypatch)
    weight = 1.0 if name.startswith(("sgd", "mira")) else 0.0
    found = made(Problem(task, MarginRescaling(weight), 0.02), TRAINERS[name]())
    assert seen == [64, 64, 22] * 3
    monkeypatch.setattr(task, "compiled_updates", lambda: None)
    assert found == made(Problem(task, MarginRescaling(weight), 0.02), TRAINERS[name]())
    assert found[::3] == made(Problem(plain, MarginRescaling(weight), 0.02), TRAINERS[name]())[::3]


@pytest.mark.parametrize("name", ["sgd", "arow"])
def test_a_call_that_ends_early_changes_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call stops where its work is enough, and leaves steps in doubt to the plain update: the bits stay."""
    task = chain_task(1, n=80)
    whole = made(Problem(task, MarginRescaling(), 0.1), TRAINERS[name]())
    task.steps.most = 7
    seen = calls_of(task, monkeypatch)
    assert made(Problem(task, MarginRescaling(), 0.1), TRAINERS[name]()) == whole
    assert max(seen) <= 7
    monkeypatch.setattr(task.steps, "update_many", lambda items, rule, weight: (0, False))
    assert made(Problem(task, MarginRescaling(), 0.1), TRAINERS[name]()) == whole


def test_a_forbidden_truth_is_left_to_the_plain_update(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where fixed scores forbid a true label, outputs found may score below the truth: the same bits, by plain steps."""
    rng = np.random.default_rng(0)
    data = sequences(rng, 70)
    labels = [rng.integers(0, 3, k) for k in data.lengths]
    rows = np.where(np.eye(4, 3, -1) > 0, FORBIDDEN, 0.0)
    rows[0] = 0.0
    row_of = (rng.random(data.n_tokens) < 0.3) * (1 + np.concatenate(labels))
    features = SequenceFeatures(data, 3, fixed=FixedScores(rows, row_of.astype(np.int64), np.zeros((3, 3))))
    shapes = [(int(k), 3) for k in data.lengths]
    task = Task(features, ChainOracle(), labels, shapes, Hamming())
    seen = calls_of(task, monkeypatch)
    found = made(Problem(task, MarginRescaling(0.0), 0.1), AveragedPerceptron())
    assert 0 in seen
    monkeypatch.setattr(task, "compiled_updates", lambda: None)
    assert found == made(Problem(task, MarginRescaling(0.0), 0.1), AveragedPerceptron())


@pytest.mark.usefixtures("hears_interrupts")
@pytest.mark.parametrize("name", ["sgd", "mira", "arow"])
def test_a_run_stopped_between_calls_ends_the_same(name: str, tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A signal during a compiled call stops the run after it, mid-pass; resumed, by calls or single updates, it ends the same."""
    task, plain = (chain_task(1, n=150) for _ in range(2))
    monkeypatch.setattr(plain, "compiled_updates", lambda: None)
    whole = made(Problem(task, MarginRescaling(), 0.1), TRAINERS[name]())
    settings = replace(SETTINGS, checkpoint=tmp_path / "run.ckpt")
    seen, counted = calls_of(task, monkeypatch), task.steps.update_many

    def signalled(*arguments: Any) -> tuple[int, bool]:
        if len(seen) == 4:  # the second of the second pass
            signal.raise_signal(signal.SIGTERM)
        return counted(*arguments)

    monkeypatch.setattr(task.steps, "update_many", signalled)
    broken = train(Problem(task, MarginRescaling(), 0.1), TRAINERS[name](), settings)
    assert (broken.stop_reason, broken.progress.position, len(seen)) == ("interrupted", 128, 5)
    saved = (tmp_path / "run.ckpt").read_bytes()
    for one in (task, plain):
        (tmp_path / "run.ckpt").write_bytes(saved)
        assert made(Problem(one, MarginRescaling(), 0.1), TRAINERS[name](), replace(settings, resume=True)) == whole


@pytest.mark.parametrize("name", ["sgd", "pa"])
def test_streams_and_new_data_are_visited_alike(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """fit_stream and partial_fit, whose batches end anywhere, end in the bits of plain steps, and note the same checksum."""
    found = []
    for compiled in (True, False):
        task = chain_task(1, n=150, compiled=compiled)
        seen = calls_of(task, monkeypatch) if compiled else [1]
        problem, settings = StreamProblem(task, MarginRescaling(), 0.1, 150.0), RunSettings(max_iter=2, keep=True)

        def batches(skip: int, crc: int, task: Task = task) -> Any:
            return iter([task.take(np.arange(0, 90)), task.take(np.arange(90, 150))])

        result, state = train_stream(problem, TRAINERS[name](), batches, settings)
        state = train_batch(problem, TRAINERS[name](), state)
        assert seen
        assert result.progress is not None
        found.append((result.weights.tobytes(), result.progress.arrays["stream"].tolist(), state.weights.v.tobytes()))
    assert found[0] == found[1]


class OwnUpdate(SGD):
    """A trainer that changed the update alone."""

    def update(self, problem, state, item):
        return super().update(problem, state, item)


class OwnStep(Task):
    """A task that changed the step alone."""

    def step(self, w, i, loss_weight, scale=1.0):
        return super().step(w, i, loss_weight, scale)


class OwnTerm(MarginRescaling):
    """A surrogate that changed the term alone."""

    def term(self, task, w, i, scale=1.0):
        return super().term(task, w, i, scale)


def test_who_takes_plain_updates() -> None:
    """Slack rescaling, the log loss, mapped weights, plain tasks and classes that changed a method; all else is compiled."""
    task, surrogate = chain_task(1), MarginRescaling()
    own = OwnStep(task.features, task.oracle, task.labels, task.shapes, Hamming())
    cases = [
        (Problem(task, surrogate, 0.1), SGD(), True),
        (Problem(task, surrogate, 0.1), OwnUpdate(), False),
        (Problem(task, OwnTerm(), 0.1), SGD(), False),
        (Problem(own, surrogate, 0.1), SGD(), False),
        (Problem(task, SlackRescaling(), 0.1), SGD(), False),
        (Problem(task, LogLoss(), 0.1), SGD(), False),
        (Problem(task, surrogate, 0.1, regulariser=SignConstraints(np.ones(task.dim))), SGD(), False),
        (Problem(chain_task(1, compiled=False), surrogate, 0.1), SGD(), False),
    ]
    for problem, trainer, compiled in cases:
        assert (compiled_updates(problem, trainer, trainer.init_state(problem)) is not None) == compiled, problem
