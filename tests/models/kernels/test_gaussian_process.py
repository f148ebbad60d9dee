"""Gaussian processes for label sequences: the objective over free clique variables, by enumeration, against the labeler."""

from itertools import product
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest
from estimator_contract.estimator_checks import check_sequence_estimator
from scipy.optimize import approx_fprime, minimize

from structpred.errors import ParameterError
from structpred.models import GaussianProcessLabeler

Floats = npt.NDArray[np.float64]
N, LENGTH, LABELS = 3, 4, 2
OUTPUTS = list(product(range(LABELS), repeat=LENGTH))
GOLD = [(0, 1, 1, 0), (1, 1, 0, 0), (0, 0, 1, 1)]
INPUTS = np.random.default_rng(3).normal(size=(N, LENGTH, 2)).round(2)


def rbf(a: Floats, b: Floats) -> float:
    """exp(-|a - b|^2 / 2)."""
    return float(np.exp(-0.5 * ((a - b) @ (a - b))))


class Cliques(NamedTuple):
    """The objective in alpha, one free number for each sequence, edge and pair of labels: K explicit, sums by enumeration."""

    K: Floats
    outputs: Floats  # Lambda: column i * 2^LENGTH + k has a one for each edge of output k of sequence i
    gold: Floats

    def value(self, alpha: Floats) -> float:
        """alpha' K alpha - sum alpha' K e_gold + sum log sum exp(alpha' K Lambda e)."""
        scores = (self.outputs.T @ (self.K @ alpha)).reshape(N, -1)
        sums = np.log(np.exp(scores - scores.max(axis=1, keepdims=True)).sum(axis=1)) + scores.max(axis=1)
        return float(alpha @ self.K @ alpha - self.gold @ self.K @ alpha + sums.sum())

    def expected(self, alpha: Floats) -> Floats:
        """E[Lambda e]."""
        scores = (self.outputs.T @ (self.K @ alpha)).reshape(N, -1)
        p = np.exp(scores - scores.max(axis=1, keepdims=True))
        found: Floats = self.outputs @ (p / p.sum(axis=1, keepdims=True)).ravel()
        return found

    def gradient(self, alpha: Floats) -> Floats:
        """K (2 alpha - e_gold + E)."""
        found: Floats = self.K @ (2.0 * alpha - self.gold + self.expected(alpha))
        return found


def cliques(times: Floats, *, moving: bool = True) -> Cliques:
    """times[t]: how often position t counts for the kernel between positions; start, stop and transitions count once.

    moving: whether equal labels at other positions count; else delta(t = t') is in front, as appendix E.2 prints it, of
    edges, left ends and right ends; an inner position is both, and `times` has no say.
    """
    places = list(product(range(N), range(LENGTH - 1), range(LABELS), range(LABELS)))
    own = [times[0], *times[1:-1] / 2.0, times[-1]]  # an inner position is in two edges

    def nodes(i: int, t: int, a: int, b: int) -> list[tuple[Floats, int, float]]:
        return [(INPUTS[i, t], a, own[t]), (INPUTS[i, t + 1], b, own[t + 1])]

    def k(one: tuple[int, ...], other: tuple[int, ...]) -> float:
        (_, t, a, b), (_, s, c, d) = one, other
        last = LENGTH - 2
        if not moving:
            ends = (rbf(x, z) for (x, p, _), (z, q, _) in zip(nodes(*one), nodes(*other), strict=True) if p == q)
            return (t == s) * (sum(ends) + ((a, b) == (c, d)) + (t == 0 and a == c) + (t == last and b == d))
        shared = sum(v * u * rbf(x, z) for x, p, v in nodes(*one) for z, q, u in nodes(*other) if p == q)
        return shared + ((a, b) == (c, d)) + (t == s == 0 and a == c) + (t == s == last and b == d)

    K = np.array([[k(one, other) for other in places] for one in places])
    outputs = np.zeros((len(places), N * len(OUTPUTS)))
    for row, (i, t, a, b) in enumerate(places):
        for column, y in enumerate(OUTPUTS):
            outputs[row, i * len(OUTPUTS) + column] = y[t] == a and y[t + 1] == b
    gold = sum(outputs[:, i * len(OUTPUTS) + OUTPUTS.index(y)] for i, y in enumerate(GOLD))
    return Cliques(K, outputs, np.asarray(gold))


def gram(times: Floats) -> Floats:
    """The kernel between all positions, each counted so many times."""
    flat, weights = INPUTS.reshape(-1, 2), np.tile(times, N)
    return np.array([[v * u * rbf(x, z) for z, u in zip(flat, weights, strict=True)] for x, v in zip(flat, weights, strict=True)])


def fitted(times: Floats, **settings: Any) -> GaussianProcessLabeler:
    """The labeler with the kernel between positions given as numbers."""
    model = GaussianProcessLabeler(kernel="precomputed", **settings)
    return model.fit(np.split(gram(times), N), [list(y) for y in GOLD])


