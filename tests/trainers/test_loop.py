"""The loop that all trainers run in: history, reasons to stop, warnings, settings."""

import logging
from typing import Any

import numpy as np
import pytest
from training_cases import TASKS, TRAINERS, chain_task, multiclass_task, problem

from structpred.errors import MissingCapabilityError, NoUpdateWarning, ParameterError, StructpredError
from structpred.features.parts import PartFeatures
from structpred.objectives.margin import MarginRescaling
from structpred.objectives.part_losses import Hamming
from structpred.oracles.multiclass import MulticlassOracle
from structpred.task.task import Task
from structpred.trainers.bcfw import BCFW
from structpred.trainers.loop import RunSettings, train
from structpred.trainers.perceptron import AveragedPerceptron
from structpred.trainers.problem import Problem
from structpred.trainers.sgd import SGD

KEYS = ["passes", "seconds", "cpu_seconds", "oracle_calls", "primal", "dual", "gap", "dev_score"]


@pytest.mark.mostly_slow
@pytest.mark.parametrize("trainer", TRAINERS)
@pytest.mark.parametrize("task", TASKS)
def test_history_has_a_row_a_pass(trainer: str, task: str) -> None:
    """One row per pass with all keys; counts and times never fall; bounds stand where they were asked for, and fit."""
    made = TASKS[task]()
    result = train(problem(made), TRAINERS[trainer](), RunSettings(max_iter=7, check_every=3))
    rows = result.history
    assert [row["passes"] for row in rows] == [1, 2, 3, 4, 5, 6, 7]
    assert [list(row) for row in rows] == [KEYS] * 7
    assert [row["oracle_calls"] for row in rows] == [len(made) * k for k in range(1, 8)]
    for key in ("seconds", "cpu_seconds"):
        times = [row[key] for row in rows]
        assert times == sorted(times)
        assert times[0] >= 0
    checked = [row["passes"] for row in rows if row["primal"] is not None]
    assert checked == ([] if trainer == "perceptron" else [3, 6, 7])
    for row in rows:
        if row["dual"] is not None:
            assert row["gap"] == row["primal"] - row["dual"]
            assert row["gap"] >= -1e-9 * (1 + abs(row["primal"]))
    assert (result.stop_reason, result.passes) == ("max_iter", 7)


@pytest.mark.parametrize("trainer", ["sgd", "bcfw", "bcfw-gaps"])
def test_the_certificate_is_about_the_returned_weights(trainer: str) -> None:
    """certificate.primal is the objective at the weights, its dual the best one seen."""
    made = problem(chain_task())
    result = train(made, TRAINERS[trainer](), RunSettings(max_iter=9, check_every=2))
    assert result.certificate.primal == made.primal(result.weights)
    assert result.certificate.dual == max(row["dual"] for row in result.history if row["dual"] is not None)
    assert result.certificate.proven


@pytest.mark.parametrize(("share", "reason"), [(0.45, "max_iter"), (0.55, "search_bound")])
def test_searches_are_the_reason_where_more_than_half_of_the_gap_is_theirs(share: float, reason: str) -> None:
    """A run that still moves is said to end at its searches only where they leave more than half of the gap."""
    made = problem(chain_task())
    gap = train(made, BCFW(), RunSettings(max_iter=3)).certificate.gap

    class Unsettled(MarginRescaling):
        def unsettled(self, task: Any, w: Any) -> Any:
            return np.full(len(task), share * gap)

    found = train(Problem(made.task, Unsettled(), made.lam), BCFW(), RunSettings(max_iter=3))
    assert (found.certificate.gap, found.stop_reason) == (gap, reason)


@pytest.mark.parametrize("tol", [0.1, 0.01])
def test_tolerance_stops(tol: float) -> None:
    """The run ends when the gap is at most tol times the primal, and no pass earlier than the history allows."""
    result = train(problem(chain_task()), BCFW(), RunSettings(max_iter=5000, tol=tol, check_every=1))
    small = [row["gap"] <= tol * row["primal"] for row in result.history]
    assert result.stop_reason == "tol"
    assert small == [False] * (len(small) - 1) + [True]
    assert result.passes == len(small) < 5000


