"""The best output of a tree for each value of a whole-number loss, which is counted in the state of the dynamic program."""

import numpy as np

from structpred.core.fixed_scores import FORBIDDEN
from structpred.core.oracle import Labels, Scores
from structpred.core.types import Floats, Integers
from structpred.errors import DataError
from structpred.runtime.lazy_names import later
from structpred.runtime.memory import check_fits

_kernels = later("structpred.oracles.fields._tree_mrf_kernels")


def best_per_loss(scores: Scores, costs: Floats, plan: Integers, k: int) -> tuple[Floats, Floats, list[Labels]]:
    """`argmax_per_loss` over the tree of a plan whose nodes have k states each (Bauer, Mueller & Kloft 2014, for chains)."""
    n, whole = len(plan), costs.astype(np.int64)
    if not np.array_equal(costs, whole):
        raise DataError("argmax_per_loss needs part costs that are whole numbers")
    node_lows, edge_lows, _, sizes, message_sizes, merged_sizes = counted = np.zeros((6, n), np.int64)
    base = int(_kernels().loss_sizes(whole, plan, k, *counted))
    value_starts = k * np.concatenate(([0], np.cumsum(sizes)))
    pointers = np.array((message_sizes, merged_sizes))
    ends = k * np.cumsum(pointers, axis=1)
    root = int(plan[-1, 0])
    what = f"losses of {int(sizes[root])} values on {n:,} nodes with {k} states"
    check_fits(8 * int(value_starts[-1]) + 4 * int(ends[:, -1].sum()), what)
    values, states, losses = np.empty(value_starts[-1]), *(np.zeros(end, np.int32) for end in ends[:, -1].tolist())
    rooms = message_sizes, merged_sizes, ends - k * pointers
    _kernels().best_losses(
        scores, whole, plan, k, node_lows, edge_lows, *rooms, value_starts, values, states, losses
    )  # fmt: skip
    table = values[value_starts[root] : value_starts[root + 1]].reshape(k, -1)
    attained = np.flatnonzero(table.max(axis=0) > 0.5 * FORBIDDEN)
    labels = np.empty((len(attained), n), np.int64)
    for row, level in zip(labels, attained.tolist(), strict=True):
        state = int(table[:, level].argmax())
        _kernels().read_loss(whole, plan, k, edge_lows, *rooms, states, losses, state, level, row)
    return (attained + base).astype(np.float64), table[:, attained].max(axis=0), list(labels)
