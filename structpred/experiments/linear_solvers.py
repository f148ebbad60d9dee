"""Solvers of binary support vector machines next to each other (Saha, Zhang & Vishwanathan 2009, section 5) on public data."""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from structpred.core.weights import Vector
from structpred.experiments.bmrm_lower_bound import PAPER
from structpred.experiments.experiment import Claim, Experiment, Wanted, data_file
from structpred.io.multilabel.data import MultiLabelData, read_libsvm_multilabel
from structpred.io.multilabel.mulan import read_mulan
from structpred.objectives.margin import MarginRescaling
from structpred.objectives.regularisers.l2 import L2, FreeIntercept
from structpred.rows.linear_task import LinearTask
from structpred.trainers.bcfw import BCFW
from structpred.trainers.bmrm import BMRM
from structpred.trainers.loop import RunSettings, train
from structpred.trainers.ls_bmrm import LineSearchBMRM
from structpred.trainers.pegasos import Pegasos
from structpred.trainers.pragam import Pragam
from structpred.trainers.pragam_b import PragamB
from structpred.trainers.problem import Problem, Trainer
from structpred.trainers.sdca import SDCA

Accuracy = Callable[[Vector], float]

#: solver -> it for n rows, and after how many passes it is given up; those of BCFW are loops of Python over all rows
SOLVERS: dict[str, tuple[Callable[[int], Trainer], int]] = {
    "bmrm": (lambda n: BMRM(precision=1e-5), 3000),
    "ls_bmrm": (lambda n: LineSearchBMRM(), 15000),
    "pragam": (lambda n: Pragam(), 6000),
    "pragam_b": (lambda n: PragamB(), 6000),
    "sdca": (lambda n: SDCA(), 300),
    "bcfw": (lambda n: BCFW(averaged=False), 60),
    "pegasos-n": (lambda n: Pegasos(batch=n), 6000),
    "pegasos-1": (lambda n: Pegasos(), 300),
}
GOALS = (1e-2, 1e-3)
#: the strengths that the paper chose on validation data, with the switch of that name; else 0.001
PAPER_LAM = {"a9a": 2.0**-18, "w8a": 2.0**-17, "web8": 2.0**-17}
#: the binary logarithms of those that validation chooses from, as the paper says
EXPONENTS = range(-20, 1)
#: label sets that stand in for the paper's other texts: of each the class nearest to half of the training rows
CLASSES = {"tmc2007": ("multilabel_tmc2007_500", "tmc2007-500"), "enron": ("multilabel_enron", "enron")}
#: of w8a, whose test file is not public, every row of this number is held out; its last rows are all of one sign
FOLD = 5


@dataclass(frozen=True)
class Point:
    """After that many passes and CPU seconds: the objective, the certified gap (liblinear, Pegasos: the distance to the largest
    known lower bound), and the share of test rows that are right. error: the least objective so far less the largest lower bound
    of any solver of the same problem, the paper's err_t but for the distance of that bound to the optimum.
    """

    passes: int
    seconds: float
    primal: float
    gap: float
    accuracy: float
    error: float = np.nan


@dataclass(frozen=True)
class Course:
    """What one solver went through."""

    solver: str
    points: Sequence[Point]

    def reached(self, goal: float, field: str = "gap") -> Point | None:
        """The first point with a gap, or another field, of at most `goal`."""
        return next((point for point in self.points if getattr(point, field) <= goal), None)


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

    def named(self, solver: str) -> Course:
        """What a solver went through."""
        return next(one for one in self.courses if one.solver == solver)


