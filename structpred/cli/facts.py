"""What model files say of themselves, as plain data and as lines for people; shared by all kinds of models."""

import itertools
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from structpred.text.tables import cut

if TYPE_CHECKING:
    from structpred.cli.kinds.kind import Asked
    from structpred.core.result import Record

Pairs = Sequence[tuple[str, str]]
#: surrogates by their class -> what people call them; others go by their class
_MINIMISED = {
    "MarginRescaling": "max-margin", "SlackRescaling": "slack rescaling", "LogLoss": "a conditional random field",
    "PerturbedSurrogate": "perturbed loss", "SoftMargin": "soft margin", "SparseMAPSurrogate": "SparseMAP loss",
}  # fmt: skip
#: how the lines about certificates begin
CERTIFICATE = ("certificate", "which means")


def model_facts(path: str) -> dict[str, Any]:
    """What the header of a model file says, without the parts that only a program can read."""
    from structpred.models.bundles import FORMAT_VERSION
    from structpred.storage.bundles import read_bundle

    header = read_bundle(path, kind="model", format_version=FORMAT_VERSION).header
    trained = ("estimator", "trainer", "surrogate", "loss", "regulariser", "settings", "constraints", "coding", "probabilistic")
    facts = {name: header.get(name) for name in (*trained, "certificate", "run", "history", "reader", "versions")}
    return {**facts, "input": (header.get("input") or {}).get("kind")}


def minimised(facts: dict[str, Any]) -> str:
    """What training minimised, in words: the surrogate of the header, or the one that belongs to the trainer.

    >>> minimised({"surrogate": "sparsemap", "trainer": "lbfgs"}), minimised({"surrogate": None, "trainer": "bcfw"})
    ('SparseMAP loss', 'max-margin')
    """
    from structpred.errors import ParameterError
    from structpred.models.settings import resolve_surrogate, resolve_trainer, settings_restored

    saved = facts["surrogate"]
    if isinstance(saved, dict):
        return _MINIMISED.get(_name(saved), _name(saved))
    try:
        found = resolve_trainer(settings_restored(facts["trainer"]))[1] if saved is None else resolve_surrogate(saved)
    except ParameterError:  # a trainer of the user's own, which the file does not hold
        return _MINIMISED["LogLoss" if facts["probabilistic"] else "MarginRescaling"]
    name = type(found).__name__
    return _MINIMISED.get(name, name)


def described(
    facts: dict[str, Any], own: Pairs, *, goal: str = "", data: str = "", hidden: Sequence[str] = (), last: Pairs = ()
) -> Pairs:
    """The facts as pairs of a name and a line for people, from the trainer to the versions of the programs that wrote the file.

    own, last: what this kind of model adds before the certificate and after training. goal: what training minimised, where the
    header does not say it. data: what is known of data that were not read from a file. hidden: settings not shown.
    """
    from structpred.core.result import Certificate

    history, certificate = facts["history"] or [{}], Certificate(**facts["certificate"])
    named = {name: _name(facts[name]) for name in ("trainer", "loss", "regulariser")}
    left_out = ("random_state", "n_jobs", "check_components", *hidden)
    given = {name: value for name, value in facts["settings"].items() if value is not None and name not in left_out}
    return [
        ("trainer", f"{named['trainer']}, {goal or minimised(facts)}"),
        *((name, named[name]) for name in ("loss", "regulariser") if named[name] not in ("", "hamming")),
        ("settings", ", ".join(f"{name} {value:g}" for name, value in given.items())),
        ("seed", str(facts["settings"].get("random_state") or 0)),
        ("data", _data(facts["reader"] or {}) or f"{data}fitted in Python"),
        *own,
        *zip(CERTIFICATE, (str(certificate), certificate.meaning()), strict=True),
        ("training", training_text(facts["run"], history)),
        *_held_out(history),
        *last,
        ("versions", ", ".join(f"{name} {number}" for name, number in (facts["versions"] or {}).items())),
    ]


def _data(reader: dict[str, Any]) -> str:
    """How the training data were read: their format, or the function of a user's own, templates and the column of the labels."""
    if "reader" in reader:
        return f"read by {reader['reader']}"
    column = reader.get("label_column")
    templates = "templates" if column is None else "template"
    template = f", {templates} {reader['template']}" if reader.get("template") else ""
    return f"{reader.get('format') or ''}{template}" + ("" if column is None else f", labels in column {column}")


def _name(saved: Any) -> str:
    """The name of a trainer, a loss or a regulariser of a header; "" for none."""
    return str(saved["class"] if isinstance(saved, dict) else saved or "")


def _held_out(history: "Sequence[Record]") -> Pairs:
    """The best score on held-out data; nothing where there were no such data."""
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


class Learnt(NamedTuple):
    """What a model has learnt. data: plain, for JSON. table: the weights for people. left_out: of the header, beside `data`."""

    data: dict[str, Any]
    table: str = ""
    left_out: Sequence[str] = ("input", "constraints")


def shown(model: Any, asked: "Asked", header: dict[str, Any], facts: Pairs, learnt: Learnt) -> str:
    """What `structpred inspect` prints: header, what was learnt and signs as one JSON object, or the facts, signs and a table."""
    signs = _sign_facts(model, asked.top)
    if asked.as_json:
        return json.dumps({**{k: v for k, v in header.items() if k not in learnt.left_out}, **learnt.data, **signs})
    width = max(12, *(len(name) for name, _ in facts))
    lines = [f"{name:<{width}} {text}" for name, text in facts]
    lines = [f"{asked.model}: {type(model).__name__}", "", *lines]
    if signs:
        all_of = signs["signs"]
        counts = f"{all_of['constrained']} weights constrained, {all_of['zero']} of them zero; {all_of['binding']} names bind"
        rows = [(f"{cut(one['name'], 60)} {'>= 0' if one['sign'] > 0 else '<= 0'}", one["pull"]) for one in all_of["strongest"]]
        lines += ["", f"signs: {counts}{': pulled by' if rows else ''}", *(f"{pull:+9.4f}  {text}" for text, pull in rows)]
    return "\n".join([*lines, "", learnt.table] if learnt.table else lines)


def _sign_facts(model: Any, top: int) -> dict[str, Any]:
    """The constraints on the signs of weights: how many, how many of these weights are zero, and the `top` that bind by name."""
    if not hasattr(model, "signs_") or not model.signs_.any():  # decision models take no signs
        return {}
    constrained = model.signs_ != 0
    found: dict[str, list[Any]] = {}
    for entry in model.binding_constraints():  # the strongest first; a name may stand for several weights
        found.setdefault(entry.name, []).append(entry)
    named = [
        {"name": name, "sign": same[0].sign, "weights": len(same), "pull": same[0].pull}
        for name, same in itertools.islice(found.items(), top)
    ]
    zero = int((model.coef_[constrained] == 0).sum())
    return {"signs": {"constrained": int(constrained.sum()), "zero": zero, "binding": len(found), "strongest": named}}