@pytest.mark.parametrize("inner", [1.0, 2.0], ids=["positions once", "as often as edges"])
def test_the_optimum_over_clique_variables(inner: float) -> None:
    """Folded to positions the problem is the same: equal optimum, marginals, and alpha = (gold - E)/2; whatever edges count."""
    times = np.array([1.0, inner, inner, 1.0])
    problem = cliques(times)
    zero = np.zeros(len(problem.K))
    assert problem.value(zero) == pytest.approx(N * LENGTH * np.log(LABELS), rel=1e-14)
    point = np.random.default_rng(0).normal(size=len(zero))
    assert np.allclose(problem.gradient(point), approx_fprime(point, problem.value, 1e-6), atol=1e-3)
    best = minimize(problem.value, zero, jac=problem.gradient, method="BFGS", options={"gtol": 1e-9}).x

    model = fitted(times, tol=1e-9)
    assert N * model.certificate_.primal == pytest.approx(problem.value(best), rel=1e-6)
    alpha = (problem.gold - problem.expected(best)) / 2.0
    assert problem.value(alpha) == pytest.approx(problem.value(best), rel=1e-12)
    expected = problem.expected(best).reshape(N, LENGTH - 1, LABELS, LABELS)
    nodes = np.concatenate((expected.sum(axis=3), expected[:, -1:].sum(axis=2)), axis=1)
    assert np.allclose(np.array(model.predict_marginals(np.split(gram(times), N))), nodes, atol=1e-4)
    folded = (np.eye(LABELS)[np.array(GOLD)] - nodes).reshape(-1, LABELS) / 2.0
    support = model.support_ @ [LENGTH, 1]
    assert np.allclose(gram(times)[:, support] @ model.dual_coef_, gram(times) @ folded, atol=1e-4)


def test_positions_can_be_compared_with_their_own_kind_alone() -> None:
    """Labels that carry their place solve the printed example with delta(t = t'), which is not the one without; forecasts keep to
    their places."""
    problem = cliques(np.ones(LENGTH), moving=False)
    zero, times = np.zeros(len(problem.K)), np.sqrt([1.0, 2.0, 2.0, 1.0])
    best = minimize(problem.value, zero, jac=problem.gradient, method="BFGS", options={"gtol": 1e-9})
    model = GaussianProcessLabeler(kernel="precomputed", constraints="places", tol=1e-9)
    rows = np.split(gram(times), N)
    model.fit(rows, [[f"{t}-{label}" for t, label in enumerate(y)] for y in GOLD])
    assert N * model.certificate_.primal == pytest.approx(best.fun, rel=1e-6)
    assert best.fun != pytest.approx(N * fitted(times, tol=1e-9).certificate_.primal, rel=1e-2)
    expected = problem.expected(best.x).reshape(N, LENGTH - 1, LABELS, LABELS)
    nodes = np.concatenate((expected.sum(axis=3), expected[:, -1:].sum(axis=2)), axis=1)
    at = [[model.classes_.tolist().index(f"{t}-{label}") for label in range(LABELS)] for t in range(LENGTH)]
    found = np.take_along_axis(np.array(model.predict_marginals(rows)), np.array(at)[None], axis=2)
    assert np.allclose(found, nodes, atol=1e-4)
    with pytest.raises(ParameterError, match="'x' has no place; expected the number of its position in front"):
        GaussianProcessLabeler(constraints="places").fit([np.eye(2)], [["0-a", "x"]])


def test_the_gap_is_the_distance_to_the_fixed_point() -> None:
    """At each step the objective's gap, of all sequences, encloses the optimum; a larger C expects larger scores."""
    times = np.ones(LENGTH)
    best = N * fitted(times, tol=1e-9).certificate_.primal
    early = fitted(times, max_iter=2, check_every=1, tol=0.0)
    for row in early.history_:
        assert N * row["dual"] <= best + 1e-9 <= N * row["primal"] + 2e-9
    sure = [np.abs(fitted(times, C=C).dual_coef_).max() for C in (0.05, 0.5, 5.0)]
    assert sure == sorted(sure)


def test_only_the_log_loss() -> None:
    """A margin is no likelihood: it is refused in words that name the labeler which has it."""
    with pytest.raises(ParameterError, match="a Gaussian process has the log loss, got 'margin'; see KernelChainLabeler"):
        fitted(np.ones(LENGTH), surrogate="margin")


@pytest.mark.slow
def test_it_passes_the_checks_of_estimators() -> None:
    """The promises of estimators of sequences hold, as for ChainLabeler."""
    report = check_sequence_estimator(GaussianProcessLabeler(C=10.0, max_iter=10))
    assert len(report.named("passed")) >= 30, str(report)
