"""Bad input is an error of ours that names the sample or the cause, and leaves an earlier fit as it was."""

import copy
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from labeler_cases import SENTENCES, Y, one_hot, plain
from scipy import sparse

from structpred.errors import CheckpointWarning, DataError, ParameterError, StorageError, StructpredError
from structpred.models import ChainLabeler
from structpred.objectives.part_losses import LabelCosts

DICTS = [[{"w": w} for w in words] for words in SENTENCES]
ARRAYS = one_hot()


def changed(samples: list[Any], i: int, value: Any) -> list[Any]:
    """The list with another entry i."""
    return [*samples[:i], value, *samples[i + 1 :]]


def with_value(value: float) -> np.ndarray:
    """Sample 2 with one feature replaced."""
    x = ARRAYS[2].copy()
    x[1, 3] = value
    return x


# name: (X, y, what the message says)
BAD_DATA: dict[str, tuple[Any, Any, str]] = {
    "NaN": (changed(ARRAYS, 2, with_value(np.nan)), Y, "sample 2: .*nan"),
    "infinity": (changed(ARRAYS, 2, with_value(-np.inf)), Y, "sample 2: .*finite.*inf"),
    "too large for 32 bits": (changed(ARRAYS, 2, with_value(1e39)), Y, "sample 2: .*32 bits.*1e[+]39"),
    "NaN in CSR": (changed(list(map(sparse.csr_array, ARRAYS)), 2, sparse.csr_array(with_value(np.nan))), Y, "sample 2: .*nan"),
    "NaN in a dict": (changed(DICTS, 1, [{"w": "a"}, {"x": float("nan")}, {}]), Y, "sample 1, position 1: feature 'x' is nan"),
    "empty array": (changed(ARRAYS, 3, np.empty((0, 9))), changed(Y, 3, []), "sample 3: the sequence is empty"),
    "empty list": (changed(DICTS, 3, []), changed(Y, 3, []), "sample 3: .*empty"),
    "y longer than x": (DICTS, changed(Y, 4, [*Y[4], "DET"]), "sample 4: x has 6 tokens but y has 7 labels"),
    "y shorter than x": (ARRAYS, changed(Y, 0, Y[0][:-1]), "sample 0: x has 3 tokens but y has 2 labels"),
    "fewer labellings than sequences": (DICTS, Y[:-1], "X has 6 sequences but y has 5"),
    "one array": (ARRAYS[0], Y[0], "one sequence instead of a list"),
    "one CSR matrix": (sparse.csr_array(ARRAYS[0]), Y[0], "one sequence instead of a list"),
    "one sequence of dicts": (DICTS[0], Y[0], "sample 0.*one sequence instead of a list"),
    "one sequence of lists": ([["w=the"], ["w=dog"]], ["DET", "NOUN"], "sample 0, position 0.*one sequence instead of a list"),
    "one labelling": (DICTS, Y[0], "y, sample 0.*'DET'.*one sequence instead of a list"),
    "one labelling of numbers": (DICTS, [0, 1, 2], "y, sample 0.*got 0.*one sequence instead of a list"),
    "no sequences": ([], [], "at least one"),
    "used-up generator": (iter([]), [], "at least one"),
    "a string": ("text", Y, "got str"),
    "a dict": ({"w": "x"}, Y, "got dict"),
    "nothing": (None, Y, "got NoneType"),
    "y nothing": (DICTS, None, "y: .*got NoneType"),
    "mixed labels": (DICTS, changed(Y, 2, [1, 2, 3, 4, 5]), "sample 2: .*all strings or all whole numbers, got int and str"),
    "labels that are floats": (DICTS, [[0.5] * len(tags) for tags in Y], "sample 0: .*got float"),
    "labels that are dicts": (DICTS, changed(Y, 1, [{"a": 1}, {"b": 1}, {"c": 1}]), "sample 1: .*unhashable"),
    "labels of two types": (DICTS, changed(Y, 1, ["DET", b"NOUN", "VERB"]), "sample 1: .*bytes and str"),
    "columns that differ": (changed(ARRAYS, 5, ARRAYS[5][:, :4]), Y, "sample 5: expected 9 feature columns, got 4"),
    "text in an array": ([x.astype(str) for x in ARRAYS], Y, "sample 0: expected a 2-d array of numbers"),
    "objects in an array": ([x.astype(object) for x in ARRAYS], Y, "sample 0: expected a 2-d array of numbers"),
    "a flat array": (changed(ARRAYS, 1, ARRAYS[1][0]), Y, "sample 1: .*1-d"),
    "a number as a token": (changed(DICTS, 1, [1, 2, 3]), Y, "sample 1, position 0"),
}


@pytest.mark.parametrize("name", BAD_DATA)
def test_bad_training_data_are_named(name: str) -> None:
    """Unusable data raise DataError that names the sample, or else the cause."""
    X, y, message = BAD_DATA[name]
    with pytest.raises(DataError, match=message):
        ChainLabeler().fit(X, y)


