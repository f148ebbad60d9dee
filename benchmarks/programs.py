"""Four programs that use python-crfsuite, before and after the switch: ``python benchmarks/programs.py [--quick]``.

The programs: one like usaddress (parts of addresses), one like the tutorial of sklearn-crfsuite (named entities), one like NLTK's
CRFTagger (parts of speech), and one with a CRF++ template over 27 columns (chunks). Their features are made once and are the same
on both sides. Each fit runs in a fresh process; seconds are `time.process_time` around the fit, from features in memory to a
trained model: CRFsuite's include filling its trainer, ours packing the lists. The peer is python-crfsuite, which sklearn-crfsuite
and NLTK call. Where the recommended class reads the template itself, its seconds include applying it.

Each algorithm of CRFsuite runs beside the same one of `structpred.compat.CRF`, and the class and trainer that we recommend beside
all of them. All take turns in each round.

--quick takes a small part of the data, two algorithms, few passes and one round: a check that everything runs.
--sentences N takes the first N of each training part, and half as many of the test part.
--write leaves the table and the figures in benchmarks/results.
"""

import argparse
import gzip
import json
import random
import shutil
from collections.abc import Iterable
from pathlib import Path
from statistics import mean, median
from typing import Any, NamedTuple

from measure import HERE, Stopwatch, data_folder, in_child, machine, scratch_folder, table, verdict

Rows = list[list[str]]
#: C and passes of the recommended trainer, of {.3, 1, 3} x {15, 30}: in three folds of the training parts, of which all but names
#: were cut at 9,000 sentences, the best on addresses and names; .07 points behind the best on chunks, .2 on tags
C, PASSES = 1.0, 30
#: the largest difference of scores, in points, for which the same algorithm counts as as good: online learners take samples in
#: another order on each side, and small parts of the data leave more to chance
WITHIN = {"lbfgs": 0.3, "ap": 1.0, "pa": 1.0, "arow": 1.0}
WITHIN_QUICK = {"lbfgs": 1.0, "ap": 10.0}
ALGORITHMS = ("lbfgs", "ap", "pa", "arow")
#: learners that see samples in an order drawn by chance are trained in so many orders: their scores are means, and vary by points
ORDERS = {"ap": 3, "pa": 3, "arow": 3}
#: names of our trainers for those of CRFsuite
OURS = {"lbfgs": "compat.CRF lbfgs", "ap": "compat.CRF ap (perceptron)", "pa": "compat.CRF pa", "arow": "compat.CRF arow"}


class Program(NamedTuple):
    """files: for training and for the test; separator of columns. params: what it gives CRFsuite's lbfgs, by sklearn-crfsuite's
    names. measure: what is scored. templates: whether the recommended ChainLabeler reads columns by a template.
    """

    files: tuple[str, str]
    separator: str
    params: dict[str, Any]
    measure: str
    templates: bool = False


PROGRAMS: dict[str, Program] = {
    "addresses": Program(("addresses_us/train.tsv.gz", "addresses_us/test.tsv.gz"), "\t", {}, "whole strings"),
    "entities": Program(
        ("ner_norwegian_nynorsk/train.tsv.gz", "ner_norwegian_nynorsk/dev.tsv.gz"), "\t",
        {"c1": 0.1, "c2": 0.1, "max_iterations": 100, "all_possible_transitions": True}, "F1",
    ),
    "tagger": Program(
        ("ud_english_ewt/en_ewt-ud-train.conllu.gz", "ud_english_ewt/en_ewt-ud-test.conllu.gz"), "\t", {}, "accuracy"
    ),
    "template": Program(
        ("conll2000/train.txt.gz", "conll2000/test.txt.gz"), " ", {"c2": 0.5, "max_iterations": 100}, "F1", templates=True
    ),
}  # fmt: skip
TITLES = {
    "addresses": "like usaddress",
    "entities": "like sklearn-crfsuite's tutorial",
    "tagger": "like NLTK's CRFTagger",
    "template": "CRF++ template, 27 columns",
}
PARAMS = {"all_possible_transitions": "feature.possible_transitions"}