class LinearSolvers(Experiment):
    """Compare the solvers of linear support vector machines: passes and seconds to a certified gap.

    \b
    a9a    32,561 rows of 123 columns, 16,281 test rows
    w8a    39,800 rows of 300 columns, every fifth of the file to test on
    web8   w8a without its empty rows: the paper's set of that name
    tmc2007, enron   one class of each, for the paper's other texts

    Gaps are certified, but for those of liblinear and Pegasos (a step on all rows, and on one), which have no certificate: these
    are distances to the best lower bound of the others.
    pragam_b has an intercept that is not regularised, so its objective is another one. Seconds are those of one processor. Takes
    some minutes; --quick a few seconds.
    """

    name = "linear-solvers"
    summary = "Solvers of linear support vector machines."
    tables = ("a9a", "w8a", "web8", *CLASSES)
    switches: ClassVar = {
        "paper": "The paper's lambda, 2^-18 for a9a and 2^-17 for w8a and web8, instead of 0.001.",
        "validate": "The lambda of 2^-20, ..., 2^0 that is best on every fifth training row.",
    }
    draws: ClassVar = True

    def run(self, folder: Path, wanted: Wanted) -> list[SolverTable]:
        """A table for each data set."""
        return [wanted.kept(name, SolverTable, partial(_compare, folder, name, wanted)) for name in wanted.chosen(self.tables)]

    def text(self, figures: list[SolverTable]) -> str:
        """One line a solver."""
        return "\n\n".join("\n".join(_lines(table)) for table in figures)

    def claims(self, figures: list[SolverTable]) -> list[Claim]:
        """What the paper says of Pragam and of liblinear; met where it is so on every set; "not" names those where it is not."""
        found = []
        for claim, printed, judge in CLAIMS:
            judged = [(table.data, *judge(table)) for table in figures]
            ours = ", ".join(f"{'' if met else 'not '}{data} {words}".strip() for data, met, words in judged)
            found.append(Claim(PAPER, claim, printed, ours, all(met for _, met, _ in judged)))
        return found


def sooner(table: SolverTable, other: str, field: str) -> tuple[bool, str]:
    """Whether Pragam comes to the smallest goal in err_t with less of `field` than another; both, > where one did not."""
    courses = [table.named(one) for one in ("pragam", other)]
    ends = [one.reached(min(GOALS), "error") for one in courses]
    ours, others = (getattr(at or one.points[-1], field) for at, one in zip(ends, courses, strict=True))
    digits = 0 if field == "passes" else 2
    words = "/".join(f"{'' if at else '>'}{value:,.{digits}f}" for at, value in zip(ends, (ours, others), strict=True))
    return ends[0] is not None and ours < others, words


def _certified(table: SolverTable) -> tuple[bool, str]:
    """Whether Pragam's gap comes to the smallest goal; at what pass, or the gap at the end."""
    one = table.named("pragam")
    at = one.reached(min(GOALS))
    return at is not None, f"{at.passes:,}" if at else f"{one.points[-1].gap:.2g} after {one.points[-1].passes:,}"


def _fastest(table: SolverTable) -> tuple[bool, str]:
    """Whether none of the paper's solvers comes to the smallest goal in fewer seconds than liblinear; else which one."""
    courses = [one for one in table.courses if one.solver not in ("sdca", "bcfw")]
    seconds = {one.solver: at.seconds for one in courses if (at := one.reached(min(GOALS), "error"))}
    first = min(seconds, key=lambda solver: (seconds[solver], solver != "liblinear"), default="none")
    return first == "liblinear", first.removeprefix("liblinear")


def _as_accurate(table: SolverTable) -> tuple[bool, str]:
    """Whether the free intercept is at least as accurate as Pragam without."""
    right = [100.0 * table.named(solver).points[-1].accuracy for solver in ("pragam_b", "pragam")]
    return right[0] >= right[1], f"{right[0]:.2f}/{right[1]:.2f}"


#: what the paper claims: the claim, where, and (a table) -> whether it holds there, with the figures
CLAIMS: tuple[tuple[str, str, Callable[[SolverTable], tuple[bool, str]]], ...] = (
    ("Pragam needs fewer iterations than ls-bmrm", "Figure 1", lambda one: sooner(one, "ls_bmrm", "passes")),
    ("fewer than pegasos-n", "Figure 1", lambda one: sooner(one, "pegasos-n", "passes")),
    ("fewer seconds for high accuracy", "Figure 2", lambda one: sooner(one, "ls_bmrm", "seconds")),
    ("Pragam's gap closes to .001", "(26)", _certified),
    ("liblinear is fastest", "Figure 2", _fastest),
    ("Pragam-b is as accurate as the others", "Figure 3", _as_accurate),
)


