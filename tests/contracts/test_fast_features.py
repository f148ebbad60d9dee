"""check_feature_map tries every sample, and each faster call of a feature map beside the plain one that it stands in for."""

import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from structpred.contracts.checks import check_feature_map
from structpred.core.feature_map import FeatureMap
from structpred.core.sparse import SparseVector
from structpred.errors import OracleError
from structpred.features.parts import PartFeatures
from structpred.objectives.regularisers.l2 import L2
from structpred.task.instance_subset import AddedScores, InstanceSubset

sys.path.insert(0, str(Path(__file__).parents[1] / "trainers"))
import kernel_cases


class Plain(FeatureMap):
    """Three weights, shared by all parts: what a user writes, in plain NumPy."""

    def __init__(self, n: int = 40) -> None:
        self.rows = np.random.default_rng(0).normal(size=(n, 4, 3))
        self.dim, self.dtype, self.groups = 3, np.dtype(np.float64), np.array([0, 1, 3])

    def __len__(self):
        return len(self.rows)

    def n_parts(self, i):
        return 4

    def scores(self, w, i):
        return self.rows[i] @ w.astype(np.float64)

    def adjoint(self, i, parts, counts):
        found = counts @ self.rows[i, parts]
        at = np.flatnonzero(found)
        return SparseVector(at, found[at])

    def arrays(self):
        return (self.rows,)


class OneOfForty(Plain):
    """Doubled for one sample."""

    def adjoint(self, i, parts, counts):
        found = super().adjoint(i, parts, counts)
        return SparseVector(found.indices, found.values * (2.0 if i == 7 else 1.0))


class Outside(Plain):
    """A number beyond dim for one sample."""

    def adjoint(self, i, parts, counts):
        found = super().adjoint(i, parts, counts)
        return SparseVector(found.indices + 9 * (i == 3), found.values)


class Dropout(Plain):
    """Random features in the adjoint alone."""

    rng = np.random.default_rng(1)

    def adjoint(self, i, parts, counts):
        found = super().adjoint(i, parts, counts)
        return SparseVector(found.indices, found.values * (1.0 + 0.1 * self.rng.random()))


class Block(Plain):
    """score_block three times too large."""

    def score_block(self, w, scale, start, stop, places, out):
        for i in range(start, stop):
            out[places[i - start] : places[i - start + 1]] = 3.0 * scale * self.scores(w, i)


class NoFixed(Plain):
    """score_block forgets fixed scores."""

    def fixed_scores(self, i):
        return np.arange(4.0)

    def score_block(self, w, scale, start, stop, places, out):
        for i in range(start, stop):
            out[places[i - start] : places[i - start + 1]] = scale * self.scores(w, i)


class AdjointBlock(Plain):
    """adjoint_block gives half, from the second sample on."""

    def adjoint_block(self, start, parts, counts, ends):
        pieces = [self.adjoint(start + k, parts[a:b], counts[a:b]) for k, (a, b) in enumerate(pairwise(ends))]
        values = [piece.values * (0.5 if k else 1.0) for k, piece in enumerate(pieces)]
        lengths = [len(piece.indices) for piece in pieces]
        return np.concatenate([piece.indices for piece in pieces]), np.concatenate(values), np.cumsum([0, *lengths])


class Total(Plain):
    """Half of the sum."""

    def total(self, mu, places, coefs):
        return 0.5 * super().total(mu, places, coefs)


class Spread(Plain):
    """A norm that is not squared."""

    def spread(self, i, mu, scratch):
        return np.sqrt(super().spread(i, mu, scratch))


class Flush(Plain):
    """Leaves its working memory as it was."""

    def flush(self, i, scratch, coef, w):
        w += coef * scratch


class Groups(Plain):
    """The factors of all groups but the first are forgotten."""

    def group_scores(self, w, scales, i):
        return self.scores(w * np.repeat([scales.factors[0], 1.0], [1, 2]), i)


class Take(Plain):
    """The first rows, whichever were asked for."""

    def take(self, rows):
        return Plain(len(rows))


class Added(Plain):
    """Forgets what is added."""

    def with_scores(self, added):
        return self


class AddSpread(Plain):
    """Forgets the coefficient."""

    def add_spread(self, i, mu, coef, out):
        out += mu @ self.rows[i]


BROKEN = [
    (OneOfForty, "adjoint"), (Outside, "sparse"), (Dropout, "nondeterminism"), (Block, "score_block"), (NoFixed, "score_block"),
    (AdjointBlock, "adjoint_block"), (Total, "total"), (Spread, "spread"), (Flush, "flush"), (Groups, "group_scores"),
    (Take, "take"), (Added, "with_scores"), (AddSpread, "add_spread"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "rule"), BROKEN, ids=[kind.__name__ for kind, _ in BROKEN])
def test_each_wrong_call_is_named(kind, rule) -> None:
    """The error names the map, the call and a sample."""
    with pytest.raises(OracleError, match=rf"{kind.__name__} breaks(.|\n)*- {rule}, at sample"):
        check_feature_map(kind())


def test_a_fast_call_that_training_would_not_use_is_not_blamed() -> None:
    """A subclass that changes `scores` and `adjoint` alone has the plain ones used: the inherited block is no fault."""

    class Negated(PartFeatures):
        def scores(self, w, i):
            return -super().scores(w, i)

        def adjoint(self, i, parts, counts):
            return super().adjoint(i, parts, -counts)

        total, flush = FeatureMap.total, FeatureMap.flush

    report = check_feature_map(Negated([np.eye(3)] * 5))
    assert "score_block" not in report.checked
    assert "adjoint_block" not in report.checked


def maps() -> list[FeatureMap]:
    """Maps of ours that stand before others, and a right one of a user's."""
    rng = np.random.default_rng(0)
    parts = PartFeatures([rng.normal(size=(k, 3)) for k in (1, 4, 2)])
    added = AddedScores(parts, [None, np.arange(4.0), None])
    return [Plain(), Plain(1200), added, InstanceSubset(parts, np.array([2, 0])), InstanceSubset(added, np.array([1, 1])),
            parts]  # fmt: skip


@pytest.mark.parametrize("features", maps(), ids=lambda one: type(one).__name__)
def test_maps_that_are_right_pass(features: FeatureMap) -> None:
    """No false alarm, and up to 1,000 samples are tried."""
    report = check_feature_map(features)
    assert report.checked["spread"] == min(len(features), 1000)


@pytest.mark.parametrize("csr", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_maps_of_sequences_and_of_kernels_pass(dtype: type, csr: bool) -> None:
    """Their weights in either type, kernels as dense and as sparse matrices."""
    for problem in kernel_cases.both(L2(), dtype=dtype, csr=csr)[:2]:
        assert check_feature_map(problem.task.features).checked["group_scores"] == len(problem.task)
