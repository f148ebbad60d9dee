"""EnumeratedOracle: exact in everything, and honest about its size."""

from itertools import count, product

import numpy as np
import pytest

from structpred.contracts.checks import check_oracle
from structpred.core.oracle import Oracle
from structpred.errors import DataError, InfeasibleError, OracleError, ParameterError
from structpred.oracles.assignment import AssignmentOracle
from structpred.oracles.chain import ChainOracle
from structpred.oracles.enumerated import MAX_OUTPUTS, EnumeratedOracle
from structpred.oracles.multiclass import MulticlassOracle

KINDS = [MulticlassOracle, AssignmentOracle, ChainOracle]


def listed(outputs, n_parts=None) -> EnumeratedOracle:
    """A structure of subsets: the parts are the labels."""
    return EnumeratedOracle(outputs, lambda y, shape: y, n_parts or (lambda shape: shape[0]), example_shapes=[(2,)])


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", [0, 1])
def test_keeps_the_contract_with_every_capability(kind: type[Oracle], seed: int) -> None:
    """Every optional method that it has agrees with an independent look at all outputs."""
    report = check_oracle(EnumeratedOracle.of(kind()), seed=seed)
    relaxed = ("argmax_relaxed", "argmax_relaxed_constrained")
    exact = ("argmax_constrained", "argmax_constrained_bound", "argmax_per_loss", "argmax_product")
    for name in (*relaxed, *exact, "marginals", "kbest", "project"):
        assert report.checked[name] > 40


@pytest.mark.parametrize("kind", KINDS)
def test_agrees_with_the_oracle_it_wraps(kind: type[Oracle]) -> None:
    """The same structure: scores of the two answers are equal, and so are the label grids."""
    oracle, rng = kind(), np.random.default_rng(0)
    wrapped = EnumeratedOracle.of(oracle)
    for shape in oracle.example_shapes():
        assert wrapped.label_grid(shape) == oracle.label_grid(shape)
        for _ in range(20):
            theta = rng.normal(size=oracle.n_parts(shape))
            a, b = (np.add.reduce(theta[o.parts(o.argmax(theta, shape), shape)]) for o in (oracle, wrapped))
            assert a == pytest.approx(b, abs=1e-12)


@pytest.mark.mostly_slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", [0.3, 1.0, 30.0])
def test_projection_satisfies_the_variational_inequality(kind: type[Oracle], size: float) -> None:
    """<point - mu, v - mu> <= 0 for every vertex v, to 1e-11, for random and for whole points; a projection stays."""
    oracle, rng = EnumeratedOracle.of(kind()), np.random.default_rng(1)
    for shape in oracle.example_shapes():
        counts = oracle.table(shape).counts.toarray()
        for k in range(20):
            point = size * rng.normal(size=counts.shape[1])
            point = np.rint(point) if k % 2 else point
            mu = oracle.project(point, shape)
            assert ((counts - mu) @ (point - mu)).max() <= 1e-11 * max(1.0, point @ point)
            np.testing.assert_allclose(oracle.project(mu, shape), mu, atol=1e-9)


def test_projection_equals_a_quadratic_program() -> None:
    """On chains of four positions the projection is that of an independent solver."""
    cp = pytest.importorskip("cvxpy")
    oracle, rng, shape = EnumeratedOracle.of(ChainOracle()), np.random.default_rng(2), (4, 3)
    counts = oracle.table(shape).counts.toarray()
    for _ in range(3):
        point = rng.normal(size=counts.shape[1])
        alpha = cp.Variable(len(counts), nonneg=True)
        problem = cp.Problem(cp.Minimize(cp.sum_squares(counts.T @ alpha - point)), [cp.sum(alpha) == 1])
        problem.solve(solver=cp.CLARABEL)
        mu = oracle.project(point, shape)
        assert (mu - point) @ (mu - point) <= problem.value + 1e-9
        np.testing.assert_allclose(mu, counts.T @ alpha.value, atol=1e-4)


