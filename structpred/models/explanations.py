"""What the weights of a model say, and why it gives an output: the same for every kind of model."""

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from structpred.core.oracle import Labels
from structpred.core.requirements import require
from structpred.core.weights import Vector
from structpred.errors import DataError, ParameterError
from structpred.io.treebanks.treebank import Tree
from structpred.models.base import StructuredEstimator
from structpred.models.part_inputs import as_labels
from structpred.models.signs import NameTable, name_of
from structpred.runtime.settings import checked_whole
from structpred.task.inference import Inference
from structpred.text.markup import Html, Shown, scrolling, table, tag
from structpred.text.tables import aligned, columns, cut

#: in place of an alternative: the best other output
RUNNER_UP = "runner-up"
_SHOWN = 20


@dataclass(frozen=True)
class WeightGroup:
    """A set of weights: how many, how many are not zero, and their Euclidean norm."""

    name: str
    n_weights: int
    n_nonzero: int
    norm: float


@dataclass(frozen=True)
class WeightInspection(Shown):
    """The weights of a model whose features have names.

    groups: how the weights are spread. positive, negative: (name, weight), the strongest first, zeros left out.
    """

    groups: list[WeightGroup]
    positive: list[tuple[str, float]]
    negative: list[tuple[str, float]]

    def table(self) -> str:
        """The groups, then the strongest weights side by side."""
        return "\n".join([*group_lines("weights", self.groups), "", *columns(self.positive, self.negative)])


def top_weights(model: StructuredEstimator, top: int, weights: Vector | None = None) -> WeightInspection:
    """The `top` strongest positive and negative weights, or of those given, by name. Raises ParameterError for top < 1."""
    checked_whole(top, "top")
    model._check_fitted()
    blocks = np.split(model.coef_, model.groups_[1:-1])
    groups = [weight_group(name, block) for name, block in zip(model.group_names_, blocks, strict=True)]
    tables, shown = model._name_tables(), model.coef_ if weights is None else weights
    sides = [[(name_of(k, tables)[0], weight) for k, weight in side] for side in extremes(shown, top)]
    return WeightInspection(groups, *sides)


def extremes(values: npt.NDArray[Any], top: int) -> tuple[list[tuple[int, float]], list[tuple[int, float]]]:
    """Places and values of the largest positive and the smallest negative entries; ties in order of place."""
    sides: list[list[tuple[int, float]]] = []
    for sign in (1.0, -1.0):
        signed = values * sign
        size = min(top, int(np.count_nonzero(signed > 0)))
        if not size:
            sides.append([])
            continue
        limit = np.partition(signed, -size)[-size]
        places = np.flatnonzero(signed >= limit)
        best = places[np.argsort(-signed[places], kind="stable")][:size]
        sides.append([(int(k), float(values[k])) for k in best])
    return sides[0], sides[1]


def weight_group(name: str, weights: npt.NDArray[Any]) -> WeightGroup:
    """How many weights there are, how many are not zero, and their norm."""
    norm = float(np.linalg.norm(weights.astype(np.float64)))
    return WeightGroup(name, weights.size, int(np.count_nonzero(weights)), norm)


def group_lines(heading: str, groups: Sequence[WeightGroup]) -> list[str]:
    """Groups of weights as a table."""
    lines = [f"{heading:<32} {'number':>10} {'not zero':>10} {'norm':>10}"]
    return lines + [f"{cut(g.name, 32):<32} {g.n_weights:>10} {g.n_nonzero:>10} {g.norm:>10.4g}" for g in groups]


