"""Training on a stream: the same loop, over batches that are made as they are needed and then forgotten.

Instances are used in the order in which they come, so the result does not depend on where one batch ends and the next begins.
"""

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from structpred.core.regulariser import Regulariser
from structpred.core.result import Record, Result
from structpred.errors import CheckpointError, DataError, ParameterError
from structpred.runtime.interrupts import Interrupts
from structpred.task.partial_task import is_partial
from structpred.task.task import Task
from structpred.trainers.loop import TICK, Run, RunSettings
from structpred.trainers.names import require, trainers
from structpred.trainers.online.updates import updates
from structpred.trainers.problem import Problem, Surrogate, Trainer, is_convex
from structpred.trainers.running.bounds import check_finite
from structpred.trainers.running.checkpoints import Progress, claimed
from structpred.trainers.states import COUNT

#: (instances of this pass to skip, the checksum of the labels of those that are known whole) -> the batches of the rest, in order
Batches = Callable[[int, int], Iterator[Task]]


@dataclass(frozen=True)
class StreamProblem(Problem):
    """A part of the data, each instance counting as 1 of n_total: its share of the objective does not depend on the part."""

    n_total: float = 1.0

    @cached_property
    def p(self) -> npt.NDArray[np.float64]:
        """sample_weight / n_total."""
        return self.task.sample_weight / self.n_total

    @cached_property
    def shares(self) -> npt.NDArray[np.float64]:
        """The weights of the instances."""
        return self.task.sample_weight

    @classmethod
    def of(cls, task: Task, surrogate: Surrogate, lam: float, n_total: float, *, regulariser: Regulariser) -> "StreamProblem":
        """The problem of a part of the data, with the surrogate of labels that are missing where some are.

        Raises ParameterError for surrogates that need all labels.
        """
        if is_partial(task) and is_convex(surrogate):
            if not hasattr(surrogate, "latent"):
                raise ParameterError(
                    f"some labels are missing: {type(surrogate).__name__} needs all labels of an instance, and completing them "
                    "takes passes over fixed data; take fit, or surrogate='margin' or 'log'"
                )
            surrogate = surrogate.latent()
        return cls(task, surrogate, lam, n_total, regulariser=regulariser)

    def with_task(self, task: Task) -> "StreamProblem":
        """The same problem about another part of the data."""
        return StreamProblem.of(task, self.surrogate, self.lam, self.n_total, regulariser=self.regulariser)


def check_online(trainer: Trainer) -> None:
    """Raise ParameterError for trainers whose state belongs to a fixed set of data."""
    if not trainer.online:
        others = ", ".join(name for name, kind in trainers().items() if kind.online)
        raise ParameterError(
            f"trainer {type(trainer).__name__} keeps a state that belongs to a fixed set of data; "
            f"for data that come in pieces take one of {others}"
        )


def train_batch(problem: StreamProblem, trainer: Trainer, state: Any) -> Any:
    """Each instance once, in order; the new state. Ctrl-C takes effect at the end."""
    with Interrupts() as interrupts:
        for made in updates(problem, trainer, state, np.arange(len(problem.task))):
            state = made.state
    check_finite(trainer.weights(problem, state), trainer, problem.lam, 1)
    if interrupts.raised is not None:
        raise KeyboardInterrupt
    return state


def train_stream(problem: StreamProblem, trainer: Trainer, batches: Batches, settings: RunSettings) -> tuple[Result, Any]:
    """Passes over a stream: (result, the trainer's state). `problem` is about the first instance, and is not trained on.

    There is no objective and no certificate. A run is resumed by skipping what was done; CheckpointError if that was other data.
    """
    check_online(trainer)
    require(trainer, problem)
    with claimed(settings.checkpoint), Interrupts() as interrupts:
        run = StreamRun(problem, trainer, settings, interrupts, batches)
        return run.go(), run.state


class StreamRun(Run):
    """One run over a stream. crc: of the labels that this pass has seen, where all of an instance are known. total:
    instances of a whole pass, once known.
    """

    def __init__(
        self, problem: StreamProblem, trainer: Trainer, settings: RunSettings, interrupts: Interrupts, batches: Batches
    ) -> None:
        self.crc = self.total = 0
        self.batches, self.first = batches, problem
        super().__init__(problem, trainer, settings, interrupts)

    def _pass(self) -> str | None:
        if self.position == 0:
            self.changed, self.crc = False, 0
        stream = self.batches(self.position, self.crc)
        while (task := self._next(stream)) is not None:
            problem = self.first.with_task(task)
            with self._weights_first():
                known = iter(enumerate(task.labels))
                for n in self._steps(problem, np.arange(len(task))):
                    for item, labels in islice(known, n):
                        if not (is_partial(task) and task.place(item) is not None):  # some are missing
                            self.crc = zlib.crc32(labels.data, self.crc)
                    if self.interrupts.asked():
                        return "interrupted"
                    if self.position % TICK == 0:
                        self._tick()
        if self.position == 0:
            raise DataError(
                f"pass {self.passes + 1}: the source gave no sequences; it must return a new iterator at each call, "
                "not one that is used up"
            )
        self._tick()
        self.state = self.trainer.finish_pass(self.first, self.state)
        self.total, self.passes, self.position = self.position, self.passes + 1, 0
        return self._after_pass()

    def _next(self, stream: Iterator[Task]) -> Task | None:
        """The next batch; where the data are bad, what was learnt so far is saved first."""
        try:
            return next(stream, None)
        except DataError:
            if self.position or self.passes:
                self._save()
            raise

    def _part(self) -> float:
        return min(self.position / self.total, 1.0) if self.total else 0.0

    def _record(self, check: bool, replace: bool = False) -> Record:
        return super()._record(False, replace)  # an objective would need another pass

    def _fingerprint(self) -> str:
        return f"stream {self.first.n_total!r} {super()._fingerprint()}"

    def _snapshot(self) -> Progress:
        progress = super()._snapshot()
        progress.arrays["stream"] = np.array([self.crc, self.total])
        return progress

    def _restore(self, saved: Progress) -> None:
        arrays = dict(saved.arrays)
        stream = arrays.pop("stream", np.empty(0))
        if fault := COUNT.fault(stream, np.zeros(2, np.int64)):
            raise CheckpointError(f"stream: {fault}")
        super()._restore(replace(saved, arrays=arrays))
        self.crc, self.total = stream.tolist()

    def _check_order(self, saved: Progress) -> None:
        if fault := COUNT.fault(saved.order, np.empty(0, np.int64)):
            raise CheckpointError(f"order: {fault}")
