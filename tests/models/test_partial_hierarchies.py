"""HierarchicalMultiLabel on labels that are missing: marks, what known labels imply, likelihood by enumeration, errors."""

import itertools

import numpy as np
import pytest

from structpred.data.hierarchy import LabelHierarchy
from structpred.errors import DataError
from structpred.models import HierarchicalMultiLabel

TREE = LabelHierarchy.from_parents([-1, 0, 1, 0], ["animal", "bird", "owl", "fish"])


def sample(seed=0, n=100):
    """Features, and closed labels that depend on them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X, TREE.closed(X + rng.normal(scale=0.3, size=X.shape) > 0.3).astype(int)


def without_some(Y, share=0.4, seed=1):
    """The rows with -1 in the place of a share of the labels."""
    return np.where(np.random.default_rng(seed).random(Y.shape) < share, -1, Y)


@pytest.mark.parametrize("settings", [{}, {"surrogate": "log", "trainer": "lbfgs"}])
def test_two_fifths_of_the_labels_are_missing(settings):
    """The model stays near the one of all labels; predictions are closed; its certificate is local."""
    X, Y = sample()
    common = {"C": 1.0, "max_iter": 20, "hierarchy": TREE, "scale": None, **settings}
    some, full = (HierarchicalMultiLabel(**common).fit(X, y) for y in (without_some(Y), Y))
    test = sample(seed=2)
    assert some.score(*test) > full.score(*test) - 0.06
    assert TREE.broken(some.predict(test[0])) is None
    assert some.certificate_.local
    assert not full.certificate_.local


def test_marks_of_missing_labels():
    """None, the set {0, 1} and -1 mean the same, a set of one state is that state, and implied labels may be left out."""
    X, Y = sample(n=20)
    Y = without_some(Y, 0.3)
    listed = [[None if k == -1 and i % 2 else {0, 1} if k == -1 else {k} if i % 3 else k for k in row] for i, row in enumerate(Y)]
    found = [HierarchicalMultiLabel(max_iter=4, hierarchy=TREE).fit(X, y).coef_.tobytes() for y in (Y, listed, TREE.implied(Y))]
    assert len(set(found)) == 1


def test_the_likelihood_is_that_of_the_closed_outputs_that_agree():
    """The objective of lbfgs is 1/2 |w|^2 - C sum_i log p(closed outputs that agree with the known labels)."""
    X, Y = sample(n=12)
    Y = without_some(Y)
    model = HierarchicalMultiLabel("lbfgs", C=1.0, max_iter=5, surrogate="log", hierarchy=TREE).fit(X, Y)
    outputs = np.array([y for y in itertools.product((0, 1), repeat=4) if TREE.broken(np.array([y])) is None])
    loss, field = 0.0, model._field
    for x, known in zip(X, Y, strict=True):
        theta = next(iter(field.inference(field.read([x])).part_scores(model.coef_)))
        scores = np.array([theta[model.oracle_.parts(y, field.shape)].sum() for y in outputs])
        agree = ((known < 0) | (outputs == known)).all(axis=1)
        loss += np.logaddexp.reduce(scores) - np.logaddexp.reduce(scores[agree])
    expected = (0.5 * model.coef_ @ model.coef_ + loss) / len(X)
    assert model.certificate_.primal == pytest.approx(expected, rel=1e-5)


def test_known_labels_that_contradict_each_other_are_refused():
    """A label that is on under one that is off, however far above, is an error that names sample and labels; so are odd sets."""
    X, Y = sample(n=5)
    Y = without_some(Y, 0.0)
    Y[3] = [0, -1, 1, -1]
    with pytest.raises(DataError, match="sample 3: label 'owl' is on, but 'animal' above it is off"):
        HierarchicalMultiLabel(hierarchy=TREE).fit(X, Y)
    with pytest.raises(DataError, match="sample 3: label 'owl' is on without its parent 'bird'"):
        HierarchicalMultiLabel(hierarchy=TREE).fit(X, np.where(Y < 0, 0, Y))
    for odd in (set(), {2}):
        with pytest.raises(DataError, match="sample 0: expected 0, 1 or both in the set of label 1"):
            HierarchicalMultiLabel(hierarchy=TREE).fit(X, [[1, odd, 0, 0], *np.abs(Y[1:]).tolist()])
    with pytest.raises(DataError, match=r"got -1 for label 0 \(missing; only training takes that"):
        HierarchicalMultiLabel(hierarchy=TREE).fit(X, sample(n=5)[1]).score(X, np.full((5, 4), -1))
