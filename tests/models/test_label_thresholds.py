"""Thresholds for F1: the best ones by trying all, moved into the model's weights, with outputs that stay in the output space."""

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from structpred.data.hierarchy import LabelHierarchy
from structpred.distributed import Shards, fit
from structpred.errors import ParameterError
from structpred.evaluation import evaluate_multilabel
from structpred.models import HierarchicalMultiLabel, MultiLabelMRF
from structpred.models.fields.thresholds import f1_thresholds

RNG = np.random.default_rng(3)


def micro_f1(Y: Any, on: Any) -> float:
    """Over the entries that are known."""
    return 2 * (on & (Y == 1)).sum() / max((on & (Y >= 0)).sum() + (Y == 1).sum(), 1)


@pytest.mark.parametrize("n_values", [3, 1000])
def test_no_other_thresholds_give_a_better_f1(n_values: int) -> None:
    """All combinations of cuts of three labels are tried; scores are tied, and labels are missing."""
    for _ in range(20):
        Y, S = RNG.integers(-1, 2, (5, 3)), RNG.integers(0, n_values, (5, 3)) / 3.0
        found = micro_f1(Y, f1_thresholds(Y, S) < S)
        cuts = [[-1.0, *S[:, k].tolist()] for k in range(3)]
        assert found == pytest.approx(max(micro_f1(Y, np.array(one) < S) for one in product(*cuts)))


def examples(n: int = 90) -> tuple[Any, Any]:
    """Rare labels, which are noisy; the same whatever ran before."""
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, 4))
    return X, (X[:, :3] + rng.normal(size=(n, 3)) > 1.0).astype(int)


def test_scores_are_lowered_by_thresholds_of_held_out_folds() -> None:
    """Only the weights of the bias move, by thresholds that are those of three models on two thirds of the data; F1 rises."""
    X, Y = examples(300)
    plain = MultiLabelMRF(edges=[], bias=2.0, max_iter=30, random_state=5, scale=None).fit(X, Y)
    moved = MultiLabelMRF(edges=[], bias=2.0, max_iter=30, random_state=5, scale=None, threshold="f1").fit(X, Y)
    fold, scores = np.random.default_rng(5).permutation(len(Y)) % 3, np.zeros(Y.shape)
    for k in range(3):
        part = MultiLabelMRF(edges=[], bias=2.0, max_iter=30, random_state=5, scale=None).fit(X[fold != k], Y[fold != k])
        scores[fold == k] = part.predict_scores(X[fold == k])
    thresholds = f1_thresholds(Y, scores)
    np.testing.assert_allclose(moved.predict_scores(X), plain.predict_scores(X) - thresholds, atol=1e-5)
    changed = (moved.coef_ != plain.coef_)[: 2 * 3 * 5].reshape(3, 5, 2)
    assert changed[:, -1].all()
    assert not changed[:, :-1].any()
    T, U = examples(2000)
    assert evaluate_multilabel(U, moved.predict(T)).micro_f1 > evaluate_multilabel(U, plain.predict(T)).micro_f1 + 0.02


@pytest.mark.parametrize("require", [None, "path", "leaf"])
def test_outputs_stay_in_the_output_space(require: str | None) -> None:
    """Along a hierarchy outputs are closed, paths where paths are asked for, and have a leaf where a leaf is."""
    tree = LabelHierarchy.from_parents([-1, -1, 0, 0, 1])
    X = RNG.normal(size=(60, 4))
    Y = tree.closed(np.eye(5, dtype=int)[2 + (X[:, :3] + RNG.normal(size=(60, 3))).argmax(axis=1)]).astype(int)
    model = HierarchicalMultiLabel(hierarchy=tree, require=require, max_iter=20, threshold="f1").fit(X, Y)
    found = model.predict(RNG.normal(size=(200, 4)))
    assert (tree.closed(found) == found).all()
    leaves = found[:, 2:].sum(axis=1)
    assert {None: leaves >= 0, "path": leaves == 1, "leaf": leaves >= 1}[require].all()


def test_it_is_a_setting_like_others(tmp_path: Path) -> None:
    """Weights of samples, missing labels and names of labels are taken; a model file keeps setting and weights."""
    X, Y = examples()
    named = [[name for name, on in zip("abc", row, strict=True) if on] for row in Y.tolist()]
    model = MultiLabelMRF(threshold="f1", max_iter=10).fit(X, named, sample_weight=np.ones(len(X)))
    np.testing.assert_array_equal(model.coef_, MultiLabelMRF(threshold="f1", max_iter=10).fit(X, Y).coef_)
    model.save(tmp_path / "m.spz")
    again = MultiLabelMRF.load(tmp_path / "m.spz")
    assert again.threshold == "f1"
    np.testing.assert_array_equal(again.predict_scores(X), model.predict_scores(X))
    Y[::7, 1] = -1
    assert MultiLabelMRF("bcfw", threshold="f1", max_iter=5).fit(X, Y).predict(X).shape == Y.shape


def test_what_cannot_be_is_refused() -> None:
    """Another word, no bias, and shards, of which none holds all rows; before training."""
    X, Y = examples(20)
    for settings in ({"threshold": "f2"}, {"threshold": "f1", "bias": 0.0}):
        with pytest.raises(ParameterError, match="threshold: expected None, or 'f1' without shards and with a bias"):
            MultiLabelMRF(**settings).fit(X, Y)
    with pytest.raises(ParameterError, match="folds, which a precomputed kernel does not have"):
        MultiLabelMRF(threshold="f1", kernel="precomputed").fit(np.eye(20), Y)
    parts = Shards.of_functions([lambda k=k: (X[k::2], Y[k::2]) for k in range(2)])
    with pytest.raises(ParameterError, match="threshold: expected None, or 'f1' without shards"):
        fit(MultiLabelMRF(threshold="f1", max_iter=2), parts)
