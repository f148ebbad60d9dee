"""The master problem of cutting planes: the best weights for the planes found so far, by its dual.

Planes (j, a, b) say that xi_j >= b - <w, a>, and xi_j >= 0. The problem  min_w lam/2 |w|^2 + sum_j xi_j  has the dual

    max  sum_k alpha_k b_k - 1/(2 lam) |sum_k alpha_k a_k|^2,   alpha >= 0, sum of alpha over the planes of a block j <= 1,

with w = sum_k alpha_k a_k / lam. One block is the 1-slack problem (Joachims, Finley & Yu 2009, OP 4), one block a sample
the n-slack problem (Tsochantaridis et al. 2005). Any feasible alpha gives a lower bound of the whole training problem,
since planes only leave something out: the certificate does not rest on how well the dual is solved.

Under any regulariser whose conjugate is known (`MappedMaster`; Saha, Zhang & Vishwanathan 2009, eq. 10) the problem
min_w lam r(w) + sum_j xi_j  over the same planes has the dual

    max  sum_k alpha_k b_k - lam r*(u),   u = sum_k alpha_k a_k / lam,   w = grad r*(u),

over the same alpha. With a `DualMap`, r* is piecewise quadratic: Newton's method, with exact line searches, solves a quadratic
program of the master's form for the piece of the present u. Scales that adapt are those of one such problem; they and alpha take
turns until the bound, which is that of r itself, is as near as the solution has to be.
"""

from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple

import numpy as np

from structpred.core.products import dot
from structpred.core.regulariser import DualMap, Regulariser, capabilities
from structpred.core.sparse import SparseVector
from structpred.core.types import Floats, Integers
from structpred.runtime.interrupts import abandon_if_asked
from structpred.runtime.lazy_names import later
from structpred.runtime.memory import check_fits
from structpred.trainers.planes.bundles import Plane, line_search
from structpred.trainers.problem import Problem
from structpred.trainers.states import FIXED, Values

_kernels = later("structpred.trainers.planes._master_qp_kernels")

#: numbers of the Gram matrix that one compiled call may look at: a tenth of a second, after which a signal is heard
SWEEP_NUMBERS = 10_000_000
#: planes whose inner products are taken in one call, after which a signal is heard
ROWS = 256
#: up to this number of planes are met one by one; for more, sorting all of them by columns pays
FEW = 8


class Master(NamedTuple):
    """P planes as sparse vectors, idx[bounds[k]:bounds[k+1]] with val, and all that is known of them.

    block, offset, alpha, idle: (P,), of plane k its block, its b, its weight, and for how many solutions it had none.
    gram: (P, P), inner products. n_blocks: the number of blocks, a single number.
    """

    idx: Annotated[Integers, Values(0, grows=True)]
    val: Annotated[Floats, Values(grows=True)]
    bounds: Annotated[Integers, Values(0, grows=True)]
    block: Annotated[Integers, Values(0, grows=True)]
    offset: Annotated[Floats, Values(grows=True)]
    alpha: Annotated[Floats, Values(0, 1, grows=True)]
    idle: Annotated[Integers, Values(0, 2**60, grows=True)]
    gram: Annotated[Floats, Values(grows=True)]
    n_blocks: Annotated[Integers, FIXED]

    def fault(self, dim: int) -> str | None:
        """What does not fit together in saved arrays, for planes of length dim; None where all does."""
        n = len(self.offset)
        if not (len(self.block) == len(self.alpha) == len(self.idle) == len(self.bounds) - 1 == n and self.gram.shape == (n, n)):
            return f"gram: the arrays of the planes differ in length: {n} offsets, {len(self.alpha)} weights, and so on"
        if self.bounds[0] != 0 or (np.diff(self.bounds) < 0).any() or not len(self.idx) == len(self.val) == self.bounds[-1]:
            return "bounds: expected ascending numbers from 0 to the number of indices and of values"
        if self.idx.max(initial=-1) >= dim or self.block.max(initial=-1) >= self.n_blocks:
            return f"idx: expected indices below {dim}, and blocks below {self.n_blocks}"
        return None

    @staticmethod
    def empty(n_blocks: int) -> "Master":
        """No planes yet: w = 0."""
        none, nothing = np.empty(0, np.int64), np.empty(0)
        return Master(none, nothing, np.zeros(1, np.int64), none, nothing, nothing, none, np.empty((0, 0)), np.array(n_blocks))

    @property
    def n_planes(self) -> int:
        """How many planes there are."""
        return len(self.offset)

    def add(self, planes: Sequence[tuple[int, SparseVector, float]], dim: int) -> "Master":
        """With more planes (block, a, b), of weight zero; costs their inner products with all planes."""
        if not planes:
            return self
        old, new = self.n_planes, len(planes)
        n_pairs = len(self.idx) + sum(len(a.indices) for _, a, _ in planes)
        check_fits(16 * (old + new) ** 2 + 16 * n_pairs, f"{old + new:,} cutting planes and their inner products")
        idx = np.concatenate([self.idx, *(a.indices for _, a, _ in planes)])
        val = np.concatenate([self.val, *(a.values for _, a, _ in planes)])
        ends = self.bounds[-1] + np.cumsum([len(a.indices) for _, a, _ in planes])
        bounds = np.concatenate((self.bounds, ends)).astype(np.int64)
        gram = np.empty((old + new, old + new))
        gram[:old, :old] = self.gram
        block = np.concatenate((self.block, [j for j, _, _ in planes])).astype(np.int64)
        offset = np.concatenate((self.offset, [b for _, _, b in planes]))
        zeros = np.zeros(new)
        grown = Master(
            idx, val, bounds, block, offset, np.concatenate((self.alpha, zeros)),
            np.concatenate((self.idle, zeros.astype(np.int64))), gram, self.n_blocks,
        )  # fmt: skip
        _fill_gram(gram, old, grown.rows(dim))
        return grown

    def rows(self, dim: int) -> Any:
        """The planes as a sparse matrix."""
        from scipy.sparse import csr_array

        return csr_array((self.val, self.idx, self.bounds), shape=(self.n_planes, dim))

    def solve(self, lam: float, tolerance: float, max_sweeps: int = 1000) -> "Master":
        """The alpha of the optimum to `tolerance` (the largest gain in slope that a block leaves), from the present one on."""
        if not self.n_planes:
            return self
        alpha = optimum(self.gram, self.offset, self.block, self.alpha, lam, tolerance, max_sweeps)
        return self._replace(alpha=alpha, idle=np.where(alpha > 0.0, 0, self.idle + 1))

    def weights(self, lam: float, dim: int) -> Floats:
        """w = sum_k alpha_k a_k / lam."""
        return np.asarray(self.rows(dim).T @ (self.alpha / lam))

    def dual(self, lam: float) -> float:
        """The dual value of alpha: a lower bound of the training problem."""
        return float(self.offset @ self.alpha - self.alpha @ (self.gram @ self.alpha) / (2.0 * lam))

    def slacks(self, lam: float) -> Floats:
        """xi_j of every block at the weights of alpha: the largest plane, or zero."""
        xi = np.zeros(int(self.n_blocks))
        np.maximum.at(xi, self.block, self.offset - self.gram @ self.alpha / lam)
        return xi

    def pruned(self, max_idle: int) -> "Master":
        """Without the planes that had no weight in the last `max_idle` solutions; they come back if they are needed."""
        kept = self.idle < max_idle
        if kept.all():
            return self
        lengths = np.diff(self.bounds)
        pairs = np.repeat(kept, lengths)
        bounds = np.concatenate(([0], np.cumsum(lengths[kept]))).astype(np.int64)
        return Master(
            self.idx[pairs], self.val[pairs], bounds, self.block[kept], self.offset[kept], self.alpha[kept], self.idle[kept],
            self.gram[np.ix_(kept, kept)], self.n_blocks,
        )  # fmt: skip


