"""Phrase scores: by hand, against a state machine written from the rules, and strict against lenient."""

import random

import pytest

from structpred.errors import ParameterError
from structpred.evaluation import ChunkCounts, chunk_counts
from structpred.evaluation.chunks import SCHEMES

TYPES = ("X", "Y", "X-Z")
Labels = list[str]


def parts(label: str) -> tuple[str, str]:
    """The tag and the type of a label."""
    tag, _, kind = label.partition("-")
    return tag, kind


def lenient_end(previous: str, tag: str, changed: bool) -> bool:
    """Whether a phrase ends between two neighbours, rule by rule."""
    if previous in ("B", "I") and tag in ("B", "S", "O"):
        return True
    if previous in ("E", "S"):
        return True
    return previous != "O" and changed


def lenient_start(previous: str, tag: str, changed: bool) -> bool:
    """Whether a phrase starts at the second of two neighbours, rule by rule."""
    if tag in ("B", "S"):
        return True
    if previous in ("E", "S", "O") and tag in ("E", "I"):
        return True
    return tag != "O" and changed


def state_machine(gold: list[Labels], predicted: list[Labels]) -> tuple[int, int, int]:
    """Count gold, predicted and correct phrases in one walk over the tokens, without ever listing a phrase."""
    n_gold = n_predicted = n_correct = 0
    for one, other in zip(gold, predicted, strict=True):
        agreeing, before = False, (("O", ""), ("O", ""))
        for pair in [*zip(one, other, strict=True), ("O", "O")]:
            now = (parts(pair[0]), parts(pair[1]))
            ends = [lenient_end(p[0], t[0], p[1] != t[1]) for p, t in zip(before, now, strict=True)]
            starts = [lenient_start(p[0], t[0], p[1] != t[1]) for p, t in zip(before, now, strict=True)]
            if agreeing and any(ends):
                n_correct += all(ends)
                agreeing = False
            n_gold, n_predicted = n_gold + starts[0], n_predicted + starts[1]
            if all(starts) and now[0][1] == now[1][1]:
                agreeing = True
            before = now
    return n_gold, n_predicted, n_correct


def strict_phrases(labels: Labels, scheme: str) -> set[tuple[int, int, str]]:
    """List the well-formed phrases of one sequence by trying to read one from each token on."""
    found = set()
    for i, label in enumerate(labels):
        tag, kind = parts(label)
        j = i + 1
        if tag == "B":
            while j < len(labels) and labels[j] == "I" + label[1:]:
                j += 1
            if scheme == "iob2":
                found.add((i, j, kind))
            elif j < len(labels) and labels[j] == "E" + label[1:]:
                found.add((i, j + 1, kind))
        elif tag == "S" and scheme == "iobes":
            found.add((i, j, kind))
    return found


def random_labels(rng: random.Random, n: int, tags: str) -> Labels:
    """Labels without any order."""
    return [t if (t := rng.choice(tags)) == "O" else f"{t}-{rng.choice(TYPES)}" for _ in range(n)]


def blurred(rng: random.Random, labels: Labels, tags: str) -> Labels:
    """The same labels with about one in five replaced."""
    return [new if rng.random() < 0.2 else old for old, new in zip(labels, random_labels(rng, len(labels), tags), strict=True)]


def written(rng: random.Random, n: int, scheme: str) -> Labels:
    """Exactly n labels of random phrases, written correctly in a scheme."""
    labels: Labels = []
    while len(labels) < n:
        length, kind = rng.randint(0, min(4, n - len(labels))), rng.choice(TYPES)
        if not length:
            labels.append("O")
        elif scheme == "iob2":
            labels += [f"B-{kind}"] + [f"I-{kind}"] * (length - 1)
        elif length == 1:
            labels.append(f"S-{kind}")
        else:
            labels += [f"B-{kind}"] + [f"I-{kind}"] * (length - 2) + [f"E-{kind}"]
    return labels


@pytest.mark.mostly_slow
@pytest.mark.parametrize("tags", ["OBI", "OI", "OBIES"])
def test_lenient_equals_the_state_machine(tags: str) -> None:
    """On 1,500 random pairs of labellings a scheme, good and bad, the counts are those of a walk by the rules."""
    rng = random.Random(tags)
    for _ in range(1500):
        gold = [random_labels(rng, rng.randint(1, 12), tags) for _ in range(3)]
        predicted = [blurred(rng, labels, tags) for labels in gold]
        total, _ = chunk_counts(gold, predicted)
        assert (total.n_gold, total.n_predicted, total.n_correct) == state_machine(gold, predicted), (gold, predicted)


