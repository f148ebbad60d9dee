"""Thresholds of labels for micro F1, measured on scores of held-out folds."""

from typing import Any

import numpy as np

from structpred.core.types import Floats, Integers
from structpred.io.multilabel.data import MultiLabelData, label_table
from structpred.models.base import seed_of


def f1_thresholds(Y: Integers, scores: Floats) -> Floats:
    """For each label the threshold with which micro F1 of all entries is the largest; -1 in Y is not counted.

    max 2 tp / (p + n), where tp of the p entries above the thresholds are among the n true ones: each label maximises 2 tp - F p
    by itself, F the best so far, until F stands still (Dinkelbach 1967).

    >>> f1_thresholds(np.array([[1, 0], [1, 0], [0, 1]]), np.array([[0.5, -2.0], [-1.0, -3.0], [-3.0, -1.0]])).tolist()
    [-2.0, -1.5]
    """
    order, columns, true = np.argsort(-scores, axis=0, kind="stable"), np.arange(scores.shape[1]), Y == 1
    ranked: Floats = np.take_along_axis(scores, order, axis=0)
    ranked = np.concatenate((ranked[:1] + 1.0, ranked, ranked[-1:] - 1.0))
    rows = [np.take_along_axis(table, order, axis=0).cumsum(axis=0) for table in (2 * true, Y >= 0)]
    right, said = (np.concatenate((0 * table[:1], table)) for table in rows)
    best, found = -1.0, 0.0
    while found > best:
        best = found
        cut = np.where(ranked[1:] == ranked[:-1], -np.inf, right - best * said).argmax(axis=0)
        found = float(right[cut, columns].sum() / max(said[cut, columns].sum() + true.sum(), 1))
    return np.asarray(ranked[cut, columns] + ranked[cut + 1, columns]) / 2.0


def lower_scores(model: Any, X: Any, y: Any, sample_weight: Any) -> None:
    """Lower each label's score by its threshold, in the weights of the constant feature: outputs stay what they have to be."""
    from sklearn.base import clone

    data, field = model._sharding.read(model, X, y, whole=True), model._field
    fold, scores = np.random.default_rng(seed_of(model.random_state)).permutation(len(data.Y)) % 3, np.zeros(data.Y.shape)
    names = field.feature_names or [str(k) for k in range(field.n_features)]
    whole = MultiLabelData(data.rows, label_table(data.Y), field.names, names, data.hierarchy)
    settings = {"threshold": None, "checkpoint": None, "resume": False, "callbacks": None, "patience": None, "verbose": 0}
    settings |= {} if data.hierarchy is None else {"require": model.require_}
    for kept in (fold != k for k in range(3)):
        weight = None if sample_weight is None else np.asarray(sample_weight)[kept]
        part = clone(model).set_params(**settings).fit(whole.take(kept), sample_weight=weight)
        scores[~kept] = part.predict_scores(data.rows[~kept])
    thresholds, n = f1_thresholds(data.Y, scores), field.n_labels
    thresholds[np.abs(thresholds) > 1e29] = 0.0  # of labels that all outputs have
    width = (field.n_weights - field.tables * max(len(field.edges), 1) * 4) // (2 * n)
    model.coef_ = model.coef_.copy()
    model.coef_[: 2 * n * width].reshape(n, width, 2)[:, -1] += np.outer(thresholds / (2.0 * field.bias), (1.0, -1.0))
