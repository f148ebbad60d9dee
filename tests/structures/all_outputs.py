"""The training objective over all outputs: its value, and its minimum by a conic solver, to which trainers are compared."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from structpred.core.costs import PartCosts

KINDS = ("margin", "slack", "log")


class AllOutputs(NamedTuple):
    """For each sample: psi[i][k] = phi(x_i, y_i) - phi(x_i, y) and losses[i][k] of output number k, the truth among them."""

    psi: Sequence[Any]
    losses: Sequence[Any]

    @property
    def dim(self) -> int:
        return int(self.psi[0].shape[1])

    def hinges(self, kind: str, w: Any) -> Any:
        """H_i(w) of every sample."""
        w = np.asarray(w, dtype=np.float64)
        values = [-(psi @ w) for psi in self.psi]
        if kind == "log":
            return np.array([np.logaddexp.reduce(v) for v in values])
        if kind == "slack":
            return np.array([max((c * (1.0 + v)).max(), 0.0) for v, c in zip(values, self.losses, strict=True)])
        return np.array([(c + v).max() for v, c in zip(values, self.losses, strict=True)])

    def primal(self, kind: str, w: Any, lam: float) -> float:
        """lam / 2 |w|^2 + the mean of the H_i."""
        return float(lam / 2 * np.square(np.asarray(w, dtype=np.float64)).sum() + self.hinges(kind, w).mean())

    def optimum(self, kind: str, lam: float) -> float:
        """The smallest primal."""
        import cvxpy as cp

        w, xi = cp.Variable(self.dim), cp.Variable(len(self.psi))
        bounds = []
        for i, (psi, losses) in enumerate(zip(self.psi, self.losses, strict=True)):
            if kind == "log":
                bounds.append(cp.log_sum_exp(-psi @ w) <= xi[i])
            else:
                slopes = psi if kind == "margin" else losses[:, None] * psi
                bounds.append(losses - slopes @ w <= xi[i])
        problem = cp.Problem(cp.Minimize(lam / 2 * cp.sum_squares(w) + cp.sum(xi) / len(self.psi)), bounds)
        tol = 1e-8 if kind == "log" else 1e-10  # what the exponential cone reaches
        problem.solve(solver=cp.CLARABEL, tol_gap_abs=tol, tol_gap_rel=tol, tol_feas=tol)
        return float(problem.value)


def of_structure(oracle: Any, loss: Any, X: Sequence[Any], y: Sequence[Any]) -> AllOutputs:
    """By `enumerate`, from the features and the loss themselves."""
    psi, losses = [], []
    for (features, shape), truth in zip(X, y, strict=True):
        rows = features.toarray() if hasattr(features, "toarray") else np.asarray(features)
        outputs = list(oracle.enumerate(shape))
        mu = np.array([np.bincount(oracle.parts(one, shape), minlength=len(rows)) for one in outputs], dtype=np.float64)
        mu_truth = np.bincount(oracle.parts(truth, shape), minlength=len(rows))
        answer = loss.costs(truth, shape, oracle)
        if isinstance(answer, PartCosts):
            losses.append(answer.constant + mu @ answer.costs)
        else:
            losses.append(np.array([answer.cost * float((one != truth).sum()) for one in outputs]))
        psi.append((mu_truth - mu) @ rows)
    return AllOutputs(psi, losses)


def of_callbacks(phi: Any, loss: Any, xs: Sequence[Any], ys: Sequence[int], n_classes: int) -> AllOutputs:
    """The same for a joint feature function."""
    psi = [np.array([phi(x, y) - phi(x, k) for k in range(n_classes)]) for x, y in zip(xs, ys, strict=True)]
    return AllOutputs(psi, [np.array([loss(y, k) for k in range(n_classes)]) for y in ys])
