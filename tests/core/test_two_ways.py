"""A step knows by how much outputs differ in score in two ways, from parts and from features: maps that lie are named."""

from itertools import combinations
from typing import Any

import numpy as np
import pytest

from structpred.core.group_scales import GroupScales
from structpred.core.oracle import Oracle
from structpred.core.sparse import SparseVector
from structpred.errors import OracleError
from structpred.features.parts import PartFeatures
from structpred.objectives.part_losses import ExtraParts
from structpred.oracles.chain import ChainOracle
from structpred.slack.task_problem import TaskProblem
from structpred.task.task import Task


class AtMostTwo(Oracle):
    """At most two of n parts."""

    def n_parts(self, shape: Any) -> int:
        return int(shape[0])

    def enumerate(self, shape: Any) -> Any:
        return [np.array(some, dtype=np.int64) for k in range(3) for some in combinations(range(shape[0]), k)]

    def argmax(self, scores: Any, shape: Any) -> Any:
        return max(self.enumerate(shape), key=lambda y: scores[y].sum())

    def parts(self, labels: Any, shape: Any) -> Any:
        return labels

    def marginals(self, scores: Any, shape: Any) -> Any:
        outputs = self.enumerate(shape)
        values = np.array([scores[y].sum() for y in outputs])
        shares, mu = np.exp(values - values.max()), np.zeros(len(scores))
        for y, share in zip(outputs, shares / shares.sum(), strict=True):
            mu[y] += share
        return values.max() + np.log(shares.sum()), mu

    @staticmethod
    def example_shapes() -> Any:
        return [(3,), (5,)]


class Plain(PartFeatures):
    """Single calls alone."""

    score_block = adjoint_block = None  # type: ignore[assignment]


class Times(Plain):
    """An adjoint that is too large, for one sample or for all."""

    factor, which = 1.0, None

    def adjoint(self, i: int, parts: Any, counts: Any) -> SparseVector:
        found = super().adjoint(i, parts, counts)
        return SparseVector(found.indices, found.values * (self.factor if self.which in (None, i) else 1.0))


class Short(Times):
    """Of all samples."""

    factor = 0.9


class Twice(Times):
    """Of one."""

    factor, which = 2.0, 3


class Little(Times):
    """By little."""

    factor = 1.0001


class Clipped(Plain):
    """Scores that are not linear."""

    def scores(self, w: Any, i: int) -> Any:
        return np.maximum(super().scores(w, i), 0.0)


