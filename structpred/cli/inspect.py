"""`structpred inspect`: what a model file holds, and what the model has learnt."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from structpred.cli.options import general_options, refuse

if TYPE_CHECKING:
    from structpred.core.result import Record
    from structpred.models.chain.inspection import Inspection


@click.command(short_help="Show what a model has learnt.")
@click.argument("model")
@click.option(
    "--top",
    default=20,
    show_default=True,
    type=click.IntRange(1),
    metavar="N",
    help="Strongest weights (parsers: templates) to show.",
)
@click.option("--label", metavar="LABEL", help="Only the weights of this label.")
@click.option("--picture", metavar="FILE", help="Draw the transitions, too: a .png or .svg.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object, with the whole history and all transitions.")
@general_options
@click.pass_context
def inspect(ctx: click.Context, /, model: str, top: int, label: str | None, picture: str | None, as_json: bool) -> None:
    """Show settings, certificate, history and weights of the model in the file MODEL.

    For every label the strongest features for (+) and against (-) it, and the transitions that are favoured and avoided. For a
    parser, how large the weights of each template are: which templates matter; and the certificates of both stages. For a
    multi-label model the strongest features of each label, and the pairs that go together or exclude each other.
    """
    from structpred.cli.corpora import check_output
    from structpred.cli.treebanks import load_model
    from structpred.models import ChainLabeler, DependencyParser
    from structpred.models.chain.inspection import inspect_weights
    from structpred.report import figures, transitions

    if picture is not None:
        figures.check_path(picture)
        check_output(picture, "--picture", inputs=(model,))
    labeler = load_model(model)
    if isinstance(labeler, DependencyParser):
        from structpred.cli.parser_inspect import parser_json, parser_text

        refuse(ctx, ("label", "picture"), "is not for parsers")
        click.echo((parser_json if as_json else parser_text)(labeler, model, top))
        return
    if not isinstance(labeler, ChainLabeler):
        from structpred.cli.label_inspect import label_json, label_text

        refuse(ctx, ("picture",), "is not for multi-label models")
        click.echo((label_json if as_json else label_text)(labeler, model, top, label))
        return
    facts = model_facts(model)
    weights = inspect_weights(labeler, top, label)
    if picture is not None:
        transitions(labeler.transitions_, labeler.classes_.tolist(), picture)
    if as_json:
        learnt = {"labels": labeler.classes_.tolist(), "transitions": labeler.transitions_.tolist(), "weights": weights.to_dict()}
        click.echo(json.dumps({**facts, **learnt}))
    else:
        click.echo(
            "\n".join([f"{model}: {facts['estimator']}", "", *_facts_table(facts, weights), *_weights_table(weights, label)])
        )


def model_facts(path: str) -> dict[str, Any]:
    """What the header of a model file says, without the parts that a program alone can read."""
    from structpred.models.files import FORMAT_VERSION
    from structpred.storage.bundles import read_bundle

    header = read_bundle(path, kind="model", format_version=FORMAT_VERSION).header
    wanted = ("estimator", "trainer", "loss", "settings", "constraints", "probabilistic", "certificate", "run", "history")
    facts = {name: header.get(name) for name in (*wanted, "reader", "versions")}
    return {**facts, "input": (header.get("input") or {}).get("kind")}


def describe_facts(facts: dict[str, Any]) -> list[tuple[str, str]]:
    """The facts as pairs of a name and a line for people."""
    settings, run, history = facts["settings"], facts["run"], facts["history"] or [{}]
    trainer = facts["trainer"] if isinstance(facts["trainer"], str) else facts["trainer"]["class"]
    shown = {name: value for name, value in settings.items() if value is not None and name not in ("random_state", "n_jobs")}
    pairs = [
        ("trainer", f"{trainer}, {'a conditional random field' if facts['probabilistic'] else 'max-margin'}"),
        ("settings", ", ".join(f"{name} {value:g}" for name, value in shown.items())),
        ("seed", str(settings.get("random_state") or 0)),
        ("data", _data(facts)),
        ("constraints", json.dumps(facts["constraints"]) if facts["constraints"] else "none"),
        ("certificate", _certificate(facts["certificate"])),
        ("training", training_text(run, history)),
    ]
    pairs += held_out(history)
    versions = facts["versions"] or {}
    return [*pairs, ("versions", ", ".join(f"{name} {number}" for name, number in versions.items()))]


def _data(facts: dict[str, Any]) -> str:
    reader = facts["reader"] or {}
    if not reader:
        return f"{facts['input']}, fitted in Python"
    template = f", template {reader['template']}" if reader.get("template") else ""
    column = reader.get("label_column")
    return f"{reader.get('format')}{template}" + ("" if column is None else f", labels in column {column}")


def _certificate(values: dict[str, Any]) -> str:
    from structpred.core.result import Certificate

    return str(Certificate(**values))


def held_out(history: "Sequence[Record]") -> list[tuple[str, str]]:
    """The best score on held-out data, as a pair of a name and a line; none where there were no such data."""
    scores = [(score, row["passes"]) for row in history if (score := row.get("dev_score")) is not None]
    if not scores:
        return []
    score, passes = max(scores, key=lambda pair: pair[0])  # the first of equals
    return [("held-out", f"best score {100 * score:.2f} %, after pass {passes}")]


def training_text(run: dict[str, Any], history: "Sequence[Record]") -> str:
    """How long training took, and why it ended, as a line."""
    last = history[-1]
    parts = [f"{run['passes']} passes"]
    if last.get("seconds") is not None:
        parts.append(f"{last['seconds']:.1f} s")
    if last.get("oracle_calls") is not None:
        parts.append(f"{last['oracle_calls']} oracle calls")
    return f"{', '.join(parts)}; ended by {run['stop_reason']}{', converged' if run['converged'] else ''}"


def facts_lines(pairs: Sequence[tuple[str, str]]) -> list[str]:
    """Pairs of a name and a line, one below the other."""
    width = max(12, *(len(name) for name, _ in pairs))
    return [f"{name:<{width}} {text}" for name, text in pairs]


def _facts_table(facts: dict[str, Any], weights: "Inspection") -> list[str]:
    used = f"{weights.n_features}, {weights.n_features_used} of them with a weight"
    pairs = [*describe_facts(facts), ("features", used)]
    lines = facts_lines(pairs)
    lines += ["", f"{'weights':<32} {'number':>10} {'not zero':>10} {'norm':>10}"]
    first, *others = weights.groups
    kinds = [replace(kind, name=f"  {kind.name}") for kind in weights.kinds]
    for group in (first, *kinds, *others):
        lines.append(f"{cut(group.name, 32):<32} {group.n_weights:>10} {group.n_nonzero:>10} {group.norm:>10.4g}")
    return lines


def _weights_table(weights: "Inspection", label: str | None) -> list[str]:
    lines = ["", f"transitions{'' if label is None else ' of this label'}"]
    lines += columns(
        [(f"{a} -> {b}", w) for a, b, w in weights.positive_transitions],
        [(f"{a} -> {b}", w) for a, b, w in weights.negative_transitions],
    )
    for entry in weights.labels:
        ends = f"start {entry.start:+.4f}, stop {entry.stop:+.4f}, {entry.n_nonzero} features with a weight"
        lines += ["", f"label {cut(str(entry.label), 60)}: {ends}", *columns(entry.positive, entry.negative)]
    return lines


def columns(left: list[tuple[str, float]], right: list[tuple[str, float]]) -> list[str]:
    """Two lists side by side."""
    none = ("", 0.0)
    lines = []
    for k in range(max(len(left), len(right))):
        (one, w), (other, v) = (side[k] if k < len(side) else none for side in (left, right))
        first = f"{w:+9.4f}  {cut(one, 38):<38}" if one else " " * 49
        lines.append(f"{first} {v:+9.4f}  {cut(other, 60)}".rstrip() if other else first.rstrip())
    return lines


def cut(text: str, width: int) -> str:
    """Text on one line, without what could act on a terminal."""
    plain = "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in text)
    return plain if len(plain) <= width else plain[: width - 3] + "..."
