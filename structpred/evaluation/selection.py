"""Some of the sequences of a corpus, in any form that estimators take."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from structpred.core.types import Integers
from structpred.data.sequences import PackedSequences
from structpred.io.columns import ColumnCorpus
from structpred.io.crfsuite import AttributeCorpus
from structpred.io.ocr import OcrWords


def select_sequences(X: Any, chosen: Sequence[int]) -> Any:
    """The sequences with these numbers, in this order, as a corpus of the same kind; a list for any other list of sequences.

    >>> corpus = ColumnCorpus.from_rows([[("a",)], [("b",), ("c",)]])
    >>> select_sequences(corpus, [1]).column(0), select_sequences(["x", "y"], [1, 0])
    (['b', 'c'], ['y', 'x'])
    """
    numbers = np.asarray(chosen, dtype=np.int64)
    if isinstance(X, OcrWords):
        return X.select(numbers)
    if isinstance(X, ColumnCorpus):
        tokens, offsets = _runs(X.offsets, numbers)
        return replace(X, codes=X.codes[tokens], offsets=offsets, lines=X.lines[tokens], text=None)
    if isinstance(X, PackedSequences):
        return replace(X.gather(numbers), groups=X.groups, group_names=X.group_names)
    if isinstance(X, AttributeCorpus):
        tokens, offsets = _runs(X.offsets, numbers)
        entries, indptr = _runs(X.indptr, tokens)
        labels = [X.labels[i] for i in numbers.tolist()]
        codes, values, lines = X.codes[entries], X.values[entries], X.lines[tokens]
        return replace(X, labels=labels, indptr=indptr, codes=codes, values=values, offsets=offsets, lines=lines)
    return [X[i] for i in numbers.tolist()]


def _runs(offsets: Integers, chosen: Integers) -> tuple[Integers, Integers]:
    """The entries offsets[i]:offsets[i+1] of each chosen i, one run after the other, and the offsets of the runs."""
    lengths = np.diff(offsets)[chosen]
    bounds = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    entries = np.repeat(offsets[:-1][chosen] - bounds[:-1], lengths) + np.arange(bounds[-1])
    return entries, bounds
