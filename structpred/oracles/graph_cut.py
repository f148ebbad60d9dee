"""Pairwise MRFs with two states whose edges favour agreement: the best output by one minimum cut."""

import numpy as np

from structpred.core.oracle import Labels, Scores, Shape
from structpred.errors import DataError
from structpred.oracles.mrf import PairwiseOracle, given, graph_of, graph_shape, links_of, refuse
from structpred.runtime.lazy_names import later

_kernels = later("structpred.oracles.fields._qpbo_kernels")


class GraphCutMRF(PairwiseOracle):
    """Pairwise MRFs with two states and submodular energies, exactly, by one minimum cut: images, for example.

    Every edge must favour agreement (s00 + s11 >= s01 + s10), or all must do so after the two states of some nodes are swapped;
    scores on a graph without cycles always do. Raises DataError for other scores, naming an edge that prevents it, for
    K != 2 and for scores that are not finite; InfeasibleError where the forbidden parts leave no output.
    Greig, Porteous & Seheult 1989; Kolmogorov & Zabih, What energy functions can be minimized via graph cuts?, PAMI 2004.

    >>> import numpy as np
    >>> scores = np.array([0.0, 1.0, 0.5, 0.0] + [2.0, 0.0, 0.0, 2.0])  # they differ, but would rather agree
    >>> GraphCutMRF().argmax(scores, graph_shape(2, 2, [(0, 1)])).tolist()
    [1, 1]
    """

    def argmax(self, scores: Scores, shape: Shape) -> Labels:
        """The best output."""
        graph = graph_of(shape)
        if graph.n_states != 2:
            raise DataError(
                f"graph cuts are for nodes with two states, got K = {graph.n_states}; use DualMRF or RelaxedMRF for more"
            )
        flat, labels = given(scores, shape), np.empty(graph.n, np.int64)
        status, wrong = _kernels().cut(flat, *links_of(shape), labels)
        if status:
            refuse(status, shape)
        if wrong >= 0:
            i, j = graph.edges[wrong].tolist()
            raise DataError(
                f"edge {wrong}, ({i}, {j}), lies on a cycle on which an odd number of edges favours disagreement "
                "(s00 + s11 < s01 + s10): one cut cannot solve that; use QPBO (a bound), BranchAndBoundMRF or CpSatMRF (exact)"
            )
        return labels

    @staticmethod
    def example_shapes() -> list[Shape]:
        """Graphs without cycles, for which scores of every sign are allowed."""
        return [
            graph_shape(1, 2, []),
            graph_shape(4, 2, []),
            graph_shape(2, 2, [(0, 1)]),
            graph_shape(6, 2, [(0, 5), (1, 3), (3, 4)]),
            graph_shape(8, 2, [(i, i + 1) for i in range(7)]),
            graph_shape(7, 2, [(3, i) for i in range(7) if i != 3]),
        ]
