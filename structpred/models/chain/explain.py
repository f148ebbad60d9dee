"""Why a chain model labels a sequence as it does: the score taken apart into what each feature and transition adds."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from structpred.data.sequences import PackedSequences
from structpred.errors import DataError, ParameterError
from structpred.io.columns import ColumnCorpus
from structpred.io.crfsuite import AttributeCorpus
from structpred.io.ocr import OcrWords
from structpred.models.chain.constraints import fixed_scores, resolve_constraints
from structpred.models.chain.decoding import chain_kbest
from structpred.models.chain.fitted import FittedChain
from structpred.models.chain.targets import as_label_lists

Ints = npt.NDArray[np.int64]
RUNNER_UP = "runner-up"


@dataclass(frozen=True)
class Contribution:
    """One addend of a score: value * weight.

    kind: "emission", "start", "transition" or "stop". position: from 0; of a transition, that of the label after.
    label: the label there. feature: the feature's name, "intercept" of the constant one; of a transition the labels as
    "A -> B"; else the kind.
    value: the feature's value, 1 for what is not an emission. weight: of the feature with the label.
    instead: in a contrast, the label (or transition) of the alternative; the weight is then that of `label` less that of
    `instead`. None without a contrast.
    """

    kind: str
    position: int
    label: Any
    feature: str
    value: float
    weight: float
    instead: Any = None

    @property
    def score(self) -> float:
        """What is added to the score of the sequence."""
        return self.value * self.weight


@dataclass(frozen=True)
class Explanation:
    """The score of one label sequence, or the difference between two, as a sum of contributions.

    labels: the sequence explained. against: the alternative of a contrast, or None. score: of `labels`, less that of
    `against` if there is one; it is the sum of the contributions. Hard constraints add nothing to it.

    >>> from structpred.models import ChainLabeler
    >>> model = ChainLabeler(max_iter=20).fit([[{"w": "a"}, {"w": "b"}]] * 3, [["X", "Y"]] * 3)
    >>> why = model.explain([{"w": "a"}, {"w": "b"}])
    >>> why.labels, abs(why.score - sum(c.score for c in why.contributions)) < 1e-9
    (['X', 'Y'], True)
    """

    labels: list[Any]
    against: list[Any] | None
    score: float
    contributions: list[Contribution]

    def strongest(self, top: int | None = None) -> list[Contribution]:
        """The contributions by size, the largest (of either sign) first; all of them for None."""
        ordered = sorted(self.contributions, key=lambda c: (-abs(c.score), c.position, c.feature))
        return ordered[:top]

    def by_position(self) -> list[float]:
        """What each position adds: its emissions, the transition into it, and start or stop where they belong."""
        sums: list[list[float]] = [[] for _ in self.labels]
        for c in self.contributions:
            sums[c.position].append(c.score)
        return [math.fsum(addends) for addends in sums]

    def table(self, top: int | None = 20) -> str:
        """The strongest contributions as a plain-text table; the rest as one line, so that the column adds up."""
        shown = self.strongest(top)
        cells = [
            (f"{c.score:+.4f}", f"{c.value:g}", f"{c.weight:+.4f}", str(c.position), _contrasted(c), c.feature) for c in shown
        ]
        rest = math.fsum(c.score for c in self.contributions) - math.fsum(c.score for c in shown)
        if len(shown) < len(self.contributions):
            cells.append((f"{rest:+.4f}", "", "", "", "", f"({len(self.contributions) - len(shown)} more)"))
        cells.append((f"{self.score:+.4f}", "", "", "", "", "sum"))
        head = ("adds", "value", "weight", "position", "label", "feature")
        widths = [max(len(row[j]) for row in (head, *cells)) for j in range(len(head))]
        return "\n".join(_line(row, widths) for row in (head, *cells))

    def __str__(self) -> str:
        """A heading and the twenty strongest contributions."""
        heading = f"score {self.score:.6g} of {' '.join(map(str, self.labels))}"
        if self.against is not None:
            heading = f"{' '.join(map(str, self.labels))}\nagainst\n{' '.join(map(str, self.against))}\nby {self.score:.6g}"
        return f"{heading}\n\n{self.table()}"


def explain(model: FittedChain, x: Any, labels: Sequence[Any] | None = None, against: Any = None) -> Explanation:
    """Take the score of one sequence apart; see ChainLabeler.explain.

    The score is what the weights alone give: constraints decide what is predicted, and add nothing.
    """
    data = _one_sequence(model, x)
    chosen = _predicted(model, data, 1)[0] if labels is None else _coded(model, labels, data, "labels")
    other = None
    if isinstance(against, str):
        if against != RUNNER_UP:
            raise ParameterError(f"against: expected {RUNNER_UP!r} or a list of labels, got {against!r}")
        other = _runner_up(model, data, chosen)
    elif against is not None:
        other = _coded(model, against, data, "against")
    found = list(_contributions(model, data, chosen, other))
    names = model.classes_
    total = math.fsum(c.score for c in found)
    return Explanation(names[chosen].tolist(), None if other is None else names[other].tolist(), total, found)


def _contrasted(c: Contribution) -> str:
    return str(c.label) if c.instead is None else f"{c.label} not {c.instead}"


def _line(row: tuple[str, ...], widths: list[int]) -> str:
    numbers = [text.rjust(width) for text, width in zip(row[:4], widths, strict=False)]
    return "  ".join((*numbers, row[4].ljust(widths[4]), row[5])).rstrip()


def _one_sequence(model: FittedChain, x: Any) -> PackedSequences:
    """The packed sequence; DataError where x holds none or several."""
    corpus = isinstance(x, PackedSequences | ColumnCorpus | AttributeCorpus | OcrWords)
    if corpus and len(x) != 1:
        raise DataError(f"x: expected one sequence, got a corpus of {len(x)}; take one of them first")
    data = model.input_.transform(x if corpus else [x])
    if data.n_tokens == 0:
        raise DataError("x: the sequence is empty; there is nothing to explain")
    return data


def _predicted(model: FittedChain, data: PackedSequences, k: int) -> list[Ints]:
    """The codes of the k best label sequences that satisfy the constraints of the model."""
    fixed = fixed_scores(model.classes_.tolist(), data.offsets, resolve_constraints(model.constraints))
    return [codes for codes, _ in chain_kbest(data, len(model.classes_), model.coef_, fixed, k)[0]]


def _runner_up(model: FittedChain, data: PackedSequences, chosen: Ints) -> Ints:
    """The best sequence other than the chosen one."""
    for codes in _predicted(model, data, 2):
        if (codes != chosen).any():
            return codes
    raise DataError("there is no other label sequence to compare with this one")


def _coded(model: FittedChain, labels: Any, data: PackedSequences, name: str) -> Ints:
    try:
        return model._encoder.encode(as_label_lists([labels], data.lengths))
    except DataError as error:
        raise DataError(f"{name}: {str(error).removeprefix('sample 0: ')}") from None


def _contributions(model: FittedChain, data: PackedSequences, chosen: Ints, other: Ints | None) -> Iterator[Contribution]:
    """All addends in order of position; of a contrast, those that are not the same on both sides."""
    table, names = model._table(), model.input_.feature_names()
    classes, first = model.classes_.tolist(), model.input_.n_features or 0
    last = data.n_tokens - 1
    bounds = data.indptr.tolist()
    for t, label in enumerate(chosen.tolist()):
        instead = None if other is None else int(other[t])
        if label != instead:
            rows = [(data.indices[k], float(data.values[k]), "emission", "") for k in range(bounds[t], bounds[t + 1])]
            rows += [(first, 1.0, "start", "start")] if t == 0 else []
            rows += [(first + 1, 1.0, "stop", "stop")] if t == last else []
            shown = None if instead is None else classes[instead]
            for row, value, kind, name in rows:
                weight = float(table[row, label]) - (0.0 if instead is None else float(table[row, instead]))
                yield Contribution(kind, t, classes[label], name or names[row], value, weight, shown)
        if t:
            yield from _transition(table[first + 2 :], classes, t, chosen, other)


def _transition(edges: npt.NDArray[Any], classes: list[Any], t: int, chosen: Ints, other: Ints | None) -> Iterator[Contribution]:
    before, after = int(chosen[t - 1]), int(chosen[t])
    weight, name = float(edges[before, after]), f"{classes[before]} -> {classes[after]}"
    if other is None:
        yield Contribution("transition", t, classes[after], name, 1.0, weight)
    elif (before, after) != (pair := (int(other[t - 1]), int(other[t]))):
        instead = f"{classes[pair[0]]} -> {classes[pair[1]]}"
        yield Contribution("transition", t, name, "transition", 1.0, weight - float(edges[pair]), instead)
