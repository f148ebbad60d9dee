"""Budgets, formulas of logic and agreement: against enumeration, in batches as one by one."""

from itertools import product

import numpy as np
import pytest

from structpred.contracts.checks import check_oracle
from structpred.core.oracle import Oracle
from structpred.errors import InfeasibleError, ParameterError
from structpred.oracles.agreement import Agreement
from structpred.oracles.budget import Budget
from structpred.oracles.logic import FORMULAS, Logic

BUDGETS = [{}, {"at_most": 0}, {"at_most": 2}, {"at_least": 2}, {"exactly": 1}, {"at_least": 1, "at_most": 3}]
MEMBERS = [*(Budget(**limits) for limits in BUDGETS), *map(Logic, FORMULAS), Agreement()]


def value(oracle: Oracle, labels: np.ndarray, scores: np.ndarray, shape: tuple[int, ...]) -> float:
    """The score of an output."""
    return float(scores[oracle.parts(labels, shape)].sum())


@pytest.mark.parametrize("oracle", MEMBERS, ids=lambda oracle: repr(oracle).split(" object")[0])
def test_the_contract_is_kept(oracle: Oracle) -> None:
    """check_oracle finds nothing wrong with any budget, formula or agreement."""
    check_oracle(oracle, n_random=20)


@pytest.mark.parametrize("oracle", MEMBERS, ids=lambda oracle: repr(oracle).split(" object")[0])
def test_the_best_is_that_of_enumeration(oracle: Oracle) -> None:
    """No output that can be listed scores more, for drawn scores with ties and zeros; a batch gives what single calls give."""
    rng = np.random.default_rng(0)
    shapes = [shape for shape in oracle.example_shapes() for _ in range(20)]
    sizes = [oracle.n_parts(shape) for shape in shapes]
    given = [rng.integers(-3, 4, n) / 2 if k % 2 else rng.normal(size=n) for k, n in enumerate(sizes)]
    single = [oracle.argmax(scores, shape) for scores, shape in zip(given, shapes, strict=True)]
    for labels, scores, shape in zip(single, given, shapes, strict=True):
        best = max(value(oracle, y, scores, shape) for y in oracle.enumerate(shape))
        assert value(oracle, labels, scores, shape) == pytest.approx(best, abs=1e-12)
    labels, ends = oracle.argmax_batch(np.concatenate(given), np.cumsum([0, *sizes]), shapes)
    assert labels.tolist() == np.concatenate(single).tolist()
    assert np.diff(ends).tolist() == [len(y) for y in single]


@pytest.mark.parametrize(("formula", "rows"), [
    ("or", ["01", "10", "11"]), ("xor", ["01", "10"]), ("at_most_one", ["00", "01", "10"]), ("not_all", ["00", "01", "10"]),
    ("iff", ["00", "11"]), ("implies", ["00", "01", "11"]), ("and", ["00", "11"]),
])  # fmt: skip
def test_formulas_have_their_truth_tables(formula: str, rows: list[str]) -> None:
    """The outputs over two parts are the rows of the truth table; over one, three and four parts those for which it is true."""
    assert ["".join(map(str, y)) for y in Logic(formula).enumerate((2,))] == rows
    says = {
        "or": any, "xor": lambda y: sum(y) == 1, "at_most_one": lambda y: sum(y) <= 1, "not_all": lambda y: not all(y),
        "iff": lambda y: all(y) == any(y), "implies": lambda y: y[-1] >= all(y[:-1]), "and": lambda y: y[-1] == all(y[:-1]),
    }  # fmt: skip
    for n in (1, 3, 4):
        assert {tuple(y) for y in Logic(formula).enumerate((n,))} == {*filter(says[formula], product((0, 1), repeat=n))}


def test_what_cannot_be_is_refused() -> None:
    """Limits that exclude each other, formulas that are not known, and shapes with too few parts are one line each."""
    with pytest.raises(ParameterError, match=r"at_least <= at_most, .*, got Budget\(at_most=2, at_least=3\)"):
        Budget(at_least=3, at_most=2)
    with pytest.raises(ParameterError, match=r"exactly alone, got Budget\(at_most=2, exactly=1\)"):
        Budget(exactly=1, at_most=2)
    with pytest.raises(ParameterError, match="at_most must be a whole number >= 0, got -1"):
        Budget(at_most=-1)
    with pytest.raises(ParameterError, match="expected a formula of or, xor"):
        Logic("nand")
    with pytest.raises(InfeasibleError, match=r"Budget\(exactly=3\) over 2 parts has no output"):
        Budget(exactly=3).argmax(np.zeros(2), (2,))
    with pytest.raises(ValueError, match=r"\[1, 1\] is no row of 2 times 0 or 1 that keeps Logic\('xor'\)"):
        Logic("xor").parts(np.array([1, 1]), (2,))
