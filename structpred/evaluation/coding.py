"""Two labellings of the same sequences as integer codes: the common input of every measure."""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from structpred.core.types import AnyArray, Integers
from structpred.errors import DataError

Sequences = Sequence[Sequence[Hashable]]


@dataclass(frozen=True)
class Coded:
    """Token t has the gold label ``labels[gold[t]]`` and the predicted one ``labels[predicted[t]]``.

    gold, predicted: int64 (n_tokens). Sequence i is the tokens ``offsets[i]:offsets[i+1]``; offsets: int64
    (n_sequences + 1). labels: every label that occurs on either side, sorted.
    """

    labels: tuple[Any, ...]
    gold: Integers
    predicted: Integers
    offsets: Integers


def sums(per_token: AnyArray, offsets: Integers) -> Integers:
    """A figure per token added up over each sequence."""
    totals = np.concatenate(([0], np.cumsum(per_token, dtype=np.int64)))
    return totals[offsets[1:]] - totals[offsets[:-1]]


def tallied(names: Iterable[Any], gold: Integers, predicted: Integers, right: Integers) -> Iterator[tuple[Any, int, int, int]]:
    """Of each name how often its number is among the gold ones, the predicted ones and the right ones; those that are in none
    of the first two are left out.
    """
    most = 1 + max(int(codes.max(initial=-1)) for codes in (gold, predicted))
    tables = (np.bincount(codes, minlength=most).tolist() for codes in (gold, predicted, right))
    return (row for row in zip(names, *tables, strict=False) if row[1] or row[2])


def encode(gold: Sequences, predicted: Sequences) -> Coded:
    """Check that two lists of label sequences belong together, and number their labels.

    Raises DataError, with the index of the sample, if the lists or two sequences differ in length, if anything is
    empty, or if a sequence is a string (most likely one sequence was passed instead of a list of them).

    >>> encode([["B", "O"]], [["O", "O"]]).predicted.tolist()
    [1, 1]
    """
    _check(gold, predicted)
    flat_gold, flat_predicted = _flat(gold), _flat(predicted)
    different: set[Any] = {*flat_gold, *flat_predicted}
    try:
        labels = tuple(sorted(different))
    except TypeError:  # labels of several types have no order of their own
        labels = tuple(sorted(different, key=lambda label: (type(label).__name__, str(label))))
    code = {label: i for i, label in enumerate(labels)}
    lengths = np.fromiter((len(s) for s in gold), dtype=np.int64, count=len(gold))
    offsets = np.concatenate(([0], np.cumsum(lengths)))
    n = int(offsets[-1])
    first, second = (np.fromiter(map(code.__getitem__, flat), np.int64, n) for flat in (flat_gold, flat_predicted))
    return Coded(labels, first, second, offsets)


def _check(gold: Sequences, predicted: Sequences) -> None:
    if len(gold) != len(predicted):
        raise DataError(f"expected one prediction for each of {len(gold)} gold sequences, got {len(predicted)}")
    if not len(gold):
        raise DataError("nothing to evaluate: the list of sequences is empty")
    for i, (one, other) in enumerate(zip(gold, predicted, strict=True)):
        for name, sequence in (("gold", one), ("predicted", other)):
            if isinstance(sequence, (str, bytes)) or not hasattr(sequence, "__len__"):
                raise DataError(
                    f"sample {i}: the {name} labels are {sequence!r}, expected a sequence of labels "
                    "(was one sequence passed instead of a list of sequences?)"
                )
        if len(one) != len(other):
            raise DataError(f"sample {i}: {len(one)} gold labels but {len(other)} predicted ones")
        if not len(one):
            raise DataError(f"sample {i}: the sequence is empty")


def _flat(sequences: Sequences) -> list[Hashable]:
    # Arrays become plain lists: NumPy scalars hash slowly.
    return list(chain.from_iterable(s.tolist() if isinstance(s, np.ndarray) else s for s in sequences))
