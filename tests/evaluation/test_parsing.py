"""Scores of trees: by hand from the official definitions, and against slow definitions."""

import itertools
import json
import random
from typing import NamedTuple

import numpy as np
import pytest

from structpred.errors import DataError
from structpred.evaluation import (
    CONLL07,
    CONLL07_WITHOUT_PUNCTUATION,
    CONLLX,
    UD,
    ParsingRules,
    ParsingScores,
    confusion_matrix,
    evaluate_treebanks,
    evaluate_trees,
    parsing_interval,
)
from structpred.evaluation.parsing import relation_pairs
from structpred.evaluation.trees import forest
from structpred.io.templates.arc_featurizer import is_punctuation
from structpred.io.treebanks.treebank import Sentence, Treebank
from structpred.io.treebanks.treebank import Tree as TreebankTree

ALL = (CONLLX, CONLL07, CONLL07_WITHOUT_PUNCTUATION, UD)


class Tree(NamedTuple):
    """A parse as plain lists."""

    heads: list[int]
    labels: list[str] | None


# "He 's paid $ 5 -- !": `--` and `!` are punctuation by form and tag; `$` is a symbol, tagged SYM; `'s` starts with a P*.
FORMS = [["He", "'s", "paid", "$", "5", "--", "!"], ["Stop", "..."], ["?!"]]
UPOS = [["PRON", "AUX", "VERB", "SYM", "NUM", "PUNCT", "PUNCT"], ["VERB", "PUNCT"], ["PUNCT"]]
GOLD = [
    Tree([3, 3, 0, 3, 4, 3, 3], ["nsubj:pass", "aux:pass", "root", "obj", "nummod", "punct", "punct"]),
    Tree([0, 1], ["root", "punct"]),
    Tree([0], ["root"]),
]
# Heads wrong: `5` (word 5), `--` (word 6) and `...`. Relations wrong: `He` in its subtype only, `$`, `--`.
PREDICTED = [
    Tree([3, 3, 0, 3, 3, 5, 3], ["nsubj", "aux:pass", "root", "iobj", "nummod", "dep", "punct"]),
    Tree([2, 0], ["root", "punct"]),
    Tree([0], ["root"]),
]


def judge(gold: list[Tree], predicted: list[Tree], rules: ParsingRules) -> ParsingScores:
    """Evaluate parses of the sentences above."""
    return evaluate_trees(gold, predicted, forms=FORMS, upos=UPOS, rules=rules)


# By hand. Words: 7 + 2 + 1 = 10; without punctuation 5 + 1 + 0 = 6. Heads right: words 1 2 3 4 7 of sentence 1, none of
# sentence 2 (`Stop` hangs on `...`, `...` on the root), the one of sentence 3. Relations as listed above.
EXPECTED = {
    CONLLX: {"scored": 6, "heads": 4, "labelled": 2, "labels": 4, "exact": 0, "roots": 1, "some": 2},
    CONLL07_WITHOUT_PUNCTUATION: {"scored": 6, "heads": 4, "labelled": 2, "labels": 4, "exact": 0, "roots": 1, "some": 2},
    CONLL07: {"scored": 10, "heads": 6, "labelled": 4, "labels": 7, "exact": 1, "roots": 2, "some": 3},
    UD: {"scored": 10, "heads": 6, "labelled": 5, "labels": 8, "exact": 1, "roots": 2, "some": 3},
}


@pytest.mark.parametrize("rules", ALL, ids=lambda rules: rules.name)
def test_by_hand(rules: ParsingRules) -> None:
    """Each rule gives the figures that its definition gives by hand: punctuation, symbols, subtypes, lone punctuation."""
    expected, scores = EXPECTED[rules], judge(GOLD, PREDICTED, rules)
    assert (scores.n_words, scores.n_scored, scores.n_punctuation) == (10, expected["scored"], 4)
    assert scores.uas == expected["heads"] / expected["scored"]
    assert scores.las == expected["labelled"] / expected["scored"]
    assert scores.label_accuracy == expected["labels"] / expected["scored"]
    assert scores.exact_match == scores.exact_match_labelled == expected["exact"] / expected["some"]
    assert scores.root_accuracy == expected["roots"] / expected["some"]
    assert scores.rules == rules.name
    assert rules.name in scores.table().splitlines()[0]


