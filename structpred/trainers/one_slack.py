"""1-slack cutting planes: a plane is the mean over all samples (Joachims, Finley & Yu 2009, algorithm 3)."""

from typing import NamedTuple

import numpy as np

from structpred.core.sparse import SparseVector
from structpred.core.types import Floats
from structpred.runtime.lazy_names import later
from structpred.trainers.planes.cutting_planes import CuttingPlanes, Sweep
from structpred.trainers.problem import Problem

_kernels = later("structpred.core._sparse_kernels")


class OneSlackState(NamedTuple):
    """mean, offset: slope and constant of the plane of the present sweep, summed up over the samples so far."""

    sweep: Sweep
    mean: Floats
    offset: Floats


class OneSlackCuttingPlane(CuttingPlanes):
    """One cutting plane per pass, the mean over all samples: more passes, few planes, for any number of samples.

    Parameters
    ----------
    precision : float
        A plane is added if it cuts off more than this, in units of the mean of the H_i.
    max_idle : int
        Planes without weight in this number of solutions of the master problem are dropped.

    Raises
    ------
    ParameterError
        For precision < 0 or max_idle < 1.

    References
    ----------
    Joachims, Finley and Yu (2009), algorithm 3.

    Examples
    --------
    >>> from structpred.models import ChainLabeler
    >>> model = ChainLabeler(trainer=OneSlackCuttingPlane(), tol=0.01).fit([np.eye(2)], [["a", "b"]])
    >>> model.converged_
    True
    """

    name = "one_slack"
    least_passes = 200

    def init_state(self, problem: Problem) -> OneSlackState:
        """Line 2: no planes, w = 0."""
        return OneSlackState(Sweep.start(problem, 1), np.zeros(problem.task.dim), np.array(0.0))

    def update(self, problem: Problem, state: OneSlackState, item: int) -> tuple[OneSlackState, bool]:
        """Line 6 for one sample, what it adds to the plane; lines 8 and 4 after the last one."""
        if item < 0:  # line 8, the plane joins the others, and line 4, the optimum over them
            at = np.flatnonzero(state.mean)
            plane = (0, SparseVector(at, state.mean[at]), float(state.offset))
            sweep = state.sweep.with_planes(problem, [plane], self.precision)
            changed = not np.array_equal(sweep.w, state.sweep.w)
            return OneSlackState(sweep.pruned(self.max_idle), np.zeros_like(state.mean), np.array(0.0)), changed
        step, share = problem.surrogate.term(problem.task, state.sweep.w, item), float(problem.p[item])
        state.sweep.add(step, share)
        if step.violation > 0.0:
            _kernels().add_into(state.mean, step.difference.indices, step.difference.values, share)
            state.offset.fill(state.offset.item() + share * problem.surrogate.offset(step))
        return state, False
