"""The one loop that all trainers run in: progress, history, early stopping, callbacks, checkpoints, Ctrl-C."""

import hashlib
import logging
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from structpred.core.products import dot
from structpred.core.result import Certificate, Record, Result, crossing
from structpred.core.stand_ins import stand_in
from structpred.core.weights import Vector
from structpred.errors import (
    CheckpointError,
    CheckpointWarning,
    DataError,
    NoUpdateWarning,
    OracleError,
    ParameterError,
    StorageError,
)
from structpred.runtime.interrupts import Abandoned, Interrupts
from structpred.runtime.settings import checked_nonnegative, checked_whole
from structpred.runtime.standard_error import callers_level
from structpred.trainers.names import require
from structpred.trainers.online.updates import updates
from structpred.trainers.problem import Problem, Trainer
from structpred.trainers.running.bounds import Bounds, check_finite, data_of, is_own, judged, refuse_changed, try_step
from structpred.trainers.running.checkpoints import Progress, claimed, load_checkpoint, save_checkpoint
from structpred.trainers.running.progress import checked_verbose, display_of
from structpred.trainers.running.starts import Starts
from structpred.trainers.states import Values, flatten, rebuild

log = logging.getLogger("structpred.trainers")

Callback = Callable[[Record], bool | None]
#: items between looks at the clock, a power of two
TICK = 64


@dataclass(frozen=True)
class RunSettings:
    """How long to train, and what to do on the way.

    max_iter: passes over the data. tol: stop when gap <= tol * primal (0: never). check_every: passes between
    computations of the objective (also after the last pass, and earlier if the estimated gap is below tol). seed: of
    the order of instances. dev: a score of weights on held-out data, larger is better, called after every pass; the best
    weights are returned. patience: stop after this number of passes without a better score. callbacks: called with each
    row of the history; True stops. checkpoint: a file to write every `checkpoint_seconds`, at the end, and when
    interrupted; one that cannot be written is a CheckpointWarning, one that another run writes a CheckpointError. resume: go
    on from that file; CheckpointError if it is not there. keep: put the run's progress into the result. start: such a progress
    to continue from, unless `resume` does; ParameterError if it is of other data or settings. verbose: 0 shows nothing, more a
    line a pass (progress.py). stage: what part of the training the run is, for these lines.
    """

    max_iter: int = 10
    tol: float = 0.0
    check_every: int = 10
    seed: int = 0
    dev: Callable[[Vector], float] | None = None
    patience: int | None = None
    callbacks: Sequence[Callback] = field(default_factory=tuple)
    checkpoint: Path | None = None
    checkpoint_seconds: float = 60.0
    resume: bool = False
    keep: bool = False
    start: Progress | None = None
    verbose: int = 0
    stage: str = ""

    def __post_init__(self) -> None:
        checked_nonnegative(self.tol, "tol")  # 0: no goal
        if self.checkpoint_seconds != np.inf:
            checked_nonnegative(self.checkpoint_seconds, "checkpoint_seconds")
        checked_whole(self.max_iter, "max_iter")
        checked_whole(self.check_every, "check_every")
        if self.patience is not None:
            checked_whole(self.patience, "patience")
        checked_verbose(self.verbose)
        if self.resume and self.checkpoint is None:
            raise ParameterError("resume needs the checkpoint file to continue from: give checkpoint=...")


def train(problem: Problem, trainer: Trainer, settings: RunSettings | None = None) -> Result:
    """Run `trainer` on `problem`. Raises before any work if the task cannot do what it needs (`names.require`)."""
    settings = settings or RunSettings()
    require(trainer, problem)
    data = data_of(problem.task)
    if own := is_own(trainer):
        try_step(problem, trainer)
    with claimed(settings.checkpoint), Interrupts() as interrupts:
        result = Run(problem, trainer, settings, interrupts).go()
    refuse_changed(problem.task, data)
    return judged(problem, trainer, result) if own else result


