"""What the commands do with a sequence labeller."""

import json
import logging
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from structpred.bridges.annotator import columns_read
from structpred.cli.facts import Learnt, Pairs, described
from structpred.cli.files import check_picture, json_lines, write_output
from structpred.cli.kinds.kind import RUNNER_UP, Asked, Explained, Scored
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
from structpred.io.columns import COLUMN_FORMATS, read_columns
from structpred.io.ocr import N_PIXELS, OcrWords
from structpred.models import ChainLabeler
from structpred.models.chain.inputs import RowInput
from structpred.models.chain.targets import comparable

if TYPE_CHECKING:
    from structpred.distributed import Shards
    from structpred.evaluation import Calibration
    from structpred.report.contents import About, Example

log = logging.getLogger("structpred.cli")

Labels = list[list[str]]
_MOST_TOKENS = 120
_MOST_CANDIDATES = 4


def predict(model: ChainLabeler, asked: Asked) -> None:
    """Write the labels in the format of the data, or one JSON object per sequence."""
    model.n_jobs = model.n_jobs if asked.n_jobs is None else asked.n_jobs
    read, objects = _read(model, asked), asked.as_json or _reader(model, asked).format == "jsonl"
    refuse_running_text(read, [str(label) for label in model._encoder.answers])
    if objects:
        text = json_lines(_entries(model, read, asked))
    else:
        text = _phrase_lines(model, read) if asked.own["phrases"] else format_predictions(read, _predicted(model, read))
    write_output(asked.output, text)


def _phrase_lines(model: ChainLabeler, data: Data) -> str:
    """A line for each phrase, its fields separated by tabs."""
    rows = enumerate(zip(model.predict_phrases(data.corpus), tokens_of(data), strict=True))
    fields = ((i, *p[:3], f"{p.probability:.6f}", " ".join(words[p.start : p.end])) for i, (own, words) in rows for p in own)
    return "".join("\t".join(map(str, row)) + "\n" for row in fields)


def shards(model: ChainLabeler, asked: Asked, n: int) -> "Shards":
    """Pieces of the file; there may be no labels."""
    if asked.own["folds"] is not None or asked.own["phrases"]:
        raise ParameterError("--folds is for OCR data, which --shards does not cut; --phrases cannot be combined with --shards")
    reader = _reader(model, asked)
    if reader.format in ("ocr", "jsonl"):
        raise ParameterError("--shards is for column files and CRFsuite text, not for pixels and JSON lines")
    head = head_of(asked.data, reader, asked.reading.encoding)
    refuse_running_text(head, [str(label) for label in model._encoder.answers])
    width = getattr(head.corpus, "n_columns", None)
    return shards_of(asked.data, n, Reader(reader.format, None, width), asked.reading.encoding)


def words_as_data(model: ChainLabeler, asked: Asked, sentences: Sequence[Sequence[str]]) -> str:
    """A column file with each word in the column that the templates read, and _ in the others.

    Raises DataError for a model that reads more than words, or no columns.
    """
    reader, read = _reader(model, asked), columns_read(model)
    if len(read) != 1:
        what = f"the columns {', '.join(map(str, sorted(read)))} of its data" if read else "features that are not words"
        raise DataError(f"--text: {asked.model} reads {what}, and running text has words only; give what it was trained on")
    if reader.format == "jsonl":
        return json_lines({"tokens": words} for words in sentences)
    (word,) = read
    width = reader.n_columns or max(word + 2, COLUMN_FORMATS[reader.format] or 2)
    if reader.n_columns is not None and reader.label_column == width - 1:
        width -= 1  # data to predict may lack the labels
    rows = [[" ".join(form if k == word else "_" for k in range(width)) for form in words] for words in sentences]
    return "\n".join("".join(f"{row}\n" for row in lines) for lines in rows)


def _reader(model: ChainLabeler, asked: Asked) -> Reader:
    """How the training data of the labeller were read, or as the user says."""
    return Reader.of_model(model, asked.model, asked.reading.format, asked.own["label_column"])


