"""Going on with training: warm starts, batches, streams; and what cannot be gone on from."""

import json
import pickle
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from labeler_cases import SENTENCES, Y
from sklearn.base import clone

from structpred.errors import CheckpointError, DataError, ParameterError
from structpred.models import ChainLabeler
from structpred.trainers import stream
from structpred.trainers.bcfw import BCFW
from structpred.trainers.sgd import SGD

ONLINE = ["perceptron", "mira", "sgd", "pa", "arow"]
ALL = [*ONLINE, "bcfw", "oeg", "lbfgs", "owlqn", BCFW(gap_sampling=True, cached_passes=1), SGD(averaged=False)]
X = [[[f"w={w}", f"end={w[-1]}"] for w in words] for words in SENTENCES]
CLASSES = ["ADJ", "DET", "NOUN", "VERB"]


def noisy(n: int, seed: int = 0) -> tuple[list[Any], list[Any]]:
    """n random sequences over strings whose labels no model gets all right: every pass changes something."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 6, n)
    return [[[f"w={k}" for k in rng.integers(0, 9, 2)] for _ in range(m)] for m in lengths], [
        rng.choice(["a", "b", "c"], m).tolist() for m in lengths
    ]


def model(trainer: Any, **settings: Any) -> ChainLabeler:
    """A small labeler with hashed features."""
    return ChainLabeler(trainer, C=0.7, n_bits=6, **settings)


def total(trainer: Any) -> dict[str, float]:
    """n_total where the trainer needs it."""
    return {"n_total": 40} if trainer == "sgd" or isinstance(trainer, SGD) else {}


def same(a: ChainLabeler, b: ChainLabeler) -> None:
    """Weights and certificate are equal to the last bit."""
    assert a.coef_.tobytes() == b.coef_.tobytes()
    assert (a.certificate_, a.n_iter_) == (b.certificate_, b.n_iter_)


@pytest.mark.parametrize("trainer", ALL, ids=str)
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


def test_a_failed_warm_start_leaves_the_state_alone() -> None:
    """Where a callback raises in the middle of a later run, going on from the earlier one gives the same as ever."""
    data = noisy(20)
    warm = model("bcfw", max_iter=2, warm_start=True).fit(*data)

    def fail(row: dict[str, Any]) -> None:
        raise RuntimeError

    with pytest.raises(RuntimeError):
        warm.set_params(max_iter=4, callbacks=fail).fit(*data)
    same(warm.set_params(callbacks=None).fit(*data), model("bcfw", max_iter=4).fit(*data))


@pytest.mark.parametrize("trainer", [*ONLINE, SGD(averaged=False)], ids=str)
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
def test_partial_fit_is_the_algorithm(trainer: str) -> None:
    """One pass of fit, put into the order in which fit visits the data, is the same as partial_fit."""
    x, y = noisy(40)
    order = np.random.Generator(np.random.PCG64(5)).permutation(40)
    fitted = model(trainer, max_iter=1, random_state=5).fit(x, y)
    pieces = model(trainer).partial_fit([x[i] for i in order], [y[i] for i in order], n_total=40 if trainer == "sgd" else None)
    np.testing.assert_allclose(pieces.coef_, fitted.coef_, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("trainer", ONLINE)
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
    with pytest.raises(DataError, match=r"sample 1: label 'NEW' is none of the labels that `classes`, or the first batch, fixed"):
        labeler.partial_fit(X[:2], [Y[0], ["NEW", *Y[1][1:]]])
    with pytest.raises(DataError, match="sample 0: label 'VERB' is none of the labels"):
        ChainLabeler("perceptron").partial_fit(X[:2], Y[:2], classes=["DET", "NOUN"])
    with pytest.raises(ParameterError, match="leave classes out or repeat them"):
        labeler.partial_fit(X, Y, classes=["other"])
    assert labeler.coef_.tobytes() == before


def test_what_partial_fit_refuses(tmp_path: Path) -> None:
    """Trainers with dual states, sgd without n_total, changed settings, and models without a state are clear errors."""
    for trainer in ("bcfw", "oeg", "lbfgs"):
        with pytest.raises(ParameterError, match=r"belongs to a fixed set of data; .*perceptron, mira, sgd, pa or arow"):
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
    with pytest.raises(ParameterError, match="cannot go on from this model"):
        loaded.partial_fit(X, Y)
    with pytest.raises(ParameterError, match="cannot go on from this model"):
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


class Stopper:
    """A source that raises SIGINT in this process when it has given `after` pairs in all."""

    def __init__(self, x: list[Any], y: list[Any], after: int) -> None:
        self.pairs, self.left = list(zip(x, y, strict=True)), after

    def __call__(self) -> Iterator[tuple[Any, Any]]:
        for pair in self.pairs:
            self.left -= 1
            if self.left == 0:
                signal.raise_signal(signal.SIGINT)
            yield pair


@pytest.mark.parametrize("trainer", ONLINE)
def test_an_interrupted_stream_goes_on_exactly(trainer: str, tmp_path: Path) -> None:
    """Stopped by Ctrl-C anywhere in three passes, the model can predict, and a resumed run ends with the same bits."""
    x, y = noisy(150)
    settings = {"classes": ["a", "b", "c"], "n_passes": 3, **total(trainer)}
    source = lambda: zip(x, y, strict=True)  # noqa: E731
    straight = model(trainer).fit_stream(source, **settings)
    assert [row["passes"] for row in straight.history_] == [1, 2, 3]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for after in (70, 151 + 32, 400):
        labeler = model(trainer, checkpoint=tmp_path / "run")
        with pytest.raises(KeyboardInterrupt, match="resume=True"):
            labeler.fit_stream(Stopper(x, y, after), batch_size=32, **settings)
        assert len(labeler.predict(x)) == 150
        labeler.set_params(resume=True).fit_stream(source, batch_size=11, **settings)
        same(labeler, straight)
        keep = ("passes", "oracle_calls", "dev_score")
        assert [[row[k] for k in keep] for row in labeler.history_] == [[row[k] for k in keep] for row in straight.history_]


def test_every_checkpoint_of_a_stream_leads_to_the_same_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each checkpoint written on the way (after every 64 sequences, and at the end of a pass) resumes to the same end."""
    import shutil

    from structpred.trainers import loop
    from structpred.trainers.checkpoints import save_checkpoint

    saved: list[tuple[int, int]] = []

    def save(path: Path, progress: Any) -> None:
        save_checkpoint(path, progress)
        shutil.copy(path, tmp_path / f"{len(saved)}.ckpt")
        saved.append((progress.passes, progress.position))

    x, y = noisy(150)
    source, dev = (lambda: zip(x, y, strict=True)), noisy(30, seed=4)
    original = loop.RunSettings.__init__
    monkeypatch.setattr(loop.RunSettings, "__init__", lambda self, **k: original(self, **k, checkpoint_seconds=0.0))
    monkeypatch.setattr(loop, "save_checkpoint", save)
    straight = model("mira", checkpoint=tmp_path / "run").fit_stream(source, ["a", "b", "c"], 3, dev=dev)
    monkeypatch.setattr(loop, "save_checkpoint", save_checkpoint)
    assert saved[:4] == [(0, 64), (0, 128), (0, 150), (1, 64)]
    for k in range(len(saved)):
        shutil.copy(tmp_path / f"{k}.ckpt", tmp_path / "run")
        again = model("mira", checkpoint=tmp_path / "run", resume=True).fit_stream(source, ["a", "b", "c"], 3, dev=dev)
        same(again, straight)
        assert [row["dev_score"] for row in again.history_] == [row["dev_score"] for row in straight.history_]