def test_ties_go_to_the_output_listed_first() -> None:
    """All scores equal: the first output is the answer, in argmax, k-best and per loss."""
    oracle = listed(lambda shape: [np.array([1]), np.array([0])])
    zero = np.zeros(2)
    assert oracle.argmax(zero, (2,)).tolist() == [1]
    assert [y.tolist() for y in oracle.kbest(zero, (2,), 5)] == [[1], [0]]
    assert [y.tolist() for y in oracle.argmax_per_loss(zero, zero, (2,))[2]] == [[1]]


def test_repeated_parts_count() -> None:
    """A part that an output has twice counts twice, in scores and in marginals."""
    oracle = listed(lambda shape: [np.array([0, 0]), np.array([1])])
    assert oracle.argmax(np.array([0.6, 1.0]), (2,)).tolist() == [0, 0]
    log_z, mu = oracle.marginals(np.zeros(2), (2,))
    assert log_z == pytest.approx(np.log(2))
    np.testing.assert_allclose(mu, [1.0, 0.5])


def test_too_many_outputs_are_refused_before_anything_is_built() -> None:
    """An endless list of outputs is a DataError that names the limit; 2^18 outputs themselves are accepted."""
    asked = []
    oracle = listed(lambda shape: (asked.append(k) or np.array([0]) for k in count()))
    with pytest.raises(DataError, match=f"more than {MAX_OUTPUTS} outputs"):
        oracle.argmax(np.zeros(2), (2,))
    assert len(asked) == MAX_OUTPUTS + 1
    with pytest.raises(DataError, match="more than"):
        EnumeratedOracle.of(ChainOracle()).argmax(np.zeros(20 * 2 + 4), (20, 2))


def test_bad_lists_are_errors() -> None:
    """No output at all, parts out of range, an oracle that cannot be listed, rows of a wrong length, fractional costs."""

    class Unlisted(MulticlassOracle):
        enumerate = None

    with pytest.raises(InfeasibleError, match="no output"):
        listed(lambda shape: []).argmax(np.zeros(2), (2,))
    with pytest.raises(DataError, match=r"\[0, 2\), got 0..2"):
        listed(lambda shape: [np.array([0, 2])]).argmax(np.zeros(2), (2,))
    with pytest.raises(ParameterError, match="Unlisted has no enumerate"):
        EnumeratedOracle.of(Unlisted())
    oracle = listed(lambda shape: [np.array([0]), np.array([1])])
    with pytest.raises(ParameterError, match=r"shape \(1, 2\)"):
        oracle.argmax_constrained(np.zeros(2), (2,), np.zeros((1, 3)), [0.0])
    for name in ("argmax_constrained_bound", "argmax_relaxed_constrained"):
        with pytest.raises(ParameterError, match=r"shape \(1, 2\)"):
            getattr(oracle, name)(np.zeros(2), (2,), np.zeros((1, 3)), [0.0])
    with pytest.raises(ParameterError, match="whole numbers"):
        oracle.argmax_per_loss(np.zeros(2), np.array([0.5, 0.0]), (2,))


def test_tables_are_kept_but_not_for_ever() -> None:
    """Outputs are listed once a shape, and the shape not used for longest is dropped at 33."""
    calls: list[int] = []
    oracle = listed(lambda shape: calls.append(shape[0]) or [np.array([k]) for k in range(shape[0])])
    for n in [*range(1, 34), 33, 2, 1]:
        oracle.argmax(np.zeros(n), (n,))
    assert calls == [n for n in [*range(1, 34), 1] for _ in range(2)]


def test_answers_are_the_callers_own() -> None:
    """Changing an answer does not change the next one."""
    oracle = listed(lambda shape: [np.array(y) for y in product(range(2), repeat=1)])
    for get in (
        lambda: oracle.argmax(np.zeros(2), (2,)),
        lambda: oracle.kbest(np.zeros(2), (2,), 1)[0],
        lambda: oracle.enumerate((2,))[0],
    ):
        get()[0] = 1
        assert get().tolist() == [0]


def test_a_structure_of_ones_own_is_checked_like_any_other() -> None:
    """A wrong parts function is found by the contract checks."""
    oracle = EnumeratedOracle(
        lambda shape: [np.array([0]), np.array([1])], lambda y, shape: y / 1, lambda shape: 2, example_shapes=[(1,)]
    )
    with pytest.raises(OracleError, match="parts dtype"):
        check_oracle(oracle)
