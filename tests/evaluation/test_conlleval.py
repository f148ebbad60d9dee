"""The figures of phrases are those of the script of the CoNLL-2000 shared task, on labels that follow no scheme at all."""

import random
from collections import Counter

import pytest

from structpred.evaluation import chunk_counts, evaluate_sequences

Labels = list[str]
#: pairs of neighbouring tags between which the script has a phrase end, and those at whose second one it has one start
ENDS = {"BB", "BO", "IB", "IO", "EE", "EI", "EO"}
STARTS = {"BB", "IB", "OB", "OI", "EE", "EI", "OE"}


class Script:
    """The script's walk over all tokens of all sentences: it keeps the last tags and types, and whether both sides agree."""

    def __init__(self, gold: list[Labels], guessed: list[Labels]) -> None:
        self.found: Counter[tuple[str, str]] = Counter()
        inside, last = False, (("O", ""), ("O", ""))
        for pair in [pair for one, two in zip(gold, guessed, strict=True) for pair in [*zip(one, two, strict=True), ("O", "O")]]:
            now = self.split(pair[0]), self.split(pair[1])
            ends = [self.ends(a, b) for a, b in zip(last, now, strict=True)]
            starts = [self.starts(a, b) for a, b in zip(last, now, strict=True)]
            same_type = now[0][1] == now[1][1]
            if inside and all(ends) and last[0][1] == last[1][1]:
                inside = False
                self.found["correct", last[0][1]] += 1
            elif inside and (ends[0] != ends[1] or not same_type):
                inside = False
            inside = inside or (all(starts) and same_type)
            for side, begins, (_, kind) in zip(("gold", "guessed"), starts, now, strict=True):
                self.found[side, kind] += begins
            last = now

    @staticmethod
    def split(label: str) -> tuple[str, str]:
        tag, hyphen, kind = label.partition("-")
        return (tag, kind) if hyphen else (label, "")

    @staticmethod
    def ends(last: tuple[str, str], now: tuple[str, str]) -> bool:
        return last[0] + now[0] in ENDS or (last[0] not in "O." and last[1] != now[1])

    @staticmethod
    def starts(last: tuple[str, str], now: tuple[str, str]) -> bool:
        return last[0] + now[0] in STARTS or (now[0] not in "O." and last[1] != now[1])

    def counts(self, kinds: list[str]) -> tuple[int, int, int]:
        """Gold, guessed and correct phrases of these types."""
        gold, guessed, correct = (sum(self.found[side, kind] for kind in kinds) for side in ("gold", "guessed", "correct"))
        return gold, guessed, correct


def labels_without_order(rng: random.Random, n: int, tags: str) -> Labels:
    """Every tag and type as likely after every other."""
    return [tag if tag in "O." else f"{tag}-{rng.choice(['X', 'Y', 'X-Z'])}" for tag in rng.choices(tags, k=n)]


@pytest.mark.parametrize("tags", ["OBI", "OI", "BI", "O.BI", "OIE"])
def test_counts_are_those_of_the_script(tags: str) -> None:
    """Gold, guessed and correct phrases, in all and by type, on 150 pairs of broken labellings; the tag E where no B is near."""
    rng = random.Random(tags)
    for _ in range(150):
        gold = [labels_without_order(rng, rng.randint(1, 9), tags) for _ in range(3)]
        guessed = [[rng.choice([y, labels_without_order(rng, 1, tags)[0]]) for y in row] for row in gold]
        total, by_type = chunk_counts(gold, guessed)
        script = Script(gold, guessed)
        assert (total.n_gold, total.n_predicted, total.n_correct) == script.counts(["X", "Y", "X-Z"]), (gold, guessed)
        for kind, own in by_type.items():
            assert (own.n_gold, own.n_predicted, own.n_correct) == script.counts([kind])


def test_precision_recall_and_f1_are_those_of_the_script() -> None:
    """The figures that `evaluate` prints, of labels that break every scheme, are 100 c / g, 100 c / n and their harmonic mean."""
    rng = random.Random(0)
    gold = [labels_without_order(rng, 12, "OBI") for _ in range(40)]
    guessed = [[rng.choice([y, y, "I-X"]) for y in row] for row in gold]
    n_gold, n_guessed, correct = Script(gold, guessed).counts(["X", "Y", "X-Z"])
    found = evaluate_sequences(gold, guessed)
    precision, recall = correct / n_guessed, correct / n_gold
    assert (found.precision, found.recall) == (precision, recall)
    assert found.f1 == pytest.approx(2 * precision * recall / (precision + recall))
    assert 0.2 < precision < 0.8  # neither all right nor all wrong
