"""Predictions, nested by sequence, checked against the data that they are put beside."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from structpred.errors import DataError
from structpred.io.treebanks.treebank import Tree


def plain_lists(predicted: Sequence[Any], lengths: Sequence[int]) -> list[list[Any]]:
    """Labels as lists of Python values; DataError, naming the sequence, where their number is not that of the tokens.

    >>> plain_lists([np.array(["DET", "NOUN"])], [2])
    [['DET', 'NOUN']]
    """
    _check_lengths([len(labels) for labels in predicted], lengths, "label")
    return [labels.tolist() if isinstance(labels, np.ndarray) else list(labels) for labels in predicted]


def heads_and_relations(trees: Sequence[Tree], lengths: Sequence[int]) -> tuple[list[list[int]], list[list[str]]]:
    """Heads and relations of trees, `_` for a parse without relations; DataError where they do not fit the tokens."""
    _check_lengths([len(tree.heads) for tree in trees], lengths, "head")
    relations = [["_"] * n if tree.labels is None else list(tree.labels) for tree, n in zip(trees, lengths, strict=True)]
    return [np.asarray(tree.heads).tolist() for tree in trees], relations


def _check_lengths(found: Sequence[int], lengths: Sequence[int], what: str) -> None:
    if len(found) != len(lengths):
        raise DataError(f"expected a prediction for each of {len(lengths)} sentences, got {len(found)}; are they of other data?")
    for i, (n, expected) in enumerate(zip(found, lengths, strict=True)):
        if n != expected:
            raise DataError(f"sentence {i}: expected {expected} {what}s, one for each token, got {n}; are they of other data?")
