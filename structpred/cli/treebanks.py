"""What the commands do with treebanks and parsers: load, read, parse batch by batch, and write."""

import gzip
import json
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, cast

from structpred.cli.options import ReadingOptions
from structpred.errors import ParameterError, StorageError
from structpred.io.treebanks.formats import TREEBANK_FORMATS, TreebankFormat
from structpred.io.treebanks.reader import stream_treebank
from structpred.io.treebanks.treebank import Tree, Treebank
from structpred.io.treebanks.writer import write_treebank
from structpred.storage.atomic import write_atomic

if TYPE_CHECKING:
    from structpred.models import ChainLabeler, DependencyParser, HierarchicalMultiLabel, MultiLabelMRF

    Model = ChainLabeler | DependencyParser | HierarchicalMultiLabel | MultiLabelMRF

Produce = Callable[[BinaryIO], None]
#: sentences that are in memory at once while parsing
BATCH = 1000


class Wanted(NamedTuple):
    """What trees are looked for: as `DependencyParser.predict` takes it, None for as trained."""

    projective: bool | None = None
    single_root: bool | None = None


def load_model(path: str) -> "Model":
    """The model of a file. Raises ModelFileError for what is none, and for models that have no command."""
    from structpred.models.files import load_estimator

    kinds = ("ChainLabeler", "DependencyParser", "MultiLabelMRF", "HierarchicalMultiLabel")
    model: Model = load_estimator(path, *kinds)
    return model


def treebank_format(name: str | None) -> TreebankFormat | None:
    """The treebank format of that name; None, to be told from the lines, for None. Raises ParameterError for other formats."""
    if name is not None and name not in TREEBANK_FORMATS:
        raise ParameterError(f"a parser reads treebanks: --format must be {', '.join(TREEBANK_FORMATS)}, not {name}")
    return None if name is None else TREEBANK_FORMATS[name]


def parse_stream(
    parser: "DependencyParser", data: str, reading: ReadingOptions, wanted: Wanted
) -> Iterator[tuple[Treebank, list[Tree]]]:
    """Batches of sentences with their trees; heads in the data are not looked at."""
    format = treebank_format(reading.format)
    for batch in stream_treebank(
        data, format, batch_size=BATCH, on_error=reading.on_error, check_trees=False, encoding=reading.encoding
    ):
        yield batch, (parser.predict(batch, **wanted._asdict()) if len(batch) else [])


def predict_treebank(parser: "DependencyParser", data: str, output: str, reading: ReadingOptions, wanted: Wanted) -> None:
    """Write the data with the heads and relations that the parser finds; every other byte is kept."""

    def produce(stream: BinaryIO) -> None:
        for batch, found in parse_stream(parser, data, reading, wanted):
            write_treebank(batch, stream, found)

    write_stream(output, produce)


def predict_json(
    parser: "DependencyParser",
    data: str,
    output: str,
    reading: ReadingOptions,
    wanted: Wanted,
    *,
    kbest: int | None,
    marginals: bool,
) -> None:
    """Write one JSON object a sentence: words, heads and labels, the k best trees, the probability of every arc."""

    def produce(stream: BinaryIO) -> None:
        for batch, found in parse_stream(parser, data, reading, wanted):
            entries = [{"tokens": words.forms, **_entry(tree)} for words, tree in zip(batch.sentences(), found, strict=True)]
            if kbest is not None and found:
                for entry, best in zip(entries, parser.predict_kbest(batch, kbest, **wanted._asdict()), strict=True):
                    entry["kbest"] = [{**_entry(tree), "score": score} for tree, score in best]
            if marginals and found:
                for entry, table in zip(entries, parser.predict_marginals(batch, **wanted._asdict()), strict=True):
                    entry["marginals"] = table.tolist()
            stream.write("".join(f"{json.dumps(entry)}\n" for entry in entries).encode())

    write_stream(output, produce)


def _entry(tree: Tree) -> dict[str, Any]:
    return {"heads": tree.heads.tolist(), "labels": tree.labels}


def write_stream(path: str, produce: Produce) -> None:
    """Let `produce` write its bytes: at once to standard output (``-``), else atomically, packed if the name ends in .gz."""
    if path != "-":
        packed: Produce = _packing(produce) if path.endswith(".gz") else produce
        write_atomic(path, packed)
        return
    if sys.stdout is None:
        raise StorageError("standard output is closed; give -o FILE")
    sys.stdout.flush()  # what was printed as text comes first
    produce(sys.stdout.buffer)
    sys.stdout.buffer.flush()


def _packing(produce: Produce) -> Produce:
    def packed(stream: BinaryIO) -> None:
        with gzip.GzipFile(filename="", fileobj=stream, mode="wb", mtime=0) as file:  # the same trees give the same bytes
            produce(cast(BinaryIO, file))

    return packed
