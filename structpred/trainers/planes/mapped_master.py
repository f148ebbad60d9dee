"""The master problem of cutting planes under any regulariser whose conjugate is known (Saha, Zhang & Vishwanathan 2009, eq. 10).

The problem  min_w lam r(w) + sum_j xi_j  over the planes of `master_qp` has the dual

    max  sum_k alpha_k b_k - lam r*(u),   u = sum_k alpha_k a_k / lam,   w = grad r*(u),

over the same alpha. With a `DualMap`, r* is piecewise quadratic: Newton's method, with exact line searches, solves a quadratic
program of the master's form for the piece of the present u. Scales that adapt are those of one such problem; they and alpha take
turns until the bound, which is that of r itself, is as near as the solution has to be.
"""

from typing import Annotated, Any, NamedTuple

import numpy as np

from structpred.core.products import dot
from structpred.core.regulariser import DualMap, Regulariser, capabilities
from structpred.core.types import Floats
from structpred.runtime.interrupts import abandon_if_asked
from structpred.runtime.memory import check_fits
from structpred.trainers.planes.bundles import Plane, line_search
from structpred.trainers.planes.master_qp import Master, feasible, optimum
from structpred.trainers.problem import Problem
from structpred.trainers.states import Values

#: Newton steps of one solution, and turns of scales that adapt
STEPS, TURNS = 30, 20
#: weights that are zero on the present piece bend by this share: without any, steps run to corners far beyond it
EASED = 1e-3


class MappedMaster(NamedTuple):
    """planes: with their weights alpha. scale, memory: of each group, what `Regulariser.rescale` makes.

    The rest is the problem's. It has the methods of `Master`.
    """

    planes: Master
    scale: Annotated[Floats, Values(0)]
    memory: Floats
    regulariser: Regulariser
    dim: int

    def add(self, planes: Any, dim: int) -> "MappedMaster":
        """With more planes (block, a, b), of weight zero."""
        return self._replace(planes=self.planes.add(planes, dim))

    def solve(self, lam: float, tolerance: float) -> "MappedMaster":
        """The alpha of the optimum to `tolerance` (the largest gain in slope that a block leaves), from the present one on."""
        found = self
        for turn in range(TURNS):
            found = found._solved(lam, tolerance)
            if not self.regulariser.adapts or turn == TURNS - 1:
                break
            u, now = found.point(lam), found._map()
            if found._loss() - lam * now.conjugate([u]) - found.dual(lam) <= tolerance:
                break
            scale, memory = self.regulariser.rescale(found.scale, found.memory, now.squares([u]))
            found = found._replace(scale=scale, memory=memory)
        planes = found.planes
        idle = np.where(planes.alpha > 0.0, 0, self.planes.idle + 1)
        return found._replace(planes=planes._replace(idle=idle))

    def _solved(self, lam: float, tolerance: float) -> "MappedMaster":
        """With the present scales."""
        planes, dual_map, rows = self.planes, self._map(), self._rows()
        scale, low, high = dual_map.expanded(self.dim)
        alpha = planes.alpha
        for _ in range(STEPS):
            abandon_if_asked()
            u = rows.T @ alpha / lam
            gradient = planes.offset - rows @ dual_map.weights(u)
            # in a block, weight moves from planes that have some, the zero plane among them, to steeper ones
            least, most = np.zeros(int(planes.n_blocks)), np.zeros(int(planes.n_blocks))
            sums = np.bincount(planes.block, alpha, int(planes.n_blocks))
            least[sums >= 1.0 - 1e-15] = np.inf
            np.minimum.at(least, planes.block[alpha > 0.0], gradient[alpha > 0.0])
            np.maximum.at(most, planes.block, gradient)
            if not (most - least).max(initial=0.0) > tolerance:
                break
            some = np.flatnonzero((alpha > 0.0) | (gradient > least[planes.block]))
            bends = np.where((u < low) | (u > high) | (low == high), scale, EASED * scale)
            check_fits(24 * len(some) ** 2, f"the inner products of {len(some):,} cutting planes")
            gram = np.ascontiguousarray((rows[some].multiply(bends) @ rows[some].T).toarray())
            offset, target = gradient[some] + gram @ alpha[some] / lam, alpha.copy()
            target[some] = optimum(gram, offset, planes.block[some], alpha[some], lam, 0.3 * tolerance)
            ends = [Plane(rows.T @ one, np.array(dot(planes.offset, one))) for one in (alpha, target)]
            eta = line_search(dual_map, ends[0], ends[1], lam)
            if eta == 0.0:
                break
            alpha = target if eta == 1.0 else feasible((1.0 - eta) * alpha + eta * target, planes.block)
        return self._replace(planes=planes._replace(alpha=alpha))

    def _map(self) -> DualMap:
        found: DualMap = self.regulariser.dual_map()._replace(scale=self.scale)  # type: ignore[attr-defined]
        return found

    def _rows(self) -> Any:
        """The planes as a sparse matrix."""
        from scipy.sparse import csr_array

        return csr_array((self.planes.val, self.planes.idx, self.planes.bounds), shape=(self.planes.n_planes, self.dim))

    def _loss(self) -> float:
        return dot(self.planes.offset, self.planes.alpha)

    def point(self, lam: float) -> Floats:
        """U = sum_k alpha_k a_k / lam."""
        return self.planes.weights(lam, self.dim)

    def weights(self, lam: float, dim: int) -> Floats:
        """w = grad r*(u)."""
        return self._map().weights(self.point(lam))

    def dual(self, lam: float) -> float:
        """The bound of the regulariser at u: a lower bound of the training problem."""
        return self.regulariser.bound(self._loss(), lam, [self.point(lam)])

    def slacks(self, lam: float) -> Floats:
        """xi_j of every block at w: the largest plane, or zero."""
        xi = np.zeros(int(self.planes.n_blocks))
        np.maximum.at(xi, self.planes.block, self.planes.offset - self._rows() @ self.weights(lam, self.dim))
        return xi

    def pruned(self, max_idle: int) -> "MappedMaster":
        """Without the planes that had no weight in the last `max_idle` solutions."""
        return self._replace(planes=self.planes.pruned(max_idle))


def empty_master(problem: Problem, n_blocks: int) -> Master | MappedMaster:
    """No planes yet; for half the squared norm the quadratic program keeps its inner products."""
    regulariser, planes = problem.regulariser, Master.empty(n_blocks)
    if "squared_norm" in capabilities(regulariser):
        return planes
    scale = problem.dual_map.scale.copy()
    return MappedMaster(planes, scale, regulariser.first_memory(len(scale)), regulariser, problem.task.dim)


def dual_point(problem: Problem, master: Master | MappedMaster) -> dict[str, Floats]:
    """dual_point: u, where w is not linear in it."""
    nonlinear = isinstance(master, MappedMaster) and not problem.dual_map.linear
    return {"dual_point": master.point(problem.lam)} if nonlinear else {}  # type: ignore[union-attr]
