"""Learning curves and the selection of sequences under them."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from structpred.data.sequences import PackedSequences
from structpred.errors import DataError, ParameterError
from structpred.evaluation import learning_curve, select_sequences
from structpred.io import ColumnCorpus, read_crfsuite
from structpred.models import ChainLabeler


class Recorder:
    """An estimator that notes what it is trained on and says one label always."""

    seen: list[tuple[int, list[Any]]]

    def __init__(self, random_state: int = 0, log: Any = None) -> None:
        self.random_state, self.log = random_state, log

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {"random_state": self.random_state, "log": self.log}

    def set_params(self, **values: Any) -> "Recorder":
        vars(self).update(values)
        return self

    def __sklearn_clone__(self) -> "Recorder":
        return Recorder(self.random_state, self.log)

    def fit(self, X: Any, y: Any) -> "Recorder":
        assert [len(x) for x in X] == [len(labels) for labels in y]
        self.log.append((self.random_state, list(X)))
        return self

    def predict(self, X: Any) -> list[list[str]]:
        return [["a"] * len(x) for x in X]


def test_parts_grow_and_lie_within_each_other() -> None:
    """Each fraction is trained once a seed, on as many sequences as it says, smaller parts within larger ones of the seed."""
    log: list[tuple[int, list[str]]] = []
    X = ["x" * (1 + k % 4) + chr(97 + k) for k in range(20)]
    y = [["a"] * len(x) for x in X]
    curve = learning_curve(Recorder(log=log), X, y, ["qq", "q"], [["a", "b"], ["a"]], fractions=(0.5, 0.1, 1.0), seeds=(3, 5))
    assert [(p.fraction, p.seed, p.n_sequences) for p in curve.points] == [
        (0.1, 3, 2), (0.1, 5, 2), (0.5, 3, 10), (0.5, 5, 10), (1.0, 3, 20), (1.0, 5, 20)]  # fmt: skip
    assert [seed for seed, _ in log] == [3, 5] * 3
    for small, large in ((0, 2), (2, 4), (1, 3), (3, 5)):
        assert set(log[small][1]) < set(log[large][1])
    assert log[0][1] != log[1][1]
    assert curve.points[0].n_tokens == sum(map(len, log[0][1]))
    assert {(p.token_accuracy, p.sequence_accuracy) for p in curve.points} == {(1 - 1 / 3, 0.5)}
    assert curve.metrics == ("token_accuracy", "sequence_accuracy")


def test_a_real_model_gets_better(tmp_path: Path) -> None:
    """With more data a chunker gets better; table and JSON hold every fraction with mean and range."""
    import sys

    sys.path.insert(0, str(Path(__file__).parent.parent / "cli"))
    from cli_helpers import column_text

    from structpred.io import read_columns

    for name, size, seed in (("train", 150, 0), ("test", 60, 1)):
        (tmp_path / name).write_text(column_text(size, seed))
    train, test = read_columns(tmp_path / "train"), read_columns(tmp_path / "test")
    model = ChainLabeler("sgd", template="chunking", max_iter=5)
    curve = learning_curve(model, train, train.labels(), test, test.labels(), fractions=(0.02, 1.0), seeds=(0, 1))
    assert not hasattr(model, "coef_")
    small, large = curve.fractions()
    assert min(p.f1 for p in large) > max(p.f1 for p in small)
    assert curve.metrics == ("token_accuracy", "sequence_accuracy", "f1")
    assert [line.split()[0] for line in curve.table().splitlines()] == ["fraction", "0.02", "1"]
    data = json.loads(json.dumps(curve.to_dict()))
    assert data["summary"][1]["f1"]["min"] <= data["summary"][1]["f1"]["mean"] <= data["summary"][1]["f1"]["max"]
    assert len(data["runs"]) == 4


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"fractions": (0.0, 1.0)}, "fractions: expected numbers above 0"),
        ({"fractions": (1.5,)}, "at most 1"),
        ({"fractions": ()}, "fractions"),
        ({"seeds": ()}, "seeds: expected different whole numbers"),
        ({"seeds": (1, 1)}, "different"),
    ],
)
def test_settings_are_checked(settings: dict[str, Any], message: str) -> None:
    """Fractions and seeds out of range are refused before anything is trained."""
    with pytest.raises(ParameterError, match=message):
        learning_curve(None, ["a"], [["a"]], ["a"], [["a"]], **settings)
    with pytest.raises(DataError, match="X has 1 sequences but y has 2"):
        learning_curve(None, ["a"], [["a"], ["b"]], ["a"], [["a"]])


def test_selection_of_every_kind_of_corpus(tmp_path: Path) -> None:
    """Any choice of sequences, repeated or out of order, is what a list of the sequences would give."""
    chosen = [2, 0, 2]
    rows = [[("a", "1")], [("b", "2"), ("c", "3")], [("d", "4"), ("e", "5"), ("f", "6")]]
    corpus = ColumnCorpus.from_rows(rows)
    assert select_sequences(corpus, chosen).sentences() == [rows[i] for i in chosen]
    path = tmp_path / "a.crf"
    path.write_text("A\tx\n\nB\ty:2\tz\nC\n\nD\tx\tx:3\nE\tq\n")
    attributes = select_sequences(read_crfsuite(path), chosen)
    assert attributes.labels == [["D", "E"], ["A"], ["D", "E"]]
    assert attributes.lines.tolist() == [6, 7, 1, 6, 7]
    names = [attributes.attributes[k] for k in attributes.codes.tolist()]
    assert (names, attributes.values.tolist()) == (["x", "x", "q", "x", "x", "x", "q"], [1, 3, 1, 1, 1, 3, 1])
    assert attributes.indptr.tolist() == [0, 2, 3, 4, 6, 7]
    packed = PackedSequences(np.array([0, 2, 3, 3]), np.array([0, 1, 2]), np.array([1.0, 2.0, 3.0]), np.array([0, 1, 3]), 3)
    some = select_sequences(packed, [1, 0])
    assert (some.indptr.tolist(), some.indices.tolist(), some.offsets.tolist()) == ([0, 1, 1, 3], [2, 0, 1], [0, 2, 3])
    assert select_sequences(corpus, []).n_tokens == 0
