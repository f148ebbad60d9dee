"""What a chain has learnt; and why it labels a sequence so: the score by what each feature and transition adds."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from structpred.core.types import Integers
from structpred.data.sequences import PackedSequences
from structpred.errors import DataError, ParameterError
from structpred.models.chain.constraints import fixed_scores, rules_inside
from structpred.models.chain.decoding import chain_kbest, table_width
from structpred.models.chain.inputs import INTERCEPT, Input, RowInput, holds, n_columns, n_transitions
from structpred.models.chain.targets import LabelEncoder, as_label_lists
from structpred.models.explanations import (
    Contribution,
    Explanation,
    WeightGroup,
    contrast,
    extremes,
    given_as,
    group_lines,
    wants_runner_up,
    weight_group,
)
from structpred.models.signs import NameTable
from structpred.runtime.settings import checked_whole
from structpred.text.markup import Shown
from structpred.text.tables import columns, cut

_KIND = re.compile(r"[^=:]*?(?=\[\d+\]$|[=:]|$)")  # columns of an array are of one kind
_MOST_KINDS = 100
Weights = npt.NDArray[Any]


@dataclass(frozen=True)
class LabelWeights:
    """The weights of one label. positive, negative: (feature, weight), the strongest first, zeros left out.

    start, stop: the weights for being first and last. n_nonzero: emission weights that are not zero.
    """

    label: Any
    positive: list[tuple[str, float]]
    negative: list[tuple[str, float]]
    start: float
    stop: float
    n_nonzero: int


@dataclass(frozen=True)
class Inspection(Shown):
    """The weights of a chain model, made readable.

    n_features, n_features_used: of the user's features, all and those with a weight that is not zero. labels: one entry per
    label; an intercept is among its features by that name. transitions: (before, after, weight) with the strongest of each
    sign first. groups: the emissions, the intercept if there is one, start, stop and transitions. kinds: the emissions by kind
    of feature, that is by what is in its name before the first = or : (empty where the features have no names or too many
    kinds).
    """

    n_features: int
    n_features_used: int
    labels: list[LabelWeights]
    positive_transitions: list[tuple[Any, Any, float]]
    negative_transitions: list[tuple[Any, Any, float]]
    groups: list[WeightGroup]
    kinds: list[WeightGroup]

    def table(self) -> str:
        """The weights as plain text: by group, then the transitions, then each label's strongest features for and against it."""
        first, *others = self.groups
        kinds = [replace(kind, name=f"  {kind.name}") for kind in self.kinds]
        lines = [*group_lines("weights", (first, *kinds, *others)), "", "transitions"]
        lines += transition_lines(self.positive_transitions, self.negative_transitions)
        for entry in self.labels:
            ends = f"start {entry.start:+.4f}, stop {entry.stop:+.4f}, {entry.n_nonzero} features with a weight"
            lines += ["", f"label {cut(str(entry.label), 60)}: {ends}", *columns(entry.positive, entry.negative)]
        return "\n".join(lines)


def transition_lines(raised: Sequence[tuple[Any, Any, float]], lowered: Sequence[tuple[Any, Any, float]]) -> list[str]:
    """Transitions side by side, those that are favoured and those that are avoided."""
    left, right = ([(f"{a} -> {b}", weight) for a, b, weight in side] for side in (raised, lowered))
    return columns(left, right)


