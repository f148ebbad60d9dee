"""ChainLabeler takes every form of input, in training, in prediction and through a model file."""

import itertools
import pickle
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
from labeler_cases import SENTENCES, Case, Y, one_hot, packed, plain

from structpred.data.vocabulary import FeatureDictionary, FeatureHasher
from structpred.errors import DataError, ParameterError, StructpredWarning
from structpred.io import read_crfsuite
from structpred.models import ChainLabeler, load


def fitted(case: Case, **settings: Any) -> ChainLabeler:
    """A labeler trained on one case."""
    return ChainLabeler(**{"max_iter": 30, "C": 10.0, **case.settings, **settings}).fit(case.X, case.y)


def test_every_form_of_input_is_learned(case: Case) -> None:
    """Each form is learned without an error on the training data, and labels come back in the type that was given."""
    model = fitted(case)
    assert plain(model.predict(case.X)) == case.y
    assert model.score(case.X, case.y) == 1.0
    assert model.classes_.tolist() == sorted(set(itertools.chain.from_iterable(case.y)))
    names = model.input_.feature_names()
    assert model.n_features_in_ == len(names) - names.count("intercept") == len(model.emissions_)
    assert model.input_.n_features == len(names)
    assert model.certificate_.proven
    assert 0 <= model.certificate_.gap <= model.certificate_.primal


def test_a_model_file_brings_back_every_form(case: Case, tmp_path: Path) -> None:
    """Saved and loaded, a model of each form predicts the same to the last bit, and says the same of its training."""
    model = fitted(case)
    model.save(tmp_path / "m.spz")
    for loaded in (ChainLabeler.load(tmp_path / "m.spz"), load(tmp_path / "m.spz")):
        assert plain(loaded.predict(case.X)) == plain(model.predict(case.X))
        assert loaded.coef_.tobytes() == model.coef_.tobytes()
        assert loaded.coef_.dtype == model.coef_.dtype
        assert loaded.classes_.dtype == model.classes_.dtype
        assert loaded.certificate_ == model.certificate_
        assert loaded.history_ == model.history_
        assert (loaded.n_iter_, loaded.stop_reason_, loaded.converged_) == (model.n_iter_, model.stop_reason_, model.converged_)
        assert loaded.n_features_in_ == model.n_features_in_


def test_a_loaded_model_trains_again_as_the_first_did(case: Case, tmp_path: Path) -> None:
    """A loaded model carries its settings, the feature templates among them: fitted anew it is the same model."""
    model = fitted(case)
    model.save(tmp_path / "m.spz")
    again = ChainLabeler.load(tmp_path / "m.spz").fit(case.X, case.y)
    assert again.coef_.tobytes() == model.coef_.tobytes()


def test_saving_twice_gives_the_same_file(case: Case, tmp_path: Path) -> None:
    """A file depends on the model alone: a loaded model is saved as the same bytes."""
    fitted(case).save(tmp_path / "a.spz")
    ChainLabeler.load(tmp_path / "a.spz").save(tmp_path / "b.spz")
    assert (tmp_path / "a.spz").read_bytes() == (tmp_path / "b.spz").read_bytes()


def test_pickle_and_joblib_keep_every_form(case: Case, tmp_path: Path) -> None:
    """Fitted estimators pass through pickle and joblib, as worker processes need it."""
    model = fitted(case)
    joblib.dump(model, tmp_path / "m.joblib")
    for copy in (pickle.loads(pickle.dumps(model)), joblib.load(tmp_path / "m.joblib")):
        assert plain(copy.predict(case.X)) == plain(model.predict(case.X))


def test_every_form_gives_the_same_model_twice(case: Case) -> None:
    """Without a seed, too, training is repeatable: the same data give the same bits."""
    assert fitted(case).coef_.tobytes() == fitted(case).coef_.tobytes()


def test_generators_are_read_like_lists() -> None:
    """X and y may be generators, of dicts and of arrays; so may the X of predict."""
    dicts = [[{"w": w} for w in words] for words in SENTENCES]
    for samples in (dicts, one_hot()):
        plain_model = ChainLabeler().fit(samples, Y)
        model = ChainLabeler().fit((x for x in samples), (tags for tags in Y))
        assert model.coef_.tobytes() == plain_model.coef_.tobytes()
        assert plain(model.predict(x for x in samples)) == plain(plain_model.predict(samples))


def test_tokens_may_be_generators_of_rows_too() -> None:
    """With templates, sentences may come from a generator."""
    rows = [[(w, w[-1]) for w in words] for words in SENTENCES]
    model = ChainLabeler(template="chunking").fit((sentence for sentence in rows), Y)
    assert model.coef_.tobytes() == ChainLabeler(template="chunking").fit(rows, Y).coef_.tobytes()


