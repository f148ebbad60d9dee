"""Checks inside scikit-learn's own tools: splits, searches, curves, routing of sample weights."""

from typing import Any

import numpy as np

from structpred.testing.check_cases import expect, fresh, needs_fit_argument, numbers, words


def check_grid_search(estimator: Any) -> None:
    """GridSearchCV runs and its best estimator predicts."""
    from sklearn.model_selection import GridSearchCV

    counts = [name for name in ("max_iter", "max_iterations", "n_iter") if name in estimator.get_params(deep=False)]
    grid = {counts[0]: [1, 2]} if counts else {}
    for X, y in (numbers(), words()):
        search = GridSearchCV(fresh(estimator), grid, cv=3, error_score="raise").fit(X, y)
        expect([len(labels) for labels in search.predict(X)] == [len(x) for x in X], "predictions have other lengths")


def check_cross_val_score(estimator: Any) -> None:
    """cross_val_score runs with a number of folds and with KFold."""
    from sklearn.model_selection import KFold, cross_val_score

    X, y = numbers()
    for cv in (3, KFold(3, shuffle=True, random_state=0)):
        scores = cross_val_score(fresh(estimator), X, y, cv=cv, error_score="raise")
        expect(scores.shape == (3,) and np.isfinite(scores).all(), f"the scores are {scores}")


def check_train_test_split(estimator: Any) -> None:
    """What train_test_split gives can be fitted and scored."""
    from sklearn.model_selection import train_test_split

    X_train, X_test, y_train, y_test = train_test_split(*numbers(), random_state=0)
    expect(np.isfinite(fresh(estimator).fit(X_train, y_train).score(X_test, y_test)), "the score is not finite")


def check_learning_curve(estimator: Any) -> None:
    """learning_curve runs."""
    from sklearn.model_selection import learning_curve

    X, y = numbers()
    _, train, test = learning_curve(fresh(estimator), X, y, cv=3, train_sizes=[0.5, 1.0], error_score="raise")
    expect(train.shape == test.shape == (2, 3), "the curve has another shape")


def check_metadata_routing(estimator: Any) -> None:
    """cross_validate routes sample_weight to fit where the estimator asks for it."""
    from sklearn import config_context
    from sklearn.model_selection import cross_validate

    needs_fit_argument(estimator, "sample_weight")
    X, y = numbers()
    with config_context(enable_metadata_routing=True):
        asking = fresh(estimator).set_fit_request(sample_weight=True)
        if hasattr(asking, "set_score_request"):
            asking.set_score_request(sample_weight=False)
        weights = {"sample_weight": np.linspace(0.5, 2.0, len(X))}
        found = cross_validate(asking, X, y, cv=3, params=weights, error_score="raise")
    expect(np.isfinite(found["test_score"]).all(), "a score is not finite")
