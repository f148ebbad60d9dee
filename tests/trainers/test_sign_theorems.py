"""The two theorems of sign-constrained learning as promises: known before training, and held by runs of the algorithms."""

import numpy as np
import pytest
from sign_cases import LOSSES, data, problem

from structpred.errors import ParameterError
from structpred.objectives.scalar.margins import Hinge, SmoothedHinge
from structpred.rows.linear_task import LinearTask
from structpred.trainers.loop import RunSettings, train
from structpred.trainers.pegasos import Pegasos
from structpred.trainers.problem import Problem
from structpred.trainers.sdca import SDCA, steps_for


def algorithm_2(X, y, c, lam, gamma, t_all, t_start, seed):
    """Algorithm 2 as printed, for the smoothed hinge (gamma = 0: the hinge): the mean of the iterates t_start .. t_all - 1."""
    rng, n = np.random.default_rng(seed), len(X)
    a, alpha, u, total = X * y[:, None], np.zeros(n), np.zeros(X.shape[1]), np.zeros(X.shape[1])
    for t, i in enumerate(rng.integers(n, size=t_all)):
        w = np.where(c * u < 0, 0.0, u)
        total += w if t >= t_start else 0.0
        q = a[i] @ a[i] / (lam * n)
        new = np.clip(alpha[i] + (1.0 - a[i] @ w - gamma * alpha[i]) / (q + gamma), 0.0, 1.0)
        u += (new - alpha[i]) / (lam * n) * a[i]
        alpha[i] = new
    return total / (t_all - t_start)


@pytest.mark.parametrize("gamma", [0.0, 0.5])
def test_theorem_2_says_enough_steps(gamma) -> None:
    """The mean over seeds of the printed algorithm is within eps after T steps, and T falls as eps grows."""
    loss, lam, eps = SmoothedHinge(gamma) if gamma else Hinge(), 0.3, 0.5
    X, y, _, c = data(n=20)
    made = problem(loss, lam, n=20)
    steps, start = steps_for(made, eps)
    assert 0 < start < steps < steps_for(made, eps / 4)[0]
    least = train(made, SDCA(), RunSettings(max_iter=300, tol=1e-9)).certificate.dual
    gaps = [made.primal(algorithm_2(X, y, c, lam, gamma, steps, start, seed)) - least for seed in range(3)]
    assert -1e-9 <= np.mean(gaps) <= eps


def test_theorem_2_at_its_formula() -> None:
    """By hand: R = 2, n = 2, lam = 1/4, r_loss = 1, hinge: G = 4; (17) is 4G/(lam eps), as the logarithm is below zero."""
    made = Problem(LinearTask([[2.0], [1.0]], [1, -1]), Hinge(), 0.25)
    assert steps_for(made, 0.5) == (128 + 32, 128)
    smooth = Problem(LinearTask([[2.0], [1.0]], [1, -1]), SmoothedHinge(0.5), 0.25)
    steps, start = steps_for(smooth, 0.1)
    least, first = 2 + 4 / (0.25 * 0.5), smooth.primal(np.zeros(1))
    assert start >= least * np.log(least * first / ((steps - start) * 0.1)) > start - 1.0
    for k in (1, 10, 40, 100, 400):  # (19) at other T - T_0 gives no smaller T
        assert steps <= k + least * np.log(least * first / (k * 0.1)) + 2.0


def test_what_theorem_2_is_not_about() -> None:
    """No tolerance of zero, and no samples that count differently."""
    for eps in (0.0, -1.0, np.nan):
        with pytest.raises(ParameterError, match="eps > 0"):
            steps_for(problem(Hinge(), 0.1), eps)
    with pytest.raises(ParameterError, match="equal weight"):
        steps_for(Problem(LinearTask([[1.0], [2.0]], [1, -1], sample_weight=[1.0, 2.0]), Hinge(), 0.1), 0.1)


@pytest.mark.parametrize("name", ["hinge", "logistic"])
@pytest.mark.parametrize("batch", [1, 10])
def test_theorem_1_bounds_the_mean_of_the_iterates(name, batch) -> None:
    """P(mean) - P* <= (sqrt(r lam) + L R)^2 (1 + log T) / (2 lam T) after T steps of SC-Pegasos, whatever the batch."""
    lam, made = 0.1, problem(LOSSES[name], 0.1)
    least = train(made, SDCA(), RunSettings(max_iter=400, tol=1e-9)).certificate.dual
    length = float(np.sqrt(made.task.squared_norms().max()))
    size = np.sqrt(made.primal(np.zeros(made.task.dim)) * lam) + length
    for passes in (1, 4, 16):
        result = train(made, Pegasos(batch=batch, average="full"), RunSettings(max_iter=passes, tol=0.0))
        steps = passes * -(-len(made.task) // batch)
        bound = size**2 * (1.0 + np.log(steps)) / (2.0 * lam * steps)
        assert -1e-9 <= made.primal(result.weights) - least <= bound
