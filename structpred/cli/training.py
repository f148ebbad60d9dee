"""The course of every `structpred train` command: check everything, read, fit, save, and report what happened."""

import json
import logging
import math
import os
import shlex
import shutil
import signal
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from structpred.cli.files import check_output
from structpred.cli.session import EXIT_NOT_CONVERGED, Session, Stop, interrupted
from structpred.cli.training_options import TrainingOptions, check_objective, loss_of, regulariser_of, signs_of, trainer_of
from structpred.core.result import Record
from structpred.errors import CheckpointError, ParameterError
from structpred.runtime.interrupts import hear
from structpred.runtime.threads import checked_jobs
from structpred.trainers.running.checkpoints import begun, claimed, remove_checkpoint

if TYPE_CHECKING:
    from structpred.distributed import Shards

log = logging.getLogger("structpred.cli")

Options = TypeVar("Options", bound=TrainingOptions)
Stamp = tuple[int, int] | None
#: why a run ended, for people
REASONS = {
    "max_iter": "as many as --max-iter",
    "search_bound": "as many as --max-iter; most of the gap is left open by searches, not by training",
    "tol": "--tol reached",
    "dev": "--patience",
    "no_updates": "nothing left to learn",
}


class Events:
    """Lines of JSON on stdout, if they are wanted. A reader that goes away does not stop the training.

    stages: the names of the parts of the training, where there are several; each row of the history holds the number of its part.
    """

    def __init__(self, wanted: bool, stages: Sequence[str] = ()) -> None:
        self.wanted, self.stages = wanted, stages

    def emit(self, event: str, **fields: Any) -> None:
        """Write one event."""
        if not self.wanted:
            return
        try:
            sys.stdout.write(json.dumps({"event": event, **fields}) + "\n")
            sys.stdout.flush()
        except OSError as error:
            self.wanted = False
            sys.stdout = None
            log.warning("the events on standard output are lost from here on (%s); training continues", error.strerror)

    def passed(self, row: Record) -> None:
        """Write the event of one pass, a row of the history."""
        number = int(row.pop("stage", None) or 1)
        stage = {"stage": self.stages[number - 1]} if self.stages else {}
        self.emit("pass", **stage, **row)


class Training(ABC, Generic[Options]):
    """One run of a `train` command; a kind of model says what is particular to it.

    stages: the names of the parts of the training, where there are several. score: what held-out data are scored by.
    train, dev, reader: what `read` keeps for `fit`: the training data and the held-out ones as the estimator takes them, and
    how they were read, which later commands must know to read their data alike. lacks: as of Kind.
    shardable: whether it can be trained on shards of the data; where --shards asks for it, `read` then calls `cut`.
    foldable: whether parts of `train` can be held out by `tuning.estimators.held_out`.
    """

    lacks: Sequence[str] = ()
    shardable: ClassVar[bool] = False
    foldable: ClassVar[bool] = False
    stages: tuple[str, ...] = ()
    score: str = "score"
    train: tuple[Any, ...]
    dev: Any = None
    reader: dict[str, Any]
    shards: "Shards"

    def __init__(self, options: Options) -> None:
        self.options = options

    def conflicts(self) -> dict[str, bool]:
        """For options that do not go together the message, and whether they were given. Nothing is read."""
        return {}

    def inputs(self) -> list[str]:
        """Further files that are read, which nothing must be written over."""
        return []

    def holds_out(self) -> bool:
        """Whether there are held-out data, by which the weights are chosen."""
        return self.options.dev is not None

    @abstractmethod
    def read(self) -> dict[str, int]:
        """Read all data, and keep them; returns their sizes by name, for the event of the start."""

    @abstractmethod
    def estimator(self, common: dict[str, Any]) -> Any:
        """The estimator, with the settings that all have in `common`."""

    def fit(self, model: Any) -> None:
        """Fit the estimator to what was read, and set its `reader_`."""
        options = self.options
        if options.shards is None:
            model.fit(*self.train, dev=self.dev)
        else:
            from structpred.distributed import fit

            every = options.store_every or 1
            fit(model, self.shards, client=options.scheduler, store=options.store_path, dev=self.dev, every=every)
        model.reader_ = self.reader

    def cut(self, shards: "Shards") -> dict[str, int]:
        """Keep the shards; returns what `read` does."""
        self.shards = shards
        n, size = len(shards), os.path.getsize(self.options.data)
        log.info("%s: %d shards of about %.1f MB", self.options.data, n, size / n / 1e6)
        return {"shards": n, "bytes": size}

    def hold_out(self, n_folds: int, fold: int) -> None:
        """After `read`: hold out one of n_folds parts of the training data, drawn by --seed. ParameterError if it cannot be."""
        if not self.foldable:
            raise ParameterError("--cv: this kind of model has no folds; give held-out data, --dev FILE")
        from structpred.tuning.estimators import held_out
        from structpred.tuning.halving import fold_members

        self.train, self.dev = held_out(self.train, fold_members(len(self.train[-1]), n_folds, self.options.seed)[fold])

    def prepare(self) -> None:
        """After all of these: do once what every `fit` would do again, where several models are trained on the same data."""

    def grid(self) -> list[dict[str, Any]]:
        """What `structpred tune` tries where it is not told: values of options by name. Reads the data, if there is anything."""
        return []

    def checkpoints(self) -> list[Path]:
        """The files in which the state of the run is kept."""
        return [self.options.checkpoint_path]

    def end(self, model: Any) -> dict[str, Any]:
        """What the event of the end says."""
        return {**stage_facts(model), "dev_score": best_dev_score(model)}

    def tell(self, model: Any) -> None:
        """Say on the log how training went."""
        tell_stage(model)
        if (best := best_dev_score(model)) is not None:
            log.info("best dev score: %.2f %% (%s), these weights are kept, any bounds are theirs", 100 * best, self.score)

    @abstractmethod
    def shape(self, model: Any) -> str:
        """What the model file holds, in a few words: how many features, labels and so on."""


