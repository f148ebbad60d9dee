"""Small tasks, broken and inexact oracles, and hinges by enumeration."""

from typing import Any

import numpy as np

from structpred.core.oracle import Oracle, capabilities
from structpred.data.sequences import PackedSequences
from structpred.features.parts import PartFeatures
from structpred.features.sequences import SequenceFeatures
from structpred.objectives.part_losses import Hamming, LabelCosts
from structpred.oracles.arborescence import ArborescenceOracle
from structpred.oracles.assignment import AssignmentOracle
from structpred.oracles.chain import ChainOracle
from structpred.oracles.enumerated import EnumeratedOracle
from structpred.oracles.multiclass import MulticlassOracle
from structpred.task.task import Task


class Without(EnumeratedOracle):
    """A structure by enumeration that lacks some methods."""

    missing: tuple[str, ...] = ()

    def __getattribute__(self, name: str) -> Any:
        if name in object.__getattribute__(self, "missing"):
            raise AttributeError(name)
        return super().__getattribute__(name)


def without(oracle: Oracle, *missing: str) -> EnumeratedOracle:
    """The structure of an oracle, by enumeration, without the methods named."""
    made = Without.of(oracle)
    made.missing = missing
    return made


class PlainTrees(ArborescenceOracle):
    """Dependency trees with plain queries alone."""

    argmax_constrained = None  # type: ignore[assignment]
    argmax_constrained_bound = None  # type: ignore[assignment]
    kbest = None  # type: ignore[assignment]


DIRECT = ("argmax_product", "argmax_per_loss", "enumerate")
CONSTRAINED = ("argmax_constrained", "argmax_constrained_bound")


def chains(seed: int = 0, n: int = 6, n_labels: int = 3, longest: int = 4, oracle: Oracle | None = None, **options: Any) -> Task:
    """Random sequences, random labels."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, longest + 1, n)
    counts = rng.integers(1, 4, lengths.sum())
    values = rng.normal(size=counts.sum()).astype(np.float32)
    indices = rng.integers(0, 5, counts.sum()).astype(np.int32)
    data = PackedSequences(np.cumsum([0, *counts]), indices, values, np.cumsum([0, *lengths]), 5)
    labels = [rng.integers(0, n_labels, k) for k in lengths]
    shapes = [(int(k), n_labels) for k in lengths]
    features = SequenceFeatures(data, n_labels, dtype=options.pop("dtype", np.float64))
    return Task(features, oracle or ChainOracle(), labels, shapes, options.pop("loss", Hamming()), **options)


def parts_task(seed: int, oracle: Oracle, shape: tuple[int, ...], n: int = 6, d: int = 4, **options: Any) -> Task:
    """Random feature rows per part; the truth is the best output of random scores."""
    rng = np.random.default_rng(seed)
    p = oracle.n_parts(shape)
    rows = [rng.normal(size=(p, d)) for _ in range(n)]
    labels = [oracle.argmax(rng.normal(size=p), shape) for _ in range(n)]
    return Task(PartFeatures(rows), oracle, labels, [shape] * n, options.pop("loss", Hamming()), **options)


def costs(n: int) -> LabelCosts:
    """Label costs that are no whole numbers."""
    matrix = np.random.default_rng(n).uniform(0.2, 3.0, (n, n))
    np.fill_diagonal(matrix, 0.0)
    return LabelCosts(matrix)


def sloppy(oracle: Oracle, bounded: bool) -> Oracle:
    """The structure of an oracle, with an argmax that stops at the second best output, with or without a bound."""

    class Second(EnumeratedOracle):
        exact = False

        def argmax(self, scores: Any, shape: Any) -> Any:
            return self.kbest(scores, shape, 2)[-1]

    class SecondBounded(Second):
        def argmax_bound(self, scores: Any, shape: Any) -> Any:
            best = super(Second, self).argmax(scores, shape)
            value = float(scores[self.parts(best, shape)].sum())
            return self.argmax(scores, shape), value + 0.01 * abs(value)

    made = (SecondBounded if bounded else Second).of(oracle)
    for name in (*DIRECT, *CONSTRAINED):
        setattr(made, name, None)
    return made


def outputs_of(oracle: Any, shape: Any) -> list[Any]:
    """Every output, also where the oracle was made to hide them."""
    return list(oracle.enumerate(shape) if "enumerate" in capabilities(oracle) else oracle.table(shape).labels)


#: name -> a task, all outputs of which can be listed
TASKS = {
    "chains": lambda seed: chains(seed),
    "chains, plain": lambda seed: chains(seed, compiled=False),
    "chains, costs": lambda seed: chains(seed, loss=costs(3)),
    "matchings": lambda seed: parts_task(seed, AssignmentOracle(), (4,)),
    "matchings, plain": lambda seed: parts_task(seed, without(AssignmentOracle(), *DIRECT, *CONSTRAINED, "kbest"), (4,)),
    "matchings, lists": lambda seed: parts_task(seed, without(AssignmentOracle(), *DIRECT, *CONSTRAINED), (4,)),
    "trees": lambda seed: parts_task(seed, PlainTrees(), (3,)),
    "trees, constrained": lambda seed: parts_task(seed, ArborescenceOracle(), (3,)),
    "multiclass": lambda seed: parts_task(seed, MulticlassOracle(), (5,), loss=costs(5)),
    "enumerated": lambda seed: parts_task(seed, EnumeratedOracle.of(AssignmentOracle()), (4,)),
    "enumerated, constrained": lambda seed: parts_task(seed, without(AssignmentOracle(), *DIRECT), (4,)),
    "enumerated, bounded": lambda seed: parts_task(seed, without(AssignmentOracle(), *DIRECT, "argmax_constrained"), (4,)),
    "inexact with bounds": lambda seed: parts_task(seed, sloppy(AssignmentOracle(), True), (4,)),
}


def all_points(task: Task, w: Any, i: int) -> tuple[list[Any], np.ndarray, np.ndarray]:
    """(outputs, h, g) of instance i by enumeration, from the features and the loss themselves."""
    outputs = outputs_of(task.oracle, task.shapes[i])
    c, ell = task.costs(i)
    h = np.array([1.0 - np.asarray(w, float) @ task.difference(i, y).dense(task.dim) for y in outputs])
    g = np.array([c + ell[task.oracle.parts(y, task.shapes[i])].sum() for y in outputs])
    return outputs, h, g


def hinges(task: Task, w: Any) -> np.ndarray:
    """The slack-rescaled hinge of every instance by enumeration."""
    points = [all_points(task, w, i)[1:] for i in range(len(task))]
    return np.array([float((np.maximum(h, 0.0) * g).max()) for h, g in points])


def slack_optimum(task: Task, lam: float) -> tuple[float, np.ndarray]:
    """The optimal value of lam/2 |w|^2 + sum p_i H_i(w) and its w: a quadratic program over all outputs."""
    import cvxpy as cp

    p = task.sample_weight / task.sample_weight.sum()
    w, xi = cp.Variable(task.dim), cp.Variable(len(task), nonneg=True)
    rows, sides, owners = [], [], []
    for i in range(len(task)):
        outputs, _, g = all_points(task, np.zeros(task.dim), i)
        for y, loss in zip(outputs, g, strict=True):
            rows.append(loss * task.difference(i, y).dense(task.dim))
            sides.append(loss)
            owners.append(i)
    objective = cp.Minimize(lam / 2 * cp.sum_squares(w) + p @ xi)
    problem = cp.Problem(objective, [xi[np.array(owners)] >= np.array(sides) - np.array(rows) @ w])
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12)
    return float(problem.value), np.asarray(w.value)
