"""Block-coordinate Frank-Wolfe with fully corrective blocks: each block remembers corners, and is solved anew among them.

The dual is that of `bcfw`, with w = grad r*(u). Block i keeps the corners (psi_k, offset_k) that the
oracle has found, the truth (0, 0) among them, a weight alpha_k on the simplex for each, and their Gram matrix <psi_k, psi_l>
under the scales of the groups. psi_k = Psi_i^T d_k is kept as d_k, the counts of the parts that differ from the truth's
(`corner_spaces`). A visit

1. scores the parts, asks the oracle for a corner and keeps it;
2. scores all corners by the same part scores, value_k = offset_k - theta_i . d_k;
3. moves weight from the worst corner that has some to the best one, by as much as the dual rises, with the Gram matrix alone,
   until the gap of the block over its corners is a tenth of what it was;
4. moves w by the corners whose weight has changed.

Where a block is full, the two corners of least weight become their weighted mean: a point of the same hull, so that the dual
value stays. Corners that had no weight for some visits are forgotten.

Where w is not linear in u (l1, signs), the Gram matrix is that of an upper bound of r*, which bends at most as fast: a visit
raises a lower bound of the dual that touches it, and w is read off the moved u.
"""

from typing import Annotated, NamedTuple

import numpy as np

from structpred.core.products import dot
from structpred.core.sparse import SparseVector, add_sparse
from structpred.core.types import AnyArray, Floats, Integers
from structpred.core.weights import Vector, Weights
from structpred.errors import ParameterError
from structpred.runtime.lazy_names import later
from structpred.trainers.bcfw import moved, rescaled
from structpred.trainers.blocks.arena import Arena
from structpred.trainers.blocks.corner_spaces import Found, corner_space
from structpred.trainers.problem import Problem, Trainer, once_per_problem
from structpred.trainers.states import COUNT, FIXED, Values

_kernels = later("structpred.task.fast._corner_kernels")

Arrays = tuple[AnyArray, ...]
Counts = Annotated[Integers, COUNT]

#: a visit ends after this number of pairwise steps, or once the gap of the block has fallen to this share
MOST_STEPS, PRECISION = 50, 0.1
#: a corner without weight is forgotten after this number of visits with the oracle
MOST_IDLE = 10
#: cached passes end once the sum of their gaps is this share of that of the pass with the oracle
SETTLED = 0.2
#: the most cached passes after a pass with an oracle that is cheap, or expensive, beside scoring
CHEAP, EXPENSIVE = 1, 300


