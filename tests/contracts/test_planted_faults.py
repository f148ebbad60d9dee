"""Faults planted in oracles of six structures: each is found, named by its rule, and told with a cause that fits."""

import re

import pytest
from planted_faults import FAULTS
from structures import STRUCTURES

from structpred.contracts.checks import check_oracle
from structpred.core.oracle import Oracle
from structpred.errors import OracleError


@pytest.mark.mostly_slow
@pytest.mark.parametrize(("kind", "rule", "cause"), FAULTS, ids=[kind.__name__ for kind, _, _ in FAULTS])
def test_each_planted_fault_is_found_with_a_fitting_cause(kind: type[Oracle], rule: str, cause: str) -> None:
    """The broken rule has a line, and the likely cause in it is that of the fault."""
    with pytest.raises(OracleError) as caught:
        check_oracle(kind(), n_random=10)
    line = next(line for line in str(caught.value).splitlines() if line.startswith(f"- {rule}, at"))
    assert re.search(cause, line.split("Likely cause: ")[1]), line


def test_there_are_twenty_five() -> None:
    """No fault is left out, and none is listed twice."""
    assert len({kind for kind, _, _ in FAULTS}) == 25


@pytest.mark.mostly_slow
@pytest.mark.parametrize("kind", STRUCTURES, ids=[kind.__name__ for kind in STRUCTURES])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_structures_themselves_are_right(kind: type[Oracle], seed: int) -> None:
    """Without a planted fault nothing is found."""
    assert check_oracle(kind(), n_random=10, seed=seed).checked["invalid labels"] > 20