@pytest.mark.parametrize("name", [name for name in BAD_DATA if "generator" not in name])
def test_a_failed_fit_leaves_the_earlier_one_whole(name: str) -> None:
    """After a second fit that fails, a fitted model is the same in every attribute, and predicts the same."""
    model = ChainLabeler().fit(DICTS, Y)
    before, attributes = plain(model.predict(DICTS)), copy.copy(vars(model))
    with pytest.raises(StructpredError):
        model.fit(*BAD_DATA[name][:2])
    assert vars(model) == attributes
    assert all(vars(model)[key] is value for key, value in attributes.items())
    assert plain(model.predict(DICTS)) == before


BAD_SETTINGS: dict[str, tuple[dict[str, Any], str]] = {
    "trainer": ({"trainer": "adam"}, "trainer: expected one of .*bcfw.*, got 'adam'"),
    "trainer class": ({"trainer": int}, "trainer: expected a name or an instance"),
    "loss": ({"loss": "f1"}, "loss: expected one of .*hamming.*, got 'f1'"),
    "loss object": ({"loss": 3}, r"loss: .*costs\(.*got 3"),
    "loss of another size": ({"loss": LabelCosts(np.zeros((2, 2)))}, r"\(2, 2\), but there are 4 labels"),
    **{
        f"C={C!r}": ({"C": C}, f"C must be a positive number, got {C!r}")
        for C in (0, -1.0, float("nan"), float("inf"), "1", True)
    },
    **{f"max_iter={k!r}": ({"max_iter": k}, f"max_iter must be .*, got {k!r}") for k in (0, -3, 2.5, "10", True)},
    "tol": ({"tol": -0.1}, "tol must be .*, got -0.1"),
    "tol NaN": ({"tol": float("nan")}, "tol must be .*, got nan"),
    "check_every": ({"check_every": 0}, "check_every must be .*, got 0"),
    "patience without dev": ({"patience": 2}, "patience needs held-out data"),
    "min_count": ({"min_count": 0}, "min_count must be at least 1"),
    "min_count text": ({"min_count": "2"}, "min_count must be a whole number, got '2'"),
    "n_bits": ({"n_bits": 40}, "n_bits must lie between"),
    "n_bits float": ({"n_bits": 8.0}, "n_bits must be a whole number"),
    "template": ({"template": "no such"}, "template.*'no such'"),
    "template number": ({"template": 3}, "template: .*got 3"),
    "random_state": ({"random_state": -1}, "random_state must be >= 0"),
    "random_state text": ({"random_state": "x"}, "random_state: "),
    "callback": ({"callbacks": 3}, "callbacks: .*got 3"),
    "callbacks": ({"callbacks": [print, 3]}, "callbacks: .*got 3"),
    "resume alone": ({"resume": True}, "resume needs the checkpoint file"),
}


@pytest.mark.parametrize("name", BAD_SETTINGS)
def test_bad_settings_are_named_and_change_nothing(name: str) -> None:
    """A setting out of range raises ParameterError with its name and value; a model fitted before still predicts."""
    settings, message = BAD_SETTINGS[name]
    model = ChainLabeler().fit(DICTS, Y)
    before, attributes = plain(model.predict(DICTS)), dict(vars(model))
    with pytest.raises(ParameterError, match=message):
        model.set_params(**settings).fit(DICTS[:2], Y[:2] if "size" not in name else [*Y[:1], ["ADJ", "NOUN", "VERB"]])
    assert {key: vars(model)[key] for key in attributes if key not in settings} == {
        key: value for key, value in attributes.items() if key not in settings
    }
    assert plain(model.predict(DICTS)) == before


ONES = [[1.0] * len(tags) for tags in Y]
BAD_EXTRAS: dict[str, tuple[dict[str, Any], str]] = {
    "sample_weight too short": ({"sample_weight": [1.0]}, r"sample_weight .*\(6,\), got shape \(1,\)"),
    "sample_weight negative": ({"sample_weight": [-1.0] * 6}, "sample_weight must be finite and >= 0"),
    "sample_weight all zero": ({"sample_weight": [0.0] * 6}, "positive sum"),
    "sample_weight text": ({"sample_weight": ["a"] * 6}, "sample_weight: expected numbers"),
    "token_weight flat": ({"token_weight": [1.0] * 6}, "token_weight, sample 0: expected 3"),
    "token_weight number": ({"token_weight": 3}, "token_weight: expected one list per sequence"),
    "token_weight text": ({"token_weight": changed(ONES, 1, ["a", "b", "c"])}, "token_weight, sample 1: expected numbers"),
    "token_weight NaN": ({"token_weight": changed(ONES, 1, [1, np.nan, 1])}, "token_weight, sample 1: .*finite"),
    "token_weight too few": ({"token_weight": ONES[:-1]}, "token_weight: expected one list per sequence, 6, got 5"),
    "dev without y": ({"dev": DICTS}, r"dev: expected a tuple \(X, y\)"),
    "dev with three": ({"dev": (DICTS, Y, Y)}, r"dev: expected a tuple \(X, y\), got 3"),
    "dev of other length": ({"dev": (DICTS, Y[:2])}, "dev: X has 6 sequences but y has 2"),
    "dev with NaN": ({"dev": ([[{"a": float("nan")}]], [["DET"]])}, "dev: sample 0, position 0: .*nan"),
    "dev empty": ({"dev": ([], [])}, "dev: no sequences"),
}


