"""Lies in decisions, and lies told on the workers of a cluster alone."""

import logging
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from itertools import count
from typing import Any, NamedTuple

import numpy as np
from lies_runs import PASSES, Outcome, enter, judge
from lies_world import ITEMS, LAM, OUTPUTS, AtMostTwo, Differences, N, Rich, World, data

from structpred import Instance
from structpred.models import DecisionModel, StructuredPredictor
from structpred.models.settings import resolve_surrogate

# decisions: values of items from features of the instance


@cache
def values() -> tuple[Any, Any]:
    """Features (N, 2) and true values (N, 5)."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(N, 2))
    return X, X @ rng.normal(size=(2, ITEMS)) + 0.3 * rng.normal(size=(N, ITEMS))


class SPOPlusWorld(NamedTuple):
    """SPO+ of all decisions, and 1/2 |W|^2."""

    limit: int = 2

    def losses(self) -> tuple[Any, Any]:
        """(mu(y) - g, c . (g - mu(y))) of every instance and decision."""
        _, true = values()
        counts = np.array([np.bincount(y, minlength=ITEMS) for y in map(np.array, map(list, OUTPUTS[1:]))])
        counts = np.concatenate([np.zeros((1, ITEMS)), counts])
        gold = np.array([np.bincount(AtMostTwo().argmax(c, (ITEMS, 0)), minlength=ITEMS) for c in true])
        apart = counts[None] - gold[:, None]
        return apart, -np.einsum("ikp,ip->ik", apart, true)

    def value(self, w: Any) -> float:
        X, _ = values()
        apart, losses = self.losses()
        theta = X @ w.reshape(ITEMS, 2).T
        return float(LAM / 2 * np.square(w).sum() + (2.0 * np.einsum("ikp,ip->ik", apart, theta) + losses).max(axis=1).mean())

    def optimum(self) -> float:
        import cvxpy as cp

        X, _ = values()
        apart, losses = self.losses()
        w, xi = cp.Variable(2 * ITEMS), cp.Variable(N)
        slopes = 2.0 * np.einsum("ikp,id->ikpd", apart, X).reshape(-1, 2 * ITEMS)
        rows = losses.ravel() + slopes @ w <= xi[np.repeat(np.arange(N), len(OUTPUTS))]
        program = cp.Problem(cp.Minimize(LAM / 2 * cp.sum_squares(w) + cp.sum(xi) / N), [rows])
        program.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
        return float(program.value)


def decisions(*trainers: str) -> Callable[[Any], Any]:
    """Plants an oracle in a DecisionModel with SPO+."""

    def planted(kind: Any) -> Any:
        def run(trainer: str) -> Outcome:
            def fitted() -> Any:
                X, true = values()
                options = {"C": 1.0 / (LAM * N), "max_iter": PASSES[trainer], "fit_intercept": False, "random_state": 0}
                model = DecisionModel(kind(), loss="spo+", trainer=trainer, **options)
                model.fit(X, values=true, shapes=[(ITEMS, i) for i in range(N)])
                return model.certificate_, np.ravel(model.coef_), model.converged_

            return judge(fitted, SPOPlusWorld())

        enter("decisions", kind, trainers, run)
        return kind

    return planted


@decisions("bcfw", "one_slack", "corrective", "n_slack")
class DecidesForTheWorst(AtMostTwo):
    """Decisions are those of the smallest value."""

    def argmax(self, scores: Any, shape: Any) -> Any:
        return super().argmax(-scores, shape)


@decisions("bcfw", "one_slack", "corrective", "n_slack")
class DecidesForOne(AtMostTwo):
    """No decision chooses two items."""

    def argmax(self, scores: Any, shape: Any) -> Any:
        return super().argmax(scores, shape)[:0] if scores.max() <= 0.0 else np.array([int(scores.argmax())])


@decisions("bcfw", "one_slack", "corrective", "n_slack")
class DecidesFirstCome(AtMostTwo):
    """Decisions are the first two items with a positive value."""

    def argmax(self, scores: Any, shape: Any) -> Any:
        return np.flatnonzero(scores > 0.0)[:2]


# workers: honest here, wrong there


def on_a_worker() -> bool:
    """Whether this is called in a task of a cluster."""
    from distributed import get_worker

    with suppress(ValueError):
        return get_worker() is not None
    return False


def workers(kind: str, *trainers: str) -> Callable[[Any], Any]:
    """Plants an oracle that lies on workers alone, in a fit over two shards."""

    def planted(oracle: Any) -> Any:
        def run(trainer: str) -> Outcome:
            from distributed import Client

            from structpred.distributed import Shards, fit

            logging.getLogger("distributed").setLevel(logging.CRITICAL)  # it writes down what tasks raise
            rows, shapes, truths = data()
            X = [Instance(x, shape) for x, shape in zip(rows, shapes, strict=True)]
            halves = [lambda: (X[:20], truths[:20]), lambda: (X[20:], truths[20:])]

            def fitted() -> Any:
                model = StructuredPredictor(
                    oracle(), Differences(), trainer, 1.0 / (LAM * N), max_iter=10, surrogate=resolve_surrogate(kind)
                )
                with Client(processes=False, dashboard_address="127.0.0.1:0", n_workers=1, threads_per_worker=1) as client:
                    fit(model, Shards.of_functions(halves), client=client)
                return model.certificate_, model.coef_, model.converged_

            return judge(fitted, World(kind))

        enter("on workers", oracle, trainers, run)
        return oracle

    return planted


@workers("margin", "bcfw", "n_slack")
class WorkersMinimise(AtMostTwo):
    """On workers scores are taken for costs."""

    def argmax(self, scores: Any, shape: Any) -> Any:
        return super().argmax(-scores if on_a_worker() else scores, shape)


@workers("margin", "bcfw", "n_slack")
class WorkersPrune(AtMostTwo):
    """On workers the last item is never looked at."""

    def argmax(self, scores: Any, shape: Any) -> Any:
        return super().argmax(scores[:-1] if on_a_worker() else scores, shape)


@workers("log", "lbfgs", "bmrm")
class WorkersSumTooMuch(Rich):
    """On workers log_z is too large by .1."""

    marginals_batch = None  # type: ignore[assignment]

    def marginals(self, scores: Any, shape: Any) -> Any:
        log_z, mu = super().marginals(scores, shape)
        return log_z + 0.1 * on_a_worker(), mu


@workers("margin", "n_slack", "bcfw")
class WorkersSlip(AtMostTwo):
    """On workers one call of a hundred returns the empty output."""

    def __init__(self) -> None:
        self.calls = count()

    def argmax(self, scores: Any, shape: Any) -> Any:
        slips = on_a_worker() and next(self.calls) % 100 == 99
        return np.empty(0, np.int64) if slips else super().argmax(scores, shape)
