"""The numbering of the parts of second-order trees over candidate arcs, for feature maps and oracles.

A shape is (n, bytes): n words, and which arcs are candidates. Part (m - 1) * (n + 1) + h is the arc from h to m, a candidate or
not; then come for each word h = 0..n, the root first, its siblings and its grandparents, as in `HeadAutomaton`.
"""

from typing import NamedTuple

import numpy as np

from structpred.core.oracle import Shape
from structpred.core.scores import kept_for_shapes
from structpred.core.types import ArrayLike, Flags, Integers
from structpred.errors import DataError
from structpred.runtime.lazy_names import later

_kernels = later("structpred.core._head_list_kernels")


class HeadLists(NamedTuple):
    """sizes: (n + 1, 3), how many candidate heads each word has, and candidate modifiers to its left and to its right.

    words: flat; from ends[h] on the modifiers to the left of h, then those to the right, from the nearest outwards, then its
    heads, ascending. parts: from copies[h] on the parts that the automaton of h has. pairs: where each arc is among these, twice.
    """

    sizes: Integers
    words: Integers
    ends: Integers
    parts: Integers
    copies: Integers
    pairs: Integers


def candidate_shape(allowed: ArrayLike) -> Shape:
    """The shape of a sentence with these candidates: (n, n + 1), row m - 1, column h. Arcs from a word to itself are none.

    The word before each must be a candidate, so that there is a tree. Raises DataError where it is not, and for another table.

    >>> candidate_shape([[1, 0, 1], [1, 1, 0]])[0]
    2
    """
    table = np.array(allowed, dtype=np.bool_)
    n = len(table)
    if table.ndim != 2 or table.shape != (n, n + 1) or not n:
        raise DataError(f"candidates: expected a table of n words and n + 1 heads, got shape {table.shape}")
    table[np.arange(n), np.arange(1, n + 1)] = False
    if not table.diagonal().all():
        raise DataError(f"candidates of word {int(np.argmin(table.diagonal())) + 1}: expected the word before among them")
    return n, np.packbits(table).tobytes()


def candidates_of(shape: Shape) -> Flags:
    """The table that `candidate_shape` was made of. Raises DataError for what is no such shape."""
    try:
        n, packed = shape
        if n < 1 or len(packed) != (n * (n + 1) + 7) // 8:
            raise ValueError
        return np.unpackbits(np.frombuffer(packed, np.uint8), count=n * (n + 1)).reshape(n, n + 1).astype(np.bool_)
    except (TypeError, ValueError):
        raise DataError(f"a shape of trees over candidates is made by candidate_shape, got {str(shape)[:80]}") from None


@kept_for_shapes
def head_lists(shape: Shape) -> HeadLists:
    """The lists of a shape; kept for the shapes that were used last."""
    return HeadLists(*_kernels().list_heads(candidates_of(shape)))
