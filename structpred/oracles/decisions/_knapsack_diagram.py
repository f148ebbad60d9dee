"""The sets of items that keep every capacity as paths in a diagram: a node for each room that items before can leave.

Sums over sets are sums over paths. Many sets leave the same room, so that there are far fewer nodes than sets: with one row of
weights in hundredths at most one for each hundredth of the capacity and each item; with several rows their product at most.
"""

from typing import NamedTuple

import numpy as np

from structpred.core.types import Floats, Integers
from structpred.errors import DataError

#: rooms are equal if they differ by less than this share of the capacity: sums of decimal fractions are not exact
_SHARE = 2.0**-40
#: what takes every item that is left must stay above their sum, whatever rounding does
_SLACK = 1e-9


class Diagram(NamedTuple):
    """Nodes starts[j] to starts[j + 1] stand before item j; the last one is behind all items.

    skip, take: the node that leaving item j out, or taking it, leads to; take is -1 where it does not fit.
    """

    n_parts: int
    starts: Integers
    skip: Integers
    take: Integers


def diagram_of(items: Floats, capacities: Floats, max_states: int) -> Diagram:
    """The diagram of items with these weights (items, rows). Raises DataError where it has more than max_states nodes."""
    room, n = capacities[None], len(items)
    rest = np.concatenate((np.cumsum(items[::-1], axis=0)[::-1], np.zeros((1, items.shape[1]))))
    least = np.concatenate((np.minimum.accumulate(items[::-1], axis=0)[::-1], np.full((1, items.shape[1]), np.inf)))
    unit = np.where(room[0] > 0.0, room[0], 1.0) * _SHARE
    starts, skip, take = [0, 1], list[Integers](), list[Integers]()
    for j in range(n):
        fits = (room >= items[j]).all(axis=1)
        after = np.concatenate((room, room[fits] - items[j]))
        after = np.minimum(after, rest[j + 1] * (1.0 + _SLACK))  # more than all that is left takes is as good as that
        after[(after < least[j + 1]).any(axis=1)] = -unit  # nothing fits: all such rooms are alike
        first, node = _distinct(np.rint(after / unit).astype(np.int64))
        taken = np.full(len(room), -1, np.int64)
        taken[fits] = starts[-1] + node[len(room) :]
        skip.append(starts[-1] + node[: len(room)])
        take.append(taken)
        room = after[first]
        starts.append(starts[-1] + len(room))
        if starts[-1] > max_states:
            raise DataError(
                f"sums over sets of items need more than max_states={max_states:,} nodes: the items 0..{j} of {n} leave "
                f"{len(room):,} different rooms; raise max_states, or round the weights to fewer digits"
            )
    return Diagram(n, np.array(starts), np.concatenate(skip), np.concatenate(take))


def _distinct(keys: Integers) -> tuple[Integers, Integers]:
    """(a row of each kind, the kind of each row): rows of whole numbers are told apart column by column."""
    kind = np.zeros(len(keys), np.int64)
    for column in keys.T:
        _, value = np.unique(column, return_inverse=True)
        _, first, kind = np.unique(kind * (int(value.max()) + 1) + value, return_index=True, return_inverse=True)
    return first, kind
