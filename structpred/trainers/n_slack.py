"""n-slack cutting planes: every sample has its own planes (Tsochantaridis, Joachims, Hofmann & Altun 2005, algorithm 1; Joachims,
Finley & Yu 2009, algorithm 2). The master problem is solved once per pass instead of after every sample.
"""

from typing import Annotated, NamedTuple

import numpy as np

from structpred.core.sparse import SparseVector
from structpred.core.types import Floats
from structpred.trainers.blocks.arena import Arena
from structpred.trainers.planes.cutting_planes import CuttingPlanes, Sweep
from structpred.trainers.problem import Problem
from structpred.trainers.states import Values


class NSlackState(NamedTuple):
    """found, offsets: the plane of each sample in the present sweep (NaN: none). slacks: what all planes say of p_i H_i."""

    sweep: Sweep
    found: Arena
    offsets: Annotated[Floats, Values(nan=True)]
    slacks: Floats


class NSlackCuttingPlane(CuttingPlanes):
    """Cutting planes for each sample: few passes, many planes. For expensive oracles and up to a few thousand samples.

    Parameters
    ----------
    precision : float
        A plane is added if it cuts off more than this, in units of one sample's H_i.
    max_idle : int
        Planes without weight in this number of solutions of the master problem are dropped.

    Raises
    ------
    ParameterError
        For precision < 0 or max_idle < 1.

    References
    ----------
    Tsochantaridis, Joachims, Hofmann and Altun (2005), algorithm 1; Joachims, Finley and Yu (2009), algorithm 2.

    Examples
    --------
    >>> from structpred.models import ChainLabeler
    >>> model = ChainLabeler(trainer=NSlackCuttingPlane(), tol=0.01).fit([np.eye(2)], [["a", "b"]])
    >>> model.converged_
    True
    """

    name = "n_slack"
    asks = "pieces"
    knows_slack = True
    least_passes = 20  # after ten, a fifth fewer letters are right on handwriting

    def init_state(self, problem: Problem) -> NSlackState:
        """Line 2: no planes, w = 0."""
        n = len(problem.task)
        return NSlackState(Sweep.start(problem, n), Arena.empty(n), np.full(n, np.nan), np.zeros(n))

    def update(self, problem: Problem, state: NSlackState, item: int) -> tuple[NSlackState, bool]:
        """Lines 4-9 for one sample, which may add a plane; line 10 after the last one."""
        if item < 0:  # line 10: optimise over the planes of all samples
            n = len(problem.task)
            listed = np.flatnonzero(~np.isnan(state.offsets)).tolist()
            blocks = map(state.found.block, listed)  # views of an arena: planes are copies
            planes = [
                (i, SparseVector(idx.copy(), val.copy()), float(state.offsets[i]))
                for i, (idx, val) in zip(listed, blocks, strict=True)
            ]
            sweep = state.sweep.with_planes(problem, planes, self.precision, 1.0 / n)
            changed = not np.array_equal(sweep.w, state.sweep.w)
            slacks = sweep.master.slacks(problem.lam)
            return NSlackState(sweep.pruned(self.max_idle), Arena.empty(n), np.full(n, np.nan), slacks), changed
        share = float(problem.p[item])
        if (search := getattr(problem.surrogate, "term_above", None)) is None:
            step = problem.surrogate.term(problem.task, state.sweep.w, item)
        else:  # it need not look at what would cut nothing off
            slack = float(state.slacks[item]) / share if share > 0.0 else 0.0
            step = search(problem.task, state.sweep.w, item, slack + self.precision)
        state.sweep.add(step, share)
        if not step.violation > 0.0:
            return state, False
        state.offsets[item] = share * problem.surrogate.offset(step)
        psi = step.difference
        found = state.found.store(item, psi.indices.copy(), share * psi.values)
        return state if found is state.found else state._replace(found=found), False
