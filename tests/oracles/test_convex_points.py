"""Decisions that are points: portfolios against cvxpy asked directly, losses over them, models, what cannot be asked of them."""

from typing import Any

import cvxpy as cp
import numpy as np
import pytest

from structpred import layers
from structpred.core.fixed_scores import FORBIDDEN
from structpred.data.decisions import Decisions, portfolio_data
from structpred.errors import DataError, InfeasibleError, OracleError, ParameterError
from structpred.evaluation import evaluate_regret
from structpred.layers import Scores
from structpred.models import DecisionModel
from structpred.oracles.convex_points import UNIT, ConvexPoints, labels_of
from structpred.oracles.portfolio import PortfolioOracle, portfolio_shape

ORACLE = PortfolioOracle()
DATA = portfolio_data(60, n_assets=5, degree=4, seed=3)


def best_return(returns: np.ndarray, shape: Any) -> float:
    """The problem as it is published, by cvxpy, without any of our code."""
    w = cp.Variable(len(returns))
    risk = cp.quad_form(w, cp.psd_wrap(np.array(shape[1]))) <= shape[0]
    return float(cp.Problem(cp.Maximize(returns @ w), [w >= 0, cp.sum(w) <= 1, risk]).solve(solver=cp.CLARABEL))


def test_portfolios_are_those_of_the_published_problem() -> None:
    """Shares keep sum and risk, and return what cvxpy reaches when it is asked directly, also for returns of both signs."""
    for returns in (*DATA.values[:3], np.random.default_rng(0).normal(size=5), -np.ones(5)):
        w = ORACLE.point(ORACLE.argmax(returns, DATA.shape), DATA.shape)
        assert w.min() > -1e-9
        assert w.sum() < 1.0 + 1e-9
        assert w @ np.array(DATA.shape[1]) @ w < DATA.shape[0] * (1.0 + 1e-8)
        assert w @ returns == pytest.approx(best_return(returns, DATA.shape), rel=1e-6, abs=1e-7)


@pytest.mark.slow
def test_a_model_of_returns_loses_what_cvxpy_says() -> None:
    """Trained by SPO+, a model loses less on new data than one that knows the means; its regrets are those of cvxpy."""
    train, test = DATA.rows(slice(40)), DATA.rows(slice(40, None))
    model = DecisionModel(ORACLE, shape=DATA.shape, max_iter=3).fit(train.features, values=train.values)
    regrets = model.regrets(test.features, values=test.values)
    decisions = model.predict(test.features)
    shares = np.array([ORACLE.point(labels, DATA.shape) for labels in decisions])
    direct = np.array([best_return(own, DATA.shape) for own in test.values])
    np.testing.assert_allclose(regrets.best, direct, rtol=1e-6)
    np.testing.assert_allclose(regrets.regrets, direct - (shares * test.values).sum(axis=1), atol=1e-7)
    means = DecisionModel(ORACLE, shape=DATA.shape, max_iter=1).fit(np.zeros((40, 1)), values=train.values)
    assert 0.0 < regrets.mean < means.regrets(np.zeros((20, 1)), values=test.values).mean
    found = evaluate_regret(ORACLE, decisions, [DATA.shape] * 20, values=test.values)
    np.testing.assert_allclose(found.regrets, regrets.regrets, atol=1e-12)


LOSSES: dict[str, Any] = {
    "spo+": layers.SPOPlus(ORACLE),
    "perceptron": layers.Perceptron(ORACLE),
    "pg": layers.PerturbationGradient(ORACLE),
    "perturbed": layers.PerturbedLoss(ORACLE, samples=4, sigma=0.3),
    "multiplicative": layers.PerturbedLoss(ORACLE, samples=4, sigma=0.3, multiplicative=True),
}


@pytest.mark.parametrize("name", LOSSES)
def test_gradients_are_differences(name: str) -> None:
    """Losses over points have the slopes that differences of their values have, along random directions."""
    rng, shapes = np.random.default_rng(4), [DATA.shape, ORACLE.example_shapes()[0]]
    batch = Scores.of(ORACLE, shapes)
    theta, truth, step = rng.normal(size=8) + 1.0, rng.normal(size=8) + 1.0, 1e-4 * rng.normal(size=8)

    def at(point: np.ndarray) -> Any:
        return LOSSES[name](batch, point, true_scores=truth)

    slope = (at(theta + step).values.sum() - at(theta - step).values.sum()) / 2.0
    assert at(theta).gradient @ step == pytest.approx(slope, rel=1e-3, abs=1e-8)


