"""What the commands do with a parser: a treebank is parsed batch by batch, and its bytes stay; scores are under named rules."""

import os
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from structpred import evaluation
from structpred.cli.facts import Learnt, Pairs, described, training_text
from structpred.cli.files import json_lines, write_stream
from structpred.cli.kinds.kind import RUNNER_UP, Asked, Explained, Scored
from structpred.cli.options import Reading, refuse
from structpred.errors import DataError, ParameterError
from structpred.evaluation.bootstrap import PARSING_METRICS
from structpred.io.treebanks.formats import TREEBANK_FORMATS, TreebankFormat
from structpred.io.treebanks.reader import read_treebank, stream_treebank
from structpred.io.treebanks.treebank import Sentence, Tree, Treebank, write_treebank
from structpred.models import DependencyParser
from structpred.storage.bundles import looks_like_bundle

if TYPE_CHECKING:
    from structpred.distributed import Shards
    from structpred.models.explanations import Explanation
    from structpred.report.contents import About
    from structpred.text.markup import Html

#: sentences that are in memory at once while parsing
BATCH = 1000
#: the names of `--rules`
RULES = {
    "ud": evaluation.UD,
    "conllx": evaluation.CONLLX,
    "conll07": evaluation.CONLL07,
    "conll07-p": evaluation.CONLL07_WITHOUT_PUNCTUATION,
}
_NAMES = {
    "uas": "UAS", "las": "LAS", "label_accuracy": "labels", "exact_match": "exact match", "root_accuracy": "root",
    "exact_match_labelled": "exact match, labelled",
}  # fmt: skip


def predict(parser: DependencyParser, asked: Asked) -> None:
    """Write the data with the heads and relations that the parser finds, or one JSON object per sentence."""
    parser.n_jobs = parser.n_jobs if asked.n_jobs is None else asked.n_jobs
    reading = asked.reading
    # as `DependencyParser.predict` takes them, None for as trained
    wanted = {"projective": asked.own["projective"], "single_root": False if asked.own["multi_root"] else None}

    def produce(stream: BinaryIO) -> None:
        batches = stream_treebank(
            asked.data, treebank_format(reading.format), batch_size=BATCH, on_error=reading.on_error, check_trees=False,
            encoding=reading.encoding,
        )  # fmt: skip
        for batch in batches:  # heads in the data are not used
            words = parser._words(batch) if len(batch) else batch
            found = parser.predict(batch, **wanted) if len(batch) else []
            if asked.as_json:
                stream.write(json_lines(_entries(parser, asked, wanted, words, found)).encode())
            else:
                write_treebank(words, stream, found)

    write_stream(asked.output, produce)


def shards(parser: DependencyParser, asked: Asked, n: int) -> "Shards":
    """Pieces of the file. Raises ParameterError for trees of another kind than in training."""
    if asked.own["projective"] is not None or asked.own["multi_root"]:
        raise ParameterError("--shards parses as the model was trained: leave --projective and --multi-root out")
    return shards_of(asked.data, n, asked.reading)[0]


def words_as_data(parser: DependencyParser, asked: Asked, sentences: Sequence[Sequence[str]]) -> str:
    """CoNLL-U with forms alone. Raises DataError for a parser that was trained with more."""
    from structpred.models.parser.sentences import attributes_read

    if needed := attributes_read(parser):
        raise DataError(
            f"--text: {asked.model} was trained with {', '.join(needed)}, and running text has word forms only; train a "
            "pipeline, which tags them itself (structpred train pipeline), or give tagged CoNLL-U"
        )
    nothing = [["_"] * len(words) for words in sentences]
    return Treebank.of([Sentence(list(words), *[n] * 4) for words, n in zip(sentences, nothing, strict=True)]).raw.decode()


def _entries(
    parser: DependencyParser, asked: Asked, wanted: dict[str, Any], batch: Treebank, found: list[Tree]
) -> list[dict[str, Any]]:
    """Words, heads and labels of each sentence, the k best trees, the probability of every arc."""
    own = [{"tokens": words.forms, **({"tags": words.upos} if parser._brings else {})} for words in batch.sentences()]
    entries = [{**words, **_entry(tree)} for words, tree in zip(own, found, strict=True)]
    if asked.kbest is not None and found:
        for entry, best in zip(entries, parser.predict_kbest(batch, asked.kbest, **wanted), strict=True):
            entry["kbest"] = [{**_entry(tree), "score": score} for tree, score in best]
    if asked.marginals and found:
        for entry, table in zip(entries, parser.predict_marginals(batch, **wanted), strict=True):
            entry["marginals"] = table.tolist()
    return entries


def _entry(tree: Tree) -> dict[str, Any]:
    return {"heads": tree.heads.tolist(), "labels": tree.labels}


