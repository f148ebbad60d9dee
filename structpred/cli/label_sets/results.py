"""What the commands do with a multi-label model."""

import os
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from structpred.cli.facts import Learnt, Pairs, described
from structpred.cli.files import json_lines, write_output
from structpred.cli.kinds.kind import Asked, Explained, Scored
from structpred.cli.label_sets.training import described_features
from structpred.evaluation.multilabel import HierarchyScores, MultiLabelScores, evaluate_hierarchy, evaluate_multilabel
from structpred.io.multilabel.by_format import Reading, label_format, read_examples, read_rows
from structpred.io.multilabel.data import MultiLabelData
from structpred.io.text import label_sets
from structpred.models.fields.multilabel import HierarchicalMultiLabel, MultiLabelMRF

if TYPE_CHECKING:
    from structpred.distributed import Shards
    from structpred.report.contents import About

Model = MultiLabelMRF | HierarchicalMultiLabel


def predict(model: Model, asked: Asked) -> None:
    """Write a line per example: its labels separated by tabs, nothing for none; as JSON an object with labels and scores."""
    rows, names = _rows(model, asked), model.label_names_
    found = model.predict(rows).tolist()
    if not asked.as_json:
        write_output(asked.output, label_sets(found, names))
        return
    entries: list[dict[str, Any]] = [{"labels": [names[k] for k, on in enumerate(row) if on]} for row in found]
    tables = {"scores": model.predict_scores(rows)} | ({"marginals": model.predict_marginals(rows)} if asked.marginals else {})
    for key, table in tables.items():
        for entry, row in zip(entries, table.tolist(), strict=True):
            entry[key] = dict(zip(names, row, strict=True))
    write_output(asked.output, json_lines(entries))


def _rows(model: Model, asked: Asked) -> Any:
    """The features of all examples."""
    return read_rows(Reading.of_model(model), asked.data, asked.reading.format, asked.reading.encoding)


def shards(model: Model, asked: Asked, n: int) -> "Shards":
    """Ranges of the lines of the file; there may be no labels."""
    from structpred.distributed import Shards
    from structpred.distributed.reading import held_head

    format, encoding = label_format(asked.data, asked.reading.format), asked.reading.encoding
    cut = Shards.of_label_sets(os.path.abspath(asked.data), n, format=format, encoding=encoding)
    read_rows(Reading.of_model(model), held_head(asked.data, format), format, encoding)
    return cut


def explain(model: Model, asked: Asked) -> Explained:
    """Why one example gets its labels, or one label is on or off."""
    rows = _rows(model, asked)
    i, label, against = asked.chosen(rows.shape[0]), asked.label, asked.runner_up("or --label LABEL")
    return Explained(f"example {i}", model.explain(rows[[i]], label=label, against=None if label else against))


def _predicted_and_scored(model: Model, asked: Asked) -> tuple[MultiLabelData, Any, MultiLabelScores, HierarchyScores | None]:
    """Labelled data, what a model predicts there, the scores, and those along its hierarchy if it has one."""
    reading = Reading.of_model(model)
    examples = read_examples(reading, asked.data, asked.reading.format, encoding=asked.reading.encoding)
    predicted = model.predict(examples.X)
    along = None if reading.hierarchy is None else evaluate_hierarchy(examples, predicted)
    return examples, predicted, evaluate_multilabel(examples, predicted, scores=model.predict_scores(examples.X)), along


def judged(model: Model, asked: Asked) -> Scored:
    """Accuracy, loss and F1, with a hierarchy along it, too; a line per label if that is wanted."""
    _, _, scores, along = _predicted_and_scored(model, asked)
    lines = [f"{scores.n} examples, {len(scores.labels)} labels", *_shares(_figures(scores))]
    if along is not None:
        lines += ["", "along the hierarchy, ancestors counted"]
        lines += _shares([("F1", along.f1), ("precision", along.precision), ("recall", along.recall)])
        lines += [f"{'H-loss of an example':<22} {along.h_loss:7.3f}"]
        lines += _shares([(f"F1 at depth {depth}", value) for depth, value in enumerate(along.by_depth)])
    if asked.per_type:
        width = max(5, *(len(one.name) for one in scores.labels))
        lines += ["", f"{'label':<{width}} precision  recall     F1  support  predicted"]
        for one in scores.labels:
            shares = f"{100 * one.precision:9.2f} {100 * one.recall:7.2f} {100 * one.f1:6.2f}"
            lines.append(f"{one.name:<{width}} {shares} {one.support:>8} {one.predicted:>10}")
    return Scored({**scores.to_dict(), "hierarchy": None if along is None else vars(along)}, "\n".join(lines))


def _shares(figures: Sequence[tuple[str, float]]) -> list[str]:
    return [f"{name:<22} {100 * value:6.2f}" for name, value in figures]


def _figures(scores: MultiLabelScores) -> list[tuple[str, float]]:
    """The figures of all labels together, shares in [0, 1], by the names that people use."""
    return [
        ("accuracy (Jaccard)", scores.accuracy),
        ("label loss (Hamming)", scores.label_loss),
        ("whole sets right", scores.subset_accuracy),
        ("micro F1", scores.micro_f1),
        ("micro precision", scores.micro_precision),
        ("micro recall", scores.micro_recall),
        ("macro F1", scores.macro_f1),
        ("F1 of examples", scores.example_f1),
        *([] if scores.au_prc is None else [("AU(PRC), micro", scores.au_prc)]),
    ]


def facts(model: Model, header: dict[str, Any]) -> Pairs:
    """Settings and training, as pairs of a name and a line for people."""
    joined, depth, hierarchy = f"{len(model.edges_)} pairs of labels", "", getattr(model, "hierarchy_", None)
    if hierarchy is not None:
        joined = f"a hierarchy of {len(hierarchy.edges)} edges"
        depth = f", depth {int(hierarchy.depths.max())}{'' if hierarchy.is_tree else ', not a tree'}"
    own = [
        ("labels", f"{model.n_labels_}, over {described_features(model)}"),
        ("joined by", f"{joined}{depth}; inference by {type(model.oracle_).__name__}"),
    ]
    return described(header, own)


def learnt(model: Model, asked: Asked) -> Learnt:
    """Labels and edges, and the `top` features and pairs of either sign."""
    hierarchy = getattr(model, "hierarchy_", None)
    found = model.top_features(asked.top, label=asked.label)
    data = {
        "reader": {name: value for name, value in (model.reader_ or {}).items() if name != "feature_names"},
        "labels": model.label_names_,
        "n_features": model.n_features_in_,
        "edges": model.edges_.tolist(),
        "hierarchy": None if hierarchy is None else hierarchy.edges.tolist(),
        "oracle": type(model.oracle_).__name__,
        "weights": asdict(found),
    }
    return Learnt(data, found.table(asked.top), left_out=("input", "constraints", "probabilistic"))


def page(model: Model, asked: Asked, about: "About") -> str:
    """A page: certificate, training, scores and a row per label with DATA, pairs and strongest features."""
    from structpred.evaluation.multilabel import cooccurrence
    from structpred.report.contents import Weights
    from structpred.report.parsing_sections import OnLabels, label_report

    found, data = model.top_features(asked.top), None
    if asked.data:
        examples, predicted, scores, along = _predicted_and_scored(model, asked)
        more = [] if along is None else [("F1 along the hierarchy", along.f1)]
        data = OnLabels(asked.data, scores, [*_figures(scores), *more], cooccurrence(examples, predicted))
    weights = [Weights(o.label, o.positive, o.negative) for o in found.labels]
    return label_report(about, weights, found.pairs, data, asked.top)
