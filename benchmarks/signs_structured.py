"""Signs of weights known beforehand, with little training data: ``python benchmarks/signs_structured.py [--quick]``.

CoNLL-2000 chunking with 1 % of the training sentences (89), drawn anew for each run; all 2,012 test sentences. The same chain
labeller is trained without signs, with signs, and with IOB2 as a hard constraint, which is other knowledge of the same kind. The
signs say of part-of-speech tags which chunks they speak for or against by the definition of the chunks (a determiner is part of
a noun phrase, a modal verb of a verb phrase, a comma of nothing), and of transitions that I-X does not follow what is not B-X or
I-X. They were written down before anything was measured. Names that the sample does not have are left out. "Words speak only for"
is a bolder claim: that words, and pairs of words, are evidence for the chunks they are seen in and never against others.

English EWT with 1 % of the training sentences (125), the first 500 sentences for development as test: a parser of heads, whose
templates with two words are evidence for an arc, never against it.
--quick takes two runs and few test sentences: a check that everything runs.
"""

import argparse
from typing import Any

import numpy as np
from measure import data_folder, machine, table

from structpred.evaluation import evaluate_sequences, select_sequences
from structpred.io import read_columns, read_treebank
from structpred.models import ChainLabeler, DependencyParser

#: tags by the chunks that they are part of; the sign is + for these labels and - for all others
PARTS = {
    ("DT", "PRP$", "WDT", "PRP", "NN", "NNS", "NNP", "NNPS", "CD", "EX", "WP", "POS", "JJ", "JJR", "JJS", "$", "PDT"): "NP",
    ("MD", "VBZ", "VBP", "VBD", "VB", "TO"): "VP",
}
#: tags that are outside of all chunks
OUTSIDE = (",", ".", ":", "``", "''")


def signs_of(model: ChainLabeler, *, part_of_speech: bool = True) -> dict[str, int]:
    """The signs by name, as far as the fitted model has such weights."""
    labels = [str(label) for label in model.classes_.tolist()]
    known = set(model.input_.feature_names())
    signs: dict[str, int] = {}
    for a in ["start", *(f"transition {label}" for label in labels)]:
        for b in labels:
            before = a.rpartition("-")[2] if "-" in a else ""
            if b.startswith("I-") and before != b[2:]:
                signs[f"{a} -> {b}"] = -1
    for tag, wanted in {tag: kind for tags, kind in PARTS.items() for tag in tags}.items() if part_of_speech else ():
        if f"pos[0]={tag}" in known:
            signs |= {
                f"pos[0]={tag} -> {label}": 1 if label.endswith(f"-{wanted}") else -1 for label in labels if agreed(tag, label)
            }
    for tag in OUTSIDE if part_of_speech else ():
        if f"pos[0]={tag}" in known:
            signs |= {f"pos[0]={tag} -> {label}": 1 if label == "O" else -1 for label in labels}
    return signs


def agreed(tag: str, label: str) -> bool:
    """Whether the definition decides: of adjectives, numbers and "to" there are other chunks, which stay free."""
    unsure = {"JJ": "ADJP", "JJR": "ADJP", "JJS": "ADJP", "CD": "ADJP", "TO": "PP", "NN": "ADVP", "$": "ADJP"}
    return tag not in unsure or not label.endswith(unsure[tag])


