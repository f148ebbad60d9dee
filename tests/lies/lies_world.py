"""The honest world that lies are told in: at most two of five items, forty times, and every objective by enumeration."""

from collections.abc import Callable, Iterator
from functools import cache
from itertools import combinations, pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp

import structpred
from structpred.core.costs import PartCosts
from structpred.core.feature_map import FeatureMap
from structpred.core.sparse import SparseVector, coalesced
from structpred.features.parts import PartFeatures
from structpred.layers.surrogates import PerturbedSurrogate, SoftMargin, SparseMAPSurrogate
from structpred.models.settings import resolve_surrogate
from structpred.task.task import Task

N, ITEMS, COLUMNS, LAM = 40, 5, 4, 0.03
#: what every output chooses, as a matrix of 0 and 1: the empty one, five of one item, ten of two
OUTPUTS = [(), *combinations(range(ITEMS), 1), *combinations(range(ITEMS), 2)]
COUNTS = np.array([[float(i in chosen) for i in range(ITEMS)] for chosen in OUTPUTS])


class AtMostTwo(structpred.Oracle):
    """At most two of n items. shape = (n, the number of the instance); labels are the items, ascending."""

    def n_parts(self, shape: Any) -> int:
        return int(shape[0])

    def argmax(self, scores: Any, shape: Any) -> Any:
        best = np.argsort(-scores, kind="stable")[:2]
        return np.sort(best[scores[best] > 0.0])

    def parts(self, labels: Any, shape: Any) -> Any:
        if len(labels) > 2 or (np.diff(labels) <= 0).any() or ((labels < 0) | (labels >= shape[0])).any():
            raise ValueError(f"at most two different items below {shape[0]}, ascending")
        return labels

    def enumerate(self, shape: Any) -> Iterator[Any]:
        return (np.array(y, dtype=np.int64) for k in range(3) for y in combinations(range(shape[0]), k))

    @staticmethod
    def example_shapes() -> list[Any]:
        return [(1, 0), (3, 0), (5, 0)]


class Rich(AtMostTwo):
    """The same with batches, marginals, projections, and searches for slack."""

    def argmax_batch(self, scores: Any, offsets: Any, shapes: Any) -> Any:
        found = [self.argmax(scores[offsets[i] : offsets[i + 1]], shape) for i, shape in enumerate(shapes)]
        return np.concatenate([*found, np.empty(0, np.int64)]), np.cumsum([0, *map(len, found)])

    def listed(self, shape: Any) -> tuple[list[Any], Any]:
        """All outputs, and their part counts."""
        outputs = list(AtMostTwo.enumerate(self, shape))
        return outputs, np.array([np.bincount(y, minlength=shape[0]) for y in outputs], dtype=np.float64)

    def marginals(self, scores: Any, shape: Any) -> Any:
        counts = self.listed(shape)[1]
        log_z = float(logsumexp(counts @ scores))
        return log_z, np.exp(counts @ scores - log_z) @ counts

    def marginals_batch(self, scores: Any, offsets: Any, shapes: Any) -> Any:
        found = [self.marginals(scores[offsets[i] : offsets[i + 1]], shape) for i, shape in enumerate(shapes)]
        return np.array([log_z for log_z, _ in found]), np.concatenate([*(mu for _, mu in found), np.empty(0)])

    def project(self, point: Any, shape: Any) -> Any:
        return projected(point)

    def kbest(self, scores: Any, shape: Any, k: int) -> Any:
        outputs, counts = self.listed(shape)
        return [outputs[j] for j in np.argsort(-(counts @ scores), kind="stable")[:k]]

    def argmax_product(self, scores: Any, costs: Any, offsets: Any, shape: Any) -> Any:
        outputs, counts = self.listed(shape)
        return outputs[int((np.maximum(offsets[0] + counts @ scores, 0.0) * (offsets[1] + counts @ costs)).argmax())]


class ByLoss(AtMostTwo):
    """With the best output of each loss, and without a list."""

    enumerate = None  # type: ignore[assignment]

    def argmax_per_loss(self, scores: Any, costs: Any, shape: Any) -> Any:
        outputs, counts = Rich.listed(self, shape)  # type: ignore[arg-type]
        values, scored = counts @ costs, counts @ scores
        levels = np.unique(values)
        at = [int(np.where(values == level, scored, -np.inf).argmax()) for level in levels]
        return levels, scored[at], [outputs[k] for k in at]


