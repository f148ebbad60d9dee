"""Label sequences as users give them, known or known in part, to and from whole numbers."""

import numbers
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from structpred.core.fixed_scores import FORBIDDEN
from structpred.core.types import Integers
from structpred.data.tag_schemes import SCHEMES, Choice, own_scheme, phrases, written
from structpred.errors import DataError, ParameterError
from structpred.features.fixed_scores import FixedScores
from structpred.models.partial import tell_missing


class LabelEncoder:
    """The distinct labels, sorted: all strings or all whole numbers.

    coding: the scheme that they are in, and that of users, whose labels are these in that scheme; None: they are those of users.
    Raises DataError for labels that an array would change (numbers too large, strings that end with a NUL) and for duplicates.
    """

    def __init__(self, classes: Sequence[Any], coding: Sequence[str] | None = None) -> None:
        self.coding = None if coding is None else (coding[0], coding[1])
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

    @classmethod
    def of_phrases(cls, rows: Sequence[Sequence[Any]], known: Sequence[Sequence[Any]], scheme: str) -> "LabelEncoder":
        """A scheme's for labels, or choices (tuples, or None), of users. known: the labels, and None."""
        if scheme not in list(SCHEMES):
            raise ParameterError(f"coding: expected None, {', '.join(map(repr, SCHEMES))}, or in fit 'auto', got {scheme!r}")
        coding = scheme, own_scheme(known)
        found = {x for _, row in each_written(rows, coding) for x in row}
        names = {label for x in found for label in ((x,) if isinstance(x, str) else x or ())}
        if scheme == "iobes" and "O" not in names:  # so that sequences of any length have labels
            names |= {f"S{label[1:]}" for label in names}
        return cls([*names], coding)

    @property
    def answers(self) -> list[Any]:
        """The labels that users get and give."""
        return sorted({x for own in self._answers for x in own})

    @property
    def _answers(self) -> list[tuple[Any, ...]]:
        """What each label may be in an answer; this depends on its neighbours where there are several."""
        found: list[Any] = self.classes.tolist()
        own = () if self.coding is None else self.coding[::-1]
        return [written([None, (label,), None], *own)[1] if own else (label,) for label in found]

    def in_answers(
        self, predicted: Sequence[Any], tables: Sequence[npt.NDArray[Any]]
    ) -> tuple[list[Any], Sequence[npt.NDArray[Any]], Sequence[Sequence[Any]]]:
        """Names of the columns of tables (tokens, labels), the tables, and predicted labels by these names: labels of users, with
        the sums of their columns. Where an answer depends on its neighbours they are labels of the model.
        """
        answers = self._answers
        if any(len(own) > 1 for own in answers):
            return self.classes.tolist(), tables, self.inside([list(labels) for labels in predicted])
        names = self.answers
        sums = np.array([[name == own for name in names] for (own,) in answers], dtype=np.float64)
        return names, [table @ sums for table in tables], [labels.tolist() for labels in predicted]

    def inside(self, rows: Any) -> Any:
        """Labels of users, nested, or choices of them, as the model has them; a choice of which it knows none stays."""
        if self.coding is None or rows is None:
            return rows
        found: list[Any] = []
        for row, (given, new) in zip(rows, each_written(rows, self.coding), strict=True):
            known = [tuple(y for y in x if y in self._code) if isinstance(x, tuple) else x for x in new]
            found.append(None if row is None else [y if x == () else x for x, y in zip(known, given, strict=True)])
        return found

    def encode(self, y: Sequence[Sequence[Any]]) -> Integers:
        """All labels as one flat array; raises DataError, naming the sample, for a label that was not seen at fit."""
        return self.numbered(self.inside(y))

    def numbered(self, y: Sequence[Sequence[Any]]) -> Integers:
        """The same of labels of the model."""
        try:
            return np.array([self._code[label] for labels in y for label in labels], dtype=np.int64)
        except KeyError as error:
            sample = next(i for i, labels in enumerate(y) if any(label not in self._code for label in labels))
            raise DataError(f"sample {sample}: label {error.args[0]!r} was not in the training data") from None

    def decode(self, codes: Integers, offsets: Integers) -> list[npt.NDArray[Any]]:
        """One array of labels per sequence."""
        labels = self.classes[codes]
        rows = [labels[a:b] for a, b in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True)]
        return rows if self.coding is None else [np.array(written(row.tolist(), self.coding[1]), labels.dtype) for row in rows]


def each_written(rows: Iterable[Any], coding: tuple[str, str]) -> Iterator[tuple[list[Any], list[Any]]]:
    """Each row with choices as tuples, and `written` of it; errors name the sample."""
    for i, row in enumerate(rows):
        given = [tuple(x) if isinstance(x, Iterable) and not isinstance(x, str) else x for x in (() if row is None else row)]
        try:
            yield given, written(given, *coding)
        except DataError as error:
            raise DataError(f"sample {i}: coding: {error}") from None


def encoder_of(classes: Any, scheme: str | None = None) -> LabelEncoder:
    """The labels that a user lists; a scheme for those inside. ParameterError for no list of strings or of whole numbers."""
    if isinstance(classes, str | bytes) or not isinstance(classes, Iterable):
        raise ParameterError(f"classes: expected a list of labels, got {classes!r}")
    listed = classes.tolist() if isinstance(classes, np.ndarray) else list(classes)
    if not listed:
        raise ParameterError("classes: expected at least one label, got none")
    try:
        encoder = LabelEncoder.fit([listed])
        if scheme is None:
            return encoder
        alone = [[label] for label in encoder.answers]
        return LabelEncoder.of_phrases([[None, *row, None] for row in alone], alone, scheme)
    except DataError as error:
        raise ParameterError(f"classes: {str(error).removeprefix('sample 0: ')}") from None


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


#: what stands for a choice of several labels
_SEVERAL = (set, frozenset, tuple, list)


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
    whole: whether these are all data there will be; then some labels must be known, and the log says how many are missing. A
    MissingLabelsWarning where they are None, and neither `missing` nor a set of labels shows that this is meant.
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
        n_none, n_sets = sum(row.count(0) for row in sizes), sum(size > 1 for row in sizes for size in row)
        tell_missing(n_none, n_sets, sum(map(len, sizes)), meant=missing is not None or n_sets > 0)
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


def token_accuracy(gold: Sequence[Any], predicted: Sequence[Any]) -> float:
    """The share of tokens with the right label."""
    right = sum(int((np.asarray(p) == np.asarray(g)).sum()) for p, g in zip(predicted, gold, strict=True))
    return right / max(sum(len(g) for g in gold), 1)


def phrase_f1(gold: Sequence[Sequence[str]], predicted: Sequence[npt.NDArray[Any]]) -> float:
    """F1 of phrases, read as conlleval reads them."""
    pairs = [(phrases(g), phrases(p.tolist())) for g, p in zip(gold, predicted, strict=True)]
    return 2 * sum(len(g & p) for g, p in pairs) / max(sum(len(g) + len(p) for g, p in pairs), 1)
