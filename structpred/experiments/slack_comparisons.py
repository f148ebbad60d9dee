"""Searches for a violated label, alone and in training; slack and margin rescaling (Choi, Meshi & Srebro 2016, section 5)."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, cast

import numpy as np

from structpred.core.oracle import Oracle
from structpred.core.sparse import SparseVector
from structpred.core.weights import Vector
from structpred.evaluation.multilabel import evaluate_hierarchy, evaluate_multilabel
from structpred.io.multilabel.data import MultiLabelData
from structpred.models.fields.label_field import LabelField
from structpred.models.fields.label_graphs import LabelCounts, label_edges
from structpred.objectives.margin import MarginRescaling
from structpred.objectives.part_losses import Hamming
from structpred.oracles.mrf_enumeration import EnumerationMRF
from structpred.slack.angular import Angle, search_angle
from structpred.slack.ledger import Goal, Ledger
from structpred.slack.problem import Candidate
from structpred.slack.search import SearchResult, search
from structpred.slack.surrogate import SlackRescaling
from structpred.slack.task_problem import TaskProblem
from structpred.task.task import Task
from structpred.trainers.loop import RunSettings, train
from structpred.trainers.n_slack import NSlackCuttingPlane
from structpred.trainers.planes.master_qp import Master
from structpred.trainers.problem import Problem, Surrogate
from structpred.trainers.sgd import SGD


@dataclass(frozen=True)
class SearchRow:
    """One search method over all calls of a training run: the share that found a violated label, and the cost of a call."""

    method: str
    n_calls: int
    success: float
    queries: float
    milliseconds: float


def most_frequent_labels(data: MultiLabelData, n_labels: int) -> MultiLabelData:
    """The same examples with their most frequent labels alone, in the order of the file."""
    if n_labels >= data.Y.shape[1]:
        return data
    kept = np.sort(np.argsort(-data.Y.sum(axis=0, dtype=np.int64), kind="stable")[:n_labels])
    names = [data.label_names[k] for k in kept.tolist()]
    return MultiLabelData(data.X, np.ascontiguousarray(data.Y[:, kept]), names, data.feature_names, None, data.name)


def multilabel_task(data: MultiLabelData, oracle: Oracle) -> Task:
    """Labels as the nodes of a complete graph with two states: a table of weights a label, and one a pair of labels."""
    Y = data.Y.astype(np.int64)
    field = LabelField(data.X.shape[1], data.label_names, label_edges("complete", LabelCounts.of(Y)), 1.0, oracle)
    return Task(field.features(data.X), oracle, list(Y), [field.shape] * len(data), Hamming())


def compare_searches(
    tasks: Mapping[str, Task], lam: float, *, rounds: int = 10, epsilon: float = 0.1, relaxed: bool = False
) -> list[SearchRow]:
    """Section 5.1: n-slack cutting planes whose planes come from the first method; every method is asked at every call.

    tasks: for each method the task that it searches: the same samples, perhaps with another oracle. A call succeeds if the label
    found has Phi > xi_i + epsilon, xi_i the slack of sample i's planes so far; every search is told that goal, and may end where
    nothing exceeds it. Times are CPU times of the search alone, without the scores of the parts. Searches over the relaxation
    end within 0.1 % or 1e-4, angular search begins as in Theorem 5. Training ends before `rounds` where nothing is violated.
    """
    first = next(iter(tasks))
    task = tasks[first]
    n, share = len(task), 1.0 / len(task)
    costs = {method: np.zeros(3) for method in tasks}  # violated outputs found, queries, milliseconds
    calls = 0
    master, w = Master.empty(n), np.zeros(task.dim)
    for _ in range(rounds):
        slacks = master.slacks(lam) / share
        planes: list[tuple[int, SparseVector, float]] = []
        for i in range(n):
            goal, calls = float(slacks[i]) + epsilon, calls + 1
            for method, searched in tasks.items():
                problem = TaskProblem(searched, w, i, relaxed=relaxed)
                start = time.process_time()
                best, queries = _searched(problem, method, goal)
                violated = bool(best.phi > goal)
                costs[method] += violated, queries, 1e3 * (time.process_time() - start)
                if violated and method == first:
                    psi = problem.difference(best.label)
                    planes.append((i, SparseVector(psi.indices, share * best.g * psi.values), share * best.g))
        if not planes:
            break
        master = master.add(planes, task.dim).solve(lam, 1e-7 * share)
        w = master.weights(lam, task.dim)
    return [SearchRow(method, calls, *(cost / calls).tolist()) for method, cost in costs.items()]


def _searched(problem: TaskProblem, method: str, goal: float) -> tuple[Candidate | SearchResult, int]:
    """(label, Phi and g of what was found, number of queries)."""
    rel, most = (1e-3, 1e-4) if problem.relaxed else (0.0, 0.0)
    if problem.relaxed and method == "angular":
        # over a closed set: only slopes from goal / H^2 to G^2 / goal, which hold every Phi > goal (Theorem 5)
        ledger = Ledger(problem, Goal(rel=rel, abs=most))
        H, G = ledger.plain(1e-9).h, float(problem.shape[0])
        search_angle(ledger, Angle(goal / H**2, G**2 / goal, True, (), np.inf), H / G)
        return ledger.best, ledger.n_plain + ledger.n_constrained
    found = search(problem, method, threshold=goal, rel=rel, abs=most)
    return found, found.n_plain + found.n_constrained


@dataclass(frozen=True)
class ScoreRow:
    """What one surrogate reaches on the test set with the C that cross-validation on the training set chose.

    gap: of training, as a share of the primal. h_loss: with a hierarchy (see evaluate_hierarchy), else None. seconds: CPU time
    of the last training.
    """

    surrogate: str
    C: float
    accuracy: float
    label_loss: float
    micro_f1: float
    macro_f1: float
    example_f1: float
    h_loss: float | None
    gap: float | None
    seconds: float


def score_surrogate(model: Any, train: MultiLabelData, test: MultiLabelData, grid: Sequence[float], n_folds: int = 3) -> ScoreRow:
    """Choose C on the training set alone, fit with it, and score on the test set."""
    from sklearn.model_selection import GridSearchCV, PredefinedSplit

    folds = PredefinedSplit(np.random.default_rng(0).permutation(len(train.Y)) % n_folds)
    search = GridSearchCV(model, {"C": list(grid)}, cv=folds, error_score="raise").fit(train.X, train.Y)
    fitted = search.best_estimator_  # of the best mean accuracy over folds; of equal ones the first C
    predicted = fitted.predict(test.X)
    scores = evaluate_multilabel(test, predicted)
    h_loss = None if test.hierarchy is None else evaluate_hierarchy(test, predicted).h_loss
    return ScoreRow(
        str(model.surrogate), fitted.C, scores.accuracy, scores.label_loss, scores.micro_f1, scores.macro_f1, scores.example_f1,
        h_loss, fitted.certificate_.relative_gap, fitted.history_[-1]["cpu_seconds"],
    )  # fmt: skip


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
    for trainer, method in RUNS:
        surrogate: Surrogate = MarginRescaling() if method == "margin" else _Counted(method)
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
        bound = max(bound, 0.0 if method == "margin" else certificate.dual or 0.0)
        found.append((f"{trainer}, {method}", certificate.relative_gap, rows))
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