def test_no_tolerance_never_stops_early() -> None:
    """tol = 0 means all passes, even where the gap is zero from the start."""
    made = multiclass_task(n=1, n_labels=1)
    with pytest.warns(NoUpdateWarning):
        result = train(problem(made), BCFW(), RunSettings(max_iter=6, check_every=1))
    assert (result.stop_reason, result.passes) == ("max_iter", 6)


@pytest.mark.parametrize("trainer", TRAINERS)
def test_held_out_data_stop_and_choose(trainer: str) -> None:
    """The weights of the best pass come back, with the primal of those weights; patience counts passes without a better score."""
    scores = iter([0.1, 0.5, 0.3, 0.4, 0.5, 0.2, 0.9])
    tried: list[np.ndarray] = []

    def dev(w: Any) -> float:
        tried.append(w.copy())
        return next(scores)

    made = problem(chain_task())
    result = train(made, TRAINERS[trainer](), RunSettings(max_iter=7, check_every=1, dev=dev, patience=3))
    assert (result.stop_reason, result.passes) == ("dev", 5)
    assert [row["dev_score"] for row in result.history] == [0.1, 0.5, 0.3, 0.4, 0.5]
    assert result.weights.tobytes() == tried[1].tobytes()
    if trainer != "perceptron":
        assert result.certificate.primal == pytest.approx(
            made.primal(tried[1]), rel=1e-14
        )  # cutting planes add up in their own order
    if trainer not in ("perceptron", "mira"):  # which have no dual value
        assert result.certificate.gap >= -1e-9


def test_without_patience_all_passes_are_made() -> None:
    """dev alone chooses weights but stops nothing."""
    scores = iter([5.0, 4.0, 3.0, 2.0])
    result = train(problem(chain_task()), SGD(), RunSettings(max_iter=4, dev=lambda w: next(scores)))
    assert (result.stop_reason, result.passes) == ("max_iter", 4)
    first = train(problem(chain_task()), SGD(), RunSettings(max_iter=1))
    assert result.weights.tobytes() == first.weights.tobytes()


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), None, "1"])
def test_a_held_out_score_must_be_a_number(bad: Any) -> None:
    """NaN, infinity and things that are no numbers are refused after the first pass."""
    with pytest.raises(ParameterError, match="finite number"):
        train(problem(chain_task()), SGD(), RunSettings(max_iter=4, dev=lambda w: bad))


@pytest.mark.parametrize("trainer", TRAINERS)
def test_callbacks_stop(trainer: str) -> None:
    """A callback that returns True stops after its pass; all callbacks are called; the end is certified all the same."""
    seen: list[int] = []
    callbacks = (lambda row: row["passes"] >= 2, lambda row: seen.append(row["passes"]))
    result = train(problem(chain_task()), TRAINERS[trainer](), RunSettings(max_iter=9, callbacks=callbacks))
    assert (result.stop_reason, result.passes, seen) == ("callback", 2, [1, 2])
    assert (result.certificate.primal is None) == (trainer == "perceptron")
    assert [row["passes"] for row in result.history] == [1, 2]


def test_callbacks_cannot_change_the_history() -> None:
    """A callback gets a copy of the row."""
    result = train(problem(chain_task()), SGD(), RunSettings(max_iter=2, callbacks=(lambda row: row.clear(),)))
    assert [row["passes"] for row in result.history] == [1, 2]


class AlwaysFirst(MulticlassOracle):
    """Returns label 0 whatever the scores are, and so the truth of samples whose label is 0."""

    argmax_batch = None
    enumerate = None

    def argmax(self, scores: Any, shape: Any) -> Any:
        return np.zeros(1, np.int64)


def always_right() -> Task:
    """A task on which every answer is the truth."""
    rows = [np.random.default_rng(i).normal(size=(3, 2)) for i in range(5)]
    return Task(PartFeatures(rows), AlwaysFirst(), [[0]] * 5, [(3,)] * 5, Hamming())


@pytest.mark.parametrize("trainer", TRAINERS)
def test_a_first_pass_without_an_update_warns(trainer: str) -> None:
    """Each trainer warns, once, when a whole first pass changes nothing; the warning says what may be wrong."""
    with pytest.warns(NoUpdateWarning, match="changed nothing.*check_oracle") as caught:
        train(problem(always_right()), TRAINERS[trainer](), RunSettings(max_iter=3))
    assert len(caught) == 1


