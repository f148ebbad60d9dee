"""Projections of whole batches, in lockstep."""

import numpy as np
import pytest
from reference_wolfe import nearest_in_hull

from structpred.core.oracle import Oracle
from structpred.errors import ConvergenceError, DataError, OracleError, ParameterError
from structpred.oracles.arborescence import ArborescenceOracle
from structpred.oracles.assignment import AssignmentOracle
from structpred.oracles.chain import ChainOracle
from structpred.oracles.enumerated import EnumeratedOracle
from structpred.oracles.multiclass import MulticlassOracle
from structpred.projections.lockstep import ActiveSets, nearest_in_hulls

BATCHES = [
    (MulticlassOracle(), [(3,), (1,), (6,), (6,)]),
    (ChainOracle(), [(3, 2), (1, 4), (5, 3)]),
    (ArborescenceOracle(), [(2,), (5,), (4,)]),
    (AssignmentOracle(), [(4,), (1,), (3,)]),
]


def batch_of(oracle: Oracle, shapes: list, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Random points for a batch, and its offsets."""
    offsets = np.cumsum([0, *(oracle.n_parts(shape) for shape in shapes)])
    return np.random.default_rng(seed).normal(size=offsets[-1]), offsets


class ThreeMethods(Oracle):
    """One or two of three items, by listing: an oracle as users write it."""

    outputs = ((0,), (1,), (2,), (0, 1), (1, 2))

    def n_parts(self, shape):
        return 3

    def argmax(self, scores, shape):
        return np.array(max(self.outputs, key=lambda y: sum(scores[i] for i in y)), dtype=np.int64)

    def parts(self, labels, shape):
        return labels

    @staticmethod
    def example_shapes():
        return [()]


@pytest.mark.parametrize(("oracle", "shapes"), [*BATCHES, (ThreeMethods(), [()] * 3)])
def test_a_batch_has_the_points_of_its_instances(oracle, shapes):
    """Each instance of a ragged batch gets the point that the one-by-one projection finds, with a gap of at most 1e-10."""
    points, offsets = batch_of(oracle, shapes)
    found = nearest_in_hulls(oracle, points, offsets, shapes)
    assert (found.gaps >= 0).all()
    assert found.gaps.max() <= 1e-10
    for i, shape in enumerate(shapes):
        a, b = offsets[i], offsets[i + 1]
        alone = nearest_in_hull(points[a:b], lambda s, k=shape: oracle.argmax(s, k), lambda y, k=shape: oracle.parts(y, k), b - a)
        np.testing.assert_allclose(found.mu[a:b], alone.mu, rtol=0, atol=1e-10)


@pytest.mark.parametrize("free", [False, True])
def test_the_points_are_those_of_an_independent_solver(free):
    """Chains with d = 1, and with d = 0 on their transitions, agree with cvxpy over the hull of all listed outputs to 1e-8."""
    cvxpy = pytest.importorskip("cvxpy")
    oracle, shapes = ChainOracle(), [(3, 2), (2, 3)]
    points, offsets = batch_of(oracle, shapes, seed=3)
    metric = np.ones_like(points)
    for i, (n, m) in enumerate(shapes):
        if free:
            metric[offsets[i] + n * m : offsets[i + 1]] = 0.0
    found = nearest_in_hulls(oracle, points, offsets, shapes, metric=metric)
    for i, shape in enumerate(shapes):
        a, b = offsets[i], offsets[i + 1]
        vertices = np.array([np.bincount(oracle.parts(y, shape), minlength=b - a) for y in oracle.enumerate(shape)], dtype=float)
        shares = cvxpy.Variable(len(vertices), nonneg=True)
        mu = vertices.T @ shares
        goal = points[a:b] @ mu - 0.5 * cvxpy.sum(cvxpy.multiply(metric[a:b], cvxpy.square(mu)))
        cvxpy.Problem(cvxpy.Maximize(goal), [cvxpy.sum(shares) == 1]).solve(
            solver="CLARABEL", tol_gap_abs=1e-12, tol_gap_rel=1e-12, tol_feas=1e-12
        )
        mine = found.mu[a:b]
        value = points[a:b] @ mine - 0.5 * (metric[a:b] * mine**2).sum()
        assert abs(value - goal.value) <= 1e-8
        weighted = np.sqrt(metric[a:b]) * (mine - mu.value)
        assert np.abs(weighted).max() <= 1e-5  # twice the root of the value's error


def test_parts_without_metric_may_tell_vertices_apart():
    """Without any metric the answer is a best output; of outputs that differ only in parts without one, the better counts."""
    table = np.array([[1, 0, 1, 0], [1, 0, 0, 1], [0, 1, 1, 0]])
    oracle = EnumeratedOracle(
        lambda shape: [[0], [1], [2]], lambda y, shape: table[y[0]].nonzero()[0], lambda shape: 4, example_shapes=[()]
    )
    points = np.array([0.2, 0.0, -1.0, 2.0])
    free = nearest_in_hulls(oracle, points, [0, 4], [()], metric=np.zeros(4))
    assert free.mu.tolist() == [1, 0, 0, 1]
    assert free.gaps[0] == 0.0
    mixed = nearest_in_hulls(oracle, points, [0, 4], [()], metric=[1.0, 1.0, 0.0, 0.0])
    shares = np.linspace(0, 1, 2001)
    corner = shares[:, None] * table[1] + (1 - shares[:, None]) * table[2]
    values = corner @ points - 0.5 * (corner[:, :2] ** 2).sum(axis=1)
    assert mixed.mu @ points - 0.5 * (mixed.mu[:2] ** 2).sum() >= values.max() - 1e-12


@pytest.mark.parametrize(("oracle", "shapes"), BATCHES)
def test_the_pull_back_is_the_derivative(oracle, shapes):
    """It agrees with central differences along random directions, and is symmetric."""
    points, offsets = batch_of(oracle, shapes, seed=5)
    found = nearest_in_hulls(oracle, points, offsets, shapes)
    rng = np.random.default_rng(1)
    g, h, step = rng.normal(size=len(points)), rng.normal(size=len(points)), 1e-6
    ahead, behind = (nearest_in_hulls(oracle, points + s * g, offsets, shapes).mu for s in (step, -step))
    np.testing.assert_allclose(found.pull_back(g), (ahead - behind) / (2 * step), atol=1e-7)
    assert abs(h @ found.pull_back(g) - g @ found.pull_back(h)) <= 1e-10


def test_a_small_step_costs_few_calls_and_leads_to_the_same_point():
    """A step of 1 % costs a quarter of the calls at most, in any order of ids, and the answer is the cold one to 1e-10."""
    oracle, shapes = ChainOracle(), [(12, 6), (9, 6), (15, 6)]
    points, offsets = batch_of(oracle, shapes)
    kept = ActiveSets()
    cold = nearest_in_hulls(oracle, points, offsets, shapes, sets=kept, ids="abc")
    moved = points * (1 + 0.01 * np.random.default_rng(9).normal(size=len(points)))
    warm = nearest_in_hulls(oracle, moved, offsets, shapes, sets=kept, ids="abc")
    assert warm.n_calls.sum() <= cold.n_calls.sum() / 4
    np.testing.assert_allclose(warm.mu, nearest_in_hulls(oracle, moved, offsets, shapes).mu, rtol=0, atol=1e-10)
    turned = np.concatenate([moved[offsets[i] : offsets[i + 1]] for i in (2, 0)])
    ends = np.array([0, offsets[3] - offsets[2], len(turned)])
    again = nearest_in_hulls(oracle, turned, ends, [shapes[2], shapes[0]], sets=kept, ids="ca")
    assert (again.n_calls == 1).all()
    np.testing.assert_allclose(again.mu[: ends[1]], warm.mu[offsets[2] :], rtol=0, atol=1e-12)


def test_vertices_that_were_active_once_are_tried_before_the_oracle():
    """Trees, too, take a quarter of the calls at most after a step of 1 %, and the step back takes one call an instance."""
    oracle, shapes = ArborescenceOracle(), [(12,), (27,), (20,), (25,)]
    points, offsets = batch_of(oracle, shapes)
    kept, names = ActiveSets(), range(len(shapes))
    cold = nearest_in_hulls(oracle, points, offsets, shapes, sets=kept, ids=names)
    moved = points * (1 + 0.01 * np.random.default_rng(9).normal(size=len(points)))
    warm = nearest_in_hulls(oracle, moved, offsets, shapes, sets=kept, ids=names)
    assert warm.n_calls.sum() <= cold.n_calls.sum() / 4
    np.testing.assert_allclose(warm.mu, nearest_in_hulls(oracle, moved, offsets, shapes).mu, rtol=0, atol=1e-10)
    back = nearest_in_hulls(oracle, points, offsets, shapes, sets=kept, ids=names)
    assert (back.n_calls == 1).all()
    np.testing.assert_allclose(back.mu, cold.mu, rtol=0, atol=1e-10)


def test_an_id_with_another_shape_begins_anew():
    """What is kept under an id does not lead a later instance of another shape astray."""
    kept = ActiveSets()
    nearest_in_hulls(MulticlassOracle(), [0.9, 0.1, 0.4], [0, 3], [(3,)], sets=kept, ids=["x"])
    found = nearest_in_hulls(MulticlassOracle(), [0.9, 0.5], [0, 2], [(2,)], sets=kept, ids=["x"])
    np.testing.assert_allclose(found.mu, [0.7, 0.3], atol=1e-12)


def test_saved_sets_go_on_with_the_same_bits():
    """Sets that were saved and read take the calls of those that were not, and give their bits, also where some are forgotten."""
    oracle, shapes = ChainOracle(), [(6, 4), (3, 4), (5, 2), (6, 4)]
    points, offsets = batch_of(oracle, shapes)
    rng = np.random.default_rng(0)
    steps = [points + 0.1 * rng.normal(size=len(points)) for _ in range(8)]
    plain, read = ActiveSets(max_bytes=3_000), ActiveSets(max_bytes=3_000)
    for k, own in enumerate(steps):
        ids = [0, 1, 2, 3 + k % 3]
        wanted = nearest_in_hulls(oracle, own, offsets, shapes, sets=plain, ids=ids)
        found = nearest_in_hulls(oracle, own, offsets, shapes, sets=read, ids=ids)
        np.testing.assert_array_equal(found.mu, wanted.mu)
        assert found.n_calls.tolist() == wanted.n_calls.tolist()
        read = ActiveSets(max_bytes=3_000)
        read.restore(plain.saved())
    assert len(plain) == len(read) < 6


@pytest.mark.parametrize("name", ["used", "sizes", "caps", "spares", "at", "lengths", "parts", "ids", "slots", "weights"])
def test_damaged_sets_are_refused_or_begin_anew(name: str) -> None:
    """Numbers that would lead kernels outside of their arrays are an error, parts that do not exist a cold start."""
    oracle, shapes = ChainOracle(), [(6, 4), (3, 4)]
    points, offsets = batch_of(oracle, shapes)
    kept = ActiveSets()
    wanted = nearest_in_hulls(oracle, points, offsets, shapes, sets=kept, ids=[0, 1])
    for change in (lambda x: x + 1_000_000, lambda x: -1 - x, lambda x: x[:-1]):
        saved = kept.saved()
        saved[name] = change(saved[name])
        read, said = ActiveSets(), ""
        try:
            read.restore(saved)
        except DataError as error:
            said = str(error)
        if said:
            assert said.startswith("saved active sets")
        else:
            found = nearest_in_hulls(oracle, points, offsets, shapes, sets=read, ids=[0, 1])
            np.testing.assert_allclose(found.mu, wanted.mu, atol=1e-8)


def test_what_was_used_last_is_kept_and_earlier_results_stay_whole():
    """Above the bound the oldest ids go; a result of before can still be pulled back, unless its ids were solved for again."""
    oracle, shapes = ChainOracle(), [(6, 4)] * 8
    points, offsets = batch_of(oracle, shapes)
    kept = ActiveSets(max_bytes=20_000)
    first = nearest_in_hulls(oracle, points, offsets, shapes, sets=kept, ids=range(8))
    given = np.ones_like(points)
    before = first.pull_back(given)
    nearest_in_hulls(oracle, points[: offsets[1]], offsets[:2], shapes[:1], sets=kept, ids=[99])
    assert 1 < len(kept) < 9
    np.testing.assert_array_equal(first.pull_back(given), before)
    last = nearest_in_hulls(oracle, points, offsets, shapes, sets=kept, ids=range(8))
    nearest_in_hulls(oracle, points, offsets, shapes, sets=kept, ids=range(8))
    if last._pools is kept._pools:
        with pytest.raises(DataError, match="solved for again"):
            last.pull_back(given)


def test_threads_do_not_change_a_bit():
    """Any number of threads gives the same bytes."""
    oracle, shapes = ChainOracle(), [(5, 3), (2, 3), (7, 3), (4, 3)]
    points, offsets = batch_of(oracle, shapes)
    alone, many = (nearest_in_hulls(oracle, points, offsets, shapes, n_jobs=n) for n in (1, 3))
    assert alone.mu.tobytes() == many.mu.tobytes()
    assert alone.pull_back(points).tobytes() == many.pull_back(points).tobytes()


@pytest.mark.parametrize("part", [-1, 3])
def test_parts_out_of_range_are_refused(part):
    """They are the oracle's fault: OracleError with the sample, the range and the part, and nothing is written beside arrays."""

    class Wrong(ThreeMethods):
        def parts(self, labels, shape):
            return labels if shape == () else np.array([part])

    with pytest.raises(OracleError, match=rf"sample 1: expected parts in \[0, 3\), got {part}"):
        nearest_in_hulls(Wrong(), np.zeros(6), [0, 3, 6], [(), (1,)])


def test_what_is_not_reached_or_does_not_fit_is_named():
    """Too few calls, points that do not fit, a metric below zero, ids twice: one clear error each."""
    oracle, shapes = ChainOracle(), [(1, 2), (9, 5)]
    points, offsets = batch_of(oracle, shapes)
    with pytest.raises(ConvergenceError, match=r"1 of the projections are not done, samples \[1\]: sample 1 .* raise max_iter"):
        nearest_in_hulls(oracle, points, offsets, shapes, max_iter=5)
    with pytest.raises(DataError, match="offsets"):
        nearest_in_hulls(oracle, points[:-1], offsets, shapes)
    with pytest.raises(DataError, match="sample 1: part 2"):
        nearest_in_hulls(oracle, np.where(np.arange(len(points)) == offsets[1] + 2, np.nan, points), offsets, shapes)
    with pytest.raises(DataError, match="metric"):
        nearest_in_hulls(oracle, points, offsets, shapes, metric=-np.ones_like(points))
    with pytest.raises(DataError, match="different ids"):
        nearest_in_hulls(oracle, points, offsets, shapes, sets=ActiveSets(), ids=["a", "a"])
    with pytest.raises(ParameterError, match="tol"):
        nearest_in_hulls(oracle, points, offsets, shapes, tol=-1.0)
    with pytest.raises(ParameterError, match="max_bytes"):
        ActiveSets(-1)
