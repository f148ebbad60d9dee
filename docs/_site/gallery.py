"""Makes the pictures and report pages of docs/gallery.md, from small models and from data that anyone has.

python docs/_site/gallery.py FOLDER
"""

import os
import sys
from dataclasses import asdict
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

from structpred.cli.app import run
from structpred.cli.session import Session
from structpred.experiments.decisions import compared
from structpred.io import Sentence, Tree, Treebank, write_treebank
from structpred.io.templates.templates import Template
from structpred.layers import Scores, SparseMAP
from structpred.models import ChainLabeler, DependencyParser
from structpred.oracles.arborescence import ArborescenceOracle
from structpred.report import draw_marginals, draw_tree, gap_curve, halving_curves, transitions
from structpred.report.curves import group_curves
from structpred.report.solvers import regret_against_seconds
from structpred.trainers.online_mkl import OnlineMKL
from structpred.tuning import tune

ROOT = Path(__file__).resolve().parents[2]
#: what the page shows; tests/test_docs.py compares the links of the page with it
FILES = (
    "digits.html", "parser.html", "explain.html", "tree.svg", "marginals.svg", "gap_bcfw.svg", "gap_bmrm.svg", "groups.svg",
    "transitions.svg", "tuning.svg", "regret.svg",
)  # fmt: skip


def shell(*arguments: object) -> None:
    """Run a command of `structpred` in this process."""
    if code := run(Session((*map(str, arguments), "--quiet"))):
        raise RuntimeError(f"structpred {arguments[0]} ended with exit code {code}")


def digit_strings(n: int, fold: int, rng: np.random.Generator, first_id: int) -> list[str]:
    """Strings of five handwritten digits in the format of the OCR letters: each digit follows the one before by a rule."""
    digits = load_digits()
    lines = []
    for word in range(n):
        digit = int(rng.integers(10))
        for place in range(5):
            image = digits.images[rng.choice(np.flatnonzero(digits.target == digit))]
            noisy = image / 16 + rng.normal(0.0, 0.3, (8, 8))
            pixels = "\t".join(str(int(on)) for on in np.repeat(noisy > 0.5, 2, axis=0).ravel())
            number = first_id + 5 * word + place
            lines.append(
                f"{number}\t{digit}\t{number + 1 if place < 4 else -1}\t{fold * n + word}\t{place + 1}\t{fold}\t{pixels}"
            )
            digit = (3 * digit + 1 if rng.random() < 0.7 else digit + 4) % 10
    return lines


def make_digits(folder: Path, rng: np.random.Generator) -> None:
    """The report page of a chain over digits, as `structpred report` writes it, and its weights between digits."""
    lines = digit_strings(150, 0, rng, 1) + digit_strings(150, 1, rng, 751)
    Path("digits.data").write_text("\n".join(lines) + "\n", encoding="utf-8")
    settings = ("--format", "ocr", "--folds", "0", "-C", "0.1", "--max-iter", "30")
    shell("train", "chain", "digits.data", *settings, "-o", "digits.spz")
    model = ChainLabeler.load("digits.spz")
    transitions(model.transitions_, model.classes_.tolist(), folder / "transitions.svg")
    title = ("--title", "Strings of handwritten digits")
    shell("report", "digits.spz", "digits.data", "--folds", "1", *title, "-o", folder / "digits.html")


WORDS = {
    "DET": "the a every this",
    "ADJ": "old red small quick",
    "NOUN": "cat dog bird child house",
    "VERB": "sees chases likes follows",
}


def sentence(rng: np.random.Generator) -> tuple[Sentence, Tree]:
    """A sentence of a small grammar with its tree: subject, verb, object, and where a phrase with a preposition belongs."""
    forms: list[str] = []
    tags: list[str] = []
    heads: list[int] = []
    relations: list[str] = []

    def add(tag: str, relation: str, form: str = "") -> int:
        forms.append(form or str(rng.choice(WORDS[tag].split())))
        tags.append(tag)
        relations.append(relation)
        heads.append(0)
        return len(forms)

    def phrase(relation: str) -> int:
        modifiers = [add("DET", "det")] + ([add("ADJ", "amod")] if rng.random() < 0.4 else [])
        noun = add("NOUN", relation)
        for word in modifiers:
            heads[word - 1] = noun
        return noun

    subject = phrase("nsubj")
    verb = add("VERB", "root")
    thing = phrase("obj")
    heads[subject - 1] = heads[thing - 1] = verb
    if rng.random() < 0.6:  # "with" goes with the verb, "of" with the object; one time in five it is the other way round
        word = str(rng.choice(["with", "of"]))
        case = add("ADP", "case", word)
        noun = phrase("obl" if (word == "with") == (rng.random() < 0.8) else "nmod")
        heads[case - 1], heads[noun - 1] = noun, verb if relations[noun - 1] == "obl" else thing
    unknown = ["_"] * len(forms)
    return Sentence(forms, forms, tags, unknown, unknown), Tree(np.array(heads), relations)


