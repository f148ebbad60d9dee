"""Fully corrective block-coordinate Frank-Wolfe in kernel form: batch multiple kernel learning with a certificate.

Under fixed scales beta the kernel is sum_k beta_k K_k: one matrix, and one set of coefficients U = sum_i p_i / lam sum_c alpha_ic
psi_ic, whatever the number of kernels is. A visit of a block adds a row of that matrix for each position and label whose
coefficient has changed. The functions are w_k = beta_k K_k U; where the regulariser moves beta, the matrix is computed again.
"""

from itertools import pairwise
from typing import NamedTuple, cast

import numpy as np

from structpred.core.products import dot
from structpred.core.regulariser import shares
from structpred.core.types import AnyArray, Floats, Floats32, Integers
from structpred.core.weights import Vector
from structpred.runtime.memory import check_fits
from structpred.task.function_space import FunctionSpace
from structpred.task.task import Task
from structpred.trainers.corrective import Arrays, Corrective, CorrectiveState, scratch_of
from structpred.trainers.online.grouped_weights import FunctionNorms
from structpred.trainers.problem import Problem, once_per_problem


class Point(NamedTuple):
    """The dual point of a state. coefficients: U, (labels, positions). values: K_k U of each kernel. others: u of the ordinary
    weights. norms: |u_k| of each group.
    """

    coefficients: Floats32
    values: list[AnyArray]
    others: Floats
    norms: Floats


class FunctionCorrective(Corrective):
    """`Corrective` for the functions of one or more kernels; the weights are the last iterate.

    Parameters
    ----------
    corners, cached_passes : int
        As for `Corrective`.
    """

    name = ""  # `Corrective` goes by the name; estimators with kernels put this one in its place

    def __init__(self, *, corners: int = 32, cached_passes: int | None = None) -> None:
        super().__init__(corners=corners, cached_passes=cached_passes, averaged=False)

    def init_state(self, problem: Problem) -> CorrectiveState:
        """w = 0, all weight at the truth."""
        inner, scale = _combined(problem).problem, problem.dual_map.scale.copy()
        memory = problem.regulariser.first_memory(len(scale))
        return super().init_state(inner)._replace(scale=scale, memory=memory)

    def state_dim(self, problem: Problem) -> int:
        """The number of parts of the largest instance."""
        return super().state_dim(_combined(problem).problem)

    def update(self, problem: Problem, state: CorrectiveState, item: int) -> tuple[CorrectiveState, bool]:
        """A visit with the oracle, or a whole pass without."""
        return super().update(_combined(problem).at(state.scale), state, item)

    def finish_pass(self, problem: Problem, state: CorrectiveState) -> CorrectiveState:
        """Where the regulariser adapts its scales: those of the next pass, and what belongs to the same dual point under them."""
        if not problem.regulariser.adapts:
            return state
        point = self._point(problem, state)
        scale, memory = problem.regulariser.rescale(state.scale, state.memory, point.norms**2)
        state = state._replace(scale=scale, memory=memory)
        self._move(problem, state, point)
        self._multiply_all(_combined(problem).at(scale), state)
        return state

    def objective(self, problem: Problem, state: CorrectiveState) -> tuple[float, float]:
        """Primal and dual value, from the corners; the functions are computed anew, without the rounding errors of steps."""
        point, blocks, r = self._point(problem, state), state.blocks, problem.regulariser
        assert isinstance(r, FunctionNorms)
        loss = dot(problem.p, (blocks.alpha * blocks.offset).sum(axis=1))
        dual = r.inner.bound(loss, problem.lam, [point.norms])
        self._move(problem, state, point)
        inner = _combined(problem).at(state.scale)
        hinge = np.maximum(problem.surrogate.values(inner.task, state.weights.v), 0.0)
        primal = problem.lam * r.inner.value(state.scale * point.norms) + dot(problem.p, hinge)
        state.bound.fill(max(dual, state.bound.item()))
        return primal, state.bound.item()

    def weights(self, problem: Problem, state: CorrectiveState) -> Vector:
        """Coefficients and values of each kernel's functions."""
        space, point = _combined(problem).space, self._point(problem, state)
        w: Vector = np.zeros(space.dim, problem.task.dtype)
        for k, values in enumerate(point.values):
            space.coefficients(w, k)[:] = state.scale[k] * point.coefficients
            space.values(w, k)[:] = state.scale[k] * values
        w[len(w) - len(point.others) :] = self._scaled_others(problem, state, point)
        return w

    def report(self, problem: Problem, state: CorrectiveState) -> dict[str, Floats]:
        """group_weights: |w_k| / sum_k |w_k|, one row."""
        return {"group_weights": shares(state.scale * self._point(problem, state).norms)[None]}

    def _point(self, problem: Problem, state: CorrectiveState) -> Point:
        made = _combined(problem)
        u = self.dual_point(made.problem, state)
        one = made.problem.task.features.space  # type: ignore[attr-defined]
        coefficients = one.values(u, 0).astype(np.float32)
        values = [made.space.times(k, coefficients) for k in range(len(made.space.grams))]
        others = u[one.groups[1] :]
        squares = [float(np.einsum("lt,lt", coefficients, found, dtype=np.float64)) for found in values]
        squares += [dot(others[a:b], others[a:b]) for a, b in pairwise((one.groups[1:] - one.groups[1]).tolist())]
        return Point(coefficients, values, others, np.sqrt(np.maximum(squares, 0.0)))

    def _scaled_others(self, problem: Problem, state: CorrectiveState, point: Point) -> Floats:
        space = _combined(problem).space
        sizes = np.diff(space.groups[len(space.grams) :])
        return np.repeat(state.scale[len(space.grams) :], sizes) * point.others

    def _move(self, problem: Problem, state: CorrectiveState, point: Point) -> None:
        """The weights of training become those of the dual point under the scales of the state."""
        one, v = _combined(problem).problem.task.features.space, state.weights.v  # type: ignore[attr-defined]
        one.values(v, 0)[:] = sum(state.scale[k] * values for k, values in enumerate(point.values))
        v[one.groups[1] :] = self._scaled_others(problem, state, point)

    def _metric(self, problem: Problem, state: CorrectiveState) -> Arrays:
        """With the matrix of all kernels, whose scales are part of it. problem: the one of `_combined`."""
        features = problem.task.features  # type: ignore[attr-defined]
        others = len(features.groups) - 2
        scale = np.concatenate(([1.0], state.scale[-others:]))
        return scratch_of(problem), features.groups[1:], scale, features.space.grams[0], _spans(problem)


