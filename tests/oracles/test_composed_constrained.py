"""The best output of a composition within linear constraints is that of all outputs that are listed."""

import numpy as np
import pytest
from composed_cases import KINDS

from structpred.errors import ConvergenceError, DataError, ParameterError
from structpred.oracles.enumerated import EnumeratedOracle
from structpred.oracles.second_order_tree import SecondOrderTree


@pytest.mark.mostly_slow
@pytest.mark.parametrize("name", KINDS)
def test_finds_the_best_within(name: str) -> None:
    """Seven kinds, one row to three that leave many outputs, few or none."""
    kind, shape, _ = KINDS[name]
    oracle, rng = kind(), np.random.default_rng(0)
    listed = EnumeratedOracle.of(oracle)
    counts, none = listed.table(shape).counts, 0
    for k in range(6):
        scores, rows = rng.normal(size=oracle.n_parts(shape)), rng.integers(-2, 3, (1 + k % 3, oracle.n_parts(shape)))
        limits = np.quantile(counts @ rows.T, (0.02, 0.3, 0.7)[k % 3], axis=0) - 0.5
        right, found = (one.argmax_constrained(scores, shape, rows, limits) for one in (listed, oracle))
        none += right is None
        assert (found is None) == (right is None)
        if found is not None:
            mine, best = (np.sort(oracle.parts(y, shape)) for y in (found, right))
            assert (rows[:, mine].sum(axis=1) <= limits).all()
            assert scores[mine].sum() == pytest.approx(scores[best].sum(), abs=1e-9)
    assert none < 6


def test_second_order_trees_within_a_budget() -> None:
    """At most one word depends on the root or the first word, over some candidates."""
    oracle, rng = SecondOrderTree(single_root=False), np.random.default_rng(0)
    shape = oracle.example_shapes()[2]
    listed = EnumeratedOracle.of(oracle)
    rows = np.zeros((1, oracle.n_parts(shape)))
    rows[0, [0, 5, 10, 15, 1, 6, 11, 16]] = 1.0
    for scores in rng.normal(size=(8, rows.size)):
        right, found = (one.argmax_constrained(scores, shape, rows, [1.0]) for one in (listed, oracle))
        assert found.tolist() == right.tolist()


def test_what_cannot_be() -> None:
    """Rows that hold anyway, limits that rule out everything, forbidden parts, rows of another size, NaN, no search."""
    kind, shape, _ = KINDS["budgets"]
    oracle, scores = kind(), np.random.default_rng(0).normal(size=kind().n_parts(shape))
    row = np.ones((1, len(scores)))
    assert oracle.argmax_constrained(scores, shape, row, [np.inf]).tolist() == oracle.argmax(scores, shape).tolist()
    assert oracle.argmax_constrained(scores, shape, row, [-np.inf]) is None
    assert oracle.argmax_constrained(scores, shape, row, [12.5]) is None
    closed = np.where(np.arange(len(scores)) < 3, -1e30, scores)
    assert oracle.argmax_constrained(closed, shape, row, [99.0]) is None
    with pytest.raises(ParameterError, match="to fit b and the parts"):
        oracle.argmax_constrained(scores, shape, row[:, 1:], [1.0])
    with pytest.raises(DataError, match="must not be NaN"):
        oracle.argmax_constrained(scores, shape, row, [np.nan])
    assert kind(None).argmax_constrained is None
    row[0], center = scores, EnumeratedOracle.of(oracle).table(shape).counts.mean(axis=0) @ scores
    with pytest.raises(ConvergenceError, match="raise max_nodes"):  # mixtures satisfy the rows, which no multiplier tells apart
        kind(1).argmax_constrained(scores, shape, np.vstack((row, -row)), [center + 1e-9, 1e-9 - center])