def test_a_resumed_stream_must_be_the_same(tmp_path: Path) -> None:
    """Other labels, fewer sequences, another first sequence or other settings are CheckpointErrors before anything is trained."""
    x, y = noisy(150)
    labeler = model("mira", checkpoint=tmp_path / "run")
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with pytest.raises(KeyboardInterrupt):
        labeler.fit_stream(Stopper(x, y, 100), ["a", "b", "c"], batch_size=16)
    labeler.set_params(resume=True)
    changed = [y[0], ["a" if label != "a" else "b" for label in y[1]], *y[2:]]
    for source, message in (
        (lambda: zip(x, changed, strict=True), "does not give the same 81"),
        (lambda: zip(x[:50], y[:50], strict=True), r"does not give the same \(50 in all\)"),
        (lambda: zip(x[1:], y[1:], strict=True), "belongs to another run"),
    ):
        with pytest.raises(CheckpointError, match=message):
            labeler.fit_stream(source, ["a", "b", "c"], batch_size=16)
    with pytest.raises(CheckpointError, match="belongs to another run"):
        labeler.fit(x[:1], y[:1])
    with pytest.raises(CheckpointError, match="belongs to another run"):
        labeler.fit_stream(lambda: zip(x, y, strict=True), ["a", "b", "c"], n_total=7)
    with pytest.raises(CheckpointError, match="belongs to another run"):
        labeler.set_params(C=3.0).fit_stream(lambda: zip(x, y, strict=True), ["a", "b", "c"])


