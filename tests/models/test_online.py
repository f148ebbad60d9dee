"""Going on with training: warm starts and batches; and what cannot be gone on from."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from labeler_cases import Y
from online_cases import ALL, CLASSES, ONLINE, X, model, noisy, same, total
from sklearn.base import clone

from structpred.errors import DataError, ParameterError
from structpred.models import ChainLabeler
from structpred.trainers.sgd import SGD


def name_of(trainer: object) -> str:
    """A trainer's name, the same in every process."""
    return trainer if isinstance(trainer, str) else type(trainer).__name__


@pytest.mark.slow
@pytest.mark.parametrize("trainer", ALL, ids=name_of)
@pytest.mark.filterwarnings("ignore::structpred.errors.NoUpdateWarning")
def test_warm_starts_add_up(trainer: Any, tmp_path: Path) -> None:
    """Six passes are the same as 1 + 1 + 2 + 2 by warm starts, and as six times one pass through a checkpoint."""
    data = noisy(20)
    straight = model(trainer, max_iter=6, check_every=1, random_state=3).fit(*data)
    warm = model(trainer, check_every=1, random_state=3, warm_start=True)
    for passes in (1, 2, 4, 6):
        assert warm.set_params(max_iter=passes).fit(*data).n_iter_ == passes
    same(warm, straight)
    times = ("seconds", "cpu_seconds")
    rows = [[{k: v for k, v in row.items() if k not in times} for row in m.history_] for m in (warm, straight)]
    assert rows[0] == rows[1]
    for passes in range(1, 7):
        saved = model(trainer, max_iter=passes, random_state=3, checkpoint=tmp_path / "run", resume=passes > 1).fit(*data)
    same(saved, straight)


@pytest.mark.parametrize("trainer", ["perceptron", "bcfw", "oeg", "lbfgs"])
@pytest.mark.filterwarnings("ignore::structpred.errors.NoUpdateWarning")
def test_a_warm_start_on_other_data_is_refused(trainer: str) -> None:
    """Other sequences, labels, weights or C are an error that says what to do, and the model stays as it was."""
    x, y = noisy(20)
    fitted = model(trainer, max_iter=2, warm_start=True).fit(x, y)
    before = fitted.coef_.tobytes()
    advice = "partial_fit takes new data" if trainer == "perceptron" else "belongs to its data"
    for case in ((x[:-1], y[:-1]), (x, [labels[::-1] for labels in y]), noisy(20, seed=1)):
        with pytest.raises(ParameterError, match=advice):
            fitted.set_params(max_iter=4).fit(*case)
    with pytest.raises(ParameterError, match="not the same"):
        fitted.fit(x, y, sample_weight=np.arange(1, 21))
    with pytest.raises(ParameterError, match="not the same"):
        fitted.set_params(C=2.0).fit(x, y)
    assert fitted.coef_.tobytes() == before
    assert fitted.set_params(C=0.7, warm_start=False).fit(*noisy(20, seed=1)).n_iter_ == 4


@pytest.mark.filterwarnings("ignore::structpred.errors.NoUpdateWarning")
def test_a_warm_start_needs_the_state(tmp_path: Path) -> None:
    """A loaded model and one fitted without warm_start cannot go on; a pickled one can; a clone starts anew."""
    data = noisy(20)
    cold = model("bcfw", max_iter=2).fit(*data)
    with pytest.raises(ParameterError, match="not the state of the run"):
        cold.set_params(warm_start=True).fit(*data)
    warm = model("bcfw", max_iter=2, warm_start=True).fit(*data)
    warm.save(tmp_path / "m.spz")
    with pytest.raises(ParameterError, match="loaded from a file"):
        ChainLabeler.load(tmp_path / "m.spz").set_params(warm_start=True).fit(*data)
    again = pickle.loads(pickle.dumps(warm)).set_params(max_iter=5).fit(*data)
    same(again, model("bcfw", max_iter=5).fit(*data))
    assert clone(warm).fit(*noisy(5, seed=9)).n_iter_ == 2


@pytest.mark.filterwarnings("ignore::structpred.errors.NoUpdateWarning")
def test_a_failed_warm_start_leaves_the_state_alone() -> None:
    """Where a callback raises in the middle of a later run, going on from the earlier one gives the same as ever."""
    data = noisy(20)
    warm = model("bcfw", max_iter=2, warm_start=True).fit(*data)

    def fail(row: dict[str, Any]) -> None:
        raise RuntimeError

    with pytest.raises(RuntimeError):
        warm.set_params(max_iter=4, callbacks=fail).fit(*data)
    same(warm.set_params(callbacks=None).fit(*data), model("bcfw", max_iter=4).fit(*data))


@pytest.mark.slow
@pytest.mark.parametrize("trainer", [*ONLINE, SGD(averaged=False)], ids=name_of)
def test_batches_add_up_to_a_stream(trainer: Any) -> None:
    """partial_fit over batches of any size = one pass of fit_stream with any batch size, bit for bit."""
    x, y = noisy(40)
    whole = model(trainer).partial_fit(x, y, **total(trainer))
    for size in (1, 7, 40):
        pieces = model(trainer)
        for k in range(0, 40, size):
            pieces.partial_fit(x[k : k + size], y[k : k + size], classes=["a", "b", "c"], **(total(trainer) if not k else {}))
        assert pieces.coef_.tobytes() == whole.coef_.tobytes()
        streamed = model(trainer).fit_stream(lambda: zip(x, y, strict=True), ["c", "b", "a"], batch_size=size, **total(trainer))
        assert streamed.coef_.tobytes() == whole.coef_.tobytes()
        assert streamed.history_[-1]["oracle_calls"] == pieces.history_[-1]["oracle_calls"] == 40


