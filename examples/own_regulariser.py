"""Your own regulariser: weights that may not be negative, in one method; checked, trained and certified.

python examples/own_regulariser.py
"""

import numpy as np

from structpred import Task, check_regulariser
from structpred.core.regulariser import DualMap, Regulariser
from structpred.features.parts import PartFeatures
from structpred.objectives.margin import MarginRescaling
from structpred.objectives.part_losses import Hamming
from structpred.oracles.assignment import AssignmentOracle
from structpred.trainers.bcfw import BCFW
from structpred.trainers.loop import RunSettings, train
from structpred.trainers.problem import Problem


class NonNegative(Regulariser):
    """1/2 |w|^2 over w >= 0, for features that are similarities: none of them may speak against a match."""

    strong_convexity = 1.0

    def dual_map(self):
        """w_j = u_j - clip(u_j, -inf, 0) = max(u_j, 0)."""
        return DualMap.alike(1.0, low=-np.inf, high=0.0)


def make_task(n_samples, rng):
    """Matchings of four items to four places; of six similarities the last two are noise."""
    rows, labels = [], []
    for _ in range(n_samples):
        place = rng.permutation(4)
        right = (place[:, None] == np.arange(4)).ravel()
        rows.append(rng.normal(size=(16, 6)) + right[:, None] * np.array([1.5, 1.0, 0.7, 0.5, 0.0, 0.0]))
        labels.append(place)
    return Task(PartFeatures(rows), AssignmentOracle(), labels, [(4,)] * n_samples, Hamming())


def main():
    """Check it, and compare it with the usual regulariser."""
    print(str(check_regulariser(NonNegative())).splitlines()[0])
    task = make_task(60, np.random.default_rng(0))
    problems = {
        "1/2 |w|^2": Problem(task, MarginRescaling(), lam=1.0),
        "w >= 0": Problem(task, MarginRescaling(), lam=1.0, regulariser=NonNegative()),
    }
    for name, problem in problems.items():
        result = train(problem, BCFW(), RunSettings(max_iter=200, tol=0.001))
        print(f"{name:<10} least weight {result.weights.min():.4f}; {result.certificate}")


if __name__ == "__main__":
    main()