def run(train: Any, y: Any, test: Any, gold: Any, members: list[int], C: float) -> dict[str, tuple[float, float]]:
    """(token accuracy, F1) of each way to train."""
    X, labels = select_sequences(train, members), [y[i] for i in members]
    settings: dict[str, Any] = {"C": C, "max_iter": 100, "tol": 0.005, "template": "crfsuite"}
    found = {"no signs": ChainLabeler("bcfw", **settings).fit(X, labels)}
    plain = found["no signs"]
    ways = {
        "signs of transitions": signs_of(plain, part_of_speech=False),
        "all signs": signs_of(plain),
        "words speak only for": {"w[*": 1},
    }
    for name, signs in ways.items():
        found[name] = ChainLabeler("bcfw", **settings, signs=signs).fit(X, labels)
        assert (found[name].signs_ * found[name].coef_).min() == 0.0
    found["iob2, no signs"] = ChainLabeler("bcfw", **settings, constraints="iob2").fit(X, labels)
    signed = found["all signs"]
    n_bound = len(signed.binding_constraints())
    print(f"  C={C:g}: {np.count_nonzero(signed.signs_)} signs, {n_bound} bind; {signed.certificate_}", flush=True)
    scores = {
        name: evaluate_sequences(gold, [labels.tolist() for labels in model.predict(test)]) for name, model in found.items()
    }
    return {name: (100 * score.token_accuracy, 100 * score.f1) for name, score in scores.items()}


def parse(train: Any, test: Any, members: list[int], C: float) -> dict[str, tuple[float, float]]:
    """(share of right heads, the gap in per cent) of each way to train."""
    sample, scores = train.take(members), {}
    pairs = [name for name in DependencyParser(max_iter=1, labelled=False).fit(sample).group_names_ if is_of_two_words(name)]
    for name, signs in (("no signs", None), ("pairs of words speak only for", dict.fromkeys(pairs, 1))):
        model = DependencyParser("bcfw", C, 30, labelled=False, max_bits=16, signs=signs, check_every=30).fit(sample)
        assert (model.signs_ * model.coef_).min() >= 0.0
        scores[name] = (100 * model.score(test), 100 * float(model.certificate_.relative_gap or np.nan))
    return scores


def is_of_two_words(template: str) -> bool:
    """Whether a template of arcs has the forms or lemmas of both words."""
    parts = template.partition("|")[0].split()
    return sum(part in ("h.form", "h.lemma", "m.form", "m.lemma") for part in parts) > 1


def main() -> None:
    """Run, and print the table: means, and the difference to no signs with its standard error over the runs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--share", type=float, default=0.01)
    options = parser.parse_args()
    runs = 2 if options.quick else options.runs
    train, test = (read_columns(data_folder() / "conll2000" / f"{part}.txt.gz") for part in ("train", "test"))
    test = test.take(0, 100) if options.quick else test
    y, gold = train.labels(), test.labels()
    rng, rows = np.random.default_rng(0), []
    draws = [np.sort(rng.choice(len(y), round(options.share * len(y)), replace=False)).tolist() for _ in range(runs)]
    for C in (0.1,) if options.quick else (0.1, 1.0):
        add_rows(rows, f"C={C:g}", [run(train, y, test, gold, members, C) for members in draws])
    print(table(["", "knowledge", "token accuracy, %", "F1, %"], rows))
    trees, held_out = (
        read_treebank(data_folder() / "ud_english_ewt" / f"en_ewt-ud-{part}.conllu.gz") for part in ("train", "dev")
    )
    held_out = held_out.take(list(range(50 if options.quick else 500)))
    draws = [np.sort(rng.choice(len(trees), round(options.share * len(trees)), replace=False)).tolist() for _ in range(runs)]
    rows = []
    add_rows(rows, "C=0.1", [parse(trees, held_out, members, 0.1) for members in draws])
    print(table(["", "knowledge", "UAS, %", "gap, %"], rows))
    print(machine())


def add_rows(rows: list[list[str]], name: str, scores: list[dict[str, tuple[float, float]]]) -> None:
    """A row for each way to train: the mean, and the difference to no signs with its standard error."""
    for way in scores[0]:
        values = np.array([score[way] for score in scores])
        gain = values - np.array([score["no signs"] for score in scores])
        error = gain.std(axis=0, ddof=1) / np.sqrt(len(scores))
        told = zip(values.mean(axis=0), gain.mean(axis=0), error, strict=True)
        rows.append([name, way, *(f"{mean:.2f} ({g:+.2f} +- {e:.2f})" for mean, g, e in told)])


if __name__ == "__main__":
    main()
