"""Block-coordinate Frank-Wolfe on the dual (Lacoste-Julien, Jaggi, Schmidt & Pletscher 2013, algorithms 3 and 4).

The dual of  min_w lam r(w) + sum_i p_i H_i(w),  with H_i a maximum of linear pieces offset_y - <w, psi_i(y)>, is

    max  sum_i l_i - lam r*(u),   u = sum_i u_i,   u_i = p_i/lam sum_y alpha_iy psi_i(y),   l_i = p_i sum_y alpha_iy offset_y

with alpha_i in the simplex of the outputs of instance i, and w = grad r*(u), the regulariser's dual map: w = u for 1/2 |w|^2. One
step moves one block towards the corner that the oracle finds. Blocks are kept as sparse float64 vectors (features), so that the
same lines serve every task; they do not depend on the dual map, whose scales may change between passes. w may be float32.
"""

from dataclasses import replace
from typing import Annotated, Any, NamedTuple

import numpy as np

from structpred.core.regulariser import DualMap, Regulariser
from structpred.core.sparse import SparseVector
from structpred.core.types import Floats, Integers
from structpred.core.weights import Vector, Weights
from structpred.runtime.lazy_names import later
from structpred.task.steps import running_sum
from structpred.trainers.blocks.arena import Arena
from structpred.trainers.problem import Problem, Trainer
from structpred.trainers.states import COUNT, Values

_kernels = later("structpred.trainers.blocks._bcfw_kernels")


class BCFWState(NamedTuple):
    """weights: w = v and its average. blocks: the u_i. offsets: the l_i. gaps: the last gap seen in each block (inf: never).

    point: u, where w is not linear in it; else empty. scale: of each group of the dual map, in the present pass.
    memory: what the regulariser remembers of earlier scales. steps: how many so far, a single number.
    """

    weights: Weights
    blocks: Arena
    offsets: Floats
    gaps: Annotated[Floats, Values(0, np.inf)]
    point: Floats
    scale: Annotated[Floats, Values(0)]
    memory: Floats
    steps: Annotated[Integers, COUNT]


