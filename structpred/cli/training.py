"""What `structpred train chain` does: check everything, read, fit, save, and tell what happened."""

import logging
import math
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from structpred.cli.corpora import Data, Reader, features_of, read_data
from structpred.cli.runs import REASONS, Events, Reporter, check_run_files, interrupted, stamp
from structpred.cli.session import EXIT_NOT_CONVERGED, Session, Stop
from structpred.cli.trainer_options import check_trainer, trainer_of
from structpred.errors import DataError, ParameterError
from structpred.evaluation import evaluate_sequences
from structpred.evaluation.selection import select_sequences
from structpred.io.columns import ColumnCorpus
from structpred.io.recognise import looks_like
from structpred.io.templates.templates import Template, load_templates
from structpred.io.text import split_lines
from structpred.models import ChainLabeler
from structpred.runtime.threads import checked_jobs
from structpred.trainers.checkpoints import remove_checkpoint

log = logging.getLogger("structpred.cli")

COLUMN_FORMATS = ("conll2000", "columns")


@dataclass(frozen=True)
class TrainOptions:
    """The options of `train chain`, under their own names."""

    data: str
    output: str
    format: str
    template: str | None
    label_column: int
    folds: tuple[int, ...] | None
    trainer: str
    surrogate: str | None
    constraints: str | None
    C: float
    max_iter: int
    tol: float
    check_every: int
    min_count: int
    n_bits: int | None
    dev: str | None
    dev_fraction: float | None
    dev_folds: tuple[int, ...] | None
    dev_metric: str
    patience: int | None
    n_jobs: int | None
    seed: int
    checkpoint: str | None
    resume: bool
    strict: bool
    as_json: bool
    encoding: str
    on_error: str

    @property
    def checkpoint_path(self) -> Path:
        """The file given, else one beside the model."""
        return Path(self.checkpoint or f"{self.output}.ckpt")


def train_chain(options: TrainOptions, session: Session) -> None:
    """Run the command. Raises our errors, or Stop: interrupted, or not converged under --strict."""
    check_usage(options)
    check_files(options)
    events = Events(options.as_json)
    templates = load_templates(options.template) if options.template is not None else None
    reader = Reader(options.format, options.label_column, template=options.template)
    data, reader = _read(options.data, reader, options.folds, options)
    if templates is not None:
        _check_templates(templates, reader)
    dev = None if options.dev is None else _read(options.dev, reader, options.dev_folds, options)[0]
    if dev is not None and dev.labels is None:
        raise DataError(f"{options.dev}: expected {reader.n_columns} columns with labels in the last, as in {options.data}")
    hashed = options.n_bits is not None
    events.emit("start", sequences=data.n_sequences, tokens=data.n_tokens, options=asdict(options))
    model = _model(options, templates, events)
    X, y = features_of(data, hashed=hashed), data.labels or []
    held_out = None if dev is None else (features_of(dev, hashed=hashed), dev.labels)
    if options.dev_fraction is not None:
        (X, y), held_out = _split(X, y, options.dev_fraction, options.seed)
    before = stamp(options.checkpoint_path)
    try:
        model.fit(X, y, dev=held_out)
        model.reader_ = reader.to_dict()
        model.save(options.output)
    except KeyboardInterrupt:
        raise interrupted(options.checkpoint_path, options.resume, session, events, before) from None
    if options.checkpoint is None:
        remove_checkpoint(options.checkpoint_path)
    _finish(options, model, events)


def check_usage(options: TrainOptions) -> None:
    """Raise ParameterError for options that do not go together; reads nothing."""
    check_trainer(options.trainer, options.surrogate, strict=options.strict)
    checked_jobs(options.n_jobs)
    columns = options.format in COLUMN_FORMATS
    wrong = {
        "--template is needed: chunking, ner, pos, or a CRF++ template file": columns and options.template is None,
        f"--template is for column files, not for --format {options.format}": not columns and options.template is not None,
        f"--label-column is for column files, not for --format {options.format}": not columns and options.label_column != -1,
        "--n-bits is for named features, not for pixels": options.format == "ocr" and options.n_bits is not None,
        "--min-count has no effect with --n-bits: hashing keeps no counts": options.n_bits is not None and options.min_count > 1,
        "--min-count is for named features, not for pixels": options.format == "ocr" and options.min_count > 1,
        "--folds and --dev-folds are for --format ocr": options.format != "ocr" and bool(options.folds or options.dev_folds),
        "--dev-folds needs --dev FILE (the same file as TRAIN, perhaps)": options.dev_folds is not None and options.dev is None,
        "-C and --tol must be finite numbers": not (math.isfinite(options.C) and math.isfinite(options.tol)),
        "--dev FILE and --dev-fraction exclude each other": options.dev is not None and options.dev_fraction is not None,
        "--patience needs --dev FILE or --dev-fraction": options.patience is not None
        and options.dev is None
        and options.dev_fraction is None,
        "--strict needs --tol: how close is close enough, such as --tol 0.01": options.strict and options.tol == 0,
        "-o MODEL must be a file: a model cannot go to standard output": options.output == "-",
        "--checkpoint must be a file, not -": options.checkpoint == "-",
        "TRAIN and --dev cannot both be standard input": options.data == options.dev == "-",
    }
    for message, holds in wrong.items():
        if holds:
            raise ParameterError(message)


