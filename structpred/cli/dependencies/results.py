"""What `structpred predict`, `evaluate` and `explain` do for parsers; a treebank is read, parsed and written batch by batch."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from structpred.cli.dependencies.shards import shards_of, treebank_format
from structpred.cli.files import json_lines, write_stream
from structpred.cli.kinds.kind import RUNNER_UP, Evaluating, Explained, Explaining, Predicting, Scored
from structpred.cli.options import refuse
from structpred.errors import DataError, ParameterError
from structpred.io.treebanks.reader import read_treebank, stream_treebank
from structpred.io.treebanks.treebank import Sentence, Tree, Treebank, write_treebank

if TYPE_CHECKING:
    from structpred.distributed import Shards
    from structpred.models import DependencyParser

#: sentences that are in memory at once while parsing
BATCH = 1000


def predict(parser: "DependencyParser", asked: Predicting) -> None:
    """Write the data with the heads and relations that the parser finds, or one JSON object per sentence."""
    parser.n_jobs = parser.n_jobs if asked.n_jobs is None else asked.n_jobs
    reading = asked.reading
    # as `DependencyParser.predict` takes them, None for as trained
    wanted = {"projective": asked.own["projective"], "single_root": False if asked.own["multi_root"] else None}

    def produce(stream: BinaryIO) -> None:
        batches = stream_treebank(
            asked.data, treebank_format(reading.format), batch_size=BATCH, on_error=reading.on_error, check_trees=False,
            encoding=reading.encoding,
        )  # fmt: skip
        for batch in batches:  # heads in the data are not used
            found = parser.predict(batch, **wanted) if len(batch) else []
            if asked.as_json:
                stream.write(json_lines(_entries(parser, asked, wanted, batch, found)).encode())
            else:
                write_treebank(batch, stream, found)

    write_stream(asked.output, produce)


def shards(parser: "DependencyParser", asked: Predicting, n: int) -> "Shards":
    """Pieces of the file. Raises ParameterError for trees of another kind than in training."""
    if asked.own["projective"] is not None or asked.own["multi_root"]:
        raise ParameterError("--shards parses as the model was trained: leave --projective and --multi-root out")
    return shards_of(asked.data, n, asked.reading.format, asked.reading.encoding)[0]


def words_as_data(parser: "DependencyParser", asked: Predicting, sentences: Sequence[Sequence[str]]) -> str:
    """CoNLL-U with forms alone. Raises DataError for a parser that was trained with more."""
    from structpred.models.parser.attributes import attributes_read

    if needed := attributes_read(parser):
        raise DataError(
            f"--text: {asked.model} was trained with {', '.join(needed)}, and running text has word forms only; tag it and give "
            "CoNLL-U, or train a parser on a treebank with _ in those columns"
        )
    nothing = [["_"] * len(words) for words in sentences]
    return Treebank.of([Sentence(list(words), *[n] * 4) for words, n in zip(sentences, nothing, strict=True)]).raw.decode()


def _entries(
    parser: "DependencyParser", asked: Predicting, wanted: dict[str, Any], batch: Treebank, found: list[Tree]
) -> list[dict[str, Any]]:
    """Words, heads and labels of each sentence, the k best trees, the probability of every arc."""
    entries = [{"tokens": words.forms, **_entry(tree)} for words, tree in zip(batch.sentences(), found, strict=True)]
    if asked.kbest is not None and found:
        for entry, best in zip(entries, parser.predict_kbest(batch, asked.kbest, **wanted), strict=True):
            entry["kbest"] = [{**_entry(tree), "score": score} for tree, score in best]
    if asked.marginals and found:
        for entry, table in zip(entries, parser.predict_marginals(batch, **wanted), strict=True):
            entry["marginals"] = table.tolist()
    return entries


def _entry(tree: Tree) -> dict[str, Any]:
    return {"heads": tree.heads.tolist(), "labels": tree.labels}


def judged(parser: "DependencyParser", asked: Evaluating) -> Scored:
    """UAS, LAS and more, by named rules."""
    from structpred.cli.dependencies.evaluation import scored

    return scored(parser, asked)


def judged_files(ctx: click.Context, model: str | None, asked: Evaluating) -> Scored:
    """The same of a treebank with predictions, or of the model of a file."""
    from structpred.cli.dependencies.evaluation import scored

    if model is None or asked.data:
        raise click.UsageError("--gold GOLD takes one more file: the treebank with predictions, or a model")
    refuse(ctx, ("on_error",), "is not for two treebanks: sentences left out of one would not be left out of the other")
    return scored(model, replace(asked, data=asked.own["gold"]))


def explain(parser: "DependencyParser", asked: Explaining) -> Explained:
    """Why one sentence gets its tree; with --word against the best tree in which that word has another head."""
    reading, word, against = asked.reading, asked.own["word"], asked.against
    treebank = read_treebank(
        asked.data, treebank_format(reading.format), on_error=reading.on_error, check_trees=False, encoding=reading.encoding
    )
    sentence = treebank.take([asked.chosen(len(treebank))])
    other: int | str | None = against
    if against is not None and against != RUNNER_UP:
        if word is None or not (against.isascii() and against.isdecimal()):
            raise click.UsageError(f"--against {against}: expected {RUNNER_UP}, or with --word N the number of a head")
        other = int(against)
    return Explained(" ".join(sentence.forms), parser.explain(sentence, word, against=other))
