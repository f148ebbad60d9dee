"""What StructuredPredictor takes: instances that carry their shapes, named features, feature maps; and model selection."""

import warnings
from collections import namedtuple
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from subset_cases import Budget, Subsets, planted

from structpred import Instance, LabelRows
from structpred.errors import CheckpointError, DataError, ModelFileError
from structpred.features.parts import PartFeatures
from structpred.models import StructuredPredictor
from structpred.oracles.assignment import AssignmentOracle
from structpred.oracles.multiclass import MulticlassOracle


def test_instances_carry_their_shapes_through_everything(tmp_path: Path) -> None:
    """fit, dev, predict, score, save and load without shapes=; the same weights as with shapes= and plain features."""
    X, y = planted(20)
    assert len({len(labels) for labels in y}) > 1
    model = StructuredPredictor(Subsets(), C=10.0, max_iter=30, patience=30).fit(X, y, dev=planted(10, seed=1))
    assert model.score(X, y) > 0.8
    beside = StructuredPredictor(Subsets(), C=10.0, max_iter=30).fit([x.features for x in X], y, [x.shape for x in X])
    again = StructuredPredictor(Subsets(), C=10.0, max_iter=30).fit(X, y)
    assert beside.coef_.tobytes() == again.coef_.tobytes()
    model.save(tmp_path / "m.spz")
    loaded = StructuredPredictor.load(tmp_path / "m.spz", Subsets())
    assert loaded.score(*planted(10, seed=2)) == model.score(*planted(10, seed=2))


class Nothing(Subsets):
    """Takes nothing, whatever the scores are."""

    exact = False

    def argmax(self, scores: Any, shape: Any) -> Any:
        return np.empty(0, dtype=np.int64)


def test_model_selection_splits_instances() -> None:
    """cross_val_score and GridSearchCV give finite scores, and the search picks what does better, not the first."""
    X, y = planted(30)
    model = StructuredPredictor(Subsets(), max_iter=5)
    assert np.isfinite(cross_val_score(model, X, y, cv=3)).all()
    search = GridSearchCV(model, {"oracle": [Nothing(), Subsets()]}, cv=3).fit(X, y)
    bad, good = search.cv_results_["mean_test_score"]
    assert bad < good
    assert isinstance(search.best_estimator_.oracle, Subsets)
    assert not isinstance(search.best_estimator_.oracle, Nothing)
    assert search.score(X, y) > 0.8
    assert len(train_test_split(X, y, test_size=5, random_state=0)[1]) == 5


def test_model_selection_without_instances_says_what_to_do() -> None:
    """Where shapes= do not reach score, the error of every fold names the remedy."""
    X, y = planted(9)
    rows, shapes = [x.features for x in X], [x.shape for x in X]
    search = GridSearchCV(StructuredPredictor(Subsets(), max_iter=1), {"C": [1.0]}, cv=3, error_score="raise")
    with pytest.raises(DataError, match=r"GridSearchCV.*must be Instances"):
        search.fit(rows, y, shapes=shapes)


def test_a_failed_search_quotes_the_remedy() -> None:
    """scikit-learn turns errors of scores into NaN with a warning; the warning quotes ours."""
    X, y = planted(6)
    model = StructuredPredictor(Subsets(), max_iter=1)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        GridSearchCV(model, {"C": [1.0]}, cv=2).fit([x.features for x in X], y, shapes=[x.shape for x in X])
    assert sum("there it must be Instances" in str(one.message) for one in warned) == 2


def test_metadata_routing_carries_shapes() -> None:
    """Where scikit-learn routes metadata, shapes= reach fit and score without being asked for: scores are those of Instances."""
    X, y = planted(9)
    model = StructuredPredictor(Subsets(), max_iter=2)
    with config_context(enable_metadata_routing=True):
        search = GridSearchCV(model, {"C": [1e-6, 1.0, 10.0]}, cv=3)
        search.fit([x.features for x in X], y, shapes=[x.shape for x in X])
        expected = GridSearchCV(model, {"C": [1e-6, 1.0, 10.0]}, cv=3).fit(X, y)
    np.testing.assert_array_equal(search.cv_results_["mean_test_score"], expected.cv_results_["mean_test_score"])
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.best_params_ == expected.best_params_


