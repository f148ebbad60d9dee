"""Own oracles on outputs that are known in part: labels, sets and parts; latent variables; errors."""

import numpy as np
import pytest

from structpred import Instance, Oracle
from structpred.core.costs import PartCosts
from structpred.errors import DataError, InfeasibleError, ParameterError
from structpred.models import StructuredPredictor
from structpred.oracles.assignment import AssignmentOracle
from structpred.oracles.enumerated import EnumeratedOracle


def matchings(n=30, size=4, seed=0):
    """Matchings whose parts have noisy features, and the true ones."""
    rng, X, y = np.random.default_rng(seed), [], []
    for _ in range(n):
        truth = rng.permutation(size)
        on = np.zeros((size, size))
        on[np.arange(size), truth] = 1.0
        X.append(Instance(np.stack([on.ravel() + rng.normal(scale=0.7, size=size * size), np.ones(size * size)], 1), (size,)))
        y.append(truth)
    return X, y


def partly(y, share=0.4, seed=1):
    """The outputs with -1, None, sets, or nothing at all, at some places."""
    rng = np.random.default_rng(seed)
    found = []
    for i, labels in enumerate(y):
        rows = [label if rng.random() > share else (-1, None, {label, (label + 1) % 4})[rng.integers(3)] for label in labels]
        found.append(None if i % 7 == 3 else rows)
    return found


@pytest.mark.mostly_slow
@pytest.mark.parametrize("settings", [{}, {"trainer": "lbfgs"}, {"trainer": "one_slack"}])
def test_matchings_that_are_known_in_part(settings):
    """Both ways learn matchings from some of their rows; what is wholly known trains as before, to the last bit."""
    X, y = matchings()
    oracle = EnumeratedOracle.of(AssignmentOracle())
    model = StructuredPredictor(oracle, max_iter=25, C=10.0, **settings).fit(X, partly(y))
    assert model.certificate_.local
    full = StructuredPredictor(oracle, max_iter=25, C=10.0, **settings).fit(X, y)
    assert model.score(*matchings(seed=5)) > full.score(*matchings(seed=5)) - 0.05
    lists = StructuredPredictor(oracle, max_iter=25, C=10.0, **settings).fit(X, [labels.tolist() for labels in y])
    np.testing.assert_array_equal(lists.coef_, full.coef_)


class Pairs(Oracle):
    """A class k of shape[0] ones, and with it a hidden view h of shape[1] ones: one part for each pair, no label grid."""

    def n_parts(self, shape):
        """One per pair."""
        return shape[0] * shape[1]

    def argmax(self, scores, shape):
        """The best pair."""
        return np.array([int(scores.argmax())])

    def parts(self, labels, shape):
        """The pair."""
        return labels

    def enumerate(self, shape):
        """All pairs."""
        return (np.array([k]) for k in range(self.n_parts(shape)))

    def marginals(self, scores, shape):
        """A softmax."""
        top = scores.max()
        weights = np.exp(scores - top)
        return float(top + np.log(weights.sum())), weights / weights.sum()

    @staticmethod
    def example_shapes():
        """Small ones."""
        return [(2, 3)]


@pytest.mark.parametrize("settings", [{"trainer": "bcfw"}, {"trainer": "lbfgs"}])
def test_latent_variables_of_an_own_oracle(settings):
    """A class of two clusters, which no single weight vector per class separates, is learnt with the cluster as latent part."""
    rng, X, y, truth = np.random.default_rng(0), [], [], []
    centres = np.array([[2.0, 0.0], [-2.0, 0.0], [0.0, 2.0], [0.0, -2.0]])  # class 0: the first two, class 1: the others
    for _ in range(40):
        k, h = rng.integers(2, size=2)
        x = np.append(centres[2 * k + h] + rng.normal(scale=0.3, size=2), 1.0)
        X.append(Instance(np.kron(np.eye(4), x), (2, 2)))  # each pair has weights of its own
        y.append(np.repeat([k == 0, k == 1], 2))
        truth.append(int(k))
    model = StructuredPredictor(Pairs(), max_iter=40, C=100.0, **settings).fit(X, y)
    assert np.mean([labels[0] // 2 == k for labels, k in zip(model.predict(X), truth, strict=True)]) > 0.95
    flat = [Instance(np.kron(np.eye(2), x.features[0, :3]), (2, 1)) for x in X]
    plain = StructuredPredictor(Pairs(), max_iter=20, C=100.0, **settings).fit(flat, [[k] for k in truth])
    assert plain.score(flat, [[k] for k in truth]) < 0.9


def test_bad_partial_outputs_name_the_place():
    """Labels off the grid, empty sets, masks of another size, and what leaves no output are refused."""
    X, y = matchings(3)
    model = StructuredPredictor(AssignmentOracle())
    for bad, message in (
        ([0, -1, 9, 2], r"sample 1, position 2: expected labels in 0..3, got \[9\]"),
        ([0, None, set(), 2], "sample 1, position 2: the set of labels that it may have is empty"),
        ([0, None, "a", 2], "sample 1, position 2: expected a whole number"),
        ([0, None], "sample 1: expected 4 labels, one per position, got 2"),
        (np.ones(3, np.bool_), "sample 1: expected 16 entries, one per part"),
    ):
        with pytest.raises(DataError, match=message):
            model.fit(X, [y[0], bad, y[2]])
    with pytest.raises(InfeasibleError, match="sample 1"):
        model.fit(X, [y[0], [0, 0, None, None], y[2]])


class WholeParts:
    """A loss of one's own that needs the whole truth: one for each part that is not in it."""

    def costs(self, labels, shape, oracle):
        """Costs of parts."""
        costs = np.ones(oracle.n_parts(shape))
        costs[oracle.parts(labels, shape)] = 0.0
        return PartCosts(0.0, costs)


@pytest.mark.slow
def test_the_log_loss_asks_no_loss_for_costs():
    """An own loss without allowed_costs trains on outputs known in part with the log loss, as Hamming does; margins name it."""
    rng = np.random.default_rng(0)
    X = [Instance(rng.normal(size=(6, 4)), (3, 2)) for _ in range(8)]
    y = [np.array([int(rng.integers(6))]) if i % 2 else rng.random(6) > 0.4 for i in range(8)]
    settings = {"trainer": "lbfgs", "max_iter": 5, "C": 1.0}
    oracle = EnumeratedOracle.of(Pairs())
    own = StructuredPredictor(oracle, WholeParts(), **settings).fit(X, y)
    np.testing.assert_array_equal(own.coef_, StructuredPredictor(oracle, "hamming", **settings).fit(X, y).coef_)
    with pytest.raises(ParameterError, match=r"sample 0.*allowed_costs.*surrogate='log'"):
        StructuredPredictor(oracle, WholeParts()).fit(X, y)
