"""Training in pieces: `ChainLabeler.partial_fit`, and `fit_stream` for data that do not fit into memory."""

import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np

from structpred.core.result import Certificate, Result
from structpred.errors import CheckpointError, DataError, ParameterError
from structpred.models.chain.inputs import Input
from structpred.models.chain.sharding import labelled
from structpred.models.chain.targets import LabelEncoder, about_labels, encoder_of, partial_labels
from structpred.models.own_components import check_own, components_of
from structpred.models.settings import resolve_loss, resolve_regulariser
from structpred.runtime.settings import checked_positive, checked_whole, is_number
from structpred.task.task import Task
from structpred.trainers.names import require
from structpred.trainers.problem import Trainer
from structpred.trainers.running.checkpoints import Progress
from structpred.trainers.running.stream import StreamProblem, check_online, train_batch, train_stream
from structpred.trainers.states import rebuild

#: a function that starts a new pass: an iterable of (sequence, its labels)
Source = Callable[[], Iterable[tuple[Any, Any]]]
#: where a label is not that nobody knows
_FIXED = "fixed by `classes` or the first batch"
_SAMPLE = re.compile(r"\bsample (\d+)")


@dataclass(frozen=True)
class OnlineState:
    """What the next call of partial_fit continues from. state: the trainer's, or the progress of a run of fit that holds it.

    n_total: how many sequences the regulariser counts on. settings: what must not change in between.
    """

    trainer: Trainer
    state: Any
    input_: Input
    encoder: LabelEncoder
    n_total: float
    settings: tuple[Any, ...]
    calls: int = 0
    sequences: int = 0


def partial_fit(labeler: Any, X: Any, y: Any, classes: Sequence[Any] | None, n_total: float | None, **given: Any) -> None:
    """One pass over a batch, in order, from where the last one ended. See `ChainLabeler.partial_fit`."""
    before = _state_before(labeler, n_total)
    if before is None:
        input_, sequences = labeler._input_for(X)
        data = input_.fit_transform(sequences)
    else:
        if classes is not None and encoder_of(classes, labeler.coding).classes.tolist() != before.encoder.classes.tolist():
            raise ParameterError("classes: the labels were fixed by the first partial_fit; leave classes out or repeat them")
        input_ = before.input_
        data = input_.transform(X)
    encoder = before.encoder if before is not None else None if classes is None else encoder_of(classes, labeler.coding)
    with about_labels(_FIXED):
        task, encoder = labelled(labeler, data, y, encoder, **given)
    trainer, _ = labeler._trainer_and_surrogate()
    total = _checked_total(trainer, n_total) if before is None else before.n_total
    problem = _problem(labeler, task, total)
    if before is None:
        require(trainer, problem)
        before = OnlineState(trainer, trainer.init_state(problem), input_, encoder, total, _settings(labeler))
    elif isinstance(before.state, Progress):
        before = replace(before, state=rebuild(before.trainer.init_state(problem), before.state.arrays, task.dim))
    state = train_batch(problem, before.trainer, before.state)
    after = replace(before, state=state, calls=before.calls + 1, sequences=before.sequences + len(task))
    row = {"passes": after.calls, "oracle_calls": after.sequences}
    empty = dict.fromkeys(("seconds", "cpu_seconds", "primal", "dual", "gap", "dev_score"))
    history = [*(labeler.history_ if before.calls else ()), {**empty, **row}]
    result = Result(before.trainer.weights(problem, state), Certificate(), history, "partial_fit", after.calls)
    _keep(labeler, result, after)


def fit_stream(
    labeler: Any, source: Source, classes: Sequence[Any], n_passes: int, batch_size: int, n_total: float | None,
    dev: tuple[Any, Any] | None,
) -> None:  # fmt: skip
    """Passes over a source in memory bounded by a batch. See `ChainLabeler.fit_stream`."""
    trainer = _online_trainer(labeler)
    if labeler.warm_start:
        raise ParameterError("warm_start is for fit; fit_stream continues from a checkpoint: give checkpoint=... and resume=True")
    for name, value in (("n_passes", n_passes), ("batch_size", batch_size)):
        checked_whole(value, name)
    if labeler.patience is not None and dev is None:
        raise ParameterError("patience needs held-out data: give dev=(X, y) to fit_stream")
    encoder = encoder_of(classes, labeler.coding)
    reader = _Reader(labeler, source, encoder, int(batch_size))
    first = reader.open()
    total = _checked_total(trainer, n_total)
    problem = _problem(labeler, reader.task(first[:1], 0), total)
    score = None if dev is None else labeler._dev_scorer((reader.input_, encoder), dev)
    settings = replace(labeler._run_settings(score), max_iter=n_passes, tol=0.0)  # there is no certificate
    del first
    result, state = train_stream(problem, trainer, reader.batches, settings)
    calls = int(result.history[-1]["oracle_calls"] or 0) if result.history else 0
    after = OnlineState(trainer, state, reader.input_, encoder, total, _settings(labeler), result.passes, calls)
    _keep(labeler, result, after)


def _state_before(labeler: Any, n_total: float | None) -> OnlineState | None:
    """What to continue from; None for a new model. Raises ParameterError where the state is not there, or settings changed."""
    trainer = _online_trainer(labeler)
    checked_positive(labeler.C, "C")
    state: OnlineState | None = getattr(labeler, "_online", None)
    if state is not None:
        if state.settings != _settings(labeler) or n_total not in (None, state.n_total):
            settled = "trainer, surrogate, loss, regulariser, C and n_total"
            raise ParameterError(f"partial_fit: {settled} must stay as at the first call")
        return state
    if not hasattr(labeler, "coef_"):
        return None
    progress = getattr(labeler, "_progress", None)
    if progress is None:
        raise ParameterError(
            "partial_fit cannot continue from this model: a model file, or a fit without warm_start=True, keeps the weights but "
            "not the trainer's state; start a new model with partial_fit, or keep the state (warm_start=True, or a pickle)"
        )
    done = int(labeler.history_[-1]["oracle_calls"] or 0)
    fixed = (labeler.input_, labeler._encoder, labeler._n_total, _settings(labeler))
    return OnlineState(trainer, progress, *fixed, calls=labeler.n_iter_, sequences=done)


