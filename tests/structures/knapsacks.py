"""Knapsacks by CP-SAT: the capacity and the weights belong to the instance, and travel in its shape."""

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

import structpred


class Knapsacks(structpred.Oracle):
    """shape = (capacity, weight of item 0, weight of item 1, ...). Part i is on when item i is packed; labels: those packed."""

    def n_parts(self, shape: Any) -> int:
        return len(shape) - 1

    def argmax(self, scores: Any, shape: Any) -> Any:
        from ortools.sat.python import cp_model

        model = cp_model.CpModel()
        packed = [model.new_bool_var("") for _ in scores]
        model.add(sum(w * x for w, x in zip(shape[1:], packed, strict=True)) <= shape[0])
        usable = np.maximum(scores, 0.0)  # leaving an item out costs nothing
        whole = np.rint(2.0**45 * usable / (usable.sum() or 1.0)).astype(np.int64)
        model.maximize(sum(int(s) * x for s, x in zip(whole, packed, strict=True)))
        solver = cp_model.CpSolver()
        solver.parameters.num_workers, solver.parameters.cp_model_presolve = 1, False
        solver.solve(model)
        return np.flatnonzero([solver.value(x) and s > 0.0 for x, s in zip(packed, scores, strict=True)])

    def parts(self, labels: Any, shape: Any) -> Any:
        if (np.diff(labels) <= 0).any() or sum(shape[1:][i] for i in labels) > shape[0]:
            raise ValueError("items ascend and fit into the knapsack")
        return labels

    def enumerate(self, shape: Any) -> Iterator[Any]:
        packings = (np.flatnonzero(bits) for bits in product((0, 1), repeat=len(shape) - 1))
        return (y for y in packings if sum(shape[1:][i] for i in y) <= shape[0])

    @staticmethod
    def example_shapes() -> list[Any]:
        return [(1, 1), (5, 2, 3, 4), (0, 1, 1), (6, 1, 2, 3, 4, 5)]