def test_training_on_instances_resumes(tmp_path: Path) -> None:
    """A checkpoint knows its instances by what their shapes say; other data in a shape are other data."""
    X, y = planted(8)
    file = tmp_path / "run.ckpt"
    whole = StructuredPredictor(Subsets(), max_iter=4, tol=0).fit(X, y)
    StructuredPredictor(Subsets(), max_iter=2, tol=0, checkpoint=file).fit(X, y)
    again = StructuredPredictor(Subsets(), max_iter=4, tol=0, checkpoint=file, resume=True)
    assert again.fit(*planted(8)).coef_.tobytes() == whole.coef_.tobytes()
    other = [Instance(x.features, Budget(x.shape.prices, x.shape.limit + 1e-13)) for x in X]
    with pytest.raises(CheckpointError):
        again.fit(other, y)


def test_any_hashable_value_is_a_shape() -> None:
    """Whole numbers, strings, nested tuples, named tuples and frozen dataclasses reach the oracle as they are."""
    Named = namedtuple("Named", "n")
    seen = []

    class Noting(MulticlassOracle):
        argmax_batch = None  # type: ignore[assignment]

        def n_parts(self, shape: Any) -> int:
            seen.append(shape)
            return 2

        def argmax(self, scores: Any, shape: Any) -> Any:
            return np.array([scores.argmax()], dtype=np.int64)

        def enumerate(self, shape: Any) -> Any:
            return [np.array([0]), np.array([1])]

        def label_grid(self, shape: Any) -> tuple[int, int]:
            return 1, 2

    shapes = [2, "two", (1, (2.5, "a")), Named(2), Budget((1.0,), 0.5)]
    X = [Instance(np.eye(2), shape) for shape in shapes]
    model = StructuredPredictor(Noting(), max_iter=2).fit(X, [[0]] * 5)
    assert len(model.predict(X)) == 5
    assert all(shape in seen for shape in shapes)
    assert any(isinstance(shape, Named) for shape in seen)


