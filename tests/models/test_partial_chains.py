"""ChainLabeler on labels that are missing: both ways of training, marks, sets, dictionaries, scores, errors, files."""

import logging

import numpy as np
import pytest

from structpred.errors import DataError, MissingLabelsWarning, ParameterError
from structpred.models import ChainLabeler, GraphLabeler
from structpred.trainers.bcfw import BCFW
from structpred.trainers.cccp import CCCP

pytestmark = pytest.mark.filterwarnings("ignore::structpred.errors.MissingLabelsWarning")


def corpus(n=40, missing=0.5, seed=0):
    """Noisy sequences in which each label is mostly followed by the next one: X, y, and y without a share of its labels."""
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        codes = (rng.integers(3) + np.cumsum(rng.random(rng.integers(3, 8)) < 0.9)) % 3
        X.append(np.eye(3)[codes] + rng.normal(scale=0.6, size=(len(codes), 3)))
        y.append(["abc"[k] for k in codes])
    return X, y, [[None if rng.random() < missing else label for label in labels] for labels in y]


@pytest.mark.parametrize("settings", [{}, {"trainer": "lbfgs"}, {"trainer": "mira"}, {"trainer": "sgd", "surrogate": "log"}])
def test_both_ways_learn_from_what_is_known(settings):
    """With half of the labels a model comes near the one of all; its certificate is local; all known gives today's bits."""
    X, y, half = corpus()
    test = corpus(seed=1)[:2]
    model = ChainLabeler(max_iter=16, C=1.0, **settings).fit(X, half)
    assert model.score(*test) > ChainLabeler(max_iter=16, C=1.0, **settings).fit(X, y).score(*test) - 0.05
    assert model.certificate_.local
    assert not model.certificate_.proven
    assert not model.converged_
    plain, marked = (ChainLabeler(max_iter=4, **settings, **extra).fit(X, y) for extra in ({}, {"missing": "_"}))
    np.testing.assert_array_equal(plain.coef_, marked.coef_)
    assert not plain.certificate_.local


def test_the_log_says_what_is_done(caplog):
    """How many labels are missing, and which way was taken, is on the log."""
    X, _, half = corpus(8)
    with caplog.at_level(logging.INFO, "structpred.models"):
        ChainLabeler(max_iter=2).fit(X, half)
        ChainLabeler(trainer="lbfgs", max_iter=2).fit(X, half)
    n = sum(map(len, half))
    assert f"{sum(row.count(None) for row in half)} of {n} labels are missing" in caplog.text
    assert "CCCP completes them round by round, around BCFW" in caplog.text
    assert "the likelihood of what is known is maximised" in caplog.text


def test_none_is_warned_of_where_nobody_asked(recwarn):
    """A label that is None by mistake would change what is trained: a mark, or a set of labels, shows that it is meant."""
    X, y, half = corpus(4)
    with pytest.warns(MissingLabelsWarning, match=r"\d+ of \d+ labels are None: .* say so by a mark, missing='\?'") as found:
        ChainLabeler(max_iter=2).fit(X, half)
    assert found[0].filename == __file__
    recwarn.clear()
    ChainLabeler(max_iter=2, missing="?").fit(X, half)
    ChainLabeler(max_iter=2).fit(X, [[{"a", "b"}, *half[0][1:]], *half[1:]])
    ChainLabeler(max_iter=2).fit(X, y)
    assert not recwarn.list


def test_none_among_the_labels_of_nodes_is_warned_of():
    """GraphLabeler has the same mark."""
    nodes, edges = np.eye(2), [[0, 1]]
    with pytest.warns(MissingLabelsWarning, match="1 of 4 labels are None"):
        GraphLabeler(max_iter=2).fit([(nodes, edges)] * 2, [["a", None], ["a", "b"]])


def test_marks_of_missing_labels(caplog):
    """None, and the mark that `missing` names, mean the same; -1 without it is a label, of which a line on the log warns."""
    X, y, half = corpus(12)
    codes = [[-1 if label is None else "abc".index(label) for label in labels] for labels in half]
    marked = ChainLabeler(missing=-1, max_iter=4).fit(X, [np.array(row) for row in codes])
    np.testing.assert_array_equal(marked.coef_, ChainLabeler(max_iter=4).fit(X, half).coef_)
    assert marked.classes_.tolist() == [0, 1, 2]
    assert ChainLabeler(max_iter=2).fit(X, codes).classes_.tolist() == [-1, 0, 1, 2]
    assert "missing=-1" in caplog.text
    caplog.clear()
    ChainLabeler(max_iter=2).fit(X, [[1 if label == "a" else -1 for label in labels] for labels in y])
    assert not caplog.text


