"""Balances that are intervals: which shares a sample allows, and the best labels for each."""

import numpy as np
import pytest
from moons import best_of_all, problem
from scipy.stats import beta

from structpred.models import SemiSupervisedSVM
from structpred.models.kernels.functions import RBF
from structpred.models.semi_supervised import over_shares
from structpred.nonconvex.branch_and_bound import BranchAndBound
from structpred.nonconvex.pdm_rounds import PDMRounds


def test_each_share_has_its_best_labels() -> None:
    """With few points each number of positives has the least objective of all its labels, by enumeration."""
    p, _ = problem(12, 1.0, 0.1)
    found = over_shares(p, BranchAndBound(), 0, 2, 8)
    assert list(found) == list(range(2, 9))
    for k, one in found.items():
        assert one.p.sum() == k
        assert one.objective == pytest.approx(best_of_all(p.with_positives(k)), abs=1e-5)


def test_shares_between_are_filled() -> None:
    """Of more than nine shares those between have so many positives, an objective of their own labels, and no claim."""
    p, _ = problem(40, 1.0, 0.1)
    found = over_shares(p, PDMRounds(max_inner=100), 0, 5, 30)
    assert list(found) == list(range(5, 31))
    for k, one in found.items():
        assert one.p.sum() == k
        assert one.objective == pytest.approx(p.solve(one.p, tol=1e-8).objective, rel=1e-6)


def test_a_model_takes_the_best_share() -> None:
    """Its objective is the least of its rows, one for each number allowed, and at most that of the labelled share."""
    rng = np.random.default_rng(0)
    truth = np.arange(24) % 2
    X = np.c_[2.0 * truth, np.zeros(24)] + 0.3 * rng.normal(size=(24, 2))
    y = np.where(np.arange(24) < 12, truth, -1)
    model = SemiSupervisedSVM(RBF(1.0), C=10.0, C2=1.0, balance="interval").fit(X, y)
    low, high = beta.ppf(0.025, 6, 7), beta.ppf(0.975, 7, 6)  # Clopper & Pearson 1934, for 6 of 12
    assert len(model.history_) == int(12 * high) - int(np.ceil(12 * low)) + 1
    assert model.objective_ == min(row["objective"] for row in model.history_)
    assert model.objective_ <= SemiSupervisedSVM(RBF(1.0), C=10.0, C2=1.0).fit(X, y).objective_ + 1e-6
    assert model.lower_bound_ <= model.objective_
    assert (model.transduction_ == truth).all()