def test_bad_data_in_a_stream_name_their_running_number(tmp_path: Path) -> None:
    """The number of the sequence counts from the beginning of the stream; with a checkpoint, mended data go on from there."""
    x, y = noisy(100)
    straight = model("mira").fit_stream(lambda: zip(x, y, strict=True), ["a", "b", "c"])
    bad_label, short, token = [*y[:77], ["z"] * len(y[77]), *y[78:]], [*y[:77], [], *y[78:]], [*x[:77], [3], *x[78:]]
    for case, message in (
        (zip(x, bad_label, strict=True), "sample 77: label 'z' is none of the labels"),
        (zip(x, short, strict=True), "sample 77: x has"),
        (zip(token, y, strict=True), "sample 77, position 0"),
        ([*zip(x[:77], y[:77], strict=True), x[77]], "sample 77: expected a pair"),
    ):
        pairs = list(case)
        labeler = model("mira", checkpoint=tmp_path / "run")
        with pytest.raises(DataError, match=message):
            labeler.fit_stream(lambda pairs=pairs: pairs, ["a", "b", "c"], batch_size=10)
        assert not hasattr(labeler, "coef_")
        labeler.set_params(resume=True).fit_stream(lambda: zip(x, y, strict=True), ["a", "b", "c"])
        same(labeler, straight)


def test_what_fit_stream_refuses() -> None:
    """No function, an empty or used-up source, dual trainers, no n_total, bad counts: clear errors, nothing fitted."""
    pairs = list(zip(X, Y, strict=True))
    used_up = iter(pairs * 2)

    def fails(
        message: str, source: Any, trainer: str = "perceptron", kind: type[Exception] = ParameterError, **more: Any
    ) -> None:
        labeler = ChainLabeler(trainer, n_bits=8, **more.pop("settings", {}))
        with pytest.raises(kind, match=message):
            labeler.fit_stream(source, CLASSES, **more)
        assert not hasattr(labeler, "coef_")

    fails("expected a function that returns an iterable", pairs)
    fails("no sequences at all", lambda: [], kind=DataError)
    fails("return an iterable", lambda: 3, kind=DataError)
    fails("the source gave no sequences", lambda: used_up, kind=DataError, batch_size=6, n_passes=2)
    fails("belongs to a fixed set of data", lambda: pairs, trainer="bcfw")
    fails("sgd needs n_total", lambda: pairs, trainer="sgd")
    fails("n_passes must be", lambda: pairs, n_passes=0)
    fails("batch_size must be", lambda: pairs, batch_size=1.5)
    fails("warm_start is for fit", lambda: pairs, settings={"warm_start": True})
    fails("patience needs held-out data", lambda: pairs, settings={"patience": 2})


def test_a_stream_is_never_held_in_memory() -> None:
    """While a stream is read, no more than three batches of its sequences are alive."""
    alive = most = 0

    class Token(list):
        def __init__(self, *args: Any) -> None:
            nonlocal alive, most
            super().__init__(*args)
            alive += 1
            most = max(most, alive)

        def __del__(self) -> None:
            nonlocal alive
            alive -= 1

    def source() -> Iterator[tuple[Any, Any]]:
        for k in range(1000):
            yield [Token([f"w={k}"])], ["a" if k % 3 else "b"]

    model("perceptron").fit_stream(source, ["a", "b"], batch_size=20)
    assert most <= 60
    assert alive <= 1


