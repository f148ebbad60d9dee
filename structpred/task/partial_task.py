"""A training set of which some outputs are known only in part: what is known rules parts out, by fixed scores.

For instance i of `rows` the truth is some output of the set A_i that its fixed scores of -1e30 leave; every other instance has
labels as in any task. No oracle has to know: a constrained argmax, or log partition function, is one at other scores.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, TypeGuard

import numpy as np

from structpred.core.costs import Cost, GridCosts, PartCosts, TaskCosts, each_loss
from structpred.core.feature_map import FeatureMap
from structpred.core.fixed_scores import forbidden_parts
from structpred.core.oracle import Labels, Oracle, Shape
from structpred.core.sparse import coalesced
from structpred.core.types import ArrayLike, Flags, Integers
from structpred.core.weights import Vector
from structpred.errors import DataError, InfeasibleError, LossError, ParameterError
from structpred.task.inference import Inference
from structpred.task.instance_subset import checked_rows
from structpred.task.steps import Step, TaskLike, offers
from structpred.task.task import Task
from structpred.task.task_checks import true_parts


class PartialTask(Task):
    """A task whose gold is, for some instances, a set of outputs (Yu & Joachims 2009: observed and latent parts).

    What is not known costs nothing: the loss of an output does not depend on how the truth is completed. On a label grid it
    is, at each position, the least cost from any label that the position may have. Elsewhere the loss answers itself, by
    `allowed_costs`.

    Parameters
    ----------
    labels
        As for Task; those of `rows` are not looked at.
    allowed : FeatureMap
        The features of `rows` alone, with fixed scores of -1e30 on what their labels rule out.
    rows : ndarray of int64
        The instances that are known in part, ascending.
    asks_costs : bool
        False where what is minimised has no costs, as the log loss: then no loss has to answer what it cannot.

    Attributes
    ----------
    allowed : Task
        These instances with their fixed scores: its log losses are less than the task's by -log p(A_i | x_i).

    Raises
    ------
    InfeasibleError
        Where an instance is left no output; it names the sample.
    """

    capabilities = frozenset({"parts", "missing"})

    def __init__(
        self, features: FeatureMap, oracle: Oracle, labels: Sequence[ArrayLike], shapes: Sequence[Shape], loss: Cost, *,
        allowed: FeatureMap, rows: ArrayLike, asks_costs: bool = True, token_weights: Sequence[ArrayLike] | None = None,
        sample_weight: ArrayLike | None = None, compiled: bool = True, n_jobs: int = 1,
    ) -> None:  # fmt: skip
        self.rows, self._asks_costs = checked_rows(rows, len(shapes)), asks_costs
        of_rows, options = [shapes[i] for i in self.rows.tolist()], {"compiled": compiled, "n_jobs": n_jobs}
        inference = Inference(allowed, oracle, of_rows, **options)  # type: ignore[arg-type]
        with _numbered(self.rows):
            inference.check_shapes()
            found = inference.outputs(np.zeros(allowed.dim, allowed.dtype))
            self.allowed = Task(allowed, oracle, found, of_rows, _Free(), **options)  # type: ignore[arg-type]
        known = list(labels)
        for i, y in zip(self.rows.tolist(), found, strict=True):
            known[i] = y
        weights = {"token_weights": token_weights, "sample_weight": sample_weight}
        super().__init__(features, oracle, known, shapes, loss, **weights, **options)  # type: ignore[arg-type]

    def _asked_costs(self, sizes: list[int]) -> TaskCosts:
        """Free positions get no weight, and those with some of the labels a row of costs; without positions, costs of parts."""
        grid, weights = getattr(self.oracle, "label_grid", None), self.token_weights
        given, choices = dict[int, PartCosts](), dict[int, Flags]()
        loss_of = each_loss(self.loss)
        for k, i in enumerate(self.rows.tolist()):
            forbidden, barred = self._ruled_out(k)
            answer = loss_of(i).costs(self.labels[i], self.shapes[i], self.oracle)
            if grid is None or not isinstance(answer, GridCosts):
                given[i] = self._part_costs(i, forbidden & ~barred)
                continue
            if weights is None:
                weights = [np.ones(grid(shape)[0]) for shape in self.shapes]
            n_positions, n_labels = grid(self.shapes[i])
            cells = slice(0, n_positions * n_labels)
            out, own = (mask[cells].reshape(n_positions, n_labels) for mask in (forbidden, forbidden & ~barred))
            several = own.any(axis=1) & (np.count_nonzero(~out, axis=1) > 1)
            if several.any():
                choices[i] = np.where(several[:, None], ~out, np.eye(n_labels, dtype=np.bool_)[self.labels[i]])
            weights[i] = weights[i] * own.any(axis=1)
        self.token_weights = weights
        costs = TaskCosts(self.loss, self.oracle, self.labels, self.shapes, self.parts, sizes, weights, given)
        return costs.with_choices(choices) if choices else costs

    def _ruled_out(self, k: int) -> tuple[Flags, Flags]:
        """The parts that instance rows[k] cannot have, and those that no output of its shape may have anyway."""
        size = int(self.allowed.inference.sizes[k])
        base = self.features.fixed_scores(int(self.rows[k]))
        return forbidden_parts(self.allowed.features.fixed_scores(k), size), forbidden_parts(base, size)

    def _part_costs(self, i: int, ruled_out: Flags) -> PartCosts:
        name, own = type(self.loss).__name__, getattr(self.loss, "allowed_costs", None)
        if self.token_weights is not None:
            raise ParameterError(f"token weights need positions with costs of labels, and {name} gives costs of parts instead")
        if own is None and not self._asks_costs:
            return PartCosts(0.0, np.zeros(len(ruled_out)))
        if own is None:
            raise ParameterError(
                f"sample {i}: the true output is known in part, and the part costs of {name} depend on all of it; take "
                "loss='hamming' or 'extra_parts', add allowed_costs(ruled_out, shape, oracle) -> PartCosts to your loss, or take "
                "surrogate='log', which has no costs"
            )
        answer: PartCosts = own(ruled_out, self.shapes[i], self.oracle)
        costs = np.asarray(answer.costs, dtype=np.float64)
        if costs.shape != ruled_out.shape or not np.isfinite(costs).all() or (costs < 0).any() or costs[~ruled_out].any():
            raise LossError(
                f"sample {i}: {name}.allowed_costs: expected costs >= 0 of the parts that are ruled out, and no others"
            )
        return PartCosts(0.0, costs)

    def completed(self, w: Vector) -> list[Labels]:
        """The outputs that agree with what is known and score highest at w."""
        labels: list[Labels] = list(self.labels)
        with _numbered(self.rows):
            for i, y in zip(self.rows.tolist(), self.allowed.inference.outputs(w), strict=True):
                labels[i] = y
        return labels

    def with_labels(self, labels: Sequence[ArrayLike]) -> Task:
        """The task in which these outputs are the true ones, with the costs of this task; features are shared.

        Raises DataError, naming the sample, for outputs that what is known rules out.
        """
        if len(labels) != len(self):
            raise DataError(f"{len(self)} samples but {len(labels)} labellings")
        new = object.__new__(Task)
        new.__dict__.update({name: value for name, value in vars(self).items() if name not in ("rows", "allowed")})
        new.labels = [np.ascontiguousarray(y, dtype=np.int64) for y in labels]
        for i, (own, y) in enumerate(zip(self.labels, new.labels, strict=True)):
            if not np.array_equal(own, y) and i not in self._place:
                raise DataError(f"sample {i}: expected the labels that are known, got {np.array2string(y, threshold=8)}")
        rows = self.rows.tolist()
        found = true_parts(
            self.oracle, [new.labels[i] for i in rows], [self.shapes[i] for i in rows], self.inference.sizes[self.rows]
        )
        new.parts = list(self.parts)
        for k, (i, parts) in enumerate(zip(rows, found, strict=True)):
            if self._ruled_out(k)[0][parts].any():
                raise DataError(f"sample {i}: the labels are not among those that what is known allows")
            new.parts[i] = parts
        new._costs = self._costs.relabelled(new.labels)
        new._make_steps()
        return new

    @cached_property
    def _place(self) -> dict[int, int]:
        """The row of an instance in `allowed`."""
        return {i: k for k, i in enumerate(self.rows.tolist())}

    def place(self, i: int) -> int | None:
        """The number of instance i in `allowed`; None where its output is known."""
        return self._place.get(i)

    def take(self, rows: ArrayLike) -> Task:
        """As Task.take; a plain task where no instance is known in part."""
        at = checked_rows(rows, len(self))
        new = super().take(at)
        assert isinstance(new, PartialTask)
        vars(new).pop("_place", None)
        places = [self._place.get(i, -1) for i in at.tolist()]
        new.rows = np.flatnonzero(np.array(places) >= 0)
        if not len(new.rows):
            plain = object.__new__(Task)
            plain.__dict__.update({name: value for name, value in vars(new).items() if name not in ("rows", "allowed")})
            return plain
        new.allowed = self.allowed.take([k for k in places if k >= 0])
        return new

    def fingerprint(self) -> str:
        """That of a task, and of what is known of the others."""
        return f"{super().fingerprint()}-{self.allowed.fingerprint()}"


class _Free:
    """The loss of the constrained task, in which nothing costs anything."""

    def costs(self, labels: Labels, shape: Shape, oracle: Oracle) -> GridCosts | PartCosts:
        """Nothing."""
        return GridCosts(0.0) if hasattr(oracle, "label_grid") else PartCosts(0.0, np.zeros(oracle.n_parts(shape)))


@contextmanager
def _numbered(rows: Integers) -> Iterator[None]:
    """Errors about sample k of the constrained task are about sample rows[k]."""
    try:
        yield
    except (InfeasibleError, DataError) as error:
        message = re.sub(r"^sample (\d+)", lambda found: f"sample {rows[int(found[1])]}", str(error))
        raise type(error)(message) from error


def is_partial(task: Any) -> TypeGuard[PartialTask]:
    """Whether some outputs of a task are known in part only."""
    return offers(task, "missing")


def less_known(whole: Step, task: TaskLike, i: int, ask: Callable[[Task, int], Step]) -> Step:
    """The step of instance i less what `ask` says of it in the task of what is known; `whole` itself where all of it is known.

    Both are differences from one and the same completion, which cancels.
    """
    if not is_partial(task) or (k := task.place(i)) is None:
        return whole
    indices, values = whole.difference.indices.copy(), whole.difference.values.copy()  # good until the next step
    own = ask(task.allowed, k)
    both = coalesced(np.concatenate((indices, own.difference.indices)), np.concatenate((values, -own.difference.values)))
    value = max(whole.violation - own.violation, 0.0)  # rounding may leave -1e-16
    return Step(both, whole.loss, value, max(whole.bound - own.violation, value))
