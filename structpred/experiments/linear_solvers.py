"""Solvers of binary support vector machines next to each other (Saha, Zhang & Vishwanathan 2009, section 5) on public data."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from structpred.core.weights import Vector
from structpred.experiments.experiment import Experiment, Wanted, data_file
from structpred.io.multilabel.data import read_libsvm_multilabel
from structpred.objectives.margin import MarginRescaling
from structpred.objectives.regularisers.l2 import FreeIntercept
from structpred.rows.linear_task import LinearTask
from structpred.trainers.names import trainers
from structpred.trainers.problem import Problem, Trainer

Accuracy = Callable[[Vector], float]

#: solver -> its settings, and after how many passes it is given up; those of BCFW are loops of Python over all rows
SOLVERS: dict[str, tuple[dict[str, Any], int]] = {
    "bmrm": ({"precision": 1e-5}, 3000),
    "ls_bmrm": ({}, 5000),
    "pragam": ({}, 6000),
    "pragam_b": ({}, 6000),
    "sdca": ({}, 300),
    "bcfw": ({"averaged": False}, 60),
}
GOALS = (1e-2, 1e-3)
#: the strengths that the paper chose on validation data, with the switch of that name; else 0.001
PAPER_LAM = {"a9a": 2.0**-18, "w8a": 2.0**-17}
#: of w8a, whose test file is not public, every row of this number is held out; its last rows are all of one sign
FOLD = 5


@dataclass(frozen=True)
class Point:
    """After so many passes and seconds of CPU: the objective, the certified gap (liblinear: the distance to the largest known
    lower bound), and the share of test rows that are right.
    """

    passes: int
    seconds: float
    primal: float
    gap: float
    accuracy: float


@dataclass(frozen=True)
class Course:
    """What one solver went through."""

    solver: str
    points: Sequence[Point]

    def reached(self, goal: float) -> Point | None:
        """The first point with a gap of at most `goal`."""
        return next((point for point in self.points if point.gap <= goal), None)


@dataclass(frozen=True)
class SolverTable:
    """All solvers on one problem. rows, columns, tested: the sizes. lower: the largest lower bound of the objective."""

    data: str
    rows: int
    columns: int
    tested: int
    lam: float
    lower: float
    courses: Sequence[Course]


class LinearSolvers(Experiment):
    """Compare the solvers of linear support vector machines: passes and seconds to a certified gap.

    \b
    a9a    32,561 rows of 123 columns, 16,281 test rows
    w8a    39,800 rows of 300 columns, every fifth of the file to test on

    Gaps are certified, but for liblinear's, which has no certificate: that is the distance to the best lower bound of the others.
    pragam_b has an intercept that is not regularised, so its objective is another one. Seconds are those of one processor. Takes
    some minutes; --quick a few seconds.
    """

    name = "linear-solvers"
    summary = "Solvers of linear support vector machines."
    tables = ("a9a", "w8a")
    switches: ClassVar = {"paper": "The paper's lambda, 2^-18 and 2^-17, instead of 0.001."}
    draws: ClassVar = True

    def run(self, folder: Path, wanted: Wanted) -> list[SolverTable]:
        """A table for each data set."""
        paper = "paper" in wanted.switches
        lam = {name: PAPER_LAM[name] if paper else 1e-3 for name in wanted.chosen(self.tables)}
        return [wanted.kept(n, SolverTable, partial(_compare, folder, n, lam[n], wanted.quick)) for n in lam]

    def text(self, figures: list[SolverTable]) -> str:
        """One line a solver."""
        return "\n\n".join("\n".join(_lines(table)) for table in figures)


def _compare(folder: Path, name: str, lam: float, quick: bool) -> SolverTable:
    """All solvers on one data set; quick: on a thousand rows, and few passes."""
    rows, test = read_binary(folder / f"binary_{name}", name)
    rows = _spread(rows, 1000) if quick else rows
    share = 20 if quick else 1
    accuracy, courses, lower = [_accuracy(test, free) for free in (False, True)], [], 0.0
    for solver, (settings, most) in SOLVERS.items():
        trainer, free = trainers()[solver](**settings), solver == "pragam_b"
        course(_problem(_spread(rows, 200), lam, free), trainer, accuracy[free], 3)  # compiled code is loaded
        points, bound = course(_problem(rows, lam, free), trainer, accuracy[free], most // share)
        courses.append(Course(solver, points))
        lower = lower if free else max(lower, bound)
    courses.append(Course("liblinear", liblinear(_problem(rows, lam), rows, accuracy[False], lower, 1000 // share)))
    return SolverTable(name, rows[0].shape[0], rows[0].shape[1], test[0].shape[0], lam, lower, courses)


def read_binary(folder: Path, name: str) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    """((rows, signs) to train on, (rows, signs) to test on)."""
    X, y = read_rows(data_file(folder, name), None)
    if name == "w8a":
        held_out = np.arange(len(y)) % FOLD == FOLD - 1
        return (X[~held_out], y[~held_out]), (X[held_out], y[held_out])
    return (X, y), read_rows(data_file(folder, f"{name}.t"), X.shape[1])


def read_rows(path: Path, n_features: int | None) -> tuple[Any, Any]:
    """(CSR with indices of 32 bits, as scikit-learn wants them, signs)."""
    from scipy import sparse

    data = read_libsvm_multilabel(path, label_names=["-1", "+1"], n_features=n_features)
    X = data.X
    X = sparse.csr_matrix((X.data.astype(np.float64), X.indices.astype(np.int32), X.indptr.astype(np.int32)), shape=X.shape)
    return X, np.where(data.Y[:, 1] == 1, 1, -1)


def _spread(rows: tuple[Any, Any], n: int) -> tuple[Any, Any]:
    """About n rows, from the first to the last: some files are sorted by sign."""
    every = max(1, len(rows[1]) // n)
    return rows[0][::every], rows[1][::every]


def _problem(rows: tuple[Any, Any], lam: float, free: bool = False) -> Problem:
    """The support vector machine; free: with an intercept that is not regularised."""
    if free:
        return Problem(LinearTask(*rows, intercept=1.0), MarginRescaling(), lam, regulariser=FreeIntercept())
    return Problem(LinearTask(*rows), MarginRescaling(), lam)


def _accuracy(test: tuple[Any, Any], free: bool) -> Accuracy:
    """The share of rows whose sign is right; a score of zero, as of rows without features, says -1."""
    held_out, positive = LinearTask(*test, intercept=float(free)), test[1] > 0

    def right(w: Vector) -> float:
        margins = held_out.margins(w.astype(np.float64))
        return float(np.where(positive, margins > 0.0, margins >= 0.0).mean())

    return right


def course(problem: Problem, trainer: Trainer, accuracy: Accuracy, most: int) -> tuple[list[Point], float]:
    """Train until the gap is the smallest goal, or for `most` passes: the points, and the largest lower bound.

    The seconds are those of training and of the certificate, at the passes that are looked at: all first ones, later every 20th
    part. Test rows are scored outside of them.
    """
    rng, points, lower, seconds = np.random.default_rng(0), [], 0.0, 0.0
    looks = set(_looks(most))
    start = time.process_time()
    state = trainer.init_state(problem)
    for k in range(1, most + 1):
        state = one_pass(problem, trainer, state, rng, k - 1)
        if k not in looks:
            continue
        primal, dual = trainer.objective(problem, state)
        seconds += time.process_time() - start
        assert primal is not None
        lower = max(lower, dual or 0.0)
        points.append(Point(k, seconds, primal, primal - lower, accuracy(trainer.weights(problem, state))))
        if primal - lower <= min(GOALS):
            break
        start = time.process_time()
    return points, lower


def one_pass(problem: Problem, trainer: Trainer, state: Any, rng: np.random.Generator, k: int) -> Any:
    """The state after pass number k."""
    for item in trainer.order(problem, state, rng, k).tolist():
        state, _ = trainer.update(problem, state, item)
    return trainer.finish_pass(problem, state)


def _looks(most: int) -> Iterator[int]:
    """1, 2, 3, ..., then 5 % more each time, and the last."""
    k = 1
    while k < most:
        yield k
        k += max(1, k // 20)
    yield most


def liblinear(problem: Problem, rows: tuple[Any, Any], accuracy: Accuracy, lower: float, most: int) -> list[Point]:
    """liblinear's dual coordinate descent, begun anew for 1, 2, 4, ... passes."""
    points: list[Point] = []
    passes = 1
    C = 1.0 / (problem.lam * len(problem.task))
    while passes <= most and not (points and points[-1].gap <= min(GOALS)):
        w, seconds = fit_liblinear(*rows, C, passes, 1e-8)
        primal = problem.primal(w)
        points.append(Point(passes, seconds, primal, primal - lower, accuracy(w)))
        passes *= 2
    return points


