"""What `structpred inspect` and `structpred report` say of a parser."""

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from structpred.cli.inspect import columns, cut, facts_lines, held_out, model_facts, training_text
from structpred.cli.options import ReadingOptions
from structpred.cli.parser_evaluate import RULES, read_gold
from structpred.models.parser.inspection import ParserInspection, inspect_parser

if TYPE_CHECKING:
    from structpred.models import DependencyParser
    from structpred.report import ParsingContents

_HIDDEN = ("random_state", "n_jobs", "single_root", "prune", "labelled")
_NEAR = 0.1  # of the primal: a larger gap is a proof, too, but of little


def parser_facts(model: "DependencyParser", path: str) -> list[tuple[str, str]]:
    """Settings and training of a parser, as pairs of a name and a line for people."""
    facts = model_facts(path)
    settings = facts["settings"]
    trainer = facts["trainer"] if isinstance(facts["trainer"], str) else facts["trainer"]["class"]
    kind = "a conditional random field" if model.probabilistic_ else "max-margin"
    shown = {name: value for name, value in settings.items() if value is not None and name not in _HIDDEN}
    left = f"; {model.left_out_} sentences with crossing arcs were left out of training" if model.left_out_ else ""
    roots = "one root" if model.single_root else "any number of roots"
    pruned = (
        "none" if model.kept_ is None else f"{model.prune} heads a word, which held {100 * model.kept_:.2f} % of the true arcs"
    )
    reader = facts["reader"] or {}
    template = f", templates {reader['template']}" if reader.get("template") else ""
    pairs = [
        ("trainer", f"{trainer}, {kind}"),
        ("settings", ", ".join(f"{name} {value:g}" for name, value in shown.items())),
        ("seed", str(settings.get("random_state") or 0)),
        ("data", f"{reader['format']}{template}" if reader else "fitted in Python"),
        ("trees", f"{'projective only' if model.projective_ else 'crossing arcs included'}, {roots}{left}"),
        ("pruning", pruned),
        ("templates", f"{len(model.templates_)}, attributes {', '.join(model.featurizer_.present)}"),
        ("certificate", str(model.certificate_)),
        ("training", training_text(facts["run"], model.history_)),
        *held_out(model.history_),
    ]
    if (labeler := model.relations_) is not None:
        run = {"passes": labeler.n_iter_, "stop_reason": labeler.stop_reason_, "converged": labeler.converged_}
        pairs.append(("relations", f"{len(labeler.classes_)}, over {labeler.n_features_in_} features of arcs"))
        pairs.append(("their certificate", str(labeler.certificate_)))
        pairs.append(("their training", training_text(run, labeler.history_)))
    versions = facts["versions"] or {}
    return [*pairs, ("versions", ", ".join(f"{name} {number}" for name, number in versions.items()))]


def parser_json(model: "DependencyParser", path: str, top: int) -> str:
    """The header of the file and what the weights show, as one JSON object."""
    own = {"projective": model.projective_, "single_root": model.single_root, "left_out": model.left_out_, "kept": model.kept_}
    relations: dict[str, Any] | None = None
    if (labeler := model.relations_) is not None:
        certificate = asdict(labeler.certificate_)
        relations = {"labels": labeler.classes_.tolist(), "certificate": certificate, "history": labeler.history_}
    facts = {name: value for name, value in model_facts(path).items() if name not in ("input", "constraints")}
    return json.dumps({**facts, **own, "relations": relations, "weights": inspect_parser(model, top).to_dict()})


def parser_text(model: "DependencyParser", path: str, top: int) -> str:
    """The same as tables; `top` templates and transitions of either sign."""
    found = inspect_parser(model, top)
    lines = [f"{path}: DependencyParser", "", *facts_lines(parser_facts(model, path)), "", *_templates(found, top)]
    if found.relations:
        lines += ["", *_relations(found)]
    return "\n".join(lines)


def _templates(found: ParserInspection, top: int) -> list[str]:
    lines = [f"{'templates of arcs, by norm':<44} {'weights':>9} {'not zero':>9} {'norm':>9} {'share':>7}"]
    for t in found.templates[:top]:
        lines.append(f"{cut(t.name, 44):<44} {t.n_weights:>9} {t.n_nonzero:>9} {t.norm:>9.4g} {100 * t.share:>5.1f} %")
    rest = found.templates[top:]
    if rest:
        sums = (sum(t.n_weights for t in rest), sum(t.n_nonzero for t in rest), sum(t.norm**2 for t in rest) ** 0.5)
        share = 100 * sum(t.share for t in rest)
        lines.append(f"{f'the {len(rest)} others':<44} {sums[0]:>9} {sums[1]:>9} {sums[2]:>9.4g} {share:>5.1f} %")
    return lines


def _relations(found: ParserInspection) -> list[str]:
    lines = [f"{'weights of relations':<32} {'number':>10} {'not zero':>10} {'norm':>10}"]
    lines += [f"{cut(g.name, 32):<32} {g.n_weights:>10} {g.n_nonzero:>10} {g.norm:>10.4g}" for g in found.groups]
    for r in found.relations:
        lines.append(f"{cut('  ' + r.relation, 32):<32} {'':>10} {r.n_nonzero:>10} {r.norm:>10.4g}")
    lines += ["", "relations of neighbouring words"]
    return lines + columns(
        [(f"{a} -> {b}", w) for a, b, w in found.positive_transitions],
        [(f"{a} -> {b}", w) for a, b, w in found.negative_transitions],
    )


def parser_contents(
    model: "DependencyParser", path: str, data: str, reading: ReadingOptions, *, rules: str, title: str | None, examples: int
) -> "ParsingContents":
    """All that the page of a parser shows. Raises DataError for data without trees."""
    from structpred.report import ParsingContents

    gold = read_gold(data, reading)
    sentences = gold.sentences()
    gap = model.certificate_.relative_gap
    return ParsingContents(
        title=title or path,
        gold=gold.trees(),
        predicted=model.predict(gold),
        forms=[s.forms for s in sentences],
        upos=[s.upos for s in sentences],
        rules=RULES[rules],
        data=gold.path,
        facts=[pair for pair in parser_facts(model, path) if pair[0] != "certificate"],
        certificate=str(model.certificate_),
        proven=model.certificate_.proven and gap is not None and gap <= _NEAR,
        history=model.history_,
        n_examples=examples,
        places=[f"line {gold.line_numbers[k]}" for k in gold.offsets[:-1].tolist()],
    )
