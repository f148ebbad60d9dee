"""What `structpred train parser` does: check everything, read, fit, save, and tell what happened."""

import logging
import math
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from structpred.cli.runs import REASONS, Events, Reporter, check_run_files, interrupted, stamp
from structpred.cli.session import Session
from structpred.cli.trainer_options import check_trainer, trainer_of
from structpred.core.result import Certificate, Record
from structpred.data.arc_templates import ArcTemplate
from structpred.errors import DataError, ParameterError
from structpred.evaluation import CONLL07, UD, ParsingScores, evaluate_trees
from structpred.io.templates.arc_featurizer import ATTRIBUTES
from structpred.io.templates.arc_template_sets import conjunction_family, parse_templates
from structpred.io.templates.templates import template_lines
from structpred.io.text import source_name
from structpred.io.treebanks.formats import CONLL_U, TREEBANK_FORMATS
from structpred.io.treebanks.reader import OnError, read_treebank
from structpred.io.treebanks.treebank import Treebank
from structpred.models.parser.parser import DependencyParser
from structpred.models.parser.relations import relations_checkpoint
from structpred.runtime.threads import checked_jobs
from structpred.trainers.checkpoints import remove_checkpoint

log = logging.getLogger("structpred.cli")


@dataclass(frozen=True)
class ParserOptions:
    """The options of `train parser`, under their own names."""

    data: str
    output: str
    format: str | None
    trainer: str
    surrogate: str | None
    C: float
    label_C: float
    max_iter: int
    tol: float
    check_every: int
    projective: bool | None
    multi_root: bool
    prune: int | None
    unlabelled: bool
    max_bits: int
    templates: str | None
    conjunctions: bool
    dev: str | None
    patience: int | None
    on_error: OnError
    n_jobs: int | None
    seed: int
    checkpoint: str | None
    resume: bool
    as_json: bool
    encoding: str

    @property
    def checkpoint_path(self) -> Path:
        """The file given, else one beside the model."""
        return Path(self.checkpoint or f"{self.output}.ckpt")


def train_parser(options: ParserOptions, session: Session) -> None:
    """Run the command. Raises our errors, or Stop where it was interrupted."""
    check_usage(options)
    path = options.checkpoint_path
    others = [] if options.templates is None else [options.templates]
    check_run_files(options.data, options.dev, others, options.output, path, options.resume)
    events = Events(options.as_json)
    templates = _templates(options)
    data = _read(options.data, options)
    dev = None if options.dev is None else _read(options.dev, options)
    events.emit("start", sentences=len(data), words=data.n_words, options=asdict(options))
    model = _model(options, templates, events)
    before = stamp(path)
    try:
        model.fit(data, dev=dev)
        model.reader_ = {"format": data.format.name, "template": "conjunctions" if options.conjunctions else options.templates}
        model.save(options.output)
    except KeyboardInterrupt:
        raise interrupted(path, options.resume, session, events, before) from None
    if options.checkpoint is None:
        remove_checkpoint(path)
        remove_checkpoint(relations_checkpoint(path))
    _finish(options, model, data, dev, events)


def check_usage(options: ParserOptions) -> None:
    """Raise ParameterError for options that do not go together; reads nothing."""
    check_trainer(options.trainer, options.surrogate)
    checked_jobs(options.n_jobs)
    wrong = {
        "--templates and --conjunctions are two answers to one question": options.templates is not None and options.conjunctions,
        "--templates must be a file, not -": options.templates == "-",
        "-C, --label-C and --tol must be finite numbers": not all(map(math.isfinite, (options.C, options.label_C, options.tol))),
        "--patience needs --dev FILE": options.patience is not None and options.dev is None,
        "-o MODEL must be a file: a model cannot go to standard output": options.output == "-",
        "--checkpoint must be a file, not -": options.checkpoint == "-",
        "TRAIN and --dev cannot both be standard input": options.data == options.dev == "-",
    }
    for message, holds in wrong.items():
        if holds:
            raise ParameterError(message)


def read_arc_templates(path: str) -> list[ArcTemplate]:
    """The templates of a file: one a line, comments behind #. Several properties behind the bar make several templates.

    Raises DataError with the line for what is no template, for an attribute that words do not have, and for a second time the
    same template; and for a file without any.
    """
    found: dict[ArcTemplate, str] = {}
    for where, line in template_lines(path):
        try:
            templates = parse_templates(line.partition("#")[0])
        except ParameterError as error:
            raise DataError(f"{where}: {error}") from None
        for template in templates:
            if unknown := sorted(template.attributes - set(ATTRIBUTES)):
                known = ", ".join(ATTRIBUTES)
                raise DataError(f"{where}: expected attributes of words ({known}), got {unknown[0]!r}")
            if template in found:
                line = found[template].rpartition(":")[2]
                raise DataError(f"{where}: the template {str(template)!r} stands in line {line} already")
            found[template] = where
    if not found:
        raise DataError(f"{source_name(path)}: expected at least one template, such as h.upos m.upos | distance, got none")
    return list(found)


