"""What `structpred predict` and `structpred evaluate` do for sequence labellers."""

import json
import logging
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from structpred.cli.files import write_output
from structpred.cli.kinds.kind import Asked, Evaluating, Predicting
from structpred.cli.sequences.data import (
    Data,
    Reader,
    format_predictions,
    read_data,
    refuse_running_text,
    tokens_of,
)
from structpred.errors import DataError
from structpred.io.columns import read_columns
from structpred.models import ChainLabeler
from structpred.models.chain.partial import comparable

log = logging.getLogger("structpred.cli")

Labels = list[list[str]]


def predict(model: ChainLabeler, asked: Predicting) -> None:
    """Write the labels in the format of the data, or one JSON object per sequence."""
    model.n_jobs = model.n_jobs if asked.n_jobs is None else asked.n_jobs
    read = read_for(model, asked)
    refuse_running_text(read, [str(label) for label in model.classes_.tolist()])
    if asked.as_json:
        text = "".join(f"{json.dumps(entry)}\n" for entry in _entries(model, read, asked))
    else:
        text = format_predictions(read, predict_labels(model, read))
    write_output(asked.output, text)


def words_as_rows(model: ChainLabeler, asked: Predicting, sentences: Sequence[Sequence[str]]) -> str:
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


def scored(
    gold: Sequence[Sequence[Any]], predicted: Sequence[Sequence[Any]], asked: Evaluating, tokens: Labels | None = None
) -> str:
    """The scores as text or as a JSON object; draws the confusions if they are wanted. tokens: what confusions are shown with."""
    from structpred.evaluation import confusion_matrix, evaluate_sequences

    result = evaluate_sequences(gold, predicted, asked.own["scheme"])
    if asked.confusion is not None:
        from structpred import report

        report.confusion(*confusion_matrix(gold, predicted), asked.confusion)
    if asked.as_json:
        return result.to_json()
    parts = [result.table(details=asked.per_type)]
    if asked.own["per_label"]:
        parts.append(result.label_table())
    if asked.own["most_confused"]:
        parts.append(result.confusion_table(tokens))
    return "\n\n".join(parts)


def known_tokens(data: Data, missing: str | None) -> Labels:
    """What to show of each token whose true label is known."""
    rows = [np.array(row, dtype=object) for row in tokens_of(data)]
    return [list(row) for row in comparable(data.labels or [], rows, missing)[1]]


def two_last_columns(path: str, encoding: str) -> tuple[Labels, Labels, Labels]:
    """Gold and predicted labels of a column file, and its first column."""
    rows = read_columns(path, encoding=encoding)
    if rows.n_columns < 2:
        raise DataError(f"{rows.where(0)}: expected at least 2 columns, the last two gold and predicted label, got 1")
    return rows.labels(-2), rows.labels(-1), rows.labels(0)