def check_files(options: TrainOptions) -> None:
    """Raise DataError for what could not be written in the end, and CheckpointError where there is nothing to resume."""
    others = [] if options.template is None else [options.template]
    check_run_files(options.data, options.dev, others, options.output, options.checkpoint_path, options.resume)


def _read(path: str, reader: Reader, folds: Sequence[int] | None, options: TrainOptions) -> tuple[Data, Reader]:
    """The data, and the reader with the numbers of columns filled in."""
    start = time.perf_counter()
    data = read_data(path, reader, folds, encoding=options.encoding, on_error=options.on_error)
    if isinstance(data.corpus, ColumnCorpus) and data.corpus.n_columns == 1:
        hint = looks_like(split_lines((data.corpus.text or "")[: 1 << 16]))
        raise DataError(f"{data.corpus.where(0)}: expected at least 2 columns, one of them the labels, got 1{hint}")
    if reader.format in COLUMN_FORMATS and reader.n_columns is None:
        width = data.corpus.n_columns  # type: ignore[union-attr]
        reader = replace(reader, n_columns=width, label_column=(reader.label_column or 0) % width)
    elif reader.format not in COLUMN_FORMATS:
        reader = replace(reader, label_column=None)
    labels = {label for sequence in data.labels or [] for label in sequence}
    log.info(
        "read %s: %d sequences, %d tokens, %d labels (%.1f s)",
        data.corpus.name,
        data.n_sequences,
        data.n_tokens,
        len(labels),
        time.perf_counter() - start,
    )
    return data, reader


def _split(X: Any, y: Sequence[Any], fraction: float, seed: int) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    """The sequences to train on and those held out, each as (X, y) in the order of the file."""
    n_out = math.ceil(fraction * len(y) - 1e-9)
    if n_out == len(y):
        raise ParameterError(f"--dev-fraction {fraction:g} leaves nothing to train on: TRAIN has {len(y)} sequences")
    drawn = np.random.default_rng(seed).permutation(len(y))
    parts = (np.sort(chosen).tolist() for chosen in (drawn[n_out:], drawn[:n_out]))
    train, held_out = ((select_sequences(X, part), [y[i] for i in part]) for part in parts)
    return train, held_out


def _check_templates(templates: Sequence[Template], reader: Reader) -> None:
    """A template that reads the label would learn to copy it."""
    for template in templates:
        if any(atom.column == reader.label_column for atom in template.atoms):
            raise ParameterError(
                f"--template {reader.template}: {template.name!r} reads column {reader.label_column}, which holds the labels; "
                f"the data have {reader.n_columns} columns, numbered from 0"
            )


def _model(options: TrainOptions, templates: list[Template] | None, events: Events) -> ChainLabeler:
    metric = None if options.dev_metric == "token_accuracy" else _f1
    return ChainLabeler(
        trainer_of(options.trainer),
        options.C,
        options.max_iter,
        options.tol,
        template=templates,
        min_count=options.min_count,
        n_bits=options.n_bits,
        check_every=options.check_every,
        patience=options.patience,
        dev_metric=metric,
        surrogate=options.surrogate,
        constraints=options.constraints,
        n_jobs=options.n_jobs,
        callbacks=Reporter(events),
        checkpoint=options.checkpoint_path,
        resume=options.resume,
        random_state=options.seed,
    )


def _f1(gold: Sequence[Any], predicted: Sequence[Any]) -> float:
    return evaluate_sequences(gold, predicted).f1


def _finish(options: TrainOptions, model: ChainLabeler, events: Events) -> None:
    certificate, last = model.certificate_, model.history_[-1]
    scores = [row["dev_score"] for row in model.history_ if row["dev_score"] is not None]
    best = max(scores) if scores else None
    events.emit(
        "end",
        model=options.output,
        stop_reason=model.stop_reason_,
        passes=model.n_iter_,
        seconds=last["seconds"],
        cpu_seconds=last["cpu_seconds"],
        primal=certificate.primal,
        dual=certificate.dual,
        gap=certificate.gap,
        relative_gap=certificate.relative_gap,
        proven=certificate.proven,
        converged=model.converged_,
        dev_score=best,
        n_features=model.n_features_in_,
        labels=model.classes_.tolist(),
    )
    size = Path(options.output).stat().st_size / 1e6
    why = REASONS.get(model.stop_reason_, model.stop_reason_)
    log.info("trained %d passes in %.1f s (%s): %s", model.n_iter_, last["seconds"] or 0.0, why, certificate)
    if best is not None:
        log.info("best dev score: %.2f %% (%s), these weights are kept", 100 * best, options.dev_metric)
    log.info("wrote %s: %d features, %d labels, %.1f MB", options.output, model.n_features_in_, len(model.classes_), size)
    if options.strict and not model.converged_:
        gap = certificate.relative_gap
        reached = "the gap is not known" if gap is None else f"the gap is {100 * gap:.3g} % of the primal"
        raise Stop(
            EXIT_NOT_CONVERGED,
            f"not converged: {reached}, --tol asks for {100 * options.tol:.2g} %; the model was written all the same",
        )