class BCFW(Trainer):
    """The default trainer: block-coordinate Frank-Wolfe with exact line search and a certified gap.

    A block is one vector, which is all that is remembered: `Corrective` closes gaps in fewer passes, with more memory.

    Parameters
    ----------
    averaged : bool
        Whether to return the k-weighted average of the iterates (section 4, "averaging"); False: the last iterate.
    gap_sampling : bool
        Visit blocks in proportion to their last gap (Osokin et al. 2016), with a uniform pass every fifth.

    References
    ----------
    Lacoste-Julien, Jaggi, Schmidt and Pletscher (2013), algorithms 3 and 4.

    Examples
    --------
    >>> from structpred.models import ChainLabeler
    >>> model = ChainLabeler(trainer=BCFW(gap_sampling=True), tol=0.01).fit([np.eye(2)], [["a", "b"]])
    >>> model.converged_
    True
    """

    name = "bcfw"
    regulariser_requires = ("dual_map",)
    certified = True

    def __init__(self, *, averaged: bool = True, gap_sampling: bool = False) -> None:
        self.averaged, self.gap_sampling = averaged, gap_sampling

    def init_state(self, problem: Problem) -> BCFWState:
        """Line 1: w = u_i = 0, l_i = 0; every alpha_i is at the truth."""
        n, dual_map = len(problem.task), problem.dual_map
        return BCFWState(
            Weights.zeros(problem.task.dim, problem.task.dtype, averaged=self.averaged), Arena.empty(n), np.zeros(n),
            np.full(n, np.inf), np.zeros(0 if dual_map.linear else problem.task.dim), dual_map.scale.copy(),
            problem.regulariser.first_memory(len(dual_map.scale)), np.array(0),
        )  # fmt: skip

    def order(self, problem: Problem, state: BCFWState, rng: np.random.Generator, n_pass: int) -> Integers:
        """Line 3: a permutation, or n draws in proportion to the gaps."""
        n = len(problem.task)
        known = 0 < state.gaps.sum() < np.inf
        if self.gap_sampling and known and n_pass % 5:
            return rng.choice(n, size=n, p=state.gaps / state.gaps.sum())
        return rng.permutation(n)

    def update(self, problem: Problem, state: BCFWState, item: int) -> tuple[BCFWState, bool]:
        """Lines 4-8 for one block: the corner u_s = p_i psi / lam, l_s = p_i offset; the line search; the updates."""
        step = problem.surrogate.term(problem.task, state.weights.v, item)  # line 4
        offset = problem.surrogate.offset(step)
        frank_wolfe_step = _kernels().frank_wolfe_step
        weights, blocks, dual_map, share = state.weights, state.blocks, problem.dual_map, problem.p.item(item)
        l_i, l_s, factor = state.offsets.item(item), share * offset, share / problem.lam
        where = (
            (weights.v, weights.u, weights.scaled_mass.item()), state.point,
            (dual_map.ends, state.scale, dual_map.low, dual_map.high),
        )  # fmt: skip
        psi = (step.difference.indices, step.difference.values)
        size = len(psi[0]) + blocks.length.item(item)
        gap, gamma, needed = frank_wolfe_step(*where, blocks[:], item, psi, factor, l_s - l_i, problem.lam)
        if needed:
            state = state._replace(blocks=blocks.with_room(item, needed))
            frank_wolfe_step(*where, state.blocks[:], item, psi, factor, l_s - l_i, problem.lam)
        if gamma > 0.0:
            state.offsets[item] = (1.0 - gamma) * l_i + gamma * l_s
        k = state.steps.item() + 1
        state.steps.fill(k)
        if self.averaged:
            weights.include(float(k))
        # the safe gap: what a better output than the one found could still add
        state.gaps[item] = max(gap, 0.0) + float(problem.p[item]) * max(step.bound - step.violation, 0.0)
        return state, gamma > 0.0 and size > 0

    def finish_pass(self, problem: Problem, state: BCFWState) -> BCFWState:
        """Where the regulariser adapts its scales: those of the next pass, and the weights that belong to the same blocks."""
        if not problem.regulariser.adapts:
            return state
        return rescaled(problem, state, np.concatenate([piece.copy() for piece in state.blocks.pieces_of_sum(problem.task.dim)]))

    def relabelled(self, problem: Problem, state: BCFWState, rows: Integers) -> BCFWState:
        """The blocks of these instances begin at the new truth, the others stay: they are as feasible as before."""
        if not len(rows):
            return state
        new, blocks = self.init_state(problem), state.blocks
        for array, value in ((blocks.length, 0), (state.offsets, 0.0), (state.gaps, np.inf)):
            array[rows] = value
        u = np.concatenate([piece.copy() for piece in blocks.pieces_of_sum(problem.task.dim)])
        new.weights.v[:] = problem.dual_map._replace(scale=state.scale).weights(u)
        new = new._replace(blocks=blocks, offsets=state.offsets, gaps=state.gaps, scale=state.scale, memory=state.memory)
        return new._replace(point=u) if len(state.point) else new

    def weights(self, problem: Problem, state: BCFWState) -> Vector:
        """The average, or the present weights; in the regulariser's domain, which rounding may have left."""
        found = state.weights.average()
        return problem.regulariser.prox(found, 0.0) if len(state.point) else found

    def objective(self, problem: Problem, state: BCFWState) -> tuple[float, float]:
        """Primal at the weights to return, and the dual value, from the blocks in float64 (w may have rounded)."""
        return problem.primal(self.weights(problem, state)), self._dual(problem, state)

    def last_objective(self, problem: Problem, state: BCFWState) -> tuple[Vector, float | None, float | None]:
        """`weights` and `objective` of a state that is not used again: the average in place."""
        dual = self._dual(problem, state)
        weights = self.weights(problem, state) if len(state.point) else state.weights.average_in_place()
        return weights, problem.primal(weights), dual

    def _dual(self, problem: Problem, state: BCFWState) -> float:
        loss = self.dual_part(problem, state)
        return problem.regulariser.bound(loss, problem.lam, state.blocks.pieces_of_sum(problem.task.dim))

    # what CoCoA asks of the solver of a shard (trainers/cocoa.py)

    def local_problem(self, problem: Problem, curvature: DualMap) -> Problem:
        """w moves sigma' times as fast as u, for each weight its own sigma'; the steps allow for it."""
        return replace(problem, regulariser=_Curved(curvature))

    def begin(self, problem: Problem, blocks: BCFWState, w: Floats) -> BCFWState:
        """The blocks at other weights than their sum, and a new average."""
        weights = Weights.zeros(problem.task.dim, problem.task.dtype, averaged=self.averaged)
        weights.v[:] = w
        return blocks._replace(weights=weights)

    def without_weights(self, state: BCFWState) -> BCFWState:
        """The blocks alone."""
        return state._replace(weights=Weights.zeros(0, state.weights.v.dtype))

    def own_sum(self, problem: Problem, state: BCFWState) -> Floats:
        """u, the sum of the blocks."""
        out = np.zeros(problem.task.dim)
        state.blocks.add_all_into(out)
        return out

    def dual_part(self, problem: Problem, state: BCFWState) -> float:
        """sum_i l_i, in order."""
        return running_sum(state.offsets)

    def mixed(self, before: BCFWState, state: BCFWState, eta: float) -> BCFWState:
        """Each block (1 - eta) times what it was before plus eta times what it is: as feasible as both."""
        n = int(before.blocks.length.sum() + state.blocks.length.sum())
        blocks = Arena.empty(len(state.offsets)).with_space(n)
        _kernels().mix_blocks(before.blocks[:], state.blocks[:], eta, blocks[:])
        return state._replace(blocks=blocks, offsets=(1.0 - eta) * before.offsets + eta * state.offsets)

    def gap_estimate(self, problem: Problem, state: BCFWState) -> float:
        """The sum of the last gap seen in each block; stale, so only a guess."""
        return float(state.gaps.sum())


def rescaled(problem: Problem, state: Any, u: Floats) -> Any:
    """The state with the scales of the next pass, and the weights that belong to its dual point u under them."""
    dual_map, weights = problem.dual_map, state.weights
    scale, memory = problem.regulariser.rescale(state.scale, state.memory, dual_map.squares([u]))
    w = dual_map._replace(scale=scale).weights(u)
    if len(weights.u):
        weights.u[:] += float(weights.scaled_mass) * (w - weights.v)
    weights.v[:] = w
    return state._replace(scale=scale, memory=memory, point=u if len(state.point) else state.point)


def moved(state: Any, psi: SparseVector, factor: float, dual_map: DualMap, scale: Floats) -> Floats:
    """The changes of v that go with a step of the state's `point` along psi, which is made here."""
    changes = np.empty(len(psi.values))
    arrays = (dual_map.ends, scale, dual_map.low, dual_map.high)
    _kernels().move_point(state.point, state.weights.v, arrays, psi.indices, psi.values, factor, changes)
    return changes


class _Curved(Regulariser):
    """The one of a dual map."""

    def __init__(self, table: DualMap) -> None:
        self.table = table

    def dual_map(self) -> DualMap:
        """The table."""
        return self.table