def test_with_and_without_punctuation() -> None:
    """Both figures are shown with the official one, whichever that is."""
    for rules in ALL:
        scores = judge(GOLD, PREDICTED, rules)
        assert (scores.with_punctuation.n_words, scores.with_punctuation.n_heads) == (10, 6)
        assert (scores.without_punctuation.n_words, scores.without_punctuation.n_heads) == (6, 4)
        official = scores.with_punctuation if rules.scores_punctuation else scores.without_punctuation
        assert (scores.uas, scores.las, scores.label_accuracy) == (official.uas, official.las, official.label_accuracy)


def test_what_punctuation_is() -> None:
    """By form: characters of the categories P* only; symbols and mixtures are words. By tag: PUNCT and nothing else."""
    for form in (".", "...", "``", "--", "-LRB-", "“", "、", "%", "@", "_", "·"):
        assert is_punctuation(form) == (form not in ("``", "-LRB-"))  # a backtick is a symbol (Sk)
    for form in ("$", "+", "=", "<", "|", "~", "^", "€", "a.", "1", "", " "):
        assert not is_punctuation(form)
    assert UD.punctuation(["!", "x"], ["SYM", "PUNCT"]).tolist() == [False, True]
    assert CONLLX.punctuation(["!", "x"], ["SYM", "PUNCT"]).tolist() == [True, False]


def test_relations_by_hand() -> None:
    """A relation's arc counts as found with its head and relation; subtypes are one relation for UD, several otherwise."""
    ud, conll = judge(GOLD, PREDICTED, UD).per_relation, judge(GOLD, PREDICTED, CONLL07).per_relation
    assert (ud["nsubj"].n_gold, ud["nsubj"].n_predicted, ud["nsubj"].n_found) == (1, 1, 1)
    assert (conll["nsubj"].n_gold, conll["nsubj"].n_predicted, conll["nsubj"].n_found) == (0, 1, 0)
    assert (conll["nsubj:pass"].n_gold, conll["nsubj:pass"].n_predicted) == (1, 0)
    assert (ud["punct"].n_gold, ud["punct"].n_predicted, ud["punct"].n_found) == (3, 2, 1)
    assert (ud["punct"].precision, ud["punct"].recall, ud["punct"].f1) == (1 / 2, 1 / 3, pytest.approx(0.4))
    assert sum(c.n_found for c in ud.values()) / 10 == judge(GOLD, PREDICTED, UD).las
    labels, counts = confusion_matrix(*relation_pairs(GOLD, PREDICTED, UD))
    assert counts[labels.index("obj"), labels.index("iobj")] == 1


def test_lengths_by_hand() -> None:
    """Arcs are counted by distance, 0 from the root, gold ones for the recall and predicted ones for the precision."""
    scores = judge(GOLD, PREDICTED, CONLL07)
    # gold: root 3, distance 1: words 2 4 5 | `...` = 4, 2: word 1, 3: word 6, 4: word 7.
    # predicted: root 3 (`paid`, `...`, `?!`), 1: 2 4 6 | `Stop` = 4, 2: 1 5 = 2, 4: word 7.
    assert {k: (c.n_gold, c.n_predicted, c.n_found) for k, c in scores.by_distance.items()} == {
        0: (3, 3, 2), 1: (4, 4, 2), 2: (1, 2, 1), 3: (1, 0, 0), 4: (1, 1, 1),
    }  # fmt: skip
    assert {k: (c.n_gold, c.n_predicted, c.n_found) for k, c in scores.by_length.items()} == {
        "to root": (3, 3, 2), "1": (4, 4, 2), "2": (1, 2, 1), "3-6": (2, 1, 1), "7-": (0, 0, 0),
    }  # fmt: skip
    assert scores.per_upos["PUNCT"].n_words == 4
    assert scores.per_upos["SYM"].n_heads == 1
    assert scores.per_upos["SYM"].n_labels == 0