@pytest.mark.parametrize("scheme", ["iob2", "iobes"])
def test_strict_equals_a_listing(scheme: str) -> None:
    """On 1,500 random pairs the strict counts are those of phrases listed one by one, in total and for each type."""
    rng = random.Random(scheme)
    for _ in range(1500):
        gold = [random_labels(rng, rng.randint(1, 12), "OBIIEES") for _ in range(3)]
        predicted = [blurred(rng, labels, "OBIIEES") for labels in gold]
        lists = [[{(i, *p) for p in strict_phrases(s, scheme)} for i, s in enumerate(side)] for side in (gold, predicted)]
        one, other = (set().union(*side) for side in lists)
        total, per_type = chunk_counts(gold, predicted, scheme)
        assert total == ChunkCounts(len(one), len(other), len(one & other))
        for kind in TYPES:
            by_type = [sum(p[-1] == kind for p in phrases) for phrases in (one, other, one & other)]
            assert per_type.get(kind, ChunkCounts(0, 0, 0)) == ChunkCounts(*by_type)


@pytest.mark.parametrize("scheme", ["iob2", "iobes"])
def test_strict_equals_lenient_on_valid_labels(scheme: str) -> None:
    """Where both sides are written correctly, the strict scheme and the lenient rule count alike."""
    rng = random.Random(scheme)
    for _ in range(500):
        gold = [written(rng, rng.randint(1, 12), scheme) for _ in range(3)]
        predicted = [written(rng, len(labels), scheme) for labels in gold]
        assert chunk_counts(gold, predicted, scheme) == chunk_counts(gold, predicted)


# Worked by hand: gold, predicted, scheme, (gold, found, correct phrases), F1.
CASES = [
    ("B-X I-X O B-X", "B-X I-X O I-X", "conlleval", (2, 2, 2), 1.0),
    ("B-X I-X O B-X", "B-X I-X O I-X", "iob2", (2, 1, 1), 2 / 3),
    ("B-X O B-X O O O", "B-X O O B-X O I-Y", "conlleval", (2, 3, 1), 0.4),
    ("B-X O B-X O O O", "B-X O O B-X O I-Y", "iob2", (2, 2, 1), 0.5),
    ("I-X I-X O I-Y", "B-X I-X O B-Y", "conlleval", (2, 2, 2), 1.0),  # IOB1 against IOB2
    ("I-X B-X I-Y", "B-X B-X B-Y", "conlleval", (3, 3, 3), 1.0),
    ("B-X I-X I-X", "B-X B-X I-X", "conlleval", (1, 2, 0), 0.0),
    ("B-X I-X I-X", "B-X I-X I-Y", "conlleval", (1, 2, 0), 0.0),
    ("B-X I-Y", "B-X I-Y", "iob2", (1, 1, 1), 1.0),
    ("S-X B-Y E-Y O", "S-X B-Y E-Y O", "iobes", (2, 2, 2), 1.0),
    ("S-X S-X", "S-X S-X", "conlleval", (2, 2, 2), 1.0),
    ("B-X E-X B-X E-X", "B-X I-X I-X E-X", "conlleval", (2, 1, 0), 0.0),
    ("B-X E-X", "B-X I-X", "iobes", (1, 0, 0), 0.0),
    ("B I O B", "B I O I", "conlleval", (2, 2, 2), 1.0),  # no types
    ("O O", "O O", "conlleval", (0, 0, 0), 0.0),
    ("NN VB", "NN NN", "conlleval", (0, 0, 0), 0.0),  # labels that are not phrase tags
    ("B-X-Y I-X-Y", "B-X-Y I-X", "conlleval", (1, 2, 0), 0.0),  # the type begins at the first hyphen
]


@pytest.mark.parametrize(("gold", "predicted", "scheme", "counts", "f1"), CASES)
def test_cases_by_hand(gold: str, predicted: str, scheme: str, counts: tuple[int, int, int], f1: float) -> None:
    """Small cases give the figures worked out by hand, lenient and strict next to each other."""
    total, _ = chunk_counts([gold.split()], [predicted.split()], scheme)
    assert (total.n_gold, total.n_predicted, total.n_correct) == counts
    assert total.f1 == pytest.approx(f1)


def test_phrases_stop_at_the_end_of_a_sequence() -> None:
    """An I at the start of a sequence never continues the phrase of the sequence before."""
    total, _ = chunk_counts([["B-X"], ["I-X"]], [["B-X"], ["I-X"]])
    assert total == ChunkCounts(2, 2, 2)
    assert chunk_counts([["B-X"], ["I-X"]], [["B-X"], ["I-X"]], "iob2")[0] == ChunkCounts(1, 1, 1)


def test_types_add_up() -> None:
    """The counts by type add up to the total under every scheme."""
    rng = random.Random(0)
    gold = [random_labels(rng, 30, "OBIES") for _ in range(20)]
    predicted = [blurred(rng, labels, "OBIES") for labels in gold]
    for scheme in SCHEMES:
        total, per_type = chunk_counts(gold, predicted, scheme)
        for field in ("n_gold", "n_predicted", "n_correct"):
            assert sum(getattr(c, field) for c in per_type.values()) == getattr(total, field)


def test_unknown_scheme() -> None:
    """An unknown scheme is an error that lists the known ones."""
    with pytest.raises(ParameterError, match=r"conlleval, iob2, iobes, got 'IOB3'"):
        chunk_counts([["O"]], [["O"]], "IOB3")