class _Combined:
    """The problem with one kernel, which is sum_k beta_k K_k."""

    def __init__(self, problem: Problem) -> None:
        task = cast(Task, problem.task)
        self.space: FunctionSpace = task.features.space  # type: ignore[attr-defined]
        n = self.space.n
        check_fits(4 * n * n, f"the matrix of all kernels over {n:,} positions")
        self.gram, self.scale = np.zeros((n, n), np.float32), np.zeros(0)
        one = Task(
            task.features.with_kernel(self.gram), task.oracle, task.labels, task.shapes, task.loss,  # type: ignore[attr-defined]
            token_weights=task.token_weights, sample_weight=task.sample_weight, compiled=task.inference.compiled,
            n_jobs=task.n_jobs,
        )  # fmt: skip
        self.problem = Problem(one, problem.surrogate, problem.lam)

    def at(self, scale: Floats) -> Problem:
        """The problem under these scales."""
        if not np.array_equal(scale, self.scale):
            self.gram[:] = 0.0
            for k, gram in enumerate(self.space.grams):
                if isinstance(gram, np.ndarray):
                    for a in range(0, len(gram), 64):  # in the cache
                        self.gram[a : a + 64] += np.float32(scale[k]) * gram[a : a + 64]
                else:
                    rows = np.repeat(np.arange(gram.shape[0]), np.diff(gram.indptr))
                    self.gram[rows, gram.indices] += np.float32(scale[k]) * gram.data
            self.scale = scale.copy()
        return self.problem


_combined = once_per_problem(_Combined)


@once_per_problem
def _spans(problem: Problem) -> Integers:
    """For each position where its sequence begins and ends."""
    offsets = problem.task.features.offsets  # type: ignore[attr-defined]
    return np.repeat(np.stack((offsets[:-1], offsets[1:]), axis=1), np.diff(offsets), axis=0)
