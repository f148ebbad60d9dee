"""Training on a stream: memory, interruption, resuming, and what is refused."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from labeler_cases import Y
from online_cases import CLASSES, ONLINE, Stopper, X, model, noisy, same, total

from structpred.errors import CheckpointError, DataError, ParameterError
from structpred.models import ChainLabeler
from structpred.trainers.running import stream


@pytest.mark.mostly_slow
@pytest.mark.parametrize("trainer", ONLINE)
@pytest.mark.usefixtures("hears_interrupts")
def test_an_interrupted_stream_goes_on_exactly(trainer: str, tmp_path: Path) -> None:
    """Stopped by Ctrl-C anywhere in three passes, the model can predict, and a resumed run ends with the same bits."""
    x, y = noisy(150)
    settings = {"classes": ["a", "b", "c"], "n_passes": 3, **total(trainer)}
    source = lambda: zip(x, y, strict=True)  # noqa: E731
    straight = model(trainer).fit_stream(source, **settings)
    assert [row["passes"] for row in straight.history_] == [1, 2, 3]
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
    from structpred.trainers.running.checkpoints import save_checkpoint

    saved: list[tuple[int, int]] = []

    def save(path: Path, progress: Any) -> None:
        save_checkpoint(path, progress)
        shutil.copy(path, tmp_path / f"{len(saved)}.ckpt")
        saved.append((progress.passes, progress.position))

    x, y = noisy(150)
    source, dev = (lambda: zip(x, y, strict=True)), noisy(30, seed=4)
    original = loop.RunSettings.__init__
    monkeypatch.setattr(loop.RunSettings, "__init__", lambda self, **k: original(self, **{**k, "checkpoint_seconds": 0.0}))
    monkeypatch.setattr(loop, "save_checkpoint", save)
    straight = model("mira", checkpoint=tmp_path / "run").fit_stream(source, ["a", "b", "c"], 3, dev=dev)
    monkeypatch.setattr(loop, "save_checkpoint", save_checkpoint)
    assert saved[:4] == [(0, 64), (0, 128), (0, 150), (1, 64)]
    for k in range(len(saved)):
        shutil.copy(tmp_path / f"{k}.ckpt", tmp_path / "run")
        again = model("mira", checkpoint=tmp_path / "run", resume=True).fit_stream(source, ["a", "b", "c"], 3, dev=dev)
        same(again, straight)
        assert [row["dev_score"] for row in again.history_] == [row["dev_score"] for row in straight.history_]


@pytest.mark.usefixtures("hears_interrupts")
def test_a_resumed_stream_must_be_the_same(tmp_path: Path) -> None:
    """Other labels, fewer sequences, another first sequence or other settings are CheckpointErrors before anything is trained."""
    x, y = noisy(150)
    labeler = model("mira", checkpoint=tmp_path / "run")
    with pytest.raises(KeyboardInterrupt):
        labeler.fit_stream(Stopper(x, y, 100), ["a", "b", "c"], batch_size=16)
    labeler.set_params(resume=True)
    changed = [y[0], ["a" if label != "a" else "b" for label in y[1]], *y[2:]]
    for source, message in (
        (lambda: zip(x, changed, strict=True), "does not give the same 96"),
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
        (zip(x, bad_label, strict=True), "sample 77: label 'z' is not among the labels"),
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

    from structpred.features.parts import PartFeatures
    from structpred.objectives.margin import MarginRescaling
    from structpred.objectives.part_losses import Hamming
    from structpred.oracles.assignment import AssignmentOracle
    from structpred.task.task import Task
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
