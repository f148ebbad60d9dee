"""What `structpred inspect` and `structpred report` say of a parser."""

from dataclasses import asdict
from typing import Any

import click

from structpred.cli.dependencies.evaluation import RULES, read_gold
from structpred.cli.facts import Learnt, Pairs, described, training_text
from structpred.cli.kinds.kind import Inspecting, Reporting
from structpred.models import DependencyParser
from structpred.models.parser.inspection import inspect_parser
from structpred.report import ParsingContents, Stage, parsing_report
from structpred.report.contents import About


def facts(model: DependencyParser, header: dict[str, Any]) -> Pairs:
    """Settings and training of a parser, as pairs of a name and a line for people."""
    left = f"; {model.left_out_} sentences with crossing arcs were left out of training" if model.left_out_ else ""
    roots = "one root" if model.single_root else "any number of roots"
    pruned = (
        "none" if model.kept_ is None else f"{model.prune} heads per word, which held {100 * model.kept_:.2f} % of the true arcs"
    )
    own = [
        ("trees", f"{'projective only' if model.projective_ else 'crossing arcs included'}, {roots}{left}"),
        ("pruning", pruned),
        ("templates", f"{len(model.templates_)}, attributes {', '.join(model.featurizer_.present)}"),
    ]
    last: Pairs = ()
    if (labeler := model.relations_) is not None:
        run = {"passes": labeler.n_iter_, "stop_reason": labeler.stop_reason_, "converged": labeler.converged_}
        last = [
            ("relations", f"{len(labeler.classes_)}, over {labeler.n_features_in_} features of arcs"),
            ("certificate of relations", str(labeler.certificate_)),
            ("training of relations", training_text(run, labeler.history_)),
        ]
    return described(header, own, hidden=("single_root", "prune", "labelled"), last=last)


def learnt(model: DependencyParser, asked: Inspecting) -> Learnt:
    """The certificate of the relations, and the `top` templates and relations."""
    own = {"projective": model.projective_, "single_root": model.single_root, "left_out": model.left_out_, "kept": model.kept_}
    relations: dict[str, Any] | None = None
    if (labeler := model.relations_) is not None:
        certificate = asdict(labeler.certificate_)
        relations = {"labels": labeler.classes_.tolist(), "certificate": certificate, "history": labeler.history_}
    weights = inspect_parser(model, asked.top)
    return Learnt({**own, "relations": relations, "weights": weights.to_dict()}, weights.table(asked.top))


def page(model: DependencyParser, asked: Reporting, about: About) -> str:
    """Scores, relations, distances and the worst sentences as arcs. Raises DataError for data without trees."""
    if not asked.data:
        raise click.UsageError("the page of a parser needs DATA: MODEL DATA -o PAGE")
    relations = model.relations_
    stages = [Stage(model.certificate_, model.history_, "" if relations is None else "Heads")]
    stages += [] if relations is None else [Stage(relations.certificate_, relations.history_, "Relations")]
    gold = read_gold(asked.data, asked.reading)
    sentences = gold.sentences()
    contents = ParsingContents(
        title=about.title,
        gold=gold.trees(),
        predicted=model.predict(gold),
        forms=[s.forms for s in sentences],
        upos=[s.upos for s in sentences],
        rules=RULES[asked.own["rules"]],
        data=gold.path,
        facts=about.facts,
        stages=stages,
        n_examples=asked.examples,
        places=[f"line {gold.line_numbers[k]}" for k in gold.offsets[:-1].tolist()],
    )
    return parsing_report(contents)
