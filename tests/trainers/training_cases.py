"""Small training problems that the trainers' tests share, and a chain oracle in plain Python."""

import numpy as np

from structpred.core.oracle import Oracle
from structpred.data.sequences import PackedSequences
from structpred.features.parts import PartFeatures
from structpred.features.sequences import SequenceFeatures
from structpred.objectives.log_loss import LogLoss
from structpred.objectives.margin import MarginRescaling
from structpred.objectives.part_losses import Hamming, LabelCosts
from structpred.oracles.assignment import AssignmentOracle
from structpred.oracles.chain import ChainOracle
from structpred.oracles.multiclass import MulticlassOracle
from structpred.task.task import Task
from structpred.trainers.bcfw import BCFW
from structpred.trainers.bmrm import BMRM
from structpred.trainers.corrective import Corrective
from structpred.trainers.lbfgs import LBFGS
from structpred.trainers.ls_bmrm import LineSearchBMRM
from structpred.trainers.mira import MIRA
from structpred.trainers.n_slack import NSlackCuttingPlane
from structpred.trainers.oeg import OnlineEG
from structpred.trainers.one_slack import OneSlackCuttingPlane
from structpred.trainers.perceptron import AveragedPerceptron
from structpred.trainers.pragam import Pragam
from structpred.trainers.problem import Problem
from structpred.trainers.proximal import OnlineProximal
from structpred.trainers.sgd import SGD

TRAINERS = {
    "perceptron": AveragedPerceptron,
    "sgd": SGD,
    "sgd-last": lambda: SGD(averaged=False),
    "mira": MIRA,
    "bcfw": BCFW,
    "bcfw-last": lambda: BCFW(averaged=False),
    "bcfw-gaps": lambda: BCFW(gap_sampling=True),
    "corrective": lambda: Corrective(corners=4, cached_passes=2),
    "n-slack": NSlackCuttingPlane,
    "one-slack": OneSlackCuttingPlane,
    "proximal": OnlineProximal,
    "proximal-averaged": lambda: OnlineProximal(averaged=True),
}

#: trainers whose pass is one step, over all samples at once
BULK = {"bmrm": BMRM, "ls-bmrm": LineSearchBMRM, "pragam": Pragam}

#: trainers of the log loss
SMOOTH = {"oeg": OnlineEG, "lbfgs": LBFGS, "sgd-log": SGD}


class PlainChain(Oracle):
    """Chains in plain Python: the three obligatory methods and a label grid, nothing compiled."""

    def n_parts(self, shape):
        return shape[0] * shape[1] + shape[1] ** 2

    def argmax(self, scores, shape):
        length, n_labels = shape
        node, edge = scores[: length * n_labels].reshape(shape), scores[length * n_labels :].reshape(n_labels, n_labels)
        alpha, back = node[0], []
        for t in range(1, length):
            paths = alpha[:, None] + edge
            back.append(paths.argmax(axis=0))
            alpha = paths.max(axis=0) + node[t]
        labels = [int(alpha.argmax())]
        for pointers in reversed(back):
            labels.append(int(pointers[labels[-1]]))
        return np.array(labels[::-1], dtype=np.int64)

    def parts(self, labels, shape):
        length, n_labels = shape
        if labels.shape != (length,) or not 0 <= labels.min() <= labels.max() < n_labels:
            raise ValueError(f"expected {length} labels below {n_labels}, got {labels}")
        return np.concatenate((np.arange(length) * n_labels + labels, (length + labels[:-1]) * n_labels + labels[1:]))

    def label_grid(self, shape):
        return shape

    @staticmethod
    def example_shapes():
        return [(1, 2), (3, 3)]


def sequences(rng, n, n_features=12, longest=6, exact=False):
    """n random sequences with one to four features a token; with whole-number values if `exact`."""
    lengths = rng.integers(1, longest + 1, n)
    counts = rng.integers(1, 5, lengths.sum())
    indices = rng.integers(0, n_features, counts.sum()).astype(np.int32)
    values = np.ones(counts.sum()) if exact else rng.normal(size=counts.sum())
    indptr, offsets = np.cumsum([0, *counts]), np.cumsum([0, *lengths])
    return PackedSequences(indptr, indices, values.astype(np.float32), offsets, n_features)


