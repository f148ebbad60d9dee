"""Models that are trained without being told all labels, their solvers, and runs of these on random partitions of a data set."""

import logging
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from structpred.errors import StructpredWarning
from structpred.experiments import pdm_data as data
from structpred.experiments.experiment import Wanted
from structpred.experiments.pdm_data import Partition, Points, partition
from structpred.models import LatentSVM, SemiSupervisedSVM
from structpred.models.kernels.functions import RBF
from structpred.models.linear.similarities import RandomFeatures
from structpred.nonconvex.latent_search import LatentSolver
from structpred.nonconvex.search import Solver, solvers

log = logging.getLogger("structpred.experiments")

#: weights of labelled and of unlabelled points; that of points whose class has hidden parts; the paper's grid of sigma^2
C1, C2, LATENT_C = 100.0, 1.0, 10.0
SIGMAS = (8.0, 4.0, 2.0, 1.0, 0.5, 0.25, 0.125)
#: more training rows than this have random features in place of the kernel matrix; how many, also where classes are hidden
MANY, FEATURES, LATENT_FEATURES = 5_000, 1_000, 100


class Solvable(NamedTuple):
    """A solver's column in the paper's tables. thrifty: whether it needs no kernel matrix, and some tens of inner problems
    suffice for it to say something of many rows."""

    method: str | None
    thrifty: bool = False


@dataclass(frozen=True)
class Learner:
    """A kind of model. solvers: by name; parent: that of their classes. default: the default one; chooser: the one that sigma^2
    is chosen with. C: as shown. cost: an inner problem counts as this many of the budget.
    fit: points, partition, sigma^2, solver, seed -> model.
    """

    solvers: Mapping[str, Solvable]
    parent: Any
    default: str
    chooser: str
    C: float
    cost: int
    fit: Callable[[Points, Partition, float, Any, int], Any]

    def make(self, name: str, most: int) -> Any:
        """The solver for a budget of inner problems. A number after its name is the paper's m, which PDM has in rounds."""
        (word, _, degree), kinds = name.partition(" "), solvers(self.parent)
        if not degree:
            return kinds[word](max_inner=most)
        return kinds.get(f"{word}_rounds", kinds[word])(max_inner=most, degree=float(degree))

    def for_rows(self, n: int) -> "Learner":
        """The same for n training rows: of many the thrifty solvers alone, each inner problem of which counts as one."""
        if n <= MANY:
            return self
        return replace(self, solvers={name: one for name, one in self.solvers.items() if one.thrifty}, cost=1)


def kernel_of(sigma2: float, n: int, hidden: bool = False) -> Any:
    """exp(-|x - x'|^2 / (2 sigma^2)) for n training rows: of many by random features. hidden: for hidden classes."""
    return RBF(0.5 / sigma2) if n <= MANY else RandomFeatures(LATENT_FEATURES if hidden else FEATURES, gamma=0.5 / sigma2)


def semi_supervised(
    points: Points, part: Partition, sigma2: float, solver: Any, seed: int, told: str = "truth"
) -> SemiSupervisedSVM:
    """Trained with few labels; told: whose shares of classes are the balance: those of the hidden labels, the labelled, none."""
    truth = points.y[part.train]
    y, hidden = np.where(part.labelled, truth, -1), truth[~part.labelled]
    shares: Any = {int(k): float((hidden == k).mean()) for k in np.unique(truth)}
    shares = {"truth": shares, "labelled": "labelled", "none": None}[told]
    kernel = kernel_of(sigma2, len(part.train))
    model = SemiSupervisedSVM(kernel, C1, C2, balance=shares, solver=solver, random_state=seed)
    return model.fit(points.X[part.train], y)


def latent(points: Points, part: Partition, sigma2: float, solver: Any, seed: int) -> LatentSVM:
    """Trained with the groups, and with how many classes each has."""
    kernel, states = kernel_of(sigma2, len(part.train), hidden=True), dict(enumerate(points.states))
    model = LatentSVM(kernel, LATENT_C, states, solver=solver, random_state=seed)
    return model.fit(points.X[part.train], points.y[part.train])


UNLABELLED = Learner(
    {
        "gradient": Solvable("GD"), "cccp": Solvable("CCCP"), "ao": Solvable("AO", True), "local_search": Solvable("LCS", True),
        "annealing": Solvable("IA", True), "branch_and_bound": Solvable("BB"), "printed_pdm 0.1": Solvable("PDM1"),
        "printed_pdm 0.2": Solvable("PDM2"), "pdm 0.1": Solvable("PDM1"), "pdm 0.2": Solvable("PDM2"),
        "pdm": Solvable(None, True), "staged": Solvable(None, True),
    },
    Solver, "staged", "staged", C1, 1, semi_supervised,
)  # fmt: skip
#: alternating optimisation and CCCP are one algorithm here
GROUPED = Learner(
    {
        "gradient": Solvable("GD", True), "cccp": Solvable("CCCP", True), "local_search": Solvable("LCS", True),
        "annealing": Solvable(None, True), "pdm 0.1": Solvable("PDM1"), "pdm 0.2": Solvable("PDM2"), "pdm": Solvable(None, True),
    },
    LatentSolver, "pdm", "cccp", LATENT_C, 100, latent,
)  # fmt: skip


