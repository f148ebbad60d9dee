"""Pages of every kind whose texts are hostile or very long, made without training."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from structpred.core.result import Certificate
from structpred.evaluation import UD, confusion_matrix, evaluate_multilabel, evaluate_sequences
from structpred.evaluation.multilabel import cooccurrence
from structpred.report import Contents, Example, ParsingContents, Stage, Weights, parsing_report
from structpred.report.contents import About
from structpred.report.example_views import Output, worst_outputs
from structpred.report.page import html_page, page
from structpred.report.parsing_sections import OnLabels, label_report
from structpred.report.sections import facts, training
from structpred.text.markup import tag

NASTY = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "</style><script>x</script>",
    "</title></svg><iframe src=//evil>",
    "<!--",
    "]]>",
    "&lt;b&gt;",
    "\u202eabc\u202c",
    "\u2066x",
    "a\x00b\x1b[2J",
    "\ud800",
    "javascript:alert(1)",
    "<a href='data:text/html,x'>",
    "{{7*7}}",
    "字",
]  # fmt: skip
LONG = ["w" * 120, "https://example.org/" + "/".join(["a-path"] * 30), "字" * 90, "M" * 120, "a b " * 50]
HISTORY = [
    {"passes": k, "seconds": 0.5 * k, "oracle_calls": k, "primal": 10 + 90 / k**2, "dual": 10 - 5 / k, "gap": 90 / k**2 + 5 / k,
     "dev_score": 0.9 - 0.1 / k}
    for k in range(1, 9)
]  # fmt: skip
BOUNDS = Certificate(14.28, 13.9, proven=True)


class Tree(NamedTuple):
    """A parse."""

    heads: list[int]
    labels: list[str] | None


def chain_contents(names: list[str]) -> Contents:
    """The page of a labeller in which every text is one of the names."""
    n = len(names)
    gold = [names]
    found = [[names[(i + i % 2) % n] for i in range(n)]]
    example = Example(names[0], names, gold[0], found[0], [0.5] * n)
    images = np.ones((n, 16, 8), np.uint8)
    candidates = [[(name, 0.7), (names[0], 0.2)] for name in names]
    return Contents(
        title=names[0],
        facts=[(name, name) for name in names],
        stages=[Stage(BOUNDS, HISTORY)],
        labels=names,
        transitions=np.arange(n * n, dtype=float).reshape(n, n) - n,
        start=np.ones(n),
        stop=np.zeros(n),
        weights=[Weights(name, [(name, 1.0)], [(name, -1.0)]) for name in names],
        data=names[0],
        evaluation=evaluate_sequences([[f"B-{name}" for name in names]], [[f"B-{name}" for name in found[0]]]),
        confusion=confusion_matrix(gold, found),
        examples=[example, replace(example, images=images, candidates=candidates)],
        sureness="probability",
    )


def chain_page(names: list[str]) -> str:
    """It as text."""
    return page(chain_contents(names))


def tagger_page(names: list[str]) -> str:
    """The page of a labeller without phrases, trained online: one curve, nothing certified."""
    made = chain_contents(names)
    history = [{**row, "dual": None, "gap": None, "dev_score": None} for row in HISTORY]
    stages = [Stage(Certificate(14.28, proven=True), history)]
    scores = evaluate_sequences([names], [names[1:] + names[:1]])
    return page(replace(made, stages=stages, evaluation=scores, examples=made.examples[:1], sureness="score gap"))


def parser_page(names: list[str]) -> str:
    """The page of a parser that is wrong on every second sentence."""
    n = len(names)
    gold = Tree([0, *[1] * (n - 1)], names)
    wrong = Tree([0, *range(1, n)], names[::-1])
    return parsing_report(
        ParsingContents(
            title=names[0],
            gold=[gold] * 30,
            predicted=[gold, wrong] * 15,
            forms=[names] * 30,
            upos=[names] * 30,
            rules=UD,
            data=names[0],
            facts=[(name, name) for name in names],
            stages=[Stage(BOUNDS, HISTORY, "Heads"), Stage(Certificate(None), HISTORY[:1], "Relations")],
            places=names[:1] * 30,
        )
    )


def label_page(names: list[str]) -> str:
    """The page of a multi-label model that confuses neighbours."""
    rng = np.random.default_rng(0)
    gold = (rng.random((40, len(names))) < 0.3).astype(np.int64)
    found = np.roll(gold, 1, axis=1)
    scores = evaluate_multilabel(gold, found, names)
    return label_report(
        About(names[0], [(name, name) for name in names], [Stage(Certificate(14.28, 3.0, proven=True), HISTORY)]),
        [Weights(name, [(name, 1.0)], [(name, -1.0)]) for name in names],
        [(names[0], names[1], 1.5), (names[1], names[0], -0.5)],
        OnLabels(names[0], scores, [(name, 0.5) for name in names], cooccurrence(gold, found, names)),
    )


def output_page(names: list[str]) -> str:
    """The page of a structure of a user's own."""
    outputs = [Output(name, names, names[::-1], 2, 0.5, [(name, 1.0), (name, -0.5)]) for name in names]
    parts = [
        ("Model", facts([(name, name) for name in names])),
        ("Scores", tag("p", names[0])),
        ("Training", training([Stage(Certificate(14.28, 13.0), HISTORY)])),
        ("Worst outputs", worst_outputs(outputs)),
    ]
    return html_page(names[0], parts)


PAGES = {"chunker": chain_page, "tagger": tagger_page, "parser": parser_page, "labels": label_page, "structure": output_page}