@pytest.mark.parametrize("name", BAD_EXTRAS)
def test_bad_weights_and_held_out_data_are_named(name: str) -> None:
    """What fit takes besides X and y is checked before training, and the message says which of them it is."""
    extra, message = BAD_EXTRAS[name]
    rows: list[Any] = []
    with pytest.raises(StructpredError, match=message):
        ChainLabeler(callbacks=rows.append).fit(DICTS, Y, **extra)
    assert rows == []


def test_labels_unseen_in_training_are_wrong_not_refused() -> None:
    """Labels of held-out or scored data that training never saw count as errors."""
    unseen = changed(Y, 0, ["NEW", *Y[0][1:]])
    model = ChainLabeler(max_iter=30).fit(DICTS, Y, dev=(DICTS, unseen))
    assert model.score(DICTS, unseen) == pytest.approx(1 - 1 / sum(map(len, Y)))
    assert max(row["dev_score"] for row in model.history_) < 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda model: model.predict(ARRAYS[0]), "one sequence instead of a list"),
        (lambda model: model.predict(sparse.csr_array(ARRAYS[0])), "one sequence instead of a list"),
        (lambda model: model.predict(None), "got NoneType"),
        (lambda model: model.predict([1, 2]), "sample 0"),
        (lambda model: model.predict([x[:, :2] for x in ARRAYS]), "sample 0: expected 9 feature columns, got 2"),
        (lambda model: model.predict(changed(ARRAYS, 2, with_value(np.nan))), "sample 2: .*nan"),
        (lambda model: model.predict_score_gaps(changed(ARRAYS, 4, np.empty((0, 9)))), "sample 4: the sequence is empty"),
        (lambda model: model.score(ARRAYS, Y[:3]), "X has 6 sequences but y has 3"),
        (lambda model: model.score(ARRAYS, changed(Y, 3, ["DET"])), "sample 3: x has 3 tokens but y has 1 labels"),
        (lambda model: model.score(ARRAYS, Y, sample_weight=[1.0]), "sample_weight"),
    ],
)
def test_bad_input_to_predict_and_score_is_named(call: Callable[[ChainLabeler], Any], message: str) -> None:
    """Prediction and scoring refuse what training refuses, and columns that do not fit the model."""
    with pytest.raises(StructpredError, match=message):
        call(ChainLabeler().fit(ARRAYS, Y))


def test_an_unfitted_model_says_so() -> None:
    """predict, score, save and transitions_ before fit raise our NotFittedError, which scikit-learn knows too."""
    from sklearn.exceptions import NotFittedError

    model = ChainLabeler()
    for call in (
        lambda: model.predict(DICTS),
        lambda: model.score(DICTS, Y),
        lambda: model.save("never.spz"),
        lambda: model.transitions_,
    ):
        with pytest.raises(NotFittedError, match=re.escape("not fitted yet; call fit(X, y)")) as caught:
            call()
        assert isinstance(caught.value, StructpredError)


def test_a_checkpoint_that_cannot_be_written_is_named() -> None:
    """A checkpoint in a folder that is not there is an error that names the file and the cause."""
    with pytest.raises(StorageError, match=r"no_such_folder.*the folder does not exist"):
        ChainLabeler(checkpoint="/no_such_folder/run.ckpt").fit(DICTS, Y)


@pytest.mark.filterwarnings("ignore::structpred.errors.NoUpdateWarning")
def test_one_label_and_features_of_zero_are_no_errors() -> None:
    """A single label, all-zero features and a single token are unusual but sound: training ends and predicts."""
    assert plain(ChainLabeler().fit(DICTS, [["X"] * len(tags) for tags in Y]).predict(DICTS[:1])) == [["X"] * 3]
    zeros = [np.zeros_like(x) for x in ARRAYS]
    assert [len(labels) for labels in ChainLabeler().fit(zeros, Y).predict(zeros)] == list(map(len, Y))
    assert plain(ChainLabeler(max_iter=30).fit([[{"a"}], [{"b"}]], [[0], [1]]).predict([[{"b"}], [{"a"}]])) == [[1], [0]]


def test_a_checkpoint_failure_late_loses_nothing(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the last checkpoint cannot be written (full disk), fit warns and keeps what was learnt."""
    import errno

    from structpred.storage import atomic

    model = ChainLabeler(checkpoint=tmp_path / "run.ckpt").fit(DICTS, Y)
    before = model.coef_.tobytes()

    def full(name: str) -> None:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(atomic, "step", full)
    with pytest.warns(CheckpointWarning, match="disk is full; .*training continues"):
        model.fit(DICTS[:3], Y[:3])
    assert model.coef_.tobytes() != before
