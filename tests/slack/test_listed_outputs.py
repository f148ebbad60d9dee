"""Searches that look at outputs one by one: all of them where there are few, the k best where the oracle lists them."""

from typing import Any

import numpy as np
import pytest
from slack_cases import CONSTRAINED, DIRECT, chains, costs, hinges, outputs_of, parts_task, sloppy, without

from structpred.core.costs import PartCosts
from structpred.errors import MissingCapabilityError, OracleError
from structpred.features.parts import PartFeatures
from structpred.objectives.margin import MarginRescaling
from structpred.objectives.part_losses import Hamming
from structpred.oracles.assignment import AssignmentOracle
from structpred.oracles.projective import ProjectiveOracle
from structpred.oracles.semimarkov import SemiMarkovOracle
from structpred.slack import task_problem
from structpred.slack.search import search
from structpred.slack.surrogate import SlackRescaling
from structpred.slack.task_problem import TaskProblem, listings
from structpred.task.task import Task
from structpred.trainers.bcfw import BCFW
from structpred.trainers.loop import RunSettings, train
from structpred.trainers.one_slack import OneSlackCuttingPlane
from structpred.trainers.problem import Problem


class Lists(AssignmentOracle):
    """Matchings whose `enumerate` counts its calls and refuses shapes that are too large to list."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def enumerate(self, shape: Any) -> Any:
        self.asked.append(shape)
        assert shape[0] <= 5, "10! outputs do not fit into memory"
        return list(super().enumerate(shape))


def test_small_shapes_are_listed_once_and_large_ones_never() -> None:
    """`enumerate` is asked once for each shape that is no larger than an example shape, and never for a larger one."""
    oracle, rng = Lists(), np.random.default_rng(0)
    shapes = [(3,), (10,), (4,), (3,)]
    rows = [rng.normal(size=(n * n, 3)) for (n,) in shapes]
    task = Task(PartFeatures(rows), oracle, [oracle.argmax(rng.normal(size=n * n), (n,)) for (n,) in shapes], shapes, Hamming())
    oracle.asked.clear()
    for _ in range(3):
        found = [search(TaskProblem(task, rng.normal(size=3), i)) for i in range(4)]
    assert sorted(oracle.asked) == [(3,), (4,)]
    assert [one.method for one in found] == ["direct", "hull", "direct", "direct"]
    assert [one.exact for one in found if one.method == "direct"] == [True] * 3


def test_what_is_listed_does_not_depend_on_what_is_asked_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where not all shapes fit, those of the first samples are listed, so that a resumed run searches as the first one did."""
    monkeypatch.setattr(task_problem, "MAX_ENTRIES", 100)
    shapes = [(2,), (3,), (4,)]
    for first in range(3):
        oracle = AssignmentOracle()
        rows = [np.ones((n * n, 1)) for (n,) in shapes]
        task = Task(PartFeatures(rows), oracle, [np.arange(n) for (n,) in shapes], shapes, Hamming())
        TaskProblem(task, np.zeros(1), first)
        assert set(listings(task)) == {(2,), (3,)}  # 2 * 4 + 6 * 6 numbers; 24 * 8 more are too many


def test_too_many_outputs_are_not_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A shape with more outputs than the limit is searched in another way."""
    monkeypatch.setattr(task_problem, "MAX_OUTPUTS", 23)
    assert search(TaskProblem(parts_task(0, AssignmentOracle(), (4,)), np.zeros(4), 0)).method == "hull"
    assert search(TaskProblem(parts_task(0, AssignmentOracle(), (3,)), np.zeros(4), 0)).method == "direct"


def test_an_enumerate_that_fails_names_the_sample() -> None:
    """What `enumerate` raises is an OracleError with the sample and the method."""
    task = parts_task(0, AssignmentOracle(), (3,))
    task.oracle.enumerate = lambda shape: 1 / 0  # type: ignore[attr-defined]
    with pytest.raises(OracleError, match=r"sample 0: AssignmentOracle\.enumerate raised ZeroDivisionError"):
        TaskProblem(task, np.zeros(4), 0)


FAULTS = {
    "scores above the one before": lambda found: found[::-1],
    "below the true one, which is missing": lambda found: found[5:],
    "kbest raised IndexError": lambda found: found[1000],
}


@pytest.mark.parametrize("fault", FAULTS)
def test_lists_that_cannot_be_the_best_are_refused(fault: str) -> None:
    """A kbest that is not ordered, leaves out the truth, or fails is an OracleError with the sample: no proof rests on it."""
    task = parts_task(0, without(AssignmentOracle(), *DIRECT, *CONSTRAINED), (4,))
    oracle: Any = task.oracle
    w = sum(task.difference(3, y).dense(4) for y in outputs_of(oracle, (4,)))  # the true output of sample 3 scores high
    kbest = oracle.kbest
    assert TaskProblem(task, w, 3).kbest(1e-3, 8)
    oracle.kbest = lambda scores, shape, k: FAULTS[fault](kbest(scores, shape, k))
    with pytest.raises(OracleError, match=f"sample 3: .*{fault}"):
        TaskProblem(task, w, 3).kbest(1e-3, 8)


@pytest.mark.mostly_slow
@pytest.mark.parametrize("size", [0.1, 1.0, 5.0])
def test_all_outputs_or_the_k_best_give_the_maximum(size: float) -> None:
    """At random scores and losses: exact by listing; lists of 8 to 64 give a bound that holds and, on these, the maximum."""
    makers = {
        "listed": lambda seed: parts_task(seed, AssignmentOracle(), (4,), loss=Uneven(seed)),
        "matchings": lambda seed: parts_task(seed, without(AssignmentOracle(), *DIRECT, *CONSTRAINED), (5,), loss=Uneven(seed)),
        "chains": lambda seed: chains(seed, n_labels=3, longest=5, loss=costs(3)),
        "projective": lambda seed: parts_task(seed, ProjectiveOracle(), (4,), loss=Uneven(seed)),
        "segments": lambda seed: parts_task(seed, SemiMarkovOracle(), (5, 2, 3), loss=Uneven(seed)),
    }
    for name, make in makers.items():
        for seed in range(2):
            task = make(seed)
            w = size * np.random.default_rng(seed).normal(size=task.dim)
            for i, top in enumerate(hinges(task, w)):
                for method in ("auto",) if name == "listed" else ("kbest", "auto"):
                    result = search(TaskProblem(task, w, i), method)
                    assert result.upper_bound >= top * (1 - 1e-9), name
                    assert result.phi == pytest.approx(top, rel=1e-9, abs=1e-12), name
                    assert result.exact, name


class Uneven:
    """A part loss whose costs are no whole numbers: 0.3 to 1 a wrong part, by the seed."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def costs(self, labels: Any, shape: Any, oracle: Any) -> PartCosts:
        """A part of the truth saves its cost, any other adds it."""
        ell = np.random.default_rng(self.seed).uniform(0.3, 1.0, oracle.n_parts(shape))
        on = oracle.parts(labels, shape)
        ell[on] *= -1.0
        return PartCosts(-float(ell[on].sum()), ell)


