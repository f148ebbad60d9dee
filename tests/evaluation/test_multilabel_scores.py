"""Multi-label scores compared with scikit-learn's, and hierarchical ones compared with walks by hand."""

import json
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import (
    accuracy_score,
    average_precision_score,
    f1_score,
    hamming_loss,
    jaccard_score,
    precision_recall_fscore_support,
)

from structpred.data.hierarchy import LabelHierarchy
from structpred.errors import DataError
from structpred.evaluation import evaluate_hierarchy, evaluate_multilabel
from structpred.io import MultiLabelData


@pytest.mark.parametrize("density", [0.0, 0.1, 0.4, 1.0])
@pytest.mark.parametrize("seed", range(5))
def test_scores_are_those_of_scikit_learn(seed: int, density: float) -> None:
    """All scores, over all entries, by example and by label; empty rows and columns included."""
    rng = np.random.default_rng(seed)
    gold, guess = ((rng.random((30, 6)) < density).astype(int) for _ in range(2))
    gold[0], guess[0] = 0, 0
    gold[:, 1], guess[:, 1] = 0, 0
    guess[:, 2] = 0
    found = evaluate_multilabel(gold, guess)
    assert found.accuracy == pytest.approx(jaccard_score(gold, guess, average="samples", zero_division=1))
    assert found.label_loss == pytest.approx(hamming_loss(gold, guess))
    assert found.subset_accuracy == pytest.approx(accuracy_score(gold, guess))
    assert found.micro_f1 == pytest.approx(f1_score(gold, guess, average="micro", zero_division=0))
    assert found.macro_f1 == pytest.approx(f1_score(gold, guess, average="macro", zero_division=0))
    assert found.example_f1 == pytest.approx(f1_score(gold, guess, average="samples", zero_division=1))
    wanted = precision_recall_fscore_support(gold, guess, average=None, zero_division=0)
    rows = [(one.precision, one.recall, one.f1, one.support) for one in found.labels]
    np.testing.assert_allclose(np.array(rows), np.array(wanted).T)
    micro = precision_recall_fscore_support(gold, guess, average="micro", zero_division=0)
    assert (found.micro_precision, found.micro_recall) == pytest.approx(micro[:2])


def test_au_prc_pools_the_entries_of_all_labels() -> None:
    """AU(PRC) is the area below the curve of all entries: by a walk down all thresholds, by scikit-learn, and once by hand."""
    gold, scores = np.array([[1, 0, 1], [0, 1, 0]]), np.array([[3.0, 2.0, 1.0], [0.5, 2.0, -1.0]])
    # 3: 1 of 1; 2: 2 of 3; 1: 3 of 4
    assert evaluate_multilabel(gold, gold, scores=scores).au_prc == pytest.approx((1 / 1 + 2 / 3 + 3 / 4) / 3)
    rng = np.random.default_rng(0)
    for _ in range(10):
        gold, scores = (rng.random((20, 5)) < 0.3).astype(int), rng.integers(0, 9, (20, 5)) / 3.0
        area, recall = 0.0, 0.0
        for threshold in sorted(set(scores.ravel().tolist()), reverse=True):
            on = scores >= threshold
            now = (gold & on).sum() / gold.sum()
            area, recall = area + (now - recall) * (gold & on).sum() / on.sum(), now
        found = evaluate_multilabel(gold, gold, scores=scores).au_prc
        assert found == pytest.approx(area)
        assert found == pytest.approx(average_precision_score(gold, scores, average="micro"))
    assert evaluate_multilabel(gold, gold).au_prc is None
    assert evaluate_multilabel(0 * gold, gold, scores=scores).au_prc is None
    with pytest.raises(DataError, match="scores: expected an array of shape"):
        evaluate_multilabel(gold, gold, scores=scores[:3])


