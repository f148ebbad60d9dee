"""Block-coordinate Frank-Wolfe with fully corrective blocks: each block remembers corners, and is solved anew among them.

The dual is that of `bcfw`, with w = grad r*(u) linear in the dual point u. Block i keeps the corners (psi_k, offset_k) that the
oracle has found, the truth (0, 0) among them, a weight alpha_k on the simplex for each, and their Gram matrix <psi_k, psi_l>
under the scales of the groups. A visit

1. asks the oracle for a corner and keeps it;
2. scores all corners once, value_k = offset_k - <w, psi_k>;
3. moves weight from the worst corner that has some to the best one, by as much as the dual rises, with the Gram matrix alone,
   until the gap of the block over its corners is a tenth of what it was;
4. moves w by the corners whose weight has changed.

Where a block is full, the two corners of least weight become their weighted mean: a point of the same hull, so that the dual
value stays. Corners that had no weight for some visits are forgotten.
"""

from collections.abc import Iterator
from functools import lru_cache
from types import ModuleType
from typing import Annotated, NamedTuple

import numpy as np
import numpy.typing as npt

from structpred.core.regulariser import Regulariser
from structpred.core.weights import Vector, Weights
from structpred.errors import ParameterError
from structpred.trainers.arena import Arena
from structpred.trainers.problem import Problem, Trainer, once_per_problem
from structpred.trainers.states import COUNT, Values

Floats = npt.NDArray[np.float64]
Arrays = tuple[npt.NDArray[np.generic], ...]
Counts = Annotated[npt.NDArray[np.int64], COUNT]

#: a visit ends after so many pairwise steps, or once the gap of the block has fallen to this share
MOST_STEPS, PRECISION = 50, 0.1
#: a corner without weight is forgotten after so many visits with the oracle
MOST_IDLE = 10
#: cached passes end once the sum of their gaps is this share of that of the pass with the oracle
SETTLED = 0.2


class Blocks(NamedTuple):
    """counts: how many corners each block has, the truth included. gram: their inner products, (n, K (K + 1) / 2), row by row.

    alpha, offset, idle: weight and offset of each corner, and for how many visits it has had no weight, (n, K).
    """

    counts: Annotated[npt.NDArray[np.int64], Values(1, 2**60)]
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
    """weights: w and its average. corners: psi of slot k of block i as block i * K + k. gaps: the last gap seen in each block.

    scale: of each group of the dual map, in the present pass. memory: what the regulariser remembers of earlier scales. steps:
    how many visits so far. cached: the summed gap of the last cached pass, infinite before the first one of a pass. Set when the
    objective is computed: bound, the largest dual value so far (that of scales that adapt may fall), and last, whether the last
    iterate, not the average, had the smaller primal. All from steps on are single numbers.
    """

    weights: Weights
    corners: Arena
    blocks: Blocks
    gaps: Annotated[Floats, Values(0, np.inf)]
    scale: Annotated[Floats, Values(0)]
    memory: Floats
    steps: Counts
    cached: Annotated[Floats, Values(-np.inf, np.inf)]
    bound: Annotated[Floats, Values(0)]
    last: Annotated[npt.NDArray[np.int64], Values(0, 1)]