def inspect_weights(model: Any, top: int = 20, label: Any = None) -> Inspection:
    """The `top` strongest positive and negative weights of every label (or of one), and of the transitions.

    Raises ParameterError for a label that the model does not have, or top < 1.
    """
    checked_whole(top, "top")
    model._check_fitted()
    classes = model.classes_.tolist()
    chosen = range(len(classes)) if label is None else [_code(classes, label)]
    table = np.asarray(model._table())
    n, own, names = model.input_.n_features or 0, n_columns(model.input_), model.input_.feature_names()
    emissions, stepwise = table[:n], table[n + 2 + len(classes) :]
    every, of_steps = np.concatenate((emissions, stepwise)), _step_names(model.input_, classes)
    edges = np.asarray(model.transitions_, dtype=np.float64)
    if label is not None:  # transitions into and out of this label only
        touched = np.zeros_like(edges, dtype=bool)
        touched[chosen[0], :] = touched[:, chosen[0]] = True
        edges = np.where(touched, edges, 0.0)
    raised, lowered = extremes(edges.ravel(), top)
    pairs = [[(classes[k // len(classes)], classes[k % len(classes)], w) for k, w in side] for side in (raised, lowered)]
    parts = {"emissions": emissions[:own]} | ({INTERCEPT: table[own]} if own < n else {})
    parts |= {"start": table[n], "stop": table[n + 1], "transitions": model.transitions_}
    parts |= {"transitions by features": stepwise} if len(stepwise) else {}
    return Inspection(
        n_features=own,
        n_features_used=int(np.count_nonzero(emissions[:own].any(axis=1))),
        labels=[_of_label(classes[k], every[:, k], table[n : n + 2, k], [*names, *of_steps], top) for k in chosen],
        positive_transitions=pairs[0],
        negative_transitions=pairs[1],
        groups=[weight_group(name, part) for name, part in parts.items()],
        kinds=_kinds(emissions[:own], names[:own]),
    )


def chain_names(input_: Input, classes: npt.NDArray[Any]) -> list[NameTable]:
    """What weights are called: "FEATURE -> LABEL", "start -> LABEL", "stop -> LABEL" and "transition LABEL -> LABEL"."""
    labels = [str(label) for label in classes.tolist()]
    rows = [*input_.feature_names(), "start", "stop", *(f"transition {label}" for label in labels), *_step_names(input_, labels)]
    return [NameTable(rows, labels, row_step=table_width(input_, len(labels)), column_step=1)]


def _step_names(input_: Input, labels: Sequence[Any]) -> list[str]:
    """The rows of features of transitions: each behind each label."""
    if not isinstance(input_, RowInput) or not n_transitions(input_):
        return []
    return [f"{name} after {label}" for name in input_.features.feature_names()[-n_transitions(input_) :] for label in labels]


def _code(classes: list[Any], label: Any) -> int:
    """The place of a label; as text it may name a whole number, too, because a shell knows only text."""
    for k, known in enumerate(classes):
        if label == known or (isinstance(label, str) and label == str(known)):
            return k
    raise ParameterError(f"label: the model has no label {label!r}; it has {', '.join(map(str, classes[:30]))}")


def _of_label(label: Any, column: npt.NDArray[Any], ends: npt.NDArray[Any], names: Sequence[str], top: int) -> LabelWeights:
    raised, lowered = extremes(column, top)
    named = [[(names[k], w) for k, w in side] for side in (raised, lowered)]
    return LabelWeights(label, named[0], named[1], float(ends[0]), float(ends[1]), int(np.count_nonzero(column)))


def _kinds(emissions: npt.NDArray[Any], names: Sequence[str]) -> list[WeightGroup]:
    """Features by kind, the kind of the largest norm first."""
    kind_of: dict[str, int] = {}
    kinds = np.empty(len(names), np.int64)
    for k, name in enumerate(names):
        match = _KIND.match(name)
        kinds[k] = kind_of.setdefault(match.group() if match else name, len(kind_of))
        if len(kind_of) > _MOST_KINDS:
            return []
    if len(kind_of) < 2 or len(kind_of) == len(names):
        return []
    squares = np.bincount(kinds, np.einsum("ij,ij->i", emissions, emissions, dtype=np.float64), len(kind_of))
    nonzero = np.bincount(kinds, np.count_nonzero(emissions, axis=1), len(kind_of))
    sizes = np.bincount(kinds, minlength=len(kind_of)) * emissions.shape[1]
    groups = [WeightGroup(name, int(sizes[k]), int(nonzero[k]), float(np.sqrt(squares[k]))) for name, k in kind_of.items()]
    return sorted(groups, key=lambda group: -group.norm)


def explain(model: Any, x: Any, labels: Sequence[Any] | None = None, against: Any = None) -> Explanation:
    """Take the score of one sequence apart; see ChainLabeler.explain.

    The score is what the weights alone give: constraints decide what is predicted, and add nothing.
    """
    corpus = isinstance(x, PackedSequences) or any(holds(x, field) for field in ("vocabularies", "attributes", "pixels"))
    if corpus and len(x) != 1:
        raise DataError(f"x: expected one sequence, got a corpus of {len(x)}; take one of them first")
    data: PackedSequences = model.input_.transform(x if corpus else [x])
    if data.n_tokens == 0:
        raise DataError("x: the sequence is empty; there is nothing to explain")
    chosen = _predicted(model, data, 1)[0] if labels is None else _coded(model, labels, data, "labels")
    other = None
    if wants_runner_up(against, "a list of labels"):
        other = _runner_up(model, data, chosen)
    elif against is not None:
        other = _coded(model, against, data, "against")
    shown, instead = (None if codes is None else model.classes_[codes].tolist() for codes in (chosen, other))
    sides = [list(_contributions(model, data, codes, other is not None)) for codes in (chosen, other) if codes is not None]
    return Explanation.of(shown, instead, contrast(*sides), "position")


def _predicted(model: Any, data: PackedSequences, k: int) -> list[Integers]:
    """The codes of the k best label sequences that satisfy the constraints of the model."""
    fixed = fixed_scores(model.classes_.tolist(), data.offsets, rules_inside(model.constraints, model.coding_))
    return [codes for codes, _ in chain_kbest(data, len(model.classes_), model.coef_, fixed, k)[0]]


def _runner_up(model: Any, data: PackedSequences, chosen: Integers) -> Integers:
    """The best sequence other than the chosen one."""
    for codes in _predicted(model, data, 2):
        if (codes != chosen).any():
            return codes
    raise DataError("there is no other label sequence to compare with this one")


def _coded(model: Any, labels: Any, data: PackedSequences, name: str) -> Integers:
    with given_as(name):
        encoder: LabelEncoder = model._encoder
        return encoder.encode(as_label_lists([labels], data.lengths))


def _contributions(model: Any, data: PackedSequences, codes: Integers, paired: bool) -> Iterator[Contribution]:
    """All addends in order of position. paired: whether they are to be compared with those of other labels."""
    table, names = model._table(), model.input_.feature_names()
    classes, first = model.classes_.tolist(), model.input_.n_features or 0
    bounds, steps = data.indptr.tolist(), _step_names(model.input_, classes)
    for t, label in enumerate(codes.tolist()):
        for k in range(bounds[t], bounds[t + 1]):
            row = data.indices[k]
            if row < first:
                weight = float(table[row, label])
                yield Contribution("emission", t, classes[label], names[row], float(data.values[k]), weight)
            elif t:
                at = (row - first) * len(classes) + codes[t - 1]
                weight = float(table[first + 2 + len(classes) + at, label])
                yield Contribution("transition", t, classes[label], steps[at], float(data.values[k]), weight)
        yield from ends_and_transition(table[first:], classes, t, codes, paired)


def ends_and_transition(
    rows: Weights, classes: list[Any], t: int, codes: Integers, paired: bool = False
) -> Iterator[Contribution]:
    """What start, stop and the transition into position t add. rows: those of the weight table for start, stop, transitions."""
    label = int(codes[t])
    for row, kind, there in ((rows[0], "start", t == 0), (rows[1], "stop", t == len(codes) - 1)):
        if there:
            yield Contribution(kind, t, classes[label], kind, 1.0, float(row[label]))
    if t:
        before = int(codes[t - 1])
        pair = f"{classes[before]} -> {classes[label]}"
        what, feature = (pair, "transition") if paired else (classes[label], pair)
        yield Contribution("transition", t, what, feature, 1.0, float(rows[2 + before, label]))
