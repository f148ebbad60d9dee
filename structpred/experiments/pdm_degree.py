"""Figures 1 and 2 of the paper on parametric dual maximisation, a run and what m buys; and exact paths and bounds."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from structpred.core.types import Floats
from structpred.experiments.pdm_data import Partition, partition
from structpred.experiments.pdm_runs import C1, C2, TASKS, Plan, semi_supervised, wrong
from structpred.nonconvex.annealing import Annealing
from structpred.nonconvex.branch_and_bound import BranchAndBound, block_bound
from structpred.nonconvex.path_annealing import PathAnnealing
from structpred.nonconvex.pdm_rounds import PDMRounds
from structpred.nonconvex.problem import SemiSupervisedProblem
from structpred.nonconvex.regions import along
from structpred.nonconvex.staged import StagedSearch

#: degrees of Figure 2: each run begins as that before it; its sets with their sigma^2, that of most partitions in Tables 2 and 3
DEGREES = (0.05, 0.1, 0.2, 0.4, 0.8)
SETS = {"moons": 0.125, "coil": 2.0, "g50c": 0.25, "spiral": 2.0}
#: the numbers of blocks that bounds are made of
BLOCKS = (4, 6, 12, 24)


@dataclass(frozen=True)
class DegreeRow:
    """A degree. m: probes of a round of one class; objective, inner, seconds, error (%): means over the partitions."""

    degree: float
    m: int
    objective: float
    inner: float
    seconds: float
    error: float


@dataclass(frozen=True)
class DegreeTable:
    """A data set. monotone: whether no degree has a higher mean objective than the one before, the last a lower one than the
    first, and each takes more inner problems."""

    data: str
    rows: Sequence[DegreeRow]
    monotone: bool


@dataclass(frozen=True)
class Improvement:
    """A better p of a run. accuracy: % of right test points; p: of the unlabelled points; right: % of p that are true labels."""

    inner: int
    objective: float
    accuracy: float
    right: float
    p: Sequence[int]


@dataclass(frozen=True)
class Found:
    """What a method says of the least objective. value: an objective, or a bound below all of them."""

    method: str
    value: float
    inner: int
    seconds: float


@dataclass(frozen=True)
class Exact:
    """Two moons. regions: of F along a segment; rank: the second largest eigenvalue of differences of neighbouring second
    derivatives, as a share of the largest, at most; least: the least eigenvalue of a second derivative."""

    regions: int
    rank: float
    least: float
    rows: Sequence[Found]


def degree_table(name: str, folder: Path, plan: Plan) -> DegreeTable:
    """`PDMRounds` of five degrees on all partitions, the hidden labels' shares known, from random labels."""
    points = TASKS[name].points(folder, plan.points).some(plan.most)
    parts, rows = [partition(points.y, TASKS[name].per_class, seed) for seed in range(plan.repeats)], []
    for degree in DEGREES:
        found, start = [], time.process_time()
        for k, part in enumerate(parts):
            model = semi_supervised(points, part, SETS[name], PDMRounds(100 * plan.budget, degree), k)
            found.append((model.objective_, model.n_inner_, wrong(model, points, part.test)))
        objective, inner, error = np.mean(found, axis=0).tolist()
        m = round(degree * int((~parts[0].labelled).sum()))
        rows.append(DegreeRow(degree, m, objective, inner, (time.process_time() - start) / len(parts), 100.0 * error))
    rising = any(one.objective > before.objective * (1.0 + 1e-9) or one.inner <= before.inner for before, one in pairwise(rows))
    return DegreeTable(name, rows, not rising and rows[-1].objective < rows[0].objective)


def moons(plan: Plan) -> tuple[SemiSupervisedProblem, Partition, Floats, Any]:
    """(problem of the first partition, partition, k of all points and those to train on, true labels +1 and -1)."""
    points = TASKS["moons"].points(Path(), plan.points)
    part = partition(points.y, TASKS["moons"].per_class, 0)
    gram = np.exp(-((points.X[:, None] - points.X[part.train]) ** 2).sum(-1) / (2.0 * SETS["moons"]))
    truth = 2 * points.y - 1
    positives = int((truth[part.train][~part.labelled] > 0).sum())
    y = np.where(part.labelled, truth[part.train], 0)
    return SemiSupervisedProblem(gram[part.train], y, C1, C2, positives), part, gram, truth


