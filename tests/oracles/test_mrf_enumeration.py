"""EnumerationMRF against a table of all outputs made by NumPy."""

import numpy as np
import pytest
from mrf_cases import all_scores, exact_marginals, forbid_some, random_graph

from structpred.core.fixed_scores import FORBIDDEN
from structpred.errors import DataError, InfeasibleError, ParameterError
from structpred.oracles.mrf import graph_shape
from structpred.oracles.mrf_enumeration import MAX_OUTPUTS, EnumerationMRF

ORACLE = EnumerationMRF()
#: nodes, states: all three groups of nodes are empty, single and several; up to 2^13 outputs
SIZES = [(1, 2), (1, 7), (2, 2), (2, 9), (3, 2), (3, 5), (4, 3), (5, 3), (6, 4), (7, 3), (8, 2), (11, 2), (13, 2), (6, 1)]


def _cases(seed: int, repeats: int = 4):
    rng = np.random.default_rng(seed)
    for n, k in SIZES:
        for p_edge in (0.0, 0.4, 1.0):
            shape = random_graph(rng, n, k, p_edge)
            for _ in range(repeats):
                scores = rng.normal(size=ORACLE.n_parts(shape)) * rng.choice([1.0, 1e-3, 1e3])
                yield rng, shape, forbid_some(rng, scores, rng.choice([0.0, 0.0, 0.1]))


def _score(scores: np.ndarray, labels: np.ndarray, shape: tuple[int, ...]) -> float:
    return float(scores[ORACLE.parts(labels, shape)].sum())


def test_best_output_marginals_and_k_best() -> None:
    """Best score, log Z, marginals and the five best, with and without forbidden parts, for graphs of every density."""
    for _, shape, scores in _cases(0):
        table = all_scores(shape, scores)
        ordered = np.sort(table, axis=None)[::-1]
        if ordered[0] == -np.inf:
            for call in (ORACLE.argmax, ORACLE.marginals):
                with pytest.raises(InfeasibleError, match="every output uses a forbidden part"):
                    call(scores, shape)
            assert ORACLE.kbest(scores, shape, 5) == []
            continue
        size = 1e-12 * max(1.0, np.abs(ordered[ordered > -np.inf]).max())
        assert _score(scores, ORACLE.argmax(scores, shape), shape) == pytest.approx(ordered[0], abs=10 * size)
        best = [_score(scores, y, shape) for y in ORACLE.kbest(scores, shape, 5)]
        wanted = ordered[:5][ordered[:5] > -np.inf]
        np.testing.assert_allclose(best, wanted, atol=10 * size)
        log_z, mu = ORACLE.marginals(scores, shape)
        true_log_z, true_mu = exact_marginals(shape, scores)
        assert log_z == pytest.approx(true_log_z, abs=100 * size)
        np.testing.assert_allclose(mu, true_mu, atol=1e-9)


def test_searches_with_a_second_score() -> None:
    """argmax_constrained, argmax_product and argmax_per_loss, forbidden parts among them, against the table of all outputs."""
    for rng, shape, scores in _cases(1):
        table, p = all_scores(shape, scores), len(scores)
        rows = rng.integers(-2, 3, (2, p)).astype(np.float64)
        sides = [all_scores(shape, row) for row in rows]
        limits = np.array([rng.choice(side.ravel()) + 0.5 for side in sides])
        allowed = np.where((sides[0] <= limits[0]) & (sides[1] <= limits[1]), table, -np.inf)
        found = ORACLE.argmax_constrained(scores, shape, rows, limits)
        if allowed.max() == -np.inf:
            assert found is None
        else:
            assert found is not None
            assert (np.array([_score(row, found, shape) for row in rows]) <= limits).all()
            assert _score(scores, found, shape) == pytest.approx(allowed.max(), rel=1e-9, abs=1e-12)
        if table.max() == -np.inf:
            continue
        costs = rng.integers(0, 3, p).astype(np.float64)
        losses, offset = all_scores(shape, costs), float(rng.normal())
        with np.errstate(invalid="ignore"):
            products = np.where(table > -np.inf, np.maximum(0.0, offset + table) * (1.0 + losses), -np.inf)
        y = ORACLE.argmax_product(scores, costs, (offset, 1.0), shape)
        reached = max(0.0, offset + _score(scores, y, shape)) * (1.0 + _score(costs, y, shape))
        assert reached == pytest.approx(products.max(), rel=1e-9, abs=1e-12)
        values, best, labels = ORACLE.argmax_per_loss(scores, costs, shape)
        levels = np.unique(losses[table > -np.inf])
        np.testing.assert_array_equal(values, levels)
        np.testing.assert_allclose(best, [table[losses == level].max() for level in levels], rtol=1e-9, atol=1e-12)
        for value, score, y in zip(values, best, labels, strict=True):
            assert _score(costs, y, shape) == value
            assert _score(scores, y, shape) == pytest.approx(score, rel=1e-9, abs=1e-12)


def test_forbidden_parts_cost_no_accuracy() -> None:
    """Scores next to a forbidden part of -1e30 are compared to the last digit: nothing is subtracted from anything."""
    shape = graph_shape(8, 2, [(i, j) for i in range(8) for j in range(i + 1, 8)])
    for node in range(8):
        scores = np.zeros(ORACLE.n_parts(shape))
        scores[2 * node] = FORBIDDEN
        scores[np.arange(8) * 2 + 1] += 1e-9  # tiny, but it decides
        assert ORACLE.argmax(scores, shape).tolist() == [1] * 8
        assert ORACLE.marginals(scores, shape)[1][2 * node] == 0.0


