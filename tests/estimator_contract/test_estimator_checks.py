"""The checks of estimators: ours pass all of them, and estimators broken on purpose are caught by the check that is about it."""

import numpy as np
import pytest

from estimator_contract.estimator_checks import check_sequence_estimator, checks
from estimator_contract.input_checks import numbers
from structpred.compat import CRF
from structpred.errors import ParameterError
from structpred.models import ChainLabeler

LABELERS = ["sgd", "mira", "perceptron", "oeg", "lbfgs", "owlqn", "pa", "arow"]
ALGORITHMS = ["l2sgd", "ap", "pa", "arow"]


def passes(estimator: object) -> None:
    """No check fails, and at least thirty apply."""
    report = check_sequence_estimator(estimator)
    assert len(report.named("passed")) >= 30, str(report)


@pytest.mark.slow
def test_chain_labeler_passes() -> None:
    """ChainLabeler with its default trainer."""
    passes(ChainLabeler(max_iter=3))


@pytest.mark.slow
@pytest.mark.parametrize("trainer", LABELERS)
def test_chain_labeler_passes_with_every_trainer(trainer: str) -> None:
    """ChainLabeler with each of the other trainers."""
    passes(ChainLabeler(trainer, max_iter=5))


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{}, {"c1": 0.1, "c2": 0.1}, *({"algorithm": name} for name in ALGORITHMS)], ids=str)
def test_crf_passes(settings: dict) -> None:
    """compat.CRF with each algorithm."""
    passes(CRF(**settings))


class SetsMore(ChainLabeler):
    """Its constructor sets what is no parameter of its own."""

    def __init__(self, trainer="bcfw", max_iter=3):
        super().__init__(trainer, max_iter=max_iter)


class Overwrites(ChainLabeler):
    """Fit changes a parameter."""

    def fit(self, X, y, *, sample_weight=None):
        super().fit(X, y, sample_weight=sample_weight)
        self.C = 2.0 * self.C
        return self


class ReturnsNothing(ChainLabeler):
    """Fit returns None."""

    def fit(self, X, y, *, sample_weight=None):
        super().fit(X, y, sample_weight=sample_weight)


class ForgetsWeights(ChainLabeler):
    """Sample weights are ignored."""

    def fit(self, X, y, *, sample_weight=None):
        if sample_weight is not None:
            sample_weight = np.ones(len(sample_weight))
        return super().fit(X, y, sample_weight=sample_weight)


class ChangesInput(ChainLabeler):
    """Fit changes X."""

    def fit(self, X, y, *, sample_weight=None):
        X, y = list(X), list(y)
        super().fit(X, y, sample_weight=sample_weight)
        if isinstance(X[0], np.ndarray) and X[0].flags.writeable:
            X[0][0, 0] += 1
        return self


class Random(ChainLabeler):
    """Fit draws without a seed."""

    def fit(self, X, y, *, sample_weight=None):
        super().fit(X, y, sample_weight=sample_weight)
        self.coef_ = self.coef_ + np.random.default_rng().normal(size=len(self.coef_)).astype(self.coef_.dtype)
        return self


class DependsOnOrder(ChainLabeler):
    """Every second sample is labelled otherwise."""

    def predict(self, X):
        found = super().predict(X)
        return [labels if i % 2 else labels[:1].repeat(len(labels)) for i, labels in enumerate(found)]


class SwallowsBadData(ChainLabeler):
    """NaN becomes zero in silence."""

    def fit(self, X, y, *, sample_weight=None):
        X = [np.nan_to_num(x, posinf=0, neginf=0) if isinstance(x, np.ndarray) else x for x in X]
        return super().fit(X, y, sample_weight=sample_weight)


class SaysNothingUseful(ChainLabeler):
    """The error does not name the sample."""

    def fit(self, X, y, *, sample_weight=None):
        try:
            return super().fit(X, y, sample_weight=sample_weight)
        except ValueError:
            raise ValueError("bad data") from None


class LosesLabels(ChainLabeler):
    """Whole numbers come back as strings."""

    def predict(self, X):
        return [labels.astype(str) for labels in super().predict(X)]


class CannotBePickled(ChainLabeler):
    """It keeps a lambda."""

    def fit(self, X, y, *, sample_weight=None):
        super().fit(X, y, sample_weight=sample_weight)
        self.odd_ = lambda: None
        return self


BROKEN = [
    (SetsMore, "check_no_attributes_set_in_init"),
    (Overwrites, "check_dont_overwrite_attributes"),
    (ReturnsNothing, "check_fit_returns_self"),
    (ForgetsWeights, "check_sample_weight_equivalence"),
    (ChangesInput, "check_input_unchanged"),
    (Random, "check_determinism"),
    (DependsOnOrder, "check_methods_subset_invariance"),
    (SwallowsBadData, "check_estimators_nan"),
    (SaysNothingUseful, "check_labels_longer_than_sequence"),
    (LosesLabels, "check_classifiers_int_labels"),
    (CannotBePickled, "check_estimators_pickle"),
]


@pytest.mark.mostly_slow
@pytest.mark.parametrize(("kind", "name"), BROKEN, ids=lambda value: value if isinstance(value, str) else value.__name__)
def test_a_broken_estimator_is_caught(kind: type, name: str) -> None:
    """The check that is about the fault fails, and passes for the estimator without it."""
    check = dict(checks())[name]
    settings = {"max_iter": 3} if kind is SetsMore else {"max_iter": 60, "trainer": "bcfw"}
    # whatever a check raises, the runner counts it as failed
    with pytest.raises(Exception):  # noqa: B017, PT011
        check(kind(**settings), *numbers())
    check(ChainLabeler(max_iter=60), *numbers())


@pytest.mark.slow
def test_the_error_names_the_failed_checks() -> None:
    """The runner goes through all checks and then names those that failed; the report can be had without an error."""
    with pytest.raises(AssertionError, match="check_fit_returns_self"):
        check_sequence_estimator(ReturnsNothing(max_iter=2))
    report = check_sequence_estimator(ReturnsNothing(max_iter=2), raise_errors=False)
    assert not report.ok
    assert len(report.results) == len(list(checks()))
    assert "failed: check_fit_returns_self: Fit returns the estimator." in str(report)


def test_there_are_many_and_each_says_what_it_promises() -> None:
    """More than thirty checks with names of their own and a sentence each; a class in place of an instance is refused."""
    found = dict(checks())
    assert len(found) == len(list(checks())) >= 50
    assert all(check.__doc__ and check.__doc__.endswith(".") for check in found.values())
    with pytest.raises(ParameterError, match="instance"):
        check_sequence_estimator(ChainLabeler)
