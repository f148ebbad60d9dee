"""BMRM, the bundle method for regularised risk minimisation, with the quadratic program over all planes."""

import numpy as np

from structpred.core.sparse import SparseVector
from structpred.core.types import Floats
from structpred.errors import ParameterError
from structpred.runtime.settings import checked_nonnegative, checked_whole
from structpred.trainers.planes.bundles import Bundle, BundleMethod, Plane
from structpred.trainers.planes.master_qp import MappedMaster, Master, dual_point, empty_master
from structpred.trainers.problem import Problem


def most_iterations(gap: float, lam: float, slope: float, start: float, bend: float = 1.0) -> float:
    """After at most this many iterations the gap of equation 4 is below `gap` (Saha, Zhang & Vishwanathan 2009, Theorem 5, 13).

    slope: G, no subgradient of R is longer. start: J(0). bend: H*, the largest curvature of r*, of a `DualMap` its largest scale.
    An iteration lowers a gap e by at least e/2 min(1, lam e / (4 G^2 H*)): it is halved while above u = 4 G^2 H* / lam, and then
    1/e rises by lam / (8 G^2 H*). From J(0) >= u on that is (13), which is printed for all J(0).

    >>> round(most_iterations(0.01, lam=0.1, slope=1.0, start=1.0), 6)
    7920.0
    """
    turn = 4.0 * slope**2 * bend / lam
    halvings = max(float(np.log2(start / turn)), 0.0) if start > 0.0 else 0.0
    return halvings + max(2.0 * turn * (1.0 / gap - 1.0 / min(start, turn)), 0.0) if start > gap else 0.0


class BMRM(BundleMethod):
    """Bundle method: the fewest sweeps over the data where planes are cheap to combine, for any loss.

    Iteration t minimises lam/2 |w|^2 + R_t(w), R_t the largest of its planes, by the dual

        max  b . alpha - 1/(2 lam) |sum_k alpha_k a_k|^2,   alpha >= 0, sum_k alpha_k <= 1

    (Saha, Zhang & Vishwanathan 2009, equations 3 and 16; the weight that alpha leaves is that of the zero plane), and
    w = sum_k alpha_k a_k / lam. Inner products of planes are kept: O(t d) an iteration. Under any other regulariser with a dual
    map, equation 10 with its conjugate: some such programs an iteration, whose inner products are taken anew. One "pass" is one
    iteration. The gap is below eps after O(1 / (lam eps)) of them; there are problems where it is 1 / (2 lam t) after t, exactly
    (`structpred bench bmrm-lower-bound`).

    Parameters
    ----------
    precision : float
        The accuracy wanted, in units of the objective. Planes that cut off less are not kept.
    rough : float
        The quadratic program is solved to this share of what the newest plane cuts off, or to a tenth of `precision` where that
        is more. Early solutions change anyway, rough ones take a fraction of the time, and the iterates jump less. 0: always to
        a tenth of `precision`.
    max_idle : int
        Planes without weight in this number of solutions of the quadratic program are dropped.

    Raises
    ------
    ParameterError
        For precision < 0, rough outside [0, 1), or max_idle < 1.

    References
    ----------
    Teo, Vishwanathan, Smola and Le (2010), BMRM; Saha, Zhang and Vishwanathan (2009), section 3.

    Examples
    --------
    >>> from structpred.models import ChainLabeler
    >>> model = ChainLabeler(trainer=BMRM(), tol=0.01, max_iter=50).fit([np.eye(2)], [["a", "b"]])
    >>> model.converged_
    True
    """

    name = "bmrm"
    regulariser_requires = (("squared_norm", "dual_map"),)

    def __init__(self, *, precision: float = 1e-6, rough: float = 0.1, max_idle: int = 50) -> None:
        if not 0.0 <= rough < 1.0:
            raise ParameterError(f"rough must be in [0, 1), got {rough}")
        self.precision, self.rough = checked_nonnegative(precision, "precision"), rough
        self.max_idle = checked_whole(max_idle, "max_idle")

    def empty(self, problem: Problem) -> Master | MappedMaster:
        """The zero plane alone."""
        return empty_master(problem, 1)

    def improved(self, problem: Problem, model: Master | MappedMaster, plane: Plane) -> Master | MappedMaster:
        """The quadratic program with one more plane, from the solution before it."""
        at = np.flatnonzero(plane.slope)
        grown = model.add([(0, SparseVector(at, plane.slope[at]), float(plane.offset))], problem.task.dim)
        cut = float(grown.slacks(problem.lam)[0] - model.slacks(problem.lam)[0])
        if not cut > self.precision:
            return model.solve(problem.lam, 0.1 * self.precision)  # the planes are there, but the last solution was rough
        return grown.solve(problem.lam, max(0.1 * self.precision, self.rough * cut)).pruned(self.max_idle)

    def solution(self, problem: Problem, model: Master | MappedMaster) -> tuple[Floats, float]:
        """w = grad r*(sum_k alpha_k a_k / lam), and the dual value."""
        return model.weights(problem.lam, problem.task.dim), model.dual(problem.lam)

    def report(self, problem: Problem, state: Bundle) -> dict[str, Floats]:
        """dual_point: u, where w is not linear in it."""
        return dual_point(problem, state.model)
