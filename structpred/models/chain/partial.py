"""Label sequences that are known in part: None at a token, or a set of the labels that it may have."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from structpred.core.fixed_scores import FORBIDDEN
from structpred.errors import DataError
from structpred.features.fixed_scores import FixedScores
from structpred.models.chain.targets import LabelEncoder
from structpred.models.partial import tell_missing

#: what stands for a choice of several labels
_SEVERAL = (set, frozenset, tuple, list)
Choice = tuple[Any, ...] | None


class PartialLabels(NamedTuple):
    """choices: for each sequence, for each token the labels that it may have, None for any. rows: the sequences in which some
    token has no label, or a set of them.
    """

    choices: list[list[Choice]]
    rows: npt.NDArray[np.int64]

    def known(self) -> list[list[Any]]:
        """All labels that occur, by sequence."""
        return [[label for choice in row for label in choice or ()] for row in self.choices]

    def filled(self, other: Any) -> list[list[Any]]:
        """The labels that are known, with `other` in the place of the rest."""
        return [[choice[0] if choice is not None and len(choice) == 1 else other for choice in row] for row in self.choices]

    def codes(self, encoder: LabelEncoder) -> dict[int, list[tuple[int, ...] | None]]:
        """The choices of `rows` as the encoder numbers the labels."""
        known = {label: k for k, label in enumerate(encoder.classes.tolist())}
        of_rows = ((i, self.choices[i]) for i in self.rows.tolist())
        return {i: [choice if choice is None else tuple(known[y] for y in choice) for choice in row] for i, row in of_rows}


def partial_labels(lists: Sequence[Sequence[Any]], missing: Any = None, *, whole: bool = True) -> PartialLabels | None:
    """The choices of each token; None where every token has one label.

    A token is without a label where it has None, or the mark `missing`; a set (or list, or tuple) holds those that it may have.
    whole: whether these are all data there will be; then some labels must be known, and the log says how many are missing.
    Raises DataError, naming sample and position, for an empty set, and where no label is known at all.
    """
    if not any(_is_partial(labels, missing) for labels in lists):
        return None
    choices = [[_choice(label, missing, i, t) for t, label in enumerate(labels)] for i, labels in enumerate(lists)]
    sizes = [[0 if choice is None else len(choice) for choice in row] for row in choices]
    rows = np.array([i for i, labels in enumerate(lists) if _is_partial(labels, missing)], dtype=np.int64)
    if whole and not any(size for row in sizes for size in row):
        raise DataError("y: expected some labels, but all are missing")
    if whole:
        tell_missing(sum(row.count(0) for row in sizes), sum(size > 1 for row in sizes for size in row), sum(map(len, sizes)))
    return PartialLabels(choices, rows)


def _is_partial(labels: Sequence[Any], missing: Any) -> bool:
    kinds = set(map(type, labels))
    return type(None) in kinds or not kinds.isdisjoint(_SEVERAL) or (missing is not None and missing in labels)


def _choice(label: Any, missing: Any, sample: int, position: int) -> Choice:
    if label is None:
        return None
    if isinstance(label, _SEVERAL):
        if not label:
            raise DataError(f"sample {sample}, position {position}: the set of labels that it may have is empty")
        return tuple(label)
    return None if missing is not None and label == missing else (label,)


def check_left(scores: FixedScores, offsets: npt.NDArray[np.int64], rows: npt.NDArray[np.int64]) -> None:
    """Raise DataError, naming sample and position, where constraints leave a token of these sequences no label."""
    none = scores.rows.max(axis=1) <= 0.5 * FORBIDDEN
    for i in rows.tolist() if none.any() else ():
        bad = np.flatnonzero(none[scores.row_of[offsets[i] : offsets[i + 1]]])
        if len(bad):
            raise DataError(f"sample {i}, position {int(bad[0])}: the constraints leave no label that it may have")


def where_known(
    lists: Sequence[Sequence[Any]], found: Sequence[npt.NDArray[Any]], missing: Any = None
) -> tuple[Sequence[Sequence[Any]], Sequence[npt.NDArray[Any]]]:
    """True and predicted labels at the tokens whose label is known; as they are where all are. DataError where none is."""
    if not any(_is_partial(labels, missing) for labels in lists):
        return lists, found
    at = [[t for t, y in enumerate(labels) if y is not None and not isinstance(y, _SEVERAL)] for labels in lists]
    if missing is not None:
        at = [[t for t in own if labels[t] != missing] for own, labels in zip(at, lists, strict=True)]
    if not any(at):
        raise DataError("y: expected some labels, but all are missing")
    known = [[labels[t] for t in own] for labels, own in zip(lists, at, strict=True)]
    return known, [labels[own] for labels, own in zip(found, at, strict=True)]


def comparable(
    lists: Sequence[Sequence[Any]], found: Sequence[npt.NDArray[Any]], missing: Any = None
) -> tuple[Sequence[Sequence[Any]], Sequence[npt.NDArray[Any]]]:
    """The same, without the sequences of which no label is known."""
    known, same = where_known(lists, found, missing)
    if all(map(len, known)):
        return known, same
    pairs = [(labels, other) for labels, other in zip(known, same, strict=True) if len(labels)]
    return [labels for labels, _ in pairs], [other for _, other in pairs]
