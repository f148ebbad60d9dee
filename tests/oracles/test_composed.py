"""Composed: the best output on which all members agree, with a bound that holds, and a proof."""

from typing import Any

import numpy as np
import pytest
from composed_cases import KINDS, BudgetChain, SecondOrder, SkipChain, TaggedTree, TwoChains, best_of_all

from structpred import check_oracle


@pytest.mark.parametrize("kind", [BudgetChain, SkipChain, TwoChains, SecondOrder, TaggedTree])
@pytest.mark.parametrize("max_nodes", [1000, None])
def test_keeps_the_contract(kind: Any, max_nodes: int | None) -> None:
    """check_oracle compares it with all outputs, also as an inexact oracle with a bound."""
    report = check_oracle(kind(max_nodes), n_random=3)
    assert report.checked["wrong argmax" if max_nodes else "no exceptions"] > 10


@pytest.mark.parametrize("name", KINDS)
def test_finds_and_proves_the_best(name: str) -> None:
    """Seven kinds of compositions, 20 instances each: the best of all outputs, and its score as the bound."""
    kind, shape, _ = KINDS[name]
    oracle, rng = kind(), np.random.default_rng(0)
    for _ in range(20):
        scores = rng.normal(size=oracle.n_parts(shape))
        labels, bound = oracle.argmax_bound(scores, shape)
        best = best_of_all(oracle, scores, shape)
        assert scores[oracle.parts(labels, shape)].sum() == pytest.approx(best, abs=1e-9)
        assert bound == pytest.approx(best, abs=1e-9)
