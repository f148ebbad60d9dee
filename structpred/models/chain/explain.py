"""Why a chain model labels a sequence as it does: the score taken apart into what each feature and transition adds."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy.typing as npt

from structpred.core.types import Integers
from structpred.data.sequences import PackedSequences
from structpred.errors import DataError
from structpred.models.chain.constraints import fixed_scores, resolve_constraints
from structpred.models.chain.decoding import chain_kbest
from structpred.models.chain.inputs import holds
from structpred.models.chain.targets import LabelEncoder, as_label_lists
from structpred.models.explanations import Contribution, Explanation, wants_runner_up

Weights = npt.NDArray[Any]


def explain(model: Any, x: Any, labels: Sequence[Any] | None = None, against: Any = None) -> Explanation:
    """Take the score of one sequence apart; see ChainLabeler.explain.

    The score is what the weights alone give: constraints decide what is predicted, and add nothing.
    """
    data = _one_sequence(model, x)
    chosen = _predicted(model, data, 1)[0] if labels is None else _coded(model, labels, data, "labels")
    other = None
    if wants_runner_up(against, "a list of labels"):
        other = _runner_up(model, data, chosen)
    elif against is not None:
        other = _coded(model, against, data, "against")
    shown, instead = (None if codes is None else model.classes_[codes].tolist() for codes in (chosen, other))
    return Explanation.of(shown, instead, _contributions(model, data, chosen, other), len(chosen), "position")


def _one_sequence(model: Any, x: Any) -> PackedSequences:
    """The packed sequence; DataError where x holds none or several."""
    corpus = isinstance(x, PackedSequences) or any(holds(x, field) for field in ("vocabularies", "attributes", "pixels"))
    if corpus and len(x) != 1:
        raise DataError(f"x: expected one sequence, got a corpus of {len(x)}; take one of them first")
    data: PackedSequences = model.input_.transform(x if corpus else [x])
    if data.n_tokens == 0:
        raise DataError("x: the sequence is empty; there is nothing to explain")
    return data


def _predicted(model: Any, data: PackedSequences, k: int) -> list[Integers]:
    """The codes of the k best label sequences that satisfy the constraints of the model."""
    fixed = fixed_scores(model.classes_.tolist(), data.offsets, resolve_constraints(model.constraints))
    return [codes for codes, _ in chain_kbest(data, len(model.classes_), model.coef_, fixed, k)[0]]


def _runner_up(model: Any, data: PackedSequences, chosen: Integers) -> Integers:
    """The best sequence other than the chosen one."""
    for codes in _predicted(model, data, 2):
        if (codes != chosen).any():
            return codes
    raise DataError("there is no other label sequence to compare with this one")


def _coded(model: Any, labels: Any, data: PackedSequences, name: str) -> Integers:
    try:
        encoder: LabelEncoder = model._encoder
        return encoder.encode(as_label_lists([labels], data.lengths))
    except DataError as error:
        raise DataError(f"{name}: {str(error).removeprefix('sample 0: ')}") from None


def _contributions(model: Any, data: PackedSequences, chosen: Integers, other: Integers | None) -> Iterator[Contribution]:
    """All addends in order of position; of a contrast, those that are not the same on both sides."""
    table, names = model._table(), model.input_.feature_names()
    classes, first = model.classes_.tolist(), model.input_.n_features or 0
    bounds = data.indptr.tolist()
    for t, label in enumerate(chosen.tolist()):
        instead = None if other is None else int(other[t])
        if label != instead:
            for k in range(bounds[t], bounds[t + 1]):
                row = data.indices[k]
                yield addend(table[row], classes, label, instead, "emission", t, names[row], float(data.values[k]))
        yield from ends_and_transition(table[first:], classes, t, chosen, other)


def addend(
    row: Weights, classes: list[Any], label: int, instead: int | None, kind: str, t: int, name: str, value: float = 1.0
) -> Contribution:
    """What one row of the weight table adds at position t."""
    if instead is None:
        return Contribution(kind, t, classes[label], name, value, float(row[label]))
    return Contribution(kind, t, classes[label], name, value, float(row[label]) - float(row[instead]), classes[instead])


def ends_and_transition(
    rows: Weights, classes: list[Any], t: int, chosen: Integers, other: Integers | None
) -> Iterator[Contribution]:
    """What start, stop and the transition into position t add. rows: those of the weight table for start, stop, transitions."""
    label, instead = int(chosen[t]), None if other is None else int(other[t])
    if label != instead:
        for row, kind, there in ((rows[0], "start", t == 0), (rows[1], "stop", t == len(chosen) - 1)):
            if there:
                yield addend(row, classes, label, instead, kind, t, kind)
    if t:
        yield from _transition(rows[2:], classes, t, chosen, other)


def _transition(
    edges: npt.NDArray[Any], classes: list[Any], t: int, chosen: Integers, other: Integers | None
) -> Iterator[Contribution]:
    before, after = int(chosen[t - 1]), int(chosen[t])
    weight, name = float(edges[before, after]), f"{classes[before]} -> {classes[after]}"
    if other is None:
        yield Contribution("transition", t, classes[after], name, 1.0, weight)
    elif (before, after) != (pair := (int(other[t - 1]), int(other[t]))):
        instead = f"{classes[pair[0]]} -> {classes[pair[1]]}"
        yield Contribution("transition", t, name, "transition", 1.0, weight - float(edges[pair]), instead)