DIRECTIONS = {"n", "s", "e", "w", "ne", "nw", "se", "sw", "north", "south", "east", "west", "northeast", "southwest"}
ROADS = {
    "st",
    "street",
    "ave",
    "avenue",
    "rd",
    "road",
    "dr",
    "drive",
    "blvd",
    "ln",
    "lane",
    "ct",
    "court",
    "pl",
    "way",
    "hwy",
    "pkwy",
}


def read(path: Path, separator: str, limit: int | None = None) -> list[Rows]:
    """Blocks of rows; comments and multi-word tokens of treebanks, and marks of documents, are left out."""
    blocks: list[Rows] = [[]]
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            row = line.rstrip("\n").split(separator)
            if row == [""]:
                blocks.append([])
            elif row[0] != "-DOCSTART-" and not (len(row) == 10 and not row[0].isdigit()) and not line.startswith("# "):
                blocks[-1].append(row[1:4] if len(row) == 10 else row)
    return [block for block in blocks if block][:limit]


def addresses(rows: Rows) -> list[dict[str, Any]]:
    """What a token of an address looks like, and what its neighbours look like, as nested dicts."""
    looks = [_look(row[0]) for row in rows]
    found = []
    for t, look in enumerate(looks):
        near = {"before": looks[t - 1] if t else "nothing", "after": looks[t + 1] if t + 1 < len(looks) else "nothing"}
        found.append({**look, **near, "first": t == 0, "last": t + 1 == len(looks)})
    return found


def _look(token: str) -> dict[str, Any]:
    plain = token.strip(".,;()#").lower()
    digits = sum(c.isdigit() for c in plain)
    kind = "all" if plain and digits == len(plain) else "some" if digits else "none"
    return {
        "text": plain if kind != "all" else "", "digits": kind, "size": f"{'n' if kind == 'all' else 'a'}{len(plain)}",
        "mark": token[-1] if token[-1] in ".,;)" else "", "direction": plain in DIRECTIONS, "road": plain in ROADS,
        "vowel": any(c in "aeiou" for c in plain[1:]), "round": plain[len(plain.rstrip("0")) :] if kind == "all" else "",
        "hash": "#" in token,
    }  # fmt: skip


def entities(rows: Rows) -> list[dict[str, Any]]:
    """The word, its ends, its case and its tag; of the neighbours word, case and tag."""
    found = []
    for t, (word, tag, *_) in enumerate(rows):
        one: dict[str, Any] = {"one": 1.0, "low": word.lower(), "end3": word[-3:], "end2": word[-2:], "tag": tag, "tag2": tag[:2]}
        one |= {"upper": word.isupper(), "title": word.istitle(), "digits": word.isdigit()}
        for step in (-1, 1):
            if 0 <= t + step < len(rows):
                near, near_tag = rows[t + step][:2]
                one |= {f"{step}low": near.lower(), f"{step}title": near.istitle(), f"{step}upper": near.isupper()}
                one |= {f"{step}tag": near_tag, f"{step}tag2": near_tag[:2]}
            else:
                one["begin" if step < 0 else "end"] = True
        found.append(one)
    return found


def tagger(rows: Rows) -> list[list[str]]:
    """The word, its last one to three letters, and whether it has a capital, a digit, or no letter at all."""
    found = []
    for word, *_ in rows:
        one = [f"word={word}", *(f"end={word[-k:]}" for k in (1, 2, 3) if len(word) > k)]
        marks = {"capital": word[0].isupper(), "digit": any(map(str.isdigit, word)), "marks": not any(map(str.isalnum, word))}
        found.append([*one, *(name for name, holds in marks.items() if holds)])
    return found