def make_parser(folder: Path, rng: np.random.Generator) -> None:
    """A parser's report page, a tree with a wrong arc next to the right one, and why the parser chose the wrong one."""
    train, test = ([sentence(rng) for _ in range(n)] for n in (80, 60))
    for name, part in (("train", train), ("test", test)):
        with Path(f"{name}.conllu").open("wb") as stream:
            write_treebank(Treebank.of([words for words, _ in part], [tree for _, tree in part]), stream)
    shell("train", "parser", "train.conllu", "--max-iter", "5", "-o", "parser.spz")
    shell("report", "parser.spz", "test.conllu", "--title", "A parser of a small grammar", "-o", folder / "parser.html")
    parser = DependencyParser.load("parser.spz")
    found = parser.predict([words for words, _ in test])
    worst = max(range(len(test)), key=lambda i: (found[i].heads != test[i][1].heads).sum())
    words, gold = test[worst]
    picture = draw_tree(words.forms, found[worst], gold=gold, tags=words.upos)
    (folder / "tree.svg").write_text(str(picture), encoding="utf-8")
    word = int(np.argmax(found[worst].heads != gold.heads))
    against = ("--sample", worst, "--word", word + 1, "--against", gold.heads[word])
    shell("explain", "parser.spz", "test.conllu", *against, "-o", folder / "explain.html")


def make_marginals(folder: Path) -> None:
    """Which readings SparseMAP leaves open in an ambiguous sentence, at the scores of docs/howto/structured_layers.md."""
    words = ["She", "saw", "the", "man", "in", "the", "park", "with", "the", "telescope"]
    scores = np.zeros((10, 11))
    scores[np.arange(10), [2, 0, 4, 2, 7, 7, 4, 10, 10, 2]] = 3.0
    scores[6, [2, 4]] = 1.2, 1.5
    scores[9, [2, 4, 7]] = 1.5, 1.3, 1.0
    trees = ArborescenceOracle()
    weights, _ = SparseMAP(trees)(Scores.of(trees, [(10,)]), scores.ravel())
    (folder / "marginals.svg").write_text(draw_marginals(words, weights), encoding="utf-8")


def make_curves(folder: Path, rng: np.random.Generator) -> None:
    """Gaps of two trainers on the same data, and the scores of a search of settings."""
    X = [rng.normal(size=(6, 8)) for _ in range(120)]
    y = [np.where(x[:, 0] + 0.5 * rng.normal(size=6) > 0, "up", "down") for x in X]
    for name in ("bcfw", "bmrm"):
        model = ChainLabeler(trainer=name, max_iter=40, check_every=1, random_state=0).fit(X, y)
        gap_curve(model.history_, folder / f"gap_{name}.svg")
    settings = {"C": [0.01, 0.1, 1.0], "trainer": ["sgd", "bcfw"]}
    halving_curves(tune(ChainLabeler(max_iter=9), settings, X[:80], y[:80], dev=(X[80:], y[80:])), folder / "tuning.svg")


def make_groups(folder: Path, rng: np.random.Generator) -> None:
    """How much each of three templates weighs, pass by pass: the one that decides, and two of noise."""
    words = rng.integers(0, 20, (60, 8))
    X = [[(f"w{word}", f"noise{rng.integers(20)}") for word in row] for row in words]
    y = [["even" if word % 2 == 0 else "odd" for word in row] for row in words]
    template = [Template("word", ((0, 0),)), Template("noise", ((1, 0),)), Template("next noise", ((1, 1),))]
    model = ChainLabeler(OnlineMKL(eta0=0.1), C=0.1, max_iter=30, template=template).fit(X, y)
    group_curves(model.report_["group_weights"], model.group_names_, folder / "groups.svg")


def make_regrets(folder: Path) -> None:
    """Losses of predict-then-optimise on 200 shortest paths: what is lost, and how long they train."""
    compared("paths", 4, [0])  # so that no mark pays for what is compiled
    regret_against_seconds([asdict(row) for row in compared("paths", 200, [0])], folder / "regret.svg")


def main() -> None:
    """Make all of FILES in the folder that is named, beside a folder for data and models."""
    folder = Path(sys.argv[1]).resolve()
    work = folder / "work"
    work.mkdir(parents=True, exist_ok=True)
    os.chdir(work)  # report pages name their data as they were named
    rng = np.random.default_rng(0)
    make_digits(folder, rng)
    make_parser(folder, rng)
    make_marginals(folder)
    make_curves(folder, rng)
    make_groups(folder, rng)
    make_regrets(folder)
    missing = [name for name in FILES if not (folder / name).exists()]
    if missing:
        raise RuntimeError(f"the gallery lacks {', '.join(missing)}")


if __name__ == "__main__":
    main()
