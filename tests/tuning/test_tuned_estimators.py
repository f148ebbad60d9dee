"""Successive halving over the settings of estimators."""

import logging
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from structpred.errors import CheckpointError, ParameterError
from structpred.io.multilabel.data import MultiLabelData
from structpred.models import ChainLabeler, MultiLabelMRF
from structpred.tuning import tune
from structpred.tuning.halving import fold_members


def noisy_chains(n: int, seed: int) -> tuple[list[Any], list[Any]]:
    """Sequences whose labels are a noisy function of their features."""
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(5, 3)) for _ in range(n)]
    return X, [np.where(x[:, 0] + 0.5 * x[:, 1] + 0.7 * rng.normal(size=5) > 0, "up", "down").tolist() for x in X]


GRID = {"C": [0.001, 0.1, 10.0], "trainer": ["sgd", "bcfw"]}


def test_a_score_is_that_of_a_straight_fit() -> None:
    """However often a setting was continued, its scores are those of one fit with dev of as many passes, to the last bit."""
    (X, y), dev = noisy_chains(30, 0), noisy_chains(30, 1)
    found = tune(ChainLabeler(max_iter=9, random_state=3), GRID, X, y, dev=dev)
    assert [trial.passes for trial in found.ranked] == [9, 3, 1, 1, 1, 1]
    for trial in found.trials:
        model = ChainLabeler(max_iter=trial.passes, random_state=3).set_params(**trial.setting).fit(X, y, dev=dev)
        assert trial.scores == [row["dev_score"] for row in model.history_ if row["dev_score"] is not None]


def test_what_is_shown_makes_no_other_search(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search is silent whatever the estimator shows, and a folder is continued with verbose=1."""
    monkeypatch.setattr(logging.getLogger("structpred"), "handlers", [])  # commands that ran before may have left one
    (X, y), dev = noisy_chains(10, 0), noisy_chains(10, 1)
    models = (ChainLabeler("sgd", max_iter=2, verbose=verbose) for verbose in (0, 1))
    first, second = (tune(model, {"C": [0.1, 1.0]}, X, y, dev=dev, folder=tmp_path / "state") for model in models)
    assert [trial.scores for trial in first.trials] == [trial.scores for trial in second.trials]
    assert capfd.readouterr().err == ""


def test_folds_of_any_input() -> None:
    """With folds a score is the mean over them: of sequences in lists, and of data that hold their labels."""
    X, y = noisy_chains(20, 0)
    found = tune(ChainLabeler("sgd", max_iter=3), {"C": [0.01, 1.0]}, X, y, cv=2)
    scores = []
    for out in fold_members(20, 2, 0):
        kept = np.setdiff1d(np.arange(20), out)
        parts = [([X[i] for i in part], [y[i] for i in part]) for part in (kept, out)]
        model = ChainLabeler("sgd", C=found.best.setting["C"], max_iter=3).fit(*parts[0], dev=parts[1])
        scores.append([row["dev_score"] for row in model.history_ if row["dev_score"] is not None])
    assert found.best.scores == [math.fsum(pair) / 2 for pair in zip(*scores, strict=True)]
    rows = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [0.5, 0.0]])
    data = MultiLabelData(rows, (rows > 0.4).astype(np.uint8), ["p", "q"], ["f", "g"])
    packed = tune(MultiLabelMRF(max_iter=3), {"C": [0.1, 1.0]}, data, cv=2)
    assert packed.best.scores == tune(MultiLabelMRF(max_iter=3), {"C": [0.1, 1.0]}, data.X, data.Y, cv=2).best.scores


def test_a_folder_belongs_to_its_data(tmp_path: Path) -> None:
    """The same call continues in a folder; one with other data is refused."""
    (X, y), dev = noisy_chains(8, 0), noisy_chains(8, 1)
    first = tune(ChainLabeler("sgd", max_iter=3), {"C": [0.1, 1.0]}, X, y, dev=dev, folder=tmp_path / "run")
    again = tune(ChainLabeler("sgd", max_iter=3), {"C": [0.1, 1.0]}, X, y, dev=dev, folder=tmp_path / "run")
    assert again == first  # the seconds, too: nothing was trained
    with pytest.raises(CheckpointError, match="holds another search"):
        tune(ChainLabeler("sgd", max_iter=3), {"C": [0.1, 1.0]}, X, y, dev=(X, y), folder=tmp_path / "run")


@pytest.mark.slow
def test_the_number_of_processes_has_no_part_in_the_result(tmp_path: Path) -> None:
    """Two processes find what one finds; what goes wrong in one of them is raised here."""
    (X, y), dev = noisy_chains(20, 0), noisy_chains(20, 1)
    one, two = (tune(ChainLabeler(max_iter=9), GRID, X, y, dev=dev, n_jobs=n) for n in (1, 2))
    assert [(t.setting, t.scores, t.passes) for t in one.trials] == [(t.setting, t.scores, t.passes) for t in two.trials]
    with pytest.raises(ParameterError, match="did you mean 'sgd'"):
        tune(ChainLabeler(), {"trainer": ["sgdd", "sgd"]}, X, y, dev=dev, n_jobs=2)


@pytest.mark.parametrize(
    ("grid", "more", "message"),
    [
        ({}, {"cv": 2}, "the grid is empty"),
        ({"c": [1]}, {"cv": 2}, "c: not a setting of ChainLabeler that can vary; known settings: C, "),
        ({"max_iter": [1, 2]}, {"cv": 2}, "max_iter: .* the search sets it"),
        ({"C": [0.1, -1]}, {"cv": 2}, "C must be a positive number, got -1"),
        ({"C": [0.1]}, {}, "expected either held-out data"),
        ({"C": [0.1]}, {"cv": 2, "dev": ([], [])}, "expected either held-out data"),
        ({"C": [0.1]}, {"cv": 1}, "expected 2 folds or more"),
        ({"C": [0.1]}, {"cv": 2, "n_jobs": 0}, "n_jobs must be a number >= 1"),
    ],
)
def test_bad_calls_are_refused(grid: Any, more: dict[str, Any], message: str) -> None:
    """Before anything is trained, an error names the argument."""
    X, y = noisy_chains(4, 0)
    with pytest.raises(ParameterError, match=message):
        tune(ChainLabeler(), grid, X, y, **more)


@pytest.mark.filterwarnings("ignore:overflow encountered")
def test_large_C_does_not_end_the_search() -> None:
    """A C that makes the weights infinite fails alone."""
    X, y = noisy_chains(6, 0)
    found = tune(ChainLabeler("sgd", max_iter=2), {"C": [1e300, 0.1]}, [1e30 * x for x in X], y, dev=(X, y))
    assert found.best.setting == {"C": 0.1}
    assert "no longer finite" in (found.trials[0].error or "")
