"""What `structpred inspect` and `report` say of a sequence labeller."""

import json
from typing import Any

import click
import numpy as np

from structpred.cli.facts import Learnt, Pairs, described
from structpred.cli.files import check_picture
from structpred.cli.kinds.kind import Inspecting, Reporting
from structpred.cli.sequences.data import Data, tokens_of
from structpred.cli.sequences.results import read_labelled, reader_for, strings_of
from structpred.evaluation import confusion_matrix, evaluate_sequences
from structpred.evaluation.model_selection import select_sequences
from structpred.io.ocr import N_PIXELS, OcrWords
from structpred.models import ChainLabeler
from structpred.models.chain.constraints import resolve_constraints
from structpred.models.chain.inspection import Inspection, inspect_weights
from structpred.report import transitions as draw_transitions
from structpred.report.contents import About, Contents, Example, Weights
from structpred.report.page import page as page_of

_MOST_TOKENS = 120
_MOST_CANDIDATES = 4


def facts(model: ChainLabeler, header: dict[str, Any]) -> Pairs:
    """Settings and training of a labeller, as pairs of a name and a line for people."""
    constraints = json.dumps(header["constraints"]) if header["constraints"] else "none"
    return described(header, [("constraints", constraints)], data=f"{header['input']}, ")


def _features(found: Inspection) -> Pairs:
    return [("features", f"{found.n_features}, {found.n_features_used} of them with a weight")]


def learnt(model: ChainLabeler, asked: Inspecting) -> Learnt:
    """Labels, transitions and the strongest weights; draws the transitions if that is wanted."""
    picture, labels = asked.own["picture"], model.classes_.tolist()
    check_picture(picture, "--picture", (asked.model,))
    found = inspect_weights(model, asked.top, asked.label)
    if picture is not None:
        draw_transitions(model.transitions_, labels, picture)
    data = {"labels": labels, "transitions": model.transitions_.tolist(), "weights": found.to_dict()}
    return Learnt(data, found.table(), _features(found), left_out=())


def page(model: ChainLabeler, asked: Reporting, about: About) -> str:
    """Transitions and strongest features; with data also scores, confusions and examples."""
    if not asked.data and any(asked.own[name] is not None for name in ("label_column", "folds")):
        raise click.UsageError("--label-column and --folds need DATA, which is missing")
    about_data = {} if not asked.data else _judged(model, read_labelled(model, asked), asked)
    found = model.top_features(asked.top)
    edges = model.transitions_
    start, stop = (np.array([getattr(entry, side) for entry in found.labels]) for side in ("start", "stop"))
    if (rules := resolve_constraints(model.constraints)) is not None:
        follow, first, last = rules.tables(model.classes_.tolist())
        edges, start, stop = (np.where(may, w, -np.inf) for may, w in ((follow, edges), (first, start), (last, stop)))
    contents = Contents(
        title=about.title,
        facts=[*about.facts, *_features(found), ("labels", str(len(model.classes_)))],
        stages=about.stages,
        labels=[str(label) for label in model.classes_.tolist()],
        transitions=edges,
        start=start,
        stop=stop,
        templates=_pixel_weights(model),
        weights=[Weights(str(entry.label), entry.positive, entry.negative) for entry in found.labels],
        **about_data,
    )
    return page_of(contents)


def _pixel_weights(model: ChainLabeler) -> list[tuple[str, Any]]:
    """The weights of each label as an image, for OCR data; nothing for other features."""
    known: dict[str, Any] = getattr(model, "reader_", None) or {}
    if known.get("format") != "ocr" or model.n_features_in_ != N_PIXELS:
        return []
    table = model.emissions_
    return [(str(label), table[:, k].reshape(-1, 8)) for k, label in enumerate(model.classes_.tolist())]


def _judged(model: ChainLabeler, read: Data, asked: Reporting) -> dict[str, Any]:
    """What the page says of the data: scores, confusions, examples."""
    gold, n_examples = read.labels or [], asked.examples
    predicted = strings_of(model, read)
    known = read.known(predicted, reader_for(model, asked))
    wrong = [i for i, (one, other) in enumerate(zip(gold, predicted, strict=True)) if one != other]
    right = [i for i, (one, other) in enumerate(zip(gold, predicted, strict=True)) if one == other]
    chosen = _spread(wrong, n_examples)
    chosen += _spread(right, n_examples - len(chosen))
    tokens = tokens_of(read) if chosen else []
    return {
        "data": read.corpus.name,
        "evaluation": evaluate_sequences(*known),
        "confusion": confusion_matrix(*known),
        "examples": [_example(model, read, i, predicted[i], tokens[i]) for i in chosen],
        "sureness": "probability" if model.probabilistic_ else "score gap",
    }


def _spread(numbers: list[int], n: int) -> list[int]:
    """n of the numbers, evenly spread; all where there are fewer."""
    step = max(1, len(numbers) // n) if n > 0 else 1
    return numbers[::step][: max(n, 0)]


def _example(model: ChainLabeler, read: Data, i: int, predicted: list[str], tokens: list[str]) -> Example:
    """Sequence i with how sure the model is of each label; very long ones are cut."""
    corpus = select_sequences(read.corpus, [i])
    gold = (read.labels or [])[i]
    classes = [str(label) for label in model.classes_.tolist()]
    candidates: list[list[tuple[str, float]]] = []
    if model.probabilistic_:
        marginals = model.predict_marginals(corpus)[0]
        sure = [float(row[classes.index(label)]) for row, label in zip(marginals, predicted, strict=True)]
        orders = (-marginals).argsort(axis=1, kind="stable")[:, :_MOST_CANDIDATES].tolist()
        candidates = [[(classes[k], float(row[k])) for k in order] for row, order in zip(marginals, orders, strict=True)]
    else:
        sure = model.predict_score_gaps(corpus)[0].tolist()
    n = min(len(gold), _MOST_TOKENS)
    images = corpus.pixels.reshape(-1, 16, 8)[:n] if isinstance(corpus, OcrWords) else None
    where = f"line {int(corpus.lines[0])}" + (f", the first {n} of {len(gold)} tokens" if n < len(gold) else "")
    return Example(where, tokens[:n], gold[:n], predicted[:n], sure[:n], images, candidates[:n])