def test_a_product_of_zero_still_gives_an_output_that_is_allowed() -> None:
    """Where every allowed output has the product 0, none with a forbidden part is chosen instead."""
    shape = graph_shape(2, 2, [(0, 1)])
    scores = np.array([FORBIDDEN, -5.0, -5.0, FORBIDDEN, 0.0, 0.0, 0.0, 0.0])
    assert ORACLE.argmax_product(scores, np.zeros(8), (1.0, 1.0), shape).tolist() == [1, 0]
    scores[2] = FORBIDDEN
    with pytest.raises(InfeasibleError):
        ORACLE.argmax_product(scores, np.zeros(8), (1.0, 1.0), shape)


def test_ties_go_to_the_first_output() -> None:
    """With equal scores the output that enumerate lists first wins, in every search."""
    rng = np.random.default_rng(2)
    for n, k in SIZES:
        shape = random_graph(rng, n, k, 0.5)
        scores = rng.integers(0, 2, ORACLE.n_parts(shape)).astype(np.float64)
        table = all_scores(shape, scores)
        first = list(np.unravel_index(int(table.argmax()), table.shape))
        rows, limits = np.zeros((1, len(scores))), np.zeros(1)
        found = [
            ORACLE.argmax(scores, shape),
            ORACLE.argmax_constrained(scores, shape, rows, limits),
            ORACLE.argmax_product(scores, rows[0], (1.0, 1.0), shape),
            ORACLE.kbest(scores, shape, 2)[0],
        ]
        assert all(y is not None and y.tolist() == first for y in found)


def test_too_many_outputs_are_refused_with_their_number() -> None:
    """2^18 outputs are looked at; 2^19 and 10^120 are refused, and the message says how many there would be."""
    assert ORACLE.argmax(np.tile([0.0, 1.0], 18), graph_shape(18, 2, [])).tolist() == [1] * 18
    assert ORACLE.argmax(np.arange(MAX_OUTPUTS, dtype=np.float64), (1, MAX_OUTPUTS)).tolist() == [MAX_OUTPUTS - 1]
    assert len(ORACLE.argmax(np.ones(100_000), (100_000, 1))) == 100_000
    with pytest.raises(DataError, match=r"19 nodes with 2 states have 524,288 outputs.*262,144 at most"):
        ORACLE.argmax(np.zeros(38), (19, 2))
    with pytest.raises(DataError, match=r"about 10\^120 outputs"):
        ORACLE.argmax(np.zeros(800), (400, 2))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_scores_that_are_no_numbers_are_refused(bad: float) -> None:
    """NaN and infinity, in the scores and in the rows, by every method; and so are scores that are too few."""
    shape = graph_shape(3, 2, [(0, 1)])
    zeros, wrong = np.zeros(10), np.zeros(10)
    wrong[7] = bad
    calls = [
        lambda s: ORACLE.argmax(s, shape),
        lambda s: ORACLE.argmax_batch(np.concatenate((zeros, s)), np.array([0, 10, 10 + len(s)]), [shape, shape]),
        lambda s: ORACLE.marginals(s, shape),
        lambda s: ORACLE.kbest(s, shape, 2),
        lambda s: ORACLE.argmax_product(s, zeros, (1.0, 0.0), shape),
        lambda s: ORACLE.argmax_product(zeros, s, (1.0, 0.0), shape),
        lambda s: ORACLE.argmax_per_loss(s, zeros, shape),
    ]
    for call in calls:
        with pytest.raises(DataError, match="finite"):
            call(wrong)
        with pytest.raises(DataError, match="expected 10 scores"):
            call(zeros[:9])
    with pytest.raises(DataError, match="finite"):
        ORACLE.argmax_constrained(zeros, shape, wrong[None], [0.0])
    with pytest.raises(DataError, match="NaN"):
        ORACLE.argmax_constrained(zeros, shape, zeros[None], [np.nan])
    with pytest.raises(ParameterError, match="to fit b and the parts"):
        ORACLE.argmax_constrained(zeros, shape, np.zeros((2, 10)), [0.0])
    with pytest.raises(DataError, match="whole numbers"):
        ORACLE.argmax_per_loss(zeros, zeros + 0.5, shape)


def test_a_batch_says_which_instance_is_wrong() -> None:
    """The message of a batch names the instance; instances of several shapes may be mixed."""
    shape, other = graph_shape(2, 2, [(0, 1)]), graph_shape(3, 3, [(0, 2)])
    scores, offsets = np.zeros(24), np.array([0, 8, 16, 24])
    scores[9] = np.nan
    with pytest.raises(DataError, match="sample 1: scores must be finite numbers"):
        ORACLE.argmax_batch(scores, offsets, [shape] * 3)
    rng = np.random.default_rng(3)
    sizes = [8, 18, 8]
    scores, offsets = rng.normal(size=sum(sizes)), np.cumsum([0, *sizes])
    labels, ends = ORACLE.argmax_batch(scores, offsets, [shape, other, shape])
    assert ends.tolist() == [0, 2, 5, 7]
    for i, s in enumerate([shape, other, shape]):
        alone = ORACLE.argmax(scores[offsets[i] : offsets[i + 1]], s)
        np.testing.assert_array_equal(labels[ends[i] : ends[i + 1]], alone)
