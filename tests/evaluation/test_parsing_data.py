"""Scores of trees on a real treebank: perfect gold, UAS at least LAS, intervals and comparisons of parsers."""

import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from structpred.errors import DataError
from structpred.evaluation import (
    CONLL07,
    CONLL07_WITHOUT_PUNCTUATION,
    CONLLX,
    UD,
    ParsingRules,
    compare_parsers,
    evaluate_trees,
    parsing_interval,
)
from structpred.evaluation.bootstrap import PARSING_METRICS
from structpred.io.treebanks.reader import read_treebank
from structpred.io.treebanks.treebank import Tree, Treebank

ALL = (CONLLX, CONLL07, CONLL07_WITHOUT_PUNCTUATION, UD)


@pytest.fixture(scope="module")
def english(data_dir: Path) -> Treebank:
    """The test set of the English Web Treebank."""
    return read_treebank(data_dir / "ud_english_ewt" / "en_ewt-ud-test.conllu.gz")


def perturbed(gold: Treebank, share: float, seed: int) -> list[Tree]:
    """Gold trees with some words hung elsewhere, still trees with one root, and some relations changed."""
    rng = random.Random(seed)
    relations = sorted(set(gold.labels))
    trees = []
    for tree in gold.trees():
        heads, labels = tree.heads.tolist(), list(tree.labels or ())
        for m in range(1, len(heads) + 1):
            if rng.random() < share:
                labels[m - 1] = rng.choice(relations)
            if heads[m - 1] and rng.random() < share:
                h = rng.randint(1, len(heads))
                above = h
                while above not in (0, m):
                    above = heads[above - 1]
                heads[m - 1] = h if above == 0 else heads[m - 1]
        trees.append(Tree(np.array(heads), labels))
    return trees


def _arguments(gold: Treebank) -> dict[str, list[list[str]]]:
    return {"forms": [s.forms for s in gold.sentences()], "upos": [s.upos for s in gold.sentences()]}


@pytest.mark.mostly_slow
@pytest.mark.parametrize("rules", ALL, ids=lambda rules: rules.name)
def test_real_data(rules: ParsingRules, english: Treebank) -> None:
    """On real trees gold against gold is 1, and UAS is at least LAS whatever the predictions."""
    gold, words = english.trees(), _arguments(english)
    same = evaluate_trees(gold, gold, **words, rules=rules)
    assert (same.uas, same.las, same.root_accuracy, same.exact_match_labelled) == (1.0, 1.0, 1.0, 1.0)
    assert same.non_projective.n_gold > 20
    assert (same.non_projective.recall, same.non_projective.precision) == (1.0, 1.0)
    for seed, share in enumerate((0.02, 0.2, 0.7)):
        scores = evaluate_trees(gold, perturbed(english, share, seed), **words, rules=rules)
        assert scores.las is not None
        assert 1 > scores.uas >= scores.las > 0
        assert scores.with_punctuation.n_words == len(english.forms)
        assert sum(c.n_found for c in scores.by_length.values()) == round(scores.uas * scores.n_scored)


def test_the_rules_differ_on_real_data(english: Treebank) -> None:
    """Subtypes raise the labelled score of UD; skipping punctuation changes the set; option -p gives CoNLL-X's figures."""
    gold, predicted, words = english.trees(), perturbed(english, 0.3, 5), _arguments(english)
    x, y, z, u = (evaluate_trees(gold, predicted, **words, rules=rules) for rules in (CONLLX, CONLL07, ALL[2], UD))
    assert (x.uas, x.las) == (z.uas, z.las)
    assert y.uas == u.uas
    assert (y.las or 0) < (u.las or 0)
    assert x.n_scored < y.n_scored == u.n_scored
    own = evaluate_trees(gold, predicted, **words, rules=replace(UD, name="own", ignores_subtypes=False))
    assert own.las == y.las


def test_intervals_and_comparison(english: Treebank) -> None:
    """Intervals hold the score and are as wide as theory says; a better parser is told from a worse one, equals are not."""
    part = english.take(range(400))
    gold, words = part.trees(), _arguments(part)
    good, bad = (evaluate_trees(gold, perturbed(part, share, 1), **words, rules=UD) for share in (0.1, 0.2))
    for metric in PARSING_METRICS:
        interval = parsing_interval(good, metric, n_resamples=400)
        assert interval.value == pytest.approx(getattr(good, metric), abs=1e-12)
        assert interval.low <= interval.value <= interval.high
    interval = parsing_interval(good, "exact_match", n_resamples=2000)
    half = 1.96 * np.sqrt(interval.value * (1 - interval.value) / 400)
    assert (interval.high - interval.low) / 2 == pytest.approx(half, rel=0.15)
    assert parsing_interval(good, seed=1) == parsing_interval(good, seed=1) != parsing_interval(good, seed=2)
    for metric in ("uas", "las"):
        found = compare_parsers(good, bad, metric, n_resamples=500)
        assert found.low > 0
        assert found.p_value == pytest.approx(1 / 501)
        assert compare_parsers(good, good, metric, n_resamples=50).p_value == 1


def test_comparisons_that_say_nothing_are_refused(english: Treebank) -> None:
    """Two parsers under two rules, or on other sentences, are not compared."""
    gold = english.trees()[:50]
    words = {name: rows[:50] for name, rows in _arguments(english).items()}
    one = evaluate_trees(gold, gold, **words, rules=UD)
    with pytest.raises(DataError, match="under the same rules, got Universal Dependencies and CoNLL-2007"):
        compare_parsers(one, evaluate_trees(gold, gold, **words, rules=CONLL07))
    fewer = evaluate_trees(gold[:40], gold[:40], forms=words["forms"][:40], upos=words["upos"][:40], rules=UD)
    with pytest.raises(DataError, match="on the same sentences"):
        compare_parsers(one, fewer)
