"""`structpred demo`: what comes out, on data of the package: names, trees, and decisions, each with errors worth a look."""

import logging
import re
from collections.abc import Iterator, Sequence
from importlib.resources import as_file, files
from typing import TYPE_CHECKING

import click

from structpred.cli.options import Choice, general_options

if TYPE_CHECKING:
    from structpred.io.treebanks.treebank import Tree, Treebank

_NAME = re.compile(r"\bNER=([BI]-\w+)")
_SHOWN = 3


@click.command(short_help="Names, trees or decisions, on data of the package.")
@click.argument("what", type=Choice(("tagger", "parser", "paths")))
@click.argument("text", required=False)
@general_options
def demo(what: str, text: str | None) -> None:
    """Train and look at errors, in seconds: names or trees of 300 short sentences, or shortest paths at predicted costs.

    \b
    structpred demo tagger
    structpred demo tagger "Anna Keller left Oslo for the Harbour Bank."
    structpred demo parser "The mayor opened a library in Leeds."
    structpred demo paths
    """
    from structpred.io.jsonl import WORD

    words = WORD.findall(text or "")
    if text is not None and (what == "paths" or not words):
        raise click.UsageError("paths takes no TEXT" if words else f"TEXT: expected a sentence, got {text!r}")
    logging.getLogger("structpred.models").setLevel(logging.WARNING)
    {"tagger": _tagger, "parser": _parser}[what](words) if what != "paths" else _paths()


def _sentences() -> tuple["Treebank", "Treebank"]:
    """The sentences to train on, and those for the test."""
    from structpred.io import read_treebank

    with as_file(files("structpred.data") / "english") as folder:
        return read_treebank(folder / "train.conllu"), read_treebank(folder / "test.conllu")


def _names(treebank: "Treebank") -> list[list[str]]:
    """The labels of names, of the last column."""
    lines = treebank.raw.decode().splitlines()
    return treebank.nested([found[1] if (found := _NAME.search(lines[n - 1])) else "O" for n in treebank.line_numbers.tolist()])


def _bracketed(words: Sequence[str], labels: Sequence[str]) -> str:
    """A sentence with its names in brackets: [Anna Keller PER] left [Oslo LOC]."""
    out = []
    for word, label, after in zip(words, labels, [*labels[1:], "O"], strict=True):
        end = f" {label[2:]}]" if label != "O" and not after.startswith("I") else ""
        out.append(f"{'[' if label.startswith('B') else ''}{word}{end}")
    return " ".join(out)


def _tagger(words: Sequence[str]) -> None:
    """Names in a sentence, or in three of the test, and of the mistakes the surest one."""
    from structpred.evaluation import evaluate_sequences
    from structpred.models import ChainLabeler

    train, test = _sentences()
    X, U = ([[(word,) for word in sentence.forms] for sentence in part.sentences()] for part in (train, test))
    model = ChainLabeler("corrective", template="ner", constraints="iob2", tol=0.01, max_iter=100).fit(X, _names(train))
    gold, found = _names(test), [labels.tolist() for labels in model.predict(U)]
    click.echo(f"{len(X)} sentences to train on, {len(U)} to test: F1 {100 * (evaluate_sequences(gold, found).f1 or 0):.1f} %")
    click.echo(f"{model.certificate_.meaning()}\n")
    if words:
        click.echo(_bracketed(words, model.predict([[(word,) for word in words]])[0].tolist()))
    else:
        forms = [sentence.forms for sentence in test.sentences()]
        for i in [i for i, labels in enumerate(gold) if labels == found[i] and len(set(labels)) > _SHOWN][:_SHOWN]:
            click.echo(_bracketed(forms[i], found[i]))
        reasons = {i: model.explain(U[i], against=gold[i]) for i in range(len(gold)) if gold[i] != found[i]}
        worst, why = max(reasons.items(), key=lambda pair: pair[1].score)
        click.echo(f"\nwrong: {_bracketed(forms[worst], found[worst])}\nright: {_bracketed(forms[worst], gold[worst])}")
        click.echo(f"What speaks for the mistake:\n{why.table(_SHOWN)}")
    click.echo("\nNext, on your own text: structpred train chain train.txt -o names.spz (docs/howto/tagging.md)")


def _drawn(words: Sequence[str], tree: "Tree", gold: "Tree | None" = None) -> Iterator[str]:
    """A line a word, which stands further to the right than its head; where gold differs, that is said."""
    places = []
    for head in tree.heads.tolist():
        depth = 0
        while head:
            depth, head = depth + 1, int(tree.heads[head - 1])
        places.append(depth)
    rows = [f"{'  ' * depth}{word}" for depth, word in zip(places, words, strict=True)]
    for k, (row, label) in enumerate(zip(rows, tree.labels or [], strict=True)):
        line = f"{row:<{max(map(len, rows))}}  {label}"
        if gold is not None and (right := (gold.heads[k], (gold.labels or [])[k])) != (tree.heads[k], label):
            line = f"{line:<{max(map(len, rows)) + 12}} <- wrong: {right[1]} of {['no word', *map(repr, words)][right[0]]}"
        yield line


def _parser(words: Sequence[str]) -> None:
    """The tree of a sentence, or of one of the test with a mistake."""
    from structpred.evaluation import UD, evaluate_trees
    from structpred.models import ParsingPipeline

    train, test = _sentences()
    model = ParsingPipeline(jackknife=5, max_iter=10, random_state=0).fit(train)
    forms, gold = [sentence.forms for sentence in test.sentences()], test.trees()
    found = model.predict(forms)
    scores = evaluate_trees(gold, found, forms=forms, upos=test.nested(test.upos), rules=UD)
    click.echo(f"{len(train)} sentences to train on, {len(gold)} to test: UAS {100 * scores.uas:.1f} %, from words alone\n")
    if words:
        click.echo("\n".join(_drawn(words, model.predict([words])[0])))
    else:
        wrong = [float((one.heads != other.heads).mean()) or 1.0 for one, other in zip(found, gold, strict=True)]
        shown = wrong.index(min(wrong))
        click.echo("\n".join(_drawn(forms[shown], found[shown], gold[shown])))
    click.echo("\nNext, on your own treebank: structpred train pipeline train.conllu -o en.spz (docs/howto/parsing.md)")


def _paths() -> None:
    """Regret and error of two models of the same costs."""
    import numpy as np
    from sklearn.linear_model import LinearRegression

    from structpred.data.decisions import shortest_path_data
    from structpred.models import DecisionModel
    from structpred.oracles.shortest_path import ShortestPathOracle

    data, oracle = shortest_path_data(600, grid=(5, 5), degree=6, noise=0.5, seed=1), ShortestPathOracle()
    train, test = data.rows(slice(200)), data.rows(slice(200, None))
    costs = np.asarray(test.costs)
    spo, two_stage = DecisionModel(oracle, shape=(5, 5)), DecisionModel(oracle, shape=(5, 5), regressor=LinearRegression())
    click.echo("400 days of the test, a grid of 5 x 5 crossings\n\nregret   error of costs   trained by")
    for name, model in (("least squares, for the costs: two stages", two_stage), ("SPO+, for the path that is taken", spo)):
        model.fit(train.features, train.costs)
        error = np.abs(model.predict_costs(test.features) - costs).mean() / costs.mean()
        click.echo(f"{100 * (1 - model.score(test.features, costs)):5.1f} %   {100 * error:12.1f} %   {name}")
    click.echo("\nRegret: what the chosen paths cost more than the best ones. Better costs are not better decisions.")
    click.echo("Next, with your own solver: structpred train decision --help (docs/howto/predict_then_optimise.md)")
