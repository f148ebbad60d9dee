"""What `structpred inspect` and `structpred report` say of a parser."""

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from structpred.cli.dependencies.evaluation import RULES, read_gold
from structpred.cli.facts import (
    Pairs,
    columns,
    cut,
    described,
    facts_lines,
    model_facts,
    proven,
    sign_facts,
    sign_lines,
    training_text,
    versions,
    without_certificate,
)
from structpred.cli.kinds.kind import Inspecting, Reporting
from structpred.models.parser.inspection import ParserInspection, inspect_parser

if TYPE_CHECKING:
    from structpred.models import DependencyParser


def inspected(model: "DependencyParser", asked: Inspecting) -> str:
    """Settings, certificates and the weights of templates and relations, as text or as one JSON object."""
    return (parser_json if asked.as_json else parser_text)(model, asked.model, asked.top)


def parser_facts(model: "DependencyParser", path: str) -> Pairs:
    """Settings and training of a parser, as pairs of a name and a line for people."""
    facts = model_facts(path)
    left = f"; {model.left_out_} sentences with crossing arcs were left out of training" if model.left_out_ else ""
    roots = "one root" if model.single_root else "any number of roots"
    pruned = (
        "none" if model.kept_ is None else f"{model.prune} heads per word, which held {100 * model.kept_:.2f} % of the true arcs"
    )
    reader = facts["reader"] or {}
    template = f", templates {reader['template']}" if reader.get("template") else ""
    own = [
        ("data", f"{reader['format']}{template}" if reader else "fitted in Python"),
        ("trees", f"{'projective only' if model.projective_ else 'crossing arcs included'}, {roots}{left}"),
        ("pruning", pruned),
        ("templates", f"{len(model.templates_)}, attributes {', '.join(model.featurizer_.present)}"),
    ]
    minimised = "a conditional random field" if model.probabilistic_ else "max-margin"
    pairs = described(facts, minimised, own, hidden=("single_root", "prune", "labelled"))
    if (labeler := model.relations_) is not None:
        run = {"passes": labeler.n_iter_, "stop_reason": labeler.stop_reason_, "converged": labeler.converged_}
        pairs.append(("relations", f"{len(labeler.classes_)}, over {labeler.n_features_in_} features of arcs"))
        pairs.append(("their certificate", str(labeler.certificate_)))
        pairs.append(("their training", training_text(run, labeler.history_)))
    return [*pairs, *versions(facts)]


def parser_json(model: "DependencyParser", path: str, top: int) -> str:
    """The header of the file and what the weights show, as one JSON object."""
    own = {"projective": model.projective_, "single_root": model.single_root, "left_out": model.left_out_, "kept": model.kept_}
    relations: dict[str, Any] | None = None
    if (labeler := model.relations_) is not None:
        certificate = asdict(labeler.certificate_)
        relations = {"labels": labeler.classes_.tolist(), "certificate": certificate, "history": labeler.history_}
    facts = {name: value for name, value in model_facts(path).items() if name not in ("input", "constraints")}
    weights = inspect_parser(model, top).to_dict()
    return json.dumps({**facts, **own, "relations": relations, "weights": weights, **sign_facts(model, top)})


def parser_text(model: "DependencyParser", path: str, top: int) -> str:
    """The same as tables; `top` templates and transitions of either sign."""
    found = inspect_parser(model, top)
    lines = [f"{path}: DependencyParser", "", *facts_lines(parser_facts(model, path)), "", *_templates(found, top)]
    if found.relations:
        lines += ["", *_relations(found)]
    lines += sign_lines(model, top)
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


def page(model: "DependencyParser", asked: Reporting) -> str:
    """The page of a parser. Raises DataError for data without trees."""
    from structpred.report import ParsingContents, parsing_report

    gold = read_gold(asked.data, asked.reading)
    sentences = gold.sentences()
    contents = ParsingContents(
        title=asked.title or asked.model,
        gold=gold.trees(),
        predicted=model.predict(gold),
        forms=[s.forms for s in sentences],
        upos=[s.upos for s in sentences],
        rules=RULES[asked.own["rules"]],
        data=gold.path,
        facts=without_certificate(parser_facts(model, asked.model)),
        certificate=str(model.certificate_),
        proven=proven(model),
        history=model.history_,
        n_examples=asked.examples,
        places=[f"line {gold.line_numbers[k]}" for k in gold.offsets[:-1].tolist()],
    )
    return parsing_report(contents)
