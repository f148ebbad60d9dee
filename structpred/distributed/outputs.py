"""What a model gives for the data of one shard, as the bytes that `structpred predict` writes for the same lines."""

from collections.abc import Iterator
from io import BytesIO
from typing import Any

from structpred.distributed.reading import Shard
from structpred.distributed.shards import FileShard
from structpred.errors import DataError
from structpred.io.columns import ColumnCorpus, format_columns
from structpred.io.multilabel.by_format import Reading, read_rows
from structpred.io.text import HeldBytes, label_lines, label_rows, label_sets
from structpred.io.treebanks.formats import TREEBANK_FORMATS
from structpred.io.treebanks.reader import stream_treebank
from structpred.io.treebanks.treebank import Treebank, write_treebank

#: sentences that are parsed at once: a dense table of arcs for each
_BATCH = 1000


def outputs_of(model: Any, shard: Shard) -> Iterator[tuple[int, bytes]]:
    """Pieces of the part file, in order, each with the number of its sequences, sentences, examples or instances."""
    for X in _inputs_of(model, shard):
        yield X.shape[0] if hasattr(X, "shape") else len(X), written(model, X)


def _inputs_of(model: Any, shard: Shard) -> Iterator[Any]:
    """The data, read as data to predict: labels may be missing. A treebank comes in batches, so that little memory is used."""
    if not isinstance(shard, FileShard):
        yield shard.load().X
        return
    path, reading = shard.path, shard.reading
    treebank, sets = reading.format in TREEBANK_FORMATS, hasattr(model, "label_names_")
    if not treebank and not sets:
        yield shard.load().X
        return
    with reading.held(path, shard.start, shard.stop) as raw:
        held = HeldBytes(raw, path)
        if treebank:
            format = TREEBANK_FORMATS[reading.format]
            yield from stream_treebank(held, format, batch_size=_BATCH, check_trees=False, encoding=reading.encoding)
        else:
            yield read_rows(Reading.of_model(model), held, reading.format, reading.encoding)


def between(model: Any, end: bytes) -> bytes:
    """What a part that ends so lacks of the blank line between its last sentence and the first of the next part."""
    if hasattr(model, "label_names_") or hasattr(model, "oracle"):
        return b""  # a line an instance
    return b"\n" * max(2 - end[len(end.rstrip()) :].count(b"\n"), 0)


def written(model: Any, X: Any) -> bytes:
    """The predictions for X: column files and treebanks as they were, with the new column or the new trees; otherwise labels."""
    found = model.predict(X)
    if isinstance(X, Treebank):
        stream = BytesIO()
        write_treebank(X, stream, found)
        return stream.getvalue()
    if hasattr(model, "label_names_"):
        return label_sets(found.tolist(), model.label_names_).encode()
    if hasattr(model, "oracle"):
        return label_rows([labels.tolist() for labels in found]).encode()
    try:
        lists = [[str(label) for label in labels.tolist()] for labels in found]
    except AttributeError:
        raise DataError(
            f"{type(model).__name__}: these predictions have no form as text; call its predict on each shard"
        ) from None
    return (format_columns(X, lists) if isinstance(X, ColumnCorpus) else label_lines(lists)).encode()