def test_non_projective_by_hand() -> None:
    """An arc over a word that does not descend from its head is non-projective; recall and precision have their own arcs."""
    words = {"forms": [["a", "hearing", "is", "scheduled", "on", "it", "today"]], "upos": [["X"] * 7]}
    gold = [Tree([2, 3, 0, 3, 2, 5, 4], None)]
    # `on` (5) hangs on `hearing` (2) over `is` and `scheduled`; `today` (7) on `scheduled` (4) over `on` and `it`.
    assert forest(gold, words["forms"], "gold").non_projective().tolist() == [False] * 4 + [True, False, True]
    predicted = [Tree([2, 3, 0, 3, 2, 5, 3], None)]  # finds the first, and attaches `today` to `is`: 3 -> 7 is projective
    arcs = evaluate_trees(gold, predicted, **words, rules=UD).non_projective
    assert (arcs.n_gold, arcs.n_found, arcs.n_predicted, arcs.n_right) == (2, 1, 1, 1)
    assert (arcs.recall, arcs.precision) == (0.5, 1.0)


def _slowly(heads: list[int]) -> list[bool]:
    """The definition, word by word; a root's arc is projective."""

    def descends(k: int, h: int) -> bool:
        for _ in heads:
            k = heads[k - 1] if k else 0
            if k == h:
                return True
        return False

    arcs = ((m, h) for m, h in enumerate(heads, 1))
    return [h > 0 and any(not descends(k, h) for k in range(min(h, m) + 1, max(h, m))) for m, h in arcs]


def test_non_projective_against_the_definition() -> None:
    """All head vectors of 1 to 4 words and many random longer ones, cycles included, agree with the definition word by word."""
    rng = random.Random(0)
    heads = [list(h) for n in (1, 2, 3, 4) for h in itertools.product(range(n + 1), repeat=n)]
    heads += [[rng.choice([h for h in range(n + 1) if h != m]) for m in range(1, n + 1)] for n in range(5, 30) for _ in range(20)]
    row = forest([Tree(h, None) for h in heads], [["w"] * len(h) for h in heads], "predicted")
    assert row.non_projective().tolist() == list(itertools.chain.from_iterable(map(_slowly, heads)))
    assert row.non_projective().any()


def test_gold_against_gold_is_perfect() -> None:
    """Gold against gold is 1 in every share, under every rule."""
    for rules in ALL:
        scores = judge(GOLD, GOLD, rules)
        shares = [scores.uas, scores.las, scores.label_accuracy, scores.root_accuracy, scores.exact_match]
        shares += [scores.exact_match_labelled, *(c.f1 for c in scores.per_relation.values())]
        assert shares == [1.0] * len(shares)


def test_several_roots() -> None:
    """The CoNLL rules take several roots, as their scripts do; UD refuses them in gold and predicted trees by name."""
    words = {"forms": [["a", "b"], ["c", "d", "e"]], "upos": [["X"] * 2, ["X"] * 3]}
    one, two = [Tree([0, 1], None), Tree([0, 1, 1], None)], [Tree([0, 1], None), Tree([0, 0, 1], None)]
    for rules in (CONLLX, CONLL07):
        scores = evaluate_trees(one, two, **words, rules=rules)
        assert (scores.uas, scores.root_accuracy, scores.exact_match) == (0.8, 0.5, 0.5)
    for gold, predicted, name in ((two, one, "gold"), (one, two, "predicted")):
        with pytest.raises(DataError, match=rf"sentence 1 \('c d e'\): the {name} tree has 2 roots"):
            evaluate_trees(gold, predicted, **words, rules=UD)