def _read(model: ChainLabeler, asked: Asked) -> Data:
    """The data, read as the training data of the labeller were."""
    reader, columns, (_, encoding, on_error) = _reader(model, asked), columns_read(model), asked.reading
    word = min(columns) if len(columns) == 1 else None
    return read_data(asked.data, reader, asked.own["folds"], encoding=encoding, on_error=on_error, word=word)


def _labelled(model: ChainLabeler, asked: Asked) -> Data:
    """The same; raises DataError where there are no labels."""
    read = _read(model, asked)
    if read.labels is None:
        raise DataError(f"{asked.data}: expected labels in the last column, as in the training data, but this column is missing")
    return read


def _predicted(model: ChainLabeler, data: Data) -> list[Any]:
    """The labels of all sequences; says how fast it was."""
    start = time.perf_counter()
    predicted: list[Any] = model.predict(data.corpus)
    log.debug("labelled %d tokens in %.2f s, features included", data.corpus.n_tokens, time.perf_counter() - start)
    return predicted


def _strings(model: ChainLabeler, data: Data) -> Labels:
    """The same as strings, as files have them."""
    return [[str(label) for label in labels] for labels in _predicted(model, data)]


def _entries(model: ChainLabeler, data: Data, asked: Asked) -> list[dict[str, Any]]:
    """One entry per sequence, as `--json` writes it. Raises ParameterError for marginals of a model that has none."""
    X = data.corpus
    predicted = model.predict(X)
    entries: list[dict[str, Any]] = [
        {"tokens": tokens, "labels": [str(label) for label in labels]}
        for tokens, labels in zip(tokens_of(data), predicted, strict=True)
    ]
    if model.probabilistic_ or asked.marginals:
        names, tables, labels = model._encoder.in_answers(predicted, model.predict_marginals(X))
        for entry, own, table in zip(entries, labels, tables, strict=True):
            rows = [dict(zip(names, row, strict=True)) for row in table.tolist()]
            entry["probabilities"] = [row[label] for row, label in zip(rows, own, strict=True)]
            if asked.marginals:
                entry["marginals"] = [{str(label): p for label, p in row.items()} for row in rows]
    if asked.own["phrases"]:
        for entry, phrases in zip(entries, model.predict_phrases(X), strict=True):
            entry["phrases"] = [phrase._asdict() for phrase in phrases]
    if asked.kbest is not None:
        for entry, best in zip(entries, model.predict_kbest(X, asked.kbest), strict=True):
            entry["kbest"] = [{"labels": [str(label) for label in labels], "score": score} for labels, score in best]
    return entries


def judged(model: ChainLabeler, asked: Asked) -> Scored:
    """Accuracy, phrases where there are any, labels and confusions, of the tokens whose true label is known."""
    read, reader = _labelled(model, asked), _reader(model, asked)
    gold, found = read.known(_strings(model, read), reader)
    tokens: Labels | None = None
    if asked.own["most_confused"]:
        rows = [np.array(row, dtype=object) for row in tokens_of(read)]
        tokens = [list(row) for row in comparable(read.labels or [], rows, reader.missing)[1]]
    scored = _scored(gold, found, asked, tokens)
    if (wanted := asked.own["precision"]) is None:
        return scored
    trust = _calibration(model, read, gold)
    least = trust.threshold_for(wanted)
    where = "at no probability" if least is None else f"from {least:.4f} on, {100 * trust.at(least).recall:.2f} % of all phrases"
    figures = {**scored.figures, "calibration": {**trust.to_dict(), "threshold": least}}
    return Scored(figures, f"{scored.text}\n\n{trust.table()}\n{100 * wanted:g} % are right {where}")


def _calibration(model: ChainLabeler, data: Data, gold: Sequence[Sequence[Any]]) -> "Calibration":
    """How reliable the probabilities of phrases are; DataError where labels are missing."""
    from structpred.evaluation import calibration

    if gold is not data.labels:
        raise DataError(f"{data.corpus.name}: probabilities of phrases are judged where no label is missing")
    return calibration(gold, model.predict_phrases(data.corpus))


