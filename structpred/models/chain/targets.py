"""Label sequences as users give them, to and from whole numbers."""

import numbers
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from structpred.core.types import Integers
from structpred.errors import DataError


class LabelEncoder:
    """The distinct labels, sorted: all strings or all whole numbers.

    Raises DataError for labels that an array would change (numbers too large, strings that end with a NUL) and for duplicates.
    """

    def __init__(self, classes: Sequence[Any]) -> None:
        ordered = sorted(label.item() if isinstance(label, np.generic) else label for label in classes)
        self.classes = np.array(ordered)
        kept = self.classes.tolist()
        for label, stored in zip(ordered, kept, strict=True):
            if type(label) is not type(stored) or label != stored:
                cause = (
                    "strings must not end with a NUL character" if isinstance(label, str) else "expected whole numbers of 64 bits"
                )
                raise DataError(f"the label {label!r} would be read back as {stored!r}; {cause}")
        self._code = {label: k for k, label in enumerate(kept)}
        if len(self._code) < len(kept):
            raise DataError("the labels of a model must all be different")

    @classmethod
    def fit(cls, y: Sequence[Sequence[Any]]) -> "LabelEncoder":
        """The labels in y. Raises DataError where they are not all strings or all whole numbers."""
        seen: set[Any] = set()
        kinds: set[type] = set()
        for i, labels in enumerate(y):
            try:
                new = set(labels) - seen
            except TypeError as error:
                raise DataError(f"sample {i}: labels must be strings or whole numbers: {error}") from None
            seen |= new
            kinds |= {_kind(label) for label in new}
            if len(kinds) > 1 or not kinds <= {str, int}:
                names = " and ".join(sorted(kind.__name__ for kind in kinds))
                raise DataError(f"sample {i}: labels must be all strings or all whole numbers, got {names}")
        return cls([label if isinstance(label, str | int) else int(label) for label in seen])

    def encode(self, y: Sequence[Sequence[Any]]) -> Integers:
        """All labels as one flat array; raises DataError, naming the sample, for a label that was not seen at fit."""
        try:
            return np.array([self._code[label] for labels in y for label in labels], dtype=np.int64)
        except KeyError as error:
            sample = next(i for i, labels in enumerate(y) if any(label not in self._code for label in labels))
            raise DataError(f"sample {sample}: label {error.args[0]!r} was not in the training data") from None

    def decode(self, codes: Integers, offsets: Integers) -> list[npt.NDArray[Any]]:
        """One array of labels per sequence."""
        labels = self.classes[codes]
        return [labels[a:b] for a, b in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)]


def _kind(label: Any) -> type:
    """str, int (whole numbers of any library), or whatever else it is."""
    return str if isinstance(label, str) else int if isinstance(label, numbers.Integral) else type(label)


@contextmanager
def about_labels(where: str) -> Iterator[None]:
    """An unknown label is one that is not among those `where`."""
    try:
        yield
    except DataError as error:
        message = str(error).replace("was not in the training data", f"is not among the labels {where}")
        raise type(error)(message) from error


def as_label_lists(y: Any, lengths: Integers) -> list[list[Any]]:
    """y as lists of plain Python labels, checked against the lengths of the sequences of X.

    Raises DataError: y is not a list of sequences, another number of sequences, or a sequence of another length than its x.
    """
    if isinstance(y, str | bytes) or not isinstance(y, Iterable):
        raise DataError(f"y: expected a list of label sequences, got {type(y).__name__}")
    lists = []
    for i, labels in enumerate(y):
        if isinstance(labels, str | bytes) or not isinstance(labels, Iterable):
            raise DataError(
                f"y, sample {i}: expected a sequence of labels, got {labels!r}; "
                "did you pass one sequence instead of a list of sequences? (a word must be list(word))"
            )
        lists.append(labels.tolist() if isinstance(labels, np.ndarray) else list(labels))
    if len(lists) != len(lengths):
        raise DataError(f"X has {len(lengths)} sequences but y has {len(lists)}")
    for i, (labels, length) in enumerate(zip(lists, lengths.tolist(), strict=True)):
        if len(labels) != length:
            raise DataError(f"sample {i}: x has {length} tokens but y has {len(labels)} labels")
        if length == 0:
            raise DataError(f"sample {i}: the sequence is empty; leave it out of X and y")
    return lists
