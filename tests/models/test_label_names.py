"""Label sets by name: lists of names, data frames, `classes_`, and files."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from structpred.data.hierarchy import LabelHierarchy
from structpred.errors import DataError
from structpred.models import HierarchicalMultiLabel, MultiLabelMRF, load

X = [[0.0], [1.0], [2.0], [3.0]]
ROWS = np.array([[0, 0], [0, 1], [1, 1], [1, 1]])
NAMES: list[Any] = [[], ["tall"], ("old", "tall"), {"old", "tall"}]


class Frame:
    """As much of a data frame as is looked at."""

    def __init__(self, rows: np.ndarray, columns: list[str]) -> None:
        self.rows, self.columns = rows, columns

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.rows, dtype=dtype)


def model_of(y: Any) -> MultiLabelMRF:
    """A model of these labels."""
    return MultiLabelMRF(C=10.0, max_iter=200).fit(X, y)


@pytest.mark.parametrize("y", [NAMES, Frame(ROWS, ["old", "tall"]), np.array([*NAMES, None], dtype=object)[:4]])
def test_names_of_labels_are_kept(y: Any) -> None:
    """Lists of names, and the columns of a data frame, give the weights of the rows, and names."""
    model = model_of(y)
    np.testing.assert_array_equal(model.coef_, model_of(ROWS).coef_)
    assert model.label_names_ == model.classes_.tolist() == ["old", "tall"]
    assert [model.classes_[row == 1].tolist() for row in model.predict([[0.2], [2.6]])] == [[], ["old", "tall"]]


def test_rows_without_names_are_numbered() -> None:
    """As before."""
    assert model_of(ROWS).classes_.tolist() == ["0", "1"]


def test_columns_in_another_order_are_put_in_that_of_the_model() -> None:
    """Scores are of the labels that are named, and lists of names are read with the names of the model."""
    model, other = model_of(NAMES), ROWS.copy()
    other[0] = [1, 0]
    swapped = Frame(other[:, ::-1], ["tall", "old"])
    assert model.score(X, swapped) == model.score(X, other) == model.score(X, [["old"], *NAMES[1:]]) < model.score(X, ROWS)
    with pytest.raises(DataError, match="sample 1: there is no label 'new'; there are 2: old, tall"):
        model.score(X, [[], ["new"], [], []])


@pytest.mark.parametrize("y", [[["0", "1"]] * 4, [[], [], [], []], ["old", "tall", "", ""]])
def test_what_may_be_no_names_is_refused(y: Any) -> None:
    """States as text, no label at all, and one string a sample."""
    with pytest.raises(DataError, match="y: expected"):
        model_of(y)


def test_a_hierarchy_orders_its_names() -> None:
    """Lists of names come in the order of its labels, which is not that of the alphabet."""
    tree = LabelHierarchy(2, [(0, 1)], ["thing", "car"])
    rows = [[0, 0], [1, 0], [1, 1], [1, 1]]
    named = [[], ["thing"], ["thing", "car"], ["car", "thing"]]
    one, other = (HierarchicalMultiLabel(hierarchy=tree, max_iter=20).fit(X, y) for y in (rows, named))
    np.testing.assert_array_equal(one.coef_, other.coef_)
    assert other.classes_.tolist() == ["thing", "car"]


def test_names_are_in_the_file(tmp_path: Path) -> None:
    """A loaded model has them."""
    model_of(NAMES).save(tmp_path / "m.spz")
    assert load(tmp_path / "m.spz").classes_.tolist() == ["old", "tall"]


def test_names_of_features_are_kept(tmp_path: Path) -> None:
    """The columns of a data frame are in the model, its explanations and its file; a frame with other columns is refused."""
    frame = Frame(np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [3.0, 0.0]]), ["height", "age"])
    model = MultiLabelMRF(C=10.0, max_iter=50).fit(frame, NAMES)
    model.save(tmp_path / "m.spz")
    for known in (model, load(tmp_path / "m.spz")):
        assert known.feature_names_in_.tolist() == ["height", "age"]
        assert {c.feature for c in known.explain([3.0, 0.0]).contributions} >= {"height", "bias"}
        assert known.top_features(2).labels[0].positive[0][0] == "height"
        np.testing.assert_array_equal(known.predict(frame), model.predict(frame.rows))
        with pytest.raises(DataError, match="expected the columns of fit in their order; where 'height' was is 'age' now"):
            known.predict(Frame(frame.rows, ["age", "height"]))
    assert not hasattr(model.fit(frame.rows, NAMES), "feature_names_in_")  # none are left of the fit before
    assert not hasattr(model_of(ROWS), "feature_names_in_")