class Dropout(Plain):
    """Scores of half the weights, others in each call."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.rng = np.random.default_rng(0)

    def scores(self, w: Any, i: int) -> Any:
        return super().scores(w * (self.rng.random(len(w)) < 0.5), i)


class Changing(Plain):
    """Features that change between two calls."""

    def adjoint(self, i: int, parts: Any, counts: Any) -> SparseVector:
        self.values *= 1.5
        return super().adjoint(i, parts, counts)


class Beyond(Plain):
    """A feature that has no weight."""

    def adjoint(self, i: int, parts: Any, counts: Any) -> SparseVector:
        found = super().adjoint(i, parts, counts)
        return SparseVector(np.append(found.indices, self.dim + 1_000_000), np.append(found.values, 1.0))


class Thrice(PartFeatures):
    """Blocks have other scores than single calls."""

    def score_block(self, w: Any, scale: float, start: int, stop: int, places: Any, out: Any) -> None:
        super().score_block(w, 3.0 * scale, start, stop, places, out)


class Half(PartFeatures):
    """Blocks have other differences than single calls, for one sample."""

    def adjoint_block(self, start: int, parts: Any, counts: Any, ends: Any) -> Any:
        indices, values, at = super().adjoint_block(start, parts, counts, ends)
        values[at[3] : at[4]] *= 0.5
        return indices, values, at


def sets(kind: type = Plain, scale: float = 1.0, **settings: Any) -> Task:
    """Five instances of at most two of five."""
    rng = np.random.default_rng(0)
    features = kind([scale * rng.normal(size=(5, 8)) for _ in range(5)])
    return Task(features, AtMostTwo(), [np.array([k, k + 1]) % 5 for k in (0, 1, 2, 3, 0)], [(5,)] * 5, ExtraParts(), **settings)


def chains(kind: type = PartFeatures, **settings: Any) -> Task:
    """Five chains, whose steps and sums run by blocks."""
    rng = np.random.default_rng(1)
    features = kind([rng.normal(size=(3 * 4 + 9, 6)) for _ in range(5)])
    return Task(features, ChainOracle(), [rng.integers(0, 3, 4) for _ in range(5)], [(4, 3)] * 5, ExtraParts(), **settings)


def weights(task: Task) -> Any:
    """Some of them."""
    return np.random.default_rng(2).normal(size=task.dim).astype(task.dtype)


@pytest.mark.parametrize("kind", [Short, Twice, Little, Clipped, Dropout, Changing, Beyond])
def test_single_steps_name_a_map_that_lies(kind: type) -> None:
    """Margin, soft and slack steps, at any scale, name sample and map: of a wrong adjoint, of one sample too, and random ones."""
    for step in (
        lambda task, w, i: task.step(w, i, 1.0),
        lambda task, w, i: task.soft_step(w, i),
        lambda task, w, i: TaskProblem(task, w, i).difference(task.labels[(i + 2) % 5]),
        lambda task, w, i: task.step(w, i, 1.0, 0.5),
        lambda task, w, i: task.step(w, i, 1.0, GroupScales(np.array([0, 8]), np.array([0.7]))),
    ):
        task = sets(kind)
        with pytest.raises(OracleError, match=rf"sample {3 if kind is Twice else '.'}: .*{kind.__name__}\.(scores|adjoint)"):
            _ = [step(task, weights(task), i) for i in range(5)]


@pytest.mark.parametrize(("kind", "sample"), [(Thrice, 0), (Half, 3)])
def test_blocks_name_a_map_whose_blocks_lie(kind: type, sample: int) -> None:
    """Sweeps, bulk terms and log losses by blocks name the sample where calls for blocks are not what single calls are."""
    task = chains(kind)
    w = weights(task)
    for call in (
        lambda: task.violations(w, 1.0),
        lambda: task.terms(w, range(5)),
        lambda: task.log_losses(w, np.ones(5)),
    ):
        with pytest.raises(OracleError, match=rf"sample {sample}: .*{kind.__name__}.*check_feature_map"):
            call()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_rounding_is_no_lie(dtype: Any, scale: float) -> None:
    """Maps that are right pass at features from 1e-12 to 1e12, with float32 weights, and where a large feature cancels."""
    rng = np.random.default_rng(3)
    rows = [np.hstack((scale * rng.normal(size=(5, 8)), np.full((5, 1), 1e4 * scale))) for _ in range(20)]
    task = Task(Plain(rows, dtype=dtype), AtMostTwo(), [np.array([0, 1])] * 20, [(5,)] * 20, ExtraParts())
    for seed in range(3):
        w = np.random.default_rng(seed).normal(size=task.dim).astype(dtype)
        for i in range(20):
            task.step(w, i, 1.0)
            task.step(w, i, 1.0, 1e-3)


class Sum32(Plain):
    """Scores added up in float32, of features that all but cancel."""

    def scores(self, w: Any, i: int) -> Any:
        rows = np.zeros((self.n_parts(i), self.dim), np.float32)
        at = np.repeat(np.arange(len(rows)), np.diff(self.indptr[self.offsets[i] : self.offsets[i + 1] + 1]))
        here = slice(self.indptr[self.offsets[i]], self.indptr[self.offsets[i + 1]])
        rows[at, self.indices[here]] = self.values[here]
        return (rows @ w.astype(np.float32)).astype(np.float64)


def test_what_cancels_within_a_part_is_no_lie() -> None:
    """A map that adds in float32 passes where its terms are a thousand times as large as their sum."""
    rng = np.random.default_rng(4)
    rows = [np.hstack((rng.normal(size=(5, 4)), base, -base)) for base in 1e4 * rng.normal(size=(5, 5, 1))]
    task = Task(Sum32(rows), AtMostTwo(), [np.array([0, 1])] * 5, [(5,)] * 5, ExtraParts())
    for i in range(5):
        task.step(np.ones(6) / 3.0, i, 1.0)


def test_fixed_scores_are_no_lie() -> None:
    """Fixed scores, which no feature explains, pass in soft steps: priors as well as what is forbidden."""
    rng = np.random.default_rng(5)

    class Fixed(Plain):
        def fixed_scores(self, i: int) -> Any:
            return np.array([5.0, -3.0, 0.0, 2.0, -1e30])

    task = Task(Fixed([rng.normal(size=(5, 8)) for _ in range(5)]), AtMostTwo(), [np.array([0, 1])] * 5, [(5,)] * 5, ExtraParts())
    for i in range(5):
        task.soft_step(weights(task), i)
    task.step(weights(task), 0, 1.0)
