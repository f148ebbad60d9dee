"""What `structpred train multilabel` does: check everything, read, fit, save, and tell what happened."""

import logging
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from structpred.cli.label_data import Reading, Source, read_examples, read_training, size_of
from structpred.cli.runs import REASONS, Events, Reporter, check_run_files, interrupted, stamp
from structpred.cli.session import EXIT_NOT_CONVERGED, Session, Stop
from structpred.cli.trainer_options import check_trainer, trainer_of
from structpred.errors import ParameterError
from structpred.io.multilabel.data import MultiLabelData
from structpred.models.fields.hierarchical import HierarchicalMultiLabel
from structpred.models.fields.label_graphs import ENUMERATED
from structpred.models.fields.multilabel import MultiLabelMRF
from structpred.trainers.checkpoints import remove_checkpoint

log = logging.getLogger("structpred.cli")

Model = MultiLabelMRF | HierarchicalMultiLabel


@dataclass(frozen=True)
class MultiLabelOptions:
    """The options of `train multilabel`, under their own names."""

    data: str
    output: str
    format: str | None
    labels: str | None
    zero_based: bool
    hierarchy: str | None
    label_weights: str
    trainer: str
    surrogate: str | None
    C: float
    max_iter: int
    tol: float
    check_every: int
    edges: str | int | None
    bias: float
    scale: str | None
    dev: str | None
    patience: int | None
    seed: int
    checkpoint: str | None
    resume: bool
    strict: bool
    as_json: bool
    encoding: str

    @property
    def checkpoint_path(self) -> Path:
        """The file given, else one beside the model."""
        return Path(self.checkpoint or f"{self.output}.ckpt")

    @property
    def source(self) -> Source:
        """How TRAIN is read."""
        return Source(self.format, self.labels, self.hierarchy, self.zero_based, self.encoding)


def train_multilabel(options: MultiLabelOptions, session: Session) -> None:
    """Run the command. Raises our errors, or Stop: interrupted, or not converged under --strict."""
    check_usage(options)
    path = options.checkpoint_path
    labels = [options.labels] if options.labels is not None and Path(options.labels).exists() else []
    others = [*labels, *([options.hierarchy] if options.hierarchy is not None else [])]
    check_run_files(options.data, options.dev, others, options.output, path, options.resume)
    events = Events(options.as_json)
    data, facts = read_training(options.data, options.source)
    model = _model(options, data, events)
    reading = Reading(data.label_names, data.X.shape[1], data.hierarchy, facts)
    dev = None if options.dev is None else read_examples(reading, options.dev, options.format, encoding=options.encoding)
    events.emit("start", examples=len(data), features=data.X.shape[1], labels=len(data.label_names), options=asdict(options))
    before = stamp(path)
    try:
        model.fit(data, dev=None if dev is None else (dev.X, dev.Y))
        model.reader_ = facts
        model.save(options.output)
    except KeyboardInterrupt:
        raise interrupted(path, options.resume, session, events, before) from None
    if options.checkpoint is None:
        remove_checkpoint(path)
    _finish(options, model, events)


def check_usage(options: MultiLabelOptions) -> None:
    """Raise ParameterError for options that do not go together; reads nothing."""
    check_trainer(options.trainer, options.surrogate, strict=options.strict)
    wrong = {
        "-C, --tol and --bias must be finite numbers": not all(map(math.isfinite, (options.C, options.tol, options.bias))),
        "--patience needs --dev FILE": options.patience is not None and options.dev is None,
        "--strict needs --tol: how close is close enough, such as --tol 0.01": options.strict and options.tol == 0,
        "-o MODEL must be a file: a model cannot go to standard output": options.output == "-",
        "--checkpoint must be a file, not -": options.checkpoint == "-",
        "only one of the files can be standard input": [options.data, options.dev, options.labels, options.hierarchy].count("-")
        > 1,
        "--hierarchy must be a file, not -": options.hierarchy == "-",
        "--edges and --hierarchy are two answers to one question: a hierarchy brings its own edges": options.edges is not None
        and options.hierarchy is not None,
    }
    for message, holds in wrong.items():
        if holds:
            raise ParameterError(message)


def _model(options: MultiLabelOptions, data: MultiLabelData, events: Events) -> Model:
    common: dict[str, Any] = {
        "trainer": trainer_of(options.trainer),
        "C": options.C,
        "max_iter": options.max_iter,
        "tol": options.tol,
        "surrogate": options.surrogate,
        "bias": options.bias,
        "scale": options.scale,
        "check_every": options.check_every,
        "patience": options.patience,
        "callbacks": Reporter(events),
        "checkpoint": options.checkpoint_path,
        "resume": options.resume,
        "random_state": options.seed,
    }
    if data.hierarchy is not None:
        if options.edges is not None:
            raise ParameterError(f"--edges: {data.name} has a hierarchy of labels, which brings its own edges")
        return HierarchicalMultiLabel(hierarchy=data.hierarchy, label_weights=options.label_weights, **common)
    if options.label_weights != "uniform":
        raise ParameterError(f"--label-weights {options.label_weights} is for labels with a hierarchy; {data.name} has none")
    n_labels = len(data.label_names)
    edges = options.edges if options.edges is not None else "complete" if n_labels <= ENUMERATED else "tree"
    if n_labels > ENUMERATED and edges not in ("tree", "none", 0):
        log.warning(
            "%d labels with cycles among their edges: exact inference by branch and bound may take long; --edges tree is quick",
            n_labels,
        )
    return MultiLabelMRF(edges=0 if edges == "none" else edges, **common)


def _finish(options: MultiLabelOptions, model: Model, events: Events) -> None:
    certificate, last = model.certificate_, model.history_[-1]
    scores = [row["dev_score"] for row in model.history_ if row["dev_score"] is not None]
    best = max(scores) if scores else None
    oracle = type(model.oracle_).__name__
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
        n_edges=len(model.edges_),
        oracle=oracle,
        hierarchical=isinstance(model, HierarchicalMultiLabel),
        labels=model.label_names_,
    )
    why = REASONS.get(model.stop_reason_, model.stop_reason_)
    log.info("trained %d passes in %.1f s (%s): %s", model.n_iter_, last["seconds"] or 0.0, why, certificate)
    if best is not None:
        log.info("best dev score: %.2f %% (accuracy), these weights are kept", 100 * best)
    shape = (model.n_features_in_, model.n_labels_, len(model.edges_), oracle, size_of(options.output))
    log.info("wrote %s: %d features, %d labels, %d edges, inference by %s, %.1f MB", options.output, *shape)
    if options.strict and not model.converged_:
        gap = certificate.relative_gap
        reached = "the gap is not known" if gap is None else f"the gap is {100 * gap:.3g} % of the primal"
        raise Stop(
            EXIT_NOT_CONVERGED,
            f"not converged: {reached}, --tol asks for {100 * options.tol:.2g} %; the model was written all the same",
        )
