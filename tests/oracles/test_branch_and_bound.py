"""Branch and bound compared with enumeration, on real instances, and cut short."""

from pathlib import Path

import numpy as np
import pytest
from local_polytope_cases import complete, grid
from mrf_cases import all_scores, forbid_some, random_graph
from uai_cases import uai_instances

from structpred.core.oracle import Shape
from structpred.errors import ConvergenceError, DataError, InfeasibleError, ParameterError
from structpred.oracles.branch_and_bound import BranchAndBoundMRF
from structpred.oracles.mrf import graph_of
from structpred.oracles.mrf_enumeration import EnumerationMRF

pytestmark = pytest.mark.slow  # its kernels take most of a minute to compile
KINDS = ["normal", "whole", "forbidden", "tiny", "huge"]


def instance(rng: np.random.Generator, kind: str) -> tuple[Shape, np.ndarray]:
    """Up to 7 nodes of 1 to 3 states, sparse to complete."""
    shape = random_graph(rng, int(rng.integers(1, 8)), int(rng.integers(1, 4)), float(rng.choice([0.2, 0.5, 1.0])))
    size = graph_of(shape).n_parts
    if kind in ("whole", "forbidden"):
        scores = rng.integers(-2, 3, size).astype(float)
        return shape, forbid_some(rng, scores, 0.15) if kind == "forbidden" else scores
    return shape, {"normal": 1.0, "tiny": 1e-6, "huge": 1e6}[kind] * rng.normal(size=size)


def close(a: float, b: float, scores: np.ndarray) -> bool:
    """Equal but for rounding."""
    return bool(abs(a - b) <= 1e-12 * np.abs(scores[scores > -1e29]).sum())


@pytest.mark.parametrize("kind", KINDS)
def test_argmax_is_the_best_of_all_outputs(kind: str) -> None:
    """Random graphs, sparse and dense, ties, forbidden scores, all sizes: enumeration's best score."""
    rng = np.random.default_rng(KINDS.index(kind))
    for _ in range(200):
        shape, scores = instance(rng, kind)
        table = all_scores(shape, scores)
        try:
            labels = BranchAndBoundMRF().argmax(scores, shape)
        except InfeasibleError:
            assert table.max() == -np.inf
        else:
            assert close(float(table[tuple(labels)]), float(table.max()), scores)


@pytest.mark.parametrize("kind", KINDS)
def test_the_best_product(kind: str) -> None:
    """max(0, h) g compared with enumeration: costs of nodes and of pairs, whole or not, products that are all zero among them."""
    rng = np.random.default_rng(10 + KINDS.index(kind))
    zero = 0
    for t in range(200):
        shape, scores = instance(rng, kind)
        graph = graph_of(shape)
        costs = rng.integers(0, 3, graph.n_parts).astype(float) if t % 2 else rng.random(graph.n_parts)
        if t % 3:
            costs[graph.n * graph.n_states :] = 0.0
        shift = float(rng.choice([0.0, -4.0])) * np.abs(scores[scores > -1e29]).mean() if t % 4 == 0 else 0.0
        offsets = np.array([rng.normal() + 1.0 + shift, rng.integers(2)])
        heights, widths = offsets[0] + all_scores(shape, scores), offsets[1] + all_scores(shape, costs)
        products = np.where(heights > -np.inf, np.maximum(heights, 0.0) * widths, -np.inf)
        try:
            labels = BranchAndBoundMRF().argmax_product(scores, costs, offsets, shape)
        except InfeasibleError:
            assert products.max() == -np.inf
            continue
        assert products[tuple(labels)] == pytest.approx(products.max(), rel=1e-9, abs=1e-300)
        zero += products.max() == 0.0
    assert zero > 0


def test_products_that_are_all_zero() -> None:
    """Heights below zero everywhere, some parts forbidden: any allowed output, and InfeasibleError only where there is none."""
    rng = np.random.default_rng(25)
    nothing = 0
    for _ in range(200):
        shape = random_graph(rng, int(rng.integers(3, 10)), int(rng.integers(2, 4)), 0.5)
        scores = forbid_some(rng, rng.normal(size=graph_of(shape).n_parts), 0.2)
        costs, offsets = rng.integers(0, 4, len(scores)).astype(float), np.array([-1e3, 1.0])
        try:
            labels = BranchAndBoundMRF().argmax_product(scores, costs, offsets, shape)
        except InfeasibleError:
            assert all_scores(shape, scores).max() == -np.inf
            nothing += 1
        else:
            assert all_scores(shape, scores)[tuple(labels)] > -np.inf
    assert 0 < nothing < 100