def test_forbidden_outputs_are_never_the_best_of_a_listing() -> None:
    """Parts with a score of -1e30 stay out of what is listed, and of the lists of the k best."""
    for oracle in (AssignmentOracle(), without(AssignmentOracle(), *DIRECT, *CONSTRAINED)):
        task = parts_task(4, oracle, (4,))
        fixed = np.zeros(16)
        barred = next(p for p in range(16) if p not in set(task.parts[0].tolist()))
        fixed[barred] = -1e30
        task.features.fixed_scores = lambda i, fixed=fixed: fixed  # type: ignore[attr-defined]
        result = search(TaskProblem(task, np.zeros(4), 0))
        assert result.phi > 0
        assert barred not in task.oracle.parts(result.label, (4,))


def test_lists_of_an_inexact_oracle_prove_nothing() -> None:
    """Where argmax may miss the maximum, kbest is not believed: no proof rests on it, and asking for it says why."""
    task = parts_task(0, sloppy(AssignmentOracle(), False), (4,))
    result = search(TaskProblem(task, np.ones(4), 0))
    assert (result.method, result.exact, result.upper_bound) == ("hull", False, np.inf)
    with pytest.raises(MissingCapabilityError, match="whose kbest serves only where argmax is exact"):
        search(TaskProblem(task, np.ones(4), 0), "kbest")


def learnable(missing: tuple[str, ...]) -> Task:
    """Eight matchings that a linear model nearly explains, by an oracle without some methods."""
    oracle, rng = without(AssignmentOracle(), *missing), np.random.default_rng(1)
    rows, w = [rng.normal(size=(16, 4)) for _ in range(8)], rng.normal(size=4)
    labels = [oracle.argmax(x @ w + 0.2 * rng.normal(size=16), (4,)) for x in rows]
    return Task(PartFeatures(rows), oracle, labels, [(4,)] * 8, Uneven(0))


def test_the_gap_of_plain_queries_closes() -> None:
    """Plain queries leave a tenth of the primal open and training says so; the k best, or all outputs, less than 0.1 %."""
    plain, lists, listed = (*CONSTRAINED, *DIRECT, "kbest"), (*CONSTRAINED, *DIRECT), (*CONSTRAINED, *DIRECT[:2])
    settings, trainer = RunSettings(max_iter=40, tol=1e-3, check_every=5), OneSlackCuttingPlane()
    runs = [train(Problem(learnable(m), SlackRescaling(), 0.1), trainer, settings) for m in (plain, lists, listed)]
    assert all(run.certificate.proven for run in runs)
    assert [run.stop_reason for run in runs] == ["search_bound", "tol", "tol"]
    left = [run.certificate.relative_gap or 0.0 for run in runs]
    assert left[0] > 0.1
    assert max(left[1:]) <= 1e-3


def test_the_reason_to_stop_is_the_search_only_where_most_of_the_gap_is_its() -> None:
    """One pass leaves a gap that training would close: "max_iter". Exact searches, other surrogates: never "search_bound"."""
    plain = (*CONSTRAINED, *DIRECT, "kbest")
    short = train(Problem(learnable(plain), SlackRescaling(), 0.01), BCFW(), RunSettings(max_iter=1))
    left = short.certificate.gap
    assert short.stop_reason == "max_iter"
    assert left is not None
    assert 0.0 < SlackRescaling().unsettled(learnable(plain), short.weights).mean() < 0.5 * left
    assert not SlackRescaling().unsettled(learnable(CONSTRAINED), short.weights).any()
    margin = train(Problem(learnable(plain), MarginRescaling(), 0.1), BCFW(), RunSettings(max_iter=2))
    assert margin.stop_reason == "max_iter"
