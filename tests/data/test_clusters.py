"""Brown clustering against its definition: every merge found by trying all, the mutual information counted from scratch."""

import itertools
import random
from collections import Counter
from typing import Any

import numpy as np
import pytest

from structpred.data import _cluster_kernels as kernels
from structpred.data.clusters import brown_clusters
from structpred.errors import DataError

Text = list[list[str]]


def sentences(n: int, n_words: int, seed: int) -> Text:
    """Sentences in which a word prefers some neighbours, so that losses differ; ties occur, too."""
    rng = random.Random(seed)
    found = []
    for _ in range(n):
        sentence = [rng.randrange(n_words)]
        while rng.random() < 0.8:
            sentence.append((sentence[-1] * 3 + rng.choice([1, 2, 5])) % n_words)
        found.append([f"w{word}" for word in sentence])
    return found


def ordered(text: Text) -> list[str]:
    """The words, the most frequent first."""
    counts = Counter(itertools.chain(*text))
    return sorted(counts, key=lambda word: (-counts[word], word))


def information(text: Text, classes: dict[str, int], unit: float = 0.0) -> float:
    """n times the mutual information of neighbours' classes, less a constant; words without a class are as ends of sentences.

    unit: each x log x is rounded to multiples of 1 / unit.
    """
    line = [classes.get(word, 0) for sentence in text for word in ["", *sentence]] + [0]
    pairs = Counter(itertools.pairwise(line))
    before, after = Counter(line[:-1]), Counter(line[1:])

    def summed(counts: Counter[Any]) -> float:
        each = [x * np.log(x) for x in counts.values()]
        return float(sum(np.rint(np.array(each) * unit)) if unit else sum(each))

    return summed(pairs) - summed(before) - summed(after)


def merges_by_trying(text: Text, n_classes: int) -> tuple[list[tuple[int, int, int]], dict[str, int]]:
    """Each merge, the class that stays first, and its loss; and the classes of words when all have one."""
    classes: dict[str, int] = {}
    found, last, counts = [], {}, Counter(itertools.chain(*text))
    words = ordered(text)
    for step in range(len(words) + n_classes - 1):
        if step < len(words):
            classes[words[step]] = next(k for k in itertools.count(1) if k not in classes.values())
        live = sorted(set(classes.values()))
        if step >= len(words) or len(live) > n_classes:
            now, tried = information(text, classes, kernels.UNIT), []
            for i, j in itertools.combinations(live, 2):
                joined = {word: i if group == j else group for word, group in classes.items()}
                tried.append((now - information(text, joined, kernels.UNIT), i, j))
            loss, i, j = min(tried)
            sizes = [sum(counts[word] for word, group in classes.items() if group == k) for k in (i, j)]
            stays, goes = (j, i) if sizes[0] < sizes[1] else (i, j)
            classes = {word: stays if group == goes else group for word, group in classes.items()}
            found.append((stays, goes, int(loss)))
        if step == len(words) - 1:
            last = classes
    return found, last


@pytest.mark.parametrize(("n_words", "n_classes", "seed"), [(9, 3, 0), (12, 5, 1), (7, 7, 2), (8, 2, 3)])
def test_every_merge_is_the_best_of_all(n_words: int, n_classes: int, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Merges and their losses are those found by trying all pairs and counting anew; paths are those of these merges."""
    text, kept, cluster = sentences(40, n_words, seed), [], kernels.cluster

    def watched(*arguments: Any) -> None:
        cluster(*arguments)
        kept.append(arguments[-1])

    monkeypatch.setattr(kernels, "cluster", watched)
    rows = brown_clusters(text, n_classes)
    expected, classes = merges_by_trying(text, n_classes)
    assert [tuple(row) for row in kept[-1].tolist() if any(row)] == expected
    bits = dict.fromkeys(classes.values(), "")
    for stays, goes, _ in expected[:-n_classes:-1]:
        bits[stays], bits[goes] = bits[stays] + "0", bits[stays] + "1"
    assert {word: path for path, word, _ in rows} == {word: bits[group] for word, group in classes.items()}


def test_losses_add_up_to_the_mutual_information(monkeypatch: pytest.MonkeyPatch) -> None:
    """From a class for each word to one for all, the losses add up to what the mutual information falls by, up to rounding."""
    text, kept, cluster = sentences(300, 60, 0), [], kernels.cluster
    monkeypatch.setattr(kernels, "cluster", lambda *arguments: (cluster(*arguments), kept.append(arguments[-1])))
    words = ordered(text)
    brown_clusters(text, len(words))
    first = information(text, {word: k for k, word in enumerate(words, 1)})
    last = information(text, dict.fromkeys(words, 1))
    assert kept[-1][:, 2].sum() / kernels.UNIT == pytest.approx(first - last, abs=1e-4)


def test_the_order_of_sentences_is_nothing() -> None:
    """The same sentences in another order have the same classes; each word is there once, with its count, sorted by path."""
    text = sentences(400, 80, 4)
    rows = brown_clusters(text, 12)
    assert brown_clusters(text[::-1], 12) == rows
    assert {word: count for _, word, count in rows} == Counter(itertools.chain(*text))
    paths = [path for path, _, _ in rows]
    assert paths == sorted(paths)
    assert len(set(paths)) == 12
    assert not any(a != b and b.startswith(a) for a, b in itertools.pairwise(sorted(set(paths))))


def test_rare_words_are_left_out() -> None:
    """With min_count rarer words have no row."""
    text = [["a", "b"]] * 3 + [["a", "c"]]
    assert [word for _, word, _ in brown_clusters(text, 2, min_count=2)] == ["a", "b"]


@pytest.mark.parametrize(("text", "n_classes", "n_words"), [([], 2, 0), ([[]], 2, 0), ([["a", "b"]], 3, 2), ([["a", "b"]], 1, 2)])
def test_too_few_words_are_named(text: Text, n_classes: int, n_words: int) -> None:
    """Fewer words than classes, or fewer than two classes, are an error with both numbers."""
    with pytest.raises(DataError, match=f"at least 2 classes.*got {n_classes} classes and {n_words} words"):
        brown_clusters(text, n_classes)