def test_sets_of_labels():
    """A set holds the labels that a token may have: all of them is the same as None, and less teaches more."""
    X, y, half = corpus(30)
    every = [[{"a", "b", "c"} if label is None else label for label in labels] for labels in half]
    settings = {"trainer": "lbfgs", "max_iter": 20, "C": 1.0}
    np.testing.assert_allclose(
        ChainLabeler(**settings).fit(X, every).coef_, ChainLabeler(**settings).fit(X, half).coef_, atol=1e-4
    )
    rng = np.random.default_rng(2)
    pairs = [[{label, "abc"[rng.integers(3)]} for label in labels] for labels in y]
    for trainer in ("lbfgs", "bcfw"):
        model = ChainLabeler(trainer=trainer, max_iter=16, C=1.0).fit(X, pairs)
        assert model.score(X, y) > 0.7
        found = model.predict(X, allowed=pairs)
        assert all(label in choice for one, row in zip(found, pairs, strict=True) for label, choice in zip(one, row, strict=True))


def test_a_tag_dictionary_narrows_what_is_missing():
    """`allowed` and constraints hold for missing labels, too."""
    X, y, half = corpus(10)
    allowed = [[{label, "c"} for label in labels] for labels in y]
    both = [[allowed[i][t] if label is None else label for t, label in enumerate(row)] for i, row in enumerate(half)]
    settings = {"trainer": "lbfgs", "max_iter": 5}
    model = ChainLabeler(**settings).fit(X, half, allowed=allowed)
    assert np.isfinite(model.coef_).all()
    assert model.score(X, y) > 0.5
    assert not np.array_equal(model.coef_, ChainLabeler(**settings).fit(X, both).coef_)  # there the others may win, and lose
    bad = [[{"c"} for _ in labels] for labels in y]
    with pytest.raises(DataError, match=r"sample \d+, position \d+: `allowed` leaves none"):
        ChainLabeler().fit(X, half, allowed=bad)


def test_scores_leave_out_what_is_not_known():
    """score() and held-out data count the tokens whose label is known."""
    X, y, half = corpus(20)
    model = ChainLabeler(max_iter=8).fit(X, half, dev=(X, half))
    known = [label is not None for labels in half for label in labels]
    right = [p == g for one, labels in zip(model.predict(X), y, strict=True) for p, g in zip(one, labels, strict=True)]
    assert model.score(X, half) == pytest.approx(np.mean(np.array(right)[known]))
    assert max(row["dev_score"] for row in model.history_) == pytest.approx(model.score(X, half))
    with pytest.raises(DataError, match="all are missing"):
        model.score(X, [[None] * len(labels) for labels in y])


def test_bad_labels_name_the_place():
    """An empty set, nothing known at all, constraints that leave no label, and a convex trainer are refused."""
    X, y, half = corpus(5)
    with pytest.raises(DataError, match="sample 0, position 1: the set of labels that it may have is empty"):
        ChainLabeler().fit(X, [[y[0][0], set(), *y[0][2:]], *half[1:]])
    with pytest.raises(DataError, match="y: expected some labels, but all are missing"):
        ChainLabeler().fit(X, [[None] * len(labels) for labels in y])
    tags = [["I-X", *[None] * (len(labels) - 1)] for labels in y]
    tags[1] = ["B-X", *tags[1][1:]]
    with pytest.raises(DataError, match="sample 0, position 0: the constraints leave no label"):
        ChainLabeler(constraints="iob2").fit(X, tags)
    with pytest.raises(ParameterError, match="OnlineEG cannot minimise MarginalLogLoss"):
        ChainLabeler(trainer="oeg").fit(X, half)


def test_runs_are_continued_and_models_kept(tmp_path):
    """A resumed run, warm starts and a trainer object give the bits of one run; a file keeps that the optimum is local."""
    X, y, half = corpus(15)
    whole = ChainLabeler(max_iter=9).fit(X, half)
    path = tmp_path / "run"
    ChainLabeler(max_iter=5, checkpoint=path).fit(X, half)
    resumed = ChainLabeler(max_iter=9, checkpoint=path, resume=True).fit(X, half)
    warm = ChainLabeler(max_iter=5, warm_start=True).fit(X, half)
    warm.set_params(max_iter=9).fit(X, half)
    explicit = ChainLabeler(CCCP(BCFW()), max_iter=9).fit(X, half)
    for other in (resumed, warm, explicit):
        np.testing.assert_array_equal(other.coef_, whole.coef_)
    whole.save(tmp_path / "m.spz")
    loaded = ChainLabeler.load(tmp_path / "m.spz")
    assert loaded.certificate_ == whole.certificate_
    assert loaded.certificate_.local
    known = ChainLabeler(CCCP(BCFW()), max_iter=3).fit(X, y)
    np.testing.assert_array_equal(known.coef_, ChainLabeler(max_iter=3).fit(X, y).coef_)
