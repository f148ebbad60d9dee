"""Cross-validated predictions of sequences of unequal lengths."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, KFold, ShuffleSplit

from structpred.errors import DataError, ParameterError
from structpred.evaluation.model_selection import cross_val_predict
from structpred.models import ChainLabeler
from structpred.models.chain.inputs import NumericInput

RNG = np.random.default_rng(0)
X = [RNG.normal(size=(n, 4)) for n in RNG.integers(1, 7, 23)]
Y = [x[:, :3].argmax(axis=1) for x in X]
MODEL = ChainLabeler(max_iter=3)


def by_hand(folds, method="predict", model=MODEL, weights=None):
    """The same, fold by fold."""
    found = [None] * len(X)
    for train, test in folds:
        more = {} if weights is None else {"sample_weight": weights[train]}
        fitted = clone(model).fit([X[i] for i in train], [Y[i] for i in train], **more)
        for i, prediction in zip(test, getattr(fitted, method)([X[i] for i in test]), strict=True):
            found[i] = prediction
    return found


def same(one, other):
    """Whether two ragged lists are equal."""
    return len(one) == len(other) and all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("cv", [None, 3, KFold(4, shuffle=True, random_state=1)], ids=str)
def test_each_sequence_is_predicted_by_the_other_folds(cv) -> None:
    """The result is that of a loop over the folds, in the order of X."""
    splitter = KFold(cv or 5) if cv is None or isinstance(cv, int) else cv
    assert same(cross_val_predict(MODEL, X, Y, cv=cv), by_hand(splitter.split(X)))
    assert not hasattr(MODEL, "coef_")


def test_probabilities_weights_and_groups() -> None:
    """Other methods, weights that are split along, and folds by group."""
    model, weights, groups = ChainLabeler("oeg", max_iter=3), np.arange(1.0, 24.0), np.arange(23) % 5
    folds = list(GroupKFold(3).split(X, groups=groups))
    settings = {"cv": GroupKFold(3), "groups": groups, "method": "predict_marginals", "params": {"sample_weight": weights}}
    assert same(cross_val_predict(model, X, Y, **settings), by_hand(folds, "predict_marginals", model, weights))


@pytest.mark.slow
def test_processes_make_no_difference() -> None:
    """Two jobs give what one gives."""
    assert same(cross_val_predict(MODEL, X, Y, cv=2, n_jobs=2), cross_val_predict(MODEL, X, Y, cv=2))


def test_a_corpus_is_split_as_a_list_is() -> None:
    """Packed sequences give what their arrays give."""
    model = ChainLabeler(max_iter=3, fit_intercept=False)  # packed features get none
    packed = NumericInput().fit_transform(X)
    assert same(cross_val_predict(model, packed, Y, cv=3), cross_val_predict(model, X, Y, cv=3))


def test_equal_lengths_are_nothing_special() -> None:
    """Where all sequences have one length the result is a list all the same."""
    equal = [np.eye(4)[:3]] * 6
    found = cross_val_predict(MODEL, equal, [[0, 1, 2]] * 6, cv=2)
    assert isinstance(found, list)
    assert [labels.tolist() for labels in found] == [[0, 1, 2]] * 6


def test_what_cannot_be_split_is_refused() -> None:
    """Folds that overlap, lists of unequal lengths, generators, unknown methods: an error that says so."""
    with pytest.raises(ParameterError, match="exactly once"):
        cross_val_predict(MODEL, X, Y, cv=ShuffleSplit(3, random_state=0))
    with pytest.raises(DataError, match="23 sequences but y has 22"):
        cross_val_predict(MODEL, X, Y[1:])
    with pytest.raises(DataError, match="generator"):
        cross_val_predict(MODEL, (x for x in X), Y)
    with pytest.raises(ParameterError, match="predict_proba"):
        cross_val_predict(MODEL, X, Y, method="predict_proba")
    with pytest.raises(ParameterError, match="cv"):
        cross_val_predict(MODEL, X, Y, cv="five")
