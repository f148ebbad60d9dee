"""States of shards that go to the store in every third round alone: what is there, what runs again, and that no bit shows it."""

import copy
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from cluster_data import digest, labeler, small_shards

from structpred.distributed import Shards, fit, tasks
from structpred.errors import CheckpointError, ParameterError
from structpred.trainers.cocoa import CoCoARounds

# dask first: without it the folder of these tests is found as `distributed`
pytest.importorskip("dask", reason="dask is not installed: pip install 'structpred[distributed]'")
distributed = pytest.importorskip("distributed")
ROUNDS = 7


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> Shards:
    """A small file, cut into two."""
    return small_shards(tmp_path_factory.mktemp("data"), 2)


@pytest.fixture(scope="module")
def bits(here: Any, shards: Shards) -> Callable[[str], str]:
    """The digest of a run whose states go to the store in every round, by the name of the trainer."""
    return cache(lambda trainer: digest(fit(labeler(trainer, max_iter=ROUNDS), shards, client=here)))


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The rounds of shard 1 as they run."""
    found, advance = [], CoCoARounds.advance

    def noting(algorithm: CoCoARounds, part: Any, state: Any, common: Any, t: int) -> Any:
        if part.shard == 1:
            found.append(t)
        return advance(algorithm, part, state, common, t)

    monkeypatch.setattr(CoCoARounds, "advance", noting)
    return found


def kept(folder: Path, name: str) -> list[int]:
    """The rounds of the files of this name that the only run in a store has left."""
    return sorted(int(path.name.rpartition(".")[2]) for path in folder.glob(f"run-*/{name}.*"))


def test_no_other_number_of_rounds(here: Any, shards: Shards) -> None:
    """What is no whole number from 1 up is refused at once."""
    for every in (0, -1, 1.5, True, None):
        with pytest.raises(ParameterError, match="every must be a whole number >= 1, got"):
            fit(labeler("bcfw"), shards, client=here, every=every)  # type: ignore[arg-type]


@pytest.mark.parametrize("trainer", ["bcfw", pytest.param("oeg", marks=pytest.mark.slow)])
def test_states_are_stored_in_every_third_round(
    here: Any, shards: Shards, bits: Callable[[str], str], runs: list[int], tmp_path: Path, trainer: str
) -> None:
    """The last two states stay, with what all knew in the rounds since they may be needed; without a loss no round runs twice.

    Another number for the same run is refused, as what is in the store would not do.
    """
    expected = bits(trainer)
    for every, states, commons in ((1, [6, 7], [6, 7]), (3, [3, 6], [4, 5, 6, 7])):
        path = tmp_path / f"{every}.ckpt"
        runs.clear()
        assert digest(fit(labeler(trainer, max_iter=ROUNDS, checkpoint=path), shards, client=here, every=every)) == expected
        assert runs == list(range(ROUNDS))
        assert kept(tmp_path / f"{path.name}.store", "state.1") == states
        assert kept(tmp_path / f"{path.name}.store", "common") == commons
    with pytest.raises(CheckpointError, match="the settings or the version differ"):
        fit(labeler(trainer, max_iter=ROUNDS, checkpoint=path, resume=True), shards, client=here, every=2)


# of its memory is in use: a worker keeps no states, or no shards either
@pytest.mark.parametrize("most", [pytest.param(0.5, marks=pytest.mark.slow), 0.9])
def test_states_that_are_lost_are_made_again(
    here: Any, shards: Shards, bits: Callable[[str], str], runs: list[int], monkeypatch: pytest.MonkeyPatch, most: float
) -> None:
    """A worker that has no state in memory runs the rounds since the last one in the store again, two at most."""
    expected = bits("oeg")
    runs.clear()
    monkeypatch.setattr("structpred.distributed.tasks.is_memory_above", lambda share: most > share)
    assert digest(fit(labeler("oeg", max_iter=ROUNDS), shards, client=here, every=3)) == expected
    assert runs == [0, 0, 1, 0, 1, 2, 3, 3, 4, 3, 4, 5, 6]


@pytest.mark.slow
def test_a_worker_that_missed_a_round_runs_that_one(
    here: Any, shards: Shards, bits: Callable[[str], str], runs: list[int]
) -> None:
    """A worker whose shard was another's for a round goes on from its own state, which is newer than that in the store."""
    old: list[Any] = []

    def forget_a_round(row: Any) -> None:
        held = next(held for (_, k), held in tasks.HELD.items() if k == 1)
        if row["passes"] == 3:
            old.append((copy.deepcopy(held.state), held.t))
        elif row["passes"] == 4:
            held.state, held.t = old.pop()

    expected = bits("oeg")
    runs.clear()
    model = labeler("oeg", max_iter=ROUNDS, callbacks=forget_a_round)
    assert digest(fit(model, shards, client=here, every=5)) == expected
    assert runs == [0, 1, 2, 3, 3, 4, 5, 6]


@pytest.mark.slow
@pytest.mark.parametrize("trainer", ["bcfw", "oeg", "lbfgs"])
def test_a_run_that_ended_anywhere_is_resumed(
    here: Any, shards: Shards, bits: Callable[[str], str], tmp_path: Path, trainer: str
) -> None:
    """After any round, also where the store is one round ahead of the checkpoint: with the same bits."""

    class Lost(Exception):
        """The client is gone."""

    for last in range(1, ROUNDS):
        for ahead in (0, 1):
            path, before = tmp_path / f"{last}{ahead}.ckpt", tmp_path / "before.ckpt"
            settings = {"max_iter": ROUNDS, "checkpoint": path}

            def end(row: Any, last: int = last, ahead: int = ahead, path: Path = path, before: Path = before) -> None:
                if row["passes"] == last:
                    shutil.copy(path, before)
                if row["passes"] == last + ahead:
                    raise Lost

            with pytest.raises(Lost):
                fit(labeler(trainer, callbacks=end, **settings), shards, client=here, every=3)
            before.replace(path)
            model = fit(labeler(trainer, resume=True, **settings), shards, client=here, every=3)
            assert digest(model) == bits(trainer), (last, ahead)