def _online_trainer(labeler: Any) -> Trainer:
    """The trainer of the settings; ParameterError for one that is not online, and for several kernels."""
    if labeler._several:
        raise ParameterError("kernels= and n_components= need all training positions at once: use fit, not pieces of the data")
    if labeler.stages != 1:
        raise ParameterError("stages: pieces of the data train one; use fit for two")
    trainer: Trainer = labeler._trainer_and_surrogate()[0]
    check_online(trainer)
    return trainer


def _problem(labeler: Any, task: Task, n_total: float) -> StreamProblem:
    trainer, surrogate = labeler._trainer_and_surrogate()
    if labeler.signs is not None:
        raise ParameterError("signs: partial_fit and fit_stream do not take them; use fit")
    lam, regulariser = 1.0 / (checked_positive(labeler.C, "C") * n_total), resolve_regulariser(labeler.regulariser, trainer)
    check_own(components_of(task, trainer, surrogate, regulariser), labeler.check_components)
    return StreamProblem.of(task, surrogate, lam, n_total, regulariser=regulariser)


def _checked_total(trainer: Trainer, n_total: float | None) -> float:
    if n_total is None:
        if trainer.needs_n_total:
            name = trainer.name or type(trainer).__name__
            raise ParameterError(
                f"{name} needs n_total, the number of sequences to be expected in all: its regulariser is lam = 1 / (C n_total)"
            )
        return 1.0
    if not is_number(n_total) or n_total < 1:
        raise ParameterError(f"n_total must be a number >= 1, got {n_total!r}")
    return float(n_total)


def _settings(labeler: Any) -> tuple[Any, ...]:
    return labeler.trainer, labeler.surrogate, labeler.regulariser, labeler.loss, float(labeler.C)


def _keep(labeler: Any, result: Result, state: OnlineState) -> None:
    labeler._keep_plan(state.input_, state.encoder, result)
    labeler._online = state
    labeler._stop_if_interrupted()


class _Reader:
    """A source as batches of tasks."""

    input_: Input

    def __init__(self, labeler: Any, source: Source, encoder: LabelEncoder, batch_size: int) -> None:
        if not callable(source):
            raise ParameterError(
                f"source: expected a function that returns an iterable of (sequence, labels), got {type(source).__name__}; "
                "it is called once for each pass (for a list of pairs: lambda: pairs)"
            )
        self.labeler, self.source, self.encoder, self.batch_size = labeler, source, encoder, batch_size
        resolve_loss(labeler.loss)  # what is wrong with it is said before the source is asked

    def open(self) -> list[tuple[Any, Any]]:
        """Look at the first batch: it decides the form of the features, and the dictionary if there is one."""
        first = list(islice(self._pairs(), self.batch_size))
        if not first:
            raise DataError("source: no sequences at all; expected at least one")
        self.input_, sequences = self.labeler._input_for([x for x, _ in first])
        self.input_.fit_transform(sequences)
        return first

    def batches(self, skip: int, crc: int) -> Iterator[Task]:
        """The batches of one pass, without the first `skip` sequences, whose labels must have the checksum `crc`."""
        pairs, first = self._pairs(), skip
        if skip:
            self._pass_over(pairs, skip, crc)
        while batch := list(islice(pairs, self.batch_size)):
            yield self.task(batch, first)
            first += len(batch)

    def task(self, batch: list[tuple[Any, Any]], first: int) -> Task:
        """The task of a batch; errors give the running number of the sequence, `first` being that of the batch's first one."""
        with _numbered(first), about_labels(_FIXED):
            data = self.input_.transform([x for x, _ in batch])
            return labelled(self.labeler, data, [y for _, y in batch], self.encoder)[0]

    def _pairs(self) -> Iterator[tuple[Any, Any]]:
        stream = self.source()
        if not isinstance(stream, Iterable):
            raise DataError(f"source: expected it to return an iterable of (sequence, labels), got {type(stream).__name__}")
        for i, pair in enumerate(stream):
            if not isinstance(pair, tuple | list) or len(pair) != 2:
                raise DataError(f"sample {i}: expected a pair (sequence, labels) from the source, got {type(pair).__name__}")
            yield pair[0], pair[1]

    def _pass_over(self, pairs: Iterator[tuple[Any, Any]], skip: int, crc: int) -> None:
        """Features of what was done are not made again; the labels show whether it is the same source."""
        found = passed = 0
        for _, y in islice(pairs, skip):
            labels = y.tolist() if isinstance(y, np.ndarray) else list(y)
            with _numbered(passed):
                if partial_labels([labels], self.labeler.missing, whole=False) is not None:
                    labels = []
                found = zlib.crc32(self.encoder.encode([labels]).data, found)
            passed += 1
        if passed < skip or found != crc:
            raise CheckpointError(
                f"the checkpoint was written after {skip} sequences of a pass, but the source does not give the same "
                f"{skip if passed == skip else f'({passed} in all)'} now; resume with the same data in the same order"
            )


@contextmanager
def _numbered(first: int) -> Iterator[None]:
    """Errors about sample i of a batch are about sample first + i of the stream."""
    try:
        yield
    except DataError as error:
        message = _SAMPLE.sub(lambda found: f"sample {int(found[1]) + first}", str(error), count=1)
        raise type(error)(message) from error
