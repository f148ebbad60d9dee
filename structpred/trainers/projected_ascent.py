"""Block-coordinate ascent on the dual of max-margin Markov networks in part counts, by projections.

The dual of  min_w lam/2 |w|^2 + sum_i p_i H_i(w),  H_i the margin-rescaled hinge (Taskar et al. 2003, eq. 9), is

    max  sum_i p_i (c_i + ell_i . mu_i) - lam/2 |w|^2,   w = sum_i p_i/lam Psi_i^T (mu_i(truth) - mu_i),

with mu_i in the convex hull of the part counts of all outputs of instance i. A step moves one block to the projection of
mu_i + s_i / q_i onto that hull, s_i = Psi_i w + ell_i, with exact line search; q_i is the curvature along the last direction.
Where Psi_i Psi_i^T is a multiple of the identity, as for LabelRows, that is the exact optimum of the block, over all outputs at
once (the sequential dual method of Keerthi et al. 2008).
"""

from functools import partial
from typing import Annotated, NamedTuple, cast

import numpy as np

from structpred.core.own_code import blamed, own_code
from structpred.core.products import dot
from structpred.core.regulariser import pieces_of
from structpred.core.types import Floats, Integers
from structpred.core.weights import Vector
from structpred.errors import OracleError
from structpred.objectives.margin import MarginRescaling
from structpred.projections.active_set import nearest_mixture
from structpred.runtime.memory import check_fits
from structpred.task.task import PROBED, Task
from structpred.trainers.problem import Problem, Trainer
from structpred.trainers.states import FIXED, Values


class AscentState(NamedTuple):
    """w: the weights. mu: the points of all blocks, flat; block i is offsets[i]:offsets[i+1]. curvature: q_i of each block, in
    units of p_i. scratch: zeros, between steps.
    """

    w: Vector
    mu: Floats
    offsets: Annotated[Integers, FIXED]
    curvature: Annotated[Floats, Values(5e-324)]
    scratch: Annotated[Floats, FIXED]


class ProjectedAscent(Trainer):
    """Few passes to a certified optimum where outputs share their features; oracles without `project` take calls of argmax.

    It keeps a dense point of the hull for each instance: n times the number of parts.
    """

    name = "projected_ascent"
    requires = ("project",)
    kinds = (MarginRescaling,)
    certified = True

    def init_state(self, problem: Problem) -> AscentState:
        """Every block at the truth: w = 0."""
        task = cast(Task, problem.task)
        offsets = np.cumsum([0, *(task.features.n_parts(i) for i in range(len(task)))]).astype(np.int64)
        check_fits(8 * int(offsets[-1]), f"{offsets[-1]:,} part counts, one for each part of each sample,")
        mu, scratch, curvature = np.zeros(offsets[-1]), task.features.scratch(), np.empty(len(task))
        w = np.zeros(task.dim, task.dtype)
        for i, parts in enumerate(task.parts):
            block = mu[offsets[i] : offsets[i + 1]]
            np.add.at(block, parts, 1.0)
            curvature[i] = self._curvature(problem, i, task.features.spread(i, block, scratch), block)
            task.features.flush(i, scratch, 0.0, w)
        return AscentState(w, mu, offsets, curvature, scratch)

    @staticmethod
    def _curvature(problem: Problem, i: int, square: float, direction: Floats) -> float:
        """p_i/lam |Psi^T d|^2 / |d|^2; 1 where it says nothing."""
        length = dot(direction, direction)
        found = float(problem.p[i]) / problem.lam * square / length if length > 0.0 else 0.0
        return found if found > 0.0 else 1.0

    def update(self, problem: Problem, state: AscentState, item: int) -> tuple[AscentState, bool]:
        """One block towards its projection, as far as the dual rises."""
        task, surrogate = cast(Task, problem.task), cast(MarginRescaling, problem.surrogate)
        mu = state.mu[state.offsets[item] : state.offsets[item + 1]]
        scores = task.scores(state.w, item) + surrogate.loss_weight * task.costs(item)[1]
        point = mu + scores / state.curvature[item]
        project = getattr(task.oracle, "project", None) or partial(nearest_mixture, task.oracle)
        try:
            direction = project(point, task.shapes[item]) - mu
        except Exception as error:
            raise blamed(error, item, task.oracle, "project") from error
        if item < PROBED and own_code(task.oracle):
            # how far the answer leaves the point behind: no answer of the hull is further towards it than all outputs
            ahead, found = point - mu - direction, mu + direction
            most = float(ahead[task.parts_found(item, task.infer(ahead, item)[0])].sum())
            if task.oracle.exact and ahead @ found > most + 1e-6 * (1.0 + np.abs(ahead) @ np.abs(found)):
                name = type(task.oracle).__name__
                raise OracleError(f"sample {item}: {name}.project gave a point outside the hull of all outputs")
        slope = dot(scores, direction)
        square = task.features.spread(item, direction, state.scratch)
        bend = float(problem.p[item]) / problem.lam * square
        step = min(1.0, slope / bend) if bend > 0.0 else 1.0
        rises = slope > 0.0
        if rises:
            mu += step * direction
            state.curvature[item] = self._curvature(problem, item, square, direction)
        task.features.flush(item, state.scratch, -float(problem.p[item]) / problem.lam * step if rises else 0.0, state.w)
        return state, rises

    def weights(self, problem: Problem, state: AscentState) -> Vector:
        """The present weights."""
        return state.w.copy()

    def objective(self, problem: Problem, state: AscentState) -> tuple[float, float]:
        """Primal at the weights, and the dual value, with the sum over the blocks recomputed in float64."""
        task, surrogate, loss = cast(Task, problem.task), cast(MarginRescaling, problem.surrogate), 0.0
        errors = -state.mu
        for i, parts in enumerate(task.parts):
            block = slice(state.offsets[i], state.offsets[i + 1])
            constant, costs = task.costs(i)
            loss += float(problem.p[i]) * (constant + dot(costs, state.mu[block]))
            np.add.at(errors[block], parts, 1.0)
        total = task.features.total(errors, state.offsets, problem.p / problem.lam)
        bound = problem.regulariser.bound(surrogate.loss_weight * loss, problem.lam, pieces_of(total))
        return problem.primal(state.w), bound