@pytest.mark.parametrize("kind", KINDS)
def test_the_best_within_rows(kind: str) -> None:
    """argmax_constrained compared with enumeration's, None where it gives none, and a bound that is the score."""
    rng = np.random.default_rng(20 + KINDS.index(kind))
    nothing = 0
    for _ in range(150):
        shape, scores = instance(rng, kind)
        rows = rng.integers(-2, 3, (2, len(scores))).astype(float)
        limits = 3.0 * rng.normal(size=2).round() + 0.5
        expected = EnumerationMRF().argmax_constrained(scores, shape, rows, limits)
        found = BranchAndBoundMRF().argmax_constrained(scores, shape, rows, limits)
        labels, bound = BranchAndBoundMRF().argmax_constrained_bound(scores, shape, rows, limits)
        if expected is None:
            assert found is None
            assert (labels, bound) == (None, -np.inf)
            nothing += 1
            continue
        assert found is not None
        table = all_scores(shape, scores)
        assert close(float(table[tuple(found)]), float(table[tuple(expected)]), scores)
        assert (rows[:, EnumerationMRF().parts(found, shape)].sum(axis=1) <= limits).all()
        assert close(bound, float(table[tuple(expected)]), scores)
    assert 5 < nothing < 140


def test_larger_dense_graphs() -> None:
    """Complete graphs of 16 nodes: argmax and product as enumeration has them."""
    rng = np.random.default_rng(30)
    shape = complete(16)
    for _ in range(10):
        scores = rng.normal(size=graph_of(shape).n_parts)
        costs = np.zeros(len(scores))
        costs[:32] = rng.random(32)
        best, found = EnumerationMRF().argmax(scores, shape), BranchAndBoundMRF().argmax(scores, shape)
        np.testing.assert_array_equal(found, best)
        offsets = np.array([1.0, 0.0])
        best = EnumerationMRF().argmax_product(scores, costs, offsets, shape)
        np.testing.assert_array_equal(BranchAndBoundMRF().argmax_product(scores, costs, offsets, shape), best)


def test_a_search_that_is_cut_short_is_no_answer() -> None:
    """Too few nodes allowed: ConvergenceError from every method, or a bound that holds, and never labels called the best."""
    rng = np.random.default_rng(40)
    shape = grid(5, 5, 3)
    scores = rng.normal(size=graph_of(shape).n_parts)
    rows, limits = rng.normal(size=(1, len(scores))), np.array([0.0])
    exact = BranchAndBoundMRF().argmax_constrained_bound(scores, shape, rows, limits)[1]
    dense = complete(14)
    others = rng.normal(size=graph_of(dense).n_parts)
    for max_nodes in (1, 20, 100):
        cut = BranchAndBoundMRF(max_nodes=max_nodes)
        with pytest.raises(ConvergenceError, match=f"after {max_nodes} partial outputs"):
            cut.argmax(others, dense)
        with pytest.raises(ConvergenceError):
            cut.argmax_product(others, np.ones(len(others)), np.ones(2), dense)
        with pytest.raises(ConvergenceError):
            cut.argmax_constrained(scores, shape, rows, limits)
        assert cut.argmax_constrained_bound(scores, shape, rows, limits)[1] >= exact - 1e-9


@pytest.mark.parametrize("shape", [complete(14), grid(4, 4, 2)], ids=["dense", "grid"])
def test_two_states_have_a_bound_where_the_search_is_cut_short(shape: Shape) -> None:
    """Labels whose score is below a bound that the best output keeps; the best output itself, and its score, where it ends."""
    scores = np.random.default_rng(41).normal(size=graph_of(shape).n_parts)
    oracle = BranchAndBoundMRF()
    best = scores[oracle.parts(oracle.argmax(scores, shape), shape)].sum()
    for max_nodes, ended in ((1, False), (10**6, True)):
        labels, bound = BranchAndBoundMRF(max_nodes).argmax_bound(scores, shape)
        found = scores[oracle.parts(labels, shape)].sum()
        assert found <= best + 1e-12 <= bound + 2e-12
        assert not ended or (found, bound) == pytest.approx((best, best), abs=1e-12)


