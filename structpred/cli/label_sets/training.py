"""What `structpred train multilabel` does with sets of labels, along a hierarchy or not."""

import logging
import math
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from structpred.cli.kinds.label_sets import Options
from structpred.cli.training import Training, tell_read
from structpred.errors import ParameterError
from structpred.io.multilabel.by_format import Reading, Source, label_format, read_examples, read_training
from structpred.io.multilabel.data import MultiLabelData, ordered_labels
from structpred.models.fields.label_graphs import ENUMERATED
from structpred.models.fields.multilabel import HierarchicalMultiLabel, MultiLabelMRF
from structpred.models.kernels.functions import name_of
from structpred.tuning.halving import grid_of

if TYPE_CHECKING:
    from structpred.distributed import Shards

log = logging.getLogger("structpred.cli")

Model = MultiLabelMRF | HierarchicalMultiLabel


class Run(Training[Options]):
    """Train a MultiLabelMRF, or with a hierarchy of labels a HierarchicalMultiLabel."""

    shardable = foldable = True
    score = "accuracy"

    def conflicts(self) -> dict[str, bool]:
        """For options that do not go together the message, and whether they were given."""
        options = self.options
        both = options.edges is not None and options.hierarchy is not None
        return {
            "--bias must be a finite number": not math.isfinite(options.bias),
            "--hierarchy must be a file, not -": options.hierarchy == "-",
            "--gamma is for --kernel": options.gamma != "scale" and options.kernel is None,
            "--n-components is for --kernel": options.n_components != 0.99 and options.kernel is None,
            "--edges cannot be combined with --hierarchy, which brings its own edges": both,
        }

    def inputs(self) -> list[str]:
        """The files of labels and hierarchy."""
        labels = self.options.labels
        there = labels is not None and (labels == "-" or Path(labels).exists())
        return [name for name in (labels if there else None, self.options.hierarchy) if name is not None]

    def read(self) -> dict[str, int]:
        """The examples, and the held-out ones with the same labels and features."""
        options = self.options
        source = Source(options.format, options.labels, options.hierarchy, options.zero_based, options.encoding)
        if options.shards is None:
            start = time.perf_counter()
            self.data, self.reader = read_training(options.data, source)
            data, n_features = self.data, self.data.X.shape[1]
            sizes = {"examples": len(data), "features": n_features, "labels": len(data.label_names)}
            depth = "" if data.hierarchy is None else f", hierarchy of depth {int(data.hierarchy.depths.max())}"
            listed = ", ".join(f"{n} {name}" for name, n in sizes.items())
            shown = f"{listed}, {data.cardinality:.2f} of them on in an example{depth}, format {self.reader['format']}"
            tell_read(data.name, shown, start)
        else:  # data are the first examples, which have all labels and features
            shards, self.data, self.reader = _shards(options.data, options.shards, source)
            sizes = self.cut(shards)
        data = self.data
        self.edges = self._checked_edges(data)
        reading = Reading(data.label_names, data.X.shape[1], data.hierarchy, self.reader)
        self.train = (data,)
        if options.dev is not None:
            dev = read_examples(reading, options.dev, options.format, encoding=options.encoding)
            self.dev = (dev.X, dev.Y)
        return sizes

    def _checked_edges(self, data: MultiLabelData) -> str | int:
        """The pairs of labels that have weights; ParameterError for options that these data do not have."""
        options, n_labels = self.options, len(data.label_names)
        if data.hierarchy is not None and options.edges is not None:
            raise ParameterError(f"--edges: {data.name} has a hierarchy of labels, which brings its own edges")
        if data.hierarchy is None and options.label_weights != "uniform":
            raise ParameterError(f"--label-weights {options.label_weights} is for labels with a hierarchy; {data.name} has none")
        if data.hierarchy is None and options.require not in ("auto", "none"):
            raise ParameterError(f"--require {options.require} is for labels with a hierarchy; {data.name} has none")
        edges = options.edges if options.edges is not None else "complete" if n_labels <= ENUMERATED else "tree"
        if data.hierarchy is None and n_labels > ENUMERATED and edges not in ("tree", "none", 0):
            log.warning(
                "%d labels with cycles among their edges: exact inference by branch and bound may be slow; --edges tree is fast",
                n_labels,
            )
        return 0 if edges == "none" else edges

    def grid(self) -> list[dict[str, Any]]:
        """C, and edges or what sets are; a kernel, where one can be had, up to 3,000 rows; dense features are standardised."""
        self.read()
        X, (n, d) = self.data.X, self.data.X.shape
        scale, width = ("standard", 1.0 / d) if X.nnz > 0.5 * n * d else (None, n / (X.data @ X.data))  # 1 / mean |x|^2
        usual = "complete" if len(self.data.label_names) <= ENUMERATED else "tree"
        own: Any = {"edges": ("none", usual)} if self.data.hierarchy is None else {"require": ("auto", "none")}
        own["scale"] = (scale,)
        kinds = [(None, ("scale",), (0.001, 0.01, 0.1, 1.0, 10.0)), ("rbf", (0.3 * width, width, 3.0 * width), (0.1, 1.0, 10.0))]
        grids = [{"kernel": (kernel,), "gamma": gamma, **own, "C": C} for kernel, gamma, C in kinds[: 1 + (n <= 3000)]]
        return [one for grid in grids for one in grid_of(grid)]

    def estimator(self, common: dict[str, Any]) -> Model:
        """The classifier, by whether the labels have a hierarchy."""
        options, data = self.options, self.data
        common |= {name: getattr(options, name) for name in ("bias", "threshold", "kernel", "gamma", "n_components")}
        common["scale"] = None if options.scale == "none" else options.scale
        if data.hierarchy is not None:
            require = None if options.require == "none" else options.require
            return HierarchicalMultiLabel(
                hierarchy=data.hierarchy, label_weights=options.label_weights, require=require, **common
            )
        return MultiLabelMRF(edges=self.edges, **common)

    def end(self, model: Model) -> dict[str, Any]:
        """The event of the end."""
        return {
            **super().end(model), "n_features": model.n_features_in_, "n_edges": len(model.edges_),
            "oracle": type(model.oracle_).__name__, "hierarchical": isinstance(model, HierarchicalMultiLabel),
            "require": getattr(model, "require_", None), "labels": model.label_names_,
        }  # fmt: skip

    def shape(self, model: Model) -> str:
        """Features, labels, edges and the inference."""
        inference = f"inference by {type(model.oracle_).__name__}"
        return f"{described_features(model)}, {model.n_labels_} labels, {len(model.edges_)} edges, {inference}"


