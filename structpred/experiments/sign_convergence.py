"""Solvers under sign constraints: how soon they come near the optimum (Kato, Kobayashi and Sano 2018, Figure 2)."""

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from structpred.experiments.experiment import data_file
from structpred.experiments.linear_solvers import CLASSES, one_pass, read_binary, read_rows
from structpred.objectives.regularisers.l2 import SignConstraints
from structpred.objectives.scalar.margins import SmoothedHinge
from structpred.rows.linear_task import LinearTask
from structpred.trainers.loop import RunSettings, train
from structpred.trainers.pegasos import Pegasos
from structpred.trainers.problem import Problem, Trainer
from structpred.trainers.sdca import SDCA

log = logging.getLogger("structpred.experiments")

#: of the smoothed hinge, as in the paper
GAMMA = 0.01
#: the size of Covtype
COVERTYPE = (581_012, 54)
#: a reference run ends at this share of the objective, or after this many epochs
REFERENCE = (1e-7, 1000)


@dataclass(frozen=True)
class Point:
    """After this many epochs and seconds of CPU (of training alone): the distance to the optimum, P(w) - P(w*) or a little more,
    and the certified gap, where the solver has one.
    """

    epochs: int
    seconds: float
    distance: float
    gap: float | None


@dataclass(frozen=True)
class Curve:
    """One solver. least: min_j c_j w_j at the end, over the constrained weights; exactly 0 or more."""

    solver: str
    points: Sequence[Point]
    least: float


@dataclass(frozen=True)
class Convergence:
    """One data set. optimum: P(w*), at least; slack: how much more it may be."""

    data: str
    rows: int
    columns: int
    nonzeros: int
    optimum: float
    slack: float
    curves: Sequence[Curve]


def convergence(folder: Path, epochs: int, *, quick: bool = False) -> list[Convergence]:
    """a9a, w8a, a class of TMC2007 and of Enron, a synthetic set of the size of Covtype; quick: a thousand rows of each."""
    rng = np.random.default_rng(0)
    n = 1000 if quick else COVERTYPE[0]
    sets = {name: read_rows(data_file(folder / f"binary_{name}", name), None) for name in ("a9a", "w8a")}
    sets |= {name: read_binary(folder, name)[0] for name in CLASSES}
    sets["covertype, synthetic"] = like_covertype(n, rng)
    found = []
    for name, (X, y) in sets.items():
        log.info("convergence: %s", name)
        every = max(1, len(y) // n) if quick else 1
        X, y = X[::every], y[::every]
        # the sign of each weight is -1, 0 or 1 with equal chances, as the paper does not name any
        task, signs = LinearTask(X, y), rng.integers(-1, 2, X.shape[1])
        problem = Problem(task, SmoothedHinge(GAMMA), 1.0 / len(y), regulariser=SignConstraints(signs))
        long = train(problem, SDCA(), RunSettings(REFERENCE[1], REFERENCE[0], 20, seed=1)).certificate
        lower = long.dual or 0.0
        solvers: dict[str, Trainer] = {
            "SC-SDCA": SDCA(),
            "SC-Pegasos, k = 10": Pegasos(batch=10),
            "SC-Pegasos, k = 100": Pegasos(batch=100),
        }
        curves = [Curve(solver, *course(problem, trainer, epochs, lower, signs)) for solver, trainer in solvers.items()]
        found.append(Convergence(name, len(y), X.shape[1], len(task.values), lower, long.gap or 0.0, curves))
    return found


def like_covertype(n: int, rng: np.random.Generator) -> tuple[Any, npt.NDArray[np.int64]]:
    """(rows, labels): ten numbers in [0, 1], one of four indicators and one of forty, and labels of a noisy linear rule."""
    area, soil = rng.choice(4, n, p=[0.45, 0.05, 0.44, 0.06]), np.minimum(rng.geometric(0.08, n) - 1, 39)
    columns = np.column_stack([np.tile(np.arange(10), (n, 1)), 10 + area, 14 + soil])
    values = np.column_stack([rng.beta(2.0, 2.0, (n, 10)), np.ones((n, 2))])
    X: Any = sparse.csr_matrix((values.ravel(), columns.ravel(), np.arange(0, 12 * n + 1, 12)), shape=(n, COVERTYPE[1]))
    scores = X @ rng.normal(size=COVERTYPE[1])
    return X, np.where(scores + 0.8 * rng.normal(size=n) > np.median(scores), 1, -1)


def course(
    problem: Problem, trainer: Trainer, epochs: int, lower: float, signs: npt.NDArray[np.int64]
) -> tuple[list[Point], float]:
    """The points of all epochs, and the least c_j w_j at the end. Compiled code is loaded before the clock starts."""
    one_pass(problem, trainer, trainer.init_state(problem), np.random.default_rng(0), 0)
    rng, points, seconds = np.random.default_rng(0), [], 0.0
    state = trainer.init_state(problem)
    for k in range(epochs):
        start = time.process_time()
        state = one_pass(problem, trainer, state, rng, k)
        seconds += time.process_time() - start
        primal, dual = trainer.objective(problem, state)
        if primal is None:
            primal = problem.primal(trainer.weights(problem, state))
        points.append(Point(k + 1, seconds, primal - lower, None if dual is None else primal - dual))
    w = trainer.weights(problem, state)
    return points, float((signs * w)[signs != 0].min(initial=np.inf)) + 0.0  # -0 is 0