class Run:
    """One run of the loop. All that must survive an interruption is in `snapshot`."""

    def __init__(self, problem: Problem, trainer: Trainer, settings: RunSettings, interrupts: Interrupts) -> None:
        self.problem, self.trainer, self.settings, self.interrupts = problem, trainer, settings, interrupts
        self.rng = np.random.Generator(np.random.PCG64(settings.seed))
        self.state: Any = trainer.init_state(problem)
        self.starts, self.order = Starts(problem.task), np.empty(0, np.int64)
        self.passes = self.position = self.oracle_calls = self.stale = 0
        self.changed = False
        self.best_dev: float | None = None
        self.best_weights: Vector | None = None
        self.closed: tuple[Vector, float | None, float | None] | None = None
        self.history: list[Record] = []
        self.bounds = Bounds(problem, trainer)
        self.seconds = self.cpu_seconds = 0.0
        self.fingerprint = self._fingerprint() if settings.checkpoint or settings.keep or settings.start else ""
        if settings.resume and settings.checkpoint is not None:
            saved = load_checkpoint(settings.checkpoint, self.fingerprint)
            try:
                self._restore(saved)
            except CheckpointError as error:
                raise CheckpointError(f"{settings.checkpoint}: cannot resume: {error}") from error
        elif settings.start is not None:
            if settings.start.fingerprint != self.fingerprint:
                own = f"the state of {type(trainer).__name__} belongs to its data: start a new run for other data"
                raise ParameterError(
                    "cannot continue the earlier run: the data, or settings such as trainer, C, loss and random_state (a whole "
                    f"number or None), are not the same; {'partial_fit takes new data' if trainer.online else own}"
                )
            self._restore(settings.start)
        self.clock, self.cpu_clock = time.perf_counter() - self.seconds, time.process_time() - self.cpu_seconds
        self.saved = time.perf_counter()
        self.display = display_of(settings.verbose, type(trainer).__name__, settings.max_iter, settings.stage)

    def go(self) -> Result:
        """Passes until something says stop."""
        reason = self._met() if self.position == 0 and self.history else None  # resumed after the end
        with self.display:
            while reason is None:
                reason = "max_iter" if self.passes >= self.settings.max_iter else self._pass()
            if reason == "interrupted":
                log.warning("interrupted by %s after %d passes", getattr(self.interrupts.raised, "name", "?"), self.passes)
            elif not self.history or self.history[-1]["passes"] != self.passes or self.history[-1]["primal"] is None:
                self._record(check=True, replace=True)
        self._save()
        duals = [row["dual"] for row in self.history if row["dual"] is not None]
        dual = max(duals) if duals else None
        weights = self._finite_weights()
        primal = self.history[-1]["primal"] if self.history else None
        if self.best_weights is not None and not np.array_equal(self.best_weights, weights):
            weights = self.best_weights
            primal = None if primal is None else self.trainer.primal(self.problem, weights)
        if reason == "interrupted":  # mid-pass: the last row is about other weights
            primal = None if primal is None else self.trainer.primal(self.problem, weights)
        proven, local = self.problem.certified and primal is not None, not self.problem.convex
        certificate = Certificate(primal, None if local else dual, proven=proven and not local, local=local)
        progress = self._snapshot() if self.settings.keep else None
        gap, unsettled = certificate.gap or 0.0, getattr(self.problem.surrogate, "unsettled", None)
        if reason == "max_iter" and gap > 0.0 and callable(unsettled):
            # the surrogate's searches, not training, keep the gap open: what they bound but did not find at the weights is more
            # than half of it, or is some of it where the last pass changed nothing
            left = dot(self.problem.p, unsettled(self.problem.task, weights))
            if left > (0.5 * gap if self.changed else 0.0):
                reason = "search_bound"
                log.warning("%s", _OPEN)
        self.bounds.add(primal, None, "the weights returned")
        if reason != "interrupted":
            self.bounds.at_zero(self.passes, weights)
        report = self.trainer.report(self.problem, self.state)
        groups = self.problem.task.groups, self.problem.task.group_names
        return Result(weights, certificate, self.history, reason, self.passes, progress, report, *groups)

    def _pass(self) -> str | None:
        """Continue the current pass, or start the next; the reason to stop after it, if any."""
        if self.position == 0:
            self.order = self.trainer.order(self.problem, self.state, self.rng, self.passes)
            self.changed = False
        try:
            with self._weights_first(), self.starts.in_use():
                for _ in self._steps(self.problem, self.order[self.position :]):
                    if self.interrupts.asked():
                        return "interrupted"
                    if self.position % TICK == 0 or self.position == len(self.order):
                        self._tick()
        except Abandoned:
            return "interrupted"
        self.state = self.trainer.finish_pass(self.problem, self.state)
        self.passes, self.position = self.passes + 1, 0
        return self._after_pass()

    def _steps(self, problem: Problem, items: npt.NDArray[np.int64]) -> Iterator[int]:
        """Updates for the items in order, many at a time where there is code for that, but not beyond the next tick."""
        for made in updates(problem, self.trainer, self.state, items, TICK, self.position):
            self.starts.keep()
            self.state = made.state
            self.changed |= made.changed
            self.position += made.n_updates
            self.oracle_calls += made.calls
            yield made.n_updates

    @contextmanager
    def _weights_first(self) -> Iterator[None]:
        """Where the weights are not finite, that is the cause of whatever goes wrong, and not the oracle."""
        try:
            yield
        except Abandoned:
            raise
        except Exception:
            self._finite_weights()
            raise

    def _finite_weights(self) -> Vector:
        """The weights to return; ConvergenceError where they are not finite."""
        with np.errstate(over="ignore", invalid="ignore"):  # that is what is looked for
            weights = self.closed[0] if self.closed is not None else self.trainer.weights(self.problem, self.state)
        check_finite(weights, self.trainer, self.problem.lam, self.passes)
        return weights

    def _tick(self) -> None:
        now = time.perf_counter()
        self.display.update(self.passes, self.position / max(len(self.order), 1), self.history)
        if now - self.saved >= self.settings.checkpoint_seconds or self.trainer.kept_elsewhere(self.state):
            self._save()

    def _save(self) -> None:
        """Write a checkpoint, if one is wanted. Where it cannot be written, training continues: the next one may succeed."""
        with self.interrupts.held():
            if self.settings.checkpoint is None:
                return
            self._finite_weights()
            try:
                save_checkpoint(self.settings.checkpoint, self._snapshot())
            except (StorageError, DataError) as error:
                warnings.warn(
                    f"no checkpoint after {self.passes} passes: {error}; training continues",
                    CheckpointWarning,
                    stacklevel=callers_level(),
                )
            self.saved = time.perf_counter()

    def _after_pass(self) -> str | None:
        with np.errstate(over="ignore", invalid="ignore"):
            doubt = any(part.in_doubt() for part in self.state if hasattr(part, "in_doubt"))
        if doubt:
            self._finite_weights()
        settings = self.settings
        if not self.changed and self.passes == 1:
            warnings.warn(_NO_UPDATE, NoUpdateWarning, stacklevel=callers_level())
        estimate = self.trainer.gap_estimate(self.problem, self.state)
        last = self.history[-1] if self.history else None
        scale = abs(last["primal"]) if last and last["primal"] is not None else 0.0
        near = settings.tol > 0 and estimate is not None and estimate <= settings.tol * scale
        row = self._record(check=self.passes % settings.check_every == 0 or near or self.passes == settings.max_iter)
        if any([callback(dict(row)) for callback in settings.callbacks]):  # a list: every callback is called
            return "callback"
        return self._met()

    def _met(self) -> str | None:
        """Which of the goals, if any, the last row of the history has reached."""
        settings, row = self.settings, self.history[-1]
        if settings.patience is not None and self.stale >= settings.patience:
            return "dev"
        gap, primal = row["gap"], row["primal"]
        small = gap is not None and primal is not None and gap <= settings.tol * abs(primal)
        if settings.tol > 0 and small and not crossing(primal, row["dual"]):  # a gap below zero is no success
            return "tol"
        return "tol" if self.trainer.finished(self.problem, self.state) else None

    def _record(self, check: bool, replace: bool = False) -> Record:
        """Append a row to the history; with the objective and the dual value if `check`."""
        score = None
        if self.settings.dev is not None and not replace:
            weights = self._finite_weights()
            found = self.settings.dev(weights)
            score = float(found) if isinstance(found, int | float | np.number) else float("nan")
            if not np.isfinite(score):
                raise ParameterError(f"dev: a held-out score must be a finite number, got {found!r} after pass {self.passes}")
            if self.best_dev is None or score > self.best_dev:
                self.best_dev, self.best_weights, self.stale = score, weights, 0
            else:
                self.stale += 1
        elif replace and self.history and self.history[-1]["passes"] == self.passes:
            score = self.history.pop()["dev_score"]
        if check:
            self.display.update(self.passes, 0.0, self.history, "computing the objective")
        with self._weights_first():
            primal, dual = self._objective() if check else (None, None)
        self.seconds, self.cpu_seconds = time.perf_counter() - self.clock, time.process_time() - self.cpu_clock
        row: Record = {
            "passes": self.passes, "seconds": self.seconds, "cpu_seconds": self.cpu_seconds, "oracle_calls": self.oracle_calls,
            "primal": primal, "dual": dual, "gap": None if primal is None or dual is None else primal - dual,
            "dev_score": score,
        }  # fmt: skip
        self.history.append(row)
        self.display.tell(self.history)
        log.info("pass %(passes)d: primal %(primal)s dual %(dual)s dev %(dev_score)s", row)
        return row

    def _objective(self) -> tuple[float | None, float | None]:
        """(primal, dual). Where nothing continues from the state, a trainer may have `last_objective`, which gives the weights to
        return as well: it writes them over the state, of which only `finished` and `report` are asked afterwards.
        """
        settings = self.settings
        if self.closed is None and self.passes == settings.max_iter and not (settings.keep or settings.checkpoint):
            last = stand_in(self.trainer, "last_objective", ("weights", "objective"))
            self.closed = None if last is None else last(self.problem, self.state)
        found = self.trainer.objective(self.problem, self.state) if self.closed is None else self.closed[1:]
        return self.bounds.checked(found, self.passes, self._finite_weights)

    def _fingerprint(self) -> str:
        """Digest of everything that affects the run except its length."""
        from structpred import __version__

        trainer, surrogate = self.trainer, self.problem.surrogate
        settings = {**vars(trainer), "trainer": type(trainer).__name__, "seed": self.settings.seed, "lam": self.problem.lam}
        losses = {**vars(surrogate), "surrogate": type(surrogate).__name__}
        named = sorted(settings.items()), sorted(losses.items(), key=str), self.problem.regulariser.fingerprint(), __version__
        return hashlib.sha256(repr((*named, self.problem.task.fingerprint())).encode()).hexdigest()

    def _snapshot(self) -> Progress:
        self.seconds, self.cpu_seconds = time.perf_counter() - self.clock, time.process_time() - self.cpu_clock
        rest = {one.name: getattr(self, one.name) for one in fields(Progress) if one.name not in ("arrays", "rng")}
        return Progress(arrays=flatten(self.state) | self.starts.saved(), rng=dict(self.rng.bit_generator.state), **rest)

    def _restore(self, saved: Progress) -> None:
        self._check_order(saved)
        if saved.best_weights is not None and (
            fault := Values().fault(saved.best_weights, self.trainer.weights(self.problem, self.state))
        ):
            raise CheckpointError(f"best_weights: {fault}")
        like = self.trainer.state_after(self.problem, self.state, saved.passes)
        self.state = rebuild(like, self.starts.restored(saved.arrays), self.trainer.state_dim(self.problem))
        self.rng.bit_generator.state = saved.rng
        for name, value in vars(saved).items():
            if name not in ("arrays", "rng"):
                setattr(self, name, list(value) if name == "history" else value)
        try:
            self.bounds.read(self.history)
        except OracleError as error:
            raise CheckpointError(f"history: {error}") from error

    def _check_order(self, saved: Progress) -> None:
        """The items that are left of this pass are such as the trainer takes."""
        new = self.trainer.order(self.problem, self.state, np.random.Generator(np.random.PCG64(0)), 0)
        n, least = len(self.problem.task), int(new.min(initial=0))
        rule = Values(-n if least < 0 else 0, max(n - 1, int(new.max(initial=0))), grows=True)
        if fault := rule.fault(saved.order, new):
            raise CheckpointError(f"order: {fault}")
        if saved.position > len(saved.order):
            raise CheckpointError(f"position: {saved.position} of {len(saved.order)} items are done")


_OPEN = (
    "more passes will not close the gap: searches leave it open, whose bounds lie above what they find. Let them search further "
    "(max_nodes of a composed oracle, an exact oracle, the options of slack searches), or train on a relaxation (argmax_relaxed)"
)
_NO_UPDATE = (
    "the first pass over the data changed nothing. Either every prediction was right from the start, or the oracle always "
    "returns the truth, or features or losses are all zero. Run check_oracle on the oracle and look at the features."
)
