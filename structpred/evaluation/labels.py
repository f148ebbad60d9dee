"""Labels one by one: precision and recall of each, and which label is taken for which, with examples."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from structpred.core.types import Integers
from structpred.evaluation.chunks import ChunkCounts
from structpred.evaluation.coding import Coded, Sequences, encode
from structpred.text.markup import scrolling, table
from structpred.text.tables import aligned, cut

_EXAMPLES = 3
_AROUND = 2


class ConfusionMatrix(NamedTuple):
    """Which label is taken for which. labels: n, sorted. counts: int64 (n, n), rows are gold labels, columns predicted.

    It is a pair, so that ``labels, counts = confusion_matrix(gold, predicted)`` works.
    """

    labels: tuple[Any, ...]
    counts: Integers

    def table(self) -> str:
        """Plain text: a row a gold label, a column a predicted one."""
        return "\n".join(aligned(self._head(), self._rows()))

    def __str__(self) -> str:
        """The table."""
        return self.table()

    def _repr_html_(self) -> str:
        """The same for notebooks."""
        return scrolling(table(self._head(), self._rows(), numbers=[False, *[True] * len(self.labels)]))

    def _head(self) -> list[str]:
        return ["gold \\ predicted", *(cut(str(label), 30) for label in self.labels)]

    def _rows(self) -> list[list[str]]:
        return [[cut(str(label), 30), *map(str, row)] for label, row in zip(self.labels, self.counts.tolist(), strict=True)]


@dataclass(frozen=True)
class Confusion:
    """Tokens whose gold label is taken for another one. n: how many. places: the first few as (sequence, token), from 0."""

    gold: Any
    predicted: Any
    n: int
    places: tuple[tuple[int, int], ...]

    def examples(self, tokens: Sequence[Sequence[Any]]) -> list[str]:
        """The places with the tokens around them, the token itself in brackets; tokens: those of all sequences."""
        found = []
        for i, t in self.places:
            words = [str(token) for token in tokens[i]]
            words[t] = f"[{words[t]}]"
            found.append(" ".join(words[max(t - _AROUND, 0) : t + _AROUND + 1]))
        return found


def confusion_matrix(gold: Sequences, predicted: Sequences) -> ConfusionMatrix:
    """Count which label is taken for which; raises DataError as `encode` does.

    >>> labels, counts = confusion_matrix([["a", "b"]], [["a", "a"]])
    >>> labels, counts.tolist()
    (('a', 'b'), [[1, 0], [1, 0]])
    """
    coded = encode(gold, predicted)
    n = len(coded.labels)
    counts = np.bincount(coded.gold * n + coded.predicted, minlength=n * n).reshape(n, n)
    return ConfusionMatrix(coded.labels, counts)


def most_confused(gold: Sequences, predicted: Sequences, top: int = 20) -> list[Confusion]:
    """The `top` most frequent confusions of labels, with the first places of each; raises DataError as `encode` does.

    >>> worst = most_confused([["DT", "NN"], ["NN", "NN"]], [["DT", "JJ"], ["JJ", "DT"]])[0]
    >>> worst.gold, worst.predicted, worst.n, worst.examples([["the", "red"], ["old", "man"]])
    ('NN', 'JJ', 2, ['the [red]', '[old] man'])
    """
    return confused(encode(gold, predicted), top)


def confused(coded: Coded, top: int) -> list[Confusion]:
    """As `most_confused`, on labels that are coded already."""
    wrong = np.flatnonzero(coded.gold != coded.predicted)
    n = len(coded.labels)
    pairs, counts = np.unique(coded.gold[wrong] * n + coded.predicted[wrong], return_counts=True)
    found = []
    for k in np.argsort(-counts, kind="stable")[:top].tolist():
        one, other = divmod(int(pairs[k]), n)
        at = wrong[(coded.gold[wrong] == one) & (coded.predicted[wrong] == other)][:_EXAMPLES]
        rows = np.searchsorted(coded.offsets, at, side="right") - 1
        places = tuple(zip(rows.tolist(), (at - coded.offsets[rows]).tolist(), strict=True))
        found.append(Confusion(coded.labels[one], coded.labels[other], int(counts[k]), places))
    return found


def label_counts(coded: Coded) -> dict[Any, ChunkCounts]:
    """For each label how many tokens have it, how many are given it, and how many are both."""
    n = len(coded.labels)
    right = coded.gold[coded.gold == coded.predicted]
    columns = (np.bincount(side, minlength=n).tolist() for side in (coded.gold, coded.predicted, right))
    return {label: ChunkCounts(*row) for label, *row in zip(coded.labels, *columns, strict=True)}


def confusion_lines(found: Sequence[Confusion], tokens: Sequence[Sequence[Any]] | None = None) -> list[str]:
    """Confusions as a table, with the tokens around the first places where they are given."""
    if not found:
        return ["no token is wrong"]
    told = [", ".join(c.examples(tokens)) if tokens is not None else _numbers(c) for c in found]
    rows = [
        (str(c.n), cut(str(c.gold), 30), cut(str(c.predicted), 30), cut(text, 100)) for c, text in zip(found, told, strict=True)
    ]
    return aligned(("tokens", "gold", "predicted", "for example"), rows, numbers=1)


def _numbers(c: Confusion) -> str:
    return "; ".join(f"sequence {i}, token {t}" for i, t in c.places)
