"""Label sets and graphs with missing labels: both ways of training, marks, scores, errors."""

import numpy as np
import pytest

from structpred.errors import DataError
from structpred.models import GraphLabeler, MultiLabelMRF


def label_sets(n=60, seed=0):
    """Rows of which each label is the sign of a coordinate, and the third agrees with the first."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    Y = (X > 0).astype(int)
    return X + rng.normal(scale=0.3, size=X.shape), np.column_stack((Y, Y[:, 0]))


@pytest.mark.parametrize("settings", [{}, {"surrogate": "log", "trainer": "lbfgs"}])
def test_label_sets_with_missing_labels(settings):
    """-1 is a missing label; half of them gone the model stays near the one of all."""
    X, Y = label_sets()
    some = np.where(np.random.default_rng(1).random(Y.shape) < 0.5, -1, Y)
    model, full = (MultiLabelMRF(max_iter=20, C=1.0, **settings).fit(X, given) for given in (some, Y))
    assert model.score(*label_sets(seed=2)) > full.score(*label_sets(seed=2)) - 0.05
    assert model.certificate_.local
    assert not full.certificate_.local
    with pytest.raises(DataError, match="sample 0: y must be 0 or 1"):
        model.score(X, np.full(Y.shape, -1))
    with pytest.raises(DataError, match="all are missing"):
        MultiLabelMRF().fit(X, np.full(Y.shape, -1))


def graphs(n=20, seed=0):
    """Paths whose neighbours mostly agree."""
    rng, X, y = np.random.default_rng(seed), [], []
    for _ in range(n):
        codes = np.repeat(rng.integers(0, 2, 2), 3)
        X.append((codes[:, None] * 2.0 - 1.0 + rng.normal(scale=0.8, size=(6, 1)), [(k, k + 1) for k in range(5)]))
        y.append(["ab"[k] for k in codes])
    return X, y


@pytest.mark.parametrize("settings", [{}, {"surrogate": "log", "trainer": "lbfgs"}])
def test_graphs_with_missing_labels(settings):
    """None, the mark `missing` and sets at nodes; scores leave out the nodes whose label is not known."""
    X, y = graphs()
    rng = np.random.default_rng(1)
    some = [[label if rng.random() < 0.5 else (None if rng.random() < 0.5 else {"a", "b"}) for label in row] for row in y]
    model, full = (GraphLabeler(max_iter=20, C=1.0, **settings).fit(X, given) for given in (some, y))
    assert model.score(*graphs(seed=2)) > full.score(*graphs(seed=2)) - 0.05
    assert model.certificate_.local
    known = [isinstance(label, str) for row in some for label in row]
    right = np.concatenate(model.predict(X)) == np.concatenate(y)
    assert model.score(X, some) == pytest.approx(right[known].mean())
    marked = [["?" if label is None else label for label in row] for row in some]
    np.testing.assert_array_equal(GraphLabeler(max_iter=20, C=1.0, missing="?", **settings).fit(X, marked).coef_, model.coef_)
    with pytest.raises(DataError, match="sample 0, position 2: the set of labels that it may have is empty"):
        GraphLabeler().fit(X, [["a", "b", set(), "a", "b", "a"], *y[1:]])