def _compare(folder: Path, name: str, wanted: Wanted) -> SolverTable:
    """All solvers on one data set; quick: on a thousand rows, and few passes."""
    rows, test = read_binary(folder, name)
    rows = _spread(rows, 1000) if wanted.quick else rows
    share = 20 if wanted.quick else 1
    lam = validated(rows) if "validate" in wanted.switches else 1e-3
    lam = PAPER_LAM.get(name, lam) if "paper" in wanted.switches else lam
    accuracy, courses, lower = [_accuracy(test, free) for free in (False, True)], [], [0.0, 0.0]
    for solver, (make, most) in SOLVERS.items():
        free, few = solver == "pragam_b", _spread(rows, 200)
        course(_problem(few, lam, free), make(len(few[1])), accuracy[free], 3)  # compiled code is loaded
        trainer = make(len(rows[1]))
        known = 0.0 if trainer.certified else lower[free]
        points, bound = course(_problem(rows, lam, free), trainer, accuracy[free], most // share, known)
        courses.append(Course(solver, points))
        lower[free] = max(lower[free], bound)
    courses.append(Course("liblinear", liblinear(_problem(rows, lam), rows, accuracy[False], lower[False], 5000 // share)))
    courses = [_with_errors(one, lower[one.solver == "pragam_b"]) for one in courses]
    return SolverTable(name, rows[0].shape[0], rows[0].shape[1], test[0].shape[0], lam, lower[False], courses)


def _with_errors(one: Course, lower: float) -> Course:
    """With err_t of every point; a problem of its own has but its own lower bound."""
    least = np.minimum.accumulate([point.primal for point in one.points]) - lower
    return Course(one.solver, [replace(point, error=error) for point, error in zip(one.points, least.tolist(), strict=True)])


def validated(rows: tuple[Any, Any], exponents: Iterable[int] = EXPONENTS) -> float:
    """The lambda with the fewest errors on every fifth row after training on the others; of equal ones the largest."""
    held_out = np.arange(len(rows[1])) % FOLD == FOLD - 1
    own, others = (rows[0][~held_out], rows[1][~held_out]), (rows[0][held_out], rows[1][held_out])
    score, settings = _accuracy(others, False), RunSettings(max_iter=30, tol=1e-3)

    def right(exponent: int) -> float:
        return score(train(_problem(own, 2.0**exponent), SDCA(), settings).weights)

    return float(2.0 ** max(sorted(exponents, reverse=True), key=right))


def read_binary(folder: Path, name: str) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    """((rows, signs) to train on, (rows, signs) to test on), of the folder of all data sets."""
    if name in CLASSES:  # the label that nearest to half of the training rows have, against all others
        folder, stem = folder / CLASSES[name][0], CLASSES[name][1]
        names = data_file(folder, f"{stem}.xml")
        own, others = (read_mulan(data_file(folder, f"{stem}-{part}.arff"), names) for part in ("train", "test"))
        label = int(np.abs(own.Y.mean(axis=0) - 0.5).argmin())
        return _with_signs(own, label), _with_signs(others, label)
    stem = "w8a" if name == "web8" else name
    X, y = read_rows(data_file(folder / f"binary_{stem}", stem), None)
    if name == "web8":
        some = np.diff(X.indptr) > 0
        X, y = X[some], y[some]
    if stem == "w8a":
        held_out = np.arange(len(y)) % FOLD == FOLD - 1
        return (X[~held_out], y[~held_out]), (X[held_out], y[held_out])
    return (X, y), read_rows(data_file(folder / f"binary_{stem}", f"{stem}.t"), X.shape[1])


def _with_signs(data: MultiLabelData, label: int) -> tuple[Any, Any]:
    """(CSR with indices of 32 bits, as scikit-learn wants them, signs of one label)."""
    from scipy import sparse

    X = data.X
    X = sparse.csr_matrix((X.data.astype(np.float64), X.indices.astype(np.int32), X.indptr.astype(np.int32)), shape=X.shape)
    return X, np.where(np.asarray(data.Y)[:, label] == 1, 1, -1)


def read_rows(path: Path, n_features: int | None) -> tuple[Any, Any]:
    """(CSR, signs) of a file of two classes."""
    return _with_signs(read_libsvm_multilabel(path, label_names=["-1", "+1"], n_features=n_features), 1)


def _spread(rows: tuple[Any, Any], n: int) -> tuple[Any, Any]:
    """About n rows, from the first to the last: some files are sorted by sign."""
    every = max(1, len(rows[1]) // n)
    return rows[0][::every], rows[1][::every]


def _problem(rows: tuple[Any, Any], lam: float, free: bool = False) -> Problem:
    """The support vector machine; free: with an intercept that is not regularised."""
    task = LinearTask(*rows, intercept=float(free))
    return Problem(task, MarginRescaling(), lam, regulariser=FreeIntercept() if free else L2())


def _accuracy(test: tuple[Any, Any], free: bool) -> Accuracy:
    """The share of rows whose sign is right; a score of zero, as of rows without features, says -1."""
    held_out, positive = LinearTask(*test, intercept=float(free)), test[1] > 0

    def right(w: Vector) -> float:
        margins = held_out.margins(w.astype(np.float64))
        return float(np.where(positive, margins > 0.0, margins >= 0.0).mean())

    return right


def course(problem: Problem, trainer: Trainer, accuracy: Accuracy, most: int, lower: float = 0.0) -> tuple[list[Point], float]:
    """Train until the gap is the smallest goal, or for `most` passes: the points, and the largest lower bound, from `lower` on.

    The seconds are those of training and of the certificate, at the passes that are looked at: all first ones, later ever fewer.
    Test rows are scored outside of them.
    """
    rng, points, seconds = np.random.default_rng(0), [], 0.0
    looks = {most, *np.geomspace(1, most, 250).astype(int).tolist()}
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


def liblinear(problem: Problem, rows: tuple[Any, Any], accuracy: Accuracy, lower: float, most: int) -> list[Point]:
    """liblinear's dual coordinate descent, begun anew for 1, 2, 4, ... passes: a longer run takes no less time than a shorter."""
    points: list[Point] = []
    passes = 1
    C = 1.0 / (problem.lam * len(problem.task))
    while passes <= most and not (points and points[-1].gap <= min(GOALS)):
        w, seconds = fit_liblinear(*rows, C, passes, 1e-8)
        seconds = max(seconds, points[-1].seconds if points else 0.0)
        primal = problem.primal(w)
        points.append(Point(passes, seconds, primal, primal - lower, accuracy(w)))
        passes *= 2
    return points


def fit_liblinear(X: Any, y: Any, C: float, passes: int, tol: float) -> tuple[Any, float]:
    """The weights after this many passes, and the seconds that they took."""
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
        f"{'solver':<10}{goals}{'passes':>9}{'seconds':>9}{'gap':>10}{'err_t':>10}{'accuracy':>10}",
    ]
    for one in table.courses:
        cells, last = "", one.points[-1]
        for goal in GOALS:
            at = one.reached(goal)
            cells += f"{at.passes:>18}{at.seconds:>9.2f}" if at else f"{'-':>18}{'-':>9}"
        end = f"{last.passes:>9}{last.seconds:>9.2f}{last.gap:>10.2g}{last.error:>10.2g}{100 * last.accuracy:>8.2f} %"
        lines.append(f"{one.solver:<10}{cells}{end}")
    return lines
