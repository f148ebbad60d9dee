"""The defaults of ChainLabeler: C and the intercept, chosen on training data: ``python benchmarks/defaults.py [--only letters]``.

Phrases: CoNLL-2000, template crfsuite, F1. Tags: the universal tags of the English Web Treebank, template pos, accuracy. Letters:
OCR letters, accuracy. The candidates are compared on the last tenth of the training sentences, and by five splits inside fold 0
of the letters. Then the defaults are compared on the test sets with those that stood before: C = 1, no intercept. The letters
of each fold are trained on alone, and the nine other folds tested on.
"""

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Any

from measure import data_folder, machine, table, verdict

CANDIDATES = (0.1, 0.3, 1.0, 3.0)
SEEDS = (0, 1, 2)
BEFORE: dict[str, Any] = {"C": 1.0, "fit_intercept": False}


@dataclass(frozen=True)
class Part:
    """What is trained on, what is tested on, and the template, if there is one."""

    train: tuple[Any, Any]
    test: tuple[Any, Any]
    template: Any = None


@dataclass(frozen=True)
class Data:
    """Parts of the training data to choose on, and parts to test on; scores are means over parts."""

    metric: Callable[[Any, Any], float]
    choosing: list[Part]
    testing: list[Part]


def accuracy(gold: Any, predicted: Any) -> float:
    """The share of tokens with the right label."""
    from structpred.models.chain.labeler import token_accuracy

    return token_accuracy(gold, predicted)


def _sentences(train: Any, test: Any, template: str, metric: Callable[[Any, Any], float]) -> Data:
    """The last tenth of the sentences is held out. train, test: (X, y)."""
    from structpred.evaluation.model_selection import select_sequences

    (X, y), n = train, len(train[1])
    cut = n - n // 10
    first, last = select_sequences(X, range(cut)), select_sequences(X, range(cut, n))
    return Data(metric, [Part((first, y[:cut]), (last, y[cut:]), template)], [Part(train, test, template)])


def phrases() -> Data:
    """CoNLL-2000."""
    from structpred.evaluation import evaluate_sequences
    from structpred.io import read_columns

    files = [read_columns(str(data_folder() / "conll2000" / f"{name}.txt.gz")) for name in ("train", "test")]
    train, test = ((corpus, corpus.labels()) for corpus in files)
    return _sentences(train, test, "crfsuite", lambda gold, predicted: evaluate_sequences(gold, predicted).f1)


def tags() -> Data:
    """Universal tags of English; the only column of features is the form."""
    from structpred.io import read_treebank

    def read(name: str) -> tuple[Any, Any]:
        bank = read_treebank(str(data_folder() / "ud_english_ewt" / f"en_ewt-ud-{name}.conllu.gz"))
        bounds = list(zip(bank.offsets.tolist(), bank.offsets.tolist()[1:], strict=False))
        return [[(form,) for form in bank.forms[a:b]] for a, b in bounds], [bank.upos[a:b] for a, b in bounds]

    return _sentences(read("train"), read("test"), "pos", accuracy)


def letters() -> Data:
    """OCR letters."""
    import numpy as np

    from structpred.io import read_ocr

    words = read_ocr(str(data_folder() / "ocr_letters" / "letter.data.gz"))

    def part(chosen: Any, other: Any) -> Part:
        sides = words.select(np.flatnonzero(chosen)), words.select(np.flatnonzero(other))
        return Part(*((side, side.letters) for side in sides))

    inside = words.folds == 0
    split = np.where(inside, np.cumsum(inside) % 5, -1)
    choosing = [part(inside & (split != k), split == k) for k in range(5)]
    return Data(accuracy, choosing, [part(words.folds == k, words.folds != k) for k in range(10)])


DATA = {"phrases": phrases, "tags": tags, "letters": letters}


def run(data: Data, parts: Sequence[Part], seeds: Sequence[int], **settings: Any) -> tuple[list[float], float]:
    """The score of each seed, in per cent, and the mean of the CPU seconds of training."""
    from structpred.models import ChainLabeler

    scores, seconds = [], []
    for seed in seeds:
        of_parts = []
        for part in parts:
            start = time.process_time()
            model = ChainLabeler(random_state=seed, **{"template": part.template, **settings}).fit(*part.train)
            seconds.append(time.process_time() - start)
            of_parts.append(100 * data.metric(part.test[1], [labels.tolist() for labels in model.predict(part.test[0])]))
        scores.append(mean(of_parts))
    return scores, mean(seconds)


def row(name: str, what: str, found: tuple[list[float], float]) -> list[str]:
    """Scores by seed, their mean, and the time."""
    scores, seconds = found
    return [name, what, *(f"{score:.2f}" for score in scores), f"{mean(scores):.2f}", f"{seconds:.2f}"]


def chosen_on(name: str, data: Data) -> Iterator[list[str]]:
    """The candidates, on training data."""
    for intercept in (False, True) if name == "letters" else (False,):
        for C in CANDIDATES:
            found = run(data, data.choosing, SEEDS, C=C, fit_intercept=intercept)
            yield row(name, f"C = {C:g}" + ", intercept" * intercept, found)
    if (template := data.choosing[0].template) is not None:
        from structpred.io.templates.templates import Template, load_templates

        constant = [*load_templates(template), Template("constant", ())]
        yield row(name, "C = 0.3, and a constant template", run(data, data.choosing, SEEDS, C=0.3, template=constant))


def main() -> None:
    """Print both tables and the verdicts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=DATA, nargs="+", default=list(DATA))
    parser.add_argument("--no-choice", action="store_true", help="only the test sets")
    asked = parser.parse_args()
    goals = {"phrases": (93.7, "test F1"), "letters": (80.5, "letter accuracy, one fold to nine")}
    choice, tested, verdicts = [], [], []
    for name in asked.only:
        data = DATA[name]()
        choice += [] if asked.no_choice else list(chosen_on(name, data))
        for what, settings in (("before", BEFORE), ("now", {})):
            found = run(data, data.testing, SEEDS, **settings)
            tested.append(row(name, what, found))
        if name in goals:
            goal, score = goals[name]
            verdicts.append(verdict(f"{name}: {score} >= {goal}, seed 0", found[0][0] >= goal, f"{found[0][0]:.2f}"))
    head = ["data", "settings", *(f"seed {seed}" for seed in SEEDS), "mean", "train CPU s"]
    for title, rows in (("On training data", choice), ("On the test sets", tested)):
        if rows:
            print(f"\n{title} ({machine()})\n\n{table(head, rows)}")
    print("\n" + "\n".join(verdicts))


if __name__ == "__main__":
    main()
