"""Labels without forbidden parts, near to given ones: a search that keeps the states of neighbours consistent.

Each state that has no allowed partner at some neighbour is taken away, again and again (arc consistency, Mackworth 1977); a node
is given a state, what follows is taken away, and where a node has no state left the last choice is undone (Sabin & Freuder 1994).
"""

import numpy as np
import numpy.typing as npt

from structpred.core.oracle import Labels
from structpred.errors import ConvergenceError
from structpred.oracles.mrf import Graph

Mask = npt.NDArray[np.bool_]

#: choices that are undone, at most
LIMIT = 10_000


def allowed_labels(graph: Graph, allowed: Mask, wanted: Labels, limit: int = LIMIT) -> Labels | None:
    """Labels all of whose parts are allowed, the wanted state first at each node; None: proven that there are none.

    Raises ConvergenceError once `limit` choices had to be undone. Nodes with the fewest states left come first.
    """
    search = _Search(graph, allowed)
    if not search.propagate(range(graph.n)):
        return None
    chosen: list[tuple[int, int, int]] = []  # node, state, how many states had been taken away before
    undone = 0
    while (node := search.open_node()) >= 0:
        states = search.domains[node]
        state = int(wanted[node]) if states[wanted[node]] else int(states.argmax())
        chosen.append((node, state, len(search.removed)))
        consistent = search.keep_only(node, state)
        while not consistent:
            if not chosen:
                return None
            undone += 1
            if undone > limit:
                raise ConvergenceError(
                    f"no labels without forbidden parts were found after {limit:,} choices were undone; use CpSatMRF, which "
                    "finds some or proves that there are none"
                )
            node, state, length = chosen.pop()
            search.restore(length)
            search.remove(node, state)
            consistent = bool(search.domains[node].any()) and search.propagate([node])
    labels: Labels = search.domains.argmax(axis=1).astype(np.int64)
    return labels


class _Search:
    """domains: (n, K), the states that are left. removed: those that are not, in order, so that steps can be undone."""

    def __init__(self, graph: Graph, allowed: Mask) -> None:
        k, split = graph.n_states, graph.n * graph.n_states
        self.domains = allowed[:split].reshape(graph.n, k).copy()
        self.removed: list[tuple[int, int]] = []
        self._near: list[list[tuple[int, Mask]]] = [[] for _ in range(graph.n)]
        for (i, j), table in zip(graph.edges.tolist(), allowed[split:].reshape(-1, k, k), strict=True):
            self._near[i].append((j, table))
            self._near[j].append((i, table.T))

    def open_node(self) -> int:
        """The node with the fewest states left, more than one; -1 if all have one."""
        left = self.domains.sum(axis=1)
        left[left == 1] = self.domains.shape[1] + 1
        node = int(left.argmin())
        return node if left[node] <= self.domains.shape[1] else -1

    def remove(self, node: int, state: int) -> None:
        """Take a state away."""
        self.domains[node, state] = False
        self.removed.append((node, state))

    def restore(self, length: int) -> None:
        """Give back all states but the first `length` that were taken away."""
        for node, state in self.removed[length:]:
            self.domains[node, state] = True
        del self.removed[length:]

    def keep_only(self, node: int, state: int) -> bool:
        """Choose a state; False where that leaves a node without any."""
        for other in np.flatnonzero(self.domains[node]).tolist():
            if other != state:
                self.remove(node, other)
        return self.propagate([node])

    def propagate(self, changed: range | list[int]) -> bool:
        """Take away what has no partner left, beginning next to the nodes that changed; False where a node loses all states."""
        queue = list(changed)
        while queue:
            node = queue.pop()
            if not self.domains[node].any():
                return False
            for other, table in self._near[node]:
                lost = self.domains[other] & ~table[self.domains[node]].any(axis=0)
                if lost.any():
                    for state in np.flatnonzero(lost).tolist():
                        self.remove(other, state)
                    queue.append(other)
        return True