@pytest.mark.parametrize(
    ("heads", "message"),
    [
        ([0, 3, 2, 1], r"sentence 1 \('b c d e'\): expected a gold tree, but from word 2 the heads lead into a cycle"),
        ([0, 5, 1, 1], r"sentence 1 .*: word 2: expected a gold head from 0 to 4, got 5 \(outside the sentence\)"),
        ([0, -1, 1, 1], r"sentence 1 .*: word 2: .* got -1 \(missing\)"),
        ([0, 2, 1, 1], r"sentence 1 .*: word 2: .* got 2 \(the word itself\)"),
        ([0, 1, 1], r"sentence 1 .*: expected 4 gold heads \(integers\), got 3"),
        ([0.0, 1.0, 1.0, 1.0], r"sentence 1 .* got shape \(4,\) of float64"),
    ],
)
def test_bad_gold_is_refused(heads: list[int], message: str) -> None:
    """A gold tree that is none, under any rule, is refused with sentence and word."""
    words = {"forms": [["a"], list("bcde")], "upos": [["X"], ["X"] * 4]}
    for rules in ALL:
        with pytest.raises(DataError, match=message):
            evaluate_trees(
                [Tree([0], None), Tree(heads, None)], [Tree([0], None), Tree([0, 1, 1, 1], None)], **words, rules=rules
            )


def test_predicted_cycles() -> None:
    """The CoNLL scripts ask nothing of predicted heads but that they are there; UD refuses cycles and rootless sentences."""
    words = {"forms": [["a", "b"]], "upos": [["X", "X"]]}
    for heads in ([2, 1], [1, 1]):
        assert evaluate_trees([Tree([0, 1], None)], [Tree(heads, None)], **words, rules=CONLLX).uas == 0.5
        with pytest.raises(DataError, match="expected a predicted tree, but from word 1 the heads lead into a cycle"):
            evaluate_trees([Tree([0, 1], None)], [Tree(heads, None)], **words, rules=UD)
    with pytest.raises(DataError, match=r"word 2: expected a predicted head from 0 to 2, got 3"):
        evaluate_trees([Tree([0, 1], None)], [Tree([0, 3], None)], **words, rules=CONLLX)


def test_other_shapes_are_refused() -> None:
    """Missing sentences, other lengths, no sentences, empty ones and a string in place of words are refused."""
    for bad, message in (
        ({"predicted": PREDICTED[:2]}, "a predicted tree for each of 3 sentences, got 2"),
        ({"gold": GOLD[:2]}, "a gold tree for each of 3"),
        ({"predicted": [*PREDICTED[:1], Tree([0], ["root"]), PREDICTED[2]]}, "sentence 1 .* expected 2 predicted heads"),
        ({"predicted": [*PREDICTED[:2], Tree([0], ["root", "x"])]}, "sentence 2 .* 1 words but 2 predicted relations"),
        ({"forms": [], "upos": []}, "nothing to evaluate"),
        ({"forms": [[], *FORMS[1:]], "upos": [[], *UPOS[1:]]}, "sentence 0: the sentence is empty"),
        ({"upos": UPOS[:2]}, "the tags of 3 sentences, got those of 2"),
        ({"upos": [["X"], *UPOS[1:]]}, "sentence 0: 7 words but 1 tags"),
        ({"forms": ["a b", *FORMS[1:]]}, "expected a list of words, got the string"),
    ):
        arguments = {"gold": GOLD, "predicted": PREDICTED, "forms": FORMS, "upos": UPOS, "rules": UD, **bad}
        with pytest.raises(DataError, match=message):
            evaluate_trees(**arguments)


def test_without_relations() -> None:
    """Without relations on one side the labelled scores are None, not 0, and the table says so."""
    scores = judge(GOLD, [Tree(tree.heads, None) for tree in PREDICTED], CONLL07)
    assert scores.uas == 0.6
    assert (scores.las, scores.label_accuracy, scores.exact_match_labelled, scores.per_relation) == (None, None, None, {})
    assert scores.with_punctuation.las is None
    assert "-" in scores.table().splitlines()[3]
    with pytest.raises(DataError, match="las: expected trees with relations"):
        parsing_interval(scores)
    with pytest.raises(DataError, match="expected trees with relations"):
        relation_pairs(GOLD, [Tree([0], None)], UD)