def test_names_text_and_json() -> None:
    """Labels carry the data's names; the text has a row per label; the dict is JSON."""
    data = MultiLabelData(sparse.csr_array(np.eye(2)), np.array([[1, 0], [1, 1]], np.uint8), ["sun", "rain"], ["x", "y"])
    found = evaluate_multilabel(data, [[1, 0], [0, 1]])
    assert [one.name for one in found.labels] == ["sun", "rain"]
    assert "sun" in str(found).splitlines()[4]
    assert json.loads(json.dumps(found.to_dict()))["labels"][0]["recall"] == 0.5
    assert evaluate_multilabel(sparse.csr_array(data.Y), np.array([[1, 0], [0, 1]])).micro_f1 == found.micro_f1


def test_hierarchical_scores_of_random_trees() -> None:
    """H-loss, F1 and the weighted loss are what counting label by label gives."""
    rng = np.random.default_rng(0)
    for _ in range(30):
        n = int(rng.integers(1, 8))
        tree = LabelHierarchy.from_parents([-1, *(int(rng.integers(-1, k)) for k in range(1, n))])
        gold, guess = (tree.closed(rng.random((9, n)) < 0.3).astype(int) for _ in range(2))
        weights = rng.random(n)
        found = evaluate_hierarchy(gold, guess, tree, weights)
        h_loss = 0
        for a, b in zip(gold, guess, strict=True):
            for k in range(n):
                above = tree.parents[k][0] if tree.parents[k] else -1
                right_above = True
                while above >= 0:
                    right_above &= a[above] == b[above]
                    above = tree.parents[above][0] if tree.parents[above] else -1
                h_loss += a[k] != b[k] and right_above
        assert found.h_loss == pytest.approx(h_loss / 9)
        assert found.f1 == pytest.approx(f1_score(gold.ravel(), guess.ravel(), zero_division=0))
        assert found.weighted_loss == pytest.approx(float(((gold != guess) @ weights).mean()))
        assert len(found.by_depth) == tree.depths.max() + 1
        for depth, value in enumerate(found.by_depth):
            at = tree.depths == depth
            assert value == pytest.approx(f1_score(gold[:, at].ravel(), guess[:, at].ravel(), zero_division=0))
        assert found.open_rows == 0


def test_open_predictions_are_closed_and_counted() -> None:
    """A predicted child without its parent counts as if the parent were there, and is told."""
    tree = LabelHierarchy(3, [(0, 1), (0, 2)])
    found = evaluate_hierarchy([[1, 1, 0], [0, 0, 0]], [[0, 1, 0], [0, 0, 0]], tree)
    assert (found.f1, found.h_loss, found.open_rows) == (1.0, 0.0, 1)
    assert "H-loss 0.0000" in str(found)


@pytest.mark.parametrize(
    ("gold", "predicted", "names", "message"),
    [
        ([[1, 0]], [[1, 0], [0, 1]], None, "predicted: X has 1 samples but y has 2"),
        ([[1, 0]], [[1]], None, "predicted: y: expected 2 label columns, got 1"),
        ([[1, 2]], [[1, 0]], None, "sample 0: y must be 0 or 1, got 2 for label 1"),
        ([[1, 0]], [[1, 0.5]], None, "predicted: sample 0: y must be 0 or 1, got 0.5 for label 1"),
        (np.zeros((0, 2)), np.zeros((0, 2)), None, "at least one example"),
        ([1, 0], [1, 0], None, "expected rows of 0 and 1"),
        ([[1, 0]], [[1, 0]], ["a"], "2 labels but 1 names"),
        ([["a", "b"]], [[1, 0]], None, "MultiLabelBinarizer"),
    ],
)
def test_bad_rows_are_named(gold: Any, predicted: Any, names: Any, message: str) -> None:
    """Other values, other shapes, no rows: DataError that says which side."""
    with pytest.raises(DataError, match=message):
        evaluate_multilabel(gold, predicted, names)


def test_bad_hierarchies_are_named() -> None:
    """No hierarchy, one of another size, weights of another size: DataError."""
    for hierarchy, weights, message in (
        (None, None, "expected a hierarchy"),
        (LabelHierarchy(3, []), None, "the hierarchy has 3 labels, but the rows have 2"),
        (LabelHierarchy(2, []), [1.0], "label_weights: expected 2"),
    ):
        with pytest.raises(DataError, match=message):
            evaluate_hierarchy([[1, 0]], [[1, 0]], hierarchy, weights)
