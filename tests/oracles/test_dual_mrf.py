"""TRW-S: the bound is never below the LP's value, never rises, and comes near it; labels are allowed."""

import itertools
import logging
from pathlib import Path

import numpy as np
import pytest
from local_polytope_cases import grid, lp_value
from mrf_cases import all_scores, forbid_some, random_forest, random_graph
from uai_cases import uai_instances

from structpred.core.fixed_scores import FORBIDDEN
from structpred.core.oracle import Shape
from structpred.errors import ConvergenceError, DataError, InfeasibleError, ParameterError
from structpred.oracles.dual_mrf import DualMRF
from structpred.oracles.mrf import graph_of, graph_shape
from structpred.oracles.qpbo import QPBO


def instance(rng: np.random.Generator, kind: int) -> tuple[Shape, np.ndarray]:
    """Up to 6 nodes of up to 4 states: normal scores, whole ones with ties, and both with an eighth of them forbidden."""
    shape = random_graph(rng, int(rng.integers(1, 7)), int(rng.integers(1, 5)), 0.6)
    size = graph_of(shape).n_parts
    scores = rng.normal(size=size) if kind % 2 else rng.integers(-2, 3, size).astype(float)
    return shape, forbid_some(rng, scores, 0.12) if kind >= 2 else scores


@pytest.mark.mostly_slow
@pytest.mark.parametrize("kind", range(4))
def test_the_bound_is_not_below_the_lp_and_the_labels_are_allowed(kind: int) -> None:
    """400 random instances, forbidden scores and ties among them: LP <= bound, and the labels' score is a real one."""
    rng = np.random.default_rng(kind)
    excess = []
    for _ in range(100):
        shape, scores = instance(rng, kind)
        best = float(all_scores(shape, scores).max())
        try:
            labels, bound = DualMRF(tol=0.0).argmax_bound(scores, shape)
        except InfeasibleError:
            assert best == -np.inf
            continue
        relaxed = lp_value(scores, shape)
        assert relaxed is not None
        assert bound >= relaxed - 1e-9 * max(1.0, abs(relaxed))
        assert all_scores(shape, scores)[tuple(labels)] > -np.inf
        excess.append(bound - relaxed)
    assert np.mean(np.array(excess) < 1e-6) > 0.9


def test_no_sweep_raises_the_bound() -> None:
    """More sweeps never give a higher bound (beyond rounding), nor labels with a lower score before they are improved."""
    rng = np.random.default_rng(5)
    shape = random_graph(rng, 12, 4, 0.5)
    scores = rng.normal(size=graph_of(shape).n_parts)
    bounds = [DualMRF(n_iter=t, tol=0.0).argmax_bound(scores, shape)[1] for t in range(1, 60)]
    assert all(after <= before + 1e-12 for before, after in itertools.pairwise(bounds))
    assert bounds[-1] < bounds[0] - 0.1


def test_forests_are_solved() -> None:
    """On graphs without cycles the bound is the best score, and the labels have it."""
    rng = np.random.default_rng(6)
    for _ in range(50):
        shape = random_forest(rng, 7, 3)
        scores = rng.normal(size=graph_of(shape).n_parts)
        labels, bound = DualMRF(tol=0.0).argmax_bound(scores, shape)
        best = all_scores(shape, scores).max()
        assert bound == pytest.approx(best, abs=1e-9)
        assert all_scores(shape, scores)[tuple(labels)] == pytest.approx(best, abs=1e-9)


def test_one_sweep_solves_a_path() -> None:
    """Along a path whose node numbers grow one sweep, there and back, makes the bound the best score."""
    rng, shape = np.random.default_rng(9), graph_shape(7, 3, [(i, i + 1) for i in range(6)])
    for _ in range(10):
        scores = rng.normal(size=graph_of(shape).n_parts)
        assert DualMRF(n_iter=1).argmax_bound(scores, shape)[1] == pytest.approx(all_scores(shape, scores).max(), abs=1e-9)


