"""Successive halving: which settings go on, what is paid for, and what an interruption leaves."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from structpred.errors import CheckpointError, ConvergenceError, DataError, ParameterError
from structpred.tuning import Search, Tuned
from structpred.tuning.halving import Rung, fold_members, grid_of, rungs

#: the score of each setting after each of nine passes, by the name of the setting; "d" is best in the end, but too late
CURVES = {
    "a": [0.1, 0.2, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3],
    "b": [0.5, 0.4, 0.4, 0.4, 0.4, 0.4, 0.4, 0.4, 0.4],
    "c": [0.4, 0.5, 0.6, 0.7, 0.8, 0.7, 0.7, 0.7, 0.7],
    "d": [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.9],
    "e": [0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.9, 0.9, 0.9],
}
SETTINGS = [{"name": name} for name in CURVES]


@dataclass
class Curves:
    """A work that follows the curves, in a checkpoint as trainers keep one; it ends the program before its k-th run."""

    fails_after: dict[str, int] = field(default_factory=dict)
    ends_before: int | None = None
    paid: list[tuple[str, int, int]] = field(default_factory=list)
    most_kept: int = 0

    def fit(self, setting: dict[str, Any], fold: int, passes: int, checkpoint: Path) -> Sequence[float]:
        """The first passes of a curve; fold 1 is a tenth worse."""
        if self.ends_before is not None and len(self.paid) == self.ends_before:
            raise KeyboardInterrupt
        done = int(checkpoint.read_text()) if checkpoint.exists() else 0
        checkpoint.write_text(str(passes))
        self.paid.append((setting["name"], fold, passes - done))
        self.most_kept = max(self.most_kept, len(list(checkpoint.parent.glob("*.ckpt"))))
        if passes > self.fails_after.get(setting["name"], passes):
            raise ConvergenceError("the weights are no longer finite")
        return [score - 0.1 * fold for score in CURVES[setting["name"]][:passes]]


def search(work: Curves, n_folds: int = 1, identity: Any = None) -> Search:
    """All curves, nine passes."""
    return Search(work, SETTINGS, rungs(len(SETTINGS), 9), n_folds, identity)


def facts(found: Tuned) -> Any:
    """All but the seconds."""
    return [{**trial, "cpu_seconds": None} for trial in found.to_dict()["trials"]], found.best.setting


def test_rungs_end_at_all_passes() -> None:
    """Rungs grow by eta up to all passes, as many as it takes to get from all settings to one, none below the least passes."""
    assert rungs(12, 27) == (Rung(1, 4), Rung(3, 2), Rung(9, 1), Rung(27, 1))
    assert rungs(3, 27) == (Rung(9, 1), Rung(27, 1))
    assert rungs(100, 10, min_passes=3) == (Rung(3, 34), Rung(10, 1))
    assert rungs(7, 27, min_passes=27) == (Rung(27, 1),)
    assert rungs(1, 27) == (Rung(27, 1),)
    assert rungs(8, 8, eta=2) == (Rung(1, 4), Rung(2, 2), Rung(4, 1), Rung(8, 1))


def test_the_best_third_goes_on() -> None:
    """A setting is judged by the best score that it has so far; of equals the first in the grid goes on."""
    work = Curves()
    found = search(work).run()
    assert [trial.setting["name"] for trial in found.ranked] == ["c", "b", "e", "a", "d"]  # after three passes c equals e
    assert [trial.passes for trial in found.trials] == [1, 3, 9, 1, 1]
    assert (found.best.score, found.best.best_pass, found.best.dropped) == (0.8, 5, False)
    assert found.trials[1].best_pass == 1


def test_no_pass_is_paid_twice() -> None:
    """A setting that goes on continues where it stands, and only checkpoints that may be needed are kept, none in the end."""
    work = Curves()
    search(work).run()
    assert work.paid == [("a", 0, 1), ("b", 0, 1), ("c", 0, 1), ("d", 0, 1), ("e", 0, 1), ("b", 0, 2), ("c", 0, 2), ("c", 0, 6)]
    assert work.most_kept <= 3  # two that go on, and the one that has just run


def test_folds_are_averaged() -> None:
    """A setting's curve is the mean over the folds, to which all its runs belong."""
    work = Curves()
    found = search(work, n_folds=2).run()
    assert found.best.setting == {"name": "c"}
    assert found.best.score == pytest.approx(0.75)
    assert len(work.paid) == 16