def judged_files(ctx: click.Context, model: str | None, asked: Asked) -> Scored:
    """The scores of a column file that ends in gold and predicted labels."""
    refuse(ctx, ("on_error",), "is not for --pred")
    more = [f"--{name.replace('_', '-')}" for name in ("format", "label_column", "folds", "precision") if given(ctx, name)]
    if more := [*([] if model is None else ["MODEL"]), *more]:
        raise click.UsageError(f"--pred FILE cannot be combined with {' and '.join(more)}")
    rows = read_columns(asked.own["pred"], encoding=asked.reading.encoding)
    if rows.n_columns < 2:
        raise DataError(f"{rows.where(0)}: expected at least 2 columns, the last two gold and predicted label, got 1")
    return _scored(rows.labels(-2), rows.labels(-1), asked, rows.labels(0))


def _scored(gold: Sequence[Sequence[Any]], predicted: Sequence[Sequence[Any]], asked: Asked, tokens: Labels | None) -> Scored:
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


def explain(model: ChainLabeler, asked: Asked) -> Explained:
    """Why one sequence gets its labels; with --position against the best labels in which that token has another one."""
    from structpred.evaluation.model_selection import select_sequences

    data, position = _read(model, asked), asked.own["position"]
    i = asked.chosen(len(data.corpus))
    x, tokens = select_sequences(_in_documents(model, data.corpus), [i]), tokens_of(data)[i]
    other: Any = asked.runner_up("here, or a label with --position N") if position is None else None
    if position is not None:
        if position >= len(tokens):
            raise ParameterError(f"--position {position}: sample {i} has {len(tokens)} tokens, numbered from 0")
        other = _with_another_label(model, x, len(tokens), position, asked.against)
    return Explained(" ".join(tokens), model.explain(x, against=other))


def _in_documents(model: ChainLabeler, corpus: Any) -> Any:
    """The corpus as models take it, of which a part keeps the features that look at whole documents."""
    return model.input_.transform(corpus) if isinstance(model.input_, RowInput) else corpus


def _with_another_label(model: ChainLabeler, x: Any, n: int, position: int, against: str | None) -> list[Any]:
    """The best labels in which the token has the label `against`, or any but its own."""
    classes, own = model._encoder.answers, model.predict(x)[0][position]
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
        labels = []
    if not labels or labels[position] == own:  # a label that breaks the scheme is read as another one
        raise DataError(f"the constraints of the model leave token {position} no other label")
    return labels


def facts(model: ChainLabeler, header: dict[str, Any]) -> Pairs:
    """Settings and training, as pairs of a name and a line for people."""
    constraints = json.dumps(header["constraints"]) if header["constraints"] else "none"
    found = model.top_features(1)
    features = ("features", f"{found.n_features}, {found.n_features_used} of them with a weight")
    coding = [("coding", "{} inside, {} in answers".format(*model.coding_))] if model.coding_ else []
    stages = [("stages", f"2; of the first: {model.first_stage_.certificate_}")] if model.stages == 2 else []
    return [*described(header, [("constraints", constraints), *coding, *stages], data=f"{header['input']}, "), features]


def learnt(model: ChainLabeler, asked: Asked) -> Learnt:
    """Labels, transitions and the strongest weights; draws the transitions if that is wanted."""
    picture, labels = asked.own["picture"], model.classes_.tolist()
    check_picture(picture, "--picture", (asked.model,))
    found = model.top_features(asked.top, label=asked.label)
    if picture is not None:
        from structpred.report import transitions

        transitions(model.transitions_, labels, picture)
    data = {"labels": labels, "stages": model.stages, "transitions": model.transitions_.tolist(), "weights": found.to_dict()}
    return Learnt(data, found.table(), left_out=())


