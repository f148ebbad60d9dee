"""Promises of structpred.bridges.pandas, against pandas itself."""

from typing import Any

import numpy as np
import pytest

from structpred.bridges import from_pandas, to_pandas, tokens_from_pandas
from structpred.errors import DataError
from structpred.io import Tree
from structpred.models import ChainLabeler, DependencyParser

pd = pytest.importorskip("pandas", reason="pandas is not installed: pip install 'structpred[pandas]'")


def frame(**more: Any) -> Any:
    """Two sentences, with an index of their own and a categorical label."""
    columns = {
        "sent_id": ["b", "b", "a", "a", "a"],
        "word": ["the", "cat", "a", "dog", "barks"],
        "tag": pd.Categorical(["DET", "NOUN", "DET", "NOUN", "VERB"], categories=["VERB", "NOUN", "DET"]),
        "n": np.array([1, 2, 3, 4, 5], np.int16),
    }
    return pd.DataFrame(columns | more, index=[40, 30, 20, 10, 0])


def test_rows_become_sentences() -> None:
    """Sentences come in the order of the rows, tokens as tuples of the columns named, labels nested alike."""
    X, y = from_pandas(frame(), columns=["word", "tag"])
    assert X == [[("the", "DET"), ("cat", "NOUN")], [("a", "DET"), ("dog", "NOUN"), ("barks", "VERB")]]
    assert y == [["DET", "NOUN"], ["DET", "NOUN", "VERB"]]
    assert from_pandas(frame(), label=None)[1] is None


def test_predictions_come_back_beside_the_rows() -> None:
    """The column of predictions has the labels in the order of the rows; index, order and types of the others stay."""
    df = frame()
    X, y = from_pandas(df)
    predicted = ChainLabeler(template="pos", max_iter=20).fit(X, y).predict(X)
    before = df.copy()
    out = to_pandas(df, predicted, label="tag")
    pd.testing.assert_frame_equal(df, before)
    pd.testing.assert_frame_equal(out.drop(columns="predicted"), before)
    assert out["predicted"].tolist() == out["tag"].tolist()
    assert out["predicted"].dtype == df["tag"].dtype


def test_a_categorical_column_is_extended_and_loses_nothing() -> None:
    """A label that the categories lack becomes one more, not a missing value; without a label column values stay as they are."""
    out = to_pandas(frame(), [["DET", "X"], ["DET", "X", "VERB"]], label="tag")
    assert out["predicted"].tolist() == ["DET", "X", "DET", "X", "VERB"]
    assert out["predicted"].cat.categories.tolist() == ["VERB", "NOUN", "DET", "X"]
    numbers = to_pandas(frame(), [np.array([1, 2]), np.array([0, 1, 2])])["predicted"]
    assert numbers.tolist() == [1, 2, 0, 1, 2]
    assert to_pandas(frame(), [np.array([1, 2]), np.array([0, 1, 2])], label="n")["predicted"].dtype == np.int16


def test_token_dicts_keep_numbers_and_train_a_labeler() -> None:
    """tokens_from_pandas gives a dict for each token with plain Python values, which fit takes as features."""
    df = frame(long=[True, False, True, True, False])
    X, y = tokens_from_pandas(df, columns=["word", "n", "long"])
    assert X[0] == [{"word": "the", "n": 1, "long": True}, {"word": "cat", "n": 2, "long": False}]
    assert type(X[0][0]["n"]) is int
    model = ChainLabeler(max_iter=30).fit(X, y)
    assert [labels.tolist() for labels in model.predict(X)] == y


def test_trees_go_through_pandas() -> None:
    """A parser is trained on heads and relations of a DataFrame, and its trees come back as two columns."""
    columns = {"sent_id": [0, 0, 1], "form": ["cats", "sleep", "go"], "head": [2, 0, 0], "deprel": ["nsubj", "root", "root"]}
    df = pd.DataFrame(columns)
    X, y = tokens_from_pandas(df, columns="form", label=["head", "deprel"])
    assert y == [[(2, "nsubj"), (0, "root")], [(0, "root")]]
    out = to_pandas(df, DependencyParser().fit(X, y).predict(X), column="p")
    assert (out["p_head"].tolist(), out["p_deprel"].tolist()) == (df["head"].tolist(), df["deprel"].tolist())


def test_several_columns_tell_sentences_apart() -> None:
    """Sentence numbers that start again in each document do not join the documents' sentences."""
    df = frame(sent_id=[1, 1, 1, 1, 2], doc=["x", "x", "y", "y", "y"])
    assert [len(x) for x in from_pandas(df, sentence=["doc", "sent_id"])[0]] == [2, 2, 1]


def test_no_rows_are_no_sentences() -> None:
    """An empty DataFrame gives no sentences, and takes no predictions."""
    empty = frame().iloc[:0]
    assert from_pandas(empty) == ([], [])
    assert to_pandas(empty, [])["predicted"].tolist() == []


BAD: dict[str, tuple[Any, str]] = {
    "interleaved": (lambda: from_pandas(frame(sent_id=["b", "a", "b", "a", "a"])), r"row 2 \(index 20\): .*sent_id 'b' resumes"),
    "no word": (lambda: from_pandas(frame(word=["the", None, "a", "dog", "x"])), r"row 1 \(index 30\): the value of 'word'"),
    "NaN as a label": (lambda: from_pandas(frame(tag=["A", "B", np.nan, "A", "A"])), r"row 2 \(index 20\): the value of 'tag'"),
    "no sentence": (lambda: from_pandas(frame(sent_id=[1, 1, np.nan, 2, 2])), r"row 2 .*'sent_id' is missing"),
    "pd.NA": (lambda: tokens_from_pandas(frame(n=pd.array([1, 2, 3, 4, None], "Int64")), columns="n"), r"row 4 \(index 0\)"),
    "a number": (lambda: from_pandas(frame(), columns=["word", "n"]), r"row 0 .*expected a string in 'n', got 1.*tokens_from"),
    "a misspelt column": (lambda: from_pandas(frame(), columns="wrod"), "no|expected one column 'wrod'.*did you mean 'word'"),
    "a column twice": (lambda: from_pandas(pd.concat([frame(), frame()[["word"]]], axis=1)), "one column 'word'.*got 2"),
    "no DataFrame": (lambda: from_pandas([["the"]]), "expected a pandas DataFrame .*got list"),
    "too few labels": (lambda: to_pandas(frame(), [["DET"], ["DET"] * 3]), "sentence 0: expected 2 labels.*got 1"),
    "too few sentences": (lambda: to_pandas(frame(), [["DET", "X"]]), "each of 2 sentences, got 1"),
    "a column that is there": (lambda: to_pandas(frame(), [["A"] * 2, ["A"] * 3], column="word"), "'word' already"),
    "a tree too many": (lambda: to_pandas(frame(), [Tree(np.array([0]), None)] * 2), "sentence 0: expected 2 heads"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_frames_are_refused_with_their_row(name: str) -> None:
    """What cannot be a sentence is an error that names the row, by number and index, or the column."""
    call, message = BAD[name]
    with pytest.raises(DataError, match=message):
        call()
