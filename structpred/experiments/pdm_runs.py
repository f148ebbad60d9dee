"""The solvers of problems that are not convex, on random partitions of a data set, with the same settings and budget."""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from structpred.experiments.experiment import once
from structpred.experiments.pdm_data import (
    Partition,
    Points,
    coil,
    g50c,
    partition,
    two_moons,
    two_spirals,
    uspst,
    vowel,
    waveforms,
)
from structpred.experiments.pdm_learners import GROUPED, MANY, SIGMAS, UNLABELLED, Learner

log = logging.getLogger("structpred.experiments")

#: the budget that sigma^2 is chosen with where few rows choose it for many
CHOOSING = 10_000


@dataclass(frozen=True)
class Task:
    """A data set as it is trained on. paper: its name in the paper; per_class: labelled points of each class.

    points: makes it, from the folder of data sets and the number of points of simulators. learner: what is trained.
    """

    name: str
    title: str
    paper: str
    per_class: int
    points: Callable[[Path, int], Points]
    learner: Learner = UNLABELLED


TASKS = {
    task.name: task
    for task in (
        Task("moons", "two moons", "D1", 1, lambda _, n: two_moons(min(n, 200))),
        Task("coil", "three objects of COIL-20", "D2", 2, lambda folder, _: coil(folder)),
        Task("g50c", "g50c in place of robot", "D3", 25, lambda folder, _: g50c(folder)),
        Task("spiral", "two spirals", "D4", 2, lambda _, n: two_spirals(n)),
        Task("uspst", "uspst, digits 0 to 3, in place of robot", "D3", 10, lambda folder, _: uspst(folder)),
        Task("vowel", "vowel, classes in two groups", "D5", 1, lambda folder, _: vowel(folder), GROUPED),
        Task("wave", "waveforms, classes in two groups", "D8", 1, lambda _, n: waveforms(n), GROUPED),
    )
}


@dataclass(frozen=True)
class Plan:
    """How much is run.

    budget: inner problems of two classes, or of each class of more; points: of the simulators; most: rows of a data set, or all.
    """

    repeats: int
    budget: int
    points: int
    most: int | None = None


@dataclass(frozen=True)
class Outcome:
    """One solver on one partition. error: the share of wrong test rows; seconds: CPU time of fit; level: what is proven."""

    solver: str
    objective: float
    error: float
    seconds: float
    level: str
    n_inner: int


@dataclass(frozen=True)
class Runs:
    """All solvers on all partitions of a task. points, trained, labelled: how many; outcomes: a list for each partition.

    Of more than `pdm_learners.MANY` training rows the kernel is that of random features.
    """

    points: int
    trained: int
    labelled: int
    sigma2: float
    outcomes: list[list[Outcome]]


def run_task(task: Task, folder: Path, plan: Plan, kept: Path | None) -> Runs:
    """Choose sigma^2, then train with every solver on every partition; what the folder `kept` holds is not done again."""
    points = task.points(folder, plan.points)
    if plan.most is not None:
        some = np.random.default_rng(0).permutation(len(points.y))[: plan.most]
        points = replace(points, X=points.X[some], y=points.y[some])
    parts = [partition(points.y, task.per_class, seed) for seed in range(plan.repeats)]
    learner = task.learner.for_rows(len(parts[0].train))
    budget = max(2, plan.budget // learner.cost)
    sigma2 = once(kept, f"{task.name}-sigma2", partial(chosen_sigma, learner, points, parts, budget))
    found = []
    for k, part in enumerate(parts):
        rows = once(kept, f"{task.name}-{k}", partial(outcomes, learner, points, part, sigma2, budget, k))
        found.append([Outcome(**row) for row in rows])
    return Runs(len(points.y), len(parts[0].train), int(parts[0].labelled.sum()), sigma2, found)


def chosen_sigma(learner: Learner, points: Points, parts: Sequence[Partition], budget: int) -> float:
    """The sigma^2 with which the chooser, on a tenth of the budget, errs least on validation rows; ties: the largest.

    Of more than `MANY` training rows the first thousand after the labelled ones choose it, with a tenth of `CHOOSING`.
    """
    if len(parts[0].train) > MANY:
        parts, budget = [_fewer(part) for part in parts], CHOOSING
    solver = learner.solvers[learner.chooser].make(max(2, budget // 10))
    errors = [
        sum(wrong(learner.fit(points, part, sigma2, solver, k), points, part.validation) for k, part in enumerate(parts))
        for sigma2 in SIGMAS
    ]
    return SIGMAS[int(np.argmin(errors))]


def _fewer(part: Partition) -> Partition:
    """The labelled rows (a thousand at most), and a thousand others."""
    chosen = np.concatenate([np.flatnonzero(of)[:1_000] for of in (part.labelled, ~part.labelled)])
    return replace(part, train=part.train[chosen], labelled=part.labelled[chosen])


def outcomes(learner: Learner, points: Points, part: Partition, sigma2: float, budget: int, seed: int) -> list[dict[str, Any]]:
    """All solvers on one partition."""
    log.info("partition %d", seed)
    found = []
    for name, solvable in learner.solvers.items():
        start = time.process_time()
        model = learner.fit(points, part, sigma2, solvable.make(budget), seed)
        seconds = time.process_time() - start
        error = wrong(model, points, part.test)
        found.append(asdict(Outcome(name, model.objective_, error, seconds, model.level_, model.n_inner_)))
    return found


def wrong(model: Any, points: Points, rows: Any) -> float:
    """The share of rows that get a wrong class."""
    return float((model.predict(points.X[rows]) != points.y[rows]).mean())


def compiled() -> None:
    """Train once on a few points, so that no solver's seconds hold the compilation of kernels."""
    points = replace(two_moons(20), states=(1, 2))
    for learner in (UNLABELLED, GROUPED):
        for solvable in learner.solvers.values():
            learner.fit(points, partition(points.y, 1, 0), 0.5, solvable.make(10), 0)
