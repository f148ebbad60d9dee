"""What `structpred predict`, `evaluate` and `explain` do for sequence labellers."""

import logging
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from structpred.cli.files import json_lines, write_output
from structpred.cli.kinds.kind import RUNNER_UP, Asked, Evaluating, Explained, Explaining, Predicting, Scored
from structpred.cli.options import given, refuse
from structpred.cli.sequences.data import (
    Data,
    Reader,
    format_predictions,
    head_of,
    read_data,
    refuse_running_text,
    shards_of,
    tokens_of,
)
from structpred.errors import DataError, InfeasibleError, ParameterError
from structpred.io.columns import read_columns
from structpred.models import ChainLabeler
from structpred.models.chain.partial import comparable

if TYPE_CHECKING:
    from structpred.distributed import Shards

log = logging.getLogger("structpred.cli")

Labels = list[list[str]]


def predict(model: ChainLabeler, asked: Predicting) -> None:
    """Write the labels in the format of the data, or one JSON object per sequence."""
    model.n_jobs = model.n_jobs if asked.n_jobs is None else asked.n_jobs
    read = read_for(model, asked)
    refuse_running_text(read, [str(label) for label in model.classes_.tolist()])
    text = json_lines(_entries(model, read, asked)) if asked.as_json else format_predictions(read, predict_labels(model, read))
    write_output(asked.output, text)


def shards(model: ChainLabeler, asked: Predicting, n: int) -> "Shards":
    """Pieces of the file; there may be no labels."""
    if asked.own["folds"] is not None:
        raise ParameterError("--folds is for OCR data, which --shards does not cut")
    reader = reader_for(model, asked)
    if reader.format == "ocr":
        raise ParameterError("--shards is for column files and CRFsuite text, not for pixels")
    head = head_of(asked.data, reader, asked.reading.encoding)
    refuse_running_text(head, [str(label) for label in model.classes_.tolist()])
    width = getattr(head.corpus, "n_columns", None)
    return shards_of(asked.data, n, Reader(reader.format, None, width), asked.reading.encoding)


def words_as_data(model: ChainLabeler, asked: Predicting, sentences: Sequence[Sequence[str]]) -> str:
    """A column file with each word in the column that the templates read, and _ in the others.

    Raises DataError for a model that reads more than words, or no columns.
    """
    from structpred.bridges.annotator import columns_read

    reader, read = reader_for(model, asked), columns_read(model)
    if len(read) != 1:
        what = f"the columns {', '.join(map(str, sorted(read)))} of its data" if read else "features that are not words"
        raise DataError(f"--text: {asked.model} reads {what}, and running text has words only; give what it was trained on")
    (word,) = read
    width = reader.n_columns or max(word + 2, 3 if reader.format == "conll2000" else 2)
    if reader.n_columns is not None and reader.label_column == width - 1:
        width -= 1  # data to predict may lack the labels
    rows = [[" ".join(form if k == word else "_" for k in range(width)) for form in words] for words in sentences]
    return "\n".join("".join(f"{row}\n" for row in lines) for lines in rows)


def reader_for(model: ChainLabeler, asked: Asked) -> Reader:
    """How the training data of the labeller were read, or as the user says."""
    return Reader.of_model(model, asked.model, asked.reading.format, asked.own["label_column"])


def read_for(model: ChainLabeler, asked: Asked) -> Data:
    """The data, read as the training data of the labeller were."""
    reader = reader_for(model, asked)
    return read_data(asked.data, reader, asked.own["folds"], encoding=asked.reading.encoding, on_error=asked.reading.on_error)


def read_labelled(model: ChainLabeler, asked: Asked) -> Data:
    """The same; raises DataError where there are no labels."""
    read = read_for(model, asked)
    if read.labels is None:
        raise DataError(f"{asked.data}: expected labels in the last column, as in the training data, but this column is missing")
    return read


def predict_labels(model: ChainLabeler, data: Data) -> list[Any]:
    """The labels of all sequences; says how fast it was."""
    start = time.perf_counter()
    predicted: list[Any] = model.predict(data.corpus)
    log.debug("labelled %d tokens in %.2f s, features included", data.n_tokens, time.perf_counter() - start)
    return predicted


def strings_of(model: ChainLabeler, data: Data) -> Labels:
    """The same as strings, as files have them."""
    return [[str(label) for label in labels] for labels in predict_labels(model, data)]


