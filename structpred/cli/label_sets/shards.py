"""What `--shards` does for label sets: a look at the header and the first examples, and a file in pieces that workers read."""

import os
from typing import TYPE_CHECKING, Any

from structpred.io.multilabel.by_format import Source, label_format, read_training
from structpred.io.multilabel.data import MultiLabelData, ordered_labels

if TYPE_CHECKING:
    from structpred.distributed import Shards


def shards_to_learn(path: str, n: int, source: Source) -> tuple["Shards", MultiLabelData, dict[str, Any]]:
    """n ranges of the lines of a file; its first examples, with all labels and features; and how they were read.

    Only all lines of LIBSVM's text show labels and features: it is read once here, a piece at a time. Raises DataError, naming
    file and line, and ParameterError for files that cannot be cut.
    """
    from structpred.distributed.reading import held_examples
    from structpred.distributed.shards import about_shard

    source = source._replace(format=(format := label_format(path, source.format)))
    shards = ranges(path, n, source._replace(hierarchy=None) if format == "libsvm" else source)
    if format == "libsvm":
        read_training(held_examples(path, format), source._replace(hierarchy=None))  # options of other formats are refused
        names, n_features = set[str](), 0  # that occur in some shard
        for k, shard in enumerate(shards):
            with about_shard(k, shard):
                data = shard.load().X
            names.update(data.label_names)
            n_features = max(n_features, data.X.shape[1])
        source = source._replace(label_names=ordered_labels(names), n_features=n_features)
        shards = ranges(path, n, source)
    return shards, *read_training(held_examples(path, format), source)


def ranges(path: str, n: int, source: Source) -> "Shards":
    """n ranges of the lines of a file."""
    from structpred.distributed import Shards

    labels, hierarchy = source.labels, source.hierarchy
    if labels is not None and not labels.removeprefix("-").isdecimal():
        labels = os.path.abspath(labels)
    placed = source._replace(labels=labels, hierarchy=None if hierarchy is None else os.path.abspath(hierarchy))
    return Shards.of_label_sets(os.path.abspath(path), n, **placed._asdict())