@pytest.mark.parametrize("trainer", TRAINERS)
def test_features_that_are_all_zero_warn(trainer: str) -> None:
    """Nothing can be learnt from features that are all zero, and each trainer says so."""
    task = Task(PartFeatures([np.zeros((3, 2))] * 5), MulticlassOracle(), [[1]] * 5, [(3,)] * 5, Hamming())
    with pytest.warns(NoUpdateWarning, match="features or losses are all zero"):
        train(problem(task), TRAINERS[trainer](), RunSettings(max_iter=1))


@pytest.mark.parametrize("trainer", TRAINERS)
@pytest.mark.parametrize("task", TASKS)
def test_no_warning_where_something_is_learnt(trainer: str, task: str) -> None:
    """Ordinary runs warn of nothing (structpred's warnings are errors in these tests)."""
    train(problem(TASKS[task]()), TRAINERS[trainer](), RunSettings(max_iter=2))


class NeedsMore(AveragedPerceptron):
    """A trainer that wants what no oracle here has."""

    requires = ("argmax", ("polytope", "argmax_relaxed"))

    def init_state(self, problem: Any) -> Any:
        raise AssertionError("no work may be done before the needs are checked")


def test_missing_capabilities_are_named_before_any_work() -> None:
    """The error says who needs what, what the oracle has, and in which file to add it; nothing is trained before."""
    with pytest.raises(MissingCapabilityError) as caught:
        train(problem(multiclass_task()), NeedsMore())
    text = str(caught.value)
    assert "trainer NeedsMore needs polytope or argmax_relaxed, which MulticlassOracle does not have" in text
    assert "enumerate, kbest, label_grid, marginals, marginals_batch, parts_batch, project" in text
    assert "multiclass.py" in text
    assert isinstance(caught.value, TypeError)
    assert isinstance(caught.value, StructpredError)


@pytest.mark.parametrize(
    "settings",
    [
        {"max_iter": 0},
        {"max_iter": 1.5},
        {"max_iter": True},
        {"check_every": 0},
        {"patience": 0},
        {"tol": -1e-9},
        {"tol": float("nan")},
        {"checkpoint_seconds": -1},
        {"resume": True},
    ],
    ids=str,
)
def test_settings_are_checked(settings: dict[str, Any]) -> None:
    """A setting out of range is a ParameterError that names it and what came."""
    name, value = next(iter(settings.items()))
    with pytest.raises(ParameterError, match=f"{name}.*" if name == "resume" else f"{name} must be .*{value}"):
        RunSettings(**settings)


def test_each_pass_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """The logger structpred.trainers tells of each pass at level INFO; nothing is printed."""
    with caplog.at_level(logging.INFO, logger="structpred.trainers"):
        train(problem(chain_task()), SGD(), RunSettings(max_iter=3))
    assert [record.getMessage().split(":")[0] for record in caplog.records] == ["pass 1", "pass 2", "pass 3"]


def test_nothing_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    """A run writes nothing at all unless it is told to."""
    train(problem(chain_task()), BCFW(), RunSettings(max_iter=3))
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("trainer", [name for name in TRAINERS if not name.endswith("-slack")])  # planes: there is no order
def test_the_seed_decides_the_order(trainer: str) -> None:
    """The same seed gives the same weights, another seed others; what else draws random numbers has no influence."""
    weights = []
    for seed in (0, 0, 1):
        np.random.seed(len(weights))  # noqa: NPY002 - the global state is what must not matter
        weights.append(train(problem(chain_task()), TRAINERS[trainer](), RunSettings(max_iter=3, seed=seed)).weights.tobytes())
    assert weights[0] == weights[1] != weights[2]


def test_an_infinite_goal_is_refused() -> None:
    """tol=inf would call any weights converged; checkpoints may be infinitely far apart."""
    with pytest.raises(ParameterError, match=r"tol must be finite and >= 0, got inf"):
        RunSettings(tol=np.inf)
    assert RunSettings(checkpoint_seconds=np.inf).checkpoint_seconds == np.inf
