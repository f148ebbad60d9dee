"""k best outputs of compositions are those of all outputs that are listed, in order and each once."""

from typing import Any

import numpy as np
import pytest
from composed_cases import KINDS, BudgetChain, SecondOrder, SkipChain, TwoChains

from structpred.core.head_lists import candidate_shape
from structpred.oracles.composed import Composed
from structpred.oracles.enumerated import EnumeratedOracle
from structpred.oracles.knapsack import KnapsackOracle, knapsack_shape
from structpred.oracles.second_order_tree import SecondOrderTree


def assert_lists(oracle: Any, shape: Any, scores: Any, k: int) -> None:
    """As many as there are, all different, with the k best scores of all outputs, best first."""
    found = oracle.kbest(scores, shape, k)
    best = np.sort(EnumeratedOracle.of(oracle).table(shape).counts @ scores)[::-1][:k]
    assert len({y.tobytes() for y in found}) == len(found) == len(best)
    np.testing.assert_allclose([scores[oracle.parts(y, shape)].sum() for y in found], best, atol=1e-9)


@pytest.mark.mostly_slow
@pytest.mark.parametrize("name", KINDS)
def test_lists_the_best_of_all(name: str) -> None:
    """Seven kinds of compositions, normal scores and scores with ties."""
    kind, shape, _ = KINDS[name]
    oracle, rng = kind(), np.random.default_rng(0)
    for k in range(6):
        scores = rng.normal(size=oracle.n_parts(shape))
        assert_lists(oracle, shape, np.round(scores) if k % 3 == 2 else scores, 1 + 2 * k)


@pytest.mark.parametrize(
    ("kind", "shape"),
    [(SkipChain, (4, 2, ((0, 2),))), (TwoChains, (2, 2)), (BudgetChain, (4, 2, (1, None))), (SecondOrder, (3, True))],
)
def test_lists_all_that_there_are(kind: Any, shape: Any) -> None:
    """Where k is larger than the number of outputs; also of equal scores. Parts of one member alone tell outputs apart, too."""
    oracle, rng = kind(), np.random.default_rng(0)
    for scores in (rng.normal(size=oracle.n_parts(shape)), np.zeros(oracle.n_parts(shape))):
        assert_lists(oracle, shape, scores, 100)
    assert oracle.kbest(scores, shape, 0) == []


def test_lists_sets_that_hold_others() -> None:
    """Items that no other member holds may be added: sets that are subsets of each other are told apart."""
    oracle = Composed([
        (KnapsackOracle(), lambda shape: (knapsack_shape([1.0, 2.0, 1.0, 1.0], [3.0]), np.arange(4))),
        (KnapsackOracle(), lambda shape: (knapsack_shape([1.0, 1.0], [1.0]), np.arange(2))),
    ])  # fmt: skip
    oracle.enumerate = (
        lambda shape: [  # type: ignore[attr-defined]
            y for y in KnapsackOracle().enumerate(knapsack_shape([1.0, 2.0, 1.0, 1.0], [3.0])) if y[:2].sum() <= 1
        ]
    )
    for scores in np.random.default_rng(0).normal(size=(5, 4)):
        assert_lists(oracle, (), scores, 4)
        assert_lists(oracle, (), scores, 20)


@pytest.mark.parametrize("projective", [False, True])
def test_lists_second_order_trees(projective: bool) -> None:
    """Over some candidates and all, also where some arcs are forbidden: trees with these are left out."""
    oracle, rng = SecondOrderTree(projective), np.random.default_rng(0)
    shapes = [*oracle.example_shapes(), candidate_shape((rng.random((5, 6)) < 0.6) | np.eye(5, 6, dtype=np.bool_))]
    for shape in shapes:
        scores = rng.normal(size=oracle.n_parts(shape))
        assert_lists(oracle, shape, scores, 5)
    scores = rng.normal(size=oracle.n_parts(shapes[1]))
    scores[2] = -1e30  # the arc from the second word to the first
    found = {tuple(y.tolist()) for y in oracle.kbest(scores, shapes[1], 1000)}
    assert found == {tuple(y.tolist()) for y in oracle.enumerate(shapes[1]) if y[0] != 2}


def test_the_first_is_the_best() -> None:
    """kbest begins with what argmax gives."""
    kind, shape, _ = KINDS["budgets"]
    oracle, rng = kind(), np.random.default_rng(3)
    for scores in rng.normal(size=(5, oracle.n_parts(shape))):
        assert oracle.kbest(scores, shape, 3)[0].tolist() == oracle.argmax(scores, shape).tolist()


@pytest.mark.parametrize("projective", [False, True])
def test_the_second_best_tree_lacks_an_arc_of_the_best(projective: bool) -> None:
    """Too many trees to list: the second is the best of those in which one arc of the first is forbidden."""
    oracle, rng, n = SecondOrderTree(projective), np.random.default_rng(0), 12
    shape = candidate_shape((rng.random((n, n + 1)) < 0.3) | np.eye(n, n + 1, dtype=np.bool_))
    for scores in rng.normal(size=(3, oracle.n_parts(shape))):
        first, second, third = oracle.kbest(scores, shape, 3)
        values = [scores[oracle.parts(y, shape)].sum() for y in (first, second, third)]
        assert first.tolist() == oracle.argmax(scores, shape).tolist()
        assert sorted(values, reverse=True) == values
        others = []
        for arc in np.arange(n) * (n + 1) + first:
            found = oracle.argmax(np.where(np.arange(len(scores)) == arc, -1e30, scores), shape)
            others.append(scores[oracle.parts(found, shape)].sum())
        assert values[1] == pytest.approx(max(others), abs=1e-9)


def test_no_list_without_a_search() -> None:
    """An oracle whose bounds are not closed by a search has no kbest. (Too few subproblems: test_composed_constrained.)"""
    assert KINDS["budgets"][0](None).kbest is None