def run_training(training: Training[Any], values: Mapping[str, Any], session: Session) -> None:
    """Run the command. Raises our errors, or Stop: interrupted, or not converged under --strict."""
    options = training.options
    check_usage(training)
    _check_files(training)
    events = Events(options.as_json, training.stages)
    sizes = training.read()
    events.emit("start", **sizes, options=dict(values))
    model = training.estimator(common_settings(options, events.passed, verbose=not session.quiet))
    before = list(map(_stamp, training.checkpoints()))
    try:
        training.fit(model)
        model.save(options.output)
    except KeyboardInterrupt:
        hear(signal.SIG_IGN)  # a second signal is too late to lose the line that says how to go on
        raise _interrupted(training, session, events, before) from None
    if options.checkpoint is None:
        for path in training.checkpoints():
            remove_checkpoint(path)
        if options.shards is not None and options.store is None:
            shutil.rmtree(options.store_path, ignore_errors=True)
    events.emit("end", model=options.output, **training.end(model))
    training.tell(model)
    log.info("wrote %s: %s, %.1f MB", options.output, training.shape(model), Path(options.output).stat().st_size / 1e6)
    if options.strict and not model.converged_:
        gap = model.certificate_.relative_gap
        reached = "the gap is not known" if gap is None else f"the gap is {100 * gap:.3g} % of the primal"
        asked = f"--tol asks for {100 * options.tol:.2g} %"
        raise Stop(EXIT_NOT_CONVERGED, f"not converged: {reached}, {asked}; the model was written anyway")


def refuse_conflicts(conflicts: Mapping[str, bool]) -> None:
    """Raise ParameterError with the first message that holds."""
    for message, holds in conflicts.items():
        if holds:
            raise ParameterError(message)


def check_usage(training: Training[Any]) -> None:
    """Raise ParameterError for options that do not go together; reads nothing."""
    options, shards = training.options, training.options.shards is not None
    check_objective(options, training.lacks)
    checked_jobs(options.n_jobs)
    refuse_conflicts(
        {
            **training.conflicts(),
            "-C and --tol must be finite numbers": not (math.isfinite(options.C) and math.isfinite(options.tol)),
            "--patience needs --dev FILE": options.patience is not None and not training.holds_out(),
            "--strict needs --tol: how close is close enough, such as --tol 0.01": options.strict and options.tol == 0,
            "-o MODEL must be a file: a model cannot go to standard output": options.output == "-",
            "--checkpoint must be a file, not -": options.checkpoint == "-",
            "--signs must be a file, not -": options.signs == "-",
            "--scheduler, --store and --store-every need --shards N": (
                not shards and any(x is not None for x in (options.scheduler, options.store, options.store_every))
            ),
            # what --shards does not take, whatever the kind of model
            "--shards: models of this kind are trained on all data at once; leave --shards out": (
                shards and not training.shardable
            ),
            "--shards: TRAIN must be a plain file, not -": shards and options.data == "-",
            "--shards needs --on-error raise: what is left out would be another cut": shards and options.on_error != "raise",
            "--signs is for training without --shards": shards and options.signs is not None,
            "--n-jobs is for training without --shards, whose processes have one thread each": (
                shards and options.n_jobs is not None
            ),
            "only one of the files can be standard input": [options.data, options.dev, *training.inputs()].count("-") > 1,
        }
    )