def test_three_states_are_refused_where_the_search_is_cut_short() -> None:
    """Roof duality is for two states: with more a bound is refused as the labels are."""
    scores = np.random.default_rng(42).normal(size=graph_of(complete(12, 3)).n_parts)
    with pytest.raises(ConvergenceError):
        BranchAndBoundMRF(1).argmax_bound(scores, complete(12, 3))


def test_the_bound_holds_wherever_the_constrained_search_is_cut() -> None:
    """The bound never falls below the exact answer, and labels that come with it keep to the rows."""
    rng = np.random.default_rng(50)
    shape = complete(12)
    scores = rng.normal(size=graph_of(shape).n_parts)
    rows, limits = rng.normal(size=(2, len(scores))), np.array([-3.0, -3.0])
    exact = BranchAndBoundMRF().argmax_constrained_bound(scores, shape, rows, limits)[1]
    partial = 0
    for max_nodes in range(50, 3000, 50):
        labels, bound = BranchAndBoundMRF(max_nodes).argmax_constrained_bound(scores, shape, rows, limits)
        assert bound >= exact - 1e-9
        if labels is not None:
            parts = BranchAndBoundMRF().parts(labels, shape)
            assert (rows[:, parts].sum(axis=1) <= limits).all()
            assert scores[parts].sum() <= exact + 1e-9
            partial += bound > exact + 1e-6
    assert partial > 0


def test_bad_input() -> None:
    """No node to look at, NaN, the wrong number of scores, rows of another width, limits that are NaN."""
    oracle, shape = BranchAndBoundMRF(), (2, 2, 0, 1)
    with pytest.raises(ParameterError, match="max_nodes"):
        BranchAndBoundMRF(0)
    with pytest.raises(DataError, match="finite"):
        oracle.argmax(np.full(8, np.nan), shape)
    with pytest.raises(DataError, match="finite"):
        oracle.argmax_product(np.zeros(8), np.full(8, np.inf), np.zeros(2), shape)
    with pytest.raises(DataError, match="expected 8 scores"):
        oracle.argmax(np.zeros(9), shape)
    with pytest.raises(ParameterError, match=r"\(1, 8\)"):
        oracle.argmax_constrained(np.zeros(8), shape, np.zeros((1, 7)), np.zeros(1))
    with pytest.raises(DataError, match="limits"):
        oracle.argmax_constrained(np.zeros(8), shape, np.zeros((1, 8)), np.array([np.nan]))
    with pytest.raises(DataError, match="finite"):
        oracle.argmax_constrained(np.full(8, np.nan), shape, np.zeros((1, 8)), np.zeros(1))


SOLVED = [
    "DBN_11",
    "Grids_11",
    "Grids_13",
    "MAPtrack_Segmentation_12",
    "MAPtrack_Segmentation_14",
    "MAPtrack_Segmentation_19",
    "ObjectDetection_34",
    "ObjectDetection_61",
    "Segmentation_11",
    "Segmentation_13",
    "Segmentation_15",
    "Alchemy_11",
    "Promedus_24",
]


@pytest.mark.parametrize("name", SOLVED)
def test_real_instances_are_solved(data_dir: Path, name: str) -> None:
    """The instances that are in reach, up to 820 nodes: exact_max to 1e-6."""
    (one,) = uai_instances(data_dir, paired=True, names=[name])
    assert one.score(BranchAndBoundMRF().argmax(one.problem.scores, one.problem.shape)) == pytest.approx(one.exact_max, abs=1e-6)


@pytest.mark.slow
def test_what_is_out_of_reach_is_not_answered(data_dir: Path) -> None:
    """A 20x20 spin glass far from its LP bound: ConvergenceError, no labels."""
    (one,) = uai_instances(data_dir, names=["Grids_15"])
    with pytest.raises(ConvergenceError, match="400 nodes"):
        BranchAndBoundMRF(1_000_000).argmax(one.problem.scores, one.problem.shape)


def test_bounds_keep_the_search_small() -> None:
    """Complete graphs of 18 nodes, 262,144 outputs, take some 500 to 800 partial outputs: what cannot win is not looked at."""
    for seed in range(6):
        rng, shape = np.random.default_rng(seed), complete(18, 2)
        scores = rng.normal(size=graph_of(shape).n_parts)
        assert BranchAndBoundMRF(max_nodes=800).argmax(scores, shape).shape == (18,)