@dataclass(frozen=True)
class Contribution:
    """One addend of a score: value * weight.

    kind: what is scored. Of chains "emission", "start", "transition" or "stop"; of parsers "arc" ("sibling", "grandparent"), and
    for relations "relation" and the last three of chains; of label sets and graphs "node" or "edge"; else "part".
    position: where. Of chains the token, from 0, of a transition the one after; of parsers the word, from 1; of label sets the
    label, of graphs the node (of an edge the second), else the part, all from 0.
    label: what is decided there: a label, an arc as "head -> word".
    feature: the feature's name, "intercept" or "bias" of the constant one; of a chain's transition the labels as "A -> B"; else
    the kind.
    value: the feature's value. In a contrast it is negative for what only the alternative has.
    weight: of the feature with the label.
    instead: in a contrast, what the alternative decides there, where it has the same feature; the weight is then that of `label`
    less that of `instead`. None otherwise.
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
        """What is added to the score of the output."""
        return self.value * self.weight


@dataclass(frozen=True)
class Explanation:
    """The score of one output, or the difference between two, as a sum of contributions.

    output: what is explained, in the form that `predict` gives it. against: the alternative of a contrast, or None. score: of the
    output, less that of `against` if there is one; it is the sum of the contributions. Hard constraints add nothing to it.
    unit: what a position is.

    >>> from structpred.models import ChainLabeler
    >>> model = ChainLabeler(max_iter=20).fit([[{"w": "a"}, {"w": "b"}]] * 3, [["X", "Y"]] * 3)
    >>> why = model.explain([{"w": "a"}, {"w": "b"}])
    >>> why.labels, abs(why.score - sum(c.score for c in why.contributions)) < 1e-9
    (['X', 'Y'], True)
    """

    output: Any
    against: Any | None
    score: float
    contributions: list[Contribution]
    unit: str = "position"

    @classmethod
    def of(cls, output: Any, against: Any, contributions: Iterable[Contribution], unit: str) -> "Explanation":
        """With the sum of the contributions as the score."""
        found = list(contributions)
        return cls(output, against, math.fsum(c.score for c in found), found, unit)

    @property
    def labels(self) -> Any:
        """The output; of a chain its labels."""
        return self.output

    def strongest(self, top: int | None = None) -> list[Contribution]:
        """The contributions by size, the largest (of either sign) first; all of them for None."""
        ordered = sorted(self.contributions, key=lambda c: (-abs(c.score), c.position, c.feature))
        return ordered[:top]

    def by_kind(self) -> dict[str, float]:
        """What each kind of contribution adds. The heads of a parser are decided by what arcs add alone."""
        kinds = dict.fromkeys(c.kind for c in self.contributions)
        return {kind: math.fsum(c.score for c in self.contributions if c.kind == kind) for kind in kinds}

    def table(self, top: int | None = _SHOWN) -> str:
        """The strongest contributions as a plain-text table; the rest as one line, so that the column adds up."""
        return "\n".join(aligned(self._head(), self._rows(top), numbers=4))

    def text(self, top: int | None = _SHOWN) -> str:
        """A heading and `table`."""
        return "\n".join((*self._heading(), "", self.table(top)))

    def __str__(self) -> str:
        """A heading and the twenty strongest contributions."""
        return self.text()

    def html(self, top: int | None = _SHOWN) -> Html:
        """What `text` says, as markup; the feature beside what it adds, where a narrow window shows it."""
        lines = tag("p", *(part for line in self._heading() for part in (line, Html("<br>"))))
        head, *rows = ([row[k] for k in (0, 5, 4, 3, 1, 2)] for row in (self._head(), *self._rows(top)))
        cells = [[tag("span", cell, style="white-space:nowrap") for cell in row] for row in rows]
        return scrolling(lines, table(head, cells, numbers=[True, False, False, True, True, True]))

    def _repr_html_(self) -> str:
        """The same for notebooks."""
        return self.html()

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON: all contributions, the largest first; a tree as its heads and labels."""
        found = [{**asdict(c), "score": c.score} for c in self.strongest()]
        output, against = _plain(self.output), None if self.against is None else _plain(self.against)
        return {"output": output, "against": against, "score": self.score, "unit": self.unit, "contributions": found}

    def _heading(self) -> list[str]:
        if self.against is None:
            return [f"score {self.score:.6g} of {_shown(self.output)}"]
        return [_shown(self.output), "against", _shown(self.against), f"by {self.score:.6g}"]

    def _head(self) -> tuple[str, ...]:
        return ("adds", "value", "weight", self.unit, "label" if self.unit != "word" else "arc or relation", "feature")

    def _rows(self, top: int | None) -> list[tuple[str, ...]]:
        shown = self.strongest(top)
        cells = []
        for c in shown:
            label = str(c.label) if c.instead is None else f"{c.label} not {c.instead}"
            cells.append((f"{c.score:+.4f}", f"{c.value:g}", f"{c.weight:+.4f}", str(c.position), label, c.feature))
        rest = math.fsum(c.score for c in self.contributions) - math.fsum(c.score for c in shown)
        if len(shown) < len(self.contributions):
            cells.append((f"{rest:+.4f}", "", "", "", "", f"({len(self.contributions) - len(shown)} more)"))
        return [*cells, (f"{self.score:+.4f}", "", "", "", "", "sum")]