def test_callbacks_dev_and_patience_in_a_stream() -> None:
    """Rows reach the callbacks, the best weights on held-out data are kept, and patience stops."""
    rows: list[Any] = []
    scores = iter([0.2, 0.9, 0.5, 0.4, 0.3])
    x, y = noisy(40)
    labeler = model("perceptron", callbacks=rows.append, patience=2, dev_metric=lambda gold, predicted: next(scores))
    labeler.fit_stream(lambda: zip(x, y, strict=True), ["a", "b", "c"], 50, dev=noisy(5))
    assert (labeler.stop_reason_, labeler.n_iter_) == ("dev", 4)
    assert [row["dev_score"] for row in rows] == [0.2, 0.9, 0.5, 0.4]
    assert (
        labeler.coef_.tobytes()
        == model("perceptron").fit_stream(lambda: zip(x, y, strict=True), ["a", "b", "c"], 2).coef_.tobytes()
    )
    json.dumps(labeler.history_)


def test_constraints_hold_in_pieces() -> None:
    """Rules on labels serve partial_fit and fit_stream as they serve fit: true labels that break them name their sample."""
    x = [[["a"], ["b"]]] * 3
    good, bad = ["B-X", "I-X"], ["O", "I-X"]
    labeler = ChainLabeler("perceptron", constraints="iob2", n_bits=5)
    labeler.partial_fit(x, [good] * 3, classes=["B-X", "I-X", "O"])
    with pytest.raises(DataError, match="sample 2, position 1"):
        labeler.partial_fit(x, [good, good, bad])
    with pytest.raises(DataError, match="sample 5, position 1"):
        ChainLabeler("perceptron", constraints="iob2", n_bits=5).fit_stream(
            lambda: zip(x * 2, [good] * 5 + [bad], strict=True), ["B-X", "I-X", "O"], batch_size=2
        )


def test_streams_serve_any_task() -> None:
    """train_stream knows no chains: matchings come in batches too, and equal one batch."""
    from scipy.optimize import linear_sum_assignment

    from structpred.core.features import PartFeatures
    from structpred.core.task import Task
    from structpred.objectives.margin import MarginRescaling
    from structpred.objectives.part_losses import Hamming
    from structpred.oracles.assignment import AssignmentOracle
    from structpred.trainers.loop import RunSettings
    from structpred.trainers.mira import MIRA

    rng = np.random.default_rng(0)
    rows = [rng.normal(size=(9, 3)) for _ in range(12)]
    labels = [linear_sum_assignment((m @ [1, -2, 0.3]).reshape(3, 3), maximize=True)[1] for m in rows]

    def tasks(size: int) -> Iterator[Task]:
        for k in range(0, 12, size):
            part = slice(k, k + size)
            yield Task(PartFeatures(rows[part]), AssignmentOracle(), labels[part], [(3,)] * len(rows[part]), Hamming())

    found = []
    for size in (1, 5, 12):
        problem = stream.StreamProblem(next(tasks(1)), MarginRescaling(), 1.0)
        result, _ = stream.train_stream(problem, MIRA(), lambda skip, crc, size=size: tasks(size), RunSettings(max_iter=3))
        found.append(result.weights.tobytes())
    assert len(set(found)) == 1


def test_the_how_to_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The Python of docs/howto/train_on_more_than_fits.md runs as it stands and prints what one expects."""
    page = Path(__file__).resolve().parents[2] / "docs" / "howto" / "train_on_more_than_fits.md"
    code = "\n".join(re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL))
    monkeypatch.chdir(tmp_path)
    exec(compile(code, str(page), "exec"), {})
    assert capsys.readouterr().out.splitlines() == ["['B-NP', 'I-NP', 'O']", "['DET', 'NOUN', 'VERB'] 2", "5 True"]
    assert (tmp_path / "stream.ckpt").exists()
