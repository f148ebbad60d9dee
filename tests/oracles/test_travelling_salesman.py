"""Tours of a few nodes: what is refused, and a circle of more nodes than the contract lists."""

import numpy as np
import pytest

from structpred.errors import DataError
from structpred.oracles.travelling_salesman import TravellingSalesmanOracle


def test_the_best_tour_of_nodes_on_a_circle_goes_round() -> None:
    """Of 10 nodes on a circle, numbered at random, the shortest tour visits neighbours one after the other."""
    order = np.random.default_rng(0).permutation(10)
    angle = 2.0 * np.pi * np.argsort(order) / 10.0
    nodes = np.stack((np.cos(angle), np.sin(angle)), axis=1)
    first, second = np.triu_indices(10, 1)
    tour = TravellingSalesmanOracle().argmax(-np.linalg.norm(nodes[first] - nodes[second], axis=1), (10,))
    steps = np.diff(np.append(np.argsort(order)[tour], np.argsort(order)[tour[0]])) % 10
    assert set(steps.tolist()) in ({1}, {9})


@pytest.mark.parametrize(("n", "message"), [(2, "a tour has 3 to 500 nodes, got 2"), (21, "got 21: CpSatTravelling")])
def test_too_few_and_too_many_nodes_are_refused(n: int, message: str) -> None:
    """Two nodes have no tour, and 21 would take too long: both are refused before the search."""
    with pytest.raises(DataError, match=message):
        TravellingSalesmanOracle().n_parts((n,))