def _entries(model: ChainLabeler, data: Data, asked: Predicting) -> list[dict[str, Any]]:
    """One entry per sequence, as `--json` writes it. Raises ParameterError for marginals of a model that has none."""
    X = data.corpus
    predicted, names = model.predict(X), [str(label) for label in model.classes_.tolist()]
    entries: list[dict[str, Any]] = [
        {"tokens": tokens, "labels": [str(label) for label in labels]}
        for tokens, labels in zip(tokens_of(data), predicted, strict=True)
    ]
    if model.probabilistic_ or asked.marginals:
        code = {name: k for k, name in enumerate(names)}
        for entry, table in zip(entries, model.predict_marginals(X), strict=True):
            rows = table.tolist()
            entry["probabilities"] = [row[code[label]] for row, label in zip(rows, entry["labels"], strict=True)]
            if asked.marginals:
                entry["marginals"] = [dict(zip(names, row, strict=True)) for row in rows]
    if asked.kbest is not None:
        for entry, best in zip(entries, model.predict_kbest(X, asked.kbest), strict=True):
            entry["kbest"] = [{"labels": [str(label) for label in labels], "score": score} for labels, score in best]
    return entries


def judged(model: ChainLabeler, asked: Evaluating) -> Scored:
    """Accuracy, phrases where there are any, labels and confusions, of the tokens whose true label is known."""
    read, reader = read_labelled(model, asked), reader_for(model, asked)
    gold, found = read.known(strings_of(model, read), reader)
    tokens: Labels | None = None
    if asked.own["most_confused"]:
        rows = [np.array(row, dtype=object) for row in tokens_of(read)]
        tokens = [list(row) for row in comparable(read.labels or [], rows, reader.missing)[1]]
    return _scored(gold, found, asked, tokens)


def judged_files(ctx: click.Context, model: str | None, asked: Evaluating) -> Scored:
    """The scores of a column file that ends in gold and predicted labels."""
    refuse(ctx, ("on_error",), "is not for --pred")
    more = [f"--{name.replace('_', '-')}" for name in ("format", "label_column", "folds") if given(ctx, name)]
    if more := [*([] if model is None else ["MODEL"]), *more]:
        raise click.UsageError(f"--pred FILE cannot be combined with {' and '.join(more)}")
    rows = read_columns(asked.own["pred"], encoding=asked.reading.encoding)
    if rows.n_columns < 2:
        raise DataError(f"{rows.where(0)}: expected at least 2 columns, the last two gold and predicted label, got 1")
    return _scored(rows.labels(-2), rows.labels(-1), asked, rows.labels(0))


def _scored(
    gold: Sequence[Sequence[Any]], predicted: Sequence[Sequence[Any]], asked: Evaluating, tokens: Labels | None
) -> Scored:
    """The scores; draws the confusions if they are wanted. tokens: what confusions are shown with."""
    from structpred.evaluation import confusion_matrix, evaluate_sequences

    result = evaluate_sequences(gold, predicted, asked.own["scheme"])
    if asked.confusion is not None:
        from structpred import report

        report.confusion(*confusion_matrix(gold, predicted), asked.confusion)
    parts = [result.table(details=asked.per_type)]
    if asked.own["per_label"]:
        parts.append(result.label_table())
    if asked.own["most_confused"]:
        parts.append(result.confusion_table(tokens))
    return Scored(result.to_dict(), "\n\n".join(parts))


def explain(model: ChainLabeler, asked: Explaining) -> Explained:
    """Why one sequence gets its labels; with --position against the best labels in which that token has another one."""
    from structpred.evaluation.model_selection import select_sequences

    data, position = read_for(model, asked), asked.own["position"]
    i = asked.chosen(data.n_sequences)
    x, tokens = select_sequences(data.corpus, [i]), tokens_of(data)[i]
    other: Any = asked.runner_up("here, or a label with --position N") if position is None else None
    if position is not None:
        if position >= len(tokens):
            raise ParameterError(f"--position {position}: sample {i} has {len(tokens)} tokens, numbered from 0")
        other = _with_another_label(model, x, len(tokens), position, asked.against)
    return Explained(" ".join(tokens), model.explain(x, against=other))


def _with_another_label(model: ChainLabeler, x: Any, n: int, position: int, against: str | None) -> list[Any]:
    """The best labels in which the token has the label `against`, or any but its own."""
    classes, own = model.classes_.tolist(), model.predict(x)[0][position]
    wanted = [label for label in classes if (label != own if against in (None, RUNNER_UP) else str(label) == against)]
    if own in wanted:
        raise click.UsageError(f"--against {against}: this is the label that token {position} has")
    if not wanted:
        known = ", ".join(map(str, classes[:20]))
        raise ParameterError(f"--against {against}: the model does not know this label; it has {known}")
    allowed: list[Any] = [None] * n
    allowed[position] = wanted
    try:
        labels: list[Any] = model.predict(x, allowed=[allowed])[0].tolist()
    except InfeasibleError:
        raise DataError(f"the constraints of the model leave token {position} no other label") from None
    return labels