@pytest.mark.parametrize("trainer", ONLINE)
@pytest.mark.filterwarnings("ignore::structpred.errors.NoUpdateWarning")
def test_partial_fit_is_the_algorithm(trainer: str) -> None:
    """One pass of fit, put into the order in which fit visits the data, is the same as partial_fit."""
    x, y = noisy(40)
    order = np.random.Generator(np.random.PCG64(5)).permutation(40)
    fitted = model(trainer, max_iter=1, random_state=5).fit(x, y)
    pieces = model(trainer).partial_fit([x[i] for i in order], [y[i] for i in order], n_total=40 if trainer == "sgd" else None)
    np.testing.assert_allclose(pieces.coef_, fitted.coef_, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("trainer", ONLINE)
@pytest.mark.filterwarnings("ignore::structpred.errors.NoUpdateWarning")
def test_partial_fit_goes_on_after_fit(trainer: str) -> None:
    """After fit with warm_start=True, partial_fit with the data of the third pass gives what a third pass gives."""
    x, y = noisy(40)
    rng = np.random.Generator(np.random.PCG64(0))
    order = [rng.permutation(40) for _ in range(3)][-1]
    warm = model(trainer, max_iter=2, warm_start=True).fit(x, y)
    warm.partial_fit([x[i] for i in order], [y[i] for i in order])
    np.testing.assert_allclose(warm.coef_, model(trainer, max_iter=3).fit(x, y).coef_, rtol=1e-5, atol=1e-6)
    with pytest.raises(ParameterError, match="in pieces"):
        warm.fit(x, y)


@pytest.mark.slow
def test_partial_fit_learns_and_takes_all_inputs(tmp_path: Path) -> None:
    """Arrays, packed sequences, dicts, strings, rows, hashed or not: two rounds of batches label the training data right."""
    from labeler_cases import all_cases, plain

    for case in all_cases(tmp_path):
        labeler = ChainLabeler("perceptron", **case.settings)
        for _ in range(15):
            labeler.partial_fit(case.X, case.y)
        assert labeler.n_iter_ == 15
        assert plain(labeler.predict(case.X)) == case.y, case.name


def test_the_first_batch_fixes_features_and_labels() -> None:
    """Later features that the dictionary does not have are left out; a label that was not fixed names its sample."""
    labeler = ChainLabeler("perceptron").partial_fit(X[:3], Y[:3], classes=CLASSES)
    n = labeler.n_features_in_
    labeler.partial_fit(X[3:], Y[3:])
    assert labeler.n_features_in_ == n
    assert labeler.classes_.tolist() == CLASSES
    before = labeler.coef_.tobytes()
    with pytest.raises(DataError, match=r"sample 1: label 'NEW' is not among the labels fixed by `classes` or the first batch"):
        labeler.partial_fit(X[:2], [Y[0], ["NEW", *Y[1][1:]]])
    with pytest.raises(DataError, match="sample 0: label 'VERB' is not among the labels"):
        ChainLabeler("perceptron").partial_fit(X[:2], Y[:2], classes=["DET", "NOUN"])
    with pytest.raises(ParameterError, match="leave classes out or repeat them"):
        labeler.partial_fit(X, Y, classes=["other"])
    assert labeler.coef_.tobytes() == before


def test_what_partial_fit_refuses(tmp_path: Path) -> None:
    """Trainers with dual states, sgd without n_total, changed settings, and models without a state are clear errors."""
    for trainer in ("bcfw", "oeg", "lbfgs"):
        with pytest.raises(ParameterError, match=r"belongs to a fixed set of data; .*one of arow, mira, online_mkl, pa, "):
            ChainLabeler(trainer).partial_fit(X, Y)
    with pytest.raises(ParameterError, match="sgd needs n_total"):
        ChainLabeler("sgd").partial_fit(X, Y)
    for n_total in (0, -1, np.nan, np.inf, "many", True):
        with pytest.raises(ParameterError, match="n_total must be a number >= 1"):
            ChainLabeler("sgd").partial_fit(X, Y, n_total=n_total)
    labeler = ChainLabeler("sgd").partial_fit(X, Y, n_total=100)
    for changed in ({"C": 2.0}, {"trainer": "mira"}):
        with pytest.raises(ParameterError, match="must stay as at the first call"):
            clone_with_state(labeler).set_params(**changed).partial_fit(X, Y)
    with pytest.raises(ParameterError, match="must stay as at the first call"):
        labeler.partial_fit(X, Y, n_total=50)
    labeler.save(tmp_path / "m.spz")
    loaded = ChainLabeler.load(tmp_path / "m.spz")
    assert [p.tolist() for p in loaded.predict(X)] == [p.tolist() for p in labeler.predict(X)]
    with pytest.raises(ParameterError, match="cannot continue from this model"):
        loaded.partial_fit(X, Y)
    with pytest.raises(ParameterError, match="cannot continue from this model"):
        ChainLabeler("perceptron").fit(X, Y).partial_fit(X, Y)
    for classes in ("abc", [], 3, [1, "a"], [1.5]):
        with pytest.raises(ParameterError, match="classes"):
            ChainLabeler("perceptron").partial_fit(X, Y, classes=classes)


def clone_with_state(labeler: ChainLabeler) -> ChainLabeler:
    """A copy that can go on."""
    copy: ChainLabeler = pickle.loads(pickle.dumps(labeler))
    return copy


def test_a_pickled_model_goes_on_exactly() -> None:
    """partial_fit after a round trip through pickle gives the same weights as without one."""
    x, y = noisy(40)
    one = model("sgd").partial_fit(x[:20], y[:20], n_total=40)
    other = clone_with_state(one)
    assert one.partial_fit(x[20:], y[20:]).coef_.tobytes() == other.partial_fit(x[20:], y[20:]).coef_.tobytes()
