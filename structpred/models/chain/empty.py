"""Sequences without tokens in prediction: they have no labels, and do not keep the others from theirs."""

from collections.abc import Callable
from typing import Any

import numpy as np


def around_empty(predict: Callable[..., list[Any]], X: Any, *rules: Any, nothing: Any = None) -> list[Any]:
    """predict(X, *rules), where a sequence of no tokens gets an empty result.

    rules: None, or a list with an entry for each sequence. nothing: the result where there are no other sequences; predict is
    then not asked.

    >>> around_empty(lambda X: [[len(x)] for x in X], [["a"], [], ["b", "c"]])
    [[1], [], [2]]
    >>> around_empty(lambda X: [[1 / 0] for x in X], [[]], nothing=[])
    [[]]
    """
    if not isinstance(X, list | tuple) or (X and not any(map(_is_empty, X))):
        return predict(X, *rules)
    full = [i for i, x in enumerate(X) if not _is_empty(x)]
    if not full:
        return [np.empty(0, dtype=object) if nothing is None else nothing for _ in X]
    # another sequence stands in for an empty one, so that errors name samples by the user's numbers
    at = [full[max(int(np.searchsorted(full, i, side="right")) - 1, 0)] for i in range(len(X))]
    stood_in = (entries if entries is None or len(entries) != len(X) else [entries[k] for k in at] for entries in rules)
    found = predict([X[k] for k in at], *stood_in)
    return [result[:0] if _is_empty(x) else result for x, result in zip(X, found, strict=True)]


def _is_empty(x: Any) -> bool:
    return len(x) == 0 if isinstance(x, list | tuple) else getattr(x, "shape", (1,))[:1] == (0,)