class Blocks(NamedTuple):
    """counts: how many corners each block has, the truth included. gram: their inner products, (n, K (K + 1) / 2), row by row.

    alpha, offset, idle: weight and offset of each corner, and for how many visits it has had no weight, (n, K).
    """

    counts: Annotated[Integers, Values(1, 2**60)]
    alpha: Annotated[Floats, Values(0, 1 + 1e-6)]
    offset: Floats
    idle: Counts
    gram: Floats

    @staticmethod
    def at_truth(n: int, size: int) -> "Blocks":
        """All weight on slot 0."""
        alpha = np.zeros((n, size))
        alpha[:, 0] = 1.0
        gram = np.zeros((n, size * (size + 1) // 2))
        return Blocks(np.ones(n, np.int64), alpha, np.zeros((n, size)), np.zeros((n, size), np.int64), gram)

    def fault(self, dim: int) -> str | None:
        """What does not fit together in saved arrays; None where all does."""
        size = self.alpha.shape[1]
        if (self.counts > size).any():
            return f"counts: expected at most {size} corners a block"
        if (np.abs(self.alpha.sum(axis=1) - 1.0) > 1e-6).any() or self.alpha[np.arange(size) >= self.counts[:, None]].any():
            return "alpha: expected weights with the sum 1 in every block, and none beyond its corners"
        return None


class CorrectiveState(NamedTuple):
    """weights: w and its average. corners: d of slot k of block i as block i * K + k. sizes: how many coordinates it may have.

    gaps: the last gap seen in each block. point: u, where w is not linear in it; else empty.

    scale: of each group of the dual map, in the present pass. memory: what the regulariser remembers of earlier scales. steps:
    how many visits so far. cached: the summed gap of the last cached pass, infinite before the first one of a pass. Set when the
    objective is computed: bound, the largest dual value so far (that of scales that adapt may fall), and last, whether the last
    iterate, not the average, had the smaller primal. All from steps on are single numbers.
    """

    weights: Weights
    corners: Arena
    sizes: Annotated[Integers, FIXED]
    blocks: Blocks
    gaps: Annotated[Floats, Values(0, np.inf)]
    scale: Annotated[Floats, Values(0)]
    memory: Floats
    steps: Counts
    cached: Annotated[Floats, Values(-np.inf, np.inf)]
    bound: Annotated[Floats, Values(0)]
    last: Annotated[Integers, Values(0, 1)]
    point: Floats

    def fault(self, dim: int) -> str | None:
        """What does not fit together in saved arrays; None where all does."""
        corners, some = self.corners, np.flatnonzero(self.corners.length)
        largest = corners.idx[corners.start[some] + corners.length[some] - 1]
        fits = (largest < self.sizes[some // self.blocks.alpha.shape[1]]).all()
        return None if fits else "corners.idx: a corner has parts that its sample does not have"


class Corrective(Trainer):
    """Block-coordinate Frank-Wolfe whose blocks keep up to K corners and are solved anew among them: few passes, more memory.

    For a certificate: a gap of 1 % and less takes a fifth of the passes of `bcfw`, and at a large C it is reached at all. It
    takes any oracle and surrogate, and any regulariser that has a dual map.

    Parameters
    ----------
    corners : int
        How many corners a block keeps, the truth included; where there are more, the two of least weight are merged. Fewer take
        less memory and more passes.
    cached_passes : int, optional
        After each pass with the oracle at most this many passes without it, until the sum of their gaps is a fifth of that of the
        pass with the oracle. None: 1, or 300 where a call of the oracle is much more expensive than scoring (`Oracle.expensive`,
        and slack rescaling). No clock decides: results would then depend on the machine's load.
    averaged : bool
        Whether to keep the k-weighted average of the iterates, too: what is returned is the one with the smaller primal.

    Raises
    ------
    ParameterError
        For corners < 3 or cached_passes < 0.

    References
    ----------
    Lacoste-Julien, Jaggi, Schmidt and Pletscher (2013), algorithm 3; Lacoste-Julien and Jaggi (2015), On the global linear
    convergence of Frank-Wolfe optimization variants (pairwise and fully corrective steps); Shah, Kolmogorov and Lampert (2015)
    (cached outputs).

    Examples
    --------
    >>> from structpred.models import ChainLabeler
    >>> model = ChainLabeler(trainer=Corrective(), tol=0.001).fit([np.eye(2)], [["a", "b"]])
    >>> model.converged_
    True
    """

    name = "corrective"
    regulariser_requires = ("dual_map",)
    certified = True

    def __init__(self, *, corners: int = 32, cached_passes: int | None = None, averaged: bool = True) -> None:
        if corners < 3 or (cached_passes is not None and cached_passes < 0):
            raise ParameterError(f"corners must be >= 3 and cached_passes >= 0 or None, got {corners} and {cached_passes}")
        self.corners, self.averaged = int(corners), averaged
        self.cached_passes = None if cached_passes is None else int(cached_passes)

    def init_state(self, problem: Problem) -> CorrectiveState:
        """w = 0, all weight at the truth."""
        task, dual_map = problem.task, problem.dual_map
        n, scale = len(task), dual_map.scale.copy()
        return CorrectiveState(
            Weights.zeros(task.dim, task.dtype, averaged=self.averaged), Arena.empty(n * self.corners),
            corner_space(problem).sizes.copy(), Blocks.at_truth(n, self.corners), np.full(n, np.inf), scale,
            problem.regulariser.first_memory(len(scale)), np.array(0), np.array(np.inf), np.array(0.0), np.array(0),
            np.zeros(0 if dual_map.linear else task.dim),
        )  # fmt: skip

    def state_dim(self, problem: Problem) -> int:
        """The number of coordinates of the largest block: `CorrectiveState.fault` looks at those of each."""
        return int(corner_space(problem).sizes.max(initial=1))

    def order(self, problem: Problem, state: CorrectiveState, rng: np.random.Generator, n_pass: int) -> Integers:
        """A permutation of the blocks; then cached passes, item -1 - r standing for one whose order follows from r."""
        n, most = len(problem.task), self.cached_passes
        if most is None:
            most = EXPENSIVE if expensive(problem) else CHEAP
        return np.concatenate([rng.permutation(n), -1 - rng.integers(0, n, most)]).astype(np.int64)

    def update(self, problem: Problem, state: CorrectiveState, item: int) -> tuple[CorrectiveState, bool]:
        """A visit with the oracle, or a whole pass without."""
        state.last.fill(0)
        if item < 0:
            return state, self._cached_pass(problem, state, -1 - item)
        found, share = corner_space(problem).find(problem.surrogate, state.weights.v, item), problem.p.item(item)
        while True:
            gap, moved, needed = self._visit(problem, state, item, found, share / problem.lam)
            if not needed:
                break
            state = state._replace(corners=state.corners.with_space(needed))
        state.gaps[item] = share * (max(gap, 0.0) + max(found.step.bound - found.step.violation, 0.0))
        state.cached.fill(np.inf)
        return state, moved

    def _visit(
        self, problem: Problem, state: CorrectiveState, i: int, found: Found, factor: float
    ) -> tuple[float, bool, int]:  # fmt: skip
        """Steps 1-4 of block i: (gap of H_i, whether w moved, pairs that the arena must have space for first; 0: it is done)."""
        space, arena, blocks = corner_space(problem), state.corners[:], state.blocks[:]
        corner = (*found.corner, problem.surrogate.offset(found.step))
        if space.compiled is not None and not len(state.point):
            calls, corpus = space.compiled
            metric = self._metric(problem, state)
            gap, moved, needed = calls.visit(
                averaged_weights(state), metric, arena, blocks, i, corner, factor, _RULES, MOST_IDLE, corpus
            )
            return gap, moved, needed
        slot, new, needed = _kernels().place(arena, blocks, i, *corner)
        if needed:
            return 0.0, False, needed
        if new:
            psi = space.lift(i, found.corner) if found.difference is None else found.difference
            self._multiply(problem, state, i, slot, psi)
        return *self._settle(problem, state, i, factor, MOST_IDLE), 0

    def _multiply(self, problem: Problem, state: CorrectiveState, i: int, slot: int, psi: SparseVector) -> None:
        """The inner products of a corner with those before it: theirs with its difference of features."""
        kernels, metric, first = _kernels(), self._metric(problem, state), i * self.corners
        kernels.spread(*psi, metric)
        row = dots_from(corner_space(problem).scores(scratch_of(problem), i), state.corners, first, slot + 1)
        state.blocks.gram[i, slot * (slot + 1) // 2 :][: slot + 1] = row
        kernels.clear(psi.indices, metric)

    def _settle(self, problem: Problem, state: CorrectiveState, i: int, factor: float, most_idle: int) -> tuple[float, bool]:
        """Pairwise steps of a block, and w moved by what they changed; (gap of H_i over its corners, whether w moved)."""
        kernels, space, weights = _kernels(), corner_space(problem), averaged_weights(state)
        dots = dots_from(space.scores(state.weights.v, i), state.corners, i * self.corners, state.blocks.counts.item(i))
        rules = factor, _RULES, most_idle, state.sizes.item(i)
        gap, at, counts = kernels.correct(state.corners[:], state.blocks[:], i, dots, *rules)
        psi = space.lift(i, SparseVector(at, counts))
        if len(psi.indices) and len(state.point):
            changes = moved(state, psi, factor, problem.dual_map, state.scale)
            kernels.add(weights, psi.indices, changes, 1.0, _PLAIN)
        elif len(psi.indices):
            kernels.add(weights, *psi, factor, self._metric(problem, state))
        kernels.include(weights)
        return gap, bool(psi.values.any())

    def _cached_pass(self, problem: Problem, state: CorrectiveState, seed: int) -> bool:
        """Visits among remembered corners, unless the last cached pass had little left to do; whether one moved."""
        if state.cached.item() <= SETTLED * state.gaps.sum():
            return False
        order = np.random.Generator(np.random.PCG64(seed)).permutation(len(problem.task))
        compiled, p, lam = corner_space(problem).compiled, problem.p, problem.lam
        if compiled is not None and not len(state.point):
            where = averaged_weights(state), self._metric(problem, state), state.corners[:], state.blocks[:]
            total, any_moved = compiled[0].cached_pass(*where, order, p, lam, _RULES, compiled[1])
        else:
            total, any_moved = 0.0, False
            for i in order.tolist():
                gap, changed = self._settle(problem, state, i, p.item(i) / lam, 0)
                total += p.item(i) * gap
                any_moved |= changed
        state.cached.fill(total)
        return bool(any_moved)

    def finish_pass(self, problem: Problem, state: CorrectiveState) -> CorrectiveState:
        """Where the regulariser adapts its scales: those of the next pass, and what belongs to the same dual point under them."""
        if not problem.regulariser.adapts:
            return state
        state = rescaled(problem, state, self.dual_point(problem, state))
        self._multiply_all(problem, state)
        return state

    def _multiply_all(self, problem: Problem, state: CorrectiveState) -> None:
        """The Gram matrices of all blocks, anew: the metric has changed."""
        for i, count in enumerate(state.blocks.counts.tolist()):
            for k in range(1, count):
                corner = SparseVector(*state.corners.block(i * self.corners + k))
                self._multiply(problem, state, i, k, corner_space(problem).lift(i, corner))

    def dual_point(self, problem: Problem, state: CorrectiveState) -> Floats:
        """u = sum_i p_i / lam sum_k alpha_ik psi_ik in float64."""
        kernels, space, corners, blocks = _kernels(), corner_space(problem), state.corners[:4], state.blocks
        factors, out = (problem.p / problem.lam).tolist(), np.zeros(problem.task.dim)
        for i in np.flatnonzero(blocks.counts > 1).tolist():
            alpha = blocks.alpha[i, : blocks.counts[i]]
            mixed = SparseVector(*kernels.mixture(corners, i * self.corners, alpha, int(state.sizes[i])))
            add_sparse(out, space.lift(i, mixed), factors[i])
        return out

    def weights(self, problem: Problem, state: CorrectiveState) -> Vector:
        """The average, or the last iterate where that was found to be better or no average is kept; in the regulariser's domain,
        which rounding may have left."""
        found = state.weights.current() if state.last else state.weights.average()
        return problem.regulariser.prox(found, 0.0) if len(state.point) else found

    def objective(self, problem: Problem, state: CorrectiveState) -> tuple[float, float]:
        """The smaller primal of last iterate and average, and the dual value, from the corners in float64."""
        blocks = state.blocks
        loss = dot(problem.p, (blocks.alpha * blocks.offset).sum(axis=1))
        dual = problem.regulariser.bound(loss, problem.lam, [self.dual_point(problem, state)])
        inside = (lambda w: problem.regulariser.prox(w, 0.0)) if len(state.point) else (lambda w: w)
        primal = problem.primal(inside(state.weights.current()))
        if self.averaged:
            average = problem.primal(inside(state.weights.average()))
            state.last.fill(primal < average)
            primal = min(primal, average)
        state.bound.fill(max(dual, state.bound.item()))
        return primal, state.bound.item()

    def _metric(self, problem: Problem, state: CorrectiveState) -> Arrays:
        """What corners are measured by, as the kernels take it."""
        return scratch_of(problem), problem.dual_map.ends, state.scale, *NO_KERNEL

    def gap_estimate(self, problem: Problem, state: CorrectiveState) -> float:
        """The sum of the last gap seen in each block; stale, so only a guess."""
        return float(state.gaps.sum())


_RULES = (MOST_STEPS, PRECISION)


#: the part of a metric that is for functions of kernels, where there are none
NO_KERNEL = np.zeros((0, 0), np.float32), np.zeros((0, 2), np.int64)


#: the metric of changes of the weights themselves
_PLAIN = np.empty(0), np.array([np.iinfo(np.int64).max]), np.ones(1), *NO_KERNEL


def expensive(problem: Problem) -> bool:
    """Whether a call of the oracle takes much more time than scoring."""
    return callable(getattr(problem.surrogate, "search", None)) or bool(getattr(problem.task, "expensive", False))


def averaged_weights(state: CorrectiveState) -> Arrays:
    """Weights and their average, as the kernels take them."""
    weights = state.weights
    return weights.v, weights.u, weights.mass, weights.scaled_mass, state.steps


def dots_from(scores: Vector, arena: Arena, first: int, n: int) -> Floats:
    """The inner products of scores of coordinates with n corners."""
    from structpred.core._sparse_kernels import dots_from as found

    slots = slice(first, first + n)
    return found(scores, arena.idx, arena.val, arena.start[slots], arena.length[slots])


@once_per_problem
def scratch_of(problem: Problem) -> Floats:
    """Zeros between any two calls of a kernel."""
    return np.zeros(problem.task.dim)