class Bounded(AtMostTwo):
    """Inexact by its own word, with a bound that is right."""

    exact = False

    def argmax_bound(self, scores: Any, shape: Any) -> Any:
        best = AtMostTwo.argmax(self, scores, shape)
        return best, float(scores[best].sum())


def projected(point: Any) -> Any:
    """The nearest mu with 0 <= mu <= 1 and a sum of at most 2."""
    inside = np.clip(point, 0.0, 1.0)
    if inside.sum() <= 2.0:
        return inside
    low, high = 0.0, float(np.max(point))
    for _ in range(80):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if np.clip(point - middle, 0.0, 1.0).sum() > 2.0 else (low, middle)
    return np.clip(point - high, 0.0, 1.0)


class Differences:
    """The number of items that are in one of the two sets only."""

    def costs(self, labels: Any, shape: Any, oracle: Any) -> PartCosts:
        costs = np.ones(shape[0])
        costs[labels] = -1.0
        return PartCosts(float(len(labels)), costs)


class OwnRows(FeatureMap):
    """A feature map of one's own in plain Python: a dense row of features for each item."""

    def __init__(self, rows: Any) -> None:
        self.rows, self.dim, self.dtype = np.array(rows), rows.shape[2], np.dtype(np.float64)
        self.groups = np.array([0, self.dim], dtype=np.int64)

    def __len__(self) -> int:
        return len(self.rows)

    def n_parts(self, i: int) -> int:
        return int(self.rows.shape[1])

    def scores(self, w: Any, i: int) -> Any:
        return self.rows[i] @ w

    def adjoint(self, i: int, parts: Any, counts: Any) -> SparseVector:
        return coalesced(np.arange(self.dim), counts @ self.rows[i][parts])

    def arrays(self) -> Any:
        return (self.rows,)


class FastRows(OwnRows):
    """The same with calls for blocks and sums."""

    def score_block(self, w: Any, scale: float, start: int, stop: int, places: Any, out: Any) -> None:
        out[:] = scale * np.concatenate([self.scores(w, i) for i in range(start, stop)])

    def adjoint_block(self, start: int, parts: Any, counts: Any, ends: Any) -> Any:
        found = [self.adjoint(start + k, parts[a:b], counts[a:b]) for k, (a, b) in enumerate(pairwise(ends))]
        ends = np.cumsum([0, *(len(one.indices) for one in found)])
        return np.concatenate([one.indices for one in found]), np.concatenate([one.values for one in found]), ends

    def total(self, mu: Any, places: Any, coefs: Any) -> Any:
        return sum(coefs[i] * (mu[places[i] : places[i + 1]] @ self.rows[i]) for i in range(len(self)))


class Data(NamedTuple):
    """A training set: rows (N, 5, 4), shapes, and the true outputs."""

    rows: Any
    shapes: list[Any]
    truths: list[Any]


@cache
def data(single: bool = False) -> Data:
    """The best outputs of a linear model with noise; `single`: no true output has two items."""
    rng = np.random.default_rng(7)
    rows, hidden = rng.normal(size=(N, ITEMS, COLUMNS)), np.array([1.5, -1.0, 0.5, 0.7])
    scores = rows @ hidden + 0.7 * rng.normal(size=(N, ITEMS))
    shapes = [(ITEMS, i) for i in range(N)]
    truths = [AtMostTwo().argmax(own, shape) for own, shape in zip(scores, shapes, strict=True)]
    if single:
        truths = [truth[:1] if i % 2 else truth[-1:] for i, truth in enumerate(truths)]
    return Data(rows, shapes, truths)


#: the value of each regulariser, by weights; all but the first are minimised by cvxpy with the same expression
REGULARISERS: dict[str, Callable[[Any, Any], Any]] = {
    "l2": lambda w, cp: cp.sum_squares(w) / 2,
    "l1": lambda w, cp: cp.sum_squares(w) / 2 + 0.5 * cp.norm1(w),
    "group_lasso": lambda w, cp: cp.norm2(w),
    "half": lambda w, cp: cp.sum_squares(w),
}
SCORED: dict[str, Callable[[], Any]] = {
    "sparsemap": SparseMAPSurrogate, "soft_margin": SoftMargin, "perturbed": lambda: PerturbedSurrogate(samples=4),
}  # fmt: skip


