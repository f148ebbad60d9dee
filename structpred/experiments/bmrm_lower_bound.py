"""The worst case of bundle methods (Saha, Zhang & Vishwanathan 2009, section 3): a gap of 1 / (2 lam t) after t iterations."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from structpred.core.types import Floats
from structpred.experiments.experiment import Claim, Experiment, Wanted
from structpred.features.parts import PartFeatures
from structpred.objectives.margin import MarginRescaling
from structpred.objectives.part_losses import LabelCosts
from structpred.oracles.multiclass import MulticlassOracle
from structpred.task.task import Task
from structpred.trainers.bmrm import BMRM, most_iterations
from structpred.trainers.ls_bmrm import LineSearchBMRM
from structpred.trainers.planes.bundles import BundleMethod
from structpred.trainers.problem import Problem

PAPER = "Saha, Zhang, Vishwanathan 2009"


@dataclass(frozen=True)
class BoundRow:
    """After t iterations. bound: 1 / (2 lam t). gap, ls_gap: of BMRM and of its line search, with w_0 = 0 among the visited.

    distance: min J(w_t') - J* over t' from 1 to t, BMRM's. printed: the gap of BMRM on the construction as printed.
    """

    t: int
    bound: float
    gap: float
    ls_gap: float
    distance: float
    printed: float


@dataclass(frozen=True)
class BoundTable:
    """d: dimension of the Hadamard construction. error: the largest relative difference between a gap and 1 / (2 lam t)."""

    d: int
    lam: float
    error: float
    rows: Sequence[BoundRow]


def construction(d: int, *, printed: bool = False) -> Floats:
    """The slopes a_i of J(w) = lam/2 |w|^2 + max_i <a_i, w>, as rows: the first d/2 columns of (14), [H; -H] / sqrt d.

    printed: all d columns, [H, -H; -H, H] / sqrt d. These are not orthonormal, as the paper says: column i + d/2 is column i with
    the other sign.
    """
    from scipy.linalg import hadamard

    H = hadamard(d // 2) / np.sqrt(d)
    half = np.vstack((H, -H)).T
    return np.vstack((half, -half)) if printed else half


def worst_case(slopes: Floats, lam: float) -> Problem:
    """J + 2 / lam as a structured problem: one sample, an output for each slope, and the truth, which has no features.

    The constant is the loss of all outputs but the truth. It keeps the hinge away from zero, and gaps do not see it.
    """
    n = len(slopes) + 1
    costs = np.full((n, n), 2.0 / lam)
    np.fill_diagonal(costs, 0.0)
    features = PartFeatures([np.vstack((np.zeros(slopes.shape[1]), slopes))])
    task = Task(features, MulticlassOracle(), [[0]], [(n,)], LabelCosts(costs))
    return Problem(task, MarginRescaling(), lam)


def gaps(problem: Problem, trainer: BundleMethod, iterations: int) -> tuple[list[float], list[float]]:
    """Of each iteration: the certified gap, and J(w_t)."""
    state, found, visited = trainer.init_state(problem), [], []
    for _ in range(iterations):
        state, _ = trainer.update(problem, state, 0)
        primal, dual = trainer.objective(problem, state)
        found.append(primal - dual)
        visited.append(problem.primal(state.w))
    return found, visited


def lower_bound(d: int, lam: float) -> BoundTable:
    """Both methods on the repaired construction, and BMRM on the printed one, for all t < d/2."""
    exact, iterations = BMRM(precision=1e-15 / lam, rough=0.0), d // 2 - 1
    repaired, printed = (worst_case(construction(d, printed=one), lam) for one in (False, True))
    full, visited = gaps(repaired, exact, iterations)
    line, _ = gaps(repaired, LineSearchBMRM(), iterations)
    stopped, _ = gaps(printed, exact, iterations)
    bounds = 1.0 / (2.0 * lam * np.arange(1, iterations + 1))
    optimum = 2.0 / lam - 1.0 / (lam * d)
    distances = np.minimum.accumulate(visited) - optimum
    error = float(np.abs(np.array([full, line]) / bounds - 1.0).max())
    columns: Any = zip(bounds.tolist(), full, line, distances.tolist(), stopped, strict=True)
    return BoundTable(d, lam, error, [BoundRow(t, *row) for t, row in enumerate(columns, 1)])


class LowerBound(Experiment):
    """Show the worst case of bundle methods: after t iterations their gap is 1/(2 lambda t), exactly.

    This is Theorem 6 of Saha, Zhang & Vishwanathan (2009) with its construction repaired. The construction as printed, in the
    last column, is solved after two iterations. Takes a second and needs no data.
    """

    name = "bmrm-lower-bound"
    summary = "The worst case of bundle methods."
    tables = ("worst-case",)

    def run(self, folder: Path, wanted: Wanted) -> BoundTable:
        """The table, for d = 16 if quick, else 64; lam = 0.1."""
        return wanted.kept("table", BoundTable, lambda: lower_bound(16 if wanted.quick else 64, 0.1))

    def text(self, figures: BoundTable) -> str:
        """One line an iteration."""
        lines = [
            f"lambda {figures.lam}, d = {figures.d}: gaps after t iterations; printed: the construction as printed",
            f"{'t':>4} {'1/(2 lambda t)':>18} {'BMRM':>18} {'ls-BMRM':>18} {'min J(w) - J*':>18} {'printed, BMRM':>14}",
        ]
        for row in figures.rows:
            own = f"{row.t:>4} {row.bound:>18.14f} {row.gap:>18.14f} {row.ls_gap:>18.14f}"
            lines.append(f"{own} {row.distance:>18.14f} {row.printed:>14.2g}")
        return "\n".join([*lines, f"largest relative difference from 1/(2 lambda t): {figures.error:.1g}"])

    def claims(self, figures: BoundTable) -> list[Claim]:
        """Theorems 5 and 6, and the construction. No slope is longer than 1 / sqrt 2, and J(0) = 2 / lam."""
        error, lam, last = figures.error, figures.lam, figures.rows[-1]
        most = [most_iterations(row.gap, lam, np.sqrt(0.5), 2.0 / lam) for row in figures.rows]
        solved = next((row.t for row in figures.rows if row.printed < 1e-9), None)
        claims = (
            ("Theorem 5: iterations for a gap, from above", "(13)",
             f"{last.t} of {most[-1]:.0f}",
             all(row.t <= bound for row, bound in zip(figures.rows, most, strict=True))),
            ("Theorem 6: bundle methods need order 1/(lambda eps) iterations", "gap 1/(2 lambda t) or more",
             f"gap 1/(2 lambda t) for t up to {last.t}, to {error:.0e}", error < 1e-9),
            ("the matrix of (14) is such a worst case", f"needs {figures.d // 2} iterations",
             "not solved" if solved is None else f"solved after {solved} iterations", solved is None),
        )  # fmt: skip
        return [Claim(PAPER, *one) for one in claims]