def _templates(options: ParserOptions) -> list[ArcTemplate] | None:
    if options.templates is not None:
        return read_arc_templates(options.templates)
    return conjunction_family() if options.conjunctions else None


def _read(path: str, options: ParserOptions) -> Treebank:
    """A treebank with a head for every word."""
    start = time.perf_counter()
    format = None if options.format is None else TREEBANK_FORMATS[options.format]
    treebank = read_treebank(path, format, on_error=options.on_error, encoding=options.encoding)
    if not treebank.has_trees:
        where = treebank.where(int(np.argmax(treebank.heads < 0)))
        raise DataError(f"{where}: expected a head: a parser learns from trees; got none")
    log.info(
        "read %s: %d sentences, %d words, %d relations, format %s (%.1f s)",
        treebank.path,
        len(treebank),
        treebank.n_words,
        len(set(treebank.labels) - {"_"}),
        treebank.format.name,
        time.perf_counter() - start,
    )
    return treebank


def _model(options: ParserOptions, templates: list[ArcTemplate] | None, events: Events) -> DependencyParser:
    return DependencyParser(
        trainer_of(options.trainer),
        options.C,
        options.max_iter,
        options.tol,
        projective=options.projective,
        single_root=not options.multi_root,
        templates=templates,
        max_bits=options.max_bits,
        prune=options.prune,
        labelled=not options.unlabelled,
        label_C=options.label_C,
        check_every=options.check_every,
        patience=options.patience,
        surrogate=options.surrogate,
        n_jobs=options.n_jobs,
        callbacks=Reporter(events, ("arcs", "relations")),
        checkpoint=options.checkpoint_path,
        resume=options.resume,
        random_state=options.seed,
    )


def dev_scores(model: DependencyParser, dev: Treebank) -> ParsingScores:
    """How good the parser is on held-out trees: by UD's rules where they can be asked for, else over every word."""
    strict = dev.format == CONLL_U and model.single_root
    sentences = dev.sentences()
    forms, upos = [s.forms for s in sentences], [s.upos for s in sentences]
    return evaluate_trees(dev.trees(), model.predict(dev), forms=forms, upos=upos, rules=UD if strict else CONLL07)


def _finish(options: ParserOptions, model: DependencyParser, data: Treebank, dev: Treebank | None, events: Events) -> None:
    scores = None if dev is None else dev_scores(model, dev)
    labels = [] if model.relations_ is None else model.relations_.classes_.tolist()
    events.emit(
        "end",
        model=options.output,
        arcs=_stage(model),
        relations=None if model.relations_ is None else _stage(model.relations_),
        projective=model.projective_,
        left_out=model.left_out_,
        kept=model.kept_,
        dev=None if scores is None else {"rules": scores.rules, "uas": scores.uas, "las": scores.las},
        templates=len(model.templates_),
        n_weights=len(model.coef_),
        labels=labels,
    )
    for name, stage in (("arcs", model), ("relations", model.relations_)):
        if stage is not None:
            why = REASONS.get(stage.stop_reason_, stage.stop_reason_)
            seconds = stage.history_[-1]["seconds"] or 0.0
            log.info("%s: trained %d passes in %.1f s (%s): %s", name, stage.n_iter_, seconds, why, stage.certificate_)
    kind = "projective trees" if model.projective_ else "all trees, crossing arcs included"
    left = f"; {model.left_out_} of {len(data)} sentences cross and were left out of training" if model.left_out_ else ""
    log.info("trees: %s, %s%s", kind, "one root" if model.single_root else "any number of roots", left)
    if model.kept_ is not None:
        log.info("pruning: %s heads a word hold %.2f %% of the true arcs", options.prune, 100 * model.kept_)
    if unused := len(model.templates or ()) - len(model.templates_) if model.templates is not None else 0:
        present = ", ".join(model.featurizer_.present)
        log.warning("%d of the templates were left out: the words of %s have only %s", unused, data.path, present)
    if scores is not None:
        las = "" if scores.las is None else f", LAS {100 * scores.las:.2f} %"
        log.info("%s: UAS %.2f %%%s (rules of %s)", options.dev, 100 * scores.uas, las, scores.rules)
    size = Path(options.output).stat().st_size / 1e6
    shape = (len(model.templates_), len(model.coef_), np.count_nonzero(model.coef_), len(labels))
    log.info("wrote %s: %d templates, %d weights (%d not zero), %d relations, %.1f MB", options.output, *shape, size)


def _stage(stage: Any) -> dict[str, Any]:
    """One stage of the training as an event tells it."""
    certificate: Certificate = stage.certificate_
    last: Record = stage.history_[-1]
    return {
        "stop_reason": stage.stop_reason_,
        "passes": stage.n_iter_,
        "seconds": last["seconds"],
        "cpu_seconds": last["cpu_seconds"],
        "primal": certificate.primal,
        "dual": certificate.dual,
        "gap": certificate.gap,
        "relative_gap": certificate.relative_gap,
        "proven": certificate.proven,
        "converged": stage.converged_,
    }
