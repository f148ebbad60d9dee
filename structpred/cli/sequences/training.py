"""What `structpred train chain` does with column files, CRFsuite text and OCR letters."""

import logging
import math
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from structpred.cli.kinds.sequences import Options
from structpred.cli.sequences.data import Data, Reader, head_of, read_data, shards_of
from structpred.cli.training import Training
from structpred.core.types import Integers
from structpred.errors import DataError, ParameterError
from structpred.evaluation.model_selection import sequence_score
from structpred.io.columns import COLUMN_FORMATS, ROW_FORMATS, ColumnCorpus
from structpred.io.guesses import looks_like
from structpred.io.templates.templates import load_templates
from structpred.io.text import split_lines
from structpred.models import ChainLabeler

log = logging.getLogger("structpred.cli")


class Run(Training[Options]):
    """Train a ChainLabeler on labelled sequences."""

    shardable = foldable = True

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self.score = options.dev_metric

    def conflicts(self) -> dict[str, bool]:
        """For options that do not go together the message, and whether they were given."""
        options = self.options
        columns, shards, rows = options.format in COLUMN_FORMATS, options.shards is not None, options.format in ROW_FORMATS
        return {
            "--template is needed: chunking, ner, pos, or a CRF++ template file": rows and options.template is None,
            f"--template is for column files, not for --format {options.format}": not rows and options.template is not None,
            f"--label-column is for column files, not for --format {options.format}": not columns and options.label_column != -1,
            "--n-bits is for named features, not for pixels": options.format == "ocr" and options.n_bits is not None,
            "--min-count has no effect with --n-bits: hashing keeps no counts": options.n_bits is not None
            and options.min_count > 1,
            "--min-count is for named features, not for pixels": options.format == "ocr" and options.min_count > 1,
            f"--no-intercept is for pixels, not for --format {options.format}": options.format != "ocr"
            and not options.fit_intercept,
            "--folds and --dev-folds are for --format ocr": options.format != "ocr" and bool(options.folds or options.dev_folds),
            "--dev-folds needs --dev FILE (the same file as TRAIN, perhaps)": options.dev_folds is not None
            and options.dev is None,
            "--dev FILE and --dev-fraction exclude each other": options.dev is not None and options.dev_fraction is not None,
            "--shards is for column files and CRFsuite text, not for pixels and JSON lines": shards
            and options.format in ("ocr", "jsonl"),
            "--shards and --dev-fraction exclude each other: give --dev FILE": shards and options.dev_fraction is not None,
            "--patience needs --dev FILE or --dev-fraction": options.patience is not None and not self.holds_out(),
        }

    def holds_out(self) -> bool:
        """Whether there are held-out data."""
        return self.options.dev is not None or self.options.dev_fraction is not None

    def inputs(self) -> list[str]:
        """The template, if it is a file."""
        return [] if self.options.template is None else [self.options.template]

    def read(self) -> dict[str, int]:
        """Templates, the data, and the held-out data; raises DataError, ParameterError for templates that read the labels."""
        options = self.options
        self.templates = load_templates(options.template) if options.template is not None else None
        self.features: dict[str, Any] = {"template": self.templates, "min_count": options.min_count, "n_bits": options.n_bits}
        given = Reader(options.format, options.label_column, template=options.template, missing=options.missing or None)
        if options.shards is None:
            data, reader = _read(options.data, given, options.folds, options)
            self.train = (data.corpus, data.labels or [])
            sizes = {"sequences": data.n_sequences, "tokens": data.n_tokens}
        else:  # what is wrong with all lines is found in the first ones
            reader = _with_columns(head_of(options.data, given, options.encoding), given)
            sizes = self.cut(shards_of(options.data, options.shards, reader, options.encoding))
        self.reader = reader.to_dict()
        for template in self.templates or ():
            if any(atom.column == reader.label_column for atom in template.atoms):  # it would learn to copy the label
                raise ParameterError(
                    f"--template {reader.template}: {template.name!r} reads column {reader.label_column}, which holds the "
                    f"labels; the data have {reader.n_columns} columns, numbered from 0"
                )
        dev = None if options.dev is None else _read(options.dev, reader, options.dev_folds, options)[0]
        if dev is not None and dev.labels is None:
            raise DataError(f"{options.dev}: expected {reader.n_columns} columns with labels in the last, as in {options.data}")
        self.dev = None if dev is None else (dev.corpus, dev.labels)
        if options.dev_fraction is not None:
            from structpred.tuning.estimators import held_out

            self.train, self.dev = held_out(self.train, _drawn(len(self.train[1]), options.dev_fraction, options.seed))
        return sizes

    def prepare(self) -> None:
        """Make the features."""
        dev = self.dev
        input_, X = self.estimator({})._input_for(self.train[0])
        self.train = input_.fit_transform(X), self.train[1]
        self.dev = None if dev is None else (input_.transform(dev[0]), dev[1])
        self.features = {}

    def estimator(self, common: dict[str, Any]) -> ChainLabeler:
        """The labeller."""
        options = self.options
        return ChainLabeler(
            fit_intercept=options.fit_intercept,
            dev_metric=None if options.dev_metric == "token_accuracy" else partial(sequence_score, figure="f1"),
            constraints=options.constraints,
            coding=options.coding,
            missing=options.missing or None,
            n_jobs=options.n_jobs,
            **self.features,
            **common,
        )

    def end(self, model: ChainLabeler) -> dict[str, Any]:
        """The event of the end."""
        return {**super().end(model), "n_features": model.n_features_in_, "labels": model.classes_.tolist()}

    def shape(self, model: ChainLabeler) -> str:
        """Features and labels."""
        return f"{model.n_features_in_} features, {len(model.classes_)} labels"


def _read(path: str, reader: Reader, folds: Sequence[int] | None, options: Options) -> tuple[Data, Reader]:
    """The data, and the reader with the numbers of columns filled in."""
    start = time.perf_counter()
    data = read_data(path, reader, folds, encoding=options.encoding, on_error=options.on_error)
    reader = _with_columns(data, reader)
    labels = {label for sequence in data.labels or [] for label in sequence} - {options.missing}
    log.info(
        "read %s: %d sequences, %d tokens, %d labels (%.1f s)",
        data.corpus.name,
        data.n_sequences,
        data.n_tokens,
        len(labels),
        time.perf_counter() - start,
    )
    return data, reader


def _with_columns(data: Data, reader: Reader) -> Reader:
    """The reader with the numbers of columns filled in; DataError where there is no column for the labels."""
    if isinstance(data.corpus, ColumnCorpus) and data.corpus.n_columns == 1:
        hint = looks_like(split_lines((data.corpus.text or "")[: 1 << 16]))
        wanted = "tags, or entities," if reader.format == "jsonl" else "at least 2 columns, one of them the labels,"
        raise DataError(f"{data.corpus.where(0)}: expected {wanted} got {'none' if reader.format == 'jsonl' else 1}{hint}")
    if reader.format in ROW_FORMATS and reader.n_columns is None:
        width = data.corpus.n_columns  # type: ignore[union-attr]
        return replace(reader, n_columns=width, label_column=(reader.label_column or 0) % width)
    return reader if reader.format in ROW_FORMATS else replace(reader, label_column=None)


def _drawn(n: int, fraction: float, seed: int) -> Integers:
    """The numbers of the sequences held out."""
    n_out = math.ceil(fraction * n - 1e-9)
    if n_out == n:
        raise ParameterError(f"--dev-fraction {fraction:g} leaves nothing to train on: TRAIN has {n} sequences")
    return np.sort(np.random.default_rng(seed).permutation(n)[:n_out])