def judged(system: str | DependencyParser, asked: Asked, read_before: Treebank | None = None) -> Scored:
    """UAS, LAS and more, by named rules. system: a parser, or a file with predictions or a model."""
    gold = read_gold(asked.data, asked.reading) if read_before is None else read_before
    rules, against = RULES[asked.own["rules"]], asked.own["against"]
    trees = _parsed(system, gold, asked.reading)
    scores = evaluation.evaluate_treebanks(gold, trees, rules)
    other = None if against is None else evaluation.evaluate_treebanks(gold, _parsed(against, gold, asked.reading), rules)
    if asked.confusion is not None:
        from structpred import report
        from structpred.evaluation.parsing import relation_pairs

        found = trees.trees() if isinstance(trees, Treebank) else trees
        report.confusion(*evaluation.confusion_matrix(*relation_pairs(gold.trees(), found, rules)), asked.confusion)
    return _shown(scores, other, asked)


def read_gold(path: str, reading: Reading) -> Treebank:
    """A treebank that has trees. Raises DataError where it does not, naming the line."""
    treebank = read(path, reading)
    treebank.trees()  # raises where a head is missing
    return treebank


def _parsed(system: str | DependencyParser, gold: Treebank, reading: Reading) -> Treebank | list[Tree]:
    """What a parser, or that of a file, finds for a treebank; or the treebank with predictions that the file is."""
    from structpred.models.files import load_estimator

    if isinstance(system, str) and not looks_like_bundle(system):
        # the rules decide what predictions must be like: some allow several roots, even cycles
        return read(system, reading._replace(on_error="raise"), check_trees=False)
    parser = load_estimator(system, "DependencyParser", "ParsingPipeline") if isinstance(system, str) else system
    return parser.predict(gold)


def _shown(scores: evaluation.ParsingScores, other: evaluation.ParsingScores | None, asked: Asked) -> Scored:
    """All figures. other: the scores of a second system; a paired test of both, of LAS where both have relations."""
    intervals, name = asked.own["intervals"], asked.own["against"]
    figures: dict[str, Any] = scores.to_dict()
    parts = [(scores if asked.per_type else replace(scores, per_relation={})).table()]
    if intervals:
        found = [evaluation.parsing_interval(scores, metric) for metric in PARSING_METRICS if getattr(scores, metric) is not None]
        figures["intervals"] = {one.metric: {"low": one.low, "high": one.high} for one in found}
        lines = [f"{_NAMES[one.metric]:<22} {100 * one.low:6.2f} to {100 * one.high:6.2f}" for one in found]
        parts.append("\n".join(["95 % intervals, by a bootstrap over sentences", *lines]))
    if other is not None:
        compared = [metric for metric in ("uas", "las") if None not in (getattr(scores, metric), getattr(other, metric))]
        tests = [evaluation.compare_parsers(scores, other, metric) for metric in compared]
        figures["against"] = {"name": name, **{test.metric: asdict(test) for test in tests}}
        parts.append("\n".join([f"against {name}", *map(_test, tests)]))
    return Scored(figures, "\n\n".join(parts))


def _test(t: evaluation.Comparison) -> str:
    apart = f"{100 * t.difference:+.2f} ({100 * t.low:+.2f} to {100 * t.high:+.2f})"
    return f"{_NAMES[t.metric]:<4} {100 * t.first:6.2f} against {100 * t.second:6.2f}: {apart}, p = {t.p_value:.4f}"


def judged_files(ctx: click.Context, model: str | None, asked: Asked) -> Scored:
    """The same of a treebank with predictions, or of the model of a file."""
    if model is None or asked.data:
        raise click.UsageError("--gold GOLD takes one more file: the treebank with predictions, or a model")
    refuse(ctx, ("on_error",), "is not for two treebanks: sentences left out of one would not be left out of the other")
    return judged(model, replace(asked, data=asked.own["gold"]))


def explain(parser: DependencyParser, asked: Asked) -> Explained:
    """Why one sentence gets its tree; with --word against the best tree in which that word has another head."""
    word, against = asked.own["word"], asked.against
    treebank = read(asked.data, asked.reading, check_trees=False)
    sentence = treebank.take([asked.chosen(len(treebank))])
    other: int | str | None = against
    if against is not None and against != RUNNER_UP:
        if word is None or not (against.isascii() and against.isdecimal()):
            raise click.UsageError(f"--against {against}: expected {RUNNER_UP}, or with --word N the number of a head")
        other = int(against)
    why = parser.explain(sentence, word, against=other)
    return Explained(" ".join(sentence.forms), why, () if asked.output == "-" else _drawn(sentence, why))


