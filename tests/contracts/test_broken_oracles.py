"""The contract checks find each broken oracle of the zoo and name the broken rule in plain words."""

import time
from collections.abc import Callable

import numpy as np
import pytest
from broken_oracles import ZOO, Infeasible, Negated, Subsets, SubsetsBlind, WrongArgmax

from structpred.core.contracts import check_oracle
from structpred.core.oracle import Oracle
from structpred.errors import OracleError, StructpredWarning
from structpred.oracles.chain import ChainOracle
from structpred.oracles.multiclass import MulticlassOracle


@pytest.mark.parametrize(("make", "rule"), ZOO, ids=[make.__name__ for make, _ in ZOO])
@pytest.mark.parametrize("seed", [0, 1])
def test_each_broken_oracle_is_found_and_its_rule_named(make: Callable[[], Oracle], rule: str, seed: int) -> None:
    """The error names the oracle, the rule, the place, what was expected, what came and the likely cause."""
    with pytest.raises(OracleError) as caught:
        check_oracle(make(), seed=seed)
    message = str(caught.value)
    line = next(line for line in message.splitlines() if line.startswith(f"- {rule}, at"))
    assert message.startswith(make.__name__)
    for word in ("expected", "got", "Likely cause:"):
        assert word in line


@pytest.mark.parametrize("make", [Subsets, SubsetsBlind])
def test_a_right_oracle_passes(make: Callable[[], Oracle]) -> None:
    """Nothing is found in an oracle that is right, with labels of varying length and an empty output."""
    report = check_oracle(make(), n_random=30, seed=3)
    assert report.checked["wrong argmax"] > 100


def test_only_the_broken_rule_is_named() -> None:
    """A fault is not reported as others besides: a negated oracle is not also called wrong or infeasible."""
    with pytest.raises(OracleError) as caught:
        check_oracle(Negated())
    assert str(caught.value).startswith("Negated breaks 1 of the rules")


def test_what_cannot_be_checked_is_said() -> None:
    """Without enumerate the report says that infeasible outputs could not be told, and why."""
    report = check_oracle(SubsetsBlind())
    assert "enumerate" in report.skipped["infeasible output"]
    assert "unchecked infeasible output: no usable enumerate(shape)" in str(report)


def test_slow_oracles_are_told_not_refused() -> None:
    """An oracle that sleeps passes with a warning that has the measured seconds in it."""

    class Sleeps(MulticlassOracle):
        def argmax(self, scores, shape):
            time.sleep(0.06)
            return super().argmax(scores, shape)

    with pytest.warns(StructpredWarning, match=r"Sleeps: argmax takes 0\.0[6-9] s"):
        report = check_oracle(Sleeps(), shapes=[(2,)], n_random=1)
    assert "argmax takes" in report.warnings[0]


def test_an_inexact_oracle_may_miss_the_maximum_but_not_feasibility() -> None:
    """exact = False excuses a missed maximum only, and the report says so."""

    class Greedy(WrongArgmax):
        exact = False

    class GreedyInfeasible(Infeasible):
        exact = False

    assert "exact = False" in check_oracle(Greedy()).skipped["wrong argmax"]
    with pytest.raises(OracleError, match="infeasible output"):
        check_oracle(GreedyInfeasible())


def test_all_broken_rules_are_listed_at_once() -> None:
    """An oracle with three faults gets three lines."""

    class Bad(MulticlassOracle):
        def argmax(self, scores, shape):
            scores += 1.0
            return np.array([scores.argmin()])

        def kbest(self, scores, shape, k):
            return super().kbest(scores, shape, k)[::-1]

    with pytest.raises(OracleError) as caught:
        check_oracle(Bad())
    for rule in ("mutated input", "negated scores", "kbest"):
        assert f"- {rule}, at" in str(caught.value)


def test_long_enumerations_are_not_walked() -> None:
    """A shape with millions of outputs is checked against the outputs met, in little time."""
    report = check_oracle(ChainOracle(), shapes=[(30, 4)], n_random=3)
    assert "more than" in report.skipped["shape (30, 4) against all outputs"]