def page(model: ChainLabeler, asked: Asked, about: "About") -> str:
    """Transitions and strongest features; with data also scores, confusions and examples."""
    from structpred.models.chain.constraints import rules_inside
    from structpred.report.contents import Contents, Weights
    from structpred.report.page import page as page_of

    if not asked.data and any(asked.own[name] is not None for name in ("label_column", "folds")):
        raise click.UsageError("--label-column and --folds need DATA, which is missing")
    about_data = {} if not asked.data else _about_data(model, _labelled(model, asked), asked)
    found = model.top_features(asked.top)
    edges = model.transitions_
    start, stop = (np.array([getattr(entry, side) for entry in found.labels]) for side in ("start", "stop"))
    if (rules := rules_inside(model.constraints, model.coding_)) is not None:
        follow, first, last = rules.tables(model.classes_.tolist())
        edges, start, stop = (np.where(may, w, -np.inf) for may, w in ((follow, edges), (first, start), (last, stop)))
    images: list[tuple[str, Any]] = []
    if (getattr(model, "reader_", None) or {}).get("format") == "ocr" and model.n_features_in_ == N_PIXELS:
        table = model.emissions_
        images = [(str(label), table[:, k].reshape(-1, 8)) for k, label in enumerate(model.classes_.tolist())]
    contents = Contents(
        title=about.title, facts=[*about.facts, ("labels", str(len(model.classes_)))], stages=about.stages,
        labels=[str(label) for label in model.classes_.tolist()], transitions=edges, start=start, stop=stop, templates=images,
        weights=[Weights(str(entry.label), entry.positive, entry.negative) for entry in found.labels], **about_data,
    )  # fmt: skip
    return page_of(contents)


def _about_data(model: ChainLabeler, read: Data, asked: Asked) -> dict[str, Any]:
    """What the page says of the data: scores, confusions, examples."""
    from structpred.evaluation import confusion_matrix, evaluate_sequences

    gold, n_examples = read.labels or [], asked.examples
    predicted = _strings(model, read)
    known = read.known(predicted, _reader(model, asked))
    wrong = [i for i, (one, other) in enumerate(zip(gold, predicted, strict=True)) if one != other]
    right = [i for i, (one, other) in enumerate(zip(gold, predicted, strict=True)) if one == other]
    chosen = _spread(wrong, n_examples)
    chosen += _spread(right, n_examples - len(chosen))
    tokens, packed = (tokens_of(read), _in_documents(model, read.corpus)) if chosen else ([], None)
    result = evaluate_sequences(*known)
    reliable = model.probabilistic_ and result.f1 is not None and known[0] is gold
    return {
        "data": read.corpus.name,
        "evaluation": result,
        "calibration": _calibration(model, read, gold) if reliable else None,
        "confusion": confusion_matrix(*known),
        "examples": [_example(model, read, packed, i, predicted[i], tokens[i]) for i in chosen],
        "sureness": "probability" if model.probabilistic_ else "score gap",
    }


def _spread(numbers: list[int], n: int) -> list[int]:
    """n of the numbers, evenly spread; all where there are fewer."""
    step = max(1, len(numbers) // n) if n > 0 else 1
    return numbers[::step][: max(n, 0)]


def _example(model: ChainLabeler, read: Data, packed: Any, i: int, predicted: list[str], tokens: list[str]) -> "Example":
    """Sequence i with how sure the model is of each label; very long ones are cut. packed: of `_in_documents`."""
    from structpred.evaluation.model_selection import select_sequences
    from structpred.report.contents import Example

    corpus, x = select_sequences(read.corpus, [i]), select_sequences(packed, [i])
    gold = (read.labels or [])[i]
    candidates: list[list[tuple[str, float]]] = []
    if model.probabilistic_:
        names, (marginals,), (best,) = model._encoder.in_answers(model.predict(x), model.predict_marginals(x))
        sure = [float(row[names.index(label)]) for row, label in zip(marginals, best, strict=True)]
        orders = (-marginals).argsort(axis=1, kind="stable")[:, :_MOST_CANDIDATES].tolist()
        candidates = [[(str(names[k]), float(row[k])) for k in order] for row, order in zip(marginals, orders, strict=True)]
    else:
        sure = model.predict_score_gaps(x)[0].tolist()
    n = min(len(gold), _MOST_TOKENS)
    images = corpus.pixels.reshape(-1, 16, 8)[:n] if isinstance(corpus, OcrWords) else None
    where = f"line {int(corpus.lines[0])}" + (f", the first {n} of {len(gold)} tokens" if n < len(gold) else "")
    return Example(where, tokens[:n], gold[:n], predicted[:n], sure[:n], images, candidates[:n])