def contrast(chosen: Sequence[Contribution], other: Sequence[Contribution] = ()) -> list[Contribution]:
    """What one output adds less what another one adds, if there is one, without what is the same on both sides.

    Features of the same value at the same position on both sides are one contribution, with the difference of their weights.
    """
    left: dict[tuple[str, int, str, float], list[Contribution]] = {}
    for c in other:
        left.setdefault((c.kind, c.position, c.feature, c.value), []).append(c)
    found = []
    for c in chosen:
        same = left.get((c.kind, c.position, c.feature, c.value))
        if not same:
            found.append(c)
        elif (o := same.pop(0)).weight != c.weight:
            found.append(replace(c, weight=c.weight - o.weight, instead=o.label))
    return found + [replace(o, value=-o.value) for rest in left.values() for o in rest]


def wants_runner_up(against: Any, form: str) -> bool:
    """Whether the best other output is asked for; ParameterError, which names the form of outputs, for any other text."""
    if not isinstance(against, str):
        return False
    if against != RUNNER_UP:
        raise ParameterError(f"against: expected {RUNNER_UP!r} or {form}, got {against!r}")
    return True


@contextmanager
def given_as(name: str) -> Iterator[None]:
    """What is wrong with the one output that is given is said of the argument of this name."""
    try:
        yield
    except DataError as error:
        raise DataError(f"{name}: {str(error).removeprefix('sample 0: ')}") from None


def _plain(output: Any) -> Any:
    """An output as lists and dicts."""
    return {"heads": output.heads.tolist(), "labels": output.labels} if isinstance(output, Tree) else list(output)


def _shown(output: Any) -> str:
    """An output on one line."""
    if isinstance(output, Tree):
        labels = output.labels or [""] * len(output.heads)
        return " ".join(f"{head}:{label}".rstrip(":") for head, label in zip(output.heads.tolist(), labels, strict=True))
    return " ".join(map(str, output))


def part_features(inference: Inference, w: Vector, labels: Labels) -> Iterator[tuple[int, int, float, float]]:
    """(part, place, value, weight) of each feature of an output's parts, of the first instance: value * weight is what it adds to
    the score. A part that counts twice has twice the value.
    """
    parts, counts = np.unique(inference.oracle.parts(labels, inference.shapes[0]), return_counts=True)
    for part, count in zip(parts.tolist(), counts.tolist(), strict=True):
        vector = inference.features.adjoint(0, np.array([part], dtype=np.int64), np.array([float(count)]))
        for place, value in zip(vector.indices.tolist(), vector.values.tolist(), strict=True):
            yield part, place, value, float(w[place])


def explain_parts(inference: Inference, w: Vector, tables: Sequence[NameTable], labels: Any, against: Any) -> Explanation:
    """The score of one output of the only instance taken apart, or the difference between two. tables: names of the weights."""
    chosen = inference.outputs(w)[0] if labels is None else _given(inference, labels, "labels")
    other = None
    if against is not None:
        runner_up = wants_runner_up(against, "labels as the oracle returns them")
        other = _runner_up(inference, w, chosen) if runner_up else _given(inference, against, "against")
    sides = [
        [
            Contribution("part", part, f"part {part}", name_of(place, tables)[0], value, weight)
            for part, place, value, weight in part_features(inference, w, side)
        ]
        for side in (chosen, other)
        if side is not None
    ]
    return Explanation.of(chosen.tolist(), None if other is None else other.tolist(), contrast(*sides), "part")


def _given(inference: Inference, labels: Any, name: str) -> Labels:
    try:
        found = as_labels([labels])[0]
        inference.oracle.parts(found, inference.shapes[0])
    except Exception as error:
        raise DataError(f"{name}: {str(error).removeprefix('sample 0: ')}") from error
    return found


def _runner_up(inference: Inference, w: Vector, chosen: Labels) -> Labels:
    require(("kbest",), inference.oracle, 'explain(against="runner-up")')
    for labels, _ in next(iter(inference.kbest(w, 2))):
        if not np.array_equal(labels, chosen):
            return labels
    raise DataError("there is no other output to compare with this one")