BAD = {
    "mixed": (lambda X: [X[0], X[1].features, X[2]], None, "sample 1: expected an Instance as the others are, got ndarray"),
    "twice": (lambda X: X, [1, 2, 3], "carry their shapes; leave shapes= out"),
    "one instance": (lambda X: X[0], None, "one sample instead of a list"),
    "a dict": (lambda X: [Instance({"a": 1.0}, x.shape) for x in X], None, "sample 0: expected a matrix .* got one dict"),
    "list of dicts": (lambda X: [{"a": 1.0}] * 3, [1] * 3, "sample 0: expected a matrix .* got one dict"),
    "names and numbers": (lambda X: [Instance([{"a": 1.0}], X[0].shape), *X[1:]], None, "sample 1: expected a list with a dict"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_inputs_are_named(name: str) -> None:
    """What is no list of samples of one kind is refused with the sample and the likely cause."""
    X, y = planted(3)
    change, shapes, message = BAD[name]
    with pytest.raises(DataError, match=message):
        StructuredPredictor(Subsets()).fit(change(X), y, shapes)


@pytest.mark.parametrize("labels", [3, "ab", [[0, 1]], [0.5], [True, False], {1}, [[0], [1, 2]]])
def test_labels_that_are_no_list_of_whole_numbers_are_named(labels: Any) -> None:
    """y[i] of any other kind is refused, naming the sample and what came."""
    X, y = planted(3)
    with pytest.raises(DataError, match="sample 1: expected labels as a 1-d array of whole numbers"):
        StructuredPredictor(Subsets()).fit(X, [y[0], labels, y[2]])


def named(X: list[Instance], names: str) -> list[Instance]:
    """The same features under names, zeros left out."""
    rows = [[{n: float(v) for n, v in zip(names, row, strict=True)} for row in x.features] for x in X]
    return [Instance(r, x.shape) for r, x in zip(rows, X, strict=True)]


def test_named_features_align_by_name(tmp_path: Path) -> None:
    """Dicts give the model of the matrix; other orders of names, and unknown names, change no prediction; a file keeps names."""
    X, y = planted(12)
    plain = StructuredPredictor(Subsets(), max_iter=10).fit(X, y)
    model = StructuredPredictor(Subsets(), max_iter=10).fit(named(X, "abc"), y)
    assert model.feature_names_ == ["a", "b", "c"]
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-5, atol=1e-6)
    model.save(tmp_path / "m.spz")
    loaded = StructuredPredictor.load(tmp_path / "m.spz", Subsets())
    turned = [Instance([{"new": 9.0, **dict(reversed(row.items()))} for row in x.features], x.shape) for x in named(X, "abc")]
    for other in (loaded, model):
        assert all(map(np.array_equal, other.predict(turned), plain.predict(X)))
    with pytest.raises(DataError, match="trained with rows of dicts, got rows of numbers"):
        loaded.predict(X)
    with pytest.raises(DataError, match="trained with rows of numbers, got rows of dicts"):
        plain.predict(named(X, "abc"))


@pytest.mark.parametrize("names", [["a"], ["a", "b", "c", "d"], ["a", "b", "b"]])
def test_names_in_a_file_must_fit_the_weights(names: list[str], tmp_path: Path) -> None:
    """A model file with other than one name a weight, or one name twice, is refused."""
    model = StructuredPredictor(Subsets(), max_iter=2).fit(named(planted(4)[0], "abc"), planted(4)[1])
    model.feature_names_ = names
    model.save(tmp_path / "m.spz")
    with pytest.raises(ModelFileError, match=r"weights do not fit \d feature names"):
        StructuredPredictor.load(tmp_path / "m.spz", Subsets())


def test_a_feature_map_is_taken_as_it_is() -> None:
    """A map gives the model of its matrices; one without shapes needs them; one of another width is refused."""
    X, y = planted(8)
    rows, shapes = [x.features for x in X], [x.shape for x in X]
    model = StructuredPredictor(Subsets(), max_iter=5).fit(PartFeatures(rows), y, shapes)
    assert model.coef_.tobytes() == StructuredPredictor(Subsets(), max_iter=5).fit(X, y).coef_.tobytes()
    assert all(map(np.array_equal, model.predict(PartFeatures(rows), shapes), model.predict(X)))
    with pytest.raises(DataError, match="PartFeatures has no `shapes`: give shapes="):
        model.predict(PartFeatures(rows))
    with pytest.raises(DataError, match="expected a feature map with 3 features, got 2"):
        model.predict(PartFeatures([x[:, :2] for x in rows]), shapes)


def test_label_rows_in_a_pipeline_are_a_classifier() -> None:
    """Rows of one sparse matrix, a column of weights a label: model selection works on the matrix itself."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 60)
    X = sparse.csr_array(np.eye(4)[y] + rng.normal(0, 0.3, (60, 4)))
    rows = FunctionTransformer(LabelRows, kw_args={"n_labels": 4})
    model = make_pipeline(rows, StructuredPredictor(MulticlassOracle(), trainer="projected_ascent"))
    search = GridSearchCV(model, {"structuredpredictor__max_iter": [1, 10]}, cv=3).fit(X, y[:, None])
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.score(X, y[:, None]) > 0.9


def test_matchings_from_a_list_of_lists() -> None:
    """Numbers in lists are matrices, too."""
    X = [Instance([[1.0], [0.0], [0.0], [1.0]], (2,)), Instance([[0.0], [1.0], [1.0], [0.0]], [2])]
    model = StructuredPredictor(AssignmentOracle()).fit(X, [[0, 1], [1, 0]])
    assert [labels.tolist() for labels in model.predict(X)] == [[0, 1], [1, 0]]