def fit_liblinear(X: Any, y: Any, C: float, passes: int, tol: float) -> tuple[Any, float]:
    """The weights after so many passes, and the seconds that they took."""
    import warnings

    from sklearn.exceptions import ConvergenceWarning
    from sklearn.svm import LinearSVC

    svm = LinearSVC(loss="hinge", C=C, fit_intercept=False, tol=tol, max_iter=passes, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        start = time.process_time()
        svm.fit(X, y)
        return svm.coef_[0], time.process_time() - start


def _lines(table: SolverTable) -> list[str]:
    sizes = f"{table.rows:,} rows, {table.columns} columns, {table.tested:,} rows to test on"
    goals = "".join(f"{f'passes to {goal:g}':>18}{'seconds':>9}" for goal in GOALS)
    lines = [
        f"{table.data}: {sizes}; lambda {table.lam:.3g}, optimum at least {table.lower:.6f}",
        f"{'solver':<10}{goals}{'passes':>9}{'seconds':>9}{'gap':>10}{'accuracy':>10}",
    ]
    for one in table.courses:
        cells, last = "", one.points[-1]
        for goal in GOALS:
            at = one.reached(goal)
            cells += f"{at.passes:>18}{at.seconds:>9.2f}" if at else f"{'-':>18}{'-':>9}"
        lines.append(f"{one.solver:<10}{cells}{last.passes:>9}{last.seconds:>9.2f}{last.gap:>10.2g}{100 * last.accuracy:>8.2f} %")
    return lines
