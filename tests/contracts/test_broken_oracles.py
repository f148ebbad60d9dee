"""The contract checks find each broken oracle of the zoo and name the broken rule in plain words."""

from collections.abc import Callable

import numpy as np
import pytest
from broken_oracles import ZOO, Infeasible, Negated, Subsets, SubsetsBlind, WrongArgmax

from structpred.contracts import checks as contracts
from structpred.contracts.checks import check_oracle
from structpred.core.oracle import Oracle
from structpred.errors import OracleError
from structpred.oracles.chain import ChainOracle
from structpred.oracles.multiclass import MulticlassOracle


@pytest.mark.mostly_slow
@pytest.mark.parametrize(("make", "rule"), ZOO, ids=[make.__name__ for make, _ in ZOO])
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_each_broken_oracle_is_found_and_its_rule_named(make: Callable[[], Oracle], rule: str, seed: int) -> None:
    """The error names the oracle, the rule, the place, what was expected, what came and the likely cause: on small shapes."""
    small = [shape for shape in make.example_shapes() if seed or make().n_parts(shape) <= 16]
    with pytest.raises(OracleError) as caught:
        check_oracle(make(), shapes=small, n_random=20 if seed else 5, seed=seed)
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
    assert "parts() may accept others" in report.skipped["some invalid labels"]


def test_any_hashable_value_is_a_shape() -> None:
    """Numbers, texts, nested tuples and frozen data are shapes; a list is refused, and the error says what to use instead."""

    class Sized(Subsets):
        def n_parts(self, shape):
            return hash(shape) % 3 + 2

        def argmax(self, scores, shape):
            return super().argmax(scores, (len(scores),))

        def parts(self, labels, shape):
            return super().parts(labels, (self.n_parts(shape),))

        def enumerate(self, shape):
            return super().enumerate((self.n_parts(shape),))

    shapes = [7, 2.5, "a text", ((1, "a"), (2, ())), frozenset({1})]
    assert check_oracle(Sized(), shapes=shapes).shapes == tuple(shapes)
    with pytest.raises(
        OracleError, match=r"shapes, at no shape: expected shapes that are hashable values; got \(1, \[2\]\).*tuples"
    ):
        check_oracle(Sized(), shapes=[(1, [2])])
    with pytest.raises(OracleError, match="at least one shape"):
        check_oracle(Sized(), shapes=[])


def test_the_checks_are_bounded_by_counts(monkeypatch) -> None:
    """After so many calls of the oracle the shapes that are left are tried with few scores, and the report says so."""
    whole = check_oracle(Subsets(), n_random=30)
    monkeypatch.setattr(contracts, "MAX_CALLS", 100)
    report = check_oracle(Subsets(), n_random=30)
    assert "shape (2,)" not in " ".join(report.skipped)
    assert "more than 100 calls" in report.skipped["most scores of shape (4,)"]
    assert report.checked["wrong argmax"] < 0.7 * whole.checked["wrong argmax"]


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


@pytest.mark.slow
def test_long_enumerations_are_not_walked() -> None:
    """A shape with millions of outputs is checked against the outputs met."""
    report = check_oracle(ChainOracle(), shapes=[(30, 4)], n_random=3)
    assert "more than" in report.skipped["shape (30, 4) against all outputs"]