def test_equal_lengths_change_nothing() -> None:
    """Sequences that all have the same length, even as one 3-d array and a 2-d y, are sequences as any other."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(8, 5, 3)), rng.integers(0, 3, (8, 5))
    lists = ChainLabeler().fit(list(X), y.tolist())
    assert ChainLabeler().fit(X, y).coef_.tobytes() == lists.coef_.tobytes()
    ragged = ChainLabeler().fit([*X, X[0][:2]], [*y, y[0][:2]])
    assert [len(labels) for labels in ragged.predict([*X, X[0][:2]])] == [5] * 8 + [2]


def test_object_arrays_are_lists() -> None:
    """Object arrays of sequences, as scikit-learn's splitters make them, are taken as lists, in X and in y."""
    X, y = np.empty(len(Y), object), np.empty(len(Y), object)
    X[:], y[:] = one_hot(), [np.array(tags) for tags in Y]
    assert ChainLabeler().fit(X, y).coef_.tobytes() == ChainLabeler().fit(one_hot(), Y).coef_.tobytes()


def test_numpy_scalars_are_labels() -> None:
    """Labels may be NumPy integers or strings inside plain lists, or bytes-wide integers in arrays."""
    numbers = [[len(tag) for tag in tags] for tags in Y]
    expected = ChainLabeler().fit(one_hot(), numbers)
    for y in (
        [[np.int64(k) for k in row] for row in numbers],
        [np.array(row, np.uint8) for row in numbers],
        [tuple(row) for row in numbers],
    ):
        model = ChainLabeler().fit(one_hot(), y)
        assert model.coef_.tobytes() == expected.coef_.tobytes()
        assert model.classes_.dtype == np.int64
    strings = ChainLabeler().fit(one_hot(), [[np.str_(tag) for tag in tags] for tags in Y])
    assert plain(strings.predict(one_hot())) == plain(ChainLabeler().fit(one_hot(), Y).predict(one_hot()))


def test_dense_sparse_and_packed_are_one() -> None:
    """The same numbers as arrays and as packed sequences give the same weights."""
    columns = [x[:, :-1] for x in one_hot()]
    dense = ChainLabeler(fit_intercept=False).fit(columns, Y)
    assert dense.coef_.tobytes() == ChainLabeler().fit(packed(), Y).coef_.tobytes()


def test_names_that_were_not_seen_are_left_out() -> None:
    """An unknown feature string at prediction changes nothing."""
    X = [[[f"w={w}"] for w in words] for words in SENTENCES]
    model = ChainLabeler(max_iter=30).fit(X, Y)
    more = [[[*token, "never=seen"] for token in sentence] for sentence in X]
    assert plain(model.predict(more)) == plain(model.predict(X))


def test_min_count_and_n_bits_reach_the_features() -> None:
    """min_count drops rare features as the dictionary does, n_bits hashes as the hasher does."""
    X = [[[f"w={w}"] for w in words] for words in SENTENCES]
    assert ChainLabeler(min_count=3).fit(X, Y).n_features_in_ == FeatureDictionary(3).fit(X).n_features < 8
    assert ChainLabeler(n_bits=6).fit(X, Y).n_features_in_ == FeatureHasher(6).n_features == 64


@pytest.mark.parametrize("settings", [{"n_bits": 8}, {"min_count": 2}])
def test_settings_without_effect_are_refused(settings: dict[str, Any]) -> None:
    """min_count and n_bits are about named features; with numbered columns they are an error, not ignored."""
    for X in (one_hot(), packed()):
        with pytest.raises(ParameterError, match="leave both out"):
            ChainLabeler(**settings).fit(X, Y)


def test_a_crfsuite_corpus_can_be_hashed(tmp_path: Path) -> None:
    """With n_bits a CRFsuite corpus trains and predicts as its items do, given as dicts."""
    (tmp_path / "a.crf").write_text("A\tx:2\ty\nB\tz\n\nB\tz\tx\n")
    corpus = read_crfsuite(tmp_path / "a.crf")
    model, listed = (ChainLabeler(n_bits=8, max_iter=3).fit(X, corpus.labels) for X in (corpus, corpus.dicts()))
    assert (model.coef_ == listed.coef_).all()
    assert [labels.tolist() for labels in model.predict(corpus)] == [["A", "B"], ["B"]]


def test_templates_can_be_hashed() -> None:
    """With n_bits a template hashes its features; min_count, which needs counts, is then an error."""
    assert ChainLabeler(template="chunking", n_bits=8).fit([[("a", "b"), ("c", "b")]], [["x", "y"]]).n_features_in_ == 256
    with pytest.raises(ParameterError, match="min_count has no effect with n_bits"):
        ChainLabeler(template="chunking", n_bits=8, min_count=2).fit([[("a", "b")]], [["x"]])


def test_other_forms_at_prediction_are_refused(case: Case) -> None:
    """A model says what it expects where predict gets another form than fit got."""
    model = fitted(case)
    other = [[{"w": "dog"}]] if case.name not in ("dicts", "strings", "hashed", "attributes") else [np.eye(3)]
    with pytest.raises(DataError, match="sample 0"):
        model.predict(other)


def test_columns_without_a_template_are_noticed() -> None:
    """Tuples of strings look like rows of columns: without template= a warning says what becomes of them; of lists none does."""
    X, y = [[("the", "DT"), ("dog", "NN")]] * 3, [["D", "N"]] * 3
    with pytest.warns(StructpredWarning, match="template is None"):
        ChainLabeler(max_iter=2).fit(X, y)
    ChainLabeler(max_iter=2).fit([[list(token) for token in x] for x in X], y)