def optimum(
    gram: Floats, offset: Floats, block: Integers, alpha: Floats, lam: float, tolerance: float, max_sweeps: int = 1000
) -> Floats:
    """The weights that maximise offset . alpha - 1/(2 lam) alpha' gram alpha, to `tolerance`, from the present ones on."""
    members = np.argsort(block, kind="stable")
    starts = np.append(np.unique(block[members], return_index=True)[1], len(block)).astype(np.int64)
    alpha = alpha.copy()
    rest = np.maximum(1.0 - np.add.reduceat(alpha[members], starts[:-1]), 0.0)
    for _ in range(3):  # gradients are kept up to date step by step; and recomputed now and then, to remove rounding errors
        gradient, left = offset - gram @ alpha / lam, max_sweeps
        while left > 0:
            abandon_if_asked()
            n = min(left, max(1, SWEEP_NUMBERS // len(offset) ** 2))
            worst = _kernels().solve_master(gram, offset, 1.0 / lam, starts, members, alpha, rest, gradient, tolerance, n)
            left = left - n if worst > tolerance else 0
        if not worst > tolerance:
            break
    return feasible(alpha, block)


def feasible(alpha: Floats, block: Integers) -> Floats:
    """Weights whose sums over blocks are at most 1 to the last bit, whatever rounding did."""
    sums = np.zeros(int(block.max(initial=-1)) + 1)
    np.add.at(sums, block, alpha)
    return np.asarray(alpha / np.maximum(sums, 1.0)[block])


def _fill_gram(gram: Floats, first: int, rows: Any) -> None:
    """The inner products of the planes from `first` on with all planes. Either way adds in the order of the features."""
    n = len(gram)
    if n - first <= FEW:
        for k in range(first, n):
            abandon_if_asked()
            gram[k] = gram[:, k] = rows @ rows[[k]].toarray()[0]
        return
    columns = rows.T.tocsr()
    for k in range(first, n, ROWS):
        abandon_if_asked()
        some = slice(k, k + ROWS)
        gram[some] = (rows[some] @ columns).toarray()
        gram[:, some] = gram[some].T


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
        planes, dual_map, rows = self.planes, self._map(), self.planes.rows(self.dim)
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
        np.maximum.at(xi, self.planes.block, self.planes.offset - self.planes.rows(self.dim) @ self.weights(lam, self.dim))
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
