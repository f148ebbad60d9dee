"""How training with slack rescaling converges, by trainer and search (Choi, Meshi & Srebro 2016, Figure 4 and appendix I)."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, cast

import numpy as np

from structpred.core.weights import Vector
from structpred.evaluation.multilabel import evaluate_multilabel
from structpred.experiments.slack_comparisons import multilabel_task
from structpred.io.multilabel.data import MultiLabelData
from structpred.objectives.margin import MarginRescaling
from structpred.oracles.mrf_enumeration import EnumerationMRF
from structpred.slack.search import SearchResult
from structpred.slack.surrogate import SlackRescaling
from structpred.trainers.loop import RunSettings, train
from structpred.trainers.n_slack import NSlackCuttingPlane
from structpred.trainers.problem import Problem, Surrogate
from structpred.trainers.sgd import SGD

#: what trains with what; Sarawagi's search needs slacks, which SGD has not
SEARCHES = ("angular", "bisecting", "binary", "sarawagi", "margin")
RUNS = [(trainer, search) for trainer in ("n_slack", "sgd") for search in SEARCHES if (trainer, search) != ("sgd", "sarawagi")]


@dataclass(frozen=True)
class Point:
    """After a pass. seconds: CPU time of training. objective: of slack rescaling. error: how far that is above the bound."""

    passes: int
    queries: int
    seconds: float
    objective: float
    error: float
    accuracy: float


@dataclass(frozen=True)
class Course:
    """One run. certified: the gap that the run itself can show, as a share of its own objective; None where it has none."""

    solver: str
    certified: float | None
    points: Sequence[Point]


@dataclass(frozen=True)
class Convergence:
    """All runs on some samples of a data set. bound: no weights have a smaller objective of slack rescaling."""

    data: str
    samples: int
    lam: float
    bound: float
    courses: Sequence[Course]


class _Counted(SlackRescaling):
    """Counts the queries of its searches."""

    queries = 0

    def _searched(self, *args: Any) -> SearchResult:
        result = super()._searched(*args)
        self.queries += result.n_plain + result.n_constrained
        return result


def converge(data: str, some: MultiLabelData, test: MultiLabelData, lam: float, passes: dict[str, int]) -> Convergence:
    """Train by every trainer with every search, and by margin rescaling. passes: at most this many, by trainer.

    After each pass, off the clock, the objective is computed by enumeration and the test set decoded.
    """
    task, tested = multilabel_task(some, EnumerationMRF()), multilabel_task(test, EnumerationMRF())
    truth, bound, found = Problem(task, SlackRescaling("direct"), lam), 0.0, []

    def looked(w: Vector) -> tuple[float, float]:
        labels = [tested.oracle.argmax(tested.scores(w, i), tested.shapes[i]) for i in range(len(test))]
        return truth.primal(w), evaluate_multilabel(test, np.array(labels, np.uint8)).accuracy

    first = task.take([0])
    for one, form in product((NSlackCuttingPlane(), SGD()), (MarginRescaling(), SlackRescaling())):
        train(Problem(first, cast(Surrogate, form), lam), one, RunSettings(max_iter=1))  # kernels are compiled off the clock
    for trainer, search in RUNS:
        surrogate: Surrogate = MarginRescaling() if search == "margin" else _Counted(search)
        rows: list[tuple[int, float, float, float]] = []
        start = [time.process_time()]

        def look(w: Vector, rows: Any = rows, surrogate: Any = surrogate, start: Any = start) -> float:
            now, queries = time.process_time(), getattr(surrogate, "queries", (len(rows) + 1) * len(task))
            rows.append((queries, now - start[0], *looked(w)))
            start[0] += time.process_time() - now
            return float(len(rows))  # the later, the better: the last weights are returned

        settings = RunSettings(passes[trainer], 1e-4, dev=look, check_every=passes[trainer])
        made = NSlackCuttingPlane(precision=1e-3) if trainer == "n_slack" else SGD()
        certificate = train(Problem(task, surrogate, lam), made, settings).certificate
        bound = max(bound, 0.0 if search == "margin" else certificate.dual or 0.0)
        found.append((f"{trainer}, {search}", certificate.relative_gap, rows))
    courses = [
        Course(name, gap, [Point(k, q, s, value, value - bound, acc) for k, (q, s, value, acc) in enumerate(rows, 1)])
        for name, gap, rows in found
    ]
    return Convergence(data, len(task), lam, bound, courses)


def convergence_lines(table: Convergence) -> list[str]:
    """The last point of each course."""
    head = "".join(f"{name:>11}" for name in ("passes", "queries", "CPU s", "objective", "above", "certified", "accuracy"))
    lines = [
        f"Convergence: {table.data}, {table.samples} samples, lambda {table.lam:g}, no objective below {table.bound:.4f}",
        f"{'':<20}{head}",
    ]
    ends = {one.solver: one.points[-1] for one in table.courses}
    for one in table.courses:
        end, certified = ends[one.solver], "" if one.certified is None else f"{100 * one.certified:.2g} %"
        figures = (
            f"{end.passes:>11}{end.queries:>11}{end.seconds:>11.2f}{end.objective:>11.4f}{100 * end.error / table.bound:>9.2f} %"
        )
        lines.append(f"{one.solver:<20}{figures}{certified:>11}{end.accuracy:>11.4f}")
    return lines


def convergence_claims(table: Convergence) -> list[tuple[str, str, str, bool]]:
    """What is printed of Figure 4 and appendix I, and whether it is so here."""
    courses = {one.solver: one.points for one in table.courses}
    first, *others = (courses[f"n_slack, {search}"][-1].objective for search in SEARCHES[:-1])
    old, shares = courses["n_slack, sarawagi"][-1], []
    for what in ("seconds", "queries"):
        at = (getattr(one, what) for one in courses["sgd, angular"] if one.objective <= old.objective)
        shares.append(min(at, default=float("inf")) / getattr(old, what))
    ends = f"{first:.4f}, {min(others):.4f}"
    words = f"in {shares[0]:.2g} of the seconds, {shares[1]:.2g} of the queries" if max(shares) < float("inf") else "never as low"
    return [
        ("Figure 4: training with angular search ends lower", "Figure 4", ends, first < min(others)),
        ("and sooner, with SGD", "ten times", words, max(shares) <= 0.1),
    ]
