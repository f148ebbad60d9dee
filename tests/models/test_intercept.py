"""ChainLabeler gives arrays, sparse matrices and OCR words a constant feature; it takes named and packed features as they are."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from labeler_cases import SENTENCES, Y, ocr_words, one_hot, packed, plain
from scipy import sparse
from sklearn.base import clone

from structpred.data.sequences import PackedSequences
from structpred.errors import DataError, ParameterError
from structpred.models import ChainLabeler

X = one_hot()
N = X[0].shape[1]


def with_ones(sequences: list[Any]) -> list[Any]:
    """The arrays with one more column of ones."""
    return [np.hstack((x, np.ones((len(x), 1)))) for x in sequences]


def test_an_intercept_is_a_column_of_ones() -> None:
    """The weights are those of the data with a last column of ones, for dense and for sparse rows, to the last bit."""
    by_hand = ChainLabeler(fit_intercept=False).fit(with_ones(X), Y)
    for same in (X, [sparse.csr_array(x) for x in X]):
        model = ChainLabeler().fit(same, Y)
        assert model.coef_.tobytes() == by_hand.coef_.tobytes()
        assert plain(model.predict(same)) == plain(by_hand.predict(with_ones(X)))
        assert (model.n_features_in_, by_hand.n_features_in_) == (N, N + 1)
        assert np.array_equal(model.emissions_, by_hand.emissions_[:N])
        assert np.array_equal(model.intercept_, by_hand.emissions_[N])
        assert model.intercept_.any()
        assert not by_hand.intercept_.any()


def test_ocr_words_have_an_intercept(tmp_path: Path) -> None:
    """OCR words train as their images do, as arrays."""
    words = ocr_words(tmp_path)
    model = ChainLabeler().fit(words, words.letters)
    assert model.coef_.tobytes() == ChainLabeler().fit(words.images(), words.letters).coef_.tobytes()
    assert (model.n_features_in_, model.input_.n_features) == (128, 129)


@pytest.mark.parametrize("data", ["names", "templates", "packed"])
def test_named_and_packed_features_are_taken_as_they_are(data: str) -> None:
    """Feature strings, templates and packed sequences get no intercept, whatever the setting says."""
    names = [[[f"w={w}"] for w in words] for words in SENTENCES]
    given = {"names": names, "templates": [[(w,) for w in words] for words in SENTENCES], "packed": packed()}[data]
    template = "pos" if data == "templates" else None
    models = [ChainLabeler(template=template, fit_intercept=on).fit(given, Y) for on in (True, False)]
    assert models[0].coef_.tobytes() == models[1].coef_.tobytes()
    assert "intercept" not in models[0].group_names_
    assert models[0].intercept_.tolist() == [0.0] * len(models[0].classes_)


def test_the_intercept_is_a_group_with_a_name() -> None:
    """Its weights are a group of their own, which can be set to zero, and every list of weights names it."""
    model = ChainLabeler().fit(X, Y)
    assert model.group_names_ == ["features", "intercept", "start and stop", "transitions"]
    assert model.group_norms_[1] == pytest.approx(np.linalg.norm(model.intercept_))
    assert not model.without_groups(["intercept"]).intercept_.any()
    assert model.input_.feature_names()[-1] == "intercept"
    found = model.top_features(N + 1)
    listed = {name: weight for entry in found.labels[:1] for name, weight in entry.positive + entry.negative}
    assert listed["intercept"] == pytest.approx(model.intercept_[0])
    assert [group.name for group in found.groups] == ["emissions", "intercept", "start", "stop", "transitions"]
    assert found.n_features == N
    why = model.explain(X[0])
    assert [c.feature for c in why.contributions].count("intercept") == len(X[0])
    assert why.score == pytest.approx(model.predict_kbest(X[:1], 1)[0][0][1], rel=1e-5)


def test_what_was_packed_is_predicted_with_the_intercept() -> None:
    """Packed sequences of the same columns get the intercept of a model of arrays; other numbers of columns are an error."""
    model = ChainLabeler("perceptron").fit(X, Y)
    rows = sparse.csr_array(np.vstack(X))
    offsets = np.cumsum([0, *map(len, X)])
    data = PackedSequences(rows.indptr, rows.indices, rows.data, offsets, N)
    assert plain(model.predict(data)) == plain(model.predict(X))
    with pytest.raises(DataError, match=f"expected {N} features, got {N + 1}"):
        model.predict(PackedSequences(rows.indptr, rows.indices, rows.data, offsets, N + 1))
    with pytest.raises(DataError, match=f"expected {N} feature columns, got {N + 1}"):
        model.predict(with_ones(X))


def test_pieces_have_the_intercept_too() -> None:
    """partial_fit and fit_stream add it as fit does."""
    whole = ChainLabeler("perceptron").partial_fit(X, Y)
    by_hand = ChainLabeler("perceptron", fit_intercept=False).partial_fit(with_ones(X), Y)
    classes = whole.classes_.tolist()
    stream = ChainLabeler("perceptron").fit_stream(lambda: zip(X, Y, strict=True), classes, batch_size=3)
    assert whole.coef_.tobytes() == by_hand.coef_.tobytes() == stream.coef_.tobytes()
    assert whole.n_features_in_ == stream.n_features_in_ == N


def test_the_setting_is_one_of_scikit_learn() -> None:
    """get_params and clone know it, and anything but True and False is refused."""
    assert ChainLabeler().get_params()["fit_intercept"] is True
    assert clone(ChainLabeler(fit_intercept=False)).fit_intercept is False
    with pytest.raises(ParameterError, match="fit_intercept: expected True or False, got 'no'"):
        ChainLabeler(fit_intercept="no").fit(X, Y)  # type: ignore[arg-type]
