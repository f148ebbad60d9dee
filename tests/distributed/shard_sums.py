"""The problems of shards put together, and the one problem of all data, side by side."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from structpred.models.sharding import Columns, Sharding, sharding_of, whole_of
from structpred.task.task import Task
from structpred.trainers.shards.rounds import add

Floats = npt.NDArray[np.float64]


class Sharded(NamedTuple):
    """The plan of some shards, the task and the columns of each, and those of all together."""

    plan: Any
    parts: list[tuple[Task, Columns]]
    whole: Columns


def pieces(X: Sequence[Any], y: Sequence[Any], bounds: Sequence[int]) -> list[tuple[Any, Any]]:
    """The data in consecutive pieces."""
    return [(X[a:b], y[a:b]) for a, b in pairwise(bounds)]


def sharded(model: Any, data: Sequence[tuple[Any, Any]], classes: Sequence[Any] | None = None) -> Sharded:
    """Scan all pieces, agree on a plan, and make the tasks."""
    return agreed(sharding_of(model), model, data, classes)


def agreed(sharding: Sharding, model: Any, data: Sequence[tuple[Any, Any]], classes: Sequence[Any] | None = None) -> Sharded:
    """The same in this way."""
    plan = sharding.plan(model, [sharding.scan(model, X, y) for X, y in data], classes)
    parts = [sharding.task(model, plan, X, y) for X, y in data]
    return Sharded(plan, parts, whole_of([columns for _, columns in parts]))


def n_total(made: Sharded) -> float:
    """The sum of the weights of all samples."""
    return float(sum(task.sample_weight.sum() for task, _ in made.parts))


def no_further(model: Any, sharding: Any) -> None:
    """In the place of what trains a second stage, where there is none."""
    raise AssertionError


def sums(made: Sharded, w: Floats, surrogate: Any) -> tuple[float, Floats]:
    """sum_i s_i H_i(w) and its gradient, added over the shards; w: weights of the whole."""
    value, gradient = 0.0, np.zeros(made.whole.dim)
    for task, columns in made.parts:
        at = columns.at(made.whole)
        own, shares = (w if at is None else at.of(w)).astype(task.dtype), task.sample_weight
        if hasattr(surrogate, "gradient"):
            losses, slope = surrogate.gradient(task, own, shares)
        else:
            found = surrogate.terms(task, own, np.arange(len(task)), shares)
            losses, slope = found.violations, -found.difference
        value += float(shares @ losses)
        add(gradient, slope, at)
    return value, gradient


def check_same(one: Sharded, many: Sharded, surrogates: Sequence[Any]) -> None:
    """The same weights occur, and the same objective and gradient come out at some weights."""
    assert one.whole.dim == many.whole.dim
    w = np.random.default_rng(5).normal(size=one.whole.dim)
    for surrogate in surrogates:
        value, gradient = sums(one, w, surrogate)
        other, slope = sums(many, w, surrogate)
        assert value > 0
        np.testing.assert_allclose(other, value, rtol=1e-12)
        np.testing.assert_allclose(slope, gradient, rtol=0, atol=1e-9)