def test_two_states_come_down_to_roof_duality() -> None:
    """For K = 2 the limit is the LP's value: within 1e-4 of roof duality's after at most 5,000 sweeps."""
    rng = np.random.default_rng(7)
    for _ in range(20):
        shape = random_graph(rng, 10, 2, 0.6)
        scores = rng.normal(size=graph_of(shape).n_parts)
        relaxed = QPBO().argmax_bound(scores, shape)[1]
        assert relaxed - 1e-9 <= DualMRF(n_iter=5000, tol=0.0).argmax_bound(scores, shape)[1] <= relaxed + 1e-4 * abs(relaxed)


@pytest.mark.parametrize("kind", ["normal", "potts"])
def test_a_grid_within_a_percent_of_the_lp(kind: str) -> None:
    """A 12x12 grid with 5 states: bound within 1 % above the LP's value with the default settings."""
    rng = np.random.default_rng(8)
    shape = grid(12, 12, 5)
    scores = rng.normal(size=graph_of(shape).n_parts)
    if kind == "potts":
        tables = scores[144 * 5 :].reshape(-1, 5, 5)
        tables[:] = rng.random((len(tables), 1, 1)) * np.eye(5)
    relaxed = lp_value(scores, shape)
    assert relaxed is not None
    assert relaxed - 1e-9 * abs(relaxed) <= DualMRF().argmax_bound(scores, shape)[1] <= 1.01 * relaxed


def test_sweeps_are_told(caplog: pytest.LogCaptureFixture) -> None:
    """The log says how many sweeps were made; scores that one sweep settles take no more."""
    with caplog.at_level(logging.DEBUG, "structpred.oracles.dual_mrf"):
        DualMRF().argmax(np.array([1.0, 0.0, 0.0, 0.5, 0.0, -2.0, -2.0, 0.0]), (2, 2, 0, 1))
    assert "after 1 sweeps" in caplog.text


def test_what_cannot_be_done_is_said() -> None:
    """Bad settings, NaN and wrong sizes are refused; three nodes that must differ with two states are not answered."""
    with pytest.raises(ParameterError, match="n_iter"):
        DualMRF(n_iter=0)
    with pytest.raises(ParameterError, match="tol"):
        DualMRF(tol=float("nan"))
    with pytest.raises(DataError, match="finite"):
        DualMRF().argmax(np.full(8, np.nan), (2, 2, 0, 1))
    with pytest.raises(DataError, match="expected 8 scores"):
        DualMRF().argmax(np.zeros(9), (2, 2, 0, 1))
    with pytest.raises(InfeasibleError):
        DualMRF().argmax(np.array([FORBIDDEN, FORBIDDEN, 0.0, 0.0]), (2, 2))
    scores = np.concatenate((np.zeros(6), np.tile([FORBIDDEN, 1.0, 1.0, FORBIDDEN], 3)))
    with pytest.raises(ConvergenceError, match="CpSatMRF"):
        DualMRF().argmax(scores, graph_shape(3, 2, [(0, 1), (0, 2), (1, 2)]))


@pytest.mark.slow
def test_real_instances_are_bounded(data_dir: Path) -> None:
    """All 20 instances with exact answers, larger factors made variables: the bound is never below exact_max; half are tight."""
    tight = 0
    instances = uai_instances(data_dir, paired=True)
    for one in instances:
        labels, bound = DualMRF().argmax_bound(one.problem.scores, one.problem.shape)
        assert one.exact_max is not None
        assert bound + one.problem.constant >= one.exact_max - 1e-6
        assert one.score(labels) <= one.exact_max + 1e-6
        if one.problem.shape[1] == 2:
            assert QPBO().argmax_bound(one.problem.scores, one.problem.shape)[1] + one.problem.constant >= one.exact_max - 1e-6
        tight += abs(bound + one.problem.constant - one.exact_max) < 1e-2
    assert len(instances) == 20
    assert tight >= 9