def _check_files(training: Training[Any]) -> None:
    """Raise DataError for what could not be written in the end, and CheckpointError where there is nothing to resume."""
    options, path = training.options, training.options.checkpoint_path
    inputs: Sequence[str | None] = (options.data, options.dev, options.signs, *training.inputs())
    signs_of(options.signs, options.encoding)  # what is wrong with them is said before the data are read
    check_output(options.output, "-o", inputs)
    check_output(str(path), "--checkpoint", [*inputs, options.output])
    with claimed(path):  # another run that writes it is an error now, not after all is read
        there = any(map(begun, training.checkpoints()))
    if options.resume and not there:
        raise CheckpointError(f"{path}: there is no checkpoint to resume from; leave --resume out to start from the beginning")
    if there and not options.resume:
        log.warning("%s is from an earlier run and will be replaced; --resume would continue it", path)


def common_settings(options: TrainingOptions, callback: Callable[[Record], None] | None, *, verbose: bool) -> dict[str, Any]:
    """The settings that all estimators have, from the options of a command."""
    return {
        "trainer": trainer_of(options.trainer),
        "loss": loss_of(options.loss),
        "regulariser": regulariser_of(options.regulariser),
        "signs": signs_of(options.signs, options.encoding),
        **{name: getattr(options, name) for name in ("C", "max_iter", "tol", "surrogate", "check_every", "patience", "resume")},
        "callbacks": callback,
        "checkpoint": options.checkpoint_path,
        "random_state": options.seed,
        "verbose": int(verbose),
    }


def _interrupted(training: Training[Any], session: Session, events: Events, before: list[Stamp]) -> Stop:
    """How an interrupted run ends: the checkpoint, if there is one of this run, and the command that continues it.

    before: the stamps of the checkpoints' files before the run.
    """
    options, files = training.options, training.checkpoints()
    now = list(map(_stamp, files))
    path = next((file for file, stamp in zip(files, now, strict=True) if stamp is not None), files[0])
    kept = any(stamp is not None for stamp in now) and (options.resume or now != before)
    events.emit("interrupted", checkpoint=str(path) if kept else None)
    if not kept:
        return interrupted("there was no checkpoint yet, nothing was written")
    command = shlex.join(["structpred", *session.arguments, *([] if options.resume else ["--resume"])])
    return interrupted(f"the run is kept in {path}, no model was written. To continue:\n  {command}")


def _stamp(path: Path) -> Stamp:
    """What distinguishes one writing of a file from another; None where there is no file."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_ino, status.st_mtime_ns


def stage_facts(stage: Any) -> dict[str, Any]:
    """One stage of the training, or all of it, as an event has it."""
    certified = ("primal", "dual", "gap", "relative_gap", "proven")
    return {
        "stop_reason": stage.stop_reason_,
        "passes": stage.n_iter_,
        **{name: stage.history_[-1][name] for name in ("seconds", "cpu_seconds")},
        **{name: getattr(stage.certificate_, name) for name in certified},
        "converged": stage.converged_,
    }


def tell_stage(stage: Any, name: str = "") -> None:
    """Two lines on the log about one stage of the training, or all of it: the numbers, and what they mean."""
    why = REASONS.get(stage.stop_reason_, stage.stop_reason_)
    seconds = stage.history_[-1]["seconds"] or 0.0
    log.info("%strained %d passes in %.1f s (%s): %s", name, stage.n_iter_, seconds, why, stage.certificate_)
    log.info("%s%s", name, stage.certificate_.meaning())


def tell_read(name: str, what: str, start: float) -> None:
    """Say on the log what was read of a file, and how long it took; start: of `time.perf_counter`."""
    log.info("read %s: %s (%.1f s)", name, what, time.perf_counter() - start)


def best_dev_score(model: Any) -> float | None:
    """The best score on held-out data; None where there were none."""
    return max((row["dev_score"] for row in model.history_ if row["dev_score"] is not None), default=None)