class World(NamedTuple):
    """One true objective: lam r(w) + the mean of H_i(w), the H_i of a kind, on one of the two training sets."""

    kind: str = "margin"
    regulariser: str = "l2"
    single: bool = False

    def value(self, w: Any) -> float:
        """The objective at weights, by enumeration."""
        import cvxpy as cp

        w = np.asarray(w, dtype=np.float64)
        return LAM * float(REGULARISERS[self.regulariser](w, cp).value) + float(self.hinges(w).mean())

    def hinges(self, w: Any) -> Any:
        """H_i(w), all i."""
        if self.kind in SCORED:
            return self._scored(w)[0]
        apart, losses = self.differences()
        if self.kind == "log":
            return logsumexp(apart @ w, axis=1)
        if self.kind == "slack":
            return (losses * np.maximum(1.0 + apart @ w, 0.0)).max(axis=1)
        return (losses + apart @ w).max(axis=1)

    def _scored(self, w: Any) -> Any:
        """Values and gradient of a loss of scores, by the honest task."""
        return SCORED[self.kind]().gradient(honest_task(self.single), w, np.full(N, 1.0 / N))

    def optimum(self) -> float:
        """The smallest value: by cvxpy, of smooth ones by SciPy."""
        return _optimum(type(self), self)

    def differences(self) -> tuple[Any, Any]:
        """(phi(x_i, y) - phi(x_i, y_i), the loss of y) of every instance and output: (N, 16, 4) and (N, 16)."""
        return differences(self.single)

    def smooth(self, w: Any) -> tuple[float, Any]:
        """The objective of a smooth kind and its gradient."""
        if self.kind in SCORED:
            values, gradient = self._scored(w)
        else:
            scores = self.differences()[0] @ w
            values = logsumexp(scores, axis=1)
            gradient = np.einsum("ik,ikd->d", np.exp(scores - values[:, None]), self.differences()[0]) / N
        return 0.5 * LAM * w @ w + values.mean(), LAM * w + gradient


class Ramp(World):
    """Losses above 2 count as 2; what is called the optimum is the best value that was found, and no more."""

    def hinges(self, w: Any) -> Any:
        return np.minimum(super().hinges(w), 2.0)

    def optimum(self) -> float:
        starts = np.random.default_rng(0).normal(size=(6, COLUMNS))
        return float(min(minimize(self.value, start, method="Nelder-Mead").fun for start in starts))


class LastItemForbidden(World):
    """The first instance may not have its last item, which its true output does not have."""

    def differences(self) -> tuple[Any, Any]:
        apart, losses = (np.array(each) for each in super().differences())
        losses[0, COUNTS[:, -1] > 0.0] = -100.0
        return apart, losses


@cache
def _optimum(kind: type[World], world: World) -> float:
    import cvxpy as cp

    if world.kind in SCORED or world.kind == "log":
        options = {"maxiter": 2000, "ftol": 1e-16, "gtol": 1e-10}
        return float(minimize(world.smooth, np.zeros(COLUMNS), jac=True, method="L-BFGS-B", options=options).fun)
    apart, losses = world.differences()
    slopes = losses[:, :, None] * apart if world.kind == "slack" else apart
    w, xi = cp.Variable(COLUMNS), cp.Variable(N)
    owners = np.repeat(np.arange(N), len(OUTPUTS))
    constraints = [losses.ravel() + slopes.reshape(-1, COLUMNS) @ w <= xi[owners], xi >= 0]
    objective = LAM * REGULARISERS[world.regulariser](w, cp) + cp.sum(xi) / N
    program = cp.Problem(cp.Minimize(objective), constraints)
    program.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    return float(program.value)


@cache
def differences(single: bool) -> tuple[Any, Any]:
    """(phi(x_i, y) - phi(x_i, y_i), the loss of y) of every instance and output: (N, 16, 4) and (N, 16)."""
    rows, _, truths = data(single)
    gold = np.array([np.bincount(y, minlength=ITEMS) for y in truths])
    apart = COUNTS[None] - gold[:, None]
    return np.einsum("ikp,ipd->ikd", apart, rows), np.abs(apart).sum(axis=2)


@cache
def honest_task(single: bool) -> Task:
    """The task of the honest model."""
    rows, shapes, truths = data(single)
    return Task(PartFeatures(list(rows)), Rich(), truths, shapes, Differences())


def surrogate_of(kind: str) -> Any:
    """The surrogate of that kind, as a user names it."""
    return SCORED[kind]() if kind in SCORED else resolve_surrogate(kind)
