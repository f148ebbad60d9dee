"""Arrays beside strings, and vectors of words: what they do to features, groups and messages."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from labeler_cases import SENTENCES, Y, arrays_beside, plain, vector_templates

from structpred.compat import CRF
from structpred.errors import DataError, FileFormatError
from structpred.io.templates.templates import Template
from structpred.models import ChainLabeler

ROWS = [[(w, w[-1]) for w in words] for words in SENTENCES]


def tokens(*arrays: Any) -> list[list[dict[str, Any]]]:
    """One sequence with these arrays."""
    return [[{"w": "the", "v": array} for array in arrays]]


@pytest.mark.parametrize("trainer", ["bcfw", "sgd", "lbfgs"])
def test_columns_are_standardised_features_in_front_of_the_names(trainer: str) -> None:
    """The weights are those for a matrix of the standardised columns and the strings, joined by hand."""
    X = arrays_beside()
    flat = [token for tokens in X for token in tokens]
    raw = np.array([[*token["v"], *token["k"]] for token in flat])
    spread = raw.std(axis=0)
    columns = (raw - raw.mean(axis=0)) / np.where(spread == 0.0, 1.0, spread)
    names = list(dict.fromkeys(name for token in flat for name in (f"w:{token['w']}", "n")))
    strings = [[{f"w:{token['w']}": 1.0, "n": 0.5}.get(name, 0.0) for name in names] for token in flat]
    rows = np.split(np.hstack((columns, strings)), np.cumsum([len(words) for words in SENTENCES])[:-1])
    joined = ChainLabeler(trainer, max_iter=5, fit_intercept=False, random_state=0).fit(rows, Y)
    model = ChainLabeler(trainer, max_iter=5, random_state=0).fit(X, Y)
    assert model.input_.feature_names() == ["v[0]", "v[1]", "v[2]", "k[0]", "k[1]", *names]
    assert model.group_names_ == ["v", "k", "features", "start and stop", "transitions"]
    assert np.allclose(model.coef_, joined.coef_, atol=1e-4)
    assert np.abs(model.emissions_[:5]).max() > 0.01
    assert not model.emissions_[2].any()  # a column that does not vary


def test_a_word_has_its_vector_or_that_in_lower_case_or_none(tmp_path: Path) -> None:
    """Tokens without a vector have no columns, a padded template none outside; means are those of the words with a vector."""
    path = tmp_path / "v.txt"
    path.write_text("2 2\na 1 4\nb 3 4\n")
    templates = [Template("w", ((0, 0),)), Template("next", ((0, 1, f"vec:{path}"),), pad=True)]
    model = ChainLabeler(template=templates, max_iter=1).fit([[("x",), ("a",), ("B",), ("unknown",)]], [["O", "O", "X", "X"]])
    packed = model.input_.transform([[("x",), ("b",), ("A",), ("q",), ("c",)]])
    assert packed.indptr.tolist() == [0, 3, 5, 5, 5, 5]
    assert packed.indices.tolist() == [0, 1, 2, 0, 1]  # the vector of b and the string x, then the vector of a
    assert packed.values.tolist() == [1.0, 0.0, 1.0, -1.0, 0.0]


def test_a_model_file_needs_no_vectors_file(tmp_path: Path) -> None:
    """Words that training did not see have their vectors without the file; so has a model that is fitted anew."""
    templates = vector_templates(tmp_path)
    model = ChainLabeler(template=templates, max_iter=5).fit(ROWS[:1], Y[:1])
    model.save(tmp_path / "m.spz")
    (tmp_path / "vectors.txt").unlink()
    loaded = ChainLabeler.load(tmp_path / "m.spz")
    assert np.array_equal(loaded.input_.transform(ROWS).values, model.input_.transform(ROWS).values)
    assert len(loaded.input_.transform(ROWS).indices) > 4 * sum(map(len, SENTENCES))
    assert {t.name for t in loaded.template} == {t.name for t in templates}
    assert np.array_equal(loaded.fit(ROWS[:1], Y[:1]).coef_, model.coef_)
    with pytest.raises(DataError, match=r"vectors.txt: there is no such file"):
        ChainLabeler(template=templates).fit(ROWS, Y)


def test_contributions_add_up() -> None:
    """An explanation has each column with its standardised value; the sum is the score of the decoder."""
    model = ChainLabeler(max_iter=5).fit(arrays_beside(), Y)
    why = model.explain(arrays_beside()[2])
    assert sum(c.score for c in why.contributions) == pytest.approx(
        model.predict_kbest(arrays_beside()[2:3], 1)[0][0][1], abs=1e-6
    )
    assert sum(c.feature.startswith("v[") for c in why.contributions) == 3 * len(SENTENCES[2])
    assert {kind.name for kind in model.top_features(3).kinds} == {"v", "k", "w", "n"}


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (
            [[{"w": "the", "v": np.ones(2)}, {"w": "a"}]],
            "sample 0, position 1: feature 'v': expected an array of 2 finite .*NoneType",
        ),
        (
            tokens(np.ones(2), np.ones(3)),
            r"sample 0, position 1: feature 'v': .* 2 finite numbers, as at all tokens, got ndarray \(3,\)",
        ),
        (tokens(np.ones(2), np.array([1.0, np.nan])), "sample 0, position 1: feature 'v': .*got NaN or infinity"),
        (tokens(np.ones(2)) + tokens(np.array([1e300, 0.0])), "sample 1, position 0: feature 'v': .*got NaN or infinity"),
        (tokens(np.ones(2), np.array(["a", "b"])), "sample 0, position 1: feature 'v'"),
        (tokens(np.ones((2, 2))), r"sample 0, position 0: feature 'v': .*got ndarray \(2, 2\)"),
        (tokens(np.ones(0)), "v: no training token has a vector"),
        ([[{"w": "the"}, {"v": np.ones(2)}]], "sample 0, position 1: feature 'v': .*arrays belong into the dicts of all tokens"),
        ([[{"v": np.ones(2)}], [["w"]]], "sample 1, position 0: feature 'v'"),
        ([[{"v": np.ones(2)}], 3], "sample 1: expected a sequence of tokens"),
    ],
)
def test_what_does_not_fit_is_named(X: Any, message: str) -> None:
    """Missing arrays, other widths and numbers that are not finite are refused with sample, position and key."""
    y = [["A"] * (len(x) if isinstance(x, list) else 1) for x in X]
    with pytest.raises(DataError, match=message):
        ChainLabeler().fit(X, y)


def test_prediction_holds_to_the_width_of_training() -> None:
    """At prediction, too, an array must be there and as wide as in training."""
    model = ChainLabeler(max_iter=1).fit(tokens(np.ones(2), np.zeros(2)), [["A", "B"]])
    for X in (tokens(np.ones(3)), [[{"w": "the"}]]):
        with pytest.raises(DataError, match="feature 'v': expected an array of 2 finite numbers"):
            model.predict(X)
    assert model.predict([]) == []


def test_vectors_of_another_language_are_no_features(tmp_path: Path) -> None:
    """Where no word of the training data has a vector, that is an error and not a column of nothing."""
    (tmp_path / "v.txt").write_text("ja 1 2\nnein 0 1\n")
    with pytest.raises(DataError, match="v: no training token has a vector"):
        ChainLabeler(template=[Template("w", ((0, 0),)), Template("v", ((0, 0, f"vec:{tmp_path / 'v.txt'}"),))]).fit(ROWS, Y)


def test_groups_that_are_dropped_leave_arrays_as_they_are(tmp_path: Path) -> None:
    """Without the templates of some groups, scores are those of the model whose weights there are zero."""
    model = ChainLabeler(template=vector_templates(tmp_path), max_iter=5).fit(ROWS, Y)
    small = model.without_groups(["w[0]", "w[-1]"])
    columns = sum(name.startswith("v[") for name in small.input_.feature_names())
    assert columns == 6
    assert small.n_features_in_ < model.n_features_in_
    assert np.array_equal(small.emissions_[:6], model.emissions_[:6])
    scores = [one.predict_kbest(ROWS, 1)[0][0][1] for one in (small, model)]
    assert scores[0] < scores[1]


def test_transitions_by_words_go_with_vectors(tmp_path: Path) -> None:
    """Features of transitions stay the last ones, with their names."""
    step = Template("B", ((1, 0),), transition=True)
    model = ChainLabeler(template=[*vector_templates(tmp_path), step], max_iter=5).fit(ROWS, Y)
    why = model.explain(ROWS[0])
    assert why.score == pytest.approx(model.predict_kbest(ROWS[:1], 1)[0][0][1], abs=1e-6)
    assert any(c.kind == "transition" and c.feature.startswith("B=") for c in why.contributions)


def test_a_bent_model_file_is_refused(tmp_path: Path) -> None:
    """Widths, scales and tables that do not belong together are a FileFormatError."""
    model = ChainLabeler(template=vector_templates(tmp_path), max_iter=1).fit(ROWS, Y)
    for change in (
        lambda part: part.header["arrays"].update(widths=[3, 2]),
        lambda part: part.header["arrays"].update(names=["v[0]"]),
        lambda part: part.header["arrays"]["templates"][0].update(atoms=[]),
        lambda part: part.texts["arrays.words.0"].pop(),
        lambda part: part.arrays.pop("arrays.scale.shift"),
    ):
        part = model.input_.to_bundle()
        change(part)
        with pytest.raises(FileFormatError, match="the arrays beside strings of this file cannot be used"):
            type(model.input_).from_bundle(part)


def test_the_stand_in_for_sklearn_crfsuite_takes_arrays() -> None:
    """compat.CRF has them, too, beside entries of False, which count as seen there."""
    X = [[{**token, "short": len(token["w"]) < 3} for token in words] for words in arrays_beside()]
    assert plain([np.array(labels) for labels in CRF(c2=0.01, max_iterations=50).fit(X, Y).predict(X)]) == Y
