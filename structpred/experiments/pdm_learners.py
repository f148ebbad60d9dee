"""The two kinds of models that are trained without being told all labels, and the solvers of each."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from structpred.experiments.pdm_data import Partition, Points
from structpred.models import LatentSVM, SemiSupervisedSVM
from structpred.models.kernels.functions import RBF
from structpred.models.kernels.random_features import RandomFeatures
from structpred.nonconvex.alternating import AlternatingOptimisation
from structpred.nonconvex.annealing import Annealing
from structpred.nonconvex.branch_and_bound import BranchAndBound
from structpred.nonconvex.cccp import CCCP
from structpred.nonconvex.gradient import GradientDescent
from structpred.nonconvex.latent_search import Alternation, DeterministicAnnealing, LatentPDM, SingleChanges
from structpred.nonconvex.local_search import LocalSearch
from structpred.nonconvex.pdm import PDM
from structpred.nonconvex.printed_pdm import PrintedPDM
from structpred.nonconvex.staged import StagedSearch

#: weights of labelled and of unlabelled points; that of points whose class has hidden parts; the paper's grid of sigma^2
C1, C2, LATENT_C = 100.0, 1.0, 10.0
SIGMAS = (8.0, 4.0, 2.0, 1.0, 0.5, 0.25, 0.125)
#: more training rows than this have random features in place of the kernel matrix: so many
MANY, FEATURES = 5_000, 1_000


class Solvable(NamedTuple):
    """How a solver is made for a budget of inner problems, and its column in the paper's tables.

    thrifty: whether it needs no kernel matrix, and some tens of inner problems suffice for it to say something of many rows.
    """

    make: Callable[[int], Any]
    method: str | None
    thrifty: bool = False


@dataclass(frozen=True)
class Learner:
    """A kind of model. default: the default one of its solvers; chooser: the one that sigma^2 is chosen with.

    C: as shown. cost: an inner problem counts as so many of the budget. fit: points, partition, sigma^2, solver, seed -> model.
    """

    solvers: Mapping[str, Solvable]
    default: str
    chooser: str
    C: float
    cost: int
    fit: Callable[[Points, Partition, float, Any, int], Any]

    def for_rows(self, n: int) -> "Learner":
        """The same for n training rows: of many the thrifty solvers alone, each inner problem of which counts as one."""
        if n <= MANY:
            return self
        return replace(self, solvers={name: one for name, one in self.solvers.items() if one.thrifty}, cost=1)


def kernel_of(sigma2: float, n: int) -> Any:
    """exp(-|x - x'|^2 / (2 sigma^2)) for n training rows: of many by random features."""
    return RBF(0.5 / sigma2) if n <= MANY else RandomFeatures(FEATURES, gamma=0.5 / sigma2)


def semi_supervised(points: Points, part: Partition, sigma2: float, solver: Any, seed: int) -> SemiSupervisedSVM:
    """Trained with few labels; the balance is that of the unlabelled points."""
    truth = points.y[part.train]
    y, hidden = np.where(part.labelled, truth, -1), truth[~part.labelled]
    shares = {int(k): float((hidden == k).mean()) for k in np.unique(truth)}
    kernel = kernel_of(sigma2, len(part.train))
    model = SemiSupervisedSVM(kernel, C1, C2, balance=shares, solver=solver, random_state=seed)
    return model.fit(points.X[part.train], y)


def latent(points: Points, part: Partition, sigma2: float, solver: Any, seed: int) -> LatentSVM:
    """Trained with the groups, and with how many classes each has."""
    kernel, states = kernel_of(sigma2, len(part.train)), dict(enumerate(points.states))
    model = LatentSVM(kernel, LATENT_C, states, solver=solver, random_state=seed)
    return model.fit(points.X[part.train], points.y[part.train])


UNLABELLED = Learner(
    {
        "gradient": Solvable(lambda most: GradientDescent(most), "GD"),
        "cccp": Solvable(lambda most: CCCP(most), "CCCP"),
        "ao": Solvable(lambda most: AlternatingOptimisation(most), "AO", True),
        "local_search": Solvable(lambda most: LocalSearch(most), "LCS", True),
        "annealing": Solvable(lambda most: Annealing(most, steps=min(100, 1 + most // 3)), "IA", True),
        "branch_and_bound": Solvable(lambda most: BranchAndBound(most), "BB"),
        "printed_pdm 0.1": Solvable(lambda most: PrintedPDM(most, degree=0.1), "PDM1"),
        "printed_pdm 0.2": Solvable(lambda most: PrintedPDM(most, degree=0.2), "PDM2"),
        "pdm 0.1": Solvable(lambda most: PDM(degree=0.1, max_inner=most), "PDM1", True),
        "pdm 0.2": Solvable(lambda most: PDM(degree=0.2, max_inner=most), "PDM2"),
        "staged": Solvable(lambda most: StagedSearch(most), None, True),
    },
    "staged", "staged", C1, 1, semi_supervised,
)  # fmt: skip
#: alternating optimisation and CCCP are one algorithm here
GROUPED = Learner(
    {
        "cccp": Solvable(lambda most: Alternation(most), "CCCP", True),
        "local_search": Solvable(lambda most: SingleChanges(most), "LCS", True),
        "annealing": Solvable(lambda most: DeterministicAnnealing(most), None, True),
        "pdm 0.1": Solvable(lambda most: LatentPDM(most, degree=0.1), "PDM1"),
        "pdm 0.2": Solvable(lambda most: LatentPDM(most, degree=0.2), "PDM2"),
        "pdm": Solvable(lambda most: LatentPDM(most), None, True),
    },
    "pdm", "cccp", LATENT_C, 100, latent,
)  # fmt: skip