def chain_task(seed=0, n=15, n_labels=3, *, oracle=None, dtype=np.float64, loss=None, weighted=False, compiled=True, longest=6):
    """A random chain problem; `weighted`: with token and sample weights."""
    rng = np.random.default_rng(seed)
    data = sequences(rng, n, longest=longest)
    lengths = np.diff(data.offsets)
    labels = [rng.integers(0, n_labels, k) for k in lengths]
    return Task(
        SequenceFeatures(data, n_labels, dtype=dtype),
        oracle or ChainOracle(),
        labels,
        [(int(k), n_labels) for k in lengths],
        loss or Hamming(),
        token_weights=[rng.uniform(0.3, 2.0, k) for k in lengths] if weighted else None,
        sample_weight=rng.uniform(0.3, 2.0, n) if weighted else None,
        compiled=compiled,
    )


def multiclass_task(seed=0, n=20, n_labels=4, d=3, **options):
    """Each label has its own block of weights."""
    rng = np.random.default_rng(seed)
    rows = [np.kron(np.eye(n_labels), rng.normal(size=d)) for _ in range(n)]
    labels = [[y] for y in rng.integers(0, n_labels, n)]
    loss = LabelCosts(np.abs(np.subtract.outer(range(n_labels), range(n_labels))))
    return Task(PartFeatures(rows), MulticlassOracle(), labels, [(n_labels,)] * n, loss, **options)


def assignment_task(seed=0, n=10, size=3, d=4, **options):
    """Matchings of `size` pairs with d features a pair."""
    rng = np.random.default_rng(seed)
    rows = [rng.normal(size=(size**2, d)) for _ in range(n)]
    labels = [rng.permutation(size) for _ in range(n)]
    return Task(PartFeatures(rows), AssignmentOracle(), labels, [(size,)] * n, Hamming(), **options)


TASKS = {"chain": chain_task, "multiclass": multiclass_task, "assignment": assignment_task}


def problem(task, lam=0.1, loss_weight=1.0):
    """The margin-rescaled problem of a task."""
    return Problem(task, MarginRescaling(loss_weight), lam)


def log_problem(task, lam=0.1):
    """The problem of a conditional random field."""
    return Problem(task, LogLoss(), lam)


def log_optimum(task, lam):
    """The optimal value of lam/2 |w|^2 + sum p_i log-loss_i(w) and its w: all outputs listed, minimised by SciPy."""
    from scipy.optimize import minimize
    from scipy.special import logsumexp

    p = task.sample_weight / task.sample_weight.sum()
    tables = []
    for i, shape in enumerate(task.shapes):
        tables.append(np.array([-task.difference(i, y).dense(task.dim) for y in task.oracle.enumerate(shape)]))

    def value_and_gradient(w):
        value, gradient = lam / 2 * w @ w, lam * w
        for share, rows in zip(p, tables, strict=True):
            scores = rows @ w
            log_z = logsumexp(scores)
            value += share * log_z
            gradient = gradient + share * (np.exp(scores - log_z) @ rows)
        return value, gradient

    options = {"maxiter": 5000, "maxfun": 20000, "ftol": 1e-16, "gtol": 1e-11, "maxcor": 30}
    found = minimize(value_and_gradient, np.zeros(task.dim), jac=True, method="L-BFGS-B", options=options)
    return float(found.fun), found.x


def optimum(task, lam, r=None):
    """The optimal value of lam r(w) + sum p_i H_i(w) and its w, as a convex program over all outputs of all samples.

    r: of a cvxpy variable, 1/2 |w|^2 unless given.
    """
    import cvxpy as cp

    p = task.sample_weight / task.sample_weight.sum()
    w, slack = cp.Variable(task.dim), cp.Variable(len(task))
    rows, sides, owners = [], [], []
    for i, shape in enumerate(task.shapes):
        constant, ell = task.costs(i)
        for y in task.oracle.enumerate(shape):
            rows.append(task.difference(i, y).dense(task.dim))
            sides.append(constant + ell[task.oracle.parts(y, shape)].sum())
            owners.append(i)
    constraint = slack[np.array(owners)] >= np.array(sides) - np.array(rows) @ w
    regulariser = cp.sum_squares(w) / 2 if r is None else r(w)
    objective = cp.Problem(cp.Minimize(lam * regulariser + p @ slack), [constraint])
    options = {name: 1e-12 for name in ("tol_gap_abs", "tol_gap_rel", "tol_feas")}
    objective.solve(solver=cp.CLARABEL, **options)
    return float(objective.value), np.asarray(w.value)
