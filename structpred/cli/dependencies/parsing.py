"""What `structpred predict` does for parsers: read a treebank, parse it batch by batch, and write it."""

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from structpred.cli.files import write_stream
from structpred.cli.kinds.kind import Predicting
from structpred.errors import DataError, ParameterError
from structpred.io.treebanks.formats import TREEBANK_FORMATS, TreebankFormat
from structpred.io.treebanks.reader import stream_treebank
from structpred.io.treebanks.treebank import Sentence, Tree, Treebank
from structpred.io.treebanks.writer import write_treebank

if TYPE_CHECKING:
    from structpred.models import DependencyParser

#: sentences that are in memory at once while parsing
BATCH = 1000


class Wanted(NamedTuple):
    """What trees are looked for: as `DependencyParser.predict` takes it, None for as trained."""

    projective: bool | None = None
    single_root: bool | None = None


def treebank_format(name: str | None) -> TreebankFormat | None:
    """The treebank format of that name. None means: detect it from the lines. Raises ParameterError for other formats."""
    if name is not None and name not in TREEBANK_FORMATS:
        raise ParameterError(f"a parser reads treebanks: --format must be {', '.join(TREEBANK_FORMATS)}, not {name}")
    return None if name is None else TREEBANK_FORMATS[name]


def predict(parser: "DependencyParser", asked: Predicting) -> None:
    """Write the data with the heads and relations that the parser finds, or one JSON object per sentence."""
    parser.n_jobs = parser.n_jobs if asked.n_jobs is None else asked.n_jobs
    wanted = Wanted(asked.own["projective"], False if asked.own["multi_root"] else None)

    def produce(stream: BinaryIO) -> None:
        for batch, found in _parsed(parser, asked, wanted):
            if asked.as_json:
                entries = _entries(parser, asked, wanted, batch, found)
                stream.write("".join(f"{json.dumps(entry)}\n" for entry in entries).encode())
            else:
                write_treebank(batch, stream, found)

    write_stream(asked.output, produce)


def words_as_treebank(parser: "DependencyParser", asked: Predicting, sentences: Sequence[Sequence[str]]) -> str:
    """CoNLL-U with forms alone. Raises DataError for a parser that was trained with more."""
    from structpred.models.parser.attributes import attributes_read

    if needed := attributes_read(parser):
        raise DataError(
            f"--text: {asked.model} was trained with {', '.join(needed)}, and running text has word forms only; tag it and give "
            "CoNLL-U, or train a parser on a treebank with _ in those columns"
        )
    nothing = [["_"] * len(words) for words in sentences]
    return Treebank.of([Sentence(list(words), *[n] * 4) for words, n in zip(sentences, nothing, strict=True)]).raw.decode()


def _parsed(parser: "DependencyParser", asked: Predicting, wanted: Wanted) -> Iterator[tuple[Treebank, list[Tree]]]:
    """Batches of sentences with their trees; heads in the data are not used."""
    reading = asked.reading
    batches = stream_treebank(
        asked.data, treebank_format(reading.format), batch_size=BATCH, on_error=reading.on_error, check_trees=False,
        encoding=reading.encoding,
    )  # fmt: skip
    for batch in batches:
        yield batch, (parser.predict(batch, **wanted._asdict()) if len(batch) else [])


def _entries(
    parser: "DependencyParser", asked: Predicting, wanted: Wanted, batch: Treebank, found: list[Tree]
) -> list[dict[str, Any]]:
    """Words, heads and labels of each sentence, the k best trees, the probability of every arc."""
    entries = [{"tokens": words.forms, **_entry(tree)} for words, tree in zip(batch.sentences(), found, strict=True)]
    if asked.kbest is not None and found:
        for entry, best in zip(entries, parser.predict_kbest(batch, asked.kbest, **wanted._asdict()), strict=True):
            entry["kbest"] = [{**_entry(tree), "score": score} for tree, score in best]
    if asked.marginals and found:
        for entry, table in zip(entries, parser.predict_marginals(batch, **wanted._asdict()), strict=True):
            entry["marginals"] = table.tolist()
    return entries


def _entry(tree: Tree) -> dict[str, Any]:
    return {"heads": tree.heads.tolist(), "labels": tree.labels}