def _drawn(sentence: Treebank, why: "Explanation") -> "list[tuple[str, Html]]":
    """The tree that is explained and the one that it is compared with, each beside that of the data where these have one."""
    from structpred.report import draw_tree

    [words] = sentence.sentences()
    gold = None if (sentence.heads < 0).any() else sentence.trees()[0]
    against = "" if gold is None else "; red and dashed: not so in the data, whose arc is green, below"
    trees = [("The tree that is explained", why.output), ("The tree that it is compared with", why.against)]
    kept = [(line, tree) for line, tree in trees if tree is not None]
    return [(f"{line}{against}.", draw_tree(words.forms, tree, gold=gold, tags=words.upos)) for line, tree in kept]


def facts(parser: DependencyParser, header: dict[str, Any]) -> Pairs:
    """Settings and training, as pairs of a name and a line for people."""
    left = f"; {parser.left_out_} sentences with crossing arcs were left out of training" if parser.left_out_ else ""
    roots = "one root" if parser.single_root else "any number of roots"
    pruning = "none"
    if parser.kept_ is not None:
        pruning = f"{parser._n_candidates} heads per word, which held {100 * parser.kept_:.2f} % of the true arcs"
    own = [
        ("trees", f"{'projective only' if parser.projective_ else 'crossing arcs included'}, {roots}{left}"),
        *([("order", "2: arcs, siblings and grandparents")] if parser.order == 2 else []),
        ("pruning", pruning),
        ("templates", f"{len(parser.templates_)}, attributes {', '.join(parser.featurizer_.present)}"),
    ]
    last: Pairs = ()
    if (labeler := parser.relations_) is not None:
        run = {"passes": labeler.n_iter_, "stop_reason": labeler.stop_reason_, "converged": labeler.converged_}
        last = [
            ("relations", f"{len(labeler.classes_)}, over {labeler.n_features_in_} features of arcs"),
            ("certificate of relations", str(labeler.certificate_)),
            ("training of relations", training_text(run, labeler.history_)),
        ]
    return described(header, own, hidden=("single_root", "order", "prune", "labelled"), last=last)


def learnt(parser: DependencyParser, asked: Asked) -> Learnt:
    """The certificate of the relations, and the `top` templates and relations."""
    own = {"projective": parser.projective_, "single_root": parser.single_root, "left_out": parser.left_out_}
    relations: dict[str, Any] | None = None
    if (labeler := parser.relations_) is not None:
        certificate = asdict(labeler.certificate_)
        relations = {"labels": labeler.classes_.tolist(), "certificate": certificate, "history": labeler.history_}
    weights = parser.top_features(asked.top)
    data = {**own, "kept": parser.kept_, "relations": relations, "weights": weights.to_dict()}
    return Learnt(data, weights.table(asked.top))


def page(parser: DependencyParser, asked: Asked, about: "About") -> str:
    """Scores, relations, distances and the worst sentences as arcs. Raises DataError for data without trees."""
    from structpred.report import ParsingContents, Stage, parsing_report

    if not asked.data:
        raise click.UsageError("the page of a parser needs DATA: MODEL DATA -o PAGE")
    stages, relations = about.stages, parser.relations_
    if relations is not None:
        stages = [replace(stages[0], name="Heads"), Stage(relations.certificate_, relations.history_, "Relations")]
    gold = read_gold(asked.data, asked.reading)
    contents = ParsingContents(
        title=about.title, gold=gold.trees(), predicted=parser.predict(gold), forms=gold.nested(gold.forms),
        upos=gold.nested(gold.upos), rules=RULES[asked.own["rules"]], data=gold.path, facts=about.facts, stages=stages,
        n_examples=asked.examples, places=[f"line {gold.line_numbers[k]}" for k in gold.offsets[:-1].tolist()],
    )  # fmt: skip
    return parsing_report(contents)


def treebank_format(name: str | None) -> TreebankFormat | None:
    """The treebank format of that name. None means: detect it from the lines. Raises ParameterError for other formats."""
    if name is not None and name not in TREEBANK_FORMATS:
        raise ParameterError(f"a parser reads treebanks: --format must be {', '.join(TREEBANK_FORMATS)}, not {name}")
    return None if name is None else TREEBANK_FORMATS[name]


def read(path: str, reading: Reading, **checks: Any) -> Treebank:
    """The whole treebank; checks: what it may lack, as for `read_treebank`."""
    format = treebank_format(reading.format)
    return read_treebank(path, format, on_error=reading.on_error, encoding=reading.encoding, **checks)


def shards_of(path: str, n: int, reading: Reading) -> tuple["Shards", str]:
    """n byte ranges of a treebank, and its format, which is what the first lines show where none is given."""
    from structpred.distributed import Shards

    format, encoding = treebank_format(reading.format), reading.encoding
    name = next(stream_treebank(path, format, batch_size=1, check_trees=False, encoding=encoding)).format.name
    return Shards.of_file(os.path.abspath(path), n, format=name, encoding=encoding), name