#: what else the solvers are told of the hidden labels than how many each class has, and those that are run with it
LESS_TOLD, JUDGED = ("labelled", "none"), ("pdm 0.2", "staged")
#: what a solver was told, solver, share of wrong test rows, whether the model warned that its labels make it worse
Less = tuple[str, str, float, bool]
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
        Task("moons", "two moons", "D1", 1, lambda _, n: data.two_moons(min(n, 200))),
        Task("coil", "three objects of COIL-20", "D2", 2, partial(data.first_classes, "coil20/coil20.npz", 3)),
        Task("g50c", "g50c in place of robot", "D3", 25, partial(data.first_classes, "ssl_lds/g50c.npz", 2)),
        Task("spiral", "two spirals", "D4", 2, lambda _, n: data.two_spirals(n)),
        Task("uspst", "uspst, digits 0 to 3, in place of robot", "D3", 10, partial(data.first_classes, "ssl_lds/uspst.npz", 4)),
        Task("vowel", "vowel, classes in two groups", "D5", 1, data.vowel, GROUPED),
        Task("letters", "nine letters in two groups, in place of bank", "D7", 1, data.letters, GROUPED),
        Task("wave", "waveforms, classes in two groups", "D8", 1, lambda _, n: data.waveforms(n), GROUPED),
        Task("digits", "ten digits in two groups, in place of music", "D6", 1, data.digits, GROUPED),
        Task("waveforms", "waveforms of 30 classes in two groups", "D8", 1, lambda _, n: data.waveforms(250 * n, 30), GROUPED),
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
    """One solver on one partition. error: the share of wrong test rows; seconds: CPU time of fit; level: what is proven;
    megabytes: the most memory that the process had until then.
    """

    solver: str
    objective: float
    error: float
    seconds: float
    level: str
    n_inner: int
    megabytes: float = 0.0


@dataclass(frozen=True)
class Runs:
    """All solvers on all partitions of a task. points, trained, labelled: how many; outcomes: a list for each partition.

    less_told: for each partition, by those of `JUDGED`. Of more than `MANY` training rows the kernel is that of random features.
    """

    points: int
    trained: int
    labelled: int
    sigma2: float
    outcomes: list[list[Outcome]]
    less_told: Sequence[Sequence[Less]] = ()


def run_task(task: Task, folder: Path, plan: Plan, wanted: Wanted) -> Runs:
    """Choose sigma^2, then train with every solver on every partition; what the output folder holds is not done again."""
    points = task.points(folder, plan.points).some(plan.most)
    parts = [partition(points.y, task.per_class, seed) for seed in range(plan.repeats)]
    learner = task.learner.for_rows(len(parts[0].train))
    budget = max(2, plan.budget // learner.cost)
    sigma2 = wanted.kept(f"{task.name}-sigma2", float, partial(chosen_sigma, learner, points, parts, budget))
    found, less_told = [], []
    for k, part in enumerate(parts):
        run = (learner, points, part, sigma2, budget, k)
        found.append(wanted.kept(f"{task.name}-{k}", list[Outcome], partial(outcomes, *run)))
        if task.learner is UNLABELLED:
            less_told.append(wanted.kept(f"{task.name}-{k}-less", list[Less], partial(_less, *run)))
    return Runs(len(points.y), len(parts[0].train), int(parts[0].labelled.sum()), sigma2, found, less_told)


def _less(learner: Learner, points: Points, part: Partition, sigma2: float, budget: int, k: int) -> list[Less]:
    """Errors of solvers that are told less of the hidden labels, and whether models warn of them."""
    found = []
    for told, name in product(LESS_TOLD, [one for one in JUDGED if one in learner.solvers]):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always", StructpredWarning)
            model = semi_supervised(points, part, sigma2, learner.make(name, budget), k, told)
        warned = any(issubclass(one.category, StructpredWarning) for one in said)
        found.append((told, name, wrong(model, points, part.test), warned))
    return found


def chosen_sigma(learner: Learner, points: Points, parts: Sequence[Partition], budget: int) -> float:
    """The sigma^2 with which the chooser, on a tenth of the budget, errs least on validation rows; ties: the largest.

    Of more than `MANY` training rows the first thousand after the labelled ones choose it, with a tenth of `CHOOSING`.
    """
    if len(parts[0].train) > MANY:
        parts, budget = [_fewer(part) for part in parts], CHOOSING
    solver = learner.make(learner.chooser, max(2, budget // 10))
    errors = [
        sum(wrong(learner.fit(points, part, sigma2, solver, k), points, part.validation) for k, part in enumerate(parts))
        for sigma2 in SIGMAS
    ]
    return SIGMAS[int(np.argmin(errors))]


def _fewer(part: Partition) -> Partition:
    """The labelled rows (a thousand at most), and a thousand others."""
    chosen = np.concatenate([np.flatnonzero(of)[:1_000] for of in (part.labelled, ~part.labelled)])
    return replace(part, train=part.train[chosen], labelled=part.labelled[chosen])


def outcomes(learner: Learner, points: Points, part: Partition, sigma2: float, budget: int, seed: int) -> list[Outcome]:
    """All solvers on one partition."""
    import resource  # Windows has none

    log.info("partition %d", seed)
    found = []
    for name in learner.solvers:
        start = time.process_time()
        model = learner.fit(points, part, sigma2, learner.make(name, budget), seed)
        seconds = time.process_time() - start
        error = wrong(model, points, part.test)
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0
        found.append(Outcome(name, model.objective_, error, seconds, model.level_, model.n_inner_, memory))
    return found


def wrong(model: Any, points: Points, rows: Any) -> float:
    """The share of rows that get a wrong class."""
    return float((model.predict(points.X[rows]) != points.y[rows]).mean())


def compiled() -> None:
    """Train once on a few points, so that no solver's seconds hold the compilation of kernels."""
    points = replace(data.two_moons(20), states=(1, 2))
    for learner in (UNLABELLED, GROUPED):
        for name in learner.solvers:
            learner.fit(points, partition(points.y, 1, 0), 0.5, learner.make(name, 10), 0)