def test_layers_pull_back_through_points() -> None:
    """The mean of noisy portfolios is a portfolio; pull-backs are finite, and that of the black box is its difference."""
    batch, rng = Scores.of(ORACLE, [DATA.shape] * 2), np.random.default_rng(5)
    theta, gradient = rng.normal(size=10) + 1.0, rng.normal(size=10)
    mu, pull = layers.PerturbedLayer(ORACLE, samples=4)(batch, theta)
    assert ORACLE.point(labels_of(mu[:5]), DATA.shape).sum() <= 1.0 + 1e-9
    assert np.isfinite(pull(gradient)).all()
    box = layers.BlackBoxLayer(ORACLE, lam=0.5)(batch, theta)
    moved = batch.counts(batch.best(theta - 0.5 * gradient))
    np.testing.assert_allclose(box.pull(gradient), (batch.counts(batch.best(theta)) - moved) / 0.5, atol=1e-9)


def test_gold_and_fixed_scores() -> None:
    """Gold is given as labels or as shares; labels outside of the set are refused by name; a forbidden asset gets no share."""
    batch, loss = Scores.of(ORACLE, [DATA.shape] * 2), layers.Perceptron(ORACLE)
    best = batch.decide(DATA.values[:2])
    shares = np.concatenate([ORACLE.point(labels, DATA.shape) for labels in best])
    for gold in (best, list(best), shares):
        assert loss(batch, DATA.values[:2], gold=gold).values == pytest.approx([0.0, 0.0], abs=1e-8)
    with pytest.raises(DataError, match=r"sample 1: the amounts .* lie outside of the set, by"):
        loss(batch, DATA.values[:2], gold=[best[0], labels_of(np.ones(5))])
    with pytest.raises(DataError, match="sample 0: expected 5 amounts"):
        loss(batch, DATA.values[:2], gold=[best[0][:4], best[1]])
    mask = np.arange(10) == 7
    known = Scores.of(ORACLE, [DATA.shape] * 2, fixed=(mask, np.where(mask, FORBIDDEN, 0.0)))
    assert known.counts(known.best(known.full(DATA.values[:2])))[7] == 0.0


def test_what_needs_parts_is_refused() -> None:
    """Trainers of structural support vector machines, pools and the active set say that outputs are points."""
    with pytest.raises(ParameterError, match="points with amounts: set trainer='adam'"):
        DecisionModel(ORACLE, shape=DATA.shape, trainer="bcfw").fit(DATA.features, values=DATA.values)
    batch = Scores.of(ORACLE, [DATA.shape])
    for ask in (layers.NCE(ORACLE), layers.SparseMAPLoss(ORACLE)):
        with pytest.raises(OracleError, match="points with amounts, not sets of parts"):
            ask(batch, DATA.values[0], true_scores=DATA.values[0])


def two_of(shape: Any) -> tuple[Any, list[Any]]:
    """Flows from two sources with a common capacity: another variable, and no round constraint."""
    mu, total = cp.Variable(2), cp.Variable()
    return mu, [mu >= 0, cp.sum(mu) == total, total <= shape[0], mu[0] <= 0.7]


def test_sets_of_ones_own() -> None:
    """A polytope with a variable of its own: its best corner, not rounded; points outside, empty and huge sets are refused."""
    oracle = ConvexPoints(two_of, example_shapes=[(1.5,)])
    labels = oracle.argmax(np.array([2.0, 1.0]), (1.5,))
    assert (labels * UNIT).tolist() == pytest.approx([0.7, 0.8])
    with pytest.raises(ValueError, match=r"lie outside of the set, by 0\.05"):
        oracle.point(labels_of(np.array([0.7, 0.9])), (1.5,))
    with pytest.raises(InfeasibleError):
        oracle.argmax(np.ones(2), (-1.0,))
    with pytest.raises(DataError, match="measure parts in larger units"):
        oracle.argmax(np.ones(2), (1e8,))


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((3,), "expected a shape of portfolio_shape"),
        ((0.0, ((1.0,),)), "risk finite and > 0"),
        (portfolio_shape([[1.0, 2.0], [2.0, 1.0]], 1.0), "negative eigenvalues; the smallest one is -1"),
        ((1.0, ((1.0, 0.0),)), "expected a shape of portfolio_shape"),
    ],
)
def test_what_is_no_portfolio_is_refused(shape: Any, message: str) -> None:
    """Shapes that are no covariance with a risk raise a clear error."""
    with pytest.raises(DataError, match=message):
        ORACLE.n_parts(shape)


def test_data_are_rows() -> None:
    """The generator gives what a DecisionModel takes: values and a shape that its oracle knows."""
    assert isinstance(DATA, Decisions)
    assert ORACLE.n_parts(DATA.shape) == DATA.values.shape[1] == 5
