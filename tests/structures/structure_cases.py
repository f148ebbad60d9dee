"""Eight structures with a small training set each, as a user would write it; the ninth, by callbacks, is in three_classes.py."""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from all_outputs import AllOutputs, of_structure
from cky_spans import Bracketings
from edit_scripts import EditScripts, edit_features
from grid_paths import Detours, GridPaths
from item_rankings import LostGain, Rankings
from item_subsets import Differences, Subsets
from knapsacks import Knapsacks
from skip_chains import skip_features, skip_shape, skip_words

from structpred import Instance
from structpred.objectives.part_losses import Hamming
from structpred.oracles.elimination import EliminationMRF
from structpred.oracles.mrf import graph_shape
from structpred.oracles.tree_mrf import TreeMRF

N, COLUMNS = 6, 4


class Case(NamedTuple):
    """A training set: X holds Instance(features, shape)."""

    oracle: Any
    loss: Any
    X: list[Any]
    y: list[Any]

    @property
    def has_marginals(self) -> bool:
        return callable(getattr(self.oracle, "marginals", None))


def learnable(oracle: Any, loss: Any, X: list[Any], seed: int) -> Case:
    """The true outputs are the best ones of a random linear model, with some noise on the scores."""
    rng = np.random.default_rng(seed)
    w = rng.normal(size=X[0].features.shape[1])
    scores = [one.features @ w for one in X]
    return Case(
        oracle, loss, X, [oracle.argmax(s + 0.3 * rng.normal(size=len(s)), x.shape) for s, x in zip(scores, X, strict=True)]
    )


def dense(oracle: Any, loss: Any, shapes: list[Any], seed: int) -> Case:
    """A dense random row for each part."""
    rng = np.random.default_rng(seed)
    return learnable(oracle, loss, [Instance(rng.normal(size=(oracle.n_parts(s), COLUMNS)), s) for s in shapes], seed)


def edits() -> Case:
    """Pairs of short strings, with a pair of empty ones."""
    pairs = [("", ""), ("", "ab"), ("a", "e"), ("ab", "abc"), ("cat", "at"), ("do", "ode")]
    return learnable(EditScripts(), Hamming(), [Instance(edit_features(a, b), (len(a), len(b))) for a, b in pairs], 2)


def skips() -> Case:
    """Sentences of four and five words out of three."""
    rng = np.random.default_rng(6)
    sentences = [skip_words(rng, 4 + i % 2) for i in range(N)]
    return learnable(EliminationMRF(), Hamming(), [Instance(skip_features(s), skip_shape(s)) for s in sentences], 6)


TREES = [graph_shape(4, 2, [(0, 1), (1, 2), (1, 3)]), graph_shape(3, 2, [(0, 2), (1, 2)])]
SACKS = [(5, 2, 3, 4), (6, 1, 2, 3, 4, 5), (3, 2, 2, 1)]

MAKERS: dict[str, Callable[[], Case]] = {
    "cky": lambda: dense(Bracketings(), Hamming(), [(2,), (3,), (4,), (4,), (3,), (5,)], 0),
    "grid": lambda: dense(GridPaths(), Detours(), [(2, 2), (3, 3), (1, 3), (2, 3), (3, 2), (1, 1)], 1),
    "edits": edits,
    "ranking": lambda: dense(Rankings(), LostGain(), [(4,), (3,), (4,), (2,), (4,), (3,)], 3),
    "subsets": lambda: dense(Subsets(), Differences(), [(5, 3), (4, 2), (5, 2), (5, 3), (3, 1), (5, 3)], 4),
    "knapsack": lambda: dense(Knapsacks(), Differences(), SACKS * 2, 5),
    "skip chain": skips,
    "tree": lambda: dense(TreeMRF(), Hamming(), TREES * 3, 7),
}


@cache
def case(name: str) -> Case:
    """The training set of a structure."""
    return MAKERS[name]()


@cache
def outputs(name: str) -> AllOutputs:
    """All outputs of its samples."""
    made = case(name)
    return of_structure(made.oracle, made.loss, made.X, made.y)


@cache
def optimum(name: str, kind: str, lam: float) -> float:
    """The smallest value of the training objective, by the conic solver."""
    return outputs(name).optimum(kind, lam)