def iterations(plan: Plan, degree: float = 0.1) -> list[Improvement]:
    """One run on two moons from random labels, as in Figure 1."""
    problem, part, gram, truth = moons(plan)
    found, rows = PDMRounds(100 * plan.budget, degree).solve(problem), []
    for row, p in zip(found.history, found.path, strict=True):
        inner = problem.solve(p, tol=1e-8)
        right = float((np.sign(gram[part.test] @ inner.beta + inner.b) == truth[part.test]).mean())
        known = float((np.sign(p - 0.5) == truth[part.train][~part.labelled]).mean())
        rows.append(Improvement(row["inner"], row["objective"], 100.0 * right, 100.0 * known, p.astype(int).tolist()))
    return rows


def exact(plan: Plan) -> Exact:
    """F along a segment between random weights; annealing with steps and without; and bounds of the least objective."""
    problem = moons(plan)[0]
    hessians = [one.region.hessian() for one in along(problem, *np.random.default_rng(0).uniform(0.05, 0.95, (2, problem.u)))]
    changes = [np.sort(np.abs(np.linalg.eigvalsh(after - one))) for one, after in pairwise(hessians)]
    rank = max((float(one[-2] / max(one[-1], 1e-6)) for one in changes), default=0.0)
    rows = []
    for solver in (StagedSearch(plan.budget), Annealing(), PathAnnealing(), BranchAndBound(20 * plan.budget)):
        start, found = time.process_time(), solver.solve(problem)
        bound = solver.name == "branch_and_bound"
        value = found.lower_bound if bound else found.objective
        name = f"{solver.name}{', bound' if bound else ''}"
        rows.append(Found(name, value, found.n_inner, time.process_time() - start))
    for blocks in [m for m in BLOCKS if m <= problem.u]:
        start, least = time.process_time(), block_bound(problem, blocks, 5 * plan.budget)
        rows.append(Found(f"{blocks} blocks, bound", least.value, least.n_inner, time.process_time() - start))
    return Exact(len(hessians), rank, min(float(np.linalg.eigvalsh(one)[0]) for one in hessians), rows)


def degree_lines(table: DegreeTable) -> list[str]:
    """The table for people."""
    said = "never higher" if table.monotone else "NOT always lower"
    return [
        f"Figure 2, {TASKS[table.data].title}: the objective is {said} at a larger m, for more inner problems",
        f"{'m':>5}{'of all':>8}{'objective':>12}{'inner':>9}{'seconds':>9}{'error':>9}",
        *(
            f"{one.m:>5}{one.degree:>8g}{one.objective:>12.4f}{one.inner:>9.0f}{one.seconds:>9.2f}{one.error:>7.1f} %"
            for one in table.rows
        ),
    ]


def iteration_lines(rows: Sequence[Improvement]) -> list[str]:
    """Figure 1 for people."""
    return [
        "Figure 1, two moons, m = 0.1 of the unlabelled points, from random labels (the paper: 48 to 98 % in 12 steps)",
        f"{'inner':>7}{'objective':>12}{'accuracy':>11}{'p right':>10}",
        *(f"{one.inner:>7}{one.objective:>12.4f}{one.accuracy:>9.1f} %{one.right:>8.1f} %" for one in rows),
    ]


def exact_lines(found: Exact) -> list[str]:
    """Theorem 2, annealing and bounds for people."""
    return [
        f"Two moons, F along a segment: {found.regions} regions, curvatures of neighbours rank one apart, to {found.rank:.0e}",
        f"{'method':<26}{'value':>9}{'inner':>9}{'seconds':>9}",
        *(f"{one.method:<26}{one.value:>9.4f}{one.inner:>9}{one.seconds:>9.2f}" for one in found.rows),
    ]
