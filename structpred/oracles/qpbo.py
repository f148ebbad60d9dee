"""Pairwise MRFs with two states: the LP relaxation by roof duality."""

import numpy as np

from structpred.core.oracle import Labels, Scores, Shape
from structpred.core.types import Floats
from structpred.errors import DataError
from structpred.oracles.mrf import PairwiseOracle, given, graph_of, links_of, refuse
from structpred.runtime.lazy_names import later

_kernels = later("structpred.oracles.fields._qpbo_kernels")


def _two_states(shape: Shape) -> None:
    if graph_of(shape).n_states != 2:
        raise DataError(f"roof duality is for nodes with two states, got K = {shape[1]}; use DualMRF or RelaxedMRF for more")


class QPBO(PairwiseOracle):
    """Pairwise MRFs with two states: the best point of the local polytope, and labels near it, by one maximum flow.

        maximise scores . mu  over the local polytope: node rows sum to 1, edge tables agree with their nodes

    Some best point has nodes of 0, 1/2 and 1 only (roof duality). Nodes of 0 and 1 keep these values in some best output, too
    (persistency); every node that is whole in some best point is whole here. Where all are, the output is proven best.

    Raises DataError for K != 2 and for scores that are not finite, InfeasibleError where the forbidden parts leave no output.
    Boros & Hammer, Pseudo-Boolean optimization, 2002; Kolmogorov & Rother, Minimizing nonsubmodular functions, PAMI 2007.

    >>> import numpy as np
    >>> from structpred.oracles.mrf import graph_shape
    >>> triangle = graph_shape(3, 2, [(0, 1), (1, 2), (0, 2)])
    >>> scores = np.concatenate((np.zeros(6), np.tile([0.0, 1.0, 1.0, 0.0], 3)))  # three that want to differ: only two can
    >>> QPBO().argmax_relaxed(scores, triangle)[:6].tolist()
    [0.5, 0.5, 0.5, 0.5, 0.5, 0.5]
    >>> QPBO().argmax_bound(scores, triangle)[1]
    3.0
    """

    exact = False

    def argmax(self, scores: Scores, shape: Shape) -> Labels:
        """The labels of `argmax_bound`."""
        return self.argmax_bound(scores, shape)[0]

    def argmax_bound(self, scores: Scores, shape: Shape) -> tuple[Labels, float]:
        """Labels, and the LP's value, which no output's score exceeds.

        Nodes that are 1/2 are rounded one after the other to the state that is best with those before, then improved one by one.
        """
        _two_states(shape)
        flat = given(scores, shape)
        labels = np.empty(shape[0], np.int64)
        status, value = _kernels().round_off(flat, *links_of(shape), labels)
        if status:
            refuse(status, shape)
        return labels, value

    def argmax_relaxed(self, scores: Scores, shape: Shape) -> Floats:
        """The best point of the local polytope: nodes 0, 1/2 or 1, edge tables that agree with them."""
        _two_states(shape)
        flat = given(scores, shape)
        mu = np.empty(len(flat))
        if status := _kernels().relax(flat, *links_of(shape), mu):
            refuse(status, shape)
        return mu

    @staticmethod
    def example_shapes() -> list[Shape]:
        """The shapes of the parent that have two states, and cycles and a grid."""
        more = (1, 2), (3, 2, 0, 1, 0, 2, 1, 2), (6, 2, 0, 1, 1, 2, 0, 3, 3, 4, 1, 4, 4, 5, 2, 5)
        return [*(shape for shape in PairwiseOracle.example_shapes() if shape[1] == 2), *more]
