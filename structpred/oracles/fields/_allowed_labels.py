"""Labels without forbidden parts, near to given ones: a search that keeps the states of neighbours consistent.

Each state that has no allowed partner at some neighbour is taken away, again and again (arc consistency, Mackworth 1977); a node
is given a state, what follows is taken away, and where a node has no state left the last choice is undone (Sabin & Freuder 1994).
"""

import numpy as np
import numpy.typing as npt

from structpred.core.fixed_scores import FORBIDDEN
from structpred.core.oracle import Labels
from structpred.errors import ConvergenceError
from structpred.oracles.fields._pairwise_links import links_of
from structpred.oracles.mrf import Graph
from structpred.runtime.lazy_names import later

_kernels = later("structpred.oracles.fields._pairwise_kernels")

Mask = npt.NDArray[np.bool_]

#: choices that are undone, at most
LIMIT = 10_000


def allowed_labels(graph: Graph, allowed: Mask, wanted: Labels, limit: int = LIMIT) -> Labels | None:
    """Labels all of whose parts are allowed, the wanted state first at each node; None: proven that there are none.

    Raises ConvergenceError once `limit` choices had to be undone. Nodes with the fewest states left come first.
    """
    n, k = graph.n, graph.n_states
    links = links_of((n, k, *graph.edges.ravel().tolist()))
    given = np.where(allowed, 0.0, FORBIDDEN), n, k, links.first, links.other, links.edge
    left = np.ones((n, k), np.bool_)
    if not _kernels().allow(*given, left):
        return None
    chosen: list[tuple[int, int, npt.NDArray[np.uint8]]] = []  # node, state, which states were left before, a bit each
    undone = 0
    while (node := _open_node(left)) >= 0:
        state = int(wanted[node]) if left[node, wanted[node]] else int(left[node].argmax())
        chosen.append((node, state, np.packbits(left)))
        consistent = _kernels().fix(*given, left, node, state)
        while not consistent:
            if not chosen:
                return None
            undone += 1
            if undone > limit:
                raise ConvergenceError(
                    f"no labels without forbidden parts were found after {limit:,} choices were undone; use CpSatMRF, which "
                    "finds some or proves that there are none"
                )
            node, state, before = chosen.pop()
            left[:] = np.unpackbits(before, count=n * k).reshape(n, k)
            left[node, state] = False
            queue, queued = np.full(n, node), np.arange(n) == node
            consistent = bool(left[node].any()) and _kernels().propagate(*given, left, queue, queued, 1)
    labels: Labels = left.argmax(axis=1).astype(np.int64)
    return labels


def _open_node(left: Mask) -> int:
    """The node with the fewest states left, more than one; -1 if all have one."""
    counts = left.sum(axis=1)
    counts[counts == 1] = left.shape[1] + 1
    node = int(counts.argmin())
    return node if counts[node] <= left.shape[1] else -1
