"""The solvers of problems that are not convex, on random partitions of a data set, with the same settings and budget."""

import json
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from structpred.errors import DataError
from structpred.experiments.pdm_data import Partition, Points, coil, g50c, partition, two_moons, two_spirals, uspst
from structpred.models import SemiSupervisedSVM
from structpred.models.kernels.functions import RBF
from structpred.nonconvex.alternating import AlternatingOptimisation
from structpred.nonconvex.annealing import Annealing
from structpred.nonconvex.branch_and_bound import BranchAndBound
from structpred.nonconvex.cccp import CCCP
from structpred.nonconvex.gradient import GradientDescent
from structpred.nonconvex.local_search import LocalSearch
from structpred.nonconvex.pdm import PDM
from structpred.nonconvex.printed_pdm import PrintedPDM
from structpred.nonconvex.staged import StagedSearch
from structpred.storage.atomic import write_atomic

log = logging.getLogger("structpred.experiments")

#: weights of labelled and of unlabelled points, and the paper's grid of sigma^2
C1, C2 = 100.0, 1.0
SIGMAS = (8.0, 4.0, 2.0, 1.0, 0.5, 0.25, 0.125)
DEFAULT = "staged"
#: solver -> (how it is made for a budget of inner problems, its column in the paper's tables)
SOLVERS: Mapping[str, tuple[Callable[[int], Any], str | None]] = {
    "gradient": (lambda most: GradientDescent(most), "GD"),
    "cccp": (lambda most: CCCP(most), "CCCP"),
    "ao": (lambda most: AlternatingOptimisation(most), "AO"),
    "local_search": (lambda most: LocalSearch(most), "LCS"),
    "annealing": (lambda most: Annealing(most), "IA"),
    "branch_and_bound": (lambda most: BranchAndBound(most), "BB"),
    "printed_pdm 0.1": (lambda most: PrintedPDM(most, degree=0.1), "PDM1"),
    "printed_pdm 0.2": (lambda most: PrintedPDM(most, degree=0.2), "PDM2"),
    "pdm 0.1": (lambda most: PDM(degree=0.1, max_inner=most), "PDM1"),
    "pdm 0.2": (lambda most: PDM(degree=0.2, max_inner=most), "PDM2"),
    DEFAULT: (lambda most: StagedSearch(most), None),
}


@dataclass(frozen=True)
class Task:
    """A data set as it is trained on. paper: its name in the paper; per_class: labelled points of each class.

    points: makes it, from the folder of data sets and the number of points, which is that of the simulators.
    """

    name: str
    title: str
    paper: str
    per_class: int
    points: Callable[[Path, int], Points]


TASKS = {
    task.name: task
    for task in (
        Task("moons", "two moons", "D1", 1, lambda _, n: two_moons(min(n, 200))),
        Task("coil", "three objects of COIL-20", "D2", 2, lambda folder, _: coil(folder)),
        Task("g50c", "g50c in place of robot", "D3", 25, lambda folder, _: g50c(folder)),
        Task("spiral", "two spirals", "D4", 2, lambda _, n: two_spirals(n)),
        Task("uspst", "uspst, digits 0 to 3, in place of robot", "D3", 10, lambda folder, _: uspst(folder)),
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
    """All solvers on all partitions of a task. points, trained, labelled: how many; outcomes: a list for each partition."""

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
        points = Points(points.X[some], points.y[some])
    parts = [partition(points.y, task.per_class, seed) for seed in range(plan.repeats)]
    budget = plan.budget
    sigma2 = _once(kept, f"{task.name}-sigma2", partial(chosen_sigma, points, parts, budget))
    found = []
    for k, part in enumerate(parts):
        rows = _once(kept, f"{task.name}-{k}", partial(outcomes, points, part, sigma2, budget, k))
        found.append([Outcome(**row) for row in rows])
    return Runs(len(points.y), len(parts[0].train), int(parts[0].labelled.sum()), sigma2, found)


def chosen_sigma(points: Points, parts: Sequence[Partition], budget: int) -> float:
    """The sigma^2 with which the default solver, on a tenth of the budget, errs least on validation rows; ties: the largest."""
    solver = SOLVERS[DEFAULT][0](max(1, budget // 10))
    errors = [
        sum(wrong(fitted(points, part, sigma2, solver, k), points, part.validation) for k, part in enumerate(parts))
        for sigma2 in SIGMAS
    ]
    return SIGMAS[int(np.argmin(errors))]


def outcomes(points: Points, part: Partition, sigma2: float, budget: int, seed: int) -> list[dict[str, Any]]:
    """All solvers on one partition."""
    log.info("partition %d", seed)
    found = []
    for name, (make, _) in SOLVERS.items():
        start = time.process_time()
        model = fitted(points, part, sigma2, make(budget), seed)
        seconds = time.process_time() - start
        error = wrong(model, points, part.test)
        found.append(asdict(Outcome(name, model.objective_, error, seconds, model.level_, model.n_inner_)))
    return found


def fitted(points: Points, part: Partition, sigma2: float, solver: Any, seed: int) -> SemiSupervisedSVM:
    """The model trained on a partition; the balance is that of its unlabelled points."""
    truth = points.y[part.train]
    y, hidden = np.where(part.labelled, truth, -1), truth[~part.labelled]
    shares = {int(k): float((hidden == k).mean()) for k in np.unique(truth)}
    model = SemiSupervisedSVM(RBF(0.5 / sigma2), C1, C2, balance=shares, solver=solver, random_state=seed)
    return model.fit(points.X[part.train], y)


def wrong(model: SemiSupervisedSVM, points: Points, rows: Any) -> float:
    """The share of rows that get a wrong class."""
    return float((model.predict(points.X[rows]) != points.y[rows]).mean())


def compiled() -> None:
    """Train once on a few points, so that no solver's seconds hold the compilation of kernels."""
    points = two_moons(20)
    for make, _ in SOLVERS.values():
        fitted(points, partition(points.y, 1, 0), 0.5, make(10), 0)


def output_folder(folder: Path, plan: Plan) -> Path:
    """The folder that keeps the figures of this plan; DataError where it keeps those of another one."""
    folder.mkdir(parents=True, exist_ok=True)
    path, settings = folder / "settings.json", asdict(plan)
    if path.exists() and (there := json.loads(path.read_text())) != settings:
        raise DataError(f"{folder}: expected a run with {settings}, it holds one with {there}; give another --output")
    write_atomic(path, json.dumps(settings).encode())
    return folder


def _once(kept: Path | None, name: str, compute: Callable[[], Any]) -> Any:
    """What the folder has under this name, else what is computed, which is then kept."""
    path = None if kept is None else kept / f"{name}.json"
    if path is not None and path.exists():
        return json.loads(path.read_text())
    found = compute()
    if path is not None:
        write_atomic(path, json.dumps(found).encode())
    return found