def columns(rows: Rows) -> Rows:
    """27 columns of a word and its tag, as programs write them that have CRF++ trained."""
    found = []
    for t, (word, tag, *_) in enumerate(rows):
        low = word.lower()
        case = "upper" if word.isupper() else "title" if word.istitle() else "lower" if word.islower() else "mixed"
        digits = "all" if word.isdigit() else "some" if any(map(str.isdigit, word)) else "none"
        shape = "".join("X" if c.isupper() else "x" if c.isalpha() else "0" if c.isdigit() else c for c in word)
        place = "first" if t == 0 else "last" if t + 1 == len(rows) else "inside"
        ends = [low[:k] for k in (1, 2, 3, 4)] + [low[-k:] for k in (1, 2, 3, 4)]
        tests = [
            word[0] == "'",
            "-" in word,
            "." in word,
            "," in word,
            low.endswith("ing"),
            low.endswith("ed"),
            low.endswith("ly"),
        ]
        sizes = [str(min(len(word), 9)), str(10 * t // len(rows)), str(sum(c in "aeiou" for c in low))]
        alone = [tag[0], tag[:2], case, digits, shape, place]
        found.append([word, low, tag, *ends, *alone, *("yes" if test else "no" for test in tests), *sizes])
    return found


#: U lines of the template: windows of word and tag, pairs and triples of tags, and every other column at the token itself
TEMPLATE = [
    *(f"%x[{k},0]" for k in range(-2, 3)), *(f"%x[{k},2]" for k in range(-2, 3)),
    "%x[-1,0]/%x[0,0]", "%x[0,0]/%x[1,0]", *(f"%x[{k},2]/%x[{k + 1},2]" for k in range(-2, 2)),
    *(f"%x[{k},2]/%x[{k + 1},2]/%x[{k + 2},2]" for k in range(-2, 1)), *(f"%x[0,{c}]" for c in (1, *range(3, 27))),
    *(f"%x[{k},13]" for k in (-1, 1)), *(f"%x[{k},10]" for k in (-1, 1)),
]  # fmt: skip


def template(rows: Rows) -> list[list[str]]:
    """The template's features, as a script writes them that has CRFsuite trained in place of CRF++."""
    values, places = columns(rows), [_places(line) for line in TEMPLATE]
    found = []
    for t in range(len(values)):
        one = []
        for k, atoms in enumerate(places):
            texts = (values[t + row][column] if 0 <= t + row < len(values) else f"_B{row:+d}" for row, column in atoms)
            one.append(f"U{k:02d}:{'/'.join(texts)}")
        found.append(one)
    return found


def _places(line: str) -> list[tuple[int, int]]:
    pairs = (piece.removeprefix("%x[").removesuffix("]").split(",") for piece in line.split("/"))
    return [(int(row), int(column)) for row, column in pairs]


FEATURES = {"addresses": addresses, "entities": entities, "tagger": tagger, "template": template}


def corpora(name: str, n: int | None) -> tuple[list[Rows], list[Rows]]:
    """The sentences for training and for the test; n: at most so many, and of the test half as many."""
    program, folder = PROGRAMS[name], data_folder()
    train, test = (folder / file for file in program.files)
    return read(train, program.separator, n), read(test, program.separator, n and n // 2)


def labels_of(sentences: Iterable[Rows]) -> list[list[str]]:
    """The last column; of treebanks it is the tag."""
    return [[row[-1] for row in rows] for rows in sentences]


#: names of the measures in structpred.evaluation
METRICS = {"F1": "f1", "accuracy": "token_accuracy", "whole strings": "sequence_accuracy"}


def scored(measure: str, gold: list[list[str]], found: list[list[str]]) -> dict[str, Any]:
    """score: in percent. labels: what was found, for a comparison."""
    from structpred.evaluation import evaluate_sequences

    return {"score": 100 * getattr(evaluate_sequences(gold, found), METRICS[measure]), "labels": found}


def settings_of(name: str, algorithm: str, quick: bool) -> dict[str, Any]:
    """The parameters by sklearn-crfsuite's names."""
    found = dict(PROGRAMS[name].params) if algorithm == "lbfgs" else {"max_iterations": 10}
    return {**found, **({"max_iterations": 40 if algorithm == "lbfgs" else 5} if quick else {})}


def orders(algorithm: str, n: int) -> list[list[int]]:
    """The orders in which the samples are given; the first is theirs."""
    found = [list(range(n)) for _ in range(ORDERS.get(algorithm, 1))]
    for seed, order in enumerate(found[1:]):
        random.Random(seed).shuffle(order)
    return found


def theirs(watch: Stopwatch, name: str, algorithm: str, quick: bool, n: int | None, model: str) -> dict[str, Any]:
    """Fit and tag with python-crfsuite."""
    import pycrfsuite

    train, test = corpora(name, n)
    X, y, X_test = [FEATURES[name](s) for s in train], labels_of(train), [FEATURES[name](s) for s in test]
    params = {PARAMS.get(key, key): value for key, value in settings_of(name, algorithm, quick).items()}
    runs = []
    for order in orders(algorithm, len(X)):
        with watch("fit"):
            trainer = pycrfsuite.Trainer(algorithm=algorithm, params=params, verbose=False)
            for i in order:
                trainer.append(X[i], y[i])
            trainer.train(model)
        tagger_ = pycrfsuite.Tagger()
        tagger_.open(model)
        runs.append(scored(PROGRAMS[name].measure, labels_of(test), [tagger_.tag(x) for x in X_test]))
    return {**runs[0], "score": mean(run["score"] for run in runs), "orders": len(runs)}


def same(watch: Stopwatch, name: str, algorithm: str, quick: bool, n: int | None) -> dict[str, Any]:
    """Fit and tag with compat.CRF. The kernels are compiled and loaded before."""
    from structpred.compat import CRF

    train, test = corpora(name, n)
    X, y, X_test = [FEATURES[name](s) for s in train], labels_of(train), [FEATURES[name](s) for s in test]
    settings = {"algorithm": algorithm, **settings_of(name, algorithm, quick)}
    CRF(**{**settings, "max_iterations": 2}).fit(X[:50], y[:50])
    runs = []
    for order in orders(algorithm, len(X)):
        xs, labels = [X[i] for i in order], [y[i] for i in order]
        with watch("fit"):
            crf = CRF(**settings).fit(xs, labels)
        runs.append(scored(PROGRAMS[name].measure, labels_of(test), crf.predict(X_test)))
    return {**runs[0], "score": mean(run["score"] for run in runs), "orders": len(runs)}


def recommended(watch: Stopwatch, name: str, n: int | None) -> dict[str, Any]:
    """The same with ChainLabeler and sgd, from feature lists, or from columns where there is a template."""
    from structpred.models import ChainLabeler

    program, (train, test) = PROGRAMS[name], corpora(name, n)
    make = columns if program.templates else FEATURES[name]
    X, y, X_test = [make(s) for s in train], labels_of(train), [make(s) for s in test]
    given: dict[str, Any] = {"random_state": 0, "check_every": PASSES}
    folder = scratch_folder()
    if program.templates:
        path = folder / "crfpp.template"
        path.write_text("".join(f"U{k:02d}:{line}\n" for k, line in enumerate(TEMPLATE)) + "B\n")
        given["template"] = str(path)
        X, X_test = [[tuple(row) for row in s] for s in X], [[tuple(row) for row in s] for s in X_test]
    ChainLabeler("sgd", max_iter=5, **given).fit(X[:50], y[:50])
    with watch("fit"):
        labeler = ChainLabeler("sgd", C, PASSES, **given).fit(X, y)
    shutil.rmtree(folder)
    return scored(program.measure, labels_of(test), [found.tolist() for found in labeler.predict(X_test)])


def run(names: list[str], rounds: int, quick: bool, write: bool, n: int | None) -> None:
    """All rounds; with `write` the table after each program, so that a run that is stopped leaves what it has."""
    scratch = scratch_folder()
    found: dict[str, dict[str, list[dict[str, Any]]]] = {name: {} for name in names}
    for _ in range(rounds):
        for name in names:
            for algorithm in ALGORITHMS[: 2 if quick else None]:
                common = {"name": name, "algorithm": algorithm, "quick": quick, "n": n}
                one = in_child("programs:theirs", model=str(scratch / "model"), **common)
                found[name].setdefault(f"CRFsuite {algorithm}", []).append(one)
                found[name].setdefault(OURS[algorithm], []).append(in_child("programs:same", **common))
            found[name].setdefault("ChainLabeler sgd", []).append(in_child("programs:recommended", name=name, n=n))
            if write:
                figures = {one: {side: _figures(runs) for side, runs in sides.items()} for one, sides in found.items() if sides}
                shown = {"machine": machine(), "sentences": n, "programs": figures}
                (HERE / "results" / "programs.json").write_text(json.dumps(shown, indent=1) + "\n")
                (HERE / "results" / "programs.md").write_text(f"# Programs that switch\n\n{report(found, quick, n)}\n")
    shutil.rmtree(scratch)
    print(report(found, quick, n))


def _figures(runs: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "score": runs[0]["score"],
        "fit": [run["seconds"]["fit"] / run.get("orders", 1) for run in runs],
        "process": [r["cpu_seconds"] for r in runs],
    }


def report(found: dict[str, dict[str, list[dict[str, Any]]]], quick: bool, n: int | None) -> str:
    """The table, then a verdict for each pair."""
    from structpred.evaluation import compare_systems

    rows, verdicts = [], []
    for name, sides in [pair for pair in found.items() if pair[1]]:
        measure = PROGRAMS[name].measure
        new = _figures(sides["ChainLabeler sgd"])
        for algorithm in [name for name in ALGORITHMS if OURS[name] in sides]:
            peer, ours = _figures(sides[f"CRFsuite {algorithm}"]), _figures(sides[OURS[algorithm]])
            for side, one in ((OURS[algorithm], ours), ("ChainLabeler sgd", new)):
                least, middle = (pick(peer["fit"]) / pick(one["fit"]) for pick in (min, median))
                seconds = [f"{min(x['fit']):.2f}, {median(x['fit']):.2f}" for x in (peer, one)]
                scores = [f"{x['score']:.2f}" for x in (peer, one)]
                rows.append([TITLES[name], measure, f"CRFsuite {algorithm}", seconds[0], scores[0], side, seconds[1], scores[1],
                             f"{least:.1f}, {middle:.1f}"])  # fmt: skip
                pair = f"{TITLES[name]}: {side} beside CRFsuite {algorithm}"
                gain = one["score"] - peer["score"]
                within = (WITHIN_QUICK if quick else WITHIN)[algorithm] if side == OURS[algorithm] else 0.0
                if side == OURS[algorithm]:
                    verdicts.append(verdict(f"{pair}, never slower", least >= 1.0, f"{least:.2f} times as fast"))
                elif algorithm == "lbfgs":
                    verdicts.append(verdict(f"{pair}, 5 times as fast", least >= 5.0, f"{least:.1f} times"))
                if algorithm == "lbfgs":
                    first, second = (sides[one][0]["labels"] for one in (side, "CRFsuite lbfgs"))
                    gold = labels_of(corpora(name, n)[1])
                    both = compare_systems(gold, first, second, METRICS[measure], n_resamples=2000)
                    shown = f"{gain:+.2f}; by resampling {100 * both.low:+.2f} to {100 * both.high:+.2f}, p {both.p_value:.3f}"
                    good, text = gain >= -within or both.p_value > 0.05, f"at most {within:g} points lower, or with p > .05"
                    verdicts.append(verdict(f"{pair}, {measure} {text}", good, shown))
                elif side == OURS[algorithm]:
                    verdicts.append(
                        verdict(f"{pair}, {measure} at most {within:g} points lower", gain >= -within, f"{gain:+.2f}")
                    )
    rounds = ", ".join(str(len(sides["ChainLabeler sgd"])) for sides in found.values() if sides)
    part = "all training data" if n is None else f"the first {n} sentences of each training part, {n // 2} of the test part"
    head = ("program", "measure", "peer", "CPU s", "score", "ours", "CPU s", "score", "times as fast")
    about = (
        f"{machine()}; {part}. Rounds of each program: {rounds}. CPU seconds of the fit (`time.process_time`), and ratios: of "
        f"the fastest, then of the medians. Online learners of CRFsuite: 10 passes, "
        f"means of {ORDERS['ap']} orders of the samples; sgd: {PASSES}, C = {C:g}."
    )
    return "\n".join([about, "", table(head, rows), "", "```text", *verdicts, "```"])


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--sentences", type=int, metavar="N")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", action="append", choices=list(PROGRAMS))
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    names = options.only or list(PROGRAMS)
    n = 300 if options.quick else options.sentences
    run(names, 1 if options.quick else options.rounds, options.quick, options.write, n)


if __name__ == "__main__":
    main()
