"""How searches for a violated label compare, and slack with margin rescaling (Choi, Meshi & Srebro 2016, section 5)."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from structpred.core.oracle import Oracle
from structpred.core.sparse import SparseVector
from structpred.evaluation.multilabel import evaluate_hierarchy, evaluate_multilabel
from structpred.io.multilabel.data import MultiLabelData
from structpred.models.fields.label_field import LabelField
from structpred.models.fields.label_graphs import LabelCounts, label_edges
from structpred.objectives.part_losses import Hamming
from structpred.slack.angular import Angle, search_angle
from structpred.slack.ledger import Goal, Ledger
from structpred.slack.problem import Candidate
from structpred.slack.search import SearchResult, search
from structpred.slack.task_problem import TaskProblem
from structpred.task.task import Task
from structpred.trainers.planes.master_qp import Master


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
    of the last fit.
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
    from sklearn.base import clone
    from sklearn.model_selection import GridSearchCV, PredefinedSplit

    folds = PredefinedSplit(np.random.default_rng(0).permutation(len(train.Y)) % n_folds)
    search = GridSearchCV(model, {"C": list(grid)}, cv=folds, refit=False, error_score="raise").fit(train.X, train.Y)
    C = grid[int(search.best_index_)]  # the best mean accuracy over folds; the first of equals
    start = time.process_time()
    fitted = clone(model).set_params(C=C).fit(train.X, train.Y)
    seconds = time.process_time() - start
    predicted = fitted.predict(test.X)
    scores = evaluate_multilabel(test, predicted)
    h_loss = None if test.hierarchy is None else evaluate_hierarchy(test, predicted).h_loss
    return ScoreRow(
        str(model.surrogate), C, scores.accuracy, scores.label_loss, scores.micro_f1, scores.macro_f1, scores.example_f1, h_loss,
        fitted.certificate_.relative_gap, seconds,
    )  # fmt: skip
