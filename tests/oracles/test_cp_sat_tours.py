"""Tours by CP-SAT: against the dynamic programme, against known optima of more nodes, cut short, forbidden edges, training."""

import numpy as np
import pytest

from structpred.core.fixed_scores import FORBIDDEN
from structpred.data.decisions import travelling_salesman_data
from structpred.errors import ConvergenceError, InfeasibleError, ParameterError
from structpred.layers import Scores, SPOPlus
from structpred.models import DecisionModel
from structpred.oracles.cp_sat_tours import CpSatBoundTravellingSalesman, CpSatTravellingSalesman
from structpred.oracles.travelling_salesman import TravellingSalesmanOracle

ORACLE = CpSatTravellingSalesman()


def score(tour: np.ndarray, scores: np.ndarray) -> float:
    """The score of a tour."""
    return float(scores[ORACLE.parts(tour, (len(tour),))].sum())


@pytest.mark.parametrize("n", [7, 11])
def test_tours_are_those_of_the_dynamic_programme(n: int) -> None:
    """For lengths and for scores of both signs the best tours of CP-SAT score what those of Held and Karp score."""
    plain, rng = TravellingSalesmanOracle(), np.random.default_rng(n)
    lengths = travelling_salesman_data(2, n_nodes=n, degree=4, noise=0.5, seed=n).costs
    for scores in (*-lengths, 1e6 * rng.normal(size=len(lengths[0]))):
        best = score(plain.argmax(scores, (n,)), scores)
        assert score(ORACLE.argmax(scores, (n,)), scores) == pytest.approx(best, rel=1e-12)
        labels, bound = CpSatBoundTravellingSalesman().argmax_bound(scores, (n,))
        assert score(labels, scores) == pytest.approx(best, rel=1e-12)
        assert best <= bound <= best + 1e-9 * abs(best)


def test_many_nodes_on_a_circle_are_visited_in_their_order() -> None:
    """The shortest tour of 40 nodes on a circle, numbered at random, goes round: its length is that of the polygon."""
    place = np.random.default_rng(0).permutation(40)
    nodes = np.stack((np.cos(place * np.pi / 20.0), np.sin(place * np.pi / 20.0)), axis=1)
    first, second = np.triu_indices(40, 1)
    scores = -np.linalg.norm(nodes[first] - nodes[second], axis=1)
    tour = ORACLE.argmax(scores, (40,))
    assert score(tour, scores) == pytest.approx(-80.0 * np.sin(np.pi / 40.0), rel=1e-12)
    assert tour.tolist() == CpSatTravellingSalesman().argmax(scores, (40,)).tolist()


def test_a_search_that_is_cut_short_says_so() -> None:
    """Without a proof the exact oracle raises an error; the other one gives a tour, and a bound above the best one."""
    scores = np.random.default_rng(5).normal(size=435)
    best = score(ORACLE.argmax(scores, (30,)), scores)
    with pytest.raises(ConvergenceError, match=r"within limit=1e-06: no tour of 30 nodes scores above \d.*raise the limit"):
        CpSatTravellingSalesman(limit=1e-6).argmax(scores, (30,))
    labels, bound = CpSatBoundTravellingSalesman(limit=1e-6).argmax_bound(scores, (30,))
    assert score(labels, scores) <= best <= bound
    assert not CpSatBoundTravellingSalesman.exact
    with pytest.raises(ParameterError, match="expected a limit > 0"):
        CpSatTravellingSalesman(limit=0.0)


def test_forbidden_edges_are_left_out() -> None:
    """Of four nodes without the edge 02 the best other tour is taken; where every tour has a forbidden edge, InfeasibleError."""
    scores = np.array([1.0, 9.0, 1.0, 1.0, 9.0, 1.0])  # of the edges 01, 02, 03, 12, 13, 23
    scores[1] = FORBIDDEN
    for oracle in (ORACLE, CpSatBoundTravellingSalesman()):
        assert oracle.argmax(scores, (4,)).tolist() == [0, 1, 2, 3]
        with pytest.raises(InfeasibleError, match="every tour has a forbidden edge"):
            oracle.argmax(np.where(np.arange(6) < 2, FORBIDDEN, scores), (4,))


@pytest.mark.slow
def test_models_of_large_tours_are_trained() -> None:
    """A model of tours of 22 nodes is trained by SPO+, and its loss is a bound of each regret."""
    data = travelling_salesman_data(4, n_nodes=22, degree=4, noise=0.5, seed=1)
    model = DecisionModel(ORACLE, shape=data.shape, max_iter=1).fit(data.features, data.costs)
    costs = np.asarray(data.costs)
    regrets = model.regrets(data.features, costs).regrets
    batch = Scores.of(ORACLE, [data.shape] * 4)
    bounds = SPOPlus(ORACLE).regret_bound(batch, -model.predict_costs(data.features), true_scores=-costs)
    assert (regrets >= -1e-9).all()
    assert (regrets <= bounds + 1e-9).all()
