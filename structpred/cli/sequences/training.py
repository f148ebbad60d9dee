"""What `structpred train chain` does with column files, CRFsuite text and OCR letters, and what `auto` stands for in options."""

import logging
import math
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from structpred.cli.kinds.sequences import Options
from structpred.cli.sequences.data import Data, Reader, head_of, read_data, shards_of
from structpred.cli.training import Training, stage_facts, tell_read
from structpred.core.types import Integers
from structpred.data.tag_schemes import marks_phrases, own_scheme, scheme_of
from structpred.errors import DataError, ParameterError
from structpred.evaluation.model_selection import sequence_score
from structpred.io.columns import COLUMN_FORMATS, ROW_FORMATS, ColumnCorpus
from structpred.io.detection import Detected, detect_format, first_lines
from structpred.io.guesses import looks_like
from structpred.io.templates.templates import load_templates
from structpred.io.text import source_name, split_lines
from structpred.models import ChainLabeler
from structpred.models.chain.stages import FIRST, FOLDS
from structpred.models.stages import stage_checkpoint

log = logging.getLogger("structpred.cli")
#: the schemes whose phrases the F1 of conlleval counts
_SCORED = ("IOB2", "IOB1", "IO", "IOBES")


class Run(Training[Options]):
    """Train a ChainLabeler on labelled sequences."""

    shardable = foldable = True

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self.score = options.dev_metric
        self.stages = () if options.stages == 1 else ("second", "first", "first, of a part")

    def conflicts(self) -> dict[str, bool]:
        """For options that do not go together the message, and whether they were given."""
        options, format = self.options, self.options.format
        columns, rows, ocr = format in COLUMN_FORMATS, format in ROW_FORMATS, format == "ocr"
        shards, hashed, rare = options.shards is not None, options.n_bits is not None, options.min_count > 1
        dev, part = options.dev is not None, options.dev_fraction is not None
        return {
            "--template is needed: chunking, ner, pos, or a CRF++ template file": rows and options.template is None,
            f"--template is for column files, not for --format {format}": not rows and options.template is not None,
            f"--label-column is for column files, not for --format {format}": not columns and options.label_column != -1,
            "--stages 2 is for column files, without --n-bits and --shards": options.stages == 2
            and (not rows or shards or hashed),
            "--n-bits is for named features, not for pixels": ocr and hashed,
            "--min-count has no effect with --n-bits: hashing keeps no counts": hashed and rare,
            "--min-count is for named features, not for pixels": ocr and rare,
            f"--no-intercept is for pixels, not for --format {format}": not ocr and not options.fit_intercept,
            "--folds and --dev-folds are for --format ocr": not ocr and bool(options.folds or options.dev_folds),
            "--dev-folds needs --dev FILE (the same file as TRAIN, perhaps)": options.dev_folds is not None and not dev,
            "--dev FILE and --dev-fraction exclude each other": dev and part,
            "--shards is for column files and CRFsuite text, not for pixels and JSON lines": shards
            and format in ("ocr", "jsonl"),
            "--shards and --dev-fraction exclude each other: give --dev FILE": shards and part,
            "--patience needs --dev FILE or --dev-fraction": options.patience is not None and not (dev or part),
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
            sizes = {"sequences": len(data.corpus), "tokens": data.corpus.n_tokens}
        else:  # what is wrong with all lines is found in the first ones
            data = head_of(options.data, given, options.encoding)
            reader = _with_columns(data, given)
            sizes = self.cut(shards_of(options.data, options.shards, reader, options.encoding))
        self.coding = _coding(options, data.labels or [])
        self.reader = reader._asdict()
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
        alike = {name: getattr(options, name) for name in ("fit_intercept", "constraints", "stages", "n_jobs")}
        metric = None if options.dev_metric == "token_accuracy" else partial(sequence_score, figure="f1")
        own = {**self.features, "coding": self.coding, "missing": options.missing or None, "dev_metric": metric}
        return ChainLabeler(**alike, **own, **common)

    def checkpoints(self) -> list[Path]:
        """Those of the first stage, too."""
        parts = range(FOLDS + 1 if self.stages else 0)
        return [*super().checkpoints(), *(stage_checkpoint(self.options.checkpoint_path, FIRST, part) for part in parts)]

    def end(self, model: ChainLabeler) -> dict[str, Any]:
        """The event of the end."""
        first = {"first": stage_facts(model.first_stage_)} if self.stages else {}
        return {**super().end(model), **first, "n_features": model.n_features_in_, "labels": model.classes_.tolist()}

    def shape(self, model: ChainLabeler) -> str:
        """Features and labels."""
        return f"{model.n_features_in_} features, {len(model.classes_)} labels"


def _coding(options: Options, labels: Sequence[Sequence[str]]) -> str | None:
    """The scheme inside the model; where none is named IOBES, if all labels mark phrases in IOB2, and no file names labels.

    Where most tokens are in no phrase it has no clear gain: with names F1 rose by .2 in folds and fell by .6 on other documents.
    """
    if options.coding is not None:
        return None if options.coding == "none" else options.coding
    counts = Counter(label for row in labels for label in row if label != options.missing)
    dense = 2 * counts["O"] < counts.total() and marks_phrases(counts) and own_scheme(labels) == "iob2"
    if options.signs is not None or not dense:
        return None
    log.info("labels of phrases are learned as IOBES and answered as in %s (--coding none: as they are)", options.data)
    return "iobes"


def _read(path: str, reader: Reader, folds: Sequence[int] | None, options: Options) -> tuple[Data, Reader]:
    """The data, and the reader with the numbers of columns filled in."""
    start = time.perf_counter()
    data = read_data(path, reader, folds, encoding=options.encoding, on_error=options.on_error)
    reader = _with_columns(data, reader)
    labels = {label for sequence in data.labels or [] for label in sequence} - {options.missing}
    sizes = f"{len(data.corpus)} sequences, {data.corpus.n_tokens} tokens, {len(labels)} labels"
    tell_read(data.corpus.name, sizes, start)
    return data, reader


def _with_columns(data: Data, reader: Reader) -> Reader:
    """The reader with the numbers of columns filled in; DataError where there is no column for the labels."""
    if isinstance(data.corpus, ColumnCorpus) and data.corpus.n_columns == 1:
        hint = looks_like(split_lines((data.corpus.text or "")[: 1 << 16]))
        wanted = "tags, or entities," if reader.format == "jsonl" else "at least 2 columns, one of them the labels,"
        raise DataError(f"{data.corpus.where(0)}: expected {wanted} got {'none' if reader.format == 'jsonl' else 1}{hint}")
    if reader.format in ROW_FORMATS and reader.n_columns is None:
        width = data.corpus.n_columns  # type: ignore[union-attr]
        return reader._replace(n_columns=width, label_column=(reader.label_column or 0) % width)
    return reader if reader.format in ROW_FORMATS else reader._replace(label_column=None)


def _drawn(n: int, fraction: float, seed: int) -> Integers:
    """The numbers of the sequences held out."""
    n_out = math.ceil(fraction * n - 1e-9)
    if n_out == n:
        raise ParameterError(f"--dev-fraction {fraction:g} leaves nothing to train on: TRAIN has {n} sequences")
    return np.sort(np.random.default_rng(seed).permutation(n)[:n_out])


def completed(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values of options with those found in the first lines of TRAIN where they are "auto"; says what it found.

    Raises DataError where the lines show no format of sequences.
    """
    asked = [name for name in ("format", "template", "dev_metric") if values.get(name) == "auto"]
    found = dict(values)
    if not asked:
        return found
    data, format, column = values["data"], values["format"], values["label_column"]
    lines = first_lines(data, values["encoding"])
    if format == "auto":
        seen = detect_format(lines, source_name(data))
        if seen.format not in (*ROW_FORMATS, "crfsuite", "ocr"):
            expected = "expected sequences with labels"
            raise DataError(f"{source_name(data)}: {expected}, got the format {seen.format}{looks_like(lines)}")
    else:
        widths = Counter(len(line.split()) for line in lines if line.strip())
        width = ROW_FORMATS[format] or max(widths, key=lambda n: widths[n], default=1) if format in ROW_FORMATS else None
        seen = Detected(format, "as named", width)
    labels = seen.labels(lines, column)
    labels.pop(values.get("missing", "_"), None)
    phrases = scheme_of(labels.items(), ()) in _SCORED
    found["format"] = seen.format
    if "template" in asked:
        found["template"] = _template(seen.width, column, phrases, labels)
    if "dev_metric" in asked:
        found["dev_metric"] = "f1" if phrases else "token_accuracy"
    if "format" in asked or ("template" in asked and found["template"]):
        scheme = ", labels of phrases (B-X, I-X)" if phrases else ""
        template = f"; templates {found['template']}" if found["template"] else ""
        log.info("%s: format %s: %s%s%s", source_name(data), seen.format, seen.seen, scheme, template)
    return found


def _template(width: int | None, label_column: int, phrases: bool, labels: Counter[str]) -> str | None:
    """The built-in templates that read what the columns hold; None without columns.

    Names are few among their tokens, chunks cover most of them.
    """
    if width is None:
        return None
    column = label_column % width
    if column == 0:
        raise ParameterError("--template auto expects words in column 0, which holds the labels: give --template")
    if width > 2 and column != 1 and not (phrases and 2 * labels["O"] > labels.total()):
        return "chunking"
    return "ner" if phrases else "pos"