@pytest.mark.parametrize("n_folds", [1, 2])
def test_an_interrupted_search_comes_to_the_same_end(n_folds: int, tmp_path: Path) -> None:
    """Ended before any of its runs and continued, it finds the same, and does no finished run again."""
    whole = search(everything := Curves(), n_folds).run()
    for k in range(0, len(everything.paid), 3 * n_folds - 2):
        first, second, folder = Curves(ends_before=k), Curves(), tmp_path / f"{k}"
        with pytest.raises(KeyboardInterrupt):
            search(first, n_folds).run(folder)
        assert facts(search(second, n_folds).run(folder)) == facts(whole)
        assert first.paid + second.paid == everything.paid
        assert [file.name for file in folder.iterdir()] == ["tuning.json"]
    assert facts(search(Curves(ends_before=0), n_folds).run(folder)) == facts(whole)  # nothing is left to do


def test_a_setting_that_fails_is_dropped() -> None:
    """Weights that become infinite end a setting, not the search; where all end so, an error says which and why."""
    found = search(Curves(fails_after={"a": 0, "c": 1})).run()
    assert found.best.setting == {"name": "b"}
    assert found.trials[0].error == found.trials[2].error == "the weights are no longer finite"
    assert found.trials[2].score is None
    assert found.ranked[-1].error
    assert "no longer finite" in found.table()
    with pytest.raises(ConvergenceError, match="all settings left, first name a: the weights"):
        search(Curves(fails_after=dict.fromkeys(CURVES, 0))).run()


def test_runs_that_converge_keep_their_last_score() -> None:
    """A run may end before the passes that it was given; what it has then stays its score."""

    class Short(Curves):
        def fit(self, setting: dict[str, Any], fold: int, passes: int, checkpoint: Path) -> Sequence[float]:
            return super().fit(setting, fold, passes, checkpoint)[: 2 + 5 * fold]

    found = search(Short(), n_folds=2).run()
    assert [trial.passes for trial in found.trials] == [1, 3, 9, 1, 1]
    assert found.best.scores[-1] == pytest.approx((0.5 + 0.6) / 2)


def test_a_folder_holds_one_search(tmp_path: Path) -> None:
    """The folder of another search, one with other files, a file, and a damaged state are refused, each for what it is."""
    search(Curves(), identity="these data").run(tmp_path / "run")
    with pytest.raises(CheckpointError, match="holds another search"):
        search(Curves(), identity="other data").run(tmp_path / "run")
    with pytest.raises(DataError, match="it has other files"):
        search(Curves()).run(tmp_path)
    with pytest.raises(DataError, match="expected a folder, got a file"):
        search(Curves()).run(tmp_path / "run" / "tuning.json")
    with pytest.raises(DataError, match="the folder around it does not exist"):
        search(Curves()).run(tmp_path / "no" / "run")
    for text in ("{}", "[1]", '{"fingerprint": "x", "runs": [{"setting": 0, "fold": 0}]}', "nonsense"):
        (tmp_path / "run" / "tuning.json").write_text(text)
        with pytest.raises(CheckpointError, match="not the state of a search, or damaged"):
            search(Curves(), identity="these data").run(tmp_path / "run")


def test_what_is_found_is_plain_data() -> None:
    """The dictionary goes through JSON, and the table has a line a setting, the best first and marked."""
    found = search(Curves()).run()
    data = json.loads(json.dumps(found.to_dict()))
    assert data["best"] == {"setting": {"name": "c"}, "score": 0.8, "passes": 5}
    lines = found.table().splitlines()
    assert lines[0].split() == ["name", "passes", "dev", "score", "at", "pass", "CPU", "s"]
    assert lines[1].split()[:5] == ["c", "9", "80.00", "%", "5"]
    assert lines[1].endswith("best")
    assert lines[2].endswith("dropped after pass 3")
    assert len(lines) == 6


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: grid_of({}), "the grid is empty"),
        (lambda: grid_of({"C": []}), "C: expected a list of values"),
        (lambda: grid_of({"trainer": "sgd"}), "trainer: expected a list of values"),
        (lambda: grid_of({"C": [0.1, 1, 0.1]}), "C: 0.1 is given twice"),
        (lambda: rungs(3, 0), "max_passes must be a whole number >= 1"),
        (lambda: rungs(3, 9, eta=1), "eta must be a whole number >= 2"),
        (lambda: rungs(3, 9, min_passes=10), "min_passes must be at most max_passes"),
        (lambda: fold_members(3, 4, 0), "at most as many as samples"),
    ],
)
def test_bad_grids_are_refused(call: Any, message: str) -> None:
    """Empty grids, values given twice, and numbers of passes and folds that make no search are errors."""
    with pytest.raises(ParameterError, match=message):
        call()


def test_folds_are_a_partition() -> None:
    """Every sample is held out once, by folds of about one size, which the seed decides."""
    folds = fold_members(11, 3, 0)
    assert sorted(number for fold in folds for number in fold.tolist()) == list(range(11))
    assert sorted(map(len, folds)) == [3, 4, 4]
    assert [fold.tolist() for fold in fold_members(11, 3, 1)] != [fold.tolist() for fold in folds]
