"""Small training sets of label sets: graphs with edge tables, closed sets and paths."""

import itertools
from typing import Any

import numpy as np
from scipy import sparse

from structpred.data.hierarchy import LabelHierarchy
from structpred.models.fields.estimator import HierarchySharding, LabelScan
from structpred.models.fields.label_field import LabelField
from structpred.models.fields.label_graphs import label_oracle
from structpred.models.fields.multilabel import HierarchicalMultiLabel
from structpred.models.settings import resolve_loss
from structpred.objectives.margin import MarginRescaling
from structpred.task.task import Task
from structpred.trainers.problem import Problem

#: a parent that comes later, a child of a child, and a label of its own
FOREST = LabelHierarchy.from_parents([1, -1, 1, 2, -1])
COSTS = np.array([1.0, 0.5, 2.0, 1.0, 0.25])
KINDS = ("complete", "tree", "none", "closed", "tables", "paths", "nodes", "trees")


def field(kind: str) -> LabelField:
    """The field over five labels and three features."""
    pairs = list(itertools.combinations(range(5), 2))
    edges = {"complete": pairs, "tree": [(0, 2), (1, 2), (2, 4)], "none": []}.get(kind)
    if edges is not None:
        joined = np.array(edges, dtype=np.int64).reshape(-1, 2)
        return LabelField(3, list("abcde"), joined, 1.0, label_oracle(17 if kind == "tree" else 5, joined))
    require = {"paths": "path", "nodes": "node", "trees": "trees"}.get(kind)
    model = HierarchicalMultiLabel(label_weights=COSTS, tables=kind == "tables", scale=None)
    scan = LabelScan(3, list(FOREST.names), None, (None, None), (FOREST, {} if require is None else {require: (0, "")}))
    found = HierarchySharding().plan(model, [scan], None).field
    assert isinstance(found, LabelField)
    return found


def task_of_kind(kind: str, n: int = 14, *, weighted: bool = False, seed: int = 0, **options: Any) -> Task:
    """Labels that depend on features and on each other; one row of features is zero but for the constant."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    X[3] = 0.0
    hidden = X @ rng.normal(size=(3, 5)) + 0.7 * rng.normal(size=(n, 5))
    Y = (hidden > 0.0).astype(np.int64)
    if kind in ("closed", "tables"):
        Y = FOREST.closed(Y).astype(np.int64)
    if kind == "paths":
        leaves = np.array([0, 3, 4])
        Y = FOREST.closed(np.eye(5)[leaves[hidden[:, leaves].argmax(axis=1)]]).astype(np.int64)
    if kind in ("nodes", "trees"):
        Y = hidden > np.sort(hidden, axis=1)[:, -2:-1]
        if kind == "trees":
            Y[:, 4] |= hidden[:, 4] > 0.5
            Y[::5, :4] = False
        Y = FOREST.closed(Y).astype(np.int64)
    made = field(kind)
    inference = made.inference(sparse.csr_array(X))
    weights = rng.integers(0, 4, n).astype(float) if weighted else None
    costs = [COSTS] * n if kind in ("closed", "paths", "nodes", "trees") else None
    return Task(
        inference.features, inference.oracle, list(Y), inference.shapes, resolve_loss("hamming"), token_weights=costs,
        sample_weight=weights, **options,
    )  # fmt: skip


def problem_of_kind(kind: str, lam: float = 0.05, **options: Any) -> Problem:
    """Margin rescaling."""
    return Problem(task_of_kind(kind, **options), MarginRescaling(), lam)