class Corrective(Trainer):
    """Block-coordinate Frank-Wolfe whose blocks keep up to K corners and are solved anew among them: few passes, more memory.

    For a certificate: a gap of 1 % and less takes a fifth of the passes of `bcfw`, and at a large C it is reached at all. It
    takes any oracle and surrogate, and any regulariser whose weights are linear in the dual point.

    Parameters
    ----------
    corners : int
        How many corners a block keeps, the truth included. More take more memory (a corner is as long as the features that
        differ); fewer are merged, which costs passes.
    cached_passes : int
        After each pass with the oracle at most this many passes without it, until the sum of their gaps is a fifth of that of the
        pass with the oracle. Worthwhile where the oracle is expensive: 100 for label graphs and slack rescaling, 0 for chains if
        CPU time counts more than passes.
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

    def __init__(self, *, corners: int = 32, cached_passes: int = 1, averaged: bool = True) -> None:
        if corners < 3 or cached_passes < 0:
            raise ParameterError(f"corners must be >= 3 and cached_passes >= 0, got {corners} and {cached_passes}")
        self.corners, self.cached_passes, self.averaged = int(corners), int(cached_passes), averaged

    @classmethod
    def fits(cls, regulariser: Regulariser) -> bool:
        """Whether its weights are linear in the dual point: inner products of corners then say how w moves."""
        return bool(getattr(regulariser.dual_map(), "linear", True))  # type: ignore[attr-defined]

    def init_state(self, problem: Problem) -> CorrectiveState:
        """w = 0, all weight at the truth."""
        task, dual_map = problem.task, problem.dual_map
        n, scale = len(task), dual_map.scale.copy()
        return CorrectiveState(
            Weights.zeros(task.dim, task.dtype, averaged=self.averaged), Arena.empty(n * self.corners),
            Blocks.at_truth(n, self.corners), np.full(n, np.inf), scale, problem.regulariser.first_memory(len(scale)),
            np.array(0), np.array(np.inf), np.array(0.0), np.array(0),
        )  # fmt: skip

    def order(self, problem: Problem, state: CorrectiveState, rng: np.random.Generator, n_pass: int) -> npt.NDArray[np.int64]:
        """A permutation of the blocks; then cached passes, item -1 - r standing for one whose order follows from r."""
        n = len(problem.task)
        return np.concatenate([rng.permutation(n), -1 - rng.integers(0, n, self.cached_passes)]).astype(np.int64)

    def update(self, problem: Problem, state: CorrectiveState, item: int) -> tuple[CorrectiveState, bool]:
        """A visit with the oracle, or a whole pass without."""
        state.last.fill(0)
        if item < 0:
            return state, self._cached_pass(problem, state, -1 - item)
        step = problem.surrogate.term(problem.task, state.weights.v, item)
        piece = (step.difference.indices, step.difference.values, problem.surrogate.offset(step))
        share, visit = problem.p.item(item), _kernels().visit
        while True:
            weights, metric, arena = self._places(problem, state)
            gap, moved, needed = visit(weights, metric, arena, state.blocks[:], item, piece, share, problem.lam, _RULES)
            if not needed:
                break
            state = state._replace(corners=state.corners.with_space(needed))
        state.gaps[item] = max(gap, 0.0) + share * max(step.bound - step.violation, 0.0)
        state.cached.fill(np.inf)
        return state, moved

    def _cached_pass(self, problem: Problem, state: CorrectiveState, seed: int) -> bool:
        """Visits among remembered corners, unless the last cached pass had little left to do; whether one moved."""
        if state.cached.item() <= SETTLED * state.gaps.sum():
            return False
        order = np.random.Generator(np.random.PCG64(seed)).permutation(len(problem.task))
        total, moved = _kernels().cached_pass(
            *self._places(problem, state), state.blocks[:], order, problem.p, problem.lam, _RULES
        )
        state.cached.fill(total)
        return bool(moved)

    def finish_pass(self, problem: Problem, state: CorrectiveState) -> CorrectiveState:
        """Where the regulariser adapts its scales: those of the next pass, and what belongs to the same dual point under them."""
        if not problem.regulariser.adapts:
            return state
        dual_map, weights = problem.dual_map, state.weights
        u = np.concatenate([piece.copy() for piece in self._dual_point(problem, state)])
        scale, memory = problem.regulariser.rescale(state.scale, state.memory, dual_map.squares([u]))
        w = dual_map._replace(scale=scale).weights(u)
        if self.averaged:
            weights.u[:] += float(weights.scaled_mass) * (w - weights.v)
        weights.v[:] = w
        state = state._replace(scale=scale, memory=memory)
        _, metric, arena = self._places(problem, state)
        _kernels().all_products(arena, state.blocks[:], metric)
        return state

    def _dual_point(self, problem: Problem, state: CorrectiveState) -> Iterator[Floats]:
        """u = sum_i p_i / lam sum_k alpha_ik psi_ik in float64, piece by piece; each is good until the next one comes."""
        coefs, dim = (problem.p[:, None] / problem.lam * state.blocks.alpha).ravel(), problem.task.dim
        for first in range(0, dim, 1 << 18):
            piece = np.zeros(min(dim - first, 1 << 18))
            _kernels().add_corners(piece, first, state.corners[:], coefs)
            yield piece

    def weights(self, problem: Problem, state: CorrectiveState) -> Vector:
        """The average, or the last iterate where that was found to be better or no average is kept."""
        return state.weights.current() if state.last else state.weights.average()

    def objective(self, problem: Problem, state: CorrectiveState) -> tuple[float, float]:
        """The smaller primal of last iterate and average, and the dual value, from the corners in float64."""
        blocks = state.blocks
        loss = float(problem.p @ (blocks.alpha * blocks.offset).sum(axis=1))
        dual = problem.regulariser.bound(loss, problem.lam, self._dual_point(problem, state))
        primal = problem.primal(state.weights.current())
        if self.averaged:
            average = problem.primal(state.weights.average())
            state.last.fill(primal < average)
            primal = min(primal, average)
        state.bound.fill(max(dual, state.bound.item()))
        return primal, state.bound.item()

    def _places(self, problem: Problem, state: CorrectiveState) -> tuple[Arrays, Arrays, Arrays]:
        """(weights, metric, arena) as the kernels take them: what corners are measured by is chosen here."""
        return averaged_weights(state), (scratch_of(problem), problem.dual_map.ends, state.scale, *NO_KERNEL), state.corners[:]

    def gap_estimate(self, problem: Problem, state: CorrectiveState) -> float:
        """The sum of the last gap seen in each block; stale, so only a guess."""
        return float(state.gaps.sum())


_RULES = (MOST_STEPS, PRECISION, MOST_IDLE)


#: the part of a metric that is for functions of kernels, where there are none
NO_KERNEL = np.zeros((0, 0), np.float32), np.zeros((0, 2), np.int64)


def averaged_weights(state: CorrectiveState) -> Arrays:
    """Weights and their average, as the kernels take them."""
    weights = state.weights
    return weights.v, weights.u, weights.mass, weights.scaled_mass, state.steps


@once_per_problem
def scratch_of(problem: Problem) -> Floats:
    """Zeros between any two calls of a kernel."""
    return np.zeros(problem.task.dim)


@lru_cache(maxsize=1)
def _kernels() -> ModuleType:
    """Loaded once: they are called at every step."""
    from structpred.trainers import _corrective_kernels

    return _corrective_kernels