def test_json_holds_every_figure() -> None:
    """The result as JSON comes back with the rules' name, nested scores and counts; a table has every relation."""
    scores = judge(GOLD, PREDICTED, UD)
    figures = json.loads(scores.to_json())
    assert figures == scores.to_dict()
    assert figures["rules"] == "Universal Dependencies"
    assert (figures["uas"], figures["without_punctuation"]["uas"]) == (0.6, 4 / 6)
    assert figures["non_projective"]["recall"] == scores.non_projective.recall
    assert figures["by_distance"]["0"]["n_gold"] == 3
    assert all(f"\n{relation} " in scores.table() for relation in scores.per_relation)


MULTIWORD = """\
# text = Vámonos al mar.
1-2\tVámonos\t_\t_\t_\t_\t_\t_\t_\t_
1\tVamos\tir\tVERB\t_\t_\t0\troot\t_\t_
2\tnos\tnosotros\tPRON\t_\t_\t1\tobj\t_\t_
3-4\tal\t_\t_\t_\t_\t_\t_\t_\t_
3\ta\ta\tADP\t_\t_\t5\tcase\t_\t_
4\tel\tel\tDET\t_\t_\t5\tdet\t_\t_
5\tmar\tmar\tNOUN\t_\t_\t1\tobl:arg\t_\tSpaceAfter=No
5.1\tsol\tsol\tNOUN\t_\t_\t_\t_\t5:conj\t_
6\t.\t.\tPUNCT\t_\t_\t1\tpunct\t_\t_

"""


def _read(text: str) -> Treebank:
    """The words of a CoNLL-U text, read here without the reader: lines whose number is an integer."""
    sentences, trees = [], []
    for block in text.strip().split("\n\n"):
        rows = [line.split("\t") for line in block.split("\n") if line[0] != "#"]
        words = [row for row in rows if row[0].isdigit()]
        sentences.append(Sentence(*([row[k] for row in words] for k in range(1, 6))))
        trees.append(TreebankTree(np.array([int(row[6]) for row in words]), [row[7] for row in words]))
    return Treebank.of(sentences, trees)


def test_multiword_tokens() -> None:
    """Words are scored, not the tokens that hold several of them, nor empty nodes."""
    gold = _read(MULTIWORD)
    predicted = _read(MULTIWORD.replace("5\tcase", "1\tcase").replace("obl:arg", "obl"))
    scores = evaluate_treebanks(gold, predicted, UD)
    assert (scores.n_words, scores.uas, scores.las) == (6, 5 / 6, 5 / 6)
    assert evaluate_treebanks(gold, predicted.trees(), UD) == scores
    scores = evaluate_treebanks(gold, predicted, CONLLX)
    assert (scores.n_scored, scores.uas, scores.las) == (5, 4 / 5, 3 / 5)


def test_other_words_are_refused() -> None:
    """Predictions on another tokenisation or other words are refused with the place."""
    gold = _read(MULTIWORD)
    with pytest.raises(DataError, match=r"position 4: expected the word 'mar' of sample 0, position 4, got 'lago'"):
        evaluate_treebanks(gold, _read(MULTIWORD.replace("5\tmar", "5\tlago")), UD)
    with pytest.raises(DataError, match=r"expected the 6 words of .*, got 5"):
        evaluate_treebanks(gold, _read(MULTIWORD.replace("6\t.\t.\tPUNCT\t_\t_\t1\tpunct\t_\t_\n", "")), UD)
    with pytest.raises(DataError, match="expected the 1 sentences"):
        evaluate_treebanks(gold, _read(MULTIWORD * 2), UD)