def described_features(model: Any) -> str:
    """How many features, how they are scaled, and how many training rows a kernel compares with."""
    scaled = {None: "", "maxabs": ", each scaled to 1 at most", "standard": ", standardised"}[model.scale_]
    kernel = "" if model.support_ is None else f", kernel {name_of(model.kernel)} with {len(model.support_)} training rows"
    return f"{model.n_features_in_} features{scaled}{kernel}"


def _shards(path: str, n: int, source: Source) -> tuple["Shards", MultiLabelData, dict[str, Any]]:
    """n ranges of the lines of a file; its first examples, with all labels and features; and how they were read.

    Only all lines of LIBSVM's text show labels and features: it is read once here, a piece at a time. Raises DataError, naming
    file and line, and ParameterError for files that cannot be cut.
    """
    from structpred.distributed.reading import held_head
    from structpred.distributed.shards import about_shard

    source = source._replace(format=(format := label_format(path, source.format)))
    shards = _ranges(path, n, source._replace(hierarchy=None) if format == "libsvm" else source)
    if format == "libsvm":
        read_training(held_head(path, format), source._replace(hierarchy=None))  # options of other formats are refused
        names, n_features = set[str](), 0  # that occur in some shard
        for k, shard in enumerate(shards):
            with about_shard(k, shard):
                data = shard.load().X
            names.update(data.label_names)
            n_features = max(n_features, data.X.shape[1])
        source = source._replace(label_names=ordered_labels(names), n_features=n_features)
        shards = _ranges(path, n, source)
    return shards, *read_training(held_head(path, format), source)


def _ranges(path: str, n: int, source: Source) -> "Shards":
    """n ranges of the lines of a file."""
    from structpred.distributed import Shards

    labels, hierarchy = source.labels, source.hierarchy
    if labels is not None and not labels.removeprefix("-").isdecimal():
        labels = os.path.abspath(labels)
    placed = source._replace(labels=labels, hierarchy=None if hierarchy is None else os.path.abspath(hierarchy))
    return Shards.of_label_sets(os.path.abspath(path), n, **placed._asdict())
