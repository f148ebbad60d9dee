"""The support vector machine with hidden states: its inner problem for given states or weights of states."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from structpred.core.types import AnyArray, ArrayLike, Floats, Integers
from structpred.errors import ConvergenceError, DataError, ParameterError
from structpred.runtime.settings import checked_positive

#: visits of all rows in one inner problem, and sweeps over moving rows after each
_VISITS, _SWEEPS = 20_000, 20


class LatentInner(NamedTuple):
    """A solved inner problem: the classifier w_k = sum_i coef_ik x_i that is best for some weights of states.

    p: (n, K), the weights of states. mu: (n, K), a distribution over all states for each row. coef: (n, K).
    scores: (n, K) of the rows. objective: the dual value, a lower bound of the least objective.
    """

    p: Floats
    mu: Floats
    coef: Floats
    scores: Floats
    objective: float


class FeatureSpace:
    """Rows of features, (n, d): steps take O(d K), and no matrix of pairs of rows is made. squares: (n,), <x_i, x_i>."""

    by_weights = True

    def __init__(self, rows: AnyArray) -> None:
        self.rows = np.ascontiguousarray(rows)
        self.squares = np.einsum("ij,ij->i", self.rows, self.rows).astype(np.float64)

    def scores(self, coef: Floats) -> Floats:
        """(n, K): <x_i, w_k> for w_k = sum_j coef_jk x_j, through the weights."""
        return np.asarray(self.rows @ self.table(coef))

    def table(self, coef: Floats) -> Floats:
        """(d, K): the weights."""
        return np.asarray(self.rows.T @ coef, dtype=np.float64)

    def held(self, coef: Floats, scores: Floats) -> Floats:
        """What steps of `_latent_kernels` keep up to date: the weights."""
        return np.ascontiguousarray(self.table(coef))

    def distances(self, i: int, others: Integers) -> Floats:
        """|x_i - x_j|^2 for these j."""
        return np.asarray(self.squares[i] + self.squares[others] - 2.0 * (self.rows[others] @ self.rows[i]))


class GramSpace:
    """The matrix of kernel values of all pairs of rows, (n, n): steps that change nothing take O(K)."""

    by_weights = False

    def __init__(self, gram: Floats) -> None:
        self.rows = np.ascontiguousarray(gram, dtype=np.float64)
        self.squares = self.rows.diagonal().copy()

    def scores(self, coef: Floats) -> Floats:
        """As above, by one product."""
        return np.asarray(self.rows @ coef)

    def held(self, coef: Floats, scores: Floats) -> Floats:
        """As above: the scores."""
        return scores.T.copy()

    def distances(self, i: int, others: Integers) -> Floats:
        """As above, from the matrix."""
        return np.asarray(self.squares[i] + self.squares[others] - 2.0 * self.rows[i, others])


#: where the rows live: what the inner problem needs to know of them
Space = FeatureSpace | GramSpace


class LatentProblem:
    """Minimise 1/2 sum_k |w_k|^2 + C sum_i H_i over w, where only the group of each row's state is known.

    H_i = max(0, 1 + max_{k not in G(i)} s_ik - max_{z in G(i)} s_iz), s_ik = <w_k, x_i>: each state is a class, row i is in one
    of the classes of its group G(i), and only classes of other groups are wrong. With p_i, weights of the states of G(i),

        J(p) = min_w 1/2 |w|^2 + C sum_i sum_z p_iz (max_k (wrong_ik + s_ik) - s_iz),    wrong_ik = [k not in G(i)],

    is concave in p, and its minima over distributions are those over all states z_i: F = -J is the convex function that
    parametric dual maximisation maximises (Zhou, Kang & Spanos 2017; the loss is that of Yu & Joachims 2009, eq. 3, with
    cost 0 within a group).

    groups: (n,) numbers of groups. group_of_state: (K,).

    Raises DataError where a row's group has no state or there is one group only; ParameterError for C <= 0.

    >>> rows = FeatureSpace(np.array([[1.0], [-1.0], [3.0]]))
    >>> problem = LatentProblem(rows, np.array([0, 1, 0]), np.array([0, 0, 1]), C=1.0)
    >>> states = problem.vertex(np.array([0, 2, 1]))
    >>> inner = problem.solve(states, tol=1e-9)
    >>> abs(problem.primal(inner, states) - inner.objective) < 1e-6
    True
    """

    #: called with a row of the history at each improvement
    told: Callable[[dict[str, Any]], None] | None = None

    def __init__(self, space: Space, groups: Integers, group_of_state: Integers, C: float) -> None:
        self.space = space
        self.groups, self.group_of_state = np.asarray(groups, np.int64), np.asarray(group_of_state, np.int64)
        self.C = checked_positive(C, "C")
        self.inside = self.groups[:, None] == self.group_of_state[None, :]
        without = np.flatnonzero(~self.inside.any(axis=1))
        if len(without):
            raise DataError(f"row {without[0]}: its group {self.groups[without[0]]} has no hidden state")
        if self.inside.all(axis=1).any():
            raise DataError("groups: expected states of at least two groups, got one: nothing is ever wrong")
        self.wrong = np.where(self.inside, 0.0, 1.0)

    @property
    def shape(self) -> tuple[int, ...]:
        """(rows, states): that of p."""
        return self.wrong.shape

    def vertex(self, states: Integers) -> Floats:
        """p for one state of each row."""
        p = np.zeros(self.shape)
        p[np.arange(len(p)), states] = 1.0
        return p

    def checked_states(self, states: ArrayLike) -> Integers:
        """The states as an array; ParameterError unless each is one of its row's group."""
        found = np.asarray(states)
        if found.shape != self.groups.shape or found.dtype.kind not in "iu" or not np.isin(found, range(self.shape[1])).all():
            raise ParameterError(f"states: expected a number below {self.shape[1]} for each of {len(self.groups)} rows")
        wrong = np.flatnonzero(self.group_of_state[found] != self.groups)
        if len(wrong):
            raise ParameterError(f"states: row {wrong[0]} has state {found[wrong[0]]}, which is not of its group")
        return found.astype(np.int64)

    def solve(self, p: Floats, start: LatentInner | None = None, tol: float = 1e-3, stop_at: float = np.inf) -> LatentInner:
        """The inner problem for weights p of the states of each row's group: >= 0, not all need sum to one.

        A row whose weights sum to less counts less; with none it is left out. start: a solution for other weights.
        tol: the gap, as a share of the objective. stop_at: end as soon as the objective is known to be at least that.
        ParameterError for weights that are negative or outside the row's group; ConvergenceError after 20,000 visits of all rows.
        """
        if p.shape != self.shape or not p.min(initial=0.0) >= 0.0 or (p[~self.inside] != 0.0).any():
            raise ParameterError(f"p: expected weights >= 0 of the states of each row's group, of shape {self.shape}")
        from structpred.nonconvex._latent_kernels import ascend

        space, upper = self.space, self.C * p.sum(axis=1)
        if start is None:  # the distributions that p is a multiple of; of rows without weight any
            sums = p.sum(axis=1, keepdims=True)
            mu = np.where(sums > 0.0, p / np.maximum(sums, 1e-300), self.inside / self.inside.sum(axis=1, keepdims=True))
        else:  # moved along with the weights of states: what a row's old state held, its new one holds
            mu = np.maximum(start.mu + p - start.p, 0.0)
            sums = mu.sum(axis=1, keepdims=True)
            mu = np.where(sums > 0.5, mu / np.maximum(sums, 0.5), start.mu)
        rng = np.random.default_rng(0)
        for _ in range(_VISITS):
            coef = self.C * p - upper[:, None] * mu
            scores = space.scores(coef)
            objective = float(upper @ (mu * self.wrong).sum(axis=1) - 0.5 * np.vdot(coef, scores))
            ahead = self.wrong + scores
            gap = float(upper @ (ahead.max(axis=1) - (mu * ahead).sum(axis=1)))
            if gap <= tol * abs(objective) + 1e-12 * self.C or objective >= stop_at:
                return LatentInner(p, mu, coef, scores, objective)
            order, least, held = rng.permutation(len(mu)), 0.1 * tol * abs(objective), space.held(coef, scores)
            ascend(space.rows, space.squares, upper, self.wrong, mu, held, order, least, _SWEEPS, space.by_weights)
        raise ConvergenceError(
            f"inner problem: gap {gap:.3g} of {objective:.6g} after {_VISITS:,} visits; is C={self.C:g} too large?"
        )

    def primal(self, inner: LatentInner, p: Floats) -> float:
        """The objective of a classifier with these weights of states: never below the optimum for them."""
        lost = p.sum(axis=1) * (self.wrong + inner.scores).max(axis=1) - (p * inner.scores).sum(axis=1)
        return float(0.5 * np.vdot(inner.coef, inner.scores) + self.C * lost.sum())

    def losses(self, inner: LatentInner) -> Floats:
        """(n,) H_i: with the state that suits the classifier best."""
        within = np.where(self.inside, inner.scores, -np.inf).max(axis=1)
        return np.asarray((self.wrong + inner.scores).max(axis=1) - within)

    def gradient(self, inner: LatentInner) -> Floats:
        """The gradient of F = -J, to be maximised, with respect to p: minus C times what each state would lose."""
        return np.asarray(self.C * (inner.scores - (self.wrong + inner.scores).max(axis=1, keepdims=True)))

    def best_vertex(self, gradient: Floats) -> Floats:
        """argmax of <gradient, p> over distributions on each row's group: one state; the first wins a tie."""
        return self.vertex(np.where(self.inside, gradient, -np.inf).argmax(axis=1))
